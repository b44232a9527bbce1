package tui

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// TestKeyLettersAreBold holds without colours too: a terminal that shows none
// still shows bold.
func TestKeyLettersAreBold(t *testing.T) {
	for _, size := range sizes {
		bubble(t, size.width, size.height, func(tm *terminal) {
			bold := func(keys ...string) {
				t.Helper()
				screen := tm.m.View().Content
				for _, k := range keys {
					if !strings.Contains(screen, "\x1b[1m"+k+"\x1b[m") && !strings.Contains(screen, "\x1b[1;36m"+k+"\x1b[m") {
						t.Errorf("%s: %s is not bold in %q", size.name, k, screen)
					}
				}
			}
			bold("h", "q")
			tm.ask(push())
			tm.settle()
			bold("c", "x", "w", "?", "Esc")
		})
	}
}

func TestB104ASpaceBeyondTheEdgeCostsNoLetter(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		value := strings.Repeat("x", 67) + " behind" // the space is in column 68 of 67
		tm.ask(question("q1", "Bash", fmt.Sprintf(`{"command":%q}`, value)))
		tm.settle()
		if text := tm.text(); strings.Contains(text, "…") || !strings.Contains(text, "behind") {
			t.Errorf("a letter gave way to an ellipsis:\n%s", text)
		}
	})
}

func TestB104ALineFeedAtTheEndHasItsSign(t *testing.T) {
	for value, rows := range map[string][]string{
		"a\n":                         {"│ a", "  ⏎ ends with a line break"},
		"a\n\n":                       {"│ a", "│", "  ⏎ ends with a line break"},
		"\n":                          {"│", "  ⏎ ends with a line break"},
		"a":                           {"│ a"},
		"a\n⏎ ends with a line break": {"│ a", "│ ⏎ ends with a line break"},
	} {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(question("q1", "Write", fmt.Sprintf(`{"content":%q}`, value)))
			tm.settle()
			var got []string
			for _, l := range plainScreen(tm.m)[4:] {
				if l == "" {
					break
				}
				got = append(got, strings.TrimPrefix(strings.TrimPrefix(l, " content  "), "          "))
			}
			if strings.Join(got, "\n") != strings.Join(rows, "\n") {
				t.Errorf("%q: %q, want %q", value, got, rows)
			}
		})
	}
}

func TestFitPlaceKeepsTheLine(t *testing.T) {
	for _, c := range []struct {
		place string
		width int
		want  string
	}{
		{".fermata/hooks.yaml:6", 30, ".fermata/hooks.yaml:6"},
		{"~/work/a/long/way/.fermata/hooks.yaml:1204", 28, "~/work/a/lo…/hooks.yaml:1204"},
		{"hooks.yaml:14", 8, "ho…ml:14"},
	} {
		if got := fitPlace(c.place, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.place, c.width, got, c.want)
		}
	}
}

// TestTheEntryShowsItsCursor has any words in any window: the cursor is in
// sight, and what has room is whole.
func TestTheEntryShowsItsCursor(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"a", "word ", " ", "\n", "\t", "é", "e\u0301", "中文", "👩‍👩‍👧", "\u202e", strings.Repeat("x", 40)})
	style := newStyles(true)
	rapid.Check(t, func(r *rapid.T) {
		var e entry
		e.set(strings.Join(rapid.SliceOfN(pieces, 0, 40).Draw(r, "text"), ""))
		for range rapid.IntRange(0, 60).Draw(r, "left") {
			e.write(keyOf("left"))
		}
		width, rows := rapid.IntRange(14, 80).Draw(r, "width"), rapid.IntRange(1, 6).Draw(r, "rows")
		shown := e.view(style, width, rows)
		if len(shown) > rows || strings.Count(strings.Join(shown, ""), "\x1b[7m") != 1 {
			r.Fatalf("%d rows of %d, cursor in %q", len(shown), rows, shown)
		}
		for _, row := range shown {
			if cells(strings.TrimRight(ansi.Strip(row), " ")) > width {
				r.Fatalf("%q is wider than %d", row, width)
			}
		}
	})
}

