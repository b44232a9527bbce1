package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// told is what waiters were told, in order.
type told chan outcome

func (c told) tell(v core.Verdict, err error) { c <- outcome{v, err} }

func (c told) nothing(t *testing.T) {
	t.Helper()
	pass(time.Second)
	if len(c) > 0 {
		t.Fatalf("told %+v", <-c)
	}
}

// Whoever waits for a verdict is called once, whenever it began to wait; who
// stops waiting in time is not called.
func TestNotify(t *testing.T) {
	bubble(t, "before the verdict, again after it, and not once it has stopped", func(t *testing.T) {
		r := newRig(t, "ask")
		r.hook["ask"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		p := r.proposal(`{}`)
		must(t, r.eng.Propose(t.Context(), p))
		q := s.question()
		early, left := make(told, 9), make(told, 9)
		stops := []func() bool{
			r.eng.Notify(p.Operation, p.Secret, early.tell),
			r.eng.Notify(p.Operation, p.Secret, left.tell),
			r.eng.Notify(p.Operation, p.Secret, early.tell),
		}
		if !stops[1]() || stops[1]() {
			t.Error("stop must be true once before the verdict")
		}
		early.nothing(t)
		if a := s.answer(q, events.AnswerContinue); a.Refused != nil {
			t.Fatal(toJSON(a))
		}
		late := make(told, 9)
		stops = append(stops, r.eng.Notify(p.Operation, p.Secret, late.tell))
		for _, c := range []told{early, early, late} {
			if o := <-c; o.err != nil || !o.v.Allow {
				t.Errorf("told %+v", o)
			}
		}
		for _, stop := range stops {
			if stop() {
				t.Error("stop is true after the verdict")
			}
		}
		early.nothing(t)
		left.nothing(t)
		late.nothing(t)
	})
	bubble(t, "while the verdict is made", func(t *testing.T) {
		r := newRig(t, "ask")
		r.hook["ask"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		for range 50 {
			p := r.proposal(`{}`)
			must(t, r.eng.Propose(t.Context(), p))
			q := s.question()
			go s.answer(q, events.AnswerContinue)
			c := make(told, 9)
			r.eng.Notify(p.Operation, p.Secret, c.tell)
			if o := <-c; o.err != nil || !o.v.Allow {
				t.Fatalf("told %+v", o)
			}
			must(t, r.eng.Receipt(t.Context(), p.Operation, p.Secret, ""))
			r.eng.Gone(p.Operation, p.Secret, events.EndAgentGone)
		}
	})
	bubble(t, "strangers and nobody's operations are refused at once", func(t *testing.T) {
		r := newRig(t)
		p := r.proposal(`{}`)
		must(t, r.eng.Propose(t.Context(), p))
		c := make(told, 9)
		r.eng.Notify(p.Operation, "a stranger's secret", c.tell)
		r.eng.Notify(r.proposal(`{}`).Operation, p.Secret, c.tell)
		for _, want := range []events.Reject{events.RejectNotYours, events.RejectUnknownOperation} {
			o := <-c
			if refused, ok := errors.AsType[*events.Refused](o.err); !ok || refused.Code != want {
				t.Errorf("told %+v, want %s", o, want)
			}
		}
	})
	bubble(t, "F3 the end of the engine is told, before and after it", func(t *testing.T) {
		r := newRig(t, "ask")
		r.hook["ask"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		p := r.proposal(`{}`)
		must(t, r.eng.Propose(t.Context(), p))
		s.question()
		c := make(told, 9)
		r.eng.Notify(p.Operation, p.Secret, c.tell)
		r.kill()
		r.eng.Notify(p.Operation, p.Secret, c.tell)
		for range 2 {
			if o := <-c; !errors.Is(o.err, engine.ErrStopped) {
				t.Errorf("told %+v", o)
			}
		}
	})
}
