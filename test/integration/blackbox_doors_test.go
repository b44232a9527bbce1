package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// What the rig needs for inputs, for what agents report, and for hooks that
// watch: whole entries of hooks.yaml, and the three ways in.

// hook is a whole entry of hooks.yaml.
type hook struct {
	id    string
	event string // before_tool_call when it is ""
	match string // what stands between the braces of match
	mode  string // blocking when it is ""
	more  string // more of execution
	sh    string // a script as of [rule]
	run   string // or the whole of run
}

// scene is a behaviour whose rules are whole hooks. Its sessions have its name
// as profile, so that many scenes can share a core.
type scene struct {
	name  string
	hooks []hook
	live  func(b *box)
	log   func(t *testing.T, e evidence)
}

// perform is play for scenes. Settings are those of hooks.yaml.
func perform(t *testing.T, settings string, all ...scene) {
	t.Helper()
	t.Parallel()
	b := newBox(t, "")
	var hooks []hook
	for _, v := range all {
		hooks = append(hooks, v.hooks...)
	}
	b.setHooks(b.dirs.Config, settings, hooks...)
	t.Run("live", func(t *testing.T) {
		for _, v := range all {
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
		}
	})
	t.Run("B95 B96 B58 every question is one span, every right to run is given once", func(t *testing.T) {
		e.checkSpans(t)
		e.checkRuns(t)
	})
}

// setHooks writes a hooks file and its scripts into a directory.
func (b *box) setHooks(dir, settings string, hooks ...hook) {
	b.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "version: 1\n%shooks:\n", settings)
	for _, h := range hooks {
		if h.event == "" {
			h.event = string(events.BeforeToolCall)
		}
		if h.mode == "" {
			h.mode = string(events.ModeBlocking)
		}
		if h.run == "" {
			put(h.id+".sh", fmt.Sprintf(scriptHead, b.dir, h.id)+h.sh+"\n")
			h.run = fmt.Sprintf("{type: script, path: %s.sh}", h.id)
		}
		fmt.Fprintf(&text, "  - id: %s\n    event: %s\n    match: {%s}\n    execution: {mode: %s%s}\n    run: %s\n",
			h.id, h.event, h.match, h.mode, h.more, h.run)
	}
	put("hooks.yaml", text.String())
}

// told is what a hook's script read, run by run.
type told struct {
	Event     string
	Available *bool  `json:"confirmation_available"`
	Operation string `json:"operation_id"`
	Text      string
	Injected  *bool
	Input     string
	Tool      struct {
		Name string
		Args json.RawMessage
	}
	Result map[string]any
}

func (b *box) told(id string) (all []told) {
	b.t.Helper()
	for line := range strings.Lines(b.file("seen." + id)) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		var v told
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			b.t.Fatalf("%s was given %s: %v", id, line, err)
		}
		all = append(all, v)
	}
	return all
}

// awaitTold waits until a script has run so often.
func (b *box) awaitTold(id string, n int) (all []told) {
	b.t.Helper()
	must(b.t, fmt.Sprintf("run %d of hook %s", n, id), func() error {
		if all = b.told(id); len(all) < n {
			return errNotYet
		}
		return nil
	})
	if len(all) > n {
		b.t.Errorf("hook %s ran %d times, want %d", id, len(all), n)
	}
	return all
}

// said is what an agent says to agent-hook, beside agent and cwd.
type said map[string]any

func (s said) with(more said) said {
	all := said{}
	maps.Copy(all, s)
	maps.Copy(all, more)
	return all
}

