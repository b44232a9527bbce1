package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/tracing"
)

// blocking is one place in the core where a goroutine may wait for another, for
// a process or for the clock. Mutexes are not among them: nobody waits while one
// is held, and reads of sockets end with their peer.
type blocking struct {
	at   string // package.func, of a method package.Type.func
	kind string // receive, send, select, range, wait, sleep, process
	pos  token.Position
}

// TestB100EveryBlockingWaitIsKnown lists every blocking wait in core/** and
// holds the list against [waits]: a wait that has no row fails, and so does a
// row without its wait.
func TestB100EveryBlockingWaitIsKnown(t *testing.T) {
	found := map[string]map[string]token.Position{}
	for _, w := range blockingWaits(t, "./core/...") {
		if found[w.at] == nil {
			found[w.at] = map[string]token.Position{}
		}
		found[w.at][w.kind] = w.pos
	}
	if len(found) < 20 {
		t.Fatalf("only %d functions of the core wait; the list is not whole", len(found))
	}
	for _, at := range slices.Sorted(maps.Keys(found)) {
		kinds := strings.Join(slices.Sorted(maps.Keys(found[at])), " ")
		row, ok := waits[at]
		switch {
		case !ok:
			t.Errorf("%v: %s waits (%s) and has no row in the table: say which span it is, or why it is internal", first(found[at]), at, kinds)
		case row.kinds != kinds:
			t.Errorf("%s waits (%s), its row says (%s)", at, kinds, row.kinds)
		}
	}
	for at, row := range waits {
		if _, ok := found[at]; !ok {
			t.Errorf("%s does not wait any more: delete its row", at)
		}
		class, why, _ := strings.Cut(row.why, ": ")
		if class == "span" && spanNames[why] == "" || class != "span" && class != "internal" || why == "" {
			t.Errorf("%s: %q is neither `span: NAME` of a known span nor `internal: REASON`", at, row.why)
		}
	}
}

func first(m map[string]token.Position) token.Position {
	return m[slices.Sorted(maps.Keys(m))[0]]
}

// blockingWaits finds the waits of packages, with their types: a range over a
// channel looks like any other.
func blockingWaits(t *testing.T, patterns ...string) (all []blocking) {
	t.Helper()
	packages := exported(t, patterns...)
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(packages[path].Export)
	})
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		p := packages[path]
		if p.DepOnly {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
		if _, err := (&types.Config{Importer: from}).Check(path, set, files, info); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for _, d := range f.Decls {
				at := strings.TrimPrefix(path, module+"/") + "." + declName(d)
				look(d, info, func(n ast.Node, kind string) { all = append(all, blocking{at, kind, set.Position(n.Pos())}) })
			}
		}
	}
	return all
}

// builtPackage is what the go command tells of a package that it has built.
type builtPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

func exported(t *testing.T, patterns ...string) map[string]builtPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly"}, patterns...)...)
	cmd.Dir, cmd.Stderr = root, t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]builtPackage{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p builtPackage
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages
		case err != nil:
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

func declName(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	name := f.Name.Name
	if f.Recv != nil {
		ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && !strings.Contains(name, ".") {
				name = id.Name + "." + name
			}
			return true
		})
	}
	return name
}

// look reports the waits below a node. The cases of a select wait together: with
// a default they do not wait at all.
func look(n ast.Node, info *types.Info, found func(ast.Node, string)) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectStmt:
			if !slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool { return s.(*ast.CommClause).Comm == nil }) {
				found(n, "select")
			}
			for _, s := range n.Body.List {
				for _, body := range s.(*ast.CommClause).Body {
					look(body, info, found)
				}
			}
			return false
		case *ast.SendStmt:
			found(n, "send")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				found(n, "receive")
			}
		case *ast.RangeStmt:
			if _, ok := info.Types[n.X].Type.Underlying().(*types.Chan); ok {
				found(n, "range")
			}
		case *ast.SelectorExpr:
			if f, ok := info.Uses[n.Sel].(*types.Func); ok && calls[f.FullName()] != "" {
				found(n, calls[f.FullName()])
			}
		}
		return true
	})
}

