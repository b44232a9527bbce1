package engine

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// Outbox keeps the deliveries of durable hooks until they have succeeded.
type Outbox interface {
	Put(e hooks.Entry) error
	Done(run events.ID) error
	Entries() ([]hooks.Entry, error)
}

// outbox is what durable hooks are still owed: each is started again when its
// last start is old enough, a number of times at most.
type outbox struct {
	store  Outbox // nil = deliveries do not outlive the core
	logger *slog.Logger

	mu   sync.Mutex
	owed map[events.ID]*owed
}

type owed struct {
	entry   hooks.Entry
	running bool
}

func newOutbox(store Outbox, logger *slog.Logger) *outbox {
	return &outbox{store: store, logger: logger, owed: map[events.ID]*owed{}}
}

// load takes up what the core before left.
func (o *outbox) load() {
	if o.store == nil {
		return
	}
	list, err := o.store.Entries()
	if err != nil {
		o.logger.Error("some deliveries of durable hooks are not readable; the others go on", "error", err)
	}
	for _, e := range list {
		o.owed[e.Run] = &owed{entry: e}
	}
}

// owe keeps a delivery before its first start is on record, so that a crash between
// the two loses nothing: of an event that happened nobody else would make it again.
func (o *outbox) owe(e *hooks.Entry) {
	if e == nil {
		return
	}
	first := *e
	first.Starts = 0
	o.put(&first)
}

// put keeps a delivery whose run is about to start.
func (o *outbox) put(e *hooks.Entry) {
	if e == nil {
		return
	}
	o.mu.Lock()
	o.owed[e.Run] = &owed{entry: *e, running: true}
	o.mu.Unlock()
	o.keep(*e)
}

// adopt keeps a delivery that a crash cut off before it was kept.
func (o *outbox) adopt(e *hooks.Entry) {
	o.mu.Lock()
	_, known := o.owed[e.Run]
	if !known {
		o.owed[e.Run] = &owed{entry: *e}
	}
	o.mu.Unlock()
	if !known {
		o.keep(*e)
	}
}

func (o *outbox) keep(e hooks.Entry) {
	if o.store == nil {
		return
	}
	if err := o.store.Put(e); err != nil {
		o.logger.Error("a durable hook's delivery is not kept; it is lost if the core ends now", "hook", e.Hook.ID, "error", err)
	}
}

// ran notes the end of a start: a success ends the delivery.
func (o *outbox) ran(e *hooks.Entry, res hooks.Result) {
	if e == nil {
		return
	}
	if res.Outcome == events.RunOK || res.Outcome == events.RunDetached {
		o.done(e.Run)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if d, ok := o.owed[e.Run]; ok {
		d.running = false
	}
}

func (o *outbox) done(run events.ID) {
	o.mu.Lock()
	delete(o.owed, run)
	o.mu.Unlock()
	if o.store == nil {
		return
	}
	if err := o.store.Done(run); err != nil {
		o.logger.Error("a durable hook's delivery was made and is still kept; it may be made again", "run", run, "error", err)
	}
}

// idle lists the deliveries of which no start is running.
func (o *outbox) idle() []hooks.Entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []hooks.Entry
	for _, d := range o.owed {
		if !d.running {
			list = append(list, d.entry)
		}
	}
	return list
}

// claim makes sure that only one start of a delivery runs.
func (o *outbox) claim(run events.ID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, ok := o.owed[run]
	if !ok || d.running {
		return false
	}
	d.running = true
	return true
}

func (o *outbox) unclaim(run events.ID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d, ok := o.owed[run]; ok {
		d.running = false
	}
}

// delivery is the entry of a watcher's first start.
func (e *Engine) delivery(op *operation, s core.State, started events.HookStarted) *hooks.Entry {
	p, in := op.place.Value(), e.watchInput(op, s, started)
	in.Payload.Timestamp = e.now()
	return &hooks.Entry{
		Run: started.Run, Hook: started.Hook, Event: gateOf(s.Proposed.Kind), Session: p.Session, Project: p.Project, Operation: op.id,
		Cwd: s.Proposed.Cwd, Payload: in.Payload.Encode(), Starts: started.Start, Last: in.Payload.Timestamp,
	}
}

