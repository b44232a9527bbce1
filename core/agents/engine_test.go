package agents_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

// whole is a core with the real engine behind the door: its log, and a hook of
// each event that does what the test says.
type whole struct {
	*place
	eng *engine.Engine
	log *journal.Journal

	mu    sync.Mutex
	hook  func(hooks.Input) hooks.Result
	heard []hooks.Payload
}

// stopped makes the engine's error the one that this door knows.
type stopped struct{ *engine.Engine }

func (s stopped) Propose(ctx context.Context, p core.Proposal) error {
	return translated(s.Engine.Propose(ctx, p))
}

func (s stopped) Notify(op events.ID, secret string, tell func(core.Verdict, error)) func() bool {
	return s.Engine.Notify(op, secret, func(v core.Verdict, err error) { tell(v, translated(err)) })
}

func translated(err error) error {
	if err == engine.ErrStopped { //nolint:errorlint // it is handed out as it is
		return errStopping
	}
	return err
}

// wholly runs f in a bubble with a whole core.
func wholly(t *testing.T, f func(w *whole)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		dir := t.TempDir()
		var rules strings.Builder
		rules.WriteString("version: 1\nhooks:\n")
		for _, event := range []events.HookEvent{events.BeforeToolCall, events.UserPromptSubmit, events.AfterToolCall, events.SubAgentEnd} {
			fmt.Fprintf(&rules, "  - {id: on_%s, event: %s, execution: {mode: blocking}, run: {type: command, argv: [x]}}\n", event, event)
		}
		must(t, os.WriteFile(filepath.Join(dir, "hooks.yaml"), []byte(rules.String()), 0o600))
		w := &whole{place: &place{t: t, ctx: ctx, office: newOffice(), options: natsd.Options{
			StateDir: filepath.Join(dir, "state"), RuntimeDir: filepath.Join(dir, "run"), MaxStore: 1 << 30,
		}}}
		w.open = func(server *natsd.Server) (agents.Desk, func()) { return w.engine(server, dir) }
		w.start()
		defer func() { cancel(); w.kill() }()
		f(w)
	})
}

func (w *whole) engine(server *natsd.Server, dir string) (agents.Desk, func()) {
	nc, err := server.Core()
	must(w.t, err)
	newID := func() events.ID { return engine.NewID(time.Now()) }
	w.log, err = journal.Open(w.ctx, nc, journal.Options{Core: coreToken, Replicas: 1, MaxBytes: 1 << 30, Now: time.Now, NewID: newID})
	must(w.t, err)
	w.eng = engine.New(engine.Options{
		Log: w.log, Core: coreToken, Epoch: newID(), Owner: "uid:1", Rules: hooks.NewStore(hooks.StoreOptions{GlobalDir: dir}),
		Run: w.run, Snapshot: filepath.Join(dir, "snapshot"), Feed: func(engine.Place, string, uint64, events.Live) {},
	})
	must(w.t, w.eng.Recover(w.ctx))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	eng := w.eng
	go func() { defer close(done); _ = eng.Run(ctx) }()
	return stopped{w.eng}, func() { cancel(); <-done; nc.Close() }
}

func (w *whole) run(_ context.Context, _ hooks.Hook, in hooks.Input) hooks.Result {
	w.mu.Lock()
	w.heard = append(w.heard, in.Payload)
	hook := w.hook
	w.mu.Unlock()
	if hook == nil {
		return hooks.Result{Effect: events.EffectAllow, Outcome: events.RunOK}
	}
	return hook(in)
}

func (w *whole) asks() {
	w.hook = func(in hooks.Input) hooks.Result {
		r := hooks.Result{Effect: events.EffectAllow, Outcome: events.RunOK}
		if in.Payload.Event == events.BeforeToolCall || in.Payload.Event == events.UserPromptSubmit {
			r.Effect, r.Reason = events.EffectAsk, "look"
		}
		return r
	}
}

// answer waits for the open question and answers it.
func (w *whole) answer(a events.Answer) events.Question {
	w.t.Helper()
	q := w.question()
	f := engine.Frontend{ID: engine.NewID(time.Now()), Principal: "uid:1"}
	w.eng.Hello(f, events.DoorAll, events.Hello{Kind: events.FrontendTUI, Capable: true})
	ack := w.eng.Respond(w.ctx, f, engine.Place{Project: q.Project, Session: q.Session}, events.Respond{
		Question: q.ID, Digest: q.Version.Digest, Answer: a, Human: true, Text: "because",
	})
	if ack.Refused != nil {
		w.t.Errorf("the answer was refused: %v", ack.Refused)
	}
	return q
}

