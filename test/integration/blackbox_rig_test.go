package integration_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/tracing"
)

// The blackbox tests hold the programs to docs/behaviours.md from outside: a
// call goes in through agent-hook, rules are real scripts, and what is believed
// is what the agent's own files and the scripts' own counters say.

// behaviour is one test of a play. Its tools are named after it, so that many
// behaviours can share a core and be found in its log.
type behaviour struct {
	name  string
	rules []rule
	live  func(b *box)                           // while the core is up
	log   func(t *testing.T, e evidence)         // when it is down
	check func(t *testing.T, b *box, e evidence) // the same, with the files
}

// play runs behaviours against one core, some at a time, stops the core, and
// then looks at what it wrote.
func play(t *testing.T, config string, all ...behaviour) {
	t.Helper()
	t.Parallel()
	var rules []rule
	for _, v := range all {
		rules = append(rules, v.rules...)
	}
	b := newBox(t, config, rules...)
	t.Run("live", func(t *testing.T) {
		for _, v := range all {
			if v.live == nil {
				continue
			}
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				v.live(b.in(t))
			})
		}
	})
	b.stopCore()
	e := b.evidence(t)
	t.Run("log", func(t *testing.T) {
		for _, v := range all {
			if v.log != nil {
				t.Run(v.name, func(t *testing.T) { v.log(t, e) })
			}
			if v.check != nil {
				t.Run(v.name, func(t *testing.T) { v.check(t, b.in(t), e) })
			}
		}
	})
	t.Run("B95 B96 B58 every question is one span, every right to run is given once", func(t *testing.T) {
		e.checkSpans(t)
		e.checkRuns(t)
	})
}

// rule is a hook of one tool that blocks.
type rule struct {
	id   string
	tool string
	sh   string // a shell script: its input is in $IN, `say JSON` is its verdict
	run  string // or the whole of run
	more string // more of execution
}

// ask is the rule that asks about every call of a tool.
func ask(tool string) rule {
	return rule{id: tool + "-ask", tool: tool, run: "{type: verdict, action: ask, reason: May it?}"}
}

// scriptHead counts the runs of a rule by what it was given: a line each.
const scriptHead = `DIR='%s'
IN=$(cat)
printf '%%s\n' "$IN" >> "$DIR/seen.%s"
say() { printf '%%s' "$1" > "$FERMATA_HOOK_RESULT"; }
attempt() { printf '%%s' "$IN" | sed 's/.*"attempt":\([0-9]*\).*/\1/'; }
`

// box is a home with a core, seen from outside.
type box struct {
	*home
	t    *testing.T
	core *process
	n    *atomic.Int64 // of calls
}

// newBox starts a core under rules. Config is the text of config.yaml without
// its mode.
func newBox(t *testing.T, config string, rules ...rule) *box {
	t.Helper()
	b := &box{home: emptyHome(t), t: t, n: new(atomic.Int64)}
	b.write("config.yaml", "mode: process\n"+config)
	b.setRules(rules...)
	if err := os.WriteFile(b.dir+"/agent.sh", []byte(blackboxAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	b.core = b.startCore()
	return b
}

// in is the same box for another test.
func (b *box) in(t *testing.T) *box {
	h := *b.home
	h.t = t
	return &box{home: &h, t: t, core: b.core, n: b.n}
}

func (b *box) setRules(rules ...rule) {
	b.t.Helper()
	var text strings.Builder
	text.WriteString("version: 1\nhooks:\n")
	if len(rules) == 0 {
		text.Reset()
	}
	for _, r := range rules {
		run := r.run
		if run == "" {
			b.write(r.id+".sh", fmt.Sprintf(scriptHead, b.dir, r.id)+r.sh+"\n")
			run = fmt.Sprintf("{type: script, path: %s.sh}", r.id)
		}
		fmt.Fprintf(&text, "  - id: %s\n    event: before_tool_call\n", r.id)
		if r.tool != "" {
			fmt.Fprintf(&text, "    match: {tool_name: %s}\n", r.tool)
		}
		fmt.Fprintf(&text, "    execution: {mode: blocking%s}\n    run: %s\n", r.more, run)
	}
	if text.Len() > 0 {
		b.write("hooks.yaml", text.String())
	}
}

// given is what a script was given, run by run.
type given struct {
	Available *bool  `json:"confirmation_available"`
	Attempt   int    `json:"attempt"`
	Operation string `json:"operation_id"`
	Tool      struct {
		Args json.RawMessage `json:"args"`
	} `json:"tool"`
}

// seen reads what a rule's script was given in its runs.
func (b *box) seen(id string) (all []given) {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "seen."+id))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var g given
		if err := json.Unmarshal(line, &g); err != nil {
			b.t.Fatalf("%s was given %s: %v", id, line, err)
		}
		all = append(all, g)
	}
	return all
}