// calls are the functions that wait.
var calls = map[string]string{
	"(*sync.WaitGroup).Wait":                          "wait",
	"(*sync.Cond).Wait":                               "wait",
	"(*golang.org/x/sync/errgroup.Group).Wait":        "wait",
	"(*golang.org/x/sync/semaphore.Weighted).Acquire": "wait",
	"time.Sleep":                    "sleep",
	"(*os/exec.Cmd).Wait":           "process",
	"(*os/exec.Cmd).Run":            "process",
	"(*os/exec.Cmd).Output":         "process",
	"(*os/exec.Cmd).CombinedOutput": "process",
	"(*os.Process).Wait":            "process",
	"(*github.com/nats-io/nats.go.Subscription).NextMsgWithContext": "receive",
}

// TestB100TheListFindsEveryKindOfWait: what the list looks for, and what it must
// not take for a wait.
func TestB100TheListFindsEveryKindOfWait(t *testing.T) {
	const source = `package p
import ("os/exec"; "sync"; "time")
type T struct{ wg sync.WaitGroup }
func receive(c chan int) { <-c }
func send(c chan int) { c <- 1 }
func selects(c chan int) { select { case <-c: case c <- 1: } }
func (t *T) polls(c chan int) { select { case <-c: default: } }
func inside(c chan int) { select { case <-c: <-c; default: c <- 1 } }
func ranges(c chan int, l []int) { for range c {}; for range l {}; for range 3 {} }
func deferred(c chan int) { defer func() { <-c }() }
func (t *T) waits() { t.wg.Wait(); time.Sleep(1); _ = new(sync.Cond).Wait }
func process(c *exec.Cmd) { _ = c.Wait(); _ = c.Run() }
var v = <-make(chan int)
`
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: importer.ForCompiler(set, "source", nil)}).Check("p", set, []*ast.File{f}, info); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range f.Decls {
		look(d, info, func(_ ast.Node, kind string) { got = append(got, declName(d)+":"+kind) })
	}
	want := []string{
		"receive:receive", "send:send", "selects:select", "inside:receive", "inside:send", "ranges:range", "deferred:receive",
		"T.waits:wait", "T.waits:sleep", "T.waits:wait", "process:process", "process:process", "var:receive",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", fmt.Sprint(got), fmt.Sprint(want))
	}
}

// spanNames are the waits for a person or for a place among parallel hooks, and
// the test that sees each of them open and close.
var spanNames = map[string]string{
	"wait.hook_confirmation": "TestB95AndB99EveryGateOpensAndClosesOneWait",
	"wait.tool_approval":     "TestB95AndB99EveryGateOpensAndClosesOneWait",
	"wait.hook_slot":         "TestB95AndB100WaitsOfACoreAreSpans",
}

// TestB95AndB99EveryGateOpensAndClosesOneWait takes a question of each gate through the
// core's own decisions: while it is open there is no span, then exactly one.
func TestB95AndB99EveryGateOpensAndClosesOneWait(t *testing.T) {
	gates := 0
	for _, e := range events.Types() {
		if strings.HasSuffix(string(e), "Request") {
			gates++
		}
	}
	all := []events.Gate{events.GateHook, events.GateApproval}
	if gates != len(all) {
		t.Errorf("the vocabulary has %d gates, this test knows %d", gates, len(all))
	}
	for _, gate := range all {
		t.Run("B95 "+string(gate), func(t *testing.T) {
			l := &decided{t: t}
			hook := events.Hook{ID: "ask", Scope: events.ScopeGlobal}
			plan := core.Plan{Config: events.DigestOf([]byte("rules")), Hooks: []events.Hook{hook}}
			run, question := freshID(), freshID()
			l.decide(core.Propose{
				Args: []byte(`{}`), Next: core.Next{Plan: plan, Run: run},
				Op: events.OperationProposed{Kind: events.KindToolCall, Agent: "generic", Path: "main", Tool: events.Tool{Name: "write"}, Config: plan.Config},
			})
			l.decide(core.HookDone{
				Run: run, Effect: events.EffectAsk, Outcome: events.RunOK,
				Ask: &core.Ask{Question: question, Gate: gate, Offered: 1, Available: true}, Next: core.Next{Plan: plan, Run: freshID()},
			})
			if open := named(l.spans(), "wait."); len(open) != 0 {
				t.Errorf("%d waits have ended before the answer", len(open))
			}
			l.decide(core.EndQuestion{Question: question, Reason: events.EndDeadline})
			waits := named(l.spans(), "wait.")
			if len(waits) != 1 || spanNames[waits[0].Name] == "" || waits[0].Text("fermata.wait.category") != string(gate) ||
				waits[0].Text("fermata.question.id") != string(question) || waits[0].EndTimeUnixNano <= waits[0].StartTimeUnixNano {
				t.Errorf("spans of the wait: %v", waits)
			}
		})
	}
}