// TestB104WhatIsWrittenPushesNothingOut has long words in any window.
func TestB104WhatIsWrittenPushesNothingOut(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		width, height := rapid.IntRange(40, 130).Draw(r, "width"), rapid.IntRange(8, 40).Draw(r, "height")
		n, marked := rapid.IntRange(0, 120).Draw(r, "words"), rapid.Bool().Draw(r, "marked")
		bubble(t, width, height, func(tm *terminal) {
			q := push()
			if marked {
				q = tricky()
			}
			tm.ask(q)
			tm.settle()
			tm.press("w")
			tm.send(tea.PasteMsg{Content: strings.Repeat("words ", n) + "END."})
			synctest.Wait()
			checkFits(r, tm.m)
			if text := tm.text(); !strings.Contains(text, "END.") || !strings.Contains(text, "Enter cancel") || !strings.Contains(text, "Esc back") {
				r.Fatalf("%d×%d:\n%s", width, height, text)
			}
		})
	})
}

func TestB125ChineseHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tm := newTerminal(t.Context(), 80, 24, words.Chinese)
		defer tm.close()
		tm.ask(push())
		tm.wait(graceDrawn * 5)
		tm.press("c")
		tm.desk.change(func() {
			tm.desk.lines = []events.Line{{
				Operation: "op-q1", Question: "q1", State: "finished", Who: "uid:1000", At: now(),
				AskedAt: now() - 2_500_000, EndedAt: now(),
				Outcome: events.OutcomeOK, Ran: "d", Committed: "d", Bytes: 22,
			}}
		})
		synctest.Wait()
		for _, want := range []string{"你，2.5 秒 → 已运行", "2.5 秒后由你选择了继续 → 已送达 → 已运行，22 字节，摘要一致"} {
			if !strings.Contains(tm.text(), want) {
				t.Errorf("%q is not in\n%s", want, tm.text())
			}
		}
	})
}

func TestF11TheNextQuestionHasNothingOfTheLast(t *testing.T) {
	line := events.Line{Operation: "op-q1", Question: "q1", State: "delivered", Committed: "d", Who: "uid:1000"}
	for _, size := range sizes {
		bubble(t, size.width, size.height, func(tm *terminal) {
			tm.ask(push())
			tm.ask(tricky())
			tm.wait(2500 * time.Millisecond)
			tm.press("c")
			line.AskedAt, line.EndedAt = now()-2_500_000, now()
			tm.desk.change(func() { tm.desk.lines = []events.Line{line} })
			tm.settle()
			if tm.m.dialog == nil || tm.m.dialog.lead().ID != "q4" || strings.Contains(tm.text(), "continued") {
				t.Errorf("%s: the next question looks answered:\n%s", size.name, tm.text())
			}
			tm.press("esc")
			if !strings.Contains(tm.text(), "you continued after 2.5 s") {
				t.Errorf("%s: the list does not tell what became of it:\n%s", size.name, tm.text())
			}
		})
	}
}

func TestARefusalNamesItsQuestionUnderAnotherOne(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.ask(longQuestion(100))
		tm.settle()
		tm.desk.refuse = &events.Refused{Code: events.RejectAlreadyAnswered, Who: "ana", Answer: events.AnswerCancel}
		tm.desk.hold = make(chan struct{})
		tm.press("down", "c") // the answer waits for the claim
		tm.desk.end("q1", events.EndCancel)
		close(tm.desk.hold)
		synctest.Wait()
		if strings.Contains(tm.text(), "already answered") {
			t.Errorf("a refused claim on a question that has gone is told:\n%s", tm.text())
		}
		tm.send(answerMsg{
			decision{answer: events.AnswerContinue},
			map[events.ID]sent{"q1": {tool: "Bash"}},
			[]frontends.Result{{Question: "q1", Err: tm.desk.refuse}},
		})
		synctest.Wait()
		if !strings.Contains(tm.text(), "your answer to Bash: already answered: ana cancelled") {
			t.Errorf("the refusal does not name its question:\n%s", tm.text())
		}
	})
}

