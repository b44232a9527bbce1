package core

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// agreed is asked, and continued.
func agreed(t *testing.T) *story {
	st := asked(t)
	return st.must(yes(st.s, next(run(2), 0, 1, 2)))
}

func TestRecheck(t *testing.T) {
	all := func(r int) Next { return next(run(r), 0, 1, 2) }
	t.Run("B42 a change behind a continue is checked again from the first hook", func(t *testing.T) {
		st := agreed(t)
		st.want("HookRan,ArgumentsChanged,RecheckStarted,HookStarted", modifyDone(run(2), `{"path":"b"}`, all(3)))
		want := events.RecheckStarted{Attempt: 1, Cause: events.CauseHook, Config: confA}
		if got := last[events.RecheckStarted](st); got != want {
			t.Errorf("%+v", got)
		}
		if s := last[events.HookStarted](st); s.Hook.Index != 0 || s.Version != 1 || s.Attempt != 1 {
			t.Errorf("%+v", s)
		}
		change := events.ArgumentsChanged{
			To:    events.Version{N: 1, Digest: events.DigestOf([]byte(`{"path":"b"}`)), Bytes: 12},
			Cause: events.CauseHook, Hook: "hook-1", Names: []string{"path"},
		}
		if diff := cmp.Diff(change, last[events.ArgumentsChanged](st)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("B43 equal values start no recheck", func(t *testing.T) {
		st := agreed(t)
		st.want("HookRan,HookStarted", modifyDone(run(2), `{"path":"a"}`, all(3)))
		if len(st.s.Versions) != 1 {
			t.Error("a version without a difference")
		}
	})
	t.Run("B44 a change in front of the ask starts no recheck", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"path":"a"}`, all(1)))
		st.want("HookRan,ArgumentsChanged,HookStarted", modifyDone(run(1), `{"path":"b"}`, all(2)))
		st.want("HookRan,Request", askDone(run(2), q1, all(3)))
		if r := last[events.Request](st); r.Version.N != 1 || r.Previous != -1 {
			t.Errorf("%+v", r)
		}
		// Also in a repetition, as long as it stands in front of the hook that asked.
		st.must(yes(st.s, all(3)), modifyDone(run(3), `{"path":"c"}`, all(4)))
		st.want("HookRan,ArgumentsChanged,HookStarted", modifyDone(run(4), `{"path":"d"}`, all(5)))
	})
	t.Run("B44 nor does one by the very hook that asked before", func(t *testing.T) {
		st := agreed(t).must(modifyDone(run(2), `{"path":"b"}`, all(3)))
		st.want("HookRan,ArgumentsChanged,HookStarted", modifyDone(run(3), `{"path":"c"}`, all(4)))
	})
	t.Run("B42 with two yeses the first one counts", func(t *testing.T) {
		n := func(r int) Next { return next(run(r), 0, 1, 2, 3) }
		st := newStory(t).must(propose1(`{"path":"a"}`, n(1)), askDone(run(1), q1, n(2)))
		st.must(yes(st.s, n(2)), allowDone(run(2), n(3)), askDone(run(3), q2, n(4)))
		st.must(yes(st.s, n(4)), modifyDone(run(4), `{"path":"b"}`, n(5)), allowDone(run(5), n(6)))
		st.want("HookRan,ArgumentsChanged,RecheckStarted,HookStarted", modifyDone(run(6), `{"path":"c"}`, n(7)))
	})
	t.Run("B45 B46 the repeated question says so and names what changed", func(t *testing.T) {
		st := agreed(t)
		st.must(modifyDone(run(2), `{"new":1,"path":"b"}`, all(3)), askDone(run(3), q2, all(4)))
		r := last[events.Request](st)
		if r.Attempt != 1 || r.Previous != 0 {
			t.Errorf("%+v", r)
		}
		if diff := cmp.Diff([]string{"new", "path"}, r.Changed); diff != "" {
			t.Error(diff)
		}
		if string(st.s.Body(events.ArgsBody(r.Previous))) != `{"path":"a"}` {
			t.Error("the old values are gone")
		}
	})
	t.Run("B48 B50 a change after three rechecks is refused, by that run", func(t *testing.T) {
		st := agreed(t)
		for i := range MaxRechecks {
			r := 2 + 2*i
			st.want("HookRan,ArgumentsChanged,RecheckStarted,HookStarted", modifyDone(run(r), fmt.Sprintf(`{"path":"a%d"}`, i), all(r+1)))
			st.want("HookRan,HookStarted", allowDone(run(r+1), all(r+2)))
		}
		st.want("HookRan,ArgumentsChanged,Refused", modifyDone(run(8), `{"path":"b"}`, all(9)))
		if r := last[events.OperationRefused](st); r != (events.OperationRefused{Code: events.CodeRecheckLimit, Run: run(8)}) {
			t.Errorf("%+v", r)
		}
		if r := last[events.HookRan](st); r.Code != events.CodeRecheckLimit || r.Run != run(8) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("B49 arguments that return to an earlier version are refused before the bound", func(t *testing.T) {
		st := agreed(t)
		st.must(modifyDone(run(2), `{"path":"b"}`, all(3)), allowDone(run(3), all(4)))
		st.want("HookRan,ArgumentsChanged,Refused", modifyDone(run(4), `{"path":"a"}`, all(5)))
		if r := last[events.OperationRefused](st); r != (events.OperationRefused{Code: events.CodeRecheckCycle, Run: run(4)}) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("B49 back and forth in front of the ask is nobody's business", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"path":"a"}`, all(1)), modifyDone(run(1), `{"path":"b"}`, all(2)))
		st.want("HookRan,ArgumentsChanged,HookStarted", modifyDone(run(2), `{"path":"a"}`, all(3)))
	})
	t.Run("B51 each recheck runs every hook again", func(t *testing.T) {
		st := agreed(t)
		st.must(modifyDone(run(2), `{"path":"b"}`, all(3)))
		for i := range 3 {
			if h := last[events.HookStarted](st).Hook.Index; h != i {
				t.Fatalf("hook %d, want %d", h, i)
			}
			st.must(allowDone(run(3+i), all(4+i)))
		}
		if count[events.OperationCommitted](st) != 1 {
			t.Error(types(st.log))
		}
	})
	t.Run("B52 a recheck in which nobody asks passes silently", func(t *testing.T) {
		st := agreed(t)
		st.must(modifyDone(run(2), `{"path":"b"}`, all(3)), allowDone(run(3), all(4)), modifyDone(run(4), `{"path":"b"}`, all(5)))
		st.want("HookRan,Checked,Committed", allowDone(run(5), all(6)))
		if count[events.Request](st) != 1 {
			t.Error("asked again")
		}
	})
	t.Run("B53 one bound for all causes", func(t *testing.T) {
		st := agreed(t)
		st.must(modifyDone(run(2), `{"path":"b"}`, all(3)), allowDone(run(3), all(4)), modifyDone(run(4), `{"path":"c"}`, all(5)))
		st.must(allowDone(run(5), all(6)), allowDone(run(6), all(7)))
		fresh := all(8)
		fresh.Fresh = &Plan{Config: confB, Hooks: []events.Hook{hook(0)}}
		st.want("HookRan,RecheckStarted,HookStarted", allowDone(run(7), fresh))
		under := Next{Plan: Plan{Config: confB, Hooks: []events.Hook{hook(0)}}, Run: run(9), Fresh: &Plan{Config: confA}}
		st.want("HookRan,Refused", allowDone(run(8), under))
		if r := last[events.OperationRefused](st); r != (events.OperationRefused{Code: events.CodeRecheckLimit, Run: run(8)}) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("B42 an ask with a change behind a continue is checked first", func(t *testing.T) {
		st := agreed(t)
		ask := askDone(run(2), q2, all(3))
		ask.Args = []byte(`{"path":"b"}`)
		st.want("HookRan,ArgumentsChanged,RecheckStarted,HookStarted", ask)
		if r := last[events.HookRan](st); r.Effect != events.EffectAskNotApplied || r.NotApplied != "recheck" {
			t.Errorf("%+v", r)
		}
	})
}

func TestConfigurationChanges(t *testing.T) {
	fresh := func(n Next, hooks ...int) Next {
		n.Fresh = &Plan{Config: confB}
		for _, i := range hooks {
			n.Fresh.Hooks = append(n.Fresh.Hooks, hook(i))
		}
		return n
	}
	t.Run("B61 a commit under changed hooks is checked again under the new ones", func(t *testing.T) {
		st := newStory(t)
		st.want("Proposed,RecheckStarted,HookStarted", propose1(`{}`, fresh(next(run(1)), 3)))
		if st.s.Config != confB || st.s.Attempt != 1 {
			t.Errorf("%+v", st.s)
		}
		st.want("HookRan,Checked,Committed", allowDone(run(1), Next{Plan: Plan{Config: confB, Hooks: []events.Hook{hook(3)}}}))
		if c := last[events.OperationChecked](st); c.Config != confB {
			t.Errorf("%+v", c)
		}
	})
	t.Run("B61 new hooks that match nothing commit at once", func(t *testing.T) {
		st := newStory(t)
		st.want("Proposed,RecheckStarted,Checked,Committed", propose1(`{}`, fresh(next(""))))
	})
	t.Run("B61 an unchanged configuration changes nothing", func(t *testing.T) {
		n := next("")
		n.Fresh = &Plan{Config: confA}
		st := newStory(t)
		st.want("Proposed,Checked,Committed", propose1(`{}`, n))
	})
	t.Run("B53 a yes at the bound is refused when the hooks changed meanwhile", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next(run(1), 0)), askDone(run(1), q1, Next{}))
		s := st.s
		s.Attempt = MaxRechecks
		d, err := Decide(s, yes(s, fresh(next(run(2), 0), 0)))
		if err != nil || types(d.Events) != "Claimed,Response,Refused" {
			t.Fatalf("%s %v", types(d.Events), err)
		}
		if r := d.Events[2].(events.OperationRefused); r != (events.OperationRefused{Code: events.CodeRecheckLimit, Question: q1}) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("B61 under rules that cannot be read nothing commits, though hooks that can be read still run", func(t *testing.T) {
		broken := next(run(2), 0)
		broken.Fail, broken.FailReason = events.CodeHooksConfigInvalid, "hooks.yaml:3:1 unknown key"
		st := newStory(t)
		broken.Run = run(1)
		st.want("Proposed,HookStarted", propose1(`{}`, broken))
		st.want("HookRan,Refused", allowDone(run(1), broken))
		v, _ := VerdictOf(st.s)
		if v.Code != events.CodeHooksConfigInvalid {
			t.Errorf("%+v", v)
		}
		wantText(t, v.Message, "did not run", broken.FailReason)

		broken.Plan = Plan{} // nor can the old ones be had any more
		st = newStory(t).must(propose1(`{}`, next(run(1), 0, 1)))
		st.want("HookRan,Refused", Abandon{Next: broken})
	})
	t.Run("F3 when the old configuration is lost the new one decides", func(t *testing.T) {
		lost := fresh(Next{Run: run(2), Available: true}, 0)
		st := newStory(t).must(propose1(`{}`, next(run(1), 5)))
		st.want("HookRan,RecheckStarted,HookStarted", Abandon{Next: lost})
		if s := last[events.HookStarted](st); s.Hook.Index != 0 || s.Run != run(2) {
			t.Errorf("%+v", s)
		}
		st = newStory(t).must(propose1(`{}`, next(run(1), 5)), askDone(run(1), q1, Next{}))
		st.want("Claimed,Response,RecheckStarted,HookStarted", yes(st.s, lost))
	})
}

