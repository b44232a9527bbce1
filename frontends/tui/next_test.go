package tui

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
)

// open is the question on the screen, "" for none.
func (tm *terminal) open() (id events.ID) {
	tm.look(func(m *Model) {
		if m.dialog != nil {
			id = m.dialog.lead().ID
		}
	})
	return id
}

// ending asks with a limit.
func ending(id string, in time.Duration) events.Question {
	q := numbered(id, "make "+id)
	q.Deadline = events.At(time.Now().Add(in))
	return q
}

// TestB106NoQuestionJumpsOverAPage: whoever reads a page beside the list is told there
// that something waits, and it opens once the page is left.
func TestB106NoQuestionJumpsOverAPage(t *testing.T) {
	for _, keys := range [][]string{{"h"}, {"?"}, {"h", "enter"}, {"enter"}} {
		for _, back := range []string{"q", "esc"} {
			t.Run(strings.Join(append(keys, back), " "), func(t *testing.T) {
				bubble(t, 80, 24, func(tm *terminal) {
					tm.desk.change(func() { tm.desk.runs, tm.desk.lines = someRuns(), someLines() })
					synctest.Wait()
					tm.press(keys...)
					tm.ask(push())
					if tm.open() != "" {
						t.Fatalf("a question jumped over the page:\n%s", tm.text())
					}
					head, _, _ := strings.Cut(tm.text(), "\n")
					if !strings.HasSuffix(head, "1 waiting") {
						t.Errorf("the header does not tell that it waits: %q", head)
					}
					tm.desk.change(func() { tm.desk.detached = true })
					synctest.Wait()
					if head, _, _ := strings.Cut(tm.text(), "\n"); !strings.Contains(head, "no core") {
						t.Errorf("the header does not tell of the lost core: %q", head)
					}
					tm.press(back)
					if back == "esc" && keys[len(keys)-1] == "enter" && keys[0] == "h" {
						tm.press(back)
					}
					if tm.left() || tm.open() != "q1" {
						t.Errorf("back in the list it does not open:\n%s", tm.text())
					}
				})
			})
		}
	}
}

func TestB106NoQuestionJumpsOverTicks(t *testing.T) {
	for _, untick := range [][]string{{"esc"}, {"home", "space"}, {"a", "a"}} {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(numbered("a", "make a"))
			tm.settle()
			tm.press("esc", "space")
			tm.ask(push())
			if tm.open() != "" {
				t.Fatalf("a question jumped over the ticks:\n%s", tm.text())
			}
			tm.press(untick...)
			if tm.open() != "q1" {
				t.Errorf("%v: without ticks it does not open:\n%s", untick, tm.text())
			}
		})
	}
}

// TestB106WhatEndsSoonestOpensFirst: what opens is what was named as next: the oldest,
// unless another one has little time left.
func TestB106WhatEndsSoonestOpensFirst(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.desk.change(func() {
			tm.desk.questions = []events.Question{
				numbered("old", "make old"), ending("long", time.Hour), ending("soon", 50*time.Second), ending("sooner", 40*time.Second),
			}
		})
		for _, want := range []events.ID{"sooner", "soon", "old", "long"} {
			synctest.Wait()
			if tm.open() != want {
				t.Fatalf("%q is open, want %q", tm.open(), want)
			}
			var next []events.Question
			tm.look(func(m *Model) { next = m.upNext(m.dialog) })
			tm.desk.end(want, events.EndTurnEnded)
			synctest.Wait()
			if len(next) > 0 && tm.open() != next[0].ID || len(next) == 0 && tm.open() != "" {
				t.Fatalf("%q opened after %q, which named %v", tm.open(), want, idsOf(next))
			}
		}
	})
	t.Run("its last half counts too", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(numbered("old", "make old"))
			tm.ask(ending("long", time.Hour))
			for minutes, want := range map[int]events.ID{29: "old", 31: "long"} {
				tm.look(func(m *Model) {
					m.now = time.Now().Add(time.Duration(minutes) * time.Minute)
					if got := m.upNext(nil)[0].ID; got != want {
						t.Errorf("after %d minutes %q is first, want %q", minutes, got, want)
					}
				})
			}
		})
	})
	t.Run("what was put aside is not next", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(numbered("a", "make a"))
			tm.ask(numbered("b", "make b"))
			tm.settle()
			tm.press("esc", "enter")
			tm.look(func(m *Model) {
				if m.dialog == nil || m.upNext(m.dialog) != nil {
					t.Errorf("%v is named as next", idsOf(m.upNext(m.dialog)))
				}
			})
			tm.settle()
			tm.press("esc", "n")
			if tm.open() != "a" {
				t.Errorf("n opens %q", tm.open())
			}
		})
	})
}

