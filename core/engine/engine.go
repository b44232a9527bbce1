// Package engine is the shell around the pure core: it loads an operation's
// state, lets core decide, appends the decision to the log, and then performs
// what the new state asks for.
//
// The one path is [Engine.decide] in operation.go. Everything else either
// leads there (asker.go for agents, answerer.go for frontends, hook.go and
// timer.go for what the core itself does, watch.go and after.go for hooks that
// decide nothing) or tells what happened (view.go for frontends, waiter.go for
// agents, history.go for who comes later).
// A fact leaves the core only after the log has acknowledged it.
package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// Times of design, not of taste: frontends and agents rely on them.
const (
	// FrontendLease is how long a frontend lives without a renewal.
	FrontendLease = 15 * time.Second
	// ClaimLease is how long a claim lives without a person's input.
	ClaimLease = 30 * time.Second
	// ReceiveWithin is how soon some frontend must have a question in its list.
	ReceiveWithin = 5 * time.Second
	// NobodyGrace is how long a question waits for a frontend after the last
	// one went, or after a restart.
	NobodyGrace = 30 * time.Second
	// AskerReturn is how long an operation waits after a restart for an asker whose
	// connection keeps it. One that keeps it by asking again has [events.AskerLease].
	AskerReturn = 10 * time.Second
	// DrawnWithin is how long a drawing waits to be written with another event.
	DrawnWithin = time.Second
	// appendLimit is how long the log may leave a decision without an ack; a
	// full disk gives none. Then nothing was decided, as far as anybody knows.
	appendLimit = 10 * time.Second
	// deadlineMargin is how long before an agent stops listening a question ends.
	deadlineMargin = time.Second
)

// snapshotEvery is the number of messages between two snapshots.
const snapshotEvery = 10_000

// maxArguments bounds an operation's arguments, bytes: they stand in one message,
// of at most 4 MiB, with the rest of it.
const maxArguments = 4<<20 - 64<<10

// ErrStopped is returned to waiters when the engine's Run ends. Nothing is
// withdrawn: the next core goes on where the log stands.
var ErrStopped = errors.New("the core is going down; the operation is kept")

// Log is what the engine needs of the journal.
type Log interface {
	Append(ctx context.Context, e journal.Entry) (uint64, error)
	Read(ctx context.Context, subject string) iter.Seq2[journal.Record, error]
	Scan(ctx context.Context, after uint64) iter.Seq2[journal.Record, error]
	Usage(ctx context.Context) (journal.Usage, error)
}

// Rules gives the hooks in force for a working directory.
type Rules interface {
	For(cwd string) (*hooks.Set, error)
}

// Options configure an engine. Log, Rules, Run, Core and Epoch are required.
type Options struct {
	Log   Log
	Rules Rules
	Run   hooks.Runner
	Core  events.Token
	Epoch events.ID
	// Alone says that no other core serves the same frontends.
	Alone bool
	// Owner is the principal of askers on the local socket, such as "uid:1000".
	Owner string
	// Timeout is how long a question waits for a person; 0 = without end.
	Timeout time.Duration
	// WhenNobody decides about questions that no frontend can show; reject if "".
	WhenNobody events.WhenNobody
	// Snapshot is the path of the snapshot file; "" = none is kept.
	Snapshot string
	// OnSession is called when a session opens or was recovered, before the
	// first question of it can be published.
	OnSession func(events.SessionHead)
	// HookTrace makes the TRACEPARENT of a hook's run, so that a hook can export
	// spans below its own; nil = none.
	HookTrace func(s core.State, run events.ID) string
	// OnLeave is called when a session has left memory, after the last message of
	// its feed.
	OnLeave func(events.SessionHead)
	// Outbox keeps the deliveries of durable hooks over the core's end; nil = they
	// are kept in memory only.
	Outbox Outbox
	// Feed publishes a message of a session's feed, in the order of the calls.
	Feed func(p Place, feed string, seq uint64, live events.Live)
	// Unreported is how many calls of a session, let go and not reported, memory
	// keeps; 10,000 if 0.
	Unreported int
	Logger     *slog.Logger
}

// Engine owns the open operations of one core.
type Engine struct {
	o Options
	// An append must outlive the caller who asked for it: its outcome counts
	// for everybody. So appends and hooks end with the engine, not with a call.
	ctx   context.Context //nolint:containedctx // the engine's life, as above
	stop  context.CancelCauseFunc
	tasks sync.WaitGroup
	began time.Time // where moments count from

	mu        sync.Mutex
	ops       map[events.ID]*operation
	questions map[events.ID]*operation // open questions
	sessions  map[events.Token]*session
	frontends map[events.ID]*frontend
	ended     ended
	feedFloor uint64 // no session that opens in this epoch begins its feed below it
	draining  bool

	slots    *slots
	repeats  *repeats
	past     *history
	watchers *watchers
	outbox   *outbox
	loose    looseRuns // while the log is scanned

	// barrier is held shared around append and apply, and whole while the
	// states are copied for a snapshot.
	barrier   sync.RWMutex
	lastSeq   atomic.Uint64
	written   atomic.Uint64 // messages since the last snapshot
	snapping  atomic.Bool
	searching chan struct{} // one token: reading back through the whole log
	warned    atomic.Bool   // the log is over 80 % of its limit
	full      atomic.Bool   // over 90 %
	// doubtful is set once an append's outcome stayed unknown: memory may then
	// lack what the log has, and no snapshot is made of it.
	doubtful atomic.Bool
}

