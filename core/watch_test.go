package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// ranOn is the end of a run that decides nothing.
func ranOn(r events.ID, m events.HookMode) events.HookRan {
	return events.HookRan{Run: r, Hook: hook(5), Effect: events.EffectAllow, Outcome: events.RunOK, Mode: m}
}

func TestWatchers(t *testing.T) {
	t.Run("B31 they begin with the commit, behind the blocking pass", func(t *testing.T) {
		n := next(run(1), 0).watching(watch(5), watch(6))
		st := newStory(t)
		st.want("Proposed,HookStarted", propose1(`{}`, n))
		st.want("HookRan,Checked,Committed,HookStarted,HookStarted", allowDone(run(1), n))
		want := events.HookStarted{Run: run(901), Hook: hook(6), Mode: events.ModeAsync}
		if diff := cmp.Diff(want, last[events.HookStarted](st)); diff != "" {
			t.Error(diff)
		}
		if len(Pending(st.s)) != 3 || st.s.Run.Run != run(1) || st.s.RunOpen {
			t.Errorf("%+v", Pending(st.s))
		}
	})
	t.Run("B31 a continue starts the next hook, not them", func(t *testing.T) {
		n := next(run(2), 0, 1).watching(watch(5))
		st := newStory(t).must(propose1(`{}`, next(run(1), 0, 1)), askDone(run(1), q1, n))
		st.want("Claimed,Response,HookStarted", yes(st.s, n))
		if h := last[events.HookStarted](st); h.Hook.Index != 1 || h.Mode != "" {
			t.Errorf("%+v", h)
		}
		st.want("HookRan,Checked,Committed,HookStarted", allowDone(run(2), n))
	})
	t.Run("B33 a cancel starts nothing any more", func(t *testing.T) {
		n := next(run(2), 0, 1).watching(watch(5))
		st := newStory(t).must(propose1(`{}`, next(run(1), 0, 1)), askDone(run(1), q1, n))
		a := no(st.s)
		a.Next = n
		st.want("Claimed,Response,Refused", a)
	})
	t.Run("B28 none of their runs may ask", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next("").watching(watch(5))))
		if last[events.HookStarted](st).Available {
			t.Error("confirmation is available to a run that nothing waits for")
		}
	})
	t.Run("B25 B26 an ask of theirs is recorded and does nothing", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next("").watching(watch(5))))
		asked := ranOn(run(900), events.ModeAsync)
		asked.Effect, asked.NotApplied = events.EffectAskNotApplied, events.NotAppliedNonblocking
		before := st.s
		st.want("HookRan", Record{Events: []events.Event{asked}})
		if st.s.Phase != before.Phase || st.s.Question.Open || len(st.s.End.Watch) != 0 {
			t.Errorf("%+v", st.s)
		}
	})
	t.Run("a run begins once and ends once", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next("").watching(watch(5))), Receipt{})
		if st.s.Over() {
			t.Error("it would leave memory while a watcher runs")
		}
		st.want("", Record{Events: []events.Event{ranOn(run(7), events.ModeAsync)}})
		st.want("HookRan", Record{Events: []events.Event{ranOn(run(900), events.ModeAsync)}})
		st.want("", Record{Events: []events.Event{ranOn(run(900), events.ModeAsync)}})
		if !st.s.Over() {
			t.Error("nothing runs, nobody waits")
		}
	})
	t.Run("B99 B61 a run that its core did not survive is known", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next("").watching(WatchHook{Hook: hook(5), Mode: events.ModeAsync, Durable: true})), Receipt{})
		want := []Effect{Watching{events.HookStarted{Run: run(900), Hook: hook(5), Mode: events.ModeAsync, Start: 1}}}
		if diff := cmp.Diff(want, Pending(st.s)); diff != "" {
			t.Error(diff)
		}
		ended := newStory(t).must(propose1(`{}`, next(run(1), 0)), Withdraw{Reason: events.EndInterrupted})
		if p := Pending(ended.s); len(p) != 2 || p[0] != (RunHook{ended.s.Run}) || ended.s.Over() {
			t.Errorf("%+v", p)
		}
		ended.want("HookRan", Abandon{})
	})
	t.Run("B89 a refused call has its end told, with the final arguments", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"a":1}`, next(run(1), 0, 1)), modifyDone(run(1), `{"a":2}`, next(run(2), 0, 1)))
		st.must(HookDone{Run: run(2), Effect: events.EffectBlock, Outcome: events.RunOK, Reason: "no"})
		st.want("HookStarted,HookRan", Record{Events: []events.Event{
			events.HookStarted{Run: run(9), Hook: hook(7), Version: 1, Event: events.AfterToolCall},
			events.HookRan{Run: run(9), Hook: hook(7), Effect: events.EffectAllow, Outcome: events.RunOK, Event: events.AfterToolCall},
		}})
		if string(st.s.Args()) != `{"a":2}` || st.s.Phase != PhaseEnded || st.s.Cursor != 2 {
			t.Errorf("%+v", st.s)
		}
	})
}

func TestCommitOfTheVeryVersion(t *testing.T) {
	granted := func() *story { return newStory(t).must(propose1(`{"a":1}`, next(""))) }
	same := Commit{Digest: events.DigestOf([]byte(`{"a":1}`))}
	other := Commit{Digest: events.DigestOf([]byte(`{"a":2}`))}
	t.Run("B58 the same version, once", func(t *testing.T) {
		st := granted()
		st.want("Delivered", same)
		st.want("", same)
		st.want("!stale_version", other)
	})
	t.Run("B58 of two connections the first", func(t *testing.T) {
		mine, theirs := same, same
		mine.By, theirs.By = "01k00000000000000000000001", "01k00000000000000000000002"
		st := granted()
		st.want("Delivered", mine)
		st.want("", mine)
		st.want("!already_committed", theirs)
		st.want("!already_committed", Receipt{By: theirs.By})
		st.want("!already_committed", Receipt{})
	})
	t.Run("B61 B68 B86 another version is refused, and the model reads that it did not run", func(t *testing.T) {
		st := granted()
		st.want("Refused !stale_version", other)
		v, ok := VerdictOf(st.s)
		if !ok || v.Allow || v.Code != events.CodeChangedAfterCheck {
			t.Fatalf("%+v", v)
		}
		wantText(t, v.Message, "did not run", "Trying again may help")
		st.want("!not_allowed", same)
	})
	t.Run("B62 what has ended does not run", func(t *testing.T) {
		st := granted().must(Withdraw{Reason: events.EndInterrupted})
		st.want("!withdrawn", same)
		st.want("Delivered !withdrawn", Receipt{})
	})
	t.Run("F12 a real report may follow an unknown end, once", func(t *testing.T) {
		st := granted().must(same, Finish{Outcome: events.OutcomeUnknown})
		st.want("", Finish{Outcome: events.OutcomeUnknown})
		st.want("Finished", Finish{Outcome: events.OutcomeFailed, Ran: same.Digest})
		st.want("", Finish{Outcome: events.OutcomeOK})
		if end := st.s.Ending(); end.Outcome != events.OutcomeFailed || end.Ran != same.Digest {
			t.Errorf("%+v", end)
		}
	})
}

func TestB97ARunShowsItsQuestionAndAnswer(t *testing.T) {
	st := asked(t)
	st.must(yes(st.s, next(run(2), 0, 1, 2)))
	ran := newest(st, func(e events.HookRan) bool { return e.Run == run(1) })
	asked, said := last[events.Request](st), last[events.Response](st)
	if ran.Effect != events.EffectAsk || asked.Run != ran.Run || said.ID != asked.ID || said.Answer != events.AnswerContinue {
		t.Errorf("%+v %+v %+v", ran, asked, said)
	}
}

func TestB80NothingOfALateEnd(t *testing.T) {
	st := newStory(t)
	p := propose1(`{}`, next(run(1), 0).watching(watch(5)))
	p.End = events.EndTurnEnded
	st.want("Proposed,Aborted", p)
	v, _ := VerdictOf(st.s)
	if v.Code != events.CodeEnded || v.EndReason != events.EndTurnEnded {
		t.Errorf("%+v", v)
	}
}
