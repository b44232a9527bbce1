package main

import (
	"context"
	"net"
	"sync"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// newFront makes a frontend on nats.sock.
func newFront(socket string) (*frontends.Client, error) {
	return frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		ID: newID(), Kind: events.FrontendTUI, Capable: true, Name: "bench",
	})
}

// startFront runs a frontend until end is called, and returns when a core knows
// it.
func startFront(ctx context.Context, socket string) (_ *frontends.Client, end func(), err error) {
	c, err := newFront(socket)
	if err != nil {
		return nil, nil, err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(run) }()
	end = func() { cancel(); <-done }
	for _, err := range c.Updates(ctx) {
		if err != nil {
			end()
			return nil, nil, err
		}
		if c.Inbox().Attached() {
			break
		}
	}
	return c, end, nil
}

// answerAll answers each question as soon as the frontend hears of it, until
// ctx ends. Each answer is its own goroutine: one person per question.
func answerAll(ctx context.Context, c *frontends.Client) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	begun := map[events.ID]bool{}
	answer := func(q events.Question) {
		if begun[q.ID] {
			return
		}
		begun[q.ID] = true
		tasks.Go(func() { _ = respond(ctx, c, q) }) // a refusal: another frontend was first
	}
	for u, err := range c.Updates(ctx) {
		switch {
		case err != nil:
			return
		case u.Kind == frontends.KindAsked:
			if q, open := c.Inbox().Question(u.Question); open {
				answer(q)
			}
		case u.Kind == frontends.KindEnded:
			delete(begun, u.Question)
		case u.Kind == frontends.KindResynced:
			for _, q := range c.Inbox().Questions() {
				answer(q)
			}
		}
	}
}

func respond(ctx context.Context, c *frontends.Client, q events.Question) error {
	_, err := c.Answer(ctx, events.Respond{
		Question: q.ID, Digest: q.Version.Digest, Answer: events.AnswerContinue, Human: true,
	})
	return err
}