func TestB106TheHeaderNamesTheSoonestEnd(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(ending("a", 61*time.Second))
		tm.ask(ending("b", 90*time.Second))
		tm.settle()
		tm.press("esc")
		if strings.Contains(tm.text(), "ends in") {
			t.Errorf("too early:\n%s", tm.text())
		}
		tm.wait(24 * time.Second)
		var head string
		tm.look(func(m *Model) { head, _, _ = strings.Cut(m.View().Content, "\n") })
		if !strings.Contains(head, newStyles(true).warn.Render("1 ends in 0:37")) {
			t.Errorf("%q", head)
		}
	})
}

// TestB106TheOldestOpensFirstAfterAttaching: lists of several sessions come one after
// the other.
func TestB106TheOldestOpensFirstAfterAttaching(t *testing.T) {
	for _, completes := range []bool{true, false} {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.desk.change(func() { tm.desk.detached = true })
			old := numbered("old", "make old")
			tm.wait(time.Second)
			tm.desk.change(func() { tm.desk.detached, tm.desk.filling = false, true })
			tm.ask(numbered("young", "make young"))
			tm.wait(500 * time.Millisecond)
			if tm.open() != "" {
				t.Fatalf("%q opened before all were there", tm.open())
			}
			if completes {
				tm.desk.mu.Lock()
				tm.desk.filling, tm.desk.questions = false, append([]events.Question{old}, tm.desk.questions...)
				tm.desk.mu.Unlock() // not told: the screen looks by itself
				tm.wait(2 * restBetween)
				if tm.open() != "old" {
					t.Errorf("%q opened first", tm.open())
				}
				return
			}
			tm.wait(600 * time.Millisecond)
			if tm.open() != "young" {
				t.Error("it waits without end")
			}
		})
	}
}

func TestB106ACutHistorySaysSo(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.desk.change(func() {
			tm.desk.lines = someLines()
			for i := range 30 {
				tm.desk.questions = append(tm.desk.questions, numbered(fmt.Sprint("n", i), fmt.Sprint("make ", i)))
			}
		})
		synctest.Wait()
		tm.settle()
		tm.press("esc")
		if !strings.Contains(tm.text(), "─ earlier · 3 of 12 ─") || !strings.Contains(tm.text(), "more below") {
			t.Errorf("not told:\n%s", tm.text())
		}
		tm.desk.change(func() { tm.desk.questions = tm.desk.questions[:2] })
		synctest.Wait()
		if !strings.Contains(tm.text(), "─ earlier ──") {
			t.Errorf("told without need:\n%s", tm.text())
		}
	})
}

func TestB106AllRowsAreTickedAtOnce(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		for _, id := range []string{"a", "b", "c"} {
			tm.ask(numbered(id, "make "+id))
		}
		tm.ask(numbered("d", "npm test"))
		tm.settle()
		tm.press("esc", "/", "m", "a", "k", "e", "enter")
		if !strings.Contains(tm.text(), "3 of 4 waiting") {
			t.Errorf("the filter is not counted:\n%s", tm.text())
		}
		tm.press("a")
		for _, want := range []string{"3 ticked", "Enter open ticked", "Esc untick"} {
			if !strings.Contains(tm.text(), want) {
				t.Errorf("%q is missing:\n%s", want, tm.text())
			}
		}
		tm.press("a")
		if strings.Contains(tm.text(), "3 ticked") {
			t.Errorf("a did not take the ticks back:\n%s", tm.text())
		}
		tm.press("a", "/", "backspace", "backspace", "backspace", "backspace", "n", "p", "m", "enter")
		if !strings.Contains(tm.text(), "3 ticked, 3 not shown") {
			t.Errorf("hidden ticks are not counted:\n%s", tm.text())
		}
		if len(tm.desk.claims)+len(tm.desk.answers) != 0 {
			t.Error("a tick claimed or answered")
		}
	})
}

