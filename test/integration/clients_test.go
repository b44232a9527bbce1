package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// example is an agent of docs/examples, as it is started.
type example struct {
	name    string
	command []string
}

// examples makes the agents of docs/examples ready: Python runs as it is,
// TypeScript is compiled by the pinned compiler, with its strictest checks. It
// must be called before t.Parallel, while no other test installs the compiler.
func examples(t *testing.T) []example {
	t.Helper()
	return []example{
		{"Python", []string{python(t), "-B", absolute(t, root+"/docs/examples/python/agent.py")}},
		{"TypeScript", []string{"node", compiled(t, root+"/docs/examples/typescript") + "/agent.js"}},
	}
}

// python is the interpreter itself, which needs no home of its user.
func python(t *testing.T) string {
	t.Helper()
	const ask = "import sys; print(sys.executable); sys.exit(sys.version_info < (3, 11))"
	out, err := exec.Command("python3", "-c", ask).Output()
	if err != nil {
		t.Fatalf("this test runs an agent in Python and needs python3 3.11 or newer on PATH: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func compiled(t *testing.T, source string) string {
	t.Helper()
	node, out := absolute(t, nodeDir), t.TempDir()
	if err := nodeIsNew(); err != nil {
		t.Fatal(err)
	}
	if !installed(node) {
		inDir(t, node, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	}
	inDir(t, absolute(t, source), node+"/node_modules/.bin/tsc", "--project", ".",
		"--outDir", out, "--typeRoots", node+"/node_modules/@types")
	manifest, err := os.ReadFile(source + "/package.json") // it says that the files are modules
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(out+"/package.json", manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func inDir(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s in %s: %v\n%s", cmd, dir, err, out)
	}
}

// TestClients runs the agents of docs/examples against a real core.
func TestClients(t *testing.T) {
	all := examples(t)
	t.Parallel()
	t.Run("B9 B11 a question waits longer than two leases if its agent does", func(t *testing.T) { outlastsLeases(t, all) })
	t.Run("F3 B99 the core is killed while its questions are open", func(t *testing.T) { outlivesCore(t, all) })
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "", rewrite, ask("delete_file"))
			t.Run("B31 B58 B64 continue runs what the rules made of the call", func(t *testing.T) { continues(layDesk(b.in(t), e)) })
			t.Run("B33 B82 B83 cancel runs nothing and tells the model", func(t *testing.T) { cancels(layDesk(b.in(t), e)) })
			t.Run("B20 an interrupted agent withdraws its question", func(t *testing.T) { isInterrupted(layDesk(b.in(t), e)) })
			wantReported(t, b, 1)
			t.Run("B82 without a core nothing runs", func(t *testing.T) { isAlone(layDesk(b.in(t), e)) })
		})
	}
}

// rewrite turns a call about old.txt into one about made.
var rewrite = rule{id: "rewrite", tool: "delete_file", sh: `case "$IN" in *old.txt*)
say '{"action":"modify","args_override":{"path":"made <&> \u2028\u00e9.txt"}}' ;; esac`}

// made is a name that JSON writers write in several ways.
const made = "made <&> \u2028\u00e9.txt"

func continues(d *desk) {
	s := d.screen()
	d.deletes(made)
	p := d.agent("list_files", d.deletes("old.txt"))
	s.says(s.question("delete_file"), events.AnswerContinue)
	d.wantEnd(p, 0, made+"\nold.txt\n", "deleted "+made)
	d.wantFile("old.txt", true)
	d.wantFile(made, false)
}

func cancels(d *desk) {
	s := d.screen()
	p := d.agent(d.deletes("kept.txt"))
	no := reply(s.question("delete_file"), events.AnswerCancel)
	no.Text = "Not this one."
	if _, err := s.Answer(d.t.Context(), no); err != nil {
		d.t.Fatal(err)
	}
	d.wantEnd(p, 1, "refused (declined): The tool call did not run.", "Do not call it again unless the user asks for it.", no.Text)
	d.wantFile("kept.txt", true)
}

func isInterrupted(d *desk) {
	s := d.screen()
	p := d.agent(d.deletes("spared.txt"))
	q := s.question("delete_file")
	p.signal(os.Interrupt)
	s.wantEnd(q, events.EndCallerCancelled)
	d.wantEnd(p, 130)
	d.wantFile("spared.txt", true)
}

func isAlone(d *desk) {
	p := d.agent(d.deletes("safe.txt"))
	d.wantEnd(p, 1, "refused (core_unreachable): The tool call did not run.")
	d.wantFile("safe.txt", true)
}

