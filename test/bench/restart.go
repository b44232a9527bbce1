package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/frontends"
)

// restartThousand kills a core that holds 1,000 questions and their askers, and
// times a new one from its start to the first answer that it accepts.
func restartThousand(ctx context.Context, b *bench) ([]row, error) {
	c, err := startCore(ctx, b, "process", "", askRule)
	if err != nil {
		return nil, err
	}
	defer func() { c.kill() }()
	front, leave, err := startFront(ctx, c.natsSocket())
	if err != nil {
		return nil, err
	}
	defer leave()
	const n = 1000
	end, err := part{role: "hold", socket: c.agentSocket(), n: n}.ready(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := waitQuestions(ctx, front, n); err != nil {
		end()
		return nil, err
	}
	var took series
	for range b.rounds {
		c.kill()
		end() // 1,000 askers dialling from one process would be what is measured
		q := front.Inbox().Questions()[0]
		began := time.Now()
		answered := make(chan error, 1)
		go func() { answered <- respond(ctx, front, q) }()
		next, err := startCore(ctx, b, "process", c.dir, "")
		if err != nil {
			return nil, err
		}
		c = next
		if err := <-answered; err != nil {
			return nil, err
		}
		took = append(took, float64(time.Since(began)))
	}
	return []row{{
		What: "kill -9 with 1,000 open: start to the first answer accepted", Figure: millis(took.median()),
		Budget: "≤ 200 ms", Met: yes(took.median() <= float64(200*time.Millisecond)),
		Note: fmt.Sprintf("process start, server, log, frontend's return; ±%.0f %%", 50*took.spread()),
	}}, nil
}

func waitQuestions(ctx context.Context, c *frontends.Client, n int) error {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if len(c.Inbox().Questions()) >= n {
			return nil
		}
		if ctx.Err() != nil || time.Since(began) > time.Minute {
			return fmt.Errorf("the frontend has %d of %d questions", len(c.Inbox().Questions()), n)
		}
	}
}

// restartLarge times what recovery adds to the bare server's start on the same
// store, which a killed core left behind.
func restartLarge(ctx context.Context, b *bench) ([]row, error) {
	const open = 10_000
	messages, rounds := 100_000, b.rounds
	if b.full {
		messages, rounds = 1_000_000, 3
	}
	store, err := b.temp()
	if err != nil {
		return nil, err
	}
	var killed *exec.ExitError
	err = part{role: "fill", dir: store, n: open, messages: messages}.command(ctx, b).Run()
	if !errors.As(err, &killed) || killed.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		return nil, fmt.Errorf("fill the log: %w", err)
	}
	var bare, with, without series
	for range rounds {
		for _, c := range []struct {
			s        *series
			start    func(context.Context, *bench, string) (time.Duration, error)
			snapshot bool
		}{{&bare, startBare, true}, {&with, startHouse(open), true}, {&without, startHouse(open), false}} {
			took, err := onCopy(ctx, b, store, c.snapshot, c.start)
			if err != nil {
				return nil, err
			}
			*c.s = append(*c.s, float64(took))
		}
	}
	line := func(how string, s series) row {
		beyond := s.median() - bare.median()
		return row{
			What:   fmt.Sprintf("10,000 open within %d messages, %s: all answerable", messages, how),
			Figure: millis(beyond), Floor: millis(bare.median()), Ratio: fmt.Sprintf("%.2f", s.over(bare).median()),
			Budget: "≤ 1 s beyond the server", Met: yes(beyond <= float64(time.Second)), Note: fmt.Sprintf("±%.0f %%", 50*s.spread()),
		}
	}
	return []row{line("with its snapshot", with), line("without a snapshot", without)}, nil
}

// onCopy starts something on a copy of a store: a start changes it.
func onCopy(ctx context.Context, b *bench, store string, snapshot bool, start func(context.Context, *bench, string) (time.Duration, error)) (time.Duration, error) {
	dir, err := b.temp()
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.CommandContext(ctx, "cp", "-a", store+"/.", dir).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("copy the store: %w: %s", err, out)
	}
	if !snapshot {
		if err := os.Remove(filepath.Join(dir, "s", "snapshot")); err != nil {
			return 0, err
		}
	}
	return start(ctx, b, dir)
}

// startBare is a server and nothing else, until it tells its stream's state.
func startBare(ctx context.Context, _ *bench, dir string) (time.Duration, error) {
	began := time.Now()
	s, err := natsd.Start(natsd.Options{StateDir: filepath.Join(dir, "s"), RuntimeDir: filepath.Join(dir, "r"), MaxStore: 8 << 30})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	nc, err := s.Core()
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return 0, err
	}
	_, err = js.Stream(ctx, "FERMATA_0001")
	return time.Since(began), err
}

// startHouse is a core, until every question is open and one is answered.
func startHouse(open int) func(context.Context, *bench, string) (time.Duration, error) {
	return func(ctx context.Context, b *bench, dir string) (time.Duration, error) {
		began := time.Now()
		h, err := openHouse(ctx, b, houseOptions{mode: "process", dir: dir, rule: askRule})
		if err != nil {
			return 0, err
		}
		defer h.close()
		took := time.Since(began)
		if n := h.asked(); n != open {
			return 0, fmt.Errorf("%d questions are open after the start, not %d", n, open)
		}
		return took, nil
	}
}

// resume kills a core under 200 waiting askers and starts another: each must
// get its verdict, and soon.
func resume(ctx context.Context, b *bench) ([]row, error) {
	const n = 200
	var took series
	resumed := 0
	for range b.rounds {
		d, ok, err := resumeOnce(ctx, b, n)
		if err != nil {
			return nil, err
		}
		took = append(took, float64(d))
		resumed += ok
	}
	return []row{{
		What:   "200 askers over kill -9 of the core: all have their verdicts",
		Figure: fmt.Sprintf("%.1f %% in %s", 100*float64(resumed)/float64(n*b.rounds), millis(took.median())), Budget: "100 % within 1 s",
		Met:  yes(resumed == n*b.rounds && took.median() <= float64(time.Second)),
		Note: "counted from when the new core takes a connection; answers included",
	}}, nil
}

func resumeOnce(ctx context.Context, b *bench, n int) (took time.Duration, ok int, err error) {
	c, err := startCore(ctx, b, "process", "", askRule)
	if err != nil {
		return 0, 0, err
	}
	defer func() { c.kill() }()
	front, leave, err := startFront(ctx, c.natsSocket())
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	var calls sync.WaitGroup
	verdicts := make(chan error, n)
	for range n {
		calls.Go(func() { verdicts <- asker{socket: c.agentSocket()}.once(ctx) })
	}
	if err := waitQuestions(ctx, front, n); err != nil {
		return 0, 0, err
	}
	c.kill()
	next, err := startCore(ctx, b, "process", c.dir, "")
	if err != nil {
		return 0, 0, err
	}
	c = next
	began := time.Now()
	answer, enough := context.WithCancel(ctx)
	var answers sync.WaitGroup
	answers.Go(func() { answerAll(answer, front) })
	calls.Wait()
	took = time.Since(began)
	enough()
	answers.Wait()
	for range n {
		if <-verdicts == nil {
			ok++
		}
	}
	return took, ok, nil
}