// wantRuns holds a rule's script to a number of runs.
func (b *box) wantRuns(id string, n int) {
	b.t.Helper()
	if got := len(b.seen(id)); got != n {
		b.t.Errorf("hook %s ran %d times, want %d", id, got, n)
	}
}

// blackboxAgent is an agent whose tool leaves what it was allowed to run in
// FILE.ran, and nothing when it was not.
const blackboxAgent = `agent-hook generic before_tool_call > "$1.out" 2> "$1.err"
code=$?
[ $code -eq 0 ] && cp "$1.out" "$1.ran"
exit $code
`

// wish is what an agent wants to do.
type wish struct {
	session, turn, path, kind string
	tool, args                string
}

// call is one call that waits or has ended.
type call struct {
	*process
	b    *box
	file string
	tool string
}

// verdict is what an agent heard, and whether its tool ran.
type verdict struct {
	Decision string
	Code     events.Code
	Reason   string
	Args     json.RawMessage
	exit     int
	stderr   string
	ran      bool
}

func (b *box) call(tool, args string) *call {
	b.t.Helper()
	return b.wish(wish{tool: tool, args: args})
}

func (b *box) wish(w wish) *call {
	b.t.Helper()
	c := &call{b: b, tool: w.tool, file: fmt.Sprintf("%s/call%d", b.dir, b.n.Add(1))}
	if w.session == "" {
		w.session = "s-" + w.tool
	}
	if w.kind == "" {
		w.kind = "filesystem.write"
	}
	in := fmt.Sprintf(`{"session_id":%q,"agent":"generic","cwd":%q,"turn_id":%q,"path":%q,"tool":{"name":%q,"kind":%q,"call_id":"c1","args":%s}}`,
		w.session, b.dir, w.turn, w.path, w.tool, w.kind, w.args)
	c.process = b.start(in, "sh", b.dir+"/agent.sh", c.file)
	return c
}

// verdict waits for the end of a call.
func (c *call) verdict() verdict {
	t := c.b.t
	t.Helper()
	r := c.wait()
	out, err := os.ReadFile(c.file + ".out")
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.ReadFile(c.file + ".err")
	if err != nil {
		t.Fatal(err)
	}
	v := verdict{exit: r.Exit, stderr: string(stderr), ran: exists(c.file + ".ran")}
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%s: the agent read %q, exit %d, stderr %q: %v", c.tool, out, r.Exit, stderr, err)
	}
	if v.exit != 0 && v.exit != 2 {
		t.Errorf("%s: exit %d, want 0 or 2", c.tool, v.exit)
	}
	if (v.exit == 0) != (v.Decision == "allow") {
		t.Errorf("%s: exit %d with decision %s", c.tool, v.exit, v.Decision)
	}
	return v
}

// wantRan holds a call to have run with exactly these arguments.
func (c *call) wantRan(args string) {
	c.b.t.Helper()
	v := c.verdict()
	if !v.ran || v.Code != events.CodeChecked || string(v.Args) != args {
		c.b.t.Errorf("%s: %+v, want it to run with %s", c.tool, v, args)
	}
}

// wantRefused holds a call to have been refused, and returns how.
func (c *call) wantRefused(codes ...events.Code) verdict {
	t := c.b.t
	t.Helper()
	v := c.verdict()
	ok := false
	for _, code := range codes {
		ok = ok || v.Code == code
	}
	if !ok {
		t.Errorf("%s: code %s, want %v: %+v", c.tool, v.Code, codes, v)
	}
	if v.ran || v.exit != 2 || v.Decision != "deny" || v.Args != nil {
		t.Errorf("%s: %+v, want a deny, exit 2 and nothing run", c.tool, v)
	}
	if !strings.Contains(v.stderr, v.Reason) || v.Reason == "" {
		t.Errorf("%s: stderr is %q, the reason %q", c.tool, v.stderr, v.Reason)
	}
	return v
}

// screen is a frontend with a person in front of it.
type screen struct {
	*frontends.Client
	b     *box
	id    events.ID
	asked map[events.ID]bool
	close func()
}

func freshID() events.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails
	return events.NewID(time.Now(), entropy)
}

