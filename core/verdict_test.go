package core

import (
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// TestFaultVerdict: an asker whose operation could not be ended in the log
// hears a no all the same, and no reason of an earlier run.
func TestFaultVerdict(t *testing.T) {
	st := newStory(t).must(propose1(`{}`, next(run(1), 0)))
	st.must(HookDone{Run: run(1), Effect: events.EffectBlock, Outcome: events.RunOK, Reason: "No pushes on Friday."})
	v := FaultVerdict(st.s, events.CodeLogUnavailable)
	if v.Allow || v.Args != nil || v.Code != events.CodeLogUnavailable || v.Operation != op {
		t.Errorf("%+v", v)
	}
	wantText(t, v.Message, "The tool call did not run.", "log cannot be written", "again")
}

// TestNoVerdictYet: while something is undecided there is nothing to tell.
func TestNoVerdictYet(t *testing.T) {
	st := newStory(t)
	for _, c := range []Command{propose1(`{}`, next(run(1), 0)), askDone(run(1), q1, Next{})} {
		st.must(c)
		if v, ok := VerdictOf(st.s); ok {
			t.Errorf("phase %d: %+v", st.s.Phase, v)
		}
	}
}
