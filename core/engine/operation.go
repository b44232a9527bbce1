package engine

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// operation is one operation in memory: the fold of its subject and what only
// this core knows of it.
type operation struct {
	place unique.Handle[Place] // the same for all of a session, so kept once
	id    events.ID
	// turn is the mailbox: who holds its token decides. A channel, because
	// whoever waits here waits for an append.
	turn chan struct{}

	mu    sync.Mutex // guards everything below; never held while waiting
	state core.State
	stale bool       // an append's outcome is unknown: read the log before deciding
	fault bool       // this core has given it up: the asker is refused
	set   *hooks.Set // the configuration that it began with; nil if that is gone

	// rung is the frontend that may call the person to the open question, the zero
	// handle for none yet. One frontend rings for many, so its id is kept once.
	rung unique.Handle[events.ID]

	askers   int32         // connections that wait for the verdict
	held     int32         // who else needs it in memory
	waiters  *waiter       // who waits for the verdict
	heardAll chan struct{} // closed when no asker is left; nil until somebody waits
	running  events.ID     // the hook's run that endRun ends
	endRun   context.CancelFunc

	received []events.ID    // capable frontends that have the question in their list
	drawn    []core.Present // drawings that are not written yet
	rejected int            // answers to the open question that were rejected

	timer *time.Timer // nil while nothing is due
	due   dues
}

func newOperation(p Place, id events.ID, s core.State) *operation {
	return &operation{place: unique.Make(p), id: id, state: s, rejected: s.Question.Rejected, turn: make(chan struct{}, 1)}
}

// subject is where the operation stands in the log. It is made when it is
// needed: 100,000 operations may be waiting.
func (op *operation) subject() string {
	p := op.place.Value()
	return events.OperationSubject(p.Project, p.Session, op.id)
}

func (op *operation) snapshot() core.State {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.state
}

// wants makes the command for the state that it will be decided on. It runs
// when the operation's turn has come; nil means that nothing is wanted any
// more.
type wants func(s core.State) core.Command

// decide takes the operation's turn, lets core decide, appends, applies, and
// performs. It returns the state after it and core's typed refusal, if any.
// Once it has begun to append it does not give up before the outcome is known
// or the engine stops.
func (e *Engine) decide(op *operation, principal string, want wants) (core.State, error) {
	return e.decideWithin(e.ctx, op, principal, want)
}

// decideWithin is decide for what may still be written while the engine ends.
func (e *Engine) decideWithin(ctx context.Context, op *operation, principal string, want wants) (core.State, error) {
	select {
	case op.turn <- struct{}{}:
	case <-ctx.Done():
		return op.snapshot(), ErrStopped
	}
	defer func() { <-op.turn }()
	for {
		if err := e.freshen(op); err != nil {
			return op.snapshot(), err
		}
		s := op.snapshot()
		cmd := want(s)
		if cmd == nil {
			return s, nil
		}
		d, drawn, refusal := e.decideWithDrawn(op, s, cmd)
		if len(d.Events) == 0 {
			return s, refusal
		}
		next, err := e.write(ctx, op, s, d, drawn, principal)
		if _, ok := errors.AsType[*journal.Lost](err); ok {
			continue
		}
		if err != nil {
			return s, err
		}
		return next, refusal
	}
}

// decideWithDrawn puts the drawings that are still in memory before the decision
// that follows them; drawn counts them.
func (e *Engine) decideWithDrawn(op *operation, s core.State, cmd core.Command) (_ core.Decision, drawn int, _ error) {
	op.mu.Lock()
	waiting := op.drawn
	op.mu.Unlock()
	var first core.Decision
	for _, p := range waiting {
		d, err := core.Decide(s, p)
		if err != nil {
			continue // the question it drew has ended
		}
		s = core.After(s, d)
		first.Events = append(first.Events, d.Events...)
	}
	d, refusal := core.Decide(s, cmd)
	if len(d.Events) == 0 {
		return core.Decision{}, 0, refusal
	}
	d.Events = append(first.Events, d.Events...)
	return d, len(waiting), refusal
}

