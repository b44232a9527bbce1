package tui

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

var update = flag.Bool("update", false, "write the golden screens")

// golden compares the screen with testdata.
func golden(t *testing.T, name string, tm *terminal) {
	t.Helper()
	checkFits(t, tm.m)
	goldenText(t, name, tm.text()+"\n")
}

func goldenText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func checkFits(t interface {
	Helper()
	Errorf(string, ...any)
}, m *Model,
) {
	t.Helper()
	lines := plainScreen(m)
	if len(lines) > m.height {
		t.Errorf("%d lines in a window of %d", len(lines), m.height)
	}
	for _, l := range lines {
		if cells(l) > m.width {
			t.Errorf("a line of %d columns in a window of %d: %q", cells(l), m.width, l)
		}
	}
}

func one(t *testing.T, tm *terminal) events.Respond {
	t.Helper()
	if len(tm.desk.answers) != 1 {
		t.Fatalf("%d answers, want one\n%s", len(tm.desk.answers), tm.text())
	}
	return tm.desk.answers[0]
}

func TestB105Answers(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		want events.Answer
		text string
	}{
		{"continue", []string{"c"}, events.AnswerContinue, ""},
		{"cancel", []string{"x"}, events.AnswerCancel, ""},
		{"words", []string{"w", "n", "o", "backspace", "é", "enter"}, events.AnswerCancel, "né"},
		{"focused continue", []string{"tab", "tab", "tab", "tab", "enter"}, events.AnswerContinue, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 80, 24, func(tm *terminal) {
				q := push()
				tm.ask(q)
				tm.settle()
				tm.press(c.keys...)
				got := one(t, tm)
				if got.Answer != c.want || got.Text != c.text || got.Digest != q.Version.Digest || !got.Human {
					t.Errorf("answered %+v", got)
				}
				if tm.m.dialog != nil {
					t.Error("the dialog is still there")
				}
			})
		})
	}
}

func TestF9NothingIsPreselected(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.settle()
		tm.press("enter", "space", "y", "1", "a", "enter")
		if len(tm.desk.answers) != 0 {
			t.Errorf("answered %v without a focused button", tm.desk.answers)
		}
	})
}

func TestB107AWithdrawnQuestionClosesAndTheNextAppears(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.ask(longQuestion(100))
		tm.settle()
		tm.press("w", "d", "r", "a", "f", "t")
		tm.desk.end("q1", events.EndTurnEnded)
		synctest.Wait()
		if tm.m.dialog == nil || tm.m.dialog.lead().ID != "q2" {
			t.Fatalf("the next question is not shown:\n%s", tm.text())
		}
		if !strings.Contains(tm.text(), "were not sent") {
			t.Errorf("the unsent words are not mentioned:\n%s", tm.text())
		}
		tm.press("c", "c")
		if len(tm.desk.answers) != 0 {
			t.Error("a key for the question that closed answered the next one")
		}
		tm.settle()
		tm.press("down")
		if strings.Contains(tm.text(), "ended") {
			t.Errorf("the end of another question stands under this one:\n%s", tm.text())
		}
		tm.press("w")
		if got := tm.m.dialog.input.value(); got != "" {
			t.Errorf("the words of another question are in this one: %q", got)
		}
		tm.press("esc", "esc")
		if !strings.Contains(tm.text(), "Bash · ended: the turn ended") {
			t.Errorf("the end is not told in words:\n%s", tm.text())
		}
	})
}

