package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

// rig is a core's middle: the real embedded server and journal, a real
// hooks.yaml, hooks as Go functions, and the engine. It runs inside a bubble.
type rig struct {
	t      *testing.T
	dir    string
	o      engine.Options
	server *natsd.Server
	log    *journal.Journal
	eng    *engine.Engine
	stop   func()

	wrap     func(engine.Log) engine.Log     // nil = the log as it is
	rulesAre func(engine.Rules) engine.Rules // nil = the rules as they are

	mu   sync.Mutex
	live []events.Live
	seen map[events.ID]int // Asked per question
	runs []string          // hook ids in the order in which they ran
	hook map[string]func(hooks.Input) hooks.Result
	long map[string]func(context.Context) hooks.Result // hooks that mind their end
}

// newRig starts a core whose hooks.yaml has one blocking hook on
// before_tool_call for each name, in order.
func newRig(t *testing.T, names ...string) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), seen: map[events.ID]int{}, hook: map[string]func(hooks.Input) hooks.Result{}}
	r.rules(names...)
	r.start()
	t.Cleanup(func() { r.kill() })
	return r
}

func (r *rig) rules(names ...string) {
	var b strings.Builder
	b.WriteString("version: 1\nhooks:\n")
	for _, n := range names {
		fmt.Fprintf(&b, "  - id: %s\n    event: before_tool_call\n    execution: {mode: blocking}\n    run: {type: command, argv: [%s]}\n", n, n)
	}
	if len(names) == 0 {
		b.Reset()
	}
	file := filepath.Join(r.dir, "config", "hooks.yaml")
	must(r.t, os.MkdirAll(filepath.Dir(file), 0o700))
	if b.Len() == 0 {
		_ = os.Remove(file)
		return
	}
	must(r.t, os.WriteFile(file, []byte(b.String()), 0o600))
}

// start opens the log and an engine on it, as a new core would.
func (r *rig) start() {
	r.t.Helper()
	var err error
	r.server, err = natsd.Start(natsd.Options{StateDir: filepath.Join(r.dir, "state"), RuntimeDir: filepath.Join(r.dir, "run"), MaxStore: 1 << 30})
	must(r.t, err)
	nc, err := r.server.Core()
	must(r.t, err)
	newID := func() events.ID { return engine.NewID(time.Now()) }
	r.log, err = journal.Open(r.t.Context(), nc, journal.Options{Core: events.CoreToken("rig"), Replicas: 1, MaxBytes: 1 << 30, Now: time.Now, NewID: newID})
	must(r.t, err)
	o := r.o
	var log engine.Log = r.log
	if r.wrap != nil {
		log = r.wrap(log)
	}
	o.Log, o.Core, o.Epoch, o.Owner = log, events.CoreToken("rig"), newID(), "uid:1"
	o.Rules = hooks.NewStore(hooks.StoreOptions{GlobalDir: filepath.Join(r.dir, "config")})
	if r.rulesAre != nil {
		o.Rules = r.rulesAre(o.Rules)
	}
	o.Run, o.Feed = r.runHook, r.feed
	o.Snapshot = filepath.Join(r.dir, "snapshot")
	r.eng = engine.New(o)
	must(r.t, r.eng.Recover(r.t.Context()))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	eng := r.eng
	go func() { defer close(done); _ = eng.Run(ctx) }()
	r.stop = func() { cancel(); <-done; nc.Close(); r.server.Close() }
}

// kill ends the core as a crash would: nothing is withdrawn.
func (r *rig) kill() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

func (r *rig) restart() { r.t.Helper(); r.kill(); r.start() }

func (r *rig) runHook(ctx context.Context, h hooks.Hook, in hooks.Input) hooks.Result {
	r.mu.Lock()
	r.runs = append(r.runs, h.Ref.ID)
	f, long := r.hook[h.Ref.ID], r.long[h.Ref.ID]
	r.mu.Unlock()
	if long != nil {
		return long(ctx)
	}
	if f == nil {
		return allow
	}
	return f(in)
}

func (r *rig) feed(_ engine.Place, _ string, _ uint64, l events.Live) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = append(r.live, l)
	if l.Asked != nil {
		r.seen[l.Asked.ID]++
	}
}