// TestF11TheLineAboutAnEndGoes: with the next key, or after a while.
func TestF11TheLineAboutAnEndGoes(t *testing.T) {
	for _, key := range []string{"", "j", "h"} {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.settle()
			tm.press("c")
			tm.wait(endStands - time.Second)
			if !strings.Contains(tm.text(), "you continued after") {
				t.Fatalf("gone too early:\n%s", tm.text())
			}
			if key != "" {
				tm.press(key, "q")
			} else {
				tm.wait(2 * time.Second)
			}
			if strings.Contains(tm.text(), "you continued after") {
				t.Errorf("%q: still there:\n%s", key, tm.text())
			}
		})
	}
}

// TestB109OnlySessionsThatWaitAreCounted: open sessions in which nothing waits are not.
func TestB109OnlySessionsThatWaitAreCounted(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.desk.sessions = []events.SessionHead{{Session: "sess"}, {Session: "two"}, {Session: "three"}}
		tm.ask(push())
		tm.settle()
		tm.press("esc")
		if strings.Contains(tm.text(), "sessions") {
			t.Errorf("one session:\n%s", tm.text())
		}
		q := numbered("a", "make a")
		q.Session = "two"
		tm.ask(q)
		tm.settle()
		tm.press("esc")
		if !strings.Contains(tm.text(), "2 sessions") {
			t.Errorf("two sessions:\n%s", tm.text())
		}
	})
}

// TestB109RowsOfDifferentSessionsDiffer has the same call three times.
func TestB109RowsOfDifferentSessionsDiffer(t *testing.T) {
	for _, width := range []int{50, 80, 140} {
		bubble(t, width, 24, func(tm *terminal) {
			tm.desk.change(func() {
				for i, session := range []events.Token{"one", "two", "child"} {
					q := numbered(string(session), "npm test")
					q.Session = session
					if session == "child" {
						q.Path = "main > tests#1"
					}
					tm.desk.questions = append(tm.desk.questions, q)
					tm.desk.sessions = append(tm.desk.sessions, events.SessionHead{Session: session, Native: fmt.Sprint("0b5c-77a", i)})
				}
			})
			tm.settle()
			tm.press("esc")
			rows := waits(tm)
			for i, want := range []string{"77a0", "77a1", "tests#1"} {
				if len(rows) != 3 || !strings.Contains(rows[i], want) {
					t.Fatalf("%d columns: %q has no %q", width, rows, want)
				}
			}
			if strings.Contains(rows[2], "77a2") {
				t.Errorf("the sub-agent tells enough: %q", rows[2])
			}
		})
	}
}

func TestB106APathIsCutAtItsFront(t *testing.T) {
	for in, want := range map[string]string{
		"/home/ana/src/myproj/pay.go": "…c/myproj/pay.go",
		"git push origin a/b/c/d":     "git push origin…",
		"https://example.org/a/b/c":   "https://example…",
		"src/pay.ts":                  "src/pay.ts",
	} {
		if got := fitAbout(in, 16); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	long := "/" + strings.Repeat("directory/", 40) + "pay.go"
	if got := clip(long); !strings.HasSuffix(got, "/pay.go") || cells(got) > 200 {
		t.Errorf("%q", got)
	}
}

func TestTheMouseWorksInTheHeader(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.click(t, "? help")
		if tm.m.on != screenHelp {
			t.Fatalf("no help:\n%s", tm.text())
		}
		tm.press("q")
		tm.click(t, "/ filter")
		if tm.press("n", "p", "m"); tm.m.list.filter.value() != "npm" {
			t.Fatalf("no filter:\n%s", tm.text())
		}
		tm.press("enter")
		head, _, _ := strings.Cut(tm.text(), "\n")
		tm.send(tea.MouseClickMsg{X: cells(head) - 1, Y: 0, Button: tea.MouseLeft})
		synctest.Wait()
		if !tm.m.list.filtering {
			t.Errorf("the filter in the header is none:\n%s", tm.text())
		}
	})
}