func TestF1Claims(t *testing.T) {
	other := &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Principal: "ana", Name: "root", Since: 1, Claim: 9}
	t.Run("the first key that engages claims, Esc gives back", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.press("down") // ignored: too early
			tm.settle()
			if len(tm.desk.claims) != 0 {
				t.Fatal("claimed by a key that does not count")
			}
			tm.press("down", "?", "?")
			if len(tm.desk.claims) != 1 {
				t.Fatalf("claimed %d times", len(tm.desk.claims))
			}
			tm.press("c")
			if got := one(t, tm); got.Claim != 501 {
				t.Errorf("answered under claim %d", got.Claim)
			}
		})
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.settle()
			tm.press("down", "esc")
			if len(tm.desk.released) != 1 || tm.m.dialog != nil {
				t.Errorf("released %v, dialog %v", tm.desk.released, tm.m.dialog != nil)
			}
		})
	})
	t.Run("an answer waits for the claim on its way", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.desk.hold = make(chan struct{})
			tm.ask(push())
			tm.settle()
			tm.press("down", "c", "c", "x")
			if len(tm.desk.answers) != 0 {
				t.Fatal("answered before the claim was there")
			}
			close(tm.desk.hold)
			synctest.Wait()
			if got := one(t, tm); got.Claim != 501 || got.Answer != events.AnswerContinue {
				t.Errorf("answered %+v", got)
			}
		})
	})
	t.Run("somebody else's claim locks, and its end starts a grace", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.settle()
			tm.desk.claimed("q1", other)
			synctest.Wait()
			tm.press("c", "x", "w", "down")
			if len(tm.desk.answers)+len(tm.desk.claims) != 0 {
				t.Fatal("a locked question took a key")
			}
			tm.desk.claimed("q1", nil)
			synctest.Wait()
			tm.press("c")
			if len(tm.desk.answers) != 0 {
				t.Fatal("freed buttons took a key at once")
			}
			tm.settle()
			tm.press("c")
			one(t, tm)
		})
	})
	t.Run("F13 one's own other screen is taken over by an answer key", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			mine := *other
			mine.Principal = "uid:1000"
			tm.ask(push())
			tm.settle()
			tm.desk.claimed("q1", &mine)
			synctest.Wait()
			tm.press("down")
			if len(tm.desk.claims) != 0 {
				t.Fatal("looking took the claim over")
			}
			tm.press("c")
			if got := one(t, tm); got.Claim != 501 {
				t.Errorf("answered %+v", got)
			}
		})
	})
	t.Run("a refusal is told in words and nothing is lost", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.desk.refuse = &events.Refused{Code: events.RejectAlreadyAnswered, Who: "ana", Answer: events.AnswerCancel}
			tm.ask(push())
			tm.settle()
			tm.press("c")
			if !strings.Contains(tm.text(), "already answered: ana cancelled") {
				t.Errorf("not told:\n%s", tm.text())
			}
		})
	})
}

func TestB102ArgumentsThatDidNotTravelAreFetched(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		q := push()
		args := q.Args
		q.Args = nil
		tm.ask(q)
		tm.settle()
		tm.press("c")
		if len(tm.desk.answers) != 0 || !strings.Contains(tm.text(), "could not be fetched") {
			t.Fatalf("answerable without being seen:\n%s", tm.text())
		}
		tm.desk.change(func() { tm.desk.args["q1 v0"] = args })
		tm.wait(450 * time.Millisecond) // just behind the next second
		tm.press("c")
		if len(tm.desk.answers) != 0 {
			t.Fatal("the grace began before the value was drawn")
		}
		tm.settle()
		if !strings.Contains(tm.text(), "git push --force") {
			t.Fatalf("not shown:\n%s", tm.text())
		}
		tm.press("c")
		one(t, tm)
		if len(tm.desk.drawn) != 1 || tm.desk.drawn[0] != q.Version.Digest {
			t.Errorf("reported as drawn: %v", tm.desk.drawn)
		}
	})
}

func TestF7OtherBytesCannotBeAnswered(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		q := push()
		q.Args = json.RawMessage(`{"command":"ls"}`)
		tm.ask(q)
		tm.settle()
		tm.press("c", "x", "w", "tab", "enter")
		if len(tm.desk.answers) != 0 {
			t.Errorf("answered %v", tm.desk.answers)
		}
	})
}

