package core

import (
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

func TestEnds(t *testing.T) {
	t.Run("B11 a withdrawn operation withdraws its question, once", func(t *testing.T) {
		for _, reason := range events.EndReasons(events.ResultWithdrawn) {
			st := asked(t)
			st.want("Withdrawn,Aborted", Withdraw{Reason: reason})
			st.want("", Withdraw{Reason: reason})
			if w := last[events.Withdrawn](st); w.Result != events.ResultWithdrawn || w.Reason != reason || w.ID != q1 {
				t.Errorf("%+v", w)
			}
			if v, ok := VerdictOf(st.s); !ok || v.Allow || v.Code != events.CodeEnded || v.EndReason != reason {
				t.Errorf("%+v", v)
			}
		}
	})
	t.Run("B13 each end of the core's own has its code", func(t *testing.T) {
		for reason, code := range map[events.EndReason]events.Code{
			events.EndDeadline: events.CodeTimedOut, events.EndNoFrontend: events.CodeUnavailable,
			events.EndUnclaimed: events.CodeUnavailable, events.EndStoreError: events.CodeLogUnavailable,
			events.EndInternal: events.CodeEnded,
		} {
			st := asked(t)
			st.want("Withdrawn,Refused", EndQuestion{Question: q1, Reason: reason})
			if w := last[events.Withdrawn](st); w.Result != events.ResultOf(reason) {
				t.Errorf("%+v", w)
			}
			if v, _ := VerdictOf(st.s); v.Code != code || v.EndReason != reason {
				t.Errorf("%+v", v)
			}
		}
	})
	t.Run("B62 an ended operation does not run, whatever its hook says later", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next(run(1), 0)), Withdraw{Reason: events.EndTurnEnded})
		st.want("HookRan", allowDone(run(1), next(run(2), 0)))
		st.want("", allowDone(run(1), next(run(2), 0)))
		if v, _ := VerdictOf(st.s); v.Allow {
			t.Error("allowed")
		}
	})
	t.Run("F12 a commit that nobody reports ends as unknown, and a report that comes later is kept", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next("")))
		st.want("Finished", Finish{Outcome: events.OutcomeUnknown})
		if v, ok := VerdictOf(st.s); !ok || v.Allow {
			t.Errorf("granted again: %+v", v)
		}
		st = newStory(t).must(propose1(`{}`, next("")), Withdraw{Reason: events.EndAgentGone})
		st.want("Finished", Finish{Outcome: events.OutcomeOK, Ran: confA})
		st.want("", Finish{Outcome: events.OutcomeFailed})
		if st.s.Ending().Ran != confA || st.s.Ending().Code != events.CodeEnded {
			t.Errorf("%+v", st.s)
		}
	})
	t.Run("B94 an internal fault ends an operation whose hook runs", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next(run(1), 0)))
		st.want("Aborted", Withdraw{Reason: events.EndInternal})
		if v, _ := VerdictOf(st.s); v.Allow || v.Code != events.CodeEnded {
			t.Errorf("%+v", v)
		}
	})
}

func TestCommit(t *testing.T) {
	t.Run("B57 checked with and without hooks, in the message of the commit", func(t *testing.T) {
		st := newStory(t)
		st.want("Proposed,Checked,Committed", propose1(`{}`, next("")))
		st = newStory(t).must(propose1(`{}`, next(run(1), 0)))
		st.want("HookRan,Checked,Committed", allowDone(run(1), next(run(2), 0)))
	})
	t.Run("B58 the right to run exactly that version, once", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"a":1}`, next("")))
		v, ok := VerdictOf(st.s)
		if !ok || !v.Allow || string(v.Args) != `{"a":1}` || v.Version != st.s.Ending().Committed || v.Changed || v.Code != events.CodeChecked {
			t.Errorf("%+v", v)
		}
		if got := Pending(st.s); len(got) != 1 || !got[0].(Deliver).Verdict.Allow {
			t.Errorf("%+v", got)
		}
		st.must(Receipt{})
		if v, ok := VerdictOf(st.s); !ok || v.Allow || v.Message != takenText(events.KindToolCall) {
			t.Errorf("granted twice: %+v", v)
		}
		if len(Pending(st.s)) != 0 {
			t.Error("delivered twice")
		}
	})
	t.Run("B61 bytes that are not those checked are not granted", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"a":1}`, next("")))
		for _, data := range [][]byte{[]byte(`{"a":2}`), nil} {
			s := st.s
			s.Bodies = []Body{{Key: events.ArgsBody(0), Data: data}}
			if v, ok := VerdictOf(s); !ok || v.Allow || v.Code != events.CodeChangedAfterCheck {
				t.Errorf("%+v", v)
			}
		}
	})
	t.Run("B63 what the caller does with its bytes afterwards does not matter", func(t *testing.T) {
		live := []byte(`{"a":1}`)
		c := propose1("", next(""))
		c.Args = live
		d, err := Decide(State{}, c)
		if err != nil {
			t.Fatal(err)
		}
		copy(live, `{"a":2}`)
		s := Apply(State{}, events.Message{Operation: op, Events: d.Events, Bodies: d.Bodies})
		if v, _ := VerdictOf(s); !v.Allow || string(v.Args) != `{"a":1}` {
			t.Errorf("%+v", v)
		}
	})
	t.Run("B63 no state changes with its successors", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"a":1}`, next(run(1), 0, 1)))
		base := st.s
		for i := range 9 { // two futures from every length: spare room in a list would be shared
			left := After(base, Decision{Events: []events.Event{events.ArgumentsChanged{To: events.Version{N: i + 1, Digest: "left"}}, events.Withdrawn{ID: q1}}})
			right := After(base, Decision{Events: []events.Event{events.ArgumentsChanged{To: events.Version{N: i + 1, Digest: "right"}}, events.Withdrawn{ID: q2}}})
			if left.Current().Digest != "left" || left.Settled[i].ID != q1 || len(base.Versions) != i+1 {
				t.Fatalf("%+v", left)
			}
			base = right
		}
	})
	t.Run("B64 the committed bytes are the canonical form", func(t *testing.T) {
		args, err := Canonical([]byte(` { "b" : 1.0, "a" : "\u00e9" } `))
		if err != nil {
			t.Fatal(err)
		}
		st := newStory(t).must(propose1(string(args), next("")))
		if v, _ := VerdictOf(st.s); string(v.Args) != `{"a":"é","b":1.0}` || v.Version.Digest != events.DigestOf(v.Args) {
			t.Errorf("%+v", v)
		}
	})
	t.Run("B65 what has no canonical form is refused without a hook", func(t *testing.T) {
		c := propose1("", next(run(1), 0))
		c.Args, c.Refuse, c.Reason = nil, events.CodeNoCanonicalForm, "byte 7: this name occurs twice in its object"
		st := newStory(t)
		st.want("Proposed,Refused", c)
		v, ok := VerdictOf(st.s)
		if !ok || v.Allow || v.Code != events.CodeNoCanonicalForm {
			t.Errorf("%+v", v)
		}
		wantText(t, v.Message, "did not run", c.Reason)
	})
}
