package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func count[E events.Event](list []events.Event) (n int) {
	for _, e := range list {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}

// receiveAll puts every open question into the screen's list.
func (s *screen) receiveAll() []events.Question {
	s.r.t.Helper()
	var all []events.Question
	for _, h := range s.r.eng.Sessions(events.DoorAll) {
		p := engine.Place{Project: h.Project, Session: h.Session}
		for _, q := range s.r.eng.Sync(p, events.Sync{}).Questions {
			s.r.eng.Received(s.f, p, events.Received{Questions: []events.ID{q.ID}})
			all = append(all, q)
		}
	}
	return all
}

func TestRecheck(t *testing.T) {
	bubble(t, "B42 B45 B46 a later hook changes what was shown: asked again with old and new, the new one runs", func(t *testing.T) {
		r := newRig(t, "h1", "h2")
		r.hook["h1"], r.hook["h2"] = asks, sets(`{"path":"b"}`)
		s := r.attach("uid:1")
		c := r.propose(`{"path":"a"}`)
		q := s.question()
		s.answer(q, events.AnswerContinue)
		q2 := s.question()
		if q2.ID == q.ID || q2.Attempt != 1 || len(q2.Changed) != 1 || toJSON(q2.Changed[0]) != `{"name":"path","old":"a","new":"b"}` {
			t.Fatalf("second question %s", toJSON(q2))
		}
		s.answer(q2, events.AnswerContinue)
		if v := c.verdict(); !v.Allow || string(v.Args) != `{"path":"b"}` || !v.Changed {
			t.Fatal(toJSON(v))
		}
	})
	bubble(t, "B49 arguments that return to an earlier version end the call", func(t *testing.T) {
		r := newRig(t, "h1", "h2")
		r.hook["h1"] = asks
		r.hook["h2"] = func(in hooks.Input) hooks.Result {
			if contains(string(in.Payload.Args), `"a"`) {
				return sets(`{"path":"b"}`)(in)
			}
			return sets(`{"path":"a"}`)(in)
		}
		s := r.attach("uid:1")
		c := r.propose(`{"path":"a"}`)
		s.answer(s.question(), events.AnswerContinue)
		s.answer(s.question(), events.AnswerContinue)
		if v := c.verdict(); v.Code != events.CodeRecheckCycle {
			t.Fatal(toJSON(v))
		}
	})
	bubble(t, "B48 after three rechecks the call is refused", func(t *testing.T) {
		r := newRig(t, "h1", "h2")
		r.hook["h1"] = asks
		n := 0
		r.hook["h2"] = func(in hooks.Input) hooks.Result { n++; return sets(fmt.Sprintf(`{"n":%d}`, n))(in) }
		s := r.attach("uid:1")
		c := r.propose(`{"path":"a"}`)
		for range 4 {
			s.answer(s.question(), events.AnswerContinue)
		}
		v := c.verdict()
		if v.Code != events.CodeRecheckLimit || count[events.Request](r.events(v.Operation)) != 4 {
			t.Fatal(toJSON(v))
		}
	})
	bubble(t, "B38 ask together with new arguments: the question is about them and they run", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = func(hooks.Input) hooks.Result {
			res := ask
			res.Override = []byte(`{"path":"new"}`)
			return res
		}
		s := r.attach("uid:1")
		c := r.propose(`{"path":"a"}`)
		q := s.question()
		if string(q.Args) != `{"path":"new"}` {
			t.Fatal(toJSON(q))
		}
		s.answer(q, events.AnswerContinue)
		if v := c.verdict(); string(v.Args) != `{"path":"new"}` {
			t.Fatal(toJSON(v))
		}
	})
	bubble(t, "B58 the rules change while a person thinks: checked again under the new ones", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		r.hook["h9"] = func(hooks.Input) hooks.Result {
			return hooks.Result{Effect: events.EffectBlock, Outcome: events.RunOK, Code: events.CodeBlocked, Reason: "no"}
		}
		s := r.attach("uid:1")
		c := r.propose(`{}`)
		q := s.question()
		pass(2 * time.Second)
		r.rules("h9")
		s.answer(q, events.AnswerContinue)
		if v := c.verdict(); v.Code != events.CodeBlocked {
			t.Fatal(toJSON(v))
		}
	})
	bubble(t, "B58 the rules break while a person thinks: refused, never run unchecked", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{}`)
		q := s.question()
		pass(2 * time.Second)
		must(t, os.WriteFile(filepath.Join(r.dir, "config", "hooks.yaml"), []byte("version: 1\nhooks: 7\n"), 0o600))
		s.answer(q, events.AnswerContinue)
		if v := c.verdict(); v.Code != events.CodeHooksConfigInvalid {
			t.Fatal(toJSON(v))
		}
	})
}

func TestEntrances(t *testing.T) {
	bubble(t, "B65 no canonical form is refused where a hook would check it, and runs where none would", func(t *testing.T) {
		r := newRig(t, "h1")
		if v := r.propose(`{"a":1,"a":2}`).verdict(); v.Code != events.CodeNoCanonicalForm {
			t.Fatal(toJSON(v))
		}
		other := "version: 1\nhooks:\n  - id: h1\n    event: before_tool_call\n    match: {tool_kind: shell}\n" +
			"    execution: {mode: blocking}\n    run: {type: command, argv: [h1]}\n"
		must(t, os.WriteFile(filepath.Join(r.dir, "config", "hooks.yaml"), []byte(other), 0o600))
		if v := r.propose(`{"a":1,"a":2}`).verdict(); !v.Allow {
			t.Fatalf("a rule about other tools: %s", toJSON(v))
		}
		r.rules()
		if v := r.propose(`{"a":1,"a":2}`).verdict(); !v.Allow {
			t.Fatal(toJSON(v))
		}
	})
	bubble(t, "B65 a rule on arguments is not dodged by arguments that can be read in two ways", func(t *testing.T) {
		r := newRig(t, "h1")
		guard := "version: 1\nhooks:\n  - id: h1\n    event: before_tool_call\n    match: {args: {command: {contains: rm}}}\n" +
			"    execution: {mode: blocking}\n    run: {type: command, argv: [h1]}\n"
		must(t, os.WriteFile(filepath.Join(r.dir, "config", "hooks.yaml"), []byte(guard), 0o600))
		for _, args := range []string{
			`{"command":"rm -rf x","command":"ls"}`, `{"command":"ls","command":"rm -rf x"}`,
			"\ufeff" + `{"command":"rm -rf x"}`, `{"command":"rm -rf x"} {}`, `{"command":"rm -rf \ud800"}`,
		} {
			if v := r.propose(args).verdict(); v.Code != events.CodeNoCanonicalForm {
				t.Errorf("%q: %s", args, toJSON(v))
			}
		}
	})
	bubble(t, "arguments that do not fit are refused before anybody is asked", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		r.attach("uid:1")
		v := r.propose(`{"a":"` + strings.Repeat("x", 4<<20) + `"}`).verdict()
		if v.Code != events.CodeTooLarge {
			t.Fatal(toJSON(v))
		}
	})
	bubble(t, "B37 a broken hooks file refuses, and mending it mends it", func(t *testing.T) {
		r := newRig(t, "h1")
		must(t, os.WriteFile(filepath.Join(r.dir, "config", "hooks.yaml"), []byte("version: 1\nhook: []\n"), 0o600))
		if v := r.propose(`{}`).verdict(); v.Code != events.CodeHooksConfigInvalid || !contains(v.Message, "hooks.yaml") {
			t.Fatal(toJSON(v))
		}
		pass(2 * time.Second)
		r.rules("h1")
		if v := r.propose(`{}`).verdict(); !v.Allow {
			t.Fatal(toJSON(v))
		}
	})
	bubble(t, "F4 another process that names the operation gets nothing", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{}`)
		s.question()
		thief := c.p
		thief.Secret = "another secret entirely"
		var no *events.Refused
		if err := r.eng.Propose(t.Context(), thief); !errors.As(err, &no) || no.Code != events.RejectNotYours {
			t.Fatalf("propose: %v", err)
		}
		if _, err := r.eng.Await(t.Context(), thief.Operation, thief.Secret); !errors.As(err, &no) || no.Code != events.RejectNotYours {
			t.Fatalf("await: %v", err)
		}
		if err := r.eng.Receipt(t.Context(), thief.Operation, thief.Secret, ""); !errors.As(err, &no) || no.Code != events.RejectNotYours {
			t.Fatalf("receipt: %v", err)
		}
		r.eng.Gone(thief.Operation, thief.Secret, events.EndAgentGone)
		s.answer(s.question(), events.AnswerContinue)
		if v := c.verdict(); !v.Allow {
			t.Fatal(toJSON(v))
		}
		r.eng.Gone(c.p.Operation, c.p.Secret, events.EndAgentGone)
		// It has left memory; the log still knows whose it is and that it is over.
		if err := r.eng.Propose(t.Context(), thief); !errors.As(err, &no) {
			t.Fatalf("after the end: %v", err)
		}
	})
	bubble(t, "F4 its own process cannot put other arguments into its place", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{"command":"ls","n":1.0}`)
		s.question()
		other, same := c.p, c.p
		other.Args, same.Args = []byte(`{"command":"rm -rf /","n":1.0}`), []byte(`{"n":1.0, "command":"ls"}`)
		wantRefused(t, r.eng.Propose(t.Context(), other), events.RejectStaleVersion)
		must(t, r.eng.Propose(t.Context(), same))
		r.restart()
		wantRefused(t, r.eng.Propose(t.Context(), other), events.RejectStaleVersion)
	})
	bubble(t, "B18 stop refuses every waiter with shutdown", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		var calls []*call
		for range 5 {
			calls = append(calls, r.propose(`{}`))
		}
		synctest.Wait()
		s.receiveAll()
		patience, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		r.eng.Stop(patience)
		for _, c := range calls {
			if v := c.verdict(); v.Allow || v.Code != events.CodeEnded || v.EndReason != events.EndShutdown {
				t.Fatal(toJSON(v))
			}
		}
		if err := r.eng.Propose(t.Context(), r.proposal(`{}`)); err == nil {
			t.Fatal("a stopping core took a new operation")
		}
	})
	bubble(t, "B16 ten thousand calls in one session, and 300 questions after them", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = func(in hooks.Input) hooks.Result {
			if contains(string(in.Payload.Args), "ask") {
				return ask
			}
			return allow
		}
		s := r.attach("uid:1")
		keep(t, s)
		for i := range 10_000 {
			p := r.proposal(`{}`)
			p.Turn = fmt.Sprint(i)
			c := r.send(p)
			if !c.verdict().Allow {
				t.Fatal("refused")
			}
			r.eng.Gone(p.Operation, p.Secret, events.EndAgentGone)
		}
		for range 300 {
			c := r.propose(`{"ask":1}`)
			q := s.question()
			if a := s.answer(q, events.AnswerContinue); a.Refused != nil || !c.verdict().Allow {
				t.Fatal(toJSON(a))
			}
		}
	})
}

// failing is the real log with a fault that tests switch on: what a full disk
// does.
type failing struct {
	engine.Log
	full bool
}

func (f *failing) Append(ctx context.Context, e journal.Entry) (uint64, error) {
	if f.full {
		return 0, journal.ErrFull
	}
	return f.Log.Append(ctx, e)
}

func TestFullDisk(t *testing.T) {
	bubble(t, "a log that takes nothing: new calls are refused, an answer is refused and the question stays, later it goes on", func(t *testing.T) {
		r := newRig(t, "h1")
		r.kill()
		broken := &failing{}
		r.wrap = func(l engine.Log) engine.Log { broken.Log = l; return broken }
		r.start()
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		c := r.propose(`{}`)
		q := s.question()
		broken.full = true
		var no *events.Refused
		if err := r.eng.Propose(t.Context(), r.proposal(`{}`)); !errors.As(err, &no) || no.Code != events.RejectLogUnavailable {
			t.Fatalf("propose: %v", err)
		}
		if a := s.answer(q, events.AnswerContinue); a.Refused == nil || a.Refused.Code != events.RejectLogUnavailable {
			t.Fatal(toJSON(a))
		}
		broken.full = false
		if a := s.answer(q, events.AnswerContinue); a.Refused != nil || !c.verdict().Allow {
			t.Fatal(toJSON(a))
		}
	})
	bubble(t, "a hook ends while the log takes nothing: the asker is refused", func(t *testing.T) {
		r := newRig(t, "h1")
		r.kill()
		broken := &failing{}
		r.wrap = func(l engine.Log) engine.Log { broken.Log = l; return broken }
		r.start()
		go_ := make(chan struct{})
		r.hook["h1"] = func(hooks.Input) hooks.Result { <-go_; return allow }
		c := r.propose(`{}`)
		broken.full = true
		close(go_)
		o := <-c.result
		if o.v.Allow || o.v.Code != events.CodeLogUnavailable {
			t.Fatalf("%s %v", toJSON(o.v), o.err)
		}
		broken.full = false
	})
}

// deaf is the real log that loses the next acknowledgement: the message is in it
// and nobody heard so.
type deaf struct {
	engine.Log
	lose atomic.Bool
}

func (d *deaf) Append(ctx context.Context, e journal.Entry) (uint64, error) {
	seq, err := d.Log.Append(ctx, e)
	if err == nil && d.lose.Swap(false) {
		return 0, journal.ErrUnavailable
	}
	return seq, err
}

func TestUnheardAck(t *testing.T) {
	start := func(t *testing.T, o engine.Options, names ...string) (*rig, *deaf) {
		r := newRig(t, names...)
		r.kill()
		log := &deaf{}
		r.o, r.wrap = o, func(l engine.Log) engine.Log { log.Log = l; return log }
		r.start()
		return r, log
	}
	for name, want := range map[string]struct {
		hooks  []string
		answer events.Answer
		code   events.Code
		runs   string
	}{
		"a no":                      {[]string{"h1"}, events.AnswerCancel, events.CodeDeclined, "h1"},
		"a yes that commits":        {[]string{"h1"}, events.AnswerContinue, events.CodeChecked, "h1"},
		"a yes that starts a hook":  {[]string{"h1", "h2"}, events.AnswerContinue, events.CodeChecked, "h1 h2"},
		"a yes whose hook is cut":   {[]string{"h1", "slow"}, events.AnswerContinue, events.CodeChecked, "h1 slow slow"},
		"a yes that asks once more": {[]string{"h1", "ask"}, events.AnswerContinue, events.CodeDeclined, "h1 ask"},
	} {
		bubble(t, name+" whose ack nobody heard: given again, it goes on where the log stands", func(t *testing.T) {
			r, log := start(t, engine.Options{}, want.hooks...)
			r.hook["h1"], r.hook["ask"] = asks, asks
			r.hook["slow"] = func(hooks.Input) hooks.Result { pass(100 * time.Millisecond); return allow }
			s := r.attach("uid:1")
			keep(t, s)
			c := r.propose(`{}`)
			q := s.question()
			log.lose.Store(true)
			if a := s.answer(q, want.answer); a.Refused == nil || a.Refused.Code != events.RejectLogUnavailable {
				t.Fatal(toJSON(a))
			}
			pass(time.Second)
			if a := s.answer(q, want.answer); a.Refused != nil {
				t.Fatal(toJSON(a))
			}
			if want.code == events.CodeDeclined && want.answer == events.AnswerContinue {
				s.answer(s.question(), events.AnswerCancel)
			}
			v := c.verdict()
			r.mu.Lock()
			defer r.mu.Unlock()
			runs := strings.Join(r.runs, " ")
			// A hook that was done before its run was cut counts; one that was
			// cut runs again.
			again := want.runs + " " + want.hooks[len(want.hooks)-1]
			if v.Code != want.code || runs != want.runs && (len(want.hooks) == 1 || runs != again) {
				t.Errorf("%s, hooks ran: %s", toJSON(v), runs)
			}
			if r.seen[q.ID] != 1 {
				t.Errorf("shown %d times", r.seen[q.ID])
			}
		})
	}
	bubble(t, "a time limit whose ack nobody heard: the asker hears it at the next try", func(t *testing.T) {
		r, log := start(t, engine.Options{Timeout: 10 * time.Second}, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		c := r.propose(`{}`)
		s.question()
		log.lose.Store(true)
		pass(11 * time.Second)
		if v := c.verdict(); v.Code != events.CodeTimedOut {
			t.Error(toJSON(v))
		}
		if r.eng.Sessions(events.DoorAll)[0].Open != 0 {
			t.Error("the question still counts as open")
		}
	})
	bubble(t, "a proposal whose ack nobody heard: the same call again goes on with it", func(t *testing.T) {
		r, log := start(t, engine.Options{}, "h1")
		p := r.proposal(`{}`)
		log.lose.Store(true)
		if err := r.eng.Propose(t.Context(), p); err == nil {
			t.Fatal("proposed")
		}
		if v := r.send(p).verdict(); !v.Allow {
			t.Error(toJSON(v))
		}
	})
}
