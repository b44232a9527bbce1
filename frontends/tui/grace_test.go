package tui

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

const typed = "1 yes, fix the cache\n"

func keysOf(s string) []string {
	var keys []string
	for _, r := range s {
		switch r {
		case '\n':
			keys = append(keys, "enter")
		case ' ':
			keys = append(keys, "space")
		default:
			keys = append(keys, string(r))
		}
	}
	return keys
}

// TestF9TypeAhead is HAND-10: a sentence typed at twelve keys a second, the
// question opening at each key.
func TestF9TypeAhead(t *testing.T) {
	keys := append(keysOf(typed), "y", "a", "c", "x", "enter", "esc")
	for at := range keys {
		bubble(t, 80, 24, func(tm *terminal) {
			for i, k := range keys {
				if i == at {
					tm.ask(push())
				}
				tm.press(k)
				tm.wait(time.Second / 12)
			}
			if len(tm.desk.answers) != 0 || len(tm.desk.claims) != 0 || tm.m.dialog == nil {
				t.Errorf("opened at key %d: answers %v, claims %v", at, tm.desk.answers, tm.desk.claims)
			}
		})
	}
}

func TestF9TypeAheadInTheFilterAndTheWords(t *testing.T) {
	keys := keysOf(strings.TrimSuffix(typed, "\n"))
	for at := range keys {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.press("/")
			for i, k := range keys {
				if i == at {
					tm.ask(push())
				}
				tm.press(k)
				tm.wait(time.Second / 12)
			}
			if got := tm.m.list.filter.value() + "\n"; got != typed || len(tm.desk.answers) != 0 {
				t.Errorf("at key %d the filter has %q, answers %v", at, got, tm.desk.answers)
			}
		})
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.settle()
			tm.press("w")
			for i, k := range keys {
				if i == at {
					tm.ask(longQuestion(100))
				}
				tm.press(k)
				tm.wait(time.Second / 12)
			}
			if got := tm.m.dialog.input.value() + "\n"; got != typed || len(tm.desk.answers) != 0 {
				t.Errorf("at key %d the words are %q, answers %v", at, got, tm.desk.answers)
			}
		})
	}
}

func TestF9EachQuestionHasItsOwnGrace(t *testing.T) {
	t.Run("swapped between two keys 400 ms apart", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.ask(longQuestion(100))
			tm.settle()
			tm.desk.end("q1", events.EndInterrupted)
			synctest.Wait()
			tm.wait(400 * time.Millisecond)
			tm.press("c")
			if len(tm.desk.answers) != 0 {
				t.Fatal("the swapped question took the key")
			}
			tm.wait(400 * time.Millisecond)
			tm.press("c")
			if len(tm.desk.answers) != 0 {
				t.Fatal("a key within 500 ms of another one answered")
			}
			tm.settle()
			tm.press("c")
			if got := one(t, tm); got.Question != "q2" {
				t.Errorf("answered %s", got.Question)
			}
		})
	})
	t.Run("n and N", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.ask(longQuestion(100))
			tm.settle()
			tm.press("n", "c")
			tm.settle()
			tm.press("N", "c")
			if len(tm.desk.answers) != 0 {
				t.Error("a question that has just been turned to took a key")
			}
		})
	})
	t.Run("drawn for 500 ms, to the millisecond", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			tm.wait(graceDrawn)
			tm.press("c")
			if len(tm.desk.answers) != 0 {
				t.Fatal("too early")
			}
			tm.wait(graceQuiet)
			tm.press("c")
			one(t, tm)
		})
	})
	t.Run("dimmed buttons say so", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.ask(push())
			if !strings.Contains(tm.text(), "· Continue") || strings.Contains(tm.text(), "c Continue") {
				t.Errorf("live buttons:\n%s", tm.text())
			}
			tm.settle()
			if !strings.Contains(tm.text(), "c Continue") {
				t.Errorf("dim buttons:\n%s", tm.text())
			}
		})
	})
}

// TestF9AStoppedProgram: keys that gathered while the program did not run were
// typed before what it shows now could be read.
func TestF9AStoppedProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		m := New(t.Context(), Options{Client: d, Inbox: d, Self: self, Principal: func() string { return "uid:1000" }, Words: words.In(words.English)})
		d.ask(push())
		m.Update(changedMsg{})
		<-time.After(time.Hour) // fake time: the ticks that would come are never delivered
		m.Update(keyOf("c"))
		m.Update(keyOf("c"))
		if m.dialog.sending {
			t.Error("a key from before the stop answered")
		}
	})
}