// decided is a log that the pure core has decided on.
type decided struct {
	t       *testing.T
	state   core.State
	records []tracing.Record
}

func (l *decided) decide(c core.Command) {
	l.t.Helper()
	d, err := core.Decide(l.state, c)
	if err != nil || len(d.Events) == 0 {
		l.t.Fatalf("%T: %v, %v", c, d, err)
	}
	project, session := events.ProjectToken("/"), events.SessionToken(events.CoreToken("waits"), "generic", "s")
	if l.state.ID == "" {
		l.state.ID = freshID()
	}
	m := events.Message{
		ID: freshID(), Project: project, Session: session, Operation: l.state.ID, At: events.At(time.Now()) + events.Micros(len(l.records)),
		Principal: "core", Prev: l.state.Hash.Digest(), Events: d.Events, Bodies: d.Bodies,
	}
	for i := range m.Bodies {
		m.Bodies[i].Salt = make([]byte, events.SaltSize)
	}
	data, hash, err := events.EncodeMessage(m)
	if err != nil {
		l.t.Fatal(err)
	}
	m.Seq, m.Hash = uint64(len(l.records)+1), hash
	l.state = core.Apply(l.state, m)
	l.records = append(l.records, tracing.Record{Seq: m.Seq, Subject: events.OperationSubject(project, session, m.Operation), Data: data})
}

// spans projects what has been decided, and lets the verifier agree.
func (l *decided) spans() (all []tracing.Span) {
	l.t.Helper()
	key := tracing.Key{ID: "k1", Secret: []byte(strings.Repeat("k", tracing.KeySize))}
	p, err := tracing.New(tracing.Options{StoreID: "waits", Key: key})
	if err != nil {
		l.t.Fatal(err)
	}
	for e, err := range p.Project(sequence(l.records)) {
		if err != nil {
			l.t.Fatal(err)
		}
		for s, err := range tracing.Read(bytes.NewReader(append(e.Line, '\n'))) {
			if err != nil {
				l.t.Fatal(err)
			}
			all = append(all, s)
		}
	}
	report, err := tracing.Verify(tracing.VerifyOptions{StoreID: "waits", Key: key}, sequence(l.records), sequence(all))
	if err != nil || len(report.Findings) > 0 {
		l.t.Errorf("verify: %v, %v", err, report.Findings)
	}
	return all
}

// slotRules let one hook of a session run at a time.
const slotRules = `version: 1
settings: {max_parallel_hooks: 1}
hooks:
  - id: slow
    event: before_tool_call
    match: {tool_name: slow}
    execution: {mode: blocking}
    run: {type: command, argv: [sleep, "0.4"]}
  - id: ask
    event: before_tool_call
    match: {tool_name: asked}
    execution: {mode: blocking}
    run: {type: verdict, action: ask, reason: May it?}
`