// write appends one decision and, after the ack, applies and performs it. With
// it go the first of the drawings in memory, as many as drawn says; others may
// have come meanwhile.
func (e *Engine) write(ctx context.Context, op *operation, s core.State, d core.Decision, drawn int, principal string) (core.State, error) {
	p := op.place.Value()
	d = e.through(op, s, d)
	m := events.Message{
		ID: e.newID(), Project: p.Project, Session: p.Session, Operation: s.ID, Turn: s.Turn,
		At: e.at(), Principal: principal, Prev: s.Hash.Digest(), Events: d.Events, Bodies: d.Bodies,
	}
	if s.Seq == 0 || slices.ContainsFunc(d.Events, standsAlone) {
		m.Traceparent = s.Traceparent
	}
	entry, err := e.encode(&m, s.Seq)
	if err != nil {
		return s, err
	}
	cancel := e.launch(op, s, d)
	e.barrier.RLock()
	defer e.barrier.RUnlock()
	if m.Seq, err = e.append(ctx, entry); err != nil {
		cancel()
		op.doubt()
		return s, err
	}
	next := core.Apply(s, m)
	op.mu.Lock()
	op.state, op.drawn = next, slices.Clone(op.drawn[drawn:])
	op.mu.Unlock()
	e.advance(m.Seq)
	e.perform(op, m, next)
	return next, nil
}

// standsAlone reports an event of a run that may outlast its operation: whoever
// follows it must find its trace in its own messages.
func standsAlone(ev events.Event) bool {
	if started, ok := ev.(events.HookStarted); ok {
		return !started.AtGate()
	}
	ran, ok := ev.(events.HookRan)
	return ok && !ran.AtGate()
}

// freshen reads the operation from the log again when an append left its state
// in doubt. An append that was never acknowledged may have come through: what
// the log has more than this core knew is performed now.
func (e *Engine) freshen(op *operation) error {
	op.mu.Lock()
	stale, id, known := op.stale, op.state.ID, op.state.Seq
	op.mu.Unlock()
	if !stale {
		return nil
	}
	s := core.State{ID: id}
	type step struct {
		m     events.Message
		after core.State
	}
	var missed []step
	for m, err := range e.messages(e.ctx, op.subject()) {
		if err != nil {
			return e.appendFailed(err)
		}
		if s = core.Apply(s, m); m.Seq > known {
			missed = append(missed, step{m, s})
		}
	}
	op.mu.Lock()
	op.state, op.stale = s, false
	op.mu.Unlock()
	for _, past := range missed {
		e.perform(op, past.m, past.after)
	}
	return nil
}

// fold reads the state behind one subject from the log.
func (e *Engine) fold(subject string) (s core.State, _ error) {
	for m, err := range e.messages(e.ctx, subject) {
		if err != nil {
			return core.State{}, err
		}
		s = core.Apply(s, m)
	}
	return s, nil
}