func (b *box) stdin(s said) string {
	b.t.Helper()
	text, err := json.Marshal(said{"agent": "generic", "cwd": b.dir}.with(s))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// tool is a tool call as an agent says it.
func tool(name, args string) said {
	return said{"tool": said{"name": name, "kind": "filesystem.write", "call_id": "c1", "args": json.RawMessage(args)}}
}

// gate brings an operation before the core, as an agent that runs a program does:
// it adds to FILE.ran each time that it may.
func (b *box) gate(event events.HookEvent, s said) *call {
	b.t.Helper()
	agent := strings.NewReplacer(string(events.BeforeToolCall), string(event), `cp "$1.out" "$1.ran"`, `cat "$1.out" >> "$1.ran"`).Replace(blackboxAgent)
	name, _ := s["session_id"].(string)
	c := &call{b: b, tool: name, file: fmt.Sprintf("%s/call%d", b.dir, b.n.Add(1))}
	c.process = b.start(b.stdin(s), "sh", "-c", agent, "agent", c.file)
	return c
}

func (b *box) toolCall(s said) *call {
	b.t.Helper()
	return b.gate(events.BeforeToolCall, s)
}

// times is how often a call ran.
func (c *call) times() int {
	return strings.Count(c.b.file(strings.TrimPrefix(c.file, c.b.dir+"/")+".ran"), `"decision"`)
}

// input is a text on its way to the model.
func (b *box) input(s said, kind, text string) *call {
	b.t.Helper()
	return b.gate(events.UserPromptSubmit, s.with(said{"input": said{"text": text, "kind": kind}}))
}

// heard is what an agent heard about an input.
type heard struct {
	Decision  string
	Code      events.Code
	Operation events.ID
	Refused   *string
	Text      *string
	Reminder  string `json:"system_reminder"`
	Reason    string
	exit      int
	raw       string
	stderr    string
	submitted bool
}

func (c *call) heard() heard {
	t := c.b.t
	t.Helper()
	r := c.wait()
	name := strings.TrimPrefix(c.file, c.b.dir+"/")
	v := heard{exit: r.Exit, raw: c.b.file(name + ".out"), stderr: c.b.file(name + ".err"), submitted: exists(c.file + ".ran")}
	if err := json.Unmarshal([]byte(v.raw), &v); err != nil {
		t.Fatalf("%s: the agent read %q, exit %d, stderr %q: %v", c.tool, v.raw, r.Exit, v.stderr, err)
	}
	return v
}

// wantSubmitted holds an input to have been allowed, with this text.
func (c *call) wantSubmitted(text, reminder string) {
	c.b.t.Helper()
	v := c.heard()
	if v.exit != 0 || v.Decision != "allow" || v.Code != events.CodeChecked || !v.submitted || v.Text == nil || *v.Text != text || v.Reminder != reminder {
		c.b.t.Errorf("%s: exit %d, %s, want it allowed with %q and reminder %q", c.tool, v.exit, v.raw, text, reminder)
	}
}

// wantReturned holds an input to have been refused and to come back whole.
func (c *call) wantReturned(code events.Code, kind, text string) heard {
	c.b.t.Helper()
	v := c.heard()
	if v.exit != 2 || v.Decision != "deny" || v.Code != code || v.submitted {
		c.b.t.Errorf("%s: exit %d, %s, want a deny with code %s and nothing submitted", c.tool, v.exit, v.raw, code)
	}
	if v.Refused == nil || *v.Refused != kind || v.Text == nil || *v.Text != text {
		c.b.t.Errorf("%s: %s, want the %s %q back", c.tool, v.raw, kind, text)
	}
	if v.Reason == "" || !strings.Contains(v.stderr, v.Reason) {
		c.b.t.Errorf("%s: stderr is %q, the reason %q", c.tool, v.stderr, v.Reason)
	}
	return v
}

// report says that something happened. It returns what the agent reads.
func (b *box) report(event string, s said) string {
	b.t.Helper()
	r := b.run(b.stdin(s), "agent-hook", "generic", event)
	if r.Exit != 0 || r.Stderr != "" {
		b.t.Errorf("agent-hook %s: %+v, want exit 0 and silence", event, r)
	}
	return r.Stdout
}

// where waits for a new question that fits.
func (s *screen) where(what string, fits func(events.Question) bool) (q events.Question) {
	s.b.t.Helper()
	must(s.b.t, "question about "+what, func() error {
		for _, q = range s.Inbox().Questions() {
			if !s.asked[q.ID] && fits(q) {
				s.asked[q.ID] = true
				return nil
			}
		}
		return errNotYet
	})
	return q
}

// about waits for a question about an input.
func (s *screen) about(text string) events.Question {
	s.b.t.Helper()
	return s.where(fmt.Sprintf("the input %q", text), func(q events.Question) bool {
		var asked string
		return q.Kind != events.KindToolCall && json.Unmarshal(q.Args, &asked) == nil && asked == text
	})
}

// attachTo attaches a screen to one scope only.
func (b *box) attachTo(scope string) *screen {
	b.t.Helper()
	return b.attachAs(frontends.Options{Capable: true, Scope: scope})
}

// client opens a session as an agent written in Go does.
func (b *box) client(o agents.SessionOptions) *agents.Session {
	b.t.Helper()
	c, err := agents.Dial(b.t.Context(), agents.DialOptions{Socket: b.dirs.natsSocket()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	if o.Cwd == "" {
		o.Cwd = b.dir
	}
	s, err := c.Open(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// door is an agent of no kit: it speaks NATS by hand.
type door struct {
	*outsider
	open events.SessionOpenReply
}

func (b *box) door(native, profile string) *door {
	b.t.Helper()
	d := &door{outsider: b.connect(b.t, "op")}
	var core events.CoresReply
	d.to(events.AgentLobbySubject(events.DoorAll, d.id, events.VerbCores), events.Cores{}, &core)
	d.to(events.AgentLobbySubject(string(core.Core), d.id, events.VerbSessionOpen),
		events.SessionOpen{Agent: "generic", Native: native, Cwd: b.dir, Profile: profile}, &d.open)
	if d.open.Refused != nil || d.open.Session == "" {
		b.t.Fatalf("session_open: %+v", d.open)
	}
	return d
}

func (d *door) to(subject string, body, reply any) {
	d.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	m, err := d.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		d.t.Fatalf("%s: %v", subject, err)
	}
	if err := json.Unmarshal(m.Data, reply); err != nil {
		d.t.Fatalf("%s: reply %.200q: %v", subject, m.Data, err)
	}
}

// do asks a verb about the session that has no reply of its own.
func (d *door) do(verb string, body any) *events.Refused {
	d.t.Helper()
	var ack events.Ack
	d.to(events.AgentSubject(d.open.Project, d.open.Session, d.id, verb), body, &ack)
	return ack.Refused
}

// verdict proposes an operation and waits for its verdict.
func (d *door) verdict(p events.Propose) events.OperationVerdict {
	d.t.Helper()
	if p.Secret == "" {
		p.Secret = strings.Repeat("s", 32)
	}
	var r events.OperationReply
	d.to(events.AgentSubject(d.open.Project, d.open.Session, d.id, events.VerbPropose), p, &r)
	for r.Verdict == nil && r.Refused == nil {
		d.to(events.AgentSubject(d.open.Project, d.open.Session, d.id, events.VerbAwait), events.Await{Operation: p.Operation, Secret: p.Secret}, &r)
	}
	if r.Refused != nil {
		d.t.Fatalf("operation %s: %v", p.Operation, r.Refused)
	}
	return *r.Verdict
}

// refusedBy is how an operation was refused, nil when it ran.
func refusedBy(err error) *agents.Refused {
	var r *agents.Refused
	errors.As(err, &r)
	return r
}
