package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// rivals are the three that every rate and round trip compares: the floor, the
// engine in process, and the real core through both sockets.
type rivals struct {
	floor, inside, sockets contender
	close                  func()
}

func openRivals(ctx context.Context, b *bench, mode string) (*rivals, error) {
	var ends []func()
	r := &rivals{close: func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}}
	err := func() error {
		f, err := openFloor(ctx, b, mode)
		if err != nil {
			return err
		}
		ends = append(ends, f.close)
		h, err := openHouse(ctx, b, houseOptions{mode: mode, rule: askRule, answers: true})
		if err != nil {
			return err
		}
		ends = append(ends, h.close)
		c, err := startCore(ctx, b, mode, "", askRule)
		if err != nil {
			return err
		}
		ends = append(ends, c.stop)
		end, err := answering(ctx, c)
		if err != nil {
			return err
		}
		ends = append(ends, end)
		r.floor = contender{"floor", func(ctx context.Context) (func() error, error) {
			return func() error { return nil }, f.once(ctx)
		}}
		r.inside = contender{"in process", func(ctx context.Context) (func() error, error) {
			p, err := h.verdict(ctx)
			return func() error { return h.leave(ctx, p) }, err
		}}
		r.sockets = contender{"both sockets", asker{socket: c.agentSocket()}.verdict}
		settle(ctx)
		return nil
	}()
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// answering attaches a frontend that answers everything.
func answering(ctx context.Context, c *coreProcess) (end func(), err error) {
	front, leave, err := startFront(ctx, c.natsSocket())
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); answerAll(run, front) }()
	return func() { cancel(); <-done; leave() }, nil
}

// blocks is how often the rivals take turns within a round.
const blocks = 6

func roundTrip(mode string) func(context.Context, *bench) ([]row, error) {
	return func(ctx context.Context, b *bench) ([]row, error) {
		r, err := openRivals(ctx, b, mode)
		if err != nil {
			return nil, err
		}
		defer r.close()
		n := 60
		if mode == "power" {
			n = 20
		}
		all := []contender{r.floor, r.inside, r.sockets}
		figures := make([]series, len(all))
		for round := range b.rounds + 1 { // the first warms up
			lists := make([][]time.Duration, len(all))
			for range blocks {
				for i, c := range all {
					list, err := c.latencies(ctx, n)
					if err != nil {
						return nil, err
					}
					lists[i] = append(lists[i], list...)
				}
			}
			for i := range all {
				if round > 0 {
					figures[i] = append(figures[i], medianOf(lists[i]))
				}
			}
		}
		what := func(c contender) string { return "round trip, " + mode + ", " + c.name }
		sockets := atMost(3, "≤ 3 ×")
		if mode == "power" {
			sockets = atMost(2, "≤ 2 ×")
		}
		return []row{
			against(what(r.inside), figures[1], figures[0], micros, atMost(2, "≤ 2 ×")),
			against(what(r.sockets), figures[2], figures[0], micros, sockets),
		}, nil
	}
}

func rate(mode string, inFlight int) func(context.Context, *bench) ([]row, error) {
	return func(ctx context.Context, b *bench) ([]row, error) {
		r, err := openRivals(ctx, b, mode)
		if err != nil {
			return nil, err
		}
		defer r.close()
		n := 3000
		if mode == "power" {
			n = max(400, 2*inFlight)
		}
		all := []contender{r.floor, r.inside, r.sockets}
		figures := make([]series, len(all))
		for round := range b.rounds + 1 {
			for i, c := range all {
				rate, err := c.perSecond(ctx, n, inFlight)
				if err != nil {
					return nil, err
				}
				if round > 0 {
					figures[i] = append(figures[i], rate)
				}
			}
		}
		inside, sockets := rateBudgets(mode, inFlight)
		what := func(c contender) string { return fmt.Sprintf("%d in flight, %s, %s", inFlight, mode, c.name) }
		return []row{
			against(what(r.inside), figures[1], figures[0], hertz, inside),
			against(what(r.sockets), figures[2], figures[0], hertz, sockets),
		}, nil
	}
}

func rateBudgets(mode string, inFlight int) (inside, sockets budget) {
	switch {
	case mode == "process":
		return atLeast(0.50, "≥ 50 %"), atLeast(0.33, "≥ 33 %")
	case inFlight < 512:
		return atLeast(1.5, "≥ 1.5 ×"), atLeast(1.5, "≥ 1.5 ×")
	}
	return atLeast(4, "≥ 4 ×"), atLeast(4, "≥ 4 ×")
}

// appends counts what a caller waits for.
func appends(ctx context.Context, b *bench) ([]row, error) {
	h, err := openHouse(ctx, b, houseOptions{mode: "process", rule: askRule, answers: true})
	if err != nil {
		return nil, err
	}
	defer h.close()
	if err := h.once(ctx); err != nil { // opens the session
		return nil, err
	}
	const n = 100
	var until, all int64
	for range n {
		before := h.appends.Load()
		p, err := h.verdict(ctx)
		if err != nil {
			return nil, err
		}
		until += h.appends.Load() - before
		if err := h.leave(ctx, p); err != nil {
			return nil, err
		}
		all += h.appends.Load() - before
	}
	return []row{{
		What: "awaited appends per answered question", Figure: fmt.Sprintf("%.2f", float64(until)/n), Budget: "≤ 3",
		Met: yes(until <= 3*n), Note: fmt.Sprintf("%.2f with the receipt, which nobody waits for", float64(all)/n),
	}}, nil
}

// unmatched is a call that no hook matches, against one append.
func unmatched(ctx context.Context, b *bench) ([]row, error) {
	f, err := openFloor(ctx, b, "process")
	if err != nil {
		return nil, err
	}
	defer f.close()
	h, err := openHouse(ctx, b, houseOptions{mode: "process", rule: noRule})
	if err != nil {
		return nil, err
	}
	defer h.close()
	settle(ctx)
	var call, bare series
	for round := range b.rounds + 1 {
		var calls, appends []time.Duration
		for range 500 {
			began := time.Now()
			if err := f.append(ctx); err != nil {
				return nil, err
			}
			appends = append(appends, time.Since(began))
			began = time.Now()
			p, err := h.verdict(ctx)
			if err != nil {
				return nil, err
			}
			calls = append(calls, time.Since(began))
			if err := h.leave(ctx, p); err != nil {
				return nil, err
			}
		}
		if round > 0 {
			call, bare = append(call, medianOf(calls)), append(bare, medianOf(appends))
		}
	}
	return []row{against("call that nothing matches, to its verdict", call, bare, micros, atMost(2, "≤ 2 × one append"))}, nil
}
