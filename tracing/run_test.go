package tracing

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a sink that fails at a message.
type memory struct {
	failAt uint64
	ended  []Ended
}

var errFull = errors.New("disk full")

func (m *memory) Write(_ context.Context, b Batch) error {
	for _, e := range b.Ended {
		if e.Seq == m.failAt {
			return errFull
		}
		m.ended = append(m.ended, e)
	}
	return nil
}

func TestRunWritesAllThatItRead(t *testing.T) {
	records := syntheticLog(9, 300)
	sink := &memory{}
	p, err := New(options(sink))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context(), from(records, 1)); err != nil {
		t.Fatal(err)
	}
	var got []Span
	for _, e := range sink.ended {
		got = append(got, spansOf(t, e.Line)...)
	}
	if want := project(t, records); len(got) != len(want) {
		t.Errorf("%d spans, want %d", len(got), len(want))
	}
}

// beats is a sink that tells when it was written to, and how much.
type beats struct {
	at    []time.Time
	sizes []int
}

func (b *beats) Write(_ context.Context, batch Batch) error {
	b.at, b.sizes = append(b.at, time.Now()), append(b.sizes, len(batch.Ended))
	return nil
}

// TestRunLagsUnderLoad: the first spans are written at once, then what has piled
// up in a pause is written together, and nothing waits when the log ends.
func TestRunLagsUnderLoad(t *testing.T) {
	ended := project(t, syntheticLog(20, 100))
	busy := func(every time.Duration) (sizes []int, pauses []time.Duration, took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			sink := &beats{}
			p, err := New(options(sink))
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if err := p.Run(t.Context(), paced(syntheticLog(20, 100), every)); err != nil {
				t.Fatal(err)
			}
			for i := range sink.at[1:] {
				pauses = append(pauses, sink.at[i+1].Sub(sink.at[i]))
			}
			sizes, took = sink.sizes, time.Since(begun)
		})
		return sizes, pauses, took
	}
	sizes, pauses, took := busy(time.Millisecond)
	total := 0
	for _, n := range sizes {
		total += n
	}
	if want := countSeqs(ended); total != want || sizes[0] != 1 {
		t.Errorf("%d messages' spans, %d in the first batch; want %d and 1", total, sizes[0], want)
	}
	for i, d := range pauses[:len(pauses)-1] { // the last one is cut short by the end
		if d < batchPause || d > batchPause+5*time.Millisecond {
			t.Errorf("pause %d lasted %v", i, d)
		}
	}
	if want := time.Duration(len(syntheticLog(20, 100))) * time.Millisecond; took != want {
		t.Errorf("the projection took %v of a log that lasted %v", took, want)
	}
	if sizes, _, took := busy(0); took != 0 || slices.Max(sizes) > 2*batchLimit {
		t.Errorf("a log that is all there took %v, largest batch %d", took, slices.Max(sizes))
	}
}

// paced is a log whose messages come one by one, by the bubble's clock.
func paced(records []Record, every time.Duration) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range from(records, 1) {
			<-time.After(every)
			if !yield(r, err) {
				return
			}
		}
	}
}

func countSeqs(spans []Span) int {
	seqs := map[uint64]bool{}
	for _, s := range spans {
		seqs[s.Seq()] = true
	}
	return len(seqs)
}

// TestRunEndsWithItsContext: a log that ends with ctx, as a followed one does,
// leaves nothing that was read unwritten.
func TestRunEndsWithItsContext(t *testing.T) {
	records := syntheticLog(21, 30)
	synctest.Test(t, func(t *testing.T) {
		sink := &memory{}
		p, err := New(options(sink))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		followed := func(yield func(Record, error) bool) {
			for r, err := range from(records, 1) {
				if !yield(r, err) {
					return
				}
			}
			<-ctx.Done()
			yield(Record{}, ctx.Err())
		}
		done := make(chan error)
		begun := time.Now()
		go func() { done <- p.Run(ctx, followed) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if want := countSeqs(project(t, records)); len(sink.ended) != want || time.Since(begun) != 0 {
			t.Errorf("%d messages' spans after %v, want %d at once", len(sink.ended), time.Since(begun), want)
		}
	})
}

func TestRunEndsWithItsSink(t *testing.T) {
	records := syntheticLog(10, 300)
	p, err := New(options(&memory{failAt: firstEnd(t, records)}))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context(), from(records, 1)); !errors.Is(err, errFull) {
		t.Errorf("error %v", err)
	}
}

func firstEnd(t *testing.T, records []Record) uint64 {
	t.Helper()
	return project(t, records)[0].Seq()
}
