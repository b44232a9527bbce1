package core

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// typed is an input that a person or an agent's own machinery wrote.
func typed(kind events.Kind, text string, n Next) Propose {
	p := propose1(text, n)
	p.Op.Kind, p.Op.Tool = kind, events.Tool{}
	return p
}

func reminds(r events.ID, text string, n Next) HookDone {
	d := allowDone(r, n)
	d.Reminder = text
	return d
}

func TestInputs(t *testing.T) {
	t.Run("B90 B91 a refused input comes back byte for byte, by its kind", func(t *testing.T) {
		const text = `"fix   the\ncache \u0007"`
		for _, kind := range []events.Kind{events.KindUserPrompt, events.KindInjection, events.KindRetryNote} {
			st := newStory(t).must(typed(kind, text, next(run(1), 0)), askDone(run(1), q1, Next{}))
			st.must(no(st.s))
			v, _ := VerdictOf(st.s)
			if v.Allow || v.Kind != kind || string(v.Args) != text {
				t.Errorf("%+v", v)
			}
			if !strings.HasPrefix(v.Message, "The ") || strings.Contains(v.Message, "tool call") {
				t.Errorf("%q", v.Message)
			}
		}
	})
	t.Run("a refused tool call brings no arguments back", func(t *testing.T) {
		st := asked(t)
		st.must(no(st.s))
		if v, _ := VerdictOf(st.s); v.Args != nil || v.Kind != events.KindToolCall {
			t.Errorf("%+v", v)
		}
	})
	t.Run("B81 a refused injection ends nothing but itself", func(t *testing.T) {
		st := newStory(t).must(typed(events.KindInjection, `"x"`, next(run(1), 0)), askDone(run(1), q1, Next{}))
		st.want("Claimed,Response,Refused", no(st.s))
	})
}

func TestReminders(t *testing.T) {
	remindersOf := func(t *testing.T, st *story) string {
		t.Helper()
		v, ok := VerdictOf(st.s)
		if !ok || !v.Allow {
			t.Fatalf("%+v", v)
		}
		return v.Reminder
	}
	t.Run("B40 an ask's reminder is kept on continue; they are joined by a blank line, in order", func(t *testing.T) {
		st := newStory(t).must(typed(events.KindUserPrompt, `"x"`, next(run(1), 0, 1, 2)))
		st.must(reminds(run(1), "one", next(run(2), 0, 1, 2)))
		ask := askDone(run(2), q1, Next{})
		ask.Reminder = "two"
		st.must(ask)
		st.must(yes(st.s, next(run(3), 0, 1, 2)))
		st.must(reminds(run(3), "three", next("", 0, 1, 2)))
		if got := remindersOf(t, st); got != "one\n\ntwo\n\nthree" {
			t.Errorf("%q", got)
		}
	})
	t.Run("B40 a refused prompt has none", func(t *testing.T) {
		st := newStory(t).must(typed(events.KindUserPrompt, `"x"`, next(run(1), 0)))
		ask := askDone(run(1), q1, Next{})
		ask.Reminder = "two"
		st.must(ask)
		st.must(no(st.s))
		if v, _ := VerdictOf(st.s); v.Reminder != "" {
			t.Errorf("%q", v.Reminder)
		}
	})
	t.Run("B51 those of a pass that is repeated do not count", func(t *testing.T) {
		st := newStory(t).must(typed(events.KindUserPrompt, `"x"`, next(run(1), 0)))
		n := next(run(2), 0)
		n.Fresh = &Plan{Config: confB, Hooks: []events.Hook{hook(0)}}
		st.want("HookRan,RecheckStarted,HookStarted", reminds(run(1), "old", n))
		st.must(reminds(run(2), "new", Next{Plan: Plan{Config: confB, Hooks: []events.Hook{hook(0)}}}))
		if got := remindersOf(t, st); got != "new" {
			t.Errorf("%q", got)
		}
	})
}

func TestB83B84TheSameNoAgain(t *testing.T) {
	for _, c := range []struct {
		code events.Code
		text string
	}{{events.CodeDeclined, "said no"}, {events.CodeTimedOut, "did not answer in time"}} {
		t.Run(string(c.code), func(t *testing.T) {
			st := newStory(t).must(propose1(`{"path":"a"}`, next(run(1), 0)))
			again := askDone(run(1), q2, next(run(2), 0))
			again.Ask.Repeat = &Repeat{Code: c.code, Question: q1, Words: "use the staging db"}
			st.want("HookRan,Refused", again)
			ran, refused := last[events.HookRan](st), last[events.OperationRefused](st)
			if ran.Effect != events.EffectAskNotApplied || ran.NotApplied != events.NotAppliedRepeat || ran.Code != "" {
				t.Errorf("%+v", ran)
			}
			if diff := cmp.Diff(events.OperationRefused{Code: c.code, Question: q1}, refused); diff != "" {
				t.Error(diff)
			}
			v, _ := VerdictOf(st.s)
			wantText(t, v.Message, c.text)
			if strings.Contains(v.Message, "hook-0") { // it did not ask: the earlier call's did
				t.Errorf("%q", v.Message)
			}
			if says := strings.HasSuffix(v.Message, "use the staging db"); says != (c.code == events.CodeDeclined) {
				t.Errorf("%q", v.Message)
			}
		})
	}
	t.Run("B38 its override is applied first", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"path":"a"}`, next(run(1), 0)))
		again := askDone(run(1), q2, next(run(2), 0))
		again.Args, again.Ask.Repeat = []byte(`{"path":"b"}`), &Repeat{Code: events.CodeDeclined, Question: q1}
		st.want("HookRan,ArgumentsChanged,Refused", again)
	})
	t.Run("B42 a change behind a yes is checked again first", func(t *testing.T) {
		st := asked(t)
		st.must(yes(st.s, next(run(2), 0, 1)))
		again := askDone(run(2), q2, next(run(3), 0, 1))
		again.Args, again.Ask.Repeat = []byte(`{"path":"b"}`), &Repeat{Code: events.CodeDeclined, Question: q3}
		st.want("HookRan,ArgumentsChanged,RecheckStarted,HookStarted", again)
	})
}
