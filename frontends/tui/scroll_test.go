package tui

import (
	"fmt"
	"slices"
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
		for i := range w.Len() {
			if w.Start(i) < at || i > 0 && w.Start(i) == at && text[at-1] != '\n' {
				r.Fatalf("row %d starts at %d after %d", i, w.Start(i), at)
			}
			at = w.Start(i)
			row, _ := w.Row(i)
			if got := cells(strings.TrimSuffix(row, " ")); got > width {
				r.Fatalf("row %d is %d columns wide, not %d: %q", i, got, width, row)
			}
		}
		if at > len(text) || w.Start(0) != 0 {
			r.Fatalf("rows start at %d in %d bytes", w.Start(0), len(text))
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
			Client: d, Inbox: d, Self: self, Principal: func() string { return "uid:1000" }, Now: func() time.Time { return clock },
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
		m.View() // keys count from when it was drawn
		clock = clock.Add(time.Second)
		m.Update(graceMsg{m.dialog})
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
		Client: d, Inbox: d, Self: self, Principal: func() string { return "uid:1000" }, Words: words.In(words.English), Now: func() time.Time { return clock },
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
				m.View() // keys count from when it was drawn
				m.View()
			}
		})
	}
	b.Run("edit of 80,000", func(b *testing.B) {
		q := longEdit(80_000)
		for b.Loop() {
			m, d, _ := benchmark(b, 100)
			d.questions = []events.Question{q}
			m.Update(changedMsg{})
			m.View() // keys count from when it was drawn
			m.View()
		}
	})
}

// BenchmarkKey is from a key to the drawn frame, each key at another place of the
// value. It prints the time that 95 of 100 keys stay under.
func BenchmarkKey(b *testing.B) {
	for _, c := range []struct {
		name string
		q    events.Question
	}{
		{"80,000", longQuestion(80_000)},
		{"2,097,152", longQuestion(2 << 20)},
		{"edit of 80,000", longEdit(80_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			m, d, clock := benchmark(b, 100)
			d.questions = []events.Question{c.q}
			m.Update(changedMsg{})
			m.View() // keys count from when it was drawn
			*clock = clock.Add(time.Second)
			keys := []string{"pgdown", "end", "up", "pgup", "home", "down", "?", "?", "tab"}
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				m.Update(keyOf(keys[i%len(keys)]))
				m.View()
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// longEdit replaces every tenth line of a file of so many characters.
func longEdit(n int) events.Question {
	var before, after strings.Builder
	for i := 0; before.Len() < n; i++ {
		fmt.Fprintf(&before, "line %d of a long file, with a few words in it\n", i)
		if i%10 == 0 {
			fmt.Fprintf(&after, "line %d is another one\n", i)
			continue
		}
		fmt.Fprintf(&after, "line %d of a long file, with a few words in it\n", i)
	}
	args := fmt.Sprintf(`{"new_string":%q,"old_string":%q}`, after.String(), before.String())
	return question("q2", "Edit", args)
}

// TestB104ASetIsReadByItsPages has any set in any window: PgDn alone brings the last
// byte of every value into sight, and the buttons never move.
func TestB104ASetIsReadByItsPages(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		d := newDesk()
		m := New(t.Context(), Options{
			Client: d, Inbox: d, Self: self, Principal: func() string { return "uid:1000" }, Now: func() time.Time { return clock },
		})
		m.width, m.height = rapid.IntRange(40, 130).Draw(r, "width"), rapid.IntRange(8, 60).Draw(r, "height")
		var ends []string
		for i := range rapid.IntRange(1, 3).Draw(r, "questions") {
			var parts []string
			for j := range rapid.IntRange(1, 3).Draw(r, "values") {
				end := fmt.Sprintf("END%d.%d.", i, j)
				value := strings.Repeat("line\n", rapid.IntRange(0, 14).Draw(r, "rows")) + end
				parts = append(parts, fmt.Sprintf("%q:%s", fmt.Sprint("name", j), strconv.Quote(value)))
				ends = append(ends, end)
			}
			d.questions = append(d.questions, question(fmt.Sprint("q", i), "Tool", "{"+strings.Join(parts, ",")+"}"))
		}
		m.Update(changedMsg{})
		m.View() // keys count from when it was drawn
		m.openSet(d.Questions())
		m.View()
		clock = clock.Add(time.Second)
		m.Update(graceMsg{m.dialog})
		seen, buttons := map[string]bool{}, -1
		before := ""
		for i := range 400 {
			checkFits(r, m)
			lines := plainScreen(m)
			if now := strings.Join(lines, "\n"); i > 2 && now == before {
				break
			} else {
				before = now
			}
			at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, " Continue") })
			if at < 0 || i > 0 && at != buttons {
				r.Fatalf("the buttons are in row %d, were in %d, of %d×%d:\n%s", at, buttons, m.width, m.height, strings.Join(lines, "\n"))
			}
			buttons = at
			for _, e := range ends {
				seen[e] = seen[e] || slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, e) })
			}
			m.Update(keyOf("pgdown"))
		}
		for _, e := range ends {
			if !seen[e] {
				r.Fatalf("%s was never in sight in %d×%d:\n%s", e, m.width, m.height, strings.Join(plainScreen(m), "\n"))
			}
		}
	})
}
