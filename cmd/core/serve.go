package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/agents/gemini"
	"github.com/fermata-hitl/fermata/core/agents/generic"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/frontdesk"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/tracing"
)

// logLimit is the size of the log, bytes; at 90 % of it new operations are
// refused.
const logLimit = 8 << 30

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the core until SIGTERM or `core stop`", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd)
		},
	}
	for _, k := range place.Keys() {
		cmd.Flags().String(k.Flag(), "", k.Help)
	}
	return cmd
}

func serve(cmd *cobra.Command) error {
	dirs, err := place.Resolve()
	if err != nil {
		return err
	}
	c, err := place.Load(dirs.ConfigFile())
	if err != nil {
		return err
	}
	for _, k := range place.Keys() {
		if f := cmd.Flags().Lookup(k.Flag()); f.Changed {
			if err := c.Set(k.Name, f.Value.String()); err != nil {
				return err
			}
		}
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	h, err := open(cmd.Context(), dirs, c, log)
	if err != nil {
		return err
	}
	log.Info("the core is up", "core", h.core, "mode", c.Mode, "pid", os.Getpid(), "state", dirs.State, "runtime", dirs.Runtime)
	return h.Run(cmd.Context())
}

// house is a core with all its rooms.
type house struct {
	dirs    place.Dirs
	config  place.Config
	core    events.Token
	log     *slog.Logger
	server  *natsd.Server
	conns   []*nats.Conn
	journal *journal.Journal
	rules   *hooks.Store
	engine  *engine.Engine
	door    *frontdesk.Door
	socket  *agents.Socket
	sink    *tracing.FileSink
	traces  *tracing.Projector
	stop    chan struct{} // one value: somebody said `core stop`
}

// open builds the house and takes up what an earlier core left open. After an
// error nothing of it is left.
func open(ctx context.Context, dirs place.Dirs, c place.Config, log *slog.Logger) (_ *house, err error) {
	h := &house{dirs: dirs, config: c, log: log, stop: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if err := logIsThere(dirs.State); err != nil {
		return nil, err
	}
	h.server, err = natsd.Start(natsd.Options{
		StateDir: dirs.State, RuntimeDir: dirs.Runtime, SyncAlways: c.Mode == place.ModePower, MaxStore: logLimit + logLimit/8, Log: log,
	})
	if err != nil {
		return nil, err
	}
	seed, err := secret(filepath.Join(dirs.State, "keys", "core"))
	if err != nil {
		return nil, err
	}
	h.core = events.CoreToken(string(seed))
	inner, err := h.connect(h.server.Core)
	if err != nil {
		return nil, err
	}
	doors, err := h.connect(h.server.Doors)
	if err != nil {
		return nil, err
	}
	h.journal, err = journal.Open(ctx, inner, journal.Options{
		Core: h.core, Own: true, Replicas: 1, MaxBytes: logLimit, SyncAlways: c.Mode == place.ModePower, Now: time.Now,
		NewID: func() events.ID { return engine.NewID(time.Now()) }, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if err := begun(dirs.State); err != nil {
		return nil, err
	}
	h.wire(doors, engine.NewID(time.Now()))
	if err := h.openTraces(seed); err != nil {
		return nil, err
	}
	h.sweep()
	if err := h.engine.Recover(ctx); err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // starting takes more than staying; a core stays all day
	return h, nil
}

func (h *house) connect(dial func(...nats.Option) (*nats.Conn, error)) (*nats.Conn, error) {
	nc, err := dial()
	if err != nil {
		return nil, fmt.Errorf("connect to the embedded server: %w", err)
	}
	h.conns = append(h.conns, nc)
	return nc, nil
}

// wire joins engine and doors; each needs the other.
func (h *house) wire(doors *nats.Conn, epoch events.ID) {
	h.rules = hooks.NewStore(hooks.StoreOptions{GlobalDir: h.dirs.Config})
	h.engine = engine.New(engine.Options{
		Log: h.journal, Alone: true, Core: h.core, Epoch: epoch, Owner: fmt.Sprintf("uid:%d", os.Getuid()), Logger: h.log,
		Rules:   h.rules,
		Run:     hooks.NewRunner(hooks.RunnerOptions{TempDir: h.dirs.Runtime, Environ: os.Environ()}),
		Timeout: h.config.Confirmation.Timeout, WhenNobody: events.WhenNobody(h.config.Confirmation.WhenNobody),
		Snapshot: filepath.Join(h.dirs.State, "snapshot"),
		OnSession: func(s events.SessionHead) {
			if err := h.door.Open(context.Background(), s); err != nil {
				h.log.Error("a session is not open to frontends", "session", s.Session, "error", err)
			}
		},
		HookTrace: func(s core.State, run events.ID) string {
			return tracing.Origin{
				StoreID: string(h.core), Session: s.Session, Operation: s.ID, Turn: s.Turn, Traceparent: s.Traceparent,
			}.HookTraceparent(run)
		},
		Feed: func(p engine.Place, feed string, seq uint64, l events.Live) { h.door.Publish(p, feed, seq, l) },
	})
	h.door = frontdesk.New(frontdesk.Options{
		Desk: h.engine, Conn: doors, Core: h.core, Epoch: epoch, Log: h.log,
		Principal: func(name string) (string, bool) {
			p, ok := h.server.Principal(name)
			return p.String(), ok
		},
	})
}

// sweep removes what a core that was killed left behind: payloads of its hooks,
// half-written snapshots. The locks are held, so nobody is using them.
func (h *house) sweep() {
	hooks, _ := filepath.Glob(filepath.Join(h.dirs.Runtime, "fermata-hook-*"))
	snapshots, _ := filepath.Glob(filepath.Join(h.dirs.State, "snapshot.new-*"))
	for _, path := range append(hooks, snapshots...) {
		if err := os.RemoveAll(path); err != nil {
			h.log.Warn("files of a killed core are still there", "error", err)
		}
	}
}

func (h *house) openTraces(seed []byte) (err error) {
	h.sink, err = tracing.OpenFile(filepath.Join(h.dirs.State, "traces.jsonl"), string(h.core))
	if err != nil {
		return fmt.Errorf("open traces.jsonl: %w", err)
	}
	h.traces, err = tracing.New(tracing.Options{
		StoreID: string(h.core), Version: version, Key: tracing.Key{ID: "k1", Secret: seed}, Sink: h.sink,
	})
	if err != nil {
		return err
	}
	u, err := h.journal.Usage(context.Background())
	if err == nil && u.LastSeq < h.sink.Done() {
		return fmt.Errorf("traces.jsonl tells of message %d, the log ends at %d: the log has lost its end; restore it, or move the state directory %s away",
			h.sink.Done(), u.LastSeq, h.dirs.State)
	}
	return err
}

// Run serves until ctx ends or somebody says stop, then ends the rooms in
// order: askers' socket, engine, frontends' door, projection, server. The end
// of ctx withdraws nothing.
func (h *house) Run(ctx context.Context) error {
	defer h.close()
	listener, err := h.server.ListenAgents()
	if err != nil {
		return err
	}
	h.socket = agents.NewSocket(agents.Options{
		Listener: listener, Desk: h.engine, Stopping: engine.ErrStopped, Control: h.control, Log: h.log,
		Adapters: map[events.Agent]agents.Adapter{"generic": generic.Adapter{}, "gemini": gemini.Adapter{}},
	})
	all, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	fail := func(name string, run func(context.Context) error) (end func()) {
		return background(all, func(ctx context.Context) {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	endTraces := fail("traces.jsonl", func(ctx context.Context) error {
		return h.traces.Run(ctx, asTraced(h.journal.Follow(ctx, h.traced())))
	})
	endDoors := fail("nats.sock", func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return h.server.Run(ctx) })
		g.Go(func() error { return h.door.Run(ctx) })
		return g.Wait()
	})
	endEngine := fail("engine", h.engine.Run)
	endSocket := fail("agent.sock", h.socket.Run)

	select {
	case <-ctx.Done():
	case <-all.Done():
	case <-h.stop:
		patience, done := context.WithTimeout(ctx, 5*time.Second)
		h.engine.Stop(patience)
		done()
	}
	endSocket()
	endEngine()
	endDoors()
	endTraces()
	h.lastTraces()
	return context.Cause(all)
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
		return "stopping\n", nil
	case agents.ControlStatus:
		return h.status(ctx)
	}
	return "", fmt.Errorf("this core does not know %q; is it older than the command?", event)
}

func (h *house) status(ctx context.Context) (string, error) {
	u, err := h.journal.Usage(ctx)
	if err != nil {
		return "", fmt.Errorf("the log does not answer: %w", err)
	}
	s := status{
		Core: h.core, Version: version, PID: os.Getpid(), Mode: string(h.config.Mode), Frontends: h.engine.Frontends(),
		LogBytes: uint64(u.Bytes), LogLimit: uint64(u.Limit),
	}
	s.RulesFile = filepath.Join(h.dirs.Config, "hooks.yaml")
	if set, err := h.rules.For(h.dirs.Config); err != nil {
		s.RulesBad = err.Error()
	} else {
		s.Rules = len(set.Hooks)
	}
	for _, head := range h.engine.Sessions(events.DoorAll) {
		s.Sessions++
		s.Open += head.Open
	}
	b, err := json.Marshal(s)
	return string(b) + "\n", err
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