// outlastsLeases leaves questions open for longer than two leases, which are
// 60 s each: only the agents' awaits keep them. Those of agents that are stopped
// meanwhile end.
func outlastsLeases(t *testing.T, all []example) {
	t.Parallel()
	b := newBox(t, "", ask("delete_file"))
	s := b.screen()
	waiting, asleep := waitingCalls(b, s, all), waitingCalls(b, s, all)
	for _, w := range asleep {
		w.signal(syscall.SIGSTOP)
	}
	const step = patience / 2
	for age := step; age < 130*time.Second+step; age += step {
		for _, w := range waiting {
			b.since(w.question.AskedAt, age)
			if !w.running() {
				t.Fatalf("%s gave up within %v: %+v", w.example.name, age, w.wait())
			}
		}
	}
	for _, w := range waiting {
		s.says(w.question, events.AnswerContinue)
		w.wantEnd(w.process, 0, "deleted waits.txt")
		w.wantFile("waits.txt", false)
	}
	for _, w := range asleep {
		s.wantEnd(w.question, events.EndAgentGone)
		w.signal(syscall.SIGCONT)
		w.wantEnd(w.process, 1, "refused (ended): The tool call did not run.", "the agent that asked went away")
		w.wantFile("waits.txt", true)
	}
	wantReported(t, b, len(all))
}

// outlivesCore kills the core under open questions. The next one has the same
// questions for the same operations, and one answer to each is enough.
func outlivesCore(t *testing.T, all []example) {
	t.Parallel()
	b := newBox(t, "", ask("delete_file"))
	waiting := waitingCalls(b, b.screen(), all)
	b.killCore()
	b.startCore()
	again := b.screen()
	for _, w := range waiting {
		if q, ok := again.Inbox().Question(w.question.ID); !ok || q.Operation != w.question.Operation {
			t.Fatalf("%s: before %+v, after %+v", w.example.name, w.question, q)
		}
		again.says(w.question, events.AnswerContinue)
		w.wantEnd(w.process, 0, "deleted waits.txt")
		w.wantFile("waits.txt", false)
	}
	wantReported(t, b, len(all))
}

// waitingCall is an agent that waits for an answer.
type waitingCall struct {
	*desk
	*process
	question events.Question
}

func waitingCalls(b *box, s *screen, all []example) (waiting []waitingCall) {
	b.t.Helper()
	for _, e := range all {
		d := layDesk(b, e)
		waiting = append(waiting, waitingCall{d, d.agent(d.deletes("waits.txt")), s.question("delete_file")})
	}
	return waiting
}

// desk is a directory of files in a box, on which an example works.
type desk struct {
	*box
	example example
	work    string
}

// layDesk gives an example a directory of its own.
func layDesk(b *box, e example) *desk {
	b.t.Helper()
	work, err := os.MkdirTemp(b.dir, e.name)
	if err != nil {
		b.t.Fatal(err)
	}
	return &desk{b, e, work}
}

// deletes makes a file, and gives the call that deletes it.
func (d *desk) deletes(name string) string {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.work, name), nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return fmt.Sprintf(`delete_file {"path": %q}`, name)
}

// agent starts the example with calls.
func (d *desk) agent(calls ...string) *process {
	d.t.Helper()
	args := slices.Concat(d.example.command[1:], []string{d.work}, calls)
	return d.start("", d.example.command[0], args...)
}

// wantEnd holds an agent to its exit, and to what it printed.
func (d *desk) wantEnd(p *process, exit int, printed ...string) {
	d.t.Helper()
	r := p.wait()
	if r.Exit != exit || r.Stderr != "" {
		d.t.Errorf("%s ended with %+v, want exit %d and nothing on stderr", d.example.name, r, exit)
	}
	for _, text := range printed {
		if !strings.Contains(r.Stdout, text) {
			d.t.Errorf("%s printed %q, want %q in it", d.example.name, r.Stdout, text)
		}
	}
}

func (d *desk) wantFile(name string, there bool) {
	d.t.Helper()
	if exists(filepath.Join(d.work, name)) != there {
		d.t.Errorf("%s: file %s is there: %v, want %v", d.example.name, name, !there, there)
	}
}

// wantReported stops the core and holds its log to as many runs of
// delete_file, each reported as the version that was committed.
func wantReported(t *testing.T, b *box, runs int) {
	t.Helper()
	b.stopCore()
	e := b.evidence(t)
	e.checkSpans(t)
	e.checkRuns(t)
	committed, finished := facts[events.OperationCommitted](e), facts[events.OperationFinished](e)
	n := 0
	for _, op := range e.calls("delete_file") {
		for _, c := range of(committed, op) {
			n++
			f := of(finished, op)
			if len(f) != 1 || f[0].Event.Outcome != events.OutcomeOK || f[0].Event.Ran != c.Event.Version.Digest {
				t.Errorf("operation %s: committed %+v, reported as %+v", op, c.Event.Version, f)
			}
		}
	}
	if n != runs {
		t.Errorf("%d runs of delete_file, want %d", n, runs)
	}
}