// TestB95AndB100WaitsOfACoreAreSpans: in a real core, two calls whose hooks want the one
// place of their session, and a call that a person is asked about.
func TestB95AndB100WaitsOfACoreAreSpans(t *testing.T) {
	t.Parallel()
	b := &box{home: newHome(t, slotRules), t: t, n: new(atomic.Int64)}
	b.core = b.startCore()
	s := b.screen()
	slow := []*asker{b.propose(t, payload("s", "slow", "{}")), b.propose(t, payload("s", "slow", "{}"))}
	asked := b.propose(t, payload("s", "asked", "{}"))
	q := s.question("asked")
	s.says(q, events.AnswerContinue)
	for _, a := range append(slow, asked) {
		if line, _ := a.verdict(); line.Exit != 0 {
			t.Errorf("a call was denied: %+v", line)
		}
	}
	b.stopCore()
	e := b.evidence(t)
	e.checkSpans(t)
	if waits := named(e.spans, "wait.hook_confirmation"); len(waits) != 1 || waits[0].Text("fermata.question.id") != string(q.ID) {
		t.Errorf("waits for a person: %v", waits)
	}
	// A run that has its place at once has stood in line for no time to speak of.
	waits := slices.DeleteFunc(named(e.spans, "wait.hook_slot"), func(s tracing.Span) bool {
		return s.EndTimeUnixNano-s.StartTimeUnixNano < uint64(50*time.Millisecond)
	})
	if len(waits) != 1 || waits[0].Text("fermata.wait.category") != "hook_slot" || waits[0].Text("fermata.hook.name") != "slow" {
		t.Fatalf("waits for a place: %v", waits)
	}
	if d := time.Duration(waits[0].EndTimeUnixNano - waits[0].StartTimeUnixNano); d < 200*time.Millisecond {
		t.Errorf("the second hook waited %v for the first", d)
	}
	for _, run := range named(e.spans, "hook.run slow") {
		if run.Text("fermata.operation.id") == waits[0].Text("fermata.operation.id") && run.StartTimeUnixNano < waits[0].EndTimeUnixNano {
			t.Error("B98: the hook's own time begins before its wait has ended")
		}
	}
}

// TestF3AndB99ARunThatACrashCutsOffIsOneSpan: a hook that nothing waits for is
// running when the core is killed. The next core closes its run.
func TestF3AndB99ARunThatACrashCutsOffIsOneSpan(t *testing.T) {
	t.Parallel()
	h := emptyHome(t)
	h.write("config.yaml", "mode: process\n")
	h.write("hooks.yaml", fmt.Sprintf(`version: 1
hooks:
  - id: watch
    event: before_tool_call
    execution: {mode: async}
    run: {type: shell, shell: "touch %s/started; exec sleep 5"}
`, h.dir))
	h.startCore()
	if line, _ := h.propose(t, payload("s", "watched", "{}")).verdict(); line.Exit != 0 {
		t.Fatalf("the call was denied: %+v", line)
	}
	must(t, "start of the watcher", func() error {
		if !exists(h.dir + "/started") {
			return errNotYet
		}
		return nil
	})
	h.killCore()
	h.startCore()
	h.stopCore()
	e := h.evidence(t)
	e.checkSpans(t)
	runs := named(e.spans, "hook.run watch")
	if len(runs) != 1 || runs[0].Text("fermata.hook.outcome") != string(events.RunAbandoned) || runs[0].Text("fermata.hook.mode") != string(events.ModeAsync) {
		t.Errorf("spans of the run: %v", runs)
	}
	if operations := named(e.spans, "fermata.operation"); len(operations) != 1 {
		t.Errorf("%d spans of the operation", len(operations))
	}
}