// TestF9NoEarlyKeyAnswers types anything at any time: no key that comes before
// the question was on the screen for 500 ms, or within 500 ms of a key that did
// not count, claims or answers.
func TestF9NoEarlyKeyAnswers(t *testing.T) {
	alphabet := []string{
		"c", "x", "w", "y", "a", "e", "1", "enter", "space", "tab", "esc", "?", "n", "N", "up", "down", "end", "q",
	}
	rapid.Check(t, func(r *rapid.T) {
		width, height := rapid.IntRange(40, 120).Draw(r, "width"), rapid.IntRange(8, 40).Draw(r, "height")
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		d := newDesk()
		m := New(t.Context(), Options{
			Client: d, Inbox: d, Self: self, Principal: func() string { return "uid:1000" }, Words: words.In(words.English), Now: func() time.Time { return clock },
		})
		m.width, m.height = width, height
		d.ask(push())
		d.ask(longQuestion(300))
		m.Update(changedMsg{})
		shown, quiet := clock, clock
		counted := false
		for range rapid.IntRange(1, 30).Draw(r, "keys") {
			clock = clock.Add(time.Duration(rapid.IntRange(0, 700).Draw(r, "pause")) * time.Millisecond)
			key := rapid.SampledFrom(alphabet).Draw(r, "key")
			before, claims := *m.dialog, len(m.dialog.claims)
			early := !counted && (clock.Sub(shown) < graceDrawn || clock.Sub(quiet) < graceQuiet)
			m.Update(keyOf(key))
			if m.dialog == nil || m.dialog.lead().ID != before.lead().ID || m.dialog.sending {
				if early {
					r.Fatalf("key %q came %v after the question and acted", key, clock.Sub(shown))
				}
				return
			}
			if early && (len(m.dialog.claims) != claims || m.dialog.composing || m.dialog.focus != before.focus) {
				r.Fatalf("key %q came %v after the question and counted", key, clock.Sub(shown))
			}
			quiet, counted = clock, m.dialog.grace.live
			m.View()
		}
	})
}

// TestF9ClicksObeyTheGrace is HAND-10 with a mouse: a click on a button counts when
// its key would, and never for a question that took the place of another.
func TestF9ClicksObeyTheGrace(t *testing.T) {
	click := func(tm *terminal, word string) {
		t.Helper()
		for y, line := range strings.Split(tm.text(), "\n") {
			if x := strings.Index(line, word); x >= 0 && strings.Contains(line, "Cancel with") {
				tm.send(tea.MouseClickMsg{X: cells(line[:x]) + 1, Y: y, Button: tea.MouseLeft})
				synctest.Wait()
				return
			}
		}
		t.Fatalf("no %s:\n%s", word, tm.text())
	}
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		for range 8 {
			click(tm, "Continue")
			tm.wait(100 * time.Millisecond)
		}
		if len(tm.desk.answers)+len(tm.desk.claims) != 0 {
			t.Fatalf("early clicks answered %v, claimed %v", tm.desk.answers, tm.desk.claims)
		}
		tm.wait(graceQuiet)
		click(tm, "Continue")
		one(t, tm)
	})
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.ask(longQuestion(100))
		tm.settle()
		tm.text()
		tm.mu.Lock() // the screen that the person saw, and a click into it behind the swap
		zones := slices.Clone(tm.m.zones)
		tm.mu.Unlock()
		tm.desk.end("q1", events.EndInterrupted)
		synctest.Wait()
		tm.settle()
		for _, z := range zones {
			if cmd := z.act(); cmd != nil {
				t.Error("a click on what is gone does something")
			}
		}
		if len(tm.desk.answers) != 0 {
			t.Fatal("a click that meant the question before answered the next one")
		}
	})
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.settle()
		tm.text()
		click(tm, "Cancel with")
		tm.press("n", "o")
		tm.send(tea.PasteMsg{Content: " more"})
		synctest.Wait()
		tm.press("enter")
		if got := one(t, tm); got.Text != "no more" || got.Answer != events.AnswerCancel {
			t.Errorf("answered %+v", got)
		}
	})
}

// topRow is the first row in sight of the first value.
func (tm *terminal) topRow() (top int) {
	tm.look(func(m *Model) { top = m.dialog.values[0].top })
	return top
}

