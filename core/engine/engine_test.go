package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestOneCall(t *testing.T) {
	bubble(t, "B57 nothing matches and the call is checked and committed", func(t *testing.T) {
		r := newRig(t)
		v := r.propose(`{"path":"a"}`).verdict()
		if !v.Allow || v.Changed || string(v.Args) != `{"path":"a"}` {
			t.Fatalf("verdict %s", toJSON(v))
		}
		if got := types(r.events(v.Operation)); got != "OperationProposed OperationChecked OperationCommitted OperationDelivered" {
			t.Fatal(got)
		}
	})
	bubble(t, "B31 continue goes on", func(t *testing.T) {
		r := newRig(t, "h1", "h2")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{"path":"a"}`)
		q := s.question()
		if a := s.answer(q, events.AnswerContinue); a.Refused != nil {
			t.Fatal(a.Refused)
		}
		v := c.verdict()
		if !v.Allow {
			t.Fatalf("verdict %s", toJSON(v))
		}
		want := "OperationProposed HookStarted HookRan Request Claimed Response HookStarted HookRan OperationChecked OperationCommitted OperationDelivered"
		if got := types(r.events(v.Operation)); got != want {
			t.Fatal(got)
		}
	})
	bubble(t, "B30 nobody can be asked", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = func(in hooks.Input) hooks.Result {
			if in.Payload.ConfirmationAvailable {
				t.Error("confirmation_available is true with no frontend")
			}
			return ask
		}
		start := time.Now()
		v := r.propose(`{"path":"a"}`).verdict()
		if v.Allow || v.Code != events.CodeUnavailable || time.Since(start) > 0 {
			t.Fatalf("verdict %s after %v", toJSON(v), time.Since(start))
		}
	})
	bubble(t, "B7 a frontend that never has it in its list", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		r.attach("uid:1")
		start := time.Now()
		v := r.propose(`{"path":"a"}`).verdict()
		if v.Code != events.CodeUnavailable || time.Since(start) != engine.ReceiveWithin {
			t.Fatalf("verdict %s after %v", toJSON(v), time.Since(start))
		}
	})
	bubble(t, "B8 B13 the deadline ends a question", func(t *testing.T) {
		r := newRig(t, "h1")
		r.kill()
		r.o.Timeout = 2 * time.Minute
		r.start()
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		start := time.Now()
		c := r.propose(`{"path":"a"}`)
		s.question()
		v := c.verdict()
		if v.Code != events.CodeTimedOut || time.Since(start).Round(time.Second) != 2*time.Minute {
			t.Fatalf("verdict %s after %v", toJSON(v), time.Since(start))
		}
	})
}

// keep renews a screen's lease in the background, as an attached frontend does.
func keep(t *testing.T, s *screen) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.r.eng.Renew(s.f, events.DoorAll, events.Renew{Input: true})
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestF3Restart(t *testing.T) {
	bubble(t, "F3 a question outlives the core and its deadline counts from the original time", func(t *testing.T) {
		r := newRig(t, "h1")
		r.kill()
		r.o.Timeout = time.Minute
		r.start()
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{"path":"a"}`)
		q := s.question()
		pass(5 * time.Second)
		r.restart()
		if o := <-c.result; o.err == nil {
			t.Fatal("the waiter was told a verdict by a core that went down")
		}
		s2 := r.attach("uid:1")
		keep(t, s2)
		c2 := r.send(c.p)
		if again := s2.question(); again.ID != q.ID || again.Deadline != q.Deadline {
			t.Fatalf("another question %s", toJSON(again))
		}
		if a := s2.answer(q, events.AnswerContinue); a.Refused != nil {
			t.Fatal(a.Refused)
		}
		if v := c2.verdict(); !v.Allow {
			t.Fatalf("verdict %s", toJSON(v))
		}
	})
	bubble(t, "F3 an asker that does not return ends agent_gone", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{"path":"a"}`)
		s.question()
		r.restart()
		<-c.result
		pass(engine.AskerReturn + time.Second)
		if got := types(r.events(c.p.Operation)); got != "OperationProposed HookStarted HookRan Request Withdrawn OperationAborted" {
			t.Fatal(got)
		}
	})
	bubble(t, "B99 a hook that was running when the core died runs again", func(t *testing.T) {
		r := newRig(t, "h1")
		hang := make(chan struct{})
		r.hook["h1"] = func(hooks.Input) hooks.Result { <-hang; return allow }
		c := r.propose(`{"path":"a"}`)
		synctest.Wait()
		go func() { pass(time.Second); close(hang) }()
		r.restart()
		<-c.result
		v := r.send(c.p).verdict()
		if !v.Allow {
			t.Fatalf("verdict %s", toJSON(v))
		}
		want := "OperationProposed HookStarted HookRan HookStarted HookRan OperationChecked OperationCommitted OperationDelivered"
		if got := types(r.events(c.p.Operation)); got != want {
			t.Fatal(got)
		}
	})
}