var (
	allow = hooks.Result{Effect: events.EffectAllow, Outcome: events.RunOK}
	ask   = hooks.Result{Effect: events.EffectAsk, Outcome: events.RunOK, Reason: "look at this"}
)

func asks(hooks.Input) hooks.Result { return ask }

func sets(args string) func(hooks.Input) hooks.Result {
	return func(hooks.Input) hooks.Result {
		return hooks.Result{Effect: events.EffectModify, Outcome: events.RunOK, Override: []byte(args)}
	}
}

// call is one asker.
type call struct {
	r      *rig
	p      core.Proposal
	result chan outcome
}

type outcome struct {
	v   core.Verdict
	err error
}

func (r *rig) proposal(args string) core.Proposal {
	return core.Proposal{
		Operation: engine.NewID(time.Now()), Secret: "a secret of the asker", Agent: "generic", Native: "s1", Cwd: r.dir,
		Path: "main", Kind: events.KindToolCall,
		Tool: events.Tool{Name: "write", Kind: "filesystem.write"}, Args: []byte(args),
	}
}

// propose begins a call and waits for its verdict in the background.
func (r *rig) propose(args string) *call {
	r.t.Helper()
	return r.send(r.proposal(args))
}

func (r *rig) send(p core.Proposal) *call {
	r.t.Helper()
	c := &call{r: r, p: p, result: make(chan outcome, 1)}
	must(r.t, r.eng.Propose(r.t.Context(), p))
	eng := r.eng
	go func() {
		v, err := eng.Await(context.Background(), p.Operation, p.Secret)
		if err == nil {
			err = eng.Receipt(context.Background(), p.Operation, p.Secret, "")
		}
		c.result <- outcome{v, err}
	}()
	return c
}

func (c *call) verdict() core.Verdict {
	c.r.t.Helper()
	select {
	case o := <-c.result:
		must(c.r.t, o.err)
		return o.v
	case <-time.After(24 * time.Hour): // of fake time
		c.r.t.Fatal("the asker hears nothing")
	}
	return core.Verdict{}
}

// screen is an attached frontend that has every question in its list.
type screen struct {
	r *rig
	f engine.Frontend
}

func (r *rig) attach(principal string) *screen {
	r.t.Helper()
	s := &screen{r, engine.Frontend{ID: engine.NewID(time.Now()), Principal: principal}}
	reply := r.eng.Hello(s.f, events.DoorAll, events.Hello{Kind: events.FrontendTUI, Capable: true, Name: "test"})
	if reply.Refused != nil {
		r.t.Fatal(reply.Refused)
	}
	return s
}

// question waits for the one open question of the session.
func (s *screen) question() events.Question {
	s.r.t.Helper()
	for {
		for _, h := range s.r.eng.Sessions(events.DoorAll) {
			p := engine.Place{Project: h.Project, Session: h.Session}
			if list := s.r.eng.Sync(p, events.Sync{}).Questions; len(list) > 0 {
				s.r.eng.Received(s.f, p, events.Received{Questions: []events.ID{list[0].ID}})
				return list[0]
			}
		}
		pass(time.Millisecond)
	}
}

func place(q events.Question) engine.Place {
	return engine.Place{Project: q.Project, Session: q.Session}
}

func (s *screen) answer(q events.Question, a events.Answer) events.Ack {
	return s.r.eng.Respond(context.Background(), s.f, place(q), events.Respond{
		Question: q.ID, Digest: q.Version.Digest, Answer: a, Human: true,
	})
}

// log reads every event of an operation back.
func (r *rig) events(op events.ID) []events.Event {
	r.t.Helper()
	var list []events.Event
	for rec, err := range r.log.Scan(r.t.Context(), 0) {
		must(r.t, err)
		m, err := events.DecodeMessage(rec.Data)
		must(r.t, err)
		if m.Operation == op {
			list = append(list, m.Events...)
		}
	}
	return list
}

func types(list []events.Event) string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = strings.TrimPrefix(string(e.EventType()), "HookConfirmation")
	}
	return strings.Join(names, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func toJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// pass lets fake time go on.
func pass(d time.Duration) { <-time.After(d) }
