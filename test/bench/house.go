package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

// askRule asks about everything; noRule matches nothing.
const (
	askRule = `version: 1
hooks:
  - id: ask
    event: before_tool_call
    execution: {mode: blocking}
    run: {type: verdict, action: ask, reason: look}
`
	noRule = `version: 1
hooks:
  - id: other
    event: before_tool_call
    match: {tool_kind: shell}
    execution: {mode: blocking}
    run: {type: verdict, action: ask, reason: look}
`
)

// argument is what a measured call carries, 512 bytes.
func argument() string { return `{"content":"` + strings.Repeat("x", 498) + `"}` }

// house is the core's middle in this process: server, journal, engine, a hook
// that is a Go function, and a frontend that is one too.
type house struct {
	server  *natsd.Server
	conn    *nats.Conn
	eng     *engine.Engine
	front   engine.Frontend
	answers bool // the frontend answers at once; else it only receives
	appends atomic.Int64
	ctx     context.Context //nolint:containedctx // the house's life, for callers of a benchmark
	stop    func()
}

// houseOptions say what a house is for.
type houseOptions struct {
	mode    string
	dir     string // "" = a new one
	rule    string
	log     engine.Log // nil = the journal
	answers bool
	// programs runs hooks as the core does; else each of them asks, and no
	// program is started.
	programs bool
}

func openHouse(ctx context.Context, b *bench, o houseOptions) (_ *house, err error) {
	if o.dir == "" {
		if o.dir, err = b.temp(); err != nil {
			return nil, err
		}
	}
	if err := writeRule(o.dir, o.rule); err != nil {
		return nil, err
	}
	h := &house{answers: o.answers, front: engine.Frontend{ID: newID(), Principal: "uid:1"}, stop: func() {}}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	log := o.log
	if log == nil {
		if log, err = h.openLog(ctx, o); err != nil {
			return nil, err
		}
	}
	nobody := events.NobodyReject
	if !o.answers {
		nobody = events.NobodyWait // a busy machine must not end what is being measured
	}
	run := asking
	if o.programs {
		run = programRunner(o.dir)
	}
	h.eng = engine.New(engine.Options{
		WhenNobody: nobody,
		Log:        counted{log, &h.appends}, Core: events.CoreToken("bench"), Epoch: newID(), Owner: "uid:1",
		Rules:    hooks.NewStore(hooks.StoreOptions{GlobalDir: filepath.Join(o.dir, "c")}),
		Run:      run,
		Snapshot: filepath.Join(o.dir, "s", "snapshot"), Feed: h.feed,
	})
	if err := h.eng.Recover(ctx); err != nil {
		return nil, err
	}
	return h, h.run()
}

func asking(context.Context, hooks.Hook, hooks.Input) hooks.Result {
	return hooks.Result{Effect: events.EffectAsk, Outcome: events.RunOK, Reason: "look"}
}

func (h *house) openLog(ctx context.Context, o houseOptions) (engine.Log, error) {
	var err error
	h.server, err = natsd.Start(natsd.Options{
		StateDir: filepath.Join(o.dir, "s"), RuntimeDir: filepath.Join(o.dir, "r"), SyncAlways: o.mode == "power", MaxStore: 8 << 30,
	})
	if err != nil {
		return nil, err
	}
	if h.conn, err = h.server.Core(); err != nil {
		return nil, err
	}
	return journal.Open(ctx, h.conn, journal.Options{
		Core: events.CoreToken("bench"), MaxBytes: 7 << 30, SyncAlways: o.mode == "power", Now: time.Now, NewID: newID,
	})
}

// run starts the engine and attaches the frontend, which renews.
func (h *house) run() error {
	var cancel context.CancelFunc
	h.ctx, cancel = context.WithCancel(context.Background())
	done, renewed := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); _ = h.eng.Run(h.ctx) }()
	hello := h.eng.Hello(h.front, events.DoorAll, events.Hello{Kind: events.FrontendTUI, Capable: true, Name: "bench"})
	go func() { defer close(renewed); h.renew(h.ctx) }()
	h.stop = func() { cancel(); <-done; <-renewed }
	if hello.Refused != nil {
		return hello.Refused
	}
	return nil
}

func (h *house) renew(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.eng.Renew(h.front, events.DoorAll, events.Renew{Input: true})
		case <-ctx.Done():
			return
		}
	}
}

// feed is the frontend: it answers, or has the question in its list.
func (h *house) feed(p engine.Place, _ string, _ uint64, live events.Live) {
	q := live.Asked
	if q == nil {
		return
	}
	go func() {
		if !h.answers {
			h.eng.Received(h.front, p, events.Received{Questions: []events.ID{q.ID}})
			return
		}
		h.eng.Respond(h.ctx, h.front, p, events.Respond{
			Question: q.ID, Digest: q.Version.Digest, Answer: events.AnswerContinue, Human: true,
		})
	}()
}

func (h *house) proposal() core.Proposal {
	return core.Proposal{
		Operation: newID(), Secret: "a secret of the asker", Agent: "generic", Native: "bench", Cwd: "/", Path: events.MainPath,
		Kind: events.KindToolCall,
		Tool: events.Tool{Name: "write", Kind: "filesystem.write"}, Args: []byte(argument()),
	}
}

// verdict proposes and waits; the call must be allowed.
func (h *house) verdict(ctx context.Context) (core.Proposal, error) {
	p := h.proposal()
	if err := h.eng.Propose(ctx, p); err != nil {
		return p, err
	}
	v, err := h.eng.Await(ctx, p.Operation, p.Secret)
	if err == nil && !v.Allow {
		err = fmt.Errorf("refused: %s", v.Code)
	}
	return p, err
}

// leave ends an operation as its asker does: it confirms and goes.
func (h *house) leave(ctx context.Context, p core.Proposal) error {
	err := h.eng.Receipt(ctx, p.Operation, p.Secret, "")
	h.eng.Gone(p.Operation, p.Secret, events.EndAgentGone)
	return err
}

// once is one round trip with its receipt.
func (h *house) once(ctx context.Context) error {
	p, err := h.verdict(ctx)
	return errors.Join(err, h.leave(ctx, p))
}

func (h *house) close() {
	h.stop()
	if h.conn != nil {
		h.conn.Close()
	}
	if h.server != nil {
		h.server.Close()
	}
}

// counted counts appends.
type counted struct {
	engine.Log
	n *atomic.Int64
}

// Append counts and appends.
func (c counted) Append(ctx context.Context, e journal.Entry) (uint64, error) {
	c.n.Add(1)
	return c.Log.Append(ctx, e)
}

func newID() events.ID { return engine.NewID(time.Now()) }

// settle waits until rules that were just written are older than what a core takes
// for a file that somebody may still be writing: it reads such a one at each call.
// A person's rules are older.
func settle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(2100 * time.Millisecond):
	}
}

// writeRule puts a hooks file into the configuration below dir.
func writeRule(dir, rule string) error {
	config := filepath.Join(dir, "c")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(config, "hooks.yaml"), []byte(rule), 0o600)
}