// messages reads one subject from the log. An error is the last thing it yields.
func (e *Engine) messages(ctx context.Context, subject string) iter.Seq2[events.Message, error] {
	return func(yield func(events.Message, error) bool) {
		for r, err := range e.o.Log.Read(ctx, subject) {
			var m events.Message
			if err == nil {
				m, err = events.DecodeMessage(r.Data)
			}
			m.Seq = r.Seq
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// doubt has the log read before the next decision.
func (op *operation) doubt() {
	op.mu.Lock()
	op.stale = true
	op.mu.Unlock()
}

// perform does what a written message asks for: tell the frontends, wake the
// asker, end what is over, set the timer.
func (e *Engine) perform(op *operation, m events.Message, s core.State) {
	now := e.in(0)
	op.mu.Lock()
	for _, ev := range m.Events {
		op.note(ev, s, now)
	}
	if s.Phase == core.PhaseEnded && op.endRun != nil {
		op.endRun()
	}
	op.mu.Unlock()
	e.wake(op)
	e.index(op, m)
	e.tell(op, m, s)
	e.arm(op)
	e.note(op, m, s)
	e.follow(op, m, s)
	e.settle(op)
}

// note keeps what sessions know of their operations in step with the log.
func (e *Engine) note(op *operation, m events.Message, s core.State) {
	e.repeats.take(s, m)
	for _, ev := range m.Events {
		switch ev.(type) {
		case events.OperationDelivered:
			if s.Phase == core.PhaseCommitted {
				e.noteDelivered(op, s)
			}
		case events.OperationFinished:
			e.noteReported(op.place.Value(), op.id)
		}
	}
}

// note keeps the core's own memory of a question in step with its events.
func (op *operation) note(ev events.Event, s core.State, now moment) {
	switch ev := ev.(type) {
	case events.Request:
		op.received, op.rejected, op.rung = nil, 0, unique.Handle[events.ID]{}
		op.due = dues{asker: op.due.asker, deadline: ev.Deadline}
		if ev.WhenNobody == events.NobodyReject {
			op.due.nobody = now + moment(ReceiveWithin)
		}
	case events.Claimed:
		op.due.lease = now + moment(ClaimLease)
	case events.Released:
		if s.Question.Claim().Seq == 0 {
			op.due.lease = 0
		}
	case events.Response, events.Withdrawn:
		op.received = nil
		op.due = dues{asker: op.due.asker}
	case events.Presented:
		if op.due.drawn = 0; len(op.drawn) > 0 {
			op.due.drawn = now + moment(DrawnWithin)
		}
	}
}

// index keeps the map of open questions.
func (e *Engine) index(op *operation, m events.Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ev := range m.Events {
		switch ev := ev.(type) {
		case events.Request:
			e.opened(ev.ID, op)
		case events.Response:
			e.closed(ev.ID, op)
		case events.Withdrawn:
			e.closed(ev.ID, op)
		}
	}
}

// opened notes an open question. e.mu is held.
func (e *Engine) opened(question events.ID, op *operation) {
	_, again := e.questions[question]
	e.questions[question] = op
	if ses, ok := e.sessions[op.place.Value().Session]; ok && !again {
		ses.asked++
	}
}

// closed notes the end of a question. e.mu is held.
func (e *Engine) closed(question events.ID, op *operation) {
	e.ended.question(question, op.subject())
	if _, open := e.questions[question]; !open {
		return
	}
	delete(e.questions, question)
	if ses, ok := e.sessions[op.place.Value().Session]; ok {
		ses.asked--
	}
}

// settle lets an operation leave memory once nobody waits for it and nothing
// can happen to it by itself.
func (e *Engine) settle(op *operation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	op.mu.Lock()
	defer op.mu.Unlock()
	s := op.state
	over := s.Over() || op.fault
	if op.askers == 0 && op.heardAll != nil {
		close(op.heardAll)
		op.heardAll = nil
	}
	if op.askers > 0 || op.held > 0 || !over || op.endRun != nil {
		return
	}
	if e.ops[s.ID] == op {
		delete(e.ops, s.ID)
		e.ended.operation(s.ID, op.subject())
	}
	if s.Question.Open { // its end could not be written: nobody may answer what nobody waits for
		e.closed(s.Question.ID, op)
	}
	if op.timer != nil {
		op.timer.Stop()
	}
}

// heard waits until no asker waits for the operation any more.
func (op *operation) heard(ctx context.Context) {
	op.mu.Lock()
	if op.askers == 0 {
		op.mu.Unlock()
		return
	}
	if op.heardAll == nil {
		op.heardAll = make(chan struct{})
	}
	ch := op.heardAll
	op.mu.Unlock()
	select {
	case <-ch:
	case <-ctx.Done():
	}
}

func (e *Engine) all() []*operation {
	list := make([]*operation, 0, len(e.ops))
	for _, op := range e.ops {
		list = append(list, op)
	}
	return list
}

func refuse(code events.Reject, hint string) *events.Refused {
	return &events.Refused{Code: code, Hint: hint}
}