// New makes an engine. Nothing happens before Run.
func New(o Options) *Engine {
	if o.WhenNobody == "" {
		o.WhenNobody = events.NobodyReject
	}
	if o.Unreported == 0 {
		o.Unreported = maxUnreported
	}
	if o.OnSession == nil {
		o.OnSession = func(events.SessionHead) {}
	}
	if o.OnLeave == nil {
		o.OnLeave = func(events.SessionHead) {}
	}
	if o.Feed == nil {
		o.Feed = func(Place, string, uint64, events.Live) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	return &Engine{
		o: o, ctx: ctx, stop: stop, began: time.Now(),
		ops:       map[events.ID]*operation{},
		questions: map[events.ID]*operation{},
		sessions:  map[events.Token]*session{},
		frontends: map[events.ID]*frontend{},
		ended:     newEnded(10_000),
		slots:     newSlots(),
		repeats:   newRepeats(),
		past:      newHistory(),
		watchers:  newWatchers(),
		outbox:    newOutbox(o.Outbox, o.Logger),
		loose:     looseRuns{},
		searching: make(chan struct{}, 1),
	}
}

// Recover folds the log and takes up what was open. It must return before any
// door opens.
func (e *Engine) Recover(ctx context.Context) error {
	e.outbox.load()
	if err := e.recover(ctx); err != nil {
		return fmt.Errorf("recover from the log: %w", err)
	}
	return nil
}

// Run keeps the engine alive until ctx ends, then waits for what it started and
// writes a last snapshot. It ends no operation: a core that goes down keeps them
// open for the next one. Runs that nothing waits for have the grace of their
// rules to end.
func (e *Engine) Run(ctx context.Context) error {
	often, seldom := time.NewTicker(5*time.Second), time.NewTicker(time.Minute)
	defer often.Stop()
	defer seldom.Stop()
	e.redeliver()
	for {
		select {
		case <-often.C:
			e.checkUsage(ctx)
			e.redeliver()
		case <-seldom.C:
			e.idle()
		case <-ctx.Done():
			e.watchers.close()
			e.stop(ErrStopped)
			e.quiesce()
			e.watchers.drain(func(*watch) bool { return true })
			e.tasks.Wait()
			e.snapshot()
			return context.Cause(ctx)
		}
	}
}

// Stop ends every open operation with shutdown, so that each asker is told no
// before the core goes.
func (e *Engine) Stop(ctx context.Context) {
	e.mu.Lock()
	e.draining = true
	open := e.all()
	e.mu.Unlock()
	abreast(open, func(op *operation) { e.withdraw(op, events.EndShutdown) })
	for _, op := range open {
		op.heard(ctx)
	}
}

// checkUsage warns at 80 % of the log's limit and refuses new operations at
// 90 %, so that open ones can still end.
func (e *Engine) checkUsage(ctx context.Context) {
	u, err := e.o.Log.Usage(ctx)
	if err != nil || u.Limit <= 0 {
		return
	}
	share := float64(u.Bytes) / float64(u.Limit)
	full, warned := share >= 0.9, share >= 0.8
	if changed := e.full.Swap(full) != full; e.warned.Swap(warned) != warned || changed {
		e.o.Logger.Warn("the log's filling has passed a mark", "bytes", u.Bytes, "limit", u.Limit, "refusing_new", full)
	}
}

func (e *Engine) now() time.Time    { return time.Now() }
func (e *Engine) at() events.Micros { return events.At(time.Now()) }
func (e *Engine) newID() events.ID  { return NewID(time.Now()) }
func (e *Engine) newIDs(n int) []events.ID {
	if n == 0 {
		return nil
	}
	ids := make([]events.ID, n)
	for i := range ids {
		ids[i] = e.newID()
	}
	return ids
}

// leftSession forgets what was remembered for a session that left memory.
func (e *Engine) leftSession(p Place) { e.repeats.forget(p) }

func (e *Engine) stopped() bool { return e.ctx.Err() != nil }
func (e *Engine) salt() []byte  { s := make([]byte, events.SaltSize); _, _ = rand.Read(s); return s }

// NewID makes an id with fresh randomness.
func NewID(at time.Time) events.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails; the runtime ends the process instead
	return events.NewID(at, entropy)
}
