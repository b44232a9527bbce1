package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/frontdesk"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
	"github.com/fermata-hitl/fermata/tracing"
)

// logLimit is the size of the log, bytes; at 90 % of it new operations are
// refused.
const logLimit = 8 << 30

func (c cli) serve() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: c.w.Say(words.ServeShort), Long: c.w.Say(words.ServeLong), Args: c.exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.runServer(cmd) },
	}
	for _, k := range place.Keys() {
		if k.Name != "language" { // every command has that one
			cmd.Flags().String(k.Flag(), "", c.w.Setting(k.Name))
		}
	}
	return cmd
}

func (c cli) runServer(cmd *cobra.Command) error {
	dirs, err := c.dirs()
	if err != nil {
		return err
	}
	config, err := c.config(dirs)
	if err != nil {
		return err
	}
	for _, k := range place.Keys() {
		if f := cmd.Flag(k.Flag()); f.Changed {
			if err := config.Set(k.Name, f.Value.String()); err != nil {
				return c.fault(words.WrongUse, err)
			}
		}
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	h, err := c.open(cmd.Context(), dirs, config, log)
	if err != nil {
		return c.fault(words.NotServing, err)
	}
	log.Info("the core is up", "core", h.core, "mode", config.Mode, "pid", os.Getpid(), "state", dirs.State, "runtime", dirs.Runtime)
	if err := h.Run(cmd.Context()); err != nil {
		return c.fault(words.ServingEnded, err)
	}
	return nil
}

// house is a core with all its rooms.
type house struct {
	cli     cli
	dirs    place.Dirs
	config  place.Config
	core    events.Token
	log     *slog.Logger
	server  *natsd.Server
	conns   []*nats.Conn
	journal *journal.Journal
	rules   *noticing
	engine  *engine.Engine
	door    *frontdesk.Door
	agents  *agents.Door
	sink    *tracing.FileSink
	traces  *tracing.Projector
	calling *calling      // nil = the person is not called
	stop    chan struct{} // one value: somebody said `core stop`
}

// open builds the house and takes up what an earlier core left open. After an
// error nothing of it is left.
func (c cli) open(ctx context.Context, dirs place.Dirs, config place.Config, log *slog.Logger) (_ *house, err error) {
	h := &house{cli: c, dirs: dirs, config: config, log: log, stop: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if err := c.logIsThere(dirs.State); err != nil {
		return nil, err
	}
	h.server, err = natsd.Start(natsd.Options{
		StateDir: dirs.State, RuntimeDir: dirs.Runtime, SyncAlways: config.Mode == place.ModePower, MaxStore: logLimit + logLimit/8, Log: log,
	})
	if err != nil {
		return nil, err
	}
	seed, err := c.secret(filepath.Join(dirs.State, "keys", "core"))
	if err != nil {
		return nil, err
	}
	h.core = events.CoreToken(string(seed))
	inner, err := h.connect(h.server.Core)
	if err != nil {
		return nil, err
	}
	doors := make([]*nats.Conn, 2) // a busy door must not hold up the other
	for i := range doors {
		if doors[i], err = h.connect(h.server.Doors); err != nil {
			return nil, err
		}
	}
	h.journal, err = journal.Open(ctx, inner, journal.Options{
		Core: h.core, Own: true, Replicas: 1, MaxBytes: logLimit, SyncAlways: config.Mode == place.ModePower, Now: time.Now,
		NewID: func() events.ID { return engine.NewID(time.Now()) }, Log: log,
	})
	if err != nil {
		return nil, err
	}
	if err := begun(dirs.State); err != nil {
		return nil, err
	}
	outbox, err := hooks.OpenOutbox(filepath.Join(dirs.State, "outbox"))
	if err != nil {
		return nil, err
	}
	h.wire(doors[0], doors[1], outbox, engine.NewID(time.Now()))
	if err := h.openTraces(seed); err != nil {
		return nil, err
	}
	if h.calling, err = h.openCalling(); err != nil {
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
	nc, err := dial(nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
		h.log.Warn("the embedded server has something to tell", "subject", subjectOf(sub), "error", err)
	}))
	if err != nil {
		return nil, err
	}
	h.conns = append(h.conns, nc)
	return nc, nil
}

func subjectOf(sub *nats.Subscription) string {
	if sub == nil {
		return ""
	}
	return sub.Subject
}

// wire joins engine and doors; each needs the other.
func (h *house) wire(frontends, asking *nats.Conn, outbox *hooks.Outbox, epoch events.ID) {
	h.rules = &noticing{Store: hooks.NewStore(storeOptions(h.dirs, h.config)), log: h.log}
	h.engine = engine.New(engine.Options{
		Log: h.journal, Alone: true, Core: h.core, Epoch: epoch, Owner: h.owner(), Logger: h.log,
		Rules:   h.rules,
		Run:     hooks.NewRunner(hooks.RunnerOptions{TempDir: h.dirs.Runtime, Environ: os.Environ()}),
		Outbox:  outbox,
		Timeout: h.config.Confirmation.Timeout, WhenNobody: events.WhenNobody(h.config.Confirmation.WhenNobody),
		Snapshot: filepath.Join(h.dirs.State, "snapshot"),
		OnSession: func(s events.SessionHead) {
			if err := h.door.Open(context.Background(), s); err != nil {
				h.log.Error("a session is not open to frontends", "session", s.Session, "error", err)
			}
		},
		OnLeave: func(s events.SessionHead) { h.door.Close(s) },
		HookTrace: func(s core.State, run events.ID) string {
			return tracing.Origin{
				StoreID: string(h.core), Session: s.Session, Operation: s.ID, Turn: s.Turn, Traceparent: s.Traceparent,
			}.HookTraceparent(run)
		},
		Feed: func(p engine.Place, feed string, seq uint64, l events.Live) { h.door.Publish(p, feed, seq, l) },
	})
	h.door = frontdesk.New(frontdesk.Options{
		Desk: h.engine, Conn: frontends, Core: h.core, Epoch: epoch, Log: h.log,
		Principal: func(name string) (string, bool) {
			p, ok := h.server.Principal(name)
			return p.String(), ok
		},
	})
	h.agents = agents.NewDoor(agents.DoorOptions{
		Desk: h.engine, Conn: asking, Core: h.core, Epoch: epoch, Stopping: engine.ErrStopped, Log: h.log,
	})
}

// owner is the principal of this user.
func (h *house) owner() string { return fmt.Sprintf("uid:%d", os.Getuid()) }

// sweep removes what earlier cores left behind: files of hooks that no process
// uses any more, half-written snapshots. The locks are held, so no other core
// writes one.
func (h *house) sweep() {
	err := hooks.Sweep(h.dirs.Runtime)
	snapshots, _ := filepath.Glob(filepath.Join(h.dirs.State, "snapshot.new-*"))
	for _, path := range snapshots {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		h.log.Warn("files of an earlier core are still there", "error", err)
	}
}

// noticing is the rules, and says once in the log which hooks files are there
// and not in force.
type noticing struct {
	*hooks.Store
	log  *slog.Logger
	said sync.Map // notices
}

// For implements [engine.Rules].
func (n *noticing) For(cwd string) (*hooks.Set, error) {
	set, err := n.Store.For(cwd)
	if err != nil {
		return nil, err
	}
	for _, notice := range set.Notices {
		if _, before := n.said.LoadOrStore(notice.Error(), true); !before {
			n.log.Warn("a hooks file is not in force", "why", notice)
		}
	}
	return set, nil
}