// TestB102TheWarningStays has every state of a question whose text could
// deceive: none takes the warning's place.
func TestB102TheWarningStays(t *testing.T) {
	other := &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Principal: "ana", Name: "root", Since: 1, Claim: 9}
	mine := *other
	mine.Principal = "uid:1000"
	for _, size := range sizes {
		for name, reach := range map[string]func(*terminal){
			"fresh":        func(*terminal) {},
			"looked at":    func(tm *terminal) { tm.settle(); tm.press("down") },
			"writing":      func(tm *terminal) { tm.settle(); tm.press("w", "n", "o") },
			"somebody's":   func(tm *terminal) { tm.desk.claimed("q4", other) },
			"one's own":    func(tm *terminal) { tm.desk.claimed("q4", &mine) },
			"on its way":   func(tm *terminal) { tm.settle(); tm.desk.hold = make(chan struct{}); tm.press("down", "c") },
			"details":      func(tm *terminal) { tm.settle(); tm.press("?") },
			"words copied": func(tm *terminal) { tm.settle(); tm.press("y") },
		} {
			t.Run(size.name+"/"+name, func(t *testing.T) {
				bubble(t, size.width, size.height, func(tm *terminal) {
					tm.ask(tricky())
					reach(tm)
					synctest.Wait()
					checkFits(t, tm.m)
					if !strings.Contains(tm.text(), "3 marked") {
						t.Errorf("the warning is gone:\n%s", tm.text())
					}
					if tm.desk.hold != nil {
						close(tm.desk.hold)
					}
				})
			})
		}
	}
}

func TestStatesNeedNoColours(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		seen := map[string]bool{}
		note := func(state string) {
			if text := tm.text(); seen[text] {
				t.Errorf("%s looks like an earlier state without colours:\n%s", state, text)
			} else {
				seen[text] = true
			}
		}
		tm.ask(push())
		note("fresh")
		tm.settle()
		note("live")
		tm.press("down")
		note("claimed by this screen")
		tm.press("tab", "tab", "tab", "tab")
		note("a button has the focus")
		tm.press("w")
		note("writing")
	})
}

func TestTimeLeftWarnsInItsLastFifth(t *testing.T) {
	m := New(t.Context(), Options{Now: time.Now, Principal: func() string { return "uid:1000" }})
	m.now = time.Unix(1000, 0)
	for _, c := range []struct {
		asked, deadline int64
		want            bool
	}{{990, 0, false}, {920, 1030, false}, {920, 1020, true}, {920, 1010, true}, {900, 990, true}} {
		q := events.Question{AskedAt: events.At(time.Unix(c.asked, 0))}
		if c.deadline > 0 {
			q.Deadline = events.At(time.Unix(c.deadline, 0))
		}
		text, urgent := m.times(q)
		if urgent != c.want || strings.Contains(text, "left") != (c.deadline > 0) {
			t.Errorf("%+v: %q, urgent %v", c, text, urgent)
		}
	}
}

func TestB108ARepeatNamesItsChanges(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(repeated())
		tm.settle()
		for _, want := range []string{
			"asked again, 1 of 3", "changed command, timeout",
			"− terraform apply", "+ terraform apply -var region=eu-west-1", "(not there before)", "+ 60",
		} {
			if !strings.Contains(tm.text(), want) {
				t.Errorf("%q is missing:\n%s", want, tm.text())
			}
		}
	})
}

// TestDetailsFollowTheWindow: a window that changes its size shows the details as
// if they had been opened in it.
func TestDetailsFollowTheWindow(t *testing.T) {
	for _, from := range []int{40, 200} {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(tricky())
			tm.settle()
			tm.press("?")
			want := tm.text()
			tm.send(tea.WindowSizeMsg{Width: from, Height: 24})
			synctest.Wait()
			tm.press("?", "?")
			tm.send(tea.WindowSizeMsg{Width: 80, Height: 24})
			synctest.Wait()
			if got := tm.text(); got != want {
				t.Errorf("opened at %d, seen at 80:\n%s\nwant:\n%s", from, got, want)
			}
		})
	}
}
