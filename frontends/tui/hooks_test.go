package tui

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// TestB110B112EveryRunHasItsIconAndItsWords has a run of every sort.
func TestB110B112EveryRunHasItsIconAndItsWords(t *testing.T) {
	want := map[string][3]string{
		"lets-pass":       {"✓", "18 ms", "lets it go on"},
		"adds-region":     {"✓", "2.4 s", "changes the arguments"},
		"redline-scan":    {"✕", "18 ms", "call rejected: refused by a rule"},
		"said-yes":        {"✓", "18 ms", "continued"},
		"said-no":         {"✕", "18 ms", "cancelled"},
		"said-nothing":    {"⌛", "18 ms", "no answer in time"},
		"nobody-there":    {"⌛", "18 ms", "nobody to ask"},
		"turn-over":       {"–", "18 ms", "the turn ended"},
		"fails-open":      {"✕", "18 ms", "failed open: failed"},
		"too-slow":        {"✕", "1:01", "call rejected: a hook took too long"},
		"asks-in-vain":    {"✓", "18 ms", "asks in vain: nobody can be asked on this event"},
		"goes-alone":      {"·", "", "started, and not followed further"},
		"ask-before-push": {"?", "0:07", "waiting for an answer"},
		"notify-team":     {"●", "0:07", "running"},
	}
	m := reader(t.Context(), words.English)
	runs := someRuns()
	for _, r := range runs {
		m.now = r.At.Time().Add(7 * time.Second)
		got := [3]string{m.runSign(r), m.runTime(r), m.runOutcome(r)}
		if got != want[r.Hook.ID] {
			t.Errorf("%s: %q, want %q", r.Hook.ID, got, want[r.Hook.ID])
		}
	}
	if len(runs) != len(want) {
		t.Errorf("%d runs", len(runs))
	}
	t.Run("one that decides nothing lets nothing go on", func(t *testing.T) {
		for want, r := range map[string]events.RunLine{
			"lets it go on": {Event: events.BeforeToolCall, Mode: events.ModeBlocking},
			"ran":           {Event: events.BeforeToolCall, Mode: events.ModeAsync},
			"ran ":          {Event: events.AfterTurn, Mode: events.ModeBlocking},
		} {
			r.State, r.Outcome, r.Effect = events.RunEnded, events.RunOK, events.EffectAllow
			if got := m.runOutcome(r); got != strings.TrimSpace(want) {
				t.Errorf("%s %s: %q", r.Event, r.Mode, got)
			}
		}
	})
	t.Run("every way to end has words of its own", func(t *testing.T) {
		seen := map[string]bool{}
		for _, o := range []events.RunOutcome{
			events.RunFailed, events.RunTimedOut, events.RunMissing, events.RunBadVerdict, events.RunAbandoned, events.RunDetached,
		} {
			text := m.runOutcome(events.RunLine{State: events.RunEnded, Outcome: o})
			if text == "" || seen[text] {
				t.Errorf("%s: %q", o, text)
			}
			seen[text] = true
		}
	})
	t.Run("a call that was rejected for its changes says so once", func(t *testing.T) {
		r := events.RunLine{State: events.RunEnded, Outcome: events.RunOK, Effect: events.EffectModify, Rejected: true, Code: events.CodeRecheckLimit}
		if got := m.runOutcome(r); strings.Count(got, "rejected") != 1 {
			t.Errorf("%q", got)
		}
		r.EndReason = events.EndContinue
		if got := m.runOutcome(r); strings.Count(got, "rejected") != 1 {
			t.Errorf("%q", got)
		}
	})
}

// runRows are the rows of the hooks pane.
func runRows(tm *terminal) []string {
	var rows []string
	for l := range strings.SplitSeq(tm.text(), "\n") {
		fields := strings.Fields(strings.TrimPrefix(l, "›"))
		if len(fields) > 2 && strings.Trim(fields[0], "0123456789") == "" {
			rows = append(rows, strings.Join(fields, " "))
		}
	}
	return rows
}

