package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
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

// logLimit is the size of the log at which new operations are refused (90 %).
const logLimit = 8 << 30

func serveCommand() *cobra.Command {
	var cfg place.Config
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the core until SIGTERM or `core stop`", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dirs, err := place.Resolve()
			if err != nil {
				return exitError{exitFault, err}
			}
			c, err := place.Load(dirs.ConfigFile())
			if err != nil {
				return exitError{exitFault, err}
			}
			if err := c.Override(cmd.Flags()); err != nil {
				return exitError{exitFault, err}
			}
			_ = cfg
			log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			h, err := open(cmd.Context(), dirs, c, log)
			if err != nil {
				return exitError{exitFault, err}
			}
			log.Info("the core is up", "core", h.core, "mode", c.Mode, "state", dirs.State, "runtime", dirs.Runtime)
			if err := h.Run(cmd.Context()); err != nil && !errors.Is(err, context.Canceled) {
				return exitError{exitFault, err}
			}
			return nil
		},
	}
	place.Flags(cmd.Flags())
	return cmd
}

// house is a core with all its rooms, ready to run.
type house struct {
	dirs    place.Dirs
	config  place.Config
	core    events.Token
	log     *slog.Logger
	server  *natsd.Server
	conns   []*nats.Conn
	journal *journal.Journal
	engine  *engine.Engine
	desk    *frontdesk.Desk
	socket  *agents.Socket
	traces  *tracing.Projector
	stopped chan struct{} // closed by `core stop`
	stop    func()
}

// open builds the house and recovers what an earlier core left open. On an
// error everything that was begun is ended again.
func open(ctx context.Context, dirs place.Dirs, c place.Config, log *slog.Logger) (_ *house, err error) {
	h := &house{dirs: dirs, config: c, log: log, stopped: make(chan struct{})}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
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
	log_, err := h.connect(h.server.Core)
	if err != nil {
		return nil, err
	}
	doors, err := h.connect(h.server.Doors)
	if err != nil {
		return nil, err
	}
	newID := func() events.ID { return engine.NewID(time.Now()) }
	h.journal, err = journal.Open(ctx, log_, journal.Options{
		Core: h.core, Replicas: 1, MaxBytes: logLimit, Now: time.Now, NewID: newID, Log: log,
	})
	if err != nil {
		return nil, err
	}
	h.build(doors, newID())
	if err := h.project(seed); err != nil {
		return nil, err
	}
	return h, h.engine.Recover(ctx)
}

func (h *house) connect(dial func(...nats.Option) (*nats.Conn, error)) (*nats.Conn, error) {
	nc, err := dial()
	if err == nil {
		h.conns = append(h.conns, nc)
	}
	return nc, err
}

// build wires engine and doors.
func (h *house) build(doors *nats.Conn, epoch events.ID) {
	owner := fmt.Sprintf("uid:%d", os.Getuid())
	h.engine = engine.New(engine.Options{
		Log: h.journal, Rules: hooks.NewStore(hooks.StoreOptions{GlobalDir: h.dirs.Config}),
		Run:  hooks.NewRunner(hooks.RunnerOptions{TempDir: h.dirs.Runtime, Environ: os.Environ()}),
		Core: h.core, Epoch: epoch, Owner: owner, Timeout: h.config.Confirmation.Timeout, WhenNobody: h.config.Confirmation.WhenNobody,
		Snapshot: filepath.Join(h.dirs.State, "snapshot"), Logger: h.log,
		OnSession: func(s events.SessionHead) { h.desk.Open(s) },
		Feed:      func(p engine.Place, feed string, seq uint64, l events.Live) { h.desk.Publish(p, feed, seq, l) },
	})
	h.desk = frontdesk.New(frontdesk.Options{
		Desk: h.engine, Conn: doors, Core: h.core, Epoch: epoch, Log: h.log,
		Principal: func(id string) (string, bool) { p, ok := h.server.Principal(id); return p.String(), ok },
	})
}

// project sets up the projection of the log to traces.jsonl.
func (h *house) project(seed []byte) error {
	sink, err := tracing.OpenFile(filepath.Join(h.dirs.State, "traces.jsonl"))
	if err != nil {
		return err
	}
	h.traces = tracing.New(tracing.Options{StoreID: string(h.core), Version: version, Key: seed, Sink: sink})
	return nil
}

// Run serves until ctx ends or somebody says stop, and then ends the rooms in
// order: doors, engine, projection, server. A cancelled ctx withdraws nothing.
func (h *house) Run(ctx context.Context) error {
	defer h.close()
	listener, err := h.server.ListenAgents()
	if err != nil {
		return err
	}
	h.socket = agents.NewSocket(agents.Options{
		Listener: listener, Desk: h.engine, Log: h.log,
		Adapters: map[events.Agent]agents.Adapter{"generic": generic.Adapter{}, "gemini": gemini.Adapter{}},
	})
	_ = io.EOF
	_ = hex.EncodeToString
	var g errgroup.Group
	_ = g
	return nil
}

func (h *house) close() {
	for _, nc := range h.conns {
		nc.Close()
	}
	if h.server != nil {
		h.server.Close()
	}
}

// secret reads a random 32-byte value from a file, or makes it.
func secret(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) == 32 {
		return b, nil
	}
	if err == nil {
		return nil, fmt.Errorf("%s has %d bytes, not 32: it was damaged; restore it, or move the state directory away", path, len(b))
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	b = make([]byte, 32)
	_, _ = rand.Read(b)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return b, os.WriteFile(path, b, 0o600)
}
