package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/agents/gemini"
	"github.com/fermata-hitl/fermata/core/agents/generic"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
	"github.com/fermata-hitl/fermata/tracing"
)

func (h *house) openTraces(seed []byte) (err error) {
	h.sink, err = tracing.OpenFile(filepath.Join(h.dirs.State, "traces.jsonl"), string(h.core))
	if err != nil {
		return err
	}
	h.traces, err = tracing.New(tracing.Options{
		StoreID: string(h.core), Version: version, Key: tracing.Key{ID: "k1", Secret: seed}, Sink: h.sink,
	})
	if err != nil {
		return err
	}
	u, err := h.journal.Usage(context.Background())
	if err == nil && u.LastSeq < h.sink.Done() {
		return h.cli.fault(words.LogLostEnd, h.sink.Done(), u.LastSeq, h.dirs.State)
	}
	return err
}

// Run serves until ctx ends or somebody says stop, then ends the rooms in
// order: what calls the person, askers' socket and door, engine, frontends' door, projection, server. The end
// of ctx withdraws nothing.
func (h *house) Run(ctx context.Context) error {
	defer h.close()
	all, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	start := func(name string, run func(context.Context) error) (end func()) {
		return background(all, func(ctx context.Context) {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	endTraces := start("traces.jsonl", func(ctx context.Context) error {
		return h.traces.Run(ctx, asTraced(h.journal.Follow(ctx, h.traced())))
	})
	endDoors := start("nats.sock", func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return h.server.Run(ctx) })
		g.Go(func() error { return h.door.Run(ctx) })
		return g.Wait()
	})
	endEngine := start("engine", h.engine.Run)
	endAgents := start("nats.sock", h.agents.Run)
	endSocket := start("agent.sock", h.serveSocket)
	endCalling := background(all, h.call)

	select {
	case <-ctx.Done():
	case <-all.Done():
	case <-h.stop:
		patience, done := context.WithTimeout(ctx, 5*time.Second)
		h.engine.Stop(patience)
		done()
	}
	endCalling()
	endSocket()
	endAgents()
	endEngine()
	endDoors()
	endTraces()
	h.lastTraces()
	return context.Cause(all)
}

// call calls the person to questions; what goes wrong there ends no core.
func (h *house) call(ctx context.Context) {
	if h.calling == nil {
		return
	}
	if err := h.calling.run(ctx); err != nil && ctx.Err() == nil {
		h.log.Warn("nobody is called to a question any more", "why", err)
	}
}

// serveSocket opens agent.sock last: who is answered there finds nats.sock open
// too.
func (h *house) serveSocket(ctx context.Context) error {
	const look = time.Millisecond
	for {
		c, err := dial(ctx, h.dirs)
		if err == nil {
			_ = c.Close()
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(look):
		}
	}
	listener, err := h.server.ListenAgents()
	if err != nil {
		return err
	}
	return agents.NewSocket(agents.SocketOptions{
		Listener: listener, Desk: h.engine, Stopping: engine.ErrStopped, Control: h.control, Log: h.log,
		Adapters: map[events.Agent]agents.Adapter{"generic": generic.Adapter{}, "gemini": gemini.Adapter{}},
	}).Run(ctx)
}

// traced is the last sequence of the log that the spans need not be made from.
func (h *house) traced() uint64 { return max(h.sink.Start(), 1) - 1 }

// background runs f until end is called; end waits for it.
func background(ctx context.Context, f func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	return func() { cancel(); <-done }
}

// lastTraces projects what the engine wrote at its very end, so that a file of
// spans is complete when the core is down. What does not get done is done by
// the next core.
func (h *house) lastTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := h.traces.Run(ctx, asTraced(h.journal.Scan(ctx, h.traced()))); err != nil {
		h.log.Warn("the last spans are written by the next core", "error", err)
	}
}

func asTraced(log iter.Seq2[journal.Record, error]) iter.Seq2[tracing.Record, error] {
	return func(yield func(tracing.Record, error) bool) {
		for r, err := range log {
			if !yield(tracing.Record{Seq: r.Seq, Subject: r.Subject, Data: r.Data}, err) {
				return
			}
		}
	}
}

// control answers the CLI.
func (h *house) control(ctx context.Context, event string) (string, error) {
	switch event {
	case agents.ControlStop:
		select {
		case h.stop <- struct{}{}:
		default:
		}
		return "", nil
	case agents.ControlStatus:
		return h.status(ctx)
	}
	return "", h.cli.fault(words.OlderCore, event)
}

func (h *house) status(ctx context.Context) (string, error) {
	u, err := h.journal.Usage(ctx)
	if err != nil {
		return "", h.cli.fault(words.LogSilent, err)
	}
	s := status{
		Core: h.core, Version: version, PID: os.Getpid(), Mode: string(h.config.Mode), Frontends: h.engine.Frontends() - h.calling.attached(),
		LogBytes: uint64(u.Bytes), LogLimit: uint64(u.Limit),
	}
	s.RulesFile = filepath.Join(h.dirs.Config, "hooks.yaml")
	if set, err := h.rules.For(h.dirs.Config); err != nil {
		s.RulesBad = err.Error()
	} else if s.Rules = len(set.Hooks); s.Rules > 0 {
		s.RulesFile = strings.Join(filesOf(set), ", ")
	}
	for _, head := range h.engine.Sessions(events.DoorAll) {
		s.Sessions++
		s.Open += head.Open
		s.WaitingMS = max(s.WaitingMS, h.waiting(head, time.Now()).Milliseconds())
	}
	b, err := json.Marshal(s)
	return string(b) + "\n", err
}

// waiting is how long the oldest open question of a session has waited.
func (h *house) waiting(of events.SessionHead, now time.Time) time.Duration {
	if of.Open == 0 {
		return 0
	}
	first := h.engine.Sync(engine.Place{Project: of.Project, Session: of.Session}, events.Sync{}).Questions
	if len(first) == 0 {
		return 0
	}
	return now.Sub(first[0].AskedAt.Time()) // ids of questions are in the order of asking
}

// filesOf lists the files that hooks stand in, in their order.
func filesOf(set *hooks.Set) []string {
	var files []string
	for _, h := range set.Hooks {
		if !slices.Contains(files, h.Ref.File) {
			files = append(files, h.Ref.File)
		}
	}
	return files
}

func (h *house) close() {
	if h.sink != nil {
		_ = h.sink.Close()
	}
	for _, nc := range h.conns {
		nc.Close()
	}
	if h.server != nil {
		h.server.Close()
	}
}