// TestF9TheWheelOnlyLooks turns the wheel over a value at any time.
func TestF9TheWheelOnlyLooks(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(longQuestion(20_000))
		tm.text()
		tm.send(tea.MouseWheelMsg{X: 20, Y: 6, Button: tea.MouseWheelDown})
		synctest.Wait()
		if top := tm.topRow(); top == 0 || len(tm.desk.claims) != 0 {
			t.Errorf("at row %d, claims %v", top, tm.desk.claims)
		}
		tm.settle()
		tm.text()
		tm.send(tea.MouseWheelMsg{X: 20, Y: 6, Button: tea.MouseWheelUp})
		synctest.Wait()
		if top := tm.topRow(); top != 0 || len(tm.desk.claims) != 1 {
			t.Errorf("back at row %d, claims %v", top, tm.desk.claims)
		}
	})
}

// TestF9SwapAtEachKey swaps the visible question between two keys, at each key of
// what somebody types: neither the one that came nor the one that left is answered.
func TestF9SwapAtEachKey(t *testing.T) {
	keys := append(keysOf(typed), "y", "a", "c", "x", "enter", "esc", "space")
	for at := range keys {
		for _, pause := range []time.Duration{time.Second / 12, 400 * time.Millisecond} {
			bubble(t, 80, 24, func(tm *terminal) {
				tm.ask(push())
				tm.ask(longQuestion(100))
				for i, k := range keys {
					if i == at {
						tm.desk.end("q1", events.EndInterrupted)
						synctest.Wait()
					}
					tm.press(k)
					tm.wait(pause)
				}
				if len(tm.desk.answers)+len(tm.desk.claims) != 0 {
					t.Errorf("swapped at key %d, a key each %v: answers %v, claims %v", at, pause, tm.desk.answers, tm.desk.claims)
				}
			})
		}
	}
}

// stepped is a screen whose clock moves only when the test says so.
func stepped(t *testing.T) (m *Model, d *desk, pass func(time.Duration)) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d = newDesk()
	m = New(t.Context(), Options{
		Client: d, Inbox: d, Self: self, Principal: func() string { return "uid:1000" }, Now: func() time.Time { return clock },
	})
	return m, d, func(by time.Duration) { clock = clock.Add(by) }
}

// TestF9WhatIsSlowToDrawTakesNoKeysThatWereTypedBefore: an agent chooses how long its
// question takes to lay out, and what is typed meanwhile is read only afterwards.
func TestF9WhatIsSlowToDrawTakesNoKeysThatWereTypedBefore(t *testing.T) {
	press := func(m *Model, d *desk) int {
		if _, cmd := m.Update(tea.KeyPressMsg{Code: 'c', Text: "c"}); m.dialog.sending {
			_ = cmd
			return 1
		}
		m.View()
		return len(d.answers)
	}
	t.Run("the question itself", func(t *testing.T) {
		m, d, pass := stepped(t)
		d.questions = []events.Question{push()}
		m.Update(changedMsg{})
		pass(700 * time.Millisecond)
		m.View()
		for range 3 {
			if pass(time.Millisecond); press(m, d) != 0 {
				t.Fatal("a key from before the question was drawn answered it")
			}
		}
		pass(graceDrawn + 2*frame)
		if press(m, d) != 1 {
			t.Error("keys do not count after the grace")
		}
	})
	t.Run("something else, later", func(t *testing.T) {
		m, d, pass := stepped(t)
		d.questions = []events.Question{push()}
		m.Update(changedMsg{})
		m.View()
		pass(100 * time.Millisecond)
		m.Update(changedMsg{})
		pass(600 * time.Millisecond) // a key is typed here
		m.View()
		if press(m, d) != 0 {
			t.Error("a key that was typed within the grace answered")
		}
	})
}

// TestF9AQuestionThatNoWindowCouldShowHasItsGraceWhenItIsDrawn: it waited behind "too
// small", and nobody has read it.
func TestF9AQuestionThatNoWindowCouldShowHasItsGraceWhenItIsDrawn(t *testing.T) {
	bubble(t, 30, 6, func(tm *terminal) {
		tm.ask(push())
		tm.wait(5 * time.Second)
		if len(tm.desk.drawn) != 0 {
			t.Error("reported as drawn")
		}
		tm.press("o", "c")
		tm.send(tea.WindowSizeMsg{Width: 80, Height: 24})
		tm.press("c", "c")
		if len(tm.desk.answers) != 0 {
			t.Fatal("a key from before it could be read answered")
		}
		tm.settle()
		if len(tm.desk.drawn) != 1 {
			t.Errorf("drawn %d times", len(tm.desk.drawn))
		}
		tm.press("c")
		one(t, tm)
	})
	bubble(t, 30, 6, func(tm *terminal) {
		tm.ask(push())
		tm.press("q")
		if !tm.quit {
			t.Error("a window that is too small cannot be left")
		}
	})
}
