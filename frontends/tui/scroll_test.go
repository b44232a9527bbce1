package tui

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func TestB104RowsAreTheText(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"a", "word ", " ", "  ", "\n", "\t", "é", "e\u0301", "中文", "👩‍👩‍👧", "🇨🇳", "العربية", "⟨U+202E⟩", "-", strings.Repeat("x", 50),
	})
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(pieces, 0, 60).Draw(r, "text"), "")
		width := rapid.IntRange(12, 80).Draw(r, "width")
		w := wrap(text, width)
		at := 0
		for i := range w.rows() {
			if w.starts[i] < at || i > 0 && w.starts[i] == at && text[at-1] != '\n' {
				r.Fatalf("row %d starts at %d after %d", i, w.starts[i], at)
			}
			at = w.starts[i]
			row, _ := w.row(i)
			if got := cells(strings.TrimSuffix(row, " ")); got > width {
				r.Fatalf("row %d is %d columns wide, not %d: %q", i, got, width, row)
			}
		}
		if at > len(text) || w.starts[0] != 0 {
			r.Fatalf("rows start at %v in %d bytes", w.starts, len(text))
		}
	})
}

// TestB104ButtonsStayAndTheLastByteIsReached is HAND-02 for any window and any
// arguments: whatever is scrolled, the buttons are in the window; and from the
// first screen keys alone reach the last byte of every value.
func TestB104ButtonsStayAndTheLastByteIsReached(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		d := newDesk()
		m := New(t.Context(), Options{
			Client: d, Inbox: d, Self: self, Now: func() time.Time { return clock },
			Words: words.In(rapid.SampledFrom([]words.Language{words.English, words.Chinese}).Draw(r, "language")),
		})
		m.width, m.height = rapid.IntRange(40, 130).Draw(r, "width"), rapid.IntRange(8, 60).Draw(r, "height")
		n := rapid.IntRange(0, 9).Draw(r, "values")
		var parts, ends []string
		for i := range n {
			rows := rapid.IntRange(0, 40).Draw(r, "rows")
			end := fmt.Sprintf("END%d.", i)
			value := strings.Repeat("line\n", rows) + strings.Repeat("z", rapid.IntRange(0, 300).Draw(r, "long")) + " " + end
			parts = append(parts, fmt.Sprintf("%q:%s", fmt.Sprint("name", i), strconv.Quote(value)))
			ends = append(ends, end)
		}
		q := question("q1", "Tool", "{"+strings.Join(parts, ",")+"}")
		q.Reason = strings.Repeat("because ", rapid.IntRange(0, 60).Draw(r, "reason"))
		d.ask(q)
		m.Update(changedMsg{})
		clock = clock.Add(time.Second)
		m.Update(graceMsg{"q1"})
		seen := map[string]bool{}
		look := func() {
			checkFits(r, m)
			screen := strings.Join(plainScreen(m), "\n")
			if !strings.Contains(screen, "c "+m.w.Say(words.Continue)) || !strings.Contains(screen, "x "+m.w.Say(words.Cancel)) {
				r.Fatalf("no buttons in %d×%d:\n%s", m.width, m.height, screen)
			}
			for _, e := range ends {
				seen[e] = seen[e] || strings.Contains(screen, e)
			}
		}
		look()
		for range 2*n + 4 {
			m.Update(keyOf("end"))
			look()
			m.Update(keyOf("down")) // beyond the end: to the next value
			look()
		}
		for _, e := range ends {
			if !seen[e] {
				r.Fatalf("%s was never in sight in %d×%d:\n%s", e, m.width, m.height, strings.Join(plainScreen(m), "\n"))
			}
		}
		for range rapid.IntRange(0, 20).Draw(r, "more keys") {
			m.Update(keyOf(rapid.SampledFrom([]string{"up", "down", "pgup", "pgdown", "home", "end", "tab", "?", "y"}).Draw(r, "key")))
			look()
		}
	})
}

func TestB104HiddenTails(t *testing.T) {
	tail := ";touch M"
	for name, command := range map[string]string{
		"400 line feeds":       "echo a" + strings.Repeat("\n", 400) + tail,
		"one token of 12,000":  strings.Repeat("k", 12_000) + tail,
		"one token of 80,000":  strings.Repeat("k", 80_000) + tail,
		"2 MiB of short lines": strings.Repeat("some words\n", 190_000) + tail,
	} {
		for _, size := range sizes {
			t.Run(name+"/"+size.name, func(t *testing.T) {
				bubble(t, size.width, size.height, func(tm *terminal) {
					tm.ask(question("q1", "Bash", `{"command":`+strconv.Quote(command)+`}`))
					tm.settle()
					rows := card.Count(tm.m.dialog.values[0].need())
					if !strings.Contains(tm.text(), rows) {
						t.Errorf("the first screen does not count its %s rows:\n%s", rows, tm.text())
					}
					tm.press("end")
					if !strings.Contains(tm.text(), "touch M") {
						t.Errorf("End does not read the last:\n%s", tm.text())
					}
					tm.press("pgup", "home")
				})
			})
		}
	}
}

func TestTooSmallAWindowTakesNoAnswer(t *testing.T) {
	bubble(t, 39, 24, func(tm *terminal) {
		tm.ask(push())
		tm.settle()
		tm.press("c", "x", "w")
		if len(tm.desk.answers) != 0 {
			t.Error("answered without being shown")
		}
		for _, h := range []int{1, 2, 7} {
			tm.m.height = h
			checkFits(t, tm.m)
		}
	})
}

func benchmark(b *testing.B, size int) (*Model, *desk, *time.Time) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := newDesk()
	m := New(b.Context(), Options{
		Client: d, Inbox: d, Self: self, Words: words.In(words.English), Now: func() time.Time { return clock },
	})
	m.width, m.height = 200, 60
	d.questions = []events.Question{longQuestion(size)}
	return m, d, &clock
}

// BenchmarkFirstPaint is from the change of the inbox to the drawn frame.
func BenchmarkFirstPaint(b *testing.B) {
	for _, size := range []int{12_000, 80_000, 2 << 20} {
		b.Run(card.Count(size), func(b *testing.B) {
			for b.Loop() {
				m, _, _ := benchmark(b, size)
				m.Update(changedMsg{})
				m.View()
			}
		})
	}
}

// BenchmarkKey is from a key to the drawn frame.
func BenchmarkKey(b *testing.B) {
	for _, size := range []int{80_000, 2 << 20} {
		b.Run(card.Count(size), func(b *testing.B) {
			m, _, clock := benchmark(b, size)
			m.Update(changedMsg{})
			*clock = clock.Add(time.Second)
			for b.Loop() {
				m.Update(keyOf("pgdown"))
				m.View()
			}
		})
	}
}
