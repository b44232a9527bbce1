package tui

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		m := New(t.Context(), Options{Client: d, Inbox: d, Self: self, Words: words.In(words.English)})
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
			Client: d, Inbox: d, Self: self, Words: words.In(words.English), Now: func() time.Time { return clock },
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
			before := *m.dialog
			early := !counted && (clock.Sub(shown) < graceDrawn || clock.Sub(quiet) < graceQuiet)
			m.Update(keyOf(key))
			if m.dialog == nil || m.dialog.q.ID != before.q.ID || m.dialog.sending {
				if early {
					r.Fatalf("key %q came %v after the question and acted", key, clock.Sub(shown))
				}
				return
			}
			if early && (m.dialog.claim != before.claim || m.dialog.composing || m.dialog.focus != before.focus) {
				r.Fatalf("key %q came %v after the question and counted", key, clock.Sub(shown))
			}
			quiet, counted = clock, m.dialog.grace.live
			m.View()
		}
	})
}
