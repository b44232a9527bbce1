package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxSpread is how far the floor's rounds may lie apart, as a share of their
// median, for a row to count.
const maxSpread = 0.30

// contender is something whose round trips are measured. Once is one of them, up
// to the verdict; what it returns does what comes after, which no caller waits
// for: the receipt.
type contender struct {
	name string
	once func(context.Context) (rest func() error, err error)
}

func (c contender) whole(ctx context.Context) error {
	rest, err := c.once(ctx)
	if err != nil {
		return err
	}
	return rest()
}

// latencies runs n round trips one at a time.
func (c contender) latencies(ctx context.Context, n int) ([]time.Duration, error) {
	list := make([]time.Duration, 0, n)
	for range n {
		began := time.Now()
		rest, err := c.once(ctx)
		list = append(list, time.Since(began))
		if err == nil {
			err = rest()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return list, nil
}

// perSecond runs n round trips with so many in flight.
func (c contender) perSecond(ctx context.Context, n, inFlight int) (float64, error) {
	began := time.Now()
	if err := each(n, inFlight, func() error { return c.whole(ctx) }); err != nil {
		return 0, fmt.Errorf("%s: %w", c.name, err)
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// each calls f n times, up to inFlight at once, and returns the first error.
func each(n, inFlight int, f func() error) error {
	var (
		wg    sync.WaitGroup
		once  sync.Once
		first error
		slots = make(chan struct{}, inFlight)
	)
	for range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := f(); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	wg.Wait()
	return first
}

// series is one figure a round.
type series []float64

func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(s)-1)/2] + sorted[len(s)/2]) / 2
}

// spread is how far the rounds lie apart, as a share of their median.
func (s series) spread() float64 {
	if len(s) == 0 {
		return 0
	}
	return (slices.Max(s) - slices.Min(s)) / s.median()
}

// over divides round by round.
func (s series) over(floor series) series {
	r := make(series, len(s))
	for i := range s {
		r[i] = s[i] / floor[i]
	}
	return r
}

func medianOf(list []time.Duration) float64 {
	s := make(series, len(list))
	for i, d := range list {
		s[i] = float64(d)
	}
	return s.median()
}

// budget is what a ratio must be.
type budget struct {
	limit   float64
	atLeast bool
	text    string
}

func atMost(limit float64, text string) budget  { return budget{limit, false, text} }
func atLeast(limit float64, text string) budget { return budget{limit, true, text} }

func (b budget) met(ratio float64) string {
	if b.atLeast == (ratio >= b.limit) || ratio == b.limit {
		return "yes"
	}
	return "no"
}

// against makes a row of a series and its floor.
func against(what string, s, floor series, unit func(float64) string, b budget) row {
	ratio := s.over(floor)
	r := row{
		What: what, Figure: unit(s.median()), Floor: unit(floor.median()),
		Ratio:  fmt.Sprintf("%.2f ±%.0f%%", ratio.median(), 50*ratio.spread()),
		Budget: b.text, Met: b.met(ratio.median()),
	}
	if spread := floor.spread(); spread > maxSpread {
		r.Note = fmt.Sprintf("invalid: the floor varied by %.0f %%", 100*spread)
		r.Met = "invalid (" + r.Met + ")"
	}
	return r
}

func micros(ns float64) string { return fmt.Sprintf("%.0f µs", ns/1e3) }
func millis(ns float64) string { return fmt.Sprintf("%.1f ms", ns/1e6) }
func hertz(f float64) string   { return fmt.Sprintf("%.0f/s", f) }

func yes(met bool) string {
	if met {
		return "yes"
	}
	return "no"
}
