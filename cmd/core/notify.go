package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
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
	bus     *notify.Bus // nil = none
	owner   string      // the principal of this user
	log     *slog.Logger
	own     atomic.Int64 // frontends that this one is, besides the client

	offering *presence // has the core count on popups
	holding  *presence // has those questions that a person had, has or has next before them
}

// openCalling makes it when there is a way to call; else it is nil.
func (h *house) openCalling() (*calling, error) {
	c := &calling{engine: h.engine, owner: h.owner(), log: h.log, options: notify.Options{Command: h.config.Notify.Command, Words: h.cli.w, Log: h.log}}
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
	p := notify.Popups{Screen: []string{screen, "--socket", h.dirs.NATSSocket()}, Environ: os.Environ(), Dir: h.dirs.Runtime}
	c.options.Popup = p.Open
	c.options.Hold = c.hold
	c.offering, c.holding = c.presence(), c.presence()
}

// presence is a frontend that can be asked where an agent stands in a pane. It is no
// client: that would have every question in its list.
type presence struct {
	calling *calling
	self    engine.Frontend

	mu      sync.Mutex
	here    bool
	refused bool // is in the log
	held    map[events.ID]events.Question
}

func (c *calling) presence() *presence {
	return &presence{calling: c, self: engine.Frontend{ID: engine.NewID(time.Now()), Principal: c.owner}, held: map[events.ID]events.Question{}}
}

// offer has the core count on popups. The one that offers has no question in its
// list: one over which no popup opens ends as one that nobody receives.
func (c *calling) offer(ctx context.Context) {
	c.offering.stay(ctx, func() bool { return true })
}

// keep keeps those questions open that are held.
func (c *calling) keep(ctx context.Context) {
	c.holding.stay(ctx, func() bool { return len(c.holding.held) > 0 })
}

// stay renews a presence as long as it has a reason, until ctx ends.
func (p *presence) stay(ctx context.Context, reason func() bool) {
	renewal := time.NewTicker(engine.FrontendLease / 3)
	defer renewal.Stop()
	defer p.change(p.leave)
	for {
		p.change(func() {
			if reason() {
				p.hello()
			}
		})
		select {
		case <-ctx.Done():
			return
		case <-renewal.C:
		}
	}
}

// hold keeps a question open until ctx ends, as a frontend does that has it in its
// list.
func (c *calling) hold(ctx context.Context, q events.Question) {
	p := c.holding
	p.change(func() {
		p.held[q.ID] = q
		p.hello()
	})
	<-ctx.Done()
	p.change(func() {
		delete(p.held, q.ID)
		if p.leave(); len(p.held) > 0 { // a list only grows: it begins anew
			p.hello()
		}
	})
}

// change changes a presence, one at a time.
func (p *presence) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// hello attaches, or says that it is still there, with what is held. p.mu is held.
func (p *presence) hello() {
	e := p.calling.engine
	no := e.Hello(p.self, events.DoorAll, events.Hello{Kind: events.FrontendCLI, Capable: true, Panes: true, Name: "popup"}).Refused
	if p.attached(no == nil); no == nil {
		for _, q := range p.held {
			no = cmp.Or(no, e.Received(p.self, engine.Place{Project: q.Project, Session: q.Session}, events.Received{Questions: []events.ID{q.ID}}).Refused)
		}
	}
	if no != nil && !p.refused {
		p.calling.log.Warn("questions over an agent's pane are not kept open", "why", no)
	}
	p.refused = no != nil
}

// leave detaches. p.mu is held.
func (p *presence) leave() {
	p.calling.engine.Bye(p.self)
	p.attached(false)
}

// attached counts the frontends of the core's own. p.mu is held.
func (p *presence) attached(here bool) {
	switch {
	case here && !p.here:
		p.calling.own.Add(1)
	case !here && p.here:
		p.calling.own.Add(-1)
	}
	p.here = here
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
	g.Go(func() error { return notify.Run(ctx, c.options) })
	if c.options.Popup != nil {
		g.Go(func() error { c.offer(ctx); return nil })
		g.Go(func() error { c.keep(ctx); return nil })
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