// question waits for the one open question, as a capable frontend that has it.
func (w *whole) question() events.Question {
	w.t.Helper()
	for range 1000 {
		for _, q := range w.list() {
			f := engine.Frontend{ID: engine.NewID(time.Now()), Principal: "uid:1"}
			w.eng.Hello(f, events.DoorAll, events.Hello{Kind: events.FrontendTUI, Capable: true})
			w.eng.Received(f, engine.Place{Project: q.Project, Session: q.Session}, events.Received{Questions: []events.ID{q.ID}})
			return q
		}
		<-time.After(time.Millisecond)
	}
	w.t.Fatal("nobody was asked")
	return events.Question{}
}

func (w *whole) list() (list []events.Question) {
	for _, h := range w.eng.Sessions(events.DoorAll) {
		list = append(list, w.eng.Sync(engine.Place{Project: h.Project, Session: h.Session}, events.Sync{}).Questions...)
	}
	return list
}

// watched attaches a frontend that has to be there for a question to be asked.
func (w *whole) watched(stop <-chan struct{}) {
	f := engine.Frontend{ID: engine.NewID(time.Now()), Principal: "uid:1"}
	eng := w.eng
	eng.Hello(f, events.DoorAll, events.Hello{Kind: events.FrontendTUI, Capable: true})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
				eng.Renew(f, events.DoorAll, events.Renew{})
				for _, q := range w.list() {
					eng.Received(f, engine.Place{Project: q.Project, Session: q.Session}, events.Received{Questions: []events.ID{q.ID}})
				}
			}
		}
	}()
}

// history is the log of an operation, as the names of its events.
func (w *whole) history(op events.ID) (list []events.Event) {
	w.t.Helper()
	for rec, err := range w.log.Scan(w.ctx, 0) {
		must(w.t, err)
		m, err := events.DecodeMessage(rec.Data)
		must(w.t, err)
		if m.Operation == op {
			list = append(list, m.Events...)
		}
	}
	return list
}

func last[E events.Event](list []events.Event) (found E, n int) {
	for _, e := range list {
		if e, ok := e.(E); ok {
			found, n = e, n+1
		}
	}
	return found, n
}

type outcome struct {
	r   agents.Result
	err error
}

// begin calls the tool in the background.
func begin(ctx context.Context, s *agents.Session, tool *runs) chan outcome {
	done := make(chan outcome, 1)
	go func() {
		r, err := agents.Do(ctx, s, remove, target{Path: "a"}, tool.run)
		done <- outcome{r, err}
	}()
	return done
}

func TestB58B64WholeWay(t *testing.T) {
	wholly(t, func(w *whole) {
		stop := make(chan struct{})
		defer close(stop)
		w.watched(stop)
		w.hook = func(in hooks.Input) hooks.Result {
			switch in.Payload.Event {
			case events.BeforeToolCall:
				return hooks.Result{Effect: events.EffectAsk, Outcome: events.RunOK, Reason: "look", Override: []byte(`{"path":"b"}`)}
			case events.AfterToolCall:
				return hooks.Result{Effect: events.EffectAllow, Outcome: events.RunOK, Context: "read <this>"}
			}
			return hooks.Result{Effect: events.EffectAllow, Outcome: events.RunOK}
		}
		s, tool := w.session(), &runs{}
		done := begin(w.ctx, s, tool)
		q := w.answer(events.AnswerContinue)
		o := <-done
		if o.err != nil || o.r.ExtraContext != "read <this>" {
			t.Errorf("%+v", o)
		}
		tool.want(t, "b")
		log := w.history(q.Operation)
		p, _ := last[events.OperationProposed](log)
		d, n := last[events.OperationDelivered](log)
		f, _ := last[events.OperationFinished](log)
		if !p.Leased || n != 1 || f.Outcome != events.OutcomeOK || f.Ran != events.DigestOf([]byte(`{"path":"b"}`)) {
			t.Errorf("the log has %+v, %d × %+v, %+v", p, n, d, f)
		}

		done = begin(w.ctx, s, tool)
		w.answer(events.AnswerCancel)
		no := refused(t, (<-done).err, events.CodeDeclined)
		for _, word := range []string{"did not run", "unless the user asks", "because"} {
			if !strings.Contains(no.Message, word) {
				t.Errorf("the model is told %q", no.Message)
			}
		}
		tool.want(t, "b")
	})
}