// redeliver starts what is due again. It returns soon.
func (e *Engine) redeliver() {
	for _, entry := range e.outbox.idle() {
		set, err := e.o.Rules.For(entry.Cwd)
		if err != nil {
			continue // whether the hook still stands is not known now
		}
		if e.now().Sub(entry.Last) >= set.Settings.OutboxRetryAge && e.outbox.claim(entry.Run) {
			e.tasks.Go(func() { e.deliverAgain(entry, set) })
		}
	}
}

// deliverAgain starts a durable hook once more, or gives it up: after the last
// start that the rules allow, or when they do not have it any more.
func (e *Engine) deliverAgain(entry hooks.Entry, set *hooks.Set) {
	if entry.Starts >= max(1, set.Settings.OutboxMaxRetries) {
		e.o.Logger.Warn("a durable hook is given up after its last start", "hook", entry.Hook.ID, "starts", entry.Starts)
		e.outbox.done(entry.Run)
		return
	}
	w, op, err := e.redelivery(&entry, set)
	if no, ok := errors.AsType[*events.Refused](err); ok && no.Code == events.RejectUnknownOperation {
		e.o.Logger.Warn("a durable hook is given up: the log does not have its operation", "hook", entry.Hook.ID, "operation", entry.Operation)
		e.outbox.done(entry.Run)
		return
	}
	if err != nil {
		e.notNow(entry, err)
		return
	}
	s := core.State{Project: w.place.Project, Session: w.place.Session}
	if op != nil {
		defer e.unhold(op)
		s = op.snapshot()
	}
	if err := w.record([]events.Event{w.started}, nil); err != nil {
		e.notNow(entry, err)
		return
	}
	i, found := findHook(set, entry)
	if !found {
		e.giveUpRun(w, "the hook is no longer in the rules")
		e.outbox.done(entry.Run)
		return
	}
	w.hook = set.Hook(i)
	w.in = hooks.Input{Raw: entry.Payload, Env: e.environment(s, w.started.Run), Cwd: entry.Cwd}
	e.start(w)
}

// notNow leaves a delivery for later.
func (e *Engine) notNow(entry hooks.Entry, err error) {
	e.outbox.unclaim(entry.Run)
	if !e.stopped() {
		e.o.Logger.Error("a durable hook cannot be started again now", "hook", entry.Hook.ID, "error", err)
	}
}

// redelivery is the next start of a delivery. Its operation, nil if it has none,
// is held in memory.
func (e *Engine) redelivery(entry *hooks.Entry, set *hooks.Set) (*watch, *operation, error) {
	p := Place{entry.Project, entry.Session}
	entry.Starts++
	entry.Last = e.now()
	started := events.HookStarted{Run: e.newID(), Hook: entry.Hook, Mode: events.ModeAsync, Start: entry.Starts}
	if i, found := findHook(set, *entry); found {
		started.Hook, started.Mode = set.Hook(i).Ref, set.Hook(i).Mode
	}
	if !entry.Event.Gated() {
		started.Event = entry.Event
	}
	w := &watch{place: p, started: started, set: set, entry: entry}
	if entry.Operation == "" {
		w.record = e.recordOn(p, "", "")
		return w, nil, nil
	}
	op, err := e.holdAt(p, entry.Operation)
	if err != nil {
		return nil, nil, err
	}
	s := op.snapshot()
	w.record, w.started.Version = e.recordRuns(op), s.Current().N
	return w, op, nil
}

// findHook finds a delivery's hook in today's rules.
func findHook(set *hooks.Set, entry hooks.Entry) (index int, found bool) {
	for i, h := range set.Hooks {
		same := h.Ref.ID == entry.Hook.ID && h.Ref.Scope == entry.Hook.Scope && h.Ref.File == entry.Hook.File && h.Event == entry.Event
		if same && h.Enabled && h.Mode != hooks.Blocking && h.Delivery == hooks.Durable {
			return i, true
		}
	}
	return 0, false
}