// TestHAND03 plays the five orders of "changed after the yes".
func TestHAND03(t *testing.T) {
	all := func(r int) Next { return next(run(r), 0, 1) }
	t.Run("i asks, then rewrites", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"path":"a"}`, all(1)), askDone(run(1), q1, all(2)))
		st.must(yes(st.s, all(2)), modifyDone(run(2), `{"path":"b"}`, all(3)), askDone(run(3), q2, all(4)))
		if diff := cmp.Diff([]string{"path"}, last[events.Request](st).Changed); diff != "" {
			t.Error(diff)
		}
		st.must(yes(st.s, all(4)))
		st.want("HookRan,Checked,Committed", modifyDone(run(4), `{"path":"b"}`, all(5)))
		v, _ := VerdictOf(st.s)
		if string(v.Args) != `{"path":"b"}` || v.Version.Digest != last[events.Response](st).Digest {
			t.Errorf("%+v", v)
		}
	})
	t.Run("ii flips", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"path":"a"}`, all(1)), askDone(run(1), q1, all(2)))
		st.must(yes(st.s, all(2)), modifyDone(run(2), `{"path":"b"}`, all(3)), askDone(run(3), q2, all(4)))
		st.must(yes(st.s, all(4)), modifyDone(run(4), `{"path":"a"}`, all(5)))
		if v, _ := VerdictOf(st.s); v.Code != events.CodeRecheckCycle {
			t.Errorf("%+v", v)
		}
	})
	t.Run("iii counts", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"n":0}`, all(1)))
		questions := 0
		for r := 1; st.s.Phase != PhaseEnded; r += 2 {
			questions++
			st.must(askDone(run(r), events.ID(fmt.Sprintf("01k000000000000000000q%04d", r)), all(r+1)))
			st.must(yes(st.s, all(r+1)), modifyDone(run(r+1), fmt.Sprintf(`{"n":%d}`, r), all(r+2)))
		}
		if v, _ := VerdictOf(st.s); v.Code != events.CodeRecheckLimit || questions != 1+MaxRechecks {
			t.Errorf("%d questions, %+v", questions, v)
		}
	})
	t.Run("iv rewrites, then asks", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"path":"a"}`, all(1)), modifyDone(run(1), `{"path":"b"}`, all(2)), askDone(run(2), q1, all(3)))
		st.want("Claimed,Response,Checked,Committed", yes(st.s, all(3)))
	})
	t.Run("v one hook does both", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"path":"a"}`, next(run(1), 0)))
		ask := askDone(run(1), q1, next(run(2), 0))
		ask.Args = []byte(`{"path":"b"}`)
		st.must(ask)
		st.want("Claimed,Response,Checked,Committed", yes(st.s, next(run(2), 0)))
		if v, _ := VerdictOf(st.s); string(v.Args) != `{"path":"b"}` {
			t.Errorf("%+v", v)
		}
	})
}