// waits is the table: what waits where, and what shows it. Waits for a person
// and for a place among parallel hooks are spans; everything else is internal,
// and says what ends it.
var waits = map[string]struct{ kinds, why string }{
	// For a person, or for a place among parallel hooks.
	"core/engine.Engine.Await": {"receive select send", "span: wait.hook_confirmation"},
	"core/agents.Door.verdict": {"receive select send", "span: wait.hook_confirmation"},
	"core/engine.slots.take":   {"select", "span: wait.hook_slot"},

	// For a hook's process: the hook.run span is its time.
	"core/hooks.launch.run":      {"select", "internal: for the hook's process, its limit at most; hook.run shows it"},
	"core/hooks.process.await":   {"select", "internal: for the end of a hook's process group after TERM and KILL, a second each"},
	"core/hooks.process.wait":    {"process", "internal: for the hook's process, in a goroutine of its own that the run waits for"},
	"core/hooks.output.await":    {"select", "internal: for what a hook's process wrote last; a child that keeps the pipe open is not waited for"},
	"core/hooks.output.finish":   {"receive", "internal: for the goroutine that reads a closed pipe"},
	"core/hooks.launch.detach":   {"process", "internal: a detached process is taken from the system's table when it ends; nothing waits for that"},
	"core/engine.life.settle":    {"select", "internal: for a watcher's run at the end of its core or session, its grace and five seconds at most"},
	"core/engine.watchers.drain": {"wait", "internal: for the watchers' runs, each of which has a limit of its own"},

	// For the log: who holds a turn waits for an append, ten seconds at most.
	"core/engine.Engine.Propose":        {"receive send", "internal: the turn of an operation that nobody else knows yet"},
	"core/engine.Engine.decideWithin":   {"receive select", "internal: the operation's turn, whose holder waits for an append"},
	"core/engine.Engine.join":           {"receive select", "internal: the operation's turn, whose holder waits for an append"},
	"core/engine.Engine.withdrawMarked": {"receive select", "internal: the operation's turn, whose holder waits for an append"},
	"core/engine.Engine.writeWithin":    {"receive select", "internal: the session's turn, whose holder waits for an append"},
	"core/engine.Engine.leave":          {"receive", "internal: gives back the session's turn, which it took without waiting"},
	"core/engine.Engine.enter":          {"select", "internal: for the append that opens the session"},
	"core/engine.Engine.readBack":       {"receive select", "internal: one reading of much of the log at a time"},
	"core/engine.Engine.sweepLog":       {"receive select", "internal: one reading of the whole log at a time"},
	"core/journal.Journal.first":        {"select", "internal: for the batch that an append is in"},
	"core/journal.group.settle":         {"send", "internal: into a channel with room for the one value that it ever gets"},
	"core/journal.group.goAlone":        {"send", "internal: into a channel with room for the one value that it ever gets"},
	"core/journal.pause":                {"select", "internal: before an append whose outcome is unknown is looked at again"},

	// For files.
	"core/hooks.Store.For":  {"receive send", "internal: for whoever reads the same rules now"},
	"core/hooks.Store.calm": {"sleep", "internal: until files that are being written have come to rest, two seconds at most"},
	"core/hooks.lockTrust":  {"sleep", "internal: for another process that writes the trust file, bounded"},

	// For the core's own goroutines and clients.
	"core/agents.Client.connected": {"receive select", "internal: in the agent's process, for the one who dials"},
	"core/agents.Session.open":     {"receive select", "internal: in the agent's process, for the one who opens the session"},
	"core/agents.Door.Run":         {"select", "internal: the loop that takes commands"},
	"core/agents.Door.shut":        {"receive wait", "internal: for commands that have come, and for replies that are under way, at the core's end"},
	"core/agents.Socket.Run":       {"wait", "internal: for connections that the core's end has closed"},
	"core/agents.sleep":            {"select", "internal: before the next try to accept when no descriptor is left"},
	"core/engine.Engine.Run":       {"select wait", "internal: the engine's life; at its end for its own goroutines"},
	"core/engine.abreast":          {"receive send wait", "internal: for the ends that it appends, some at a time"},
	"core/engine.operation.heard":  {"select", "internal: for an asker to take its no, when the core was told to stop"},
	"core/frontdesk.Door.Run":      {"select wait", "internal: the loop that takes commands; at its end for those under way"},
	"core/natsd.Server.Run":        {"wait", "internal: for connections that the core's end has closed"},
	"core/natsd.pause":             {"select", "internal: before the next try to accept when no descriptor is left"},
	"core/natsd.relay":             {"receive", "internal: for the other direction of a connection that was closed"},
	"core/natsd.tell":              {"receive", "internal: for what a refused client still sends, 200 ms at most"},
	"core/natsd.Cluster.await":     {"select", "internal: for a leader, in tests of three servers"},
}
