package integration_test

import (
	"fmt"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// TestBlackboxB69Crash kills the core while an input's question is open.
func TestBlackboxB69Crash(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	b.setHooks(b.dirs.Config, "", askInput("b69"))
	s := b.screen()
	at := said{"session_id": "b69", "profile": "b69"}
	yes, no := b.input(at, "prompt", "b69 yes"), b.input(at, "injection", "b69 no")
	qy, qn := s.about("b69 yes"), s.about("b69 no")
	b.killCore()
	b.startCore()
	t.Run("B69 F3 B90 the same questions are open, and each input has its one end", func(t *testing.T) {
		must(t, "the questions from the next core", func() error {
			if !s.Inbox().Complete() {
				return errNotYet
			}
			return nil
		})
		for _, q := range []events.Question{qy, qn} {
			if now, open := s.Inbox().Question(q.ID); !open || now.AskedAt != q.AskedAt || now.Kind != q.Kind || string(now.Args) != string(q.Args) {
				t.Errorf("before %+v, after %+v", q, now)
			}
		}
		s.says(qy, events.AnswerContinue)
		yes.wantSubmitted("b69 yes", "")
		if n := yes.times(); n != 1 {
			t.Errorf("it was submitted %d times", n)
		}
		s.says(qn, events.AnswerCancel)
		no.wantReturned(events.CodeDeclined, "injection", "b69 no")
	})
	b.stopCore()
	e := b.evidence(t)
	if n := len(facts[events.Request](e)); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
	e.checkSpans(t)
	e.checkRuns(t)
}

// TestBlackboxF12Crash kills the core before and after the taking is confirmed.
func TestBlackboxF12Crash(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	s := b.screen()
	unconfirmed := b.propose(t, payload("f12", "f12unconfirmed", `{"n":1}`))
	if line := unconfirmed.hear(); line.Exit != 0 {
		t.Fatalf("the verdict is %+v", line)
	}
	confirmed := b.propose(t, payload("f12", "f12confirmed", `{"n":1}`))
	if _, args := confirmed.verdict(); args == nil {
		t.Fatal("the other call may not run")
	}
	must(t, "receipt of the confirmed call", func() error {
		for _, l := range s.Inbox().Lines() {
			if l.Tool.Name == "f12confirmed" && l.State == "delivered" {
				return nil
			}
		}
		return errNotYet
	})
	b.killCore()
	b.startCore()
	must(t, "screen that the new core knows", func() error {
		if !s.Inbox().Complete() {
			return errNotYet
		}
		return nil
	})
	t.Run("F12 B58 who brings a confirmed call again does not run it again", func(t *testing.T) {
		if line := b.in(t).again(confirmed.Operation, string(confirmed.Operation), payload("f12", "f12confirmed", `{"n":1}`)); line.Exit != 2 {
			t.Errorf("it hears %+v, want a deny", line)
		}
	})
	b.report("session_end", said{"session_id": "f12", "cwd": "/"})
	for _, name := range []string{"f12unconfirmed", "f12confirmed"} {
		t.Run("F12 after a crash "+name+" ends as unknown", func(t *testing.T) {
			must(t, "unknown outcome in the history", func() error {
				for _, l := range s.Inbox().Lines() {
					if l.Tool.Name == name && l.Outcome == events.OutcomeUnknown {
						return nil
					}
					if l.Tool.Name == name && (l.State == "refused" || l.State == "aborted") {
						return fmt.Errorf("it is said not to have run: %+v", l)
					}
				}
				return errNotYet
			})
		})
	}
	b.stopCore()
	e := b.evidence(t)
	e.checkSpans(t)
	e.checkRuns(t)
}