func TestB46ChangesThatDidNotTravelAreCompared(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		q := repeated()
		q.Changed = []events.Change{{Name: "command"}}
		tm.ask(q)
		tm.settle()
		tm.press("c")
		if len(tm.desk.answers) != 0 {
			t.Fatal("answerable before the change could be seen")
		}
		tm.desk.change(func() { tm.desk.args["q3 v0"] = []byte(`{"command":"terraform plan"}`) })
		tm.wait(time.Second)
		tm.settle()
		if !strings.Contains(tm.text(), "command  − terraform plan") {
			t.Errorf("not compared:\n%s", tm.text())
		}
		tm.press("c")
		one(t, tm)
	})
}

func TestB106TheListFiltersAndOpens(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		fillFake(tm.desk)
		tm.send(changedMsg{})
		tm.settle()
		tm.press("esc", "/", "c", "o", "n", "f", "i", "g")
		tm.ask(question("q9", "Bash", `{"command":"new"}`))
		if tm.m.dialog != nil || tm.m.list.filter.value() != "config" {
			t.Fatal("a new question took the filter's keys")
		}
		if got := len(tm.m.filtered()); got != 1 {
			t.Errorf("%d questions fit the filter", got)
		}
		tm.press("enter", "enter")
		if tm.m.dialog == nil || tm.m.dialog.lead().ID != "q5" {
			t.Errorf("not opened:\n%s", tm.text())
		}
		if len(tm.desk.answers) != 0 {
			t.Error("Enter answered")
		}
	})
}

func TestF11TheBottomLineTellsWhatBecameOfIt(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.wait(3100 * time.Millisecond)
		tm.press("c")
		line := events.Line{
			Operation: "op-q1", Question: "q1", State: "committed", Committed: "d", Bytes: 22, Who: "uid:1000",
			AskedAt: now() - 3_100_000, EndedAt: now(),
		}
		for _, step := range []struct {
			state events.LineState
			want  string
		}{
			{"committed", "you continued after 3.1 s → on its way"},
			{"delivered", "you continued after 3.1 s → delivered"},
			{"finished", "you continued after 3.1 s → delivered → ran, 22 bytes, same digest"},
		} {
			line.State = step.state
			if step.state == "finished" {
				line.Outcome, line.Ran = events.OutcomeOK, "d"
			}
			tm.desk.change(func() { tm.desk.lines = []events.Line{line} })
			synctest.Wait()
			if !strings.Contains(tm.text(), step.want) {
				t.Errorf("want %q in:\n%s", step.want, tm.text())
			}
		}
	})
}

func TestPasteNeverAnswers(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.settle()
		tm.send(tea.PasteMsg{Content: "c\nx\n"})
		synctest.Wait()
		tm.press("w")
		tm.send(tea.PasteMsg{Content: "two\nlines"})
		synctest.Wait()
		if len(tm.desk.answers) != 0 {
			t.Fatalf("answered %v", tm.desk.answers)
		}
		tm.press("enter")
		if got := one(t, tm); got.Text != "two\nlines" {
			t.Errorf("the words changed: %q", got.Text)
		}
	})
}

// TestQuitWaitsForNoCore: what was claimed is freed by the goodbye of the connection,
// so that one can leave while no core answers.
func TestQuitWaitsForNoCore(t *testing.T) {
	for _, key := range []string{"q", "ctrl+c"} {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.press("q")
			if tm.quit {
				t.Fatal("a key before the grace ended the program")
			}
			tm.settle()
			tm.press("down")
			tm.desk.change(func() { tm.desk.silent = true })
			tm.press(key)
			if !tm.quit {
				t.Errorf("%s waits for a core that does not answer", key)
			}
		})
	}
}

func TestOneMayLeaveWhileAnAnswerIsOnItsWay(t *testing.T) {
	for _, key := range []string{"q", "ctrl+c", "esc"} {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.settle()
			tm.desk.change(func() { tm.desk.silent = true })
			tm.press("c", "x", key)
			if tm.quit != (key != "esc") || tm.m.dialog != nil && key == "esc" {
				t.Errorf("%s does not leave:\n%s", key, tm.text())
			}
			if len(tm.desk.released) != 0 {
				t.Error("the answer on its way has lost its claim")
			}
		})
	}
}