func TestB110ARowHasNumberIconNameAndTime(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.press("h")
		rows := runRows(tm)
		if len(rows) != 14 || rows[2] != "3 ✕ redline-scan 18 ms" || rows[12] != "13 ? ask-before-push 0:00" {
			t.Fatalf("rows %q", rows)
		}
		tm.desk.change(func() { tm.desk.runs = tm.desk.runs[3:] })
		synctest.Wait()
		if rows := runRows(tm); rows[0] != "4 ✓ said-yes 18 ms" {
			t.Errorf("a number did not stay with its run: %q", rows)
		}
		for range 4 {
			tm.desk.change(func() {
				tm.desk.runs = nil
				for range 300 {
					id := fmt.Sprint("new", tm.m.hooks.counted, "-", len(tm.desk.runs))
					tm.desk.runs = append(tm.desk.runs, events.RunLine{Run: events.ID(id), State: events.RunEnded, Hook: events.Hook{ID: "n"}})
				}
			})
			synctest.Wait()
		}
		if rows := runRows(tm); !strings.HasPrefix(rows[len(rows)-1], "1214 ") {
			t.Errorf("a number was given twice: %q", rows[len(rows)-1])
		}
	})
}

// TestB111ARunningIconStandsStill: an asking run shows ? until it is answered, a running
// one ●, and nothing in them moves with time.
func TestB111ARunningIconStandsStill(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.press("h")
		for at := range 30 {
			rows := strings.Join(runRows(tm), "\n")
			for _, want := range []string{"13 ? ask-before-push", "14 ● notify-team"} {
				if !strings.Contains(rows, want) {
					t.Fatalf("after %d ticks %q is not in\n%s", at, want, rows)
				}
			}
			tm.wait(170 * time.Millisecond)
		}
		tm.desk.change(func() {
			r := &tm.desk.runs[12]
			r.State, r.EndReason, r.At = events.RunEnded, events.EndContinue, now()
		})
		synctest.Wait()
		if rows := strings.Join(runRows(tm), "\n"); !strings.Contains(rows, "13 ✓ ask-before-push 18 ms") {
			t.Errorf("answered, and still:\n%s", rows)
		}
	})
}

func TestB112DetailsOfARun(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.press("h", "home", "down", "down", "enter")
		for _, want := range []string{
			"call rejected: refused by a rule", "before_tool_call", "Bash", "claude", "project .fermata/hooks.yaml:6", "blocking",
			"exit status   0", "18 ms", "a red line", "rule 7: push to main", "see the wiki",
		} {
			if !strings.Contains(tm.text(), want) {
				t.Errorf("%q is missing:\n%s", want, tm.text())
			}
		}
		tm.press("esc", "esc")
		if tm.m.on != screenList {
			t.Errorf("Esc does not lead back:\n%s", tm.text())
		}
	})
	t.Run("B111 an open page follows its run", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			browse(tm)
			tm.press("h", "up", "enter")
			if !strings.Contains(tm.text(), "waiting for an answer") {
				t.Fatalf("not the asking run:\n%s", tm.text())
			}
			tm.wait(time.Second)
			tm.desk.change(func() {
				r := &tm.desk.runs[12]
				r.State, r.EndReason, r.At = events.RunEnded, events.EndCancel, now()
				tm.desk.outputs[r.Run] = events.RunReply{Stderr: "said on the way"}
				tm.desk.runs = append(tm.desk.runs, events.RunLine{Run: "later", Hook: events.Hook{ID: "later"}, State: events.RunRunning, At: now()})
			})
			synctest.Wait()
			if !strings.Contains(tm.text(), "cancelled") || !strings.Contains(tm.text(), "said on the way") {
				t.Errorf("the page stands still:\n%s", tm.text())
			}
		})
	})
	t.Run("what a run wrote steers no terminal", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			browse(tm)
			tm.desk.outputs["run-notify-team"] = events.RunReply{Stderr: "\x1b[2J\x1b]0;gone\a" + "\u202e" + "x"}
			tm.press("h", "enter")
			if screen := tm.m.View().Content; strings.Contains(screen, "\x1b[2J") || strings.Contains(screen, "\x1b]0") || strings.Contains(screen, "\u202e") {
				t.Errorf("%q", screen)
			}
		})
	})
}
