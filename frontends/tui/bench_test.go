package tui

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// queued is how many questions wait while it is measured.
const queued = 10_000

// BenchmarkCalm measures a screen before ten thousand questions: from a key, and from a
// change of the inbox, to the frame. It prints the 95th percentile and fails where it is
// above what a person takes for at once.
func BenchmarkCalm(b *testing.B) {
	d := newDesk()
	for i := range queued {
		q := numbered(fmt.Sprintf("q%05d", i), fmt.Sprintf("go test ./part%d", i))
		q.AskedAt = events.Micros(i + 1)
		d.questions = append(d.questions, q)
	}
	d.lines, d.runs = someLines(), someRuns()
	m := New(b.Context(), Options{Client: d, Inbox: d, Self: self, Principal: func() string { return "uid:1000" }, Words: words.In(words.English)})
	m.width, m.height = 200, 50
	m.Update(changedMsg{})
	m.View()
	for _, q := range d.questions {
		m.later[q.ID] = true
	}
	m.dialog = nil
	frame := func(act func()) time.Duration {
		start := time.Now()
		act()
		m.View()
		return time.Since(start)
	}
	keys := []string{"down", "down", "pgdown", "end", "up", "home", "space", "space", "tab", "tab"}
	typing := []string{"/", "p", "a", "r", "t", "7", "7", "backspace", "esc"}
	n := 0
	measure := func(name string, budget time.Duration, act func(int) time.Duration) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				took = append(took, act(n))
				n++
			}
			slices.Sort(took)
			p95 := took[len(took)*95/100]
			b.ReportMetric(float64(p95.Microseconds())/1000, "p95-ms")
			if p95 > budget {
				b.Errorf("p95 %v is above %v", p95, budget)
			}
		})
	}
	measure("key", 50*time.Millisecond, func(n int) time.Duration {
		return frame(func() { m.Update(keyOf(keys[n%len(keys)])) })
	})
	measure("filter", 50*time.Millisecond, func(n int) time.Duration {
		return frame(func() { m.Update(keyOf(typing[n%len(typing)])) })
	})
	m.list.filtering = false
	m.list.filter.set("")
	measure("second", 50*time.Millisecond, func(int) time.Duration {
		return frame(func() { m.Update(secondMsg{}) })
	})
	measure("claimed", 100*time.Millisecond, func(n int) time.Duration {
		d.questions[n%queued].ClaimedBy = &events.Claim{Frontend: "fe2", Principal: "uid:7", Since: now(), Claim: uint64(n + 1)}
		return frame(func() { m.Update(changedMsg{}) })
	})
	measure("asked", 100*time.Millisecond, func(n int) time.Duration {
		q := numbered(fmt.Sprintf("z%08d", n), fmt.Sprint("make ", n))
		m.later[q.ID] = true
		d.questions = append(d.questions[1:], q)
		return frame(func() { m.Update(changedMsg{}) })
	})
}