// TestF3WholeCoreRestarts: a question stands over the core's end; the same
// operation goes on, is asked once and runs once.
func TestF3WholeCoreRestarts(t *testing.T) {
	wholly(t, func(w *whole) {
		stop := make(chan struct{})
		w.watched(stop)
		w.asks()
		s, tool := w.session(), &runs{}
		done := begin(w.ctx, s, tool)
		q := w.question()
		<-time.After(time.Hour)
		close(stop)
		w.kill()
		<-time.After(30 * time.Second) // longer than an asker of the socket would have
		w.start()
		again := w.answer(events.AnswerContinue)
		if again.ID != q.ID {
			t.Errorf("it was asked %s, then %s", q.ID, again.ID)
		}
		must(t, (<-done).err)
		tool.want(t, "a")
		if _, n := last[events.OperationDelivered](w.history(q.Operation)); n != 1 {
			t.Errorf("delivered %d times", n)
		}
	})
}

func TestB20VanishedAgentLosesItsLease(t *testing.T) {
	wholly(t, func(w *whole) {
		stop := make(chan struct{})
		defer close(stop)
		w.watched(stop)
		w.asks()
		c := w.client()
		s, err := c.Open(w.ctx, agents.SessionOptions{Native: "s1", Cwd: "/w"})
		must(t, err)
		done := begin(w.ctx, s, &runs{})
		q := w.question()
		c.Close()
		<-done
		<-time.After(80 * time.Second) // its last await was answered after 25 s
		if len(w.list()) != 1 {
			t.Error("the question went before its lease")
		}
		<-time.After(10 * time.Second)
		end, n := last[events.Withdrawn](w.history(q.Operation))
		if n != 1 || end.Reason != events.EndAgentGone || len(w.list()) != 0 {
			t.Errorf("withdrawn %d times, %+v", n, end)
		}
	})
}

func TestC14AnotherDigestEndsIt(t *testing.T) {
	wholly(t, func(w *whole) {
		a := w.wire(1).begin("s1")
		propose := `{` + ids + `,` + shell + `}`
		w.expect(a.say("propose", propose), `{`)
		w.expect(a.say("await", `{`+ids+`}`), `"allow":true`)
		other := string(events.DigestOf([]byte("another")))
		w.expect(a.say("commit", `{`+ids+`,"digest":"`+other+`"}`), `"stale_version"`)
		w.expect(a.say("propose", propose), `"changed_after_check"`)
		w.expect(a.say("commit", `{`+ids+`,"digest":"`+string(digestOf["shell"])+`"}`), `"refused"`)
		if end, n := last[events.OperationRefused](w.history(op)); n != 1 || end.Code != events.CodeChangedAfterCheck {
			t.Errorf("refused %d times, %+v", n, end)
		}
	})
}

func TestB71B79InterruptEndsWhatWaits(t *testing.T) {
	wholly(t, func(w *whole) {
		stop := make(chan struct{})
		defer close(stop)
		w.watched(stop)
		w.asks()
		s, tool := w.session(), &runs{}
		must(t, s.Turn(w.ctx, "t1"))
		done := begin(w.ctx, s, tool)
		w.question()
		must(t, s.Interrupt(w.ctx))
		if r := refused(t, (<-done).err, events.CodeEnded); r.EndReason != events.EndInterrupted {
			t.Errorf("it ended %+v", r)
		}
		submitted := make(chan error, 1)
		go func() {
			submitted <- s.Prompt(w.ctx, agents.Input{Text: "hello <b>"}, func(context.Context, string, string) error {
				t.Error("an interrupted prompt was submitted")
				return nil
			})
		}()
		w.question()
		must(t, s.Interrupt(w.ctx))
		r := refused(t, <-submitted, events.CodeEnded)
		if r.EndReason != events.EndInterrupted || r.Text != "hello <b>" || r.Input != "prompt" {
			t.Errorf("it came back as %+v", r)
		}
		tool.want(t)

		// B94: the session goes on
		w.mu.Lock()
		w.hook = nil
		w.mu.Unlock()
		must(t, s.Observe(w.ctx, events.SubAgentEnd, "main > a#1"))
		must(t, (<-begin(w.ctx, s, tool)).err)
		tool.want(t, "a")
		w.mu.Lock()
		defer w.mu.Unlock()
		told := map[events.HookEvent]int{}
		for _, p := range w.heard {
			told[p.Event]++
		}
		if told[events.SubAgentEnd] != 1 || told[events.AfterToolCall] == 0 {
			t.Errorf("hooks heard of %v", told)
		}
	})
}