// screen attaches a frontend that can be asked.
func (b *box) screen() *screen {
	b.t.Helper()
	return b.attach(true, "a screen")
}

func (b *box) attach(capable bool, name string) *screen {
	b.t.Helper()
	return b.attachAs(frontends.Options{Capable: capable, Name: name})
}

// attachAs attaches a screen with the given scope, name and capability.
func (b *box) attachAs(o frontends.Options) *screen {
	b.t.Helper()
	s := &screen{b: b, id: freshID(), asked: map[events.ID]bool{}}
	o.ID, o.Kind = s.id, events.FrontendTUI
	o.Dial = func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", b.dirs.natsSocket())
	}
	var err error
	s.Client, err = frontends.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var closed atomic.Bool
	s.close = func() {
		if closed.Swap(true) {
			return
		}
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("a screen ended: %v", err)
		}
	}
	b.t.Cleanup(s.close)
	must(b.t, "complete list on a screen", func() error {
		if !s.Inbox().Complete() {
			return errNotYet
		}
		return nil
	})
	return s
}

// question waits for the next question about a tool. The call, if given, must
// not end before.
func (s *screen) question(tool string) (q events.Question) {
	s.b.t.Helper()
	must(s.b.t, "question about "+tool, func() error {
		for _, q = range s.Inbox().Questions() {
			if q.Tool.Name == tool && !s.asked[q.ID] {
				s.asked[q.ID] = true
				return nil
			}
		}
		return errNotYet
	})
	return q
}

// reply is what a respond command says for a person.
func reply(q events.Question, a events.Answer) events.Respond {
	return events.Respond{Question: q.ID, Digest: q.Version.Digest, Answer: a, Human: true}
}

// says answers a question; the core must take it.
func (s *screen) says(q events.Question, a events.Answer) {
	s.b.t.Helper()
	if _, err := s.Answer(s.b.t.Context(), reply(q, a)); err != nil {
		s.b.t.Fatalf("%s to %s: %v", a, q.Tool.Name, err)
	}
}

// no gives an answer that the core must refuse, and returns the refusal.
func (s *screen) no(r events.Respond, code events.Reject) (heard events.Refused) {
	s.b.t.Helper()
	_, err := s.Answer(s.b.t.Context(), r)
	var refused *events.Refused
	if !errors.As(err, &refused) || refused.Code != code {
		s.b.t.Fatalf("answer %+v: %v, want a refusal %s", r, err, code)
	}
	return *refused
}

// end waits until a question has left the screen.
func (s *screen) end(q events.Question) (end events.End) {
	s.b.t.Helper()
	must(s.b.t, "end of the question about "+q.Tool.Name, func() (err error) {
		if _, open := s.Inbox().Question(q.ID); open {
			return errNotYet
		}
		var known bool
		if end, known = s.Inbox().Ended(q.ID); !known {
			return errNotYet
		}
		return nil
	})
	return end
}

// wantEnd waits for the end of a question, and holds it to a reason.
func (s *screen) wantEnd(q events.Question, reason events.EndReason) {
	s.b.t.Helper()
	if end := s.end(q); end.Reason != reason || end.Result != events.ResultOf(reason) {
		s.b.t.Errorf("the question about %s ended %s/%s, want %s", q.Tool.Name, end.Result, end.Reason, reason)
	}
}

// spans waits for the spans of an ended operation.
func (b *box) spans(op events.ID) (all []tracing.Span) {
	b.t.Helper()
	must(b.t, "span of operation "+string(op), func() error {
		all = nil
		whole := false
		for s, err := range tracing.ReadFile(filepath.Join(b.dirs.State, "traces.jsonl")) {
			if errors.Is(err, os.ErrNotExist) {
				return errNotYet
			}
			if err != nil {
				return err
			}
			if s.Text("fermata.operation.id") == string(op) {
				all = append(all, s)
				whole = whole || s.Name == "fermata.operation"
			}
		}
		if !whole {
			return errNotYet
		}
		return nil
	})
	return all
}

// named narrows spans to those of a name's beginning.
func named(all []tracing.Span, name string) (some []tracing.Span) {
	for _, s := range all {
		if strings.HasPrefix(s.Name, name) {
			some = append(some, s)
		}
	}
	return some
}

// since waits until so much time has passed since a moment of the core.
func (b *box) since(at events.Micros, d time.Duration) {
	b.t.Helper()
	must(b.t, d.String(), func() error {
		if time.Since(at.Time()) < d {
			return errNotYet
		}
		return nil
	})
}
