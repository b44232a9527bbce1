package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/notify"
)

// calling is the frontend inside the core that calls the person to a question. It can
// be asked nothing: what it opens over an agent's pane is a frontend of its own.
type calling struct {
	engine  *engine.Engine
	options notify.Options
	client  *frontends.Client
	bus     *notify.Bus  // nil = none
	owner   string       // the principal of this user
	own     atomic.Int64 // frontends that this one is, besides the client
}

// openCalling makes it when there is a way to call; else it is nil.
func (h *house) openCalling() (*calling, error) {
	c := &calling{engine: h.engine, owner: h.owner(), options: notify.Options{Command: h.config.Notify.Command, Words: h.cli.w, Log: h.log}}
	if h.config.Notify.Desktop == place.NotifyAuto {
		c.desktop(h)
	}
	if h.config.Notify.Popup == place.NotifyAuto {
		c.screens(h)
	}
	if c.options.Desktop == nil && c.options.Command == "" && c.options.Popup == nil {
		return nil, nil
	}
	var err error
	c.client, err = frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, h.dirs) },
		ID:   engine.NewID(time.Now()), Kind: events.FrontendCLI, Name: "notify", Log: h.log,
	})
	if err != nil {
		return nil, err
	}
	c.options.Client, c.options.Inbox = c.client, c.client.Inbox()
	return c, nil
}

func (c *calling) desktop(h *house) {
	if runtime.GOOS == "darwin" {
		c.options.Desktop = notify.Script{}
		return
	}
	dial, err := notify.DialBus(os.Getenv)
	if err != nil {
		h.log.Info("no notifications of the desktop", "why", err)
		return
	}
	c.bus = &notify.Bus{Dial: dial}
	c.options.Desktop = c.bus
}

func (c *calling) screens(h *house) {
	screen, err := screenProgram()
	if err != nil {
		h.log.Warn("no question opens over an agent's pane", "why", err)
		return
	}
	p := notify.Popups{Screen: []string{screen, "--socket", h.dirs.NATSSocket()}, Environ: os.Environ()}
	c.options.Popup = p.Open
	c.options.Hold = c.hold
}

// offer has the core count on popups, where an agent stands in a pane. It has no
// question in its list: one over which no popup opens ends as if there were none.
func (c *calling) offer(ctx context.Context) error {
	c.present(ctx, func(engine.Frontend) {})
	return nil
}

// hold keeps a question open, as a frontend does that has it in its list.
func (c *calling) hold(ctx context.Context, q events.Question) {
	c.present(ctx, func(f engine.Frontend) {
		c.engine.Received(f, engine.Place{Project: q.Project, Session: q.Session}, events.Received{Questions: []events.ID{q.ID}})
	})
}

// present is a frontend that can be asked where an agent stands in a pane, until ctx
// ends. It is no client: that would have every question in its list.
func (c *calling) present(ctx context.Context, tell func(engine.Frontend)) {
	f := engine.Frontend{ID: engine.NewID(time.Now()), Principal: c.owner}
	renewal := time.NewTicker(engine.FrontendLease / 3)
	defer renewal.Stop()
	c.own.Add(1)
	defer c.own.Add(-1)
	defer c.engine.Bye(f)
	for {
		c.engine.Hello(f, events.DoorAll, events.Hello{Kind: events.FrontendCLI, Capable: true, Panes: true, Name: "popup"})
		tell(f)
		select {
		case <-ctx.Done():
			return
		case <-renewal.C:
		}
	}
}

// screenProgram is the terminal frontend, beside this program or in PATH.
func screenProgram() (string, error) {
	const name = "tui-frontend"
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		if beside, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return beside, nil
		}
	}
	return exec.LookPath(name) // never one of the working directory
}

// run calls until ctx ends. What goes wrong here ends no core.
func (c *calling) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.client.Run(ctx) })
	g.Go(func() error { return notify.New(c.options).Run(ctx) })
	if c.options.Popup != nil {
		g.Go(func() error { return c.offer(ctx) })
	}
	err := g.Wait()
	if c.bus != nil {
		c.bus.Leave()
	}
	if errors.Is(err, frontends.ErrClosed) {
		return nil // the client has said why
	}
	return err
}

// attached is how many of the attached frontends are the core's own.
func (c *calling) attached() int {
	if c == nil {
		return 0
	}
	n := int(c.own.Load())
	if c.client.Inbox().Attached() {
		n++
	}
	return n
}
