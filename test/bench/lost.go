package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// killEvery is how often a frontend is killed.
const killEvery = 2 * time.Second

// lost has an asker's process make calls while frontends' processes answer them
// as they hear of them. With a kill period, one of two frontends is killed and
// replaced each time.
func lost(kill time.Duration) func(context.Context, *bench) ([]row, error) {
	return func(ctx context.Context, b *bench) ([]row, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		c, err := startCore(ctx, b, "process", "", askRule)
		if err != nil {
			return nil, err
		}
		defer c.stop()
		what := "512 in flight, three processes"
		n := 5000
		if b.full {
			n = 100_000
		}
		front := part{role: "frontend", socket: c.natsSocket()}
		end, err := front.ready(ctx, b)
		if err != nil {
			return nil, err
		}
		defer end()
		kills := func() int { return 0 }
		if kill > 0 {
			what = "the same, a frontend killed every 2 s"
			n = max(n, 10_000)
			if kills, err = killing(ctx, b, front, kill); err != nil {
				return nil, err
			}
		}
		out, err := part{role: "asker", socket: c.agentSocket(), n: n, inFlight: 512}.command(ctx, b).Output()
		if err != nil {
			return nil, err
		}
		killed := kills()
		var o outcome
		if err := json.Unmarshal(out, &o); err != nil {
			return nil, err
		}
		note := o.First
		if kill > 0 {
			note = fmt.Sprintf("%d killed; %s", killed, note)
		}
		return []row{{
			What: what, Figure: fmt.Sprintf("%d lost, %d stuck of %d (%.0f/s)", o.Lost, o.Stuck, n, float64(n)/o.Seconds),
			Budget: "0 and 0", Met: yes(o.Lost+o.Stuck == 0 && o.Allowed == int64(n)), Note: note,
		}}, nil
	}
}

// killing has one more frontend, which is killed and replaced until stop is
// called; stop returns how often.
func killing(ctx context.Context, b *bench, front part, every time.Duration) (stop func() int, err error) {
	end, err := front.ready(ctx, b)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan int)
	go func() {
		n := 0
		for tick := time.NewTicker(every); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				end()
				done <- n
				return
			case <-tick.C:
			}
			end() // SIGKILL
			n++
			next, err := front.ready(context.WithoutCancel(ctx), b)
			if err != nil {
				next = func() {}
			}
			end = next
		}
	}()
	return func() int { cancel(); return <-done }, nil
}
