package engine

import (
	"context"
	"errors"
	"fmt"
	"unique"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// recovery is what a scan of the log has found to be open.
type recovery struct {
	states map[events.ID]core.State
	of     map[events.Token]map[events.ID]struct{} // ids of states by their session
}

func newRecovery() *recovery {
	return &recovery{states: map[events.ID]core.State{}, of: map[events.Token]map[events.ID]struct{}{}}
}

func (r *recovery) put(s core.State) {
	if _, known := r.states[s.ID]; !known {
		if r.of[s.Session] == nil {
			r.of[s.Session] = map[events.ID]struct{}{}
		}
		r.of[s.Session][s.ID] = struct{}{}
	}
	r.states[s.ID] = s
}

func (r *recovery) drop(s core.State) {
	delete(r.states, s.ID)
	delete(r.of[s.Session], s.ID)
}

// recover rebuilds what is open: from the snapshot if there is a good one, then
// from every message behind it.
func (e *Engine) recover(ctx context.Context) error {
	r := newRecovery()
	from, err := e.fromSnapshot(r)
	if err != nil {
		e.o.Logger.Info("the snapshot was dropped; the whole log is read", "reason", err)
		from, r = 0, newRecovery()
		e.sessions = map[events.Token]*session{}
		e.repeats.restore(nil)
		e.past = newHistory()
	}
	e.lastSeq.Store(from)
	for rec, err := range e.o.Log.Scan(ctx, from) {
		if err != nil {
			return err
		}
		if err := e.take(rec, r); err != nil {
			return fmt.Errorf("message %d: %w", rec.Seq, err)
		}
		e.lastSeq.Store(rec.Seq)
	}
	if err := e.takeLoose(r); err != nil {
		return err
	}
	owed, open := e.keepSessions(r), e.keepOperations(r)
	// Tasks run from here on: nothing touches the maps without their lock.
	for _, begin := range owed {
		begin()
	}
	for _, op := range open {
		e.resume(op)
	}
	e.checkUsage(ctx)
	return nil
}

// take folds one message. Operations that are over are forgotten at once.
func (e *Engine) take(rec journal.Record, r *recovery) error {
	at, err := events.ParseLogSubject(rec.Subject)
	if err != nil {
		return err
	}
	if at.Session == "" {
		return nil
	}
	m, err := events.DecodeMessage(rec.Data)
	if err != nil {
		return err
	}
	m.Seq = rec.Seq
	if at.Operation == "" {
		e.takeSession(m, r)
		return nil
	}
	s, known := r.states[at.Operation]
	if !known {
		if _, begins := m.Events[0].(events.OperationProposed); !begins {
			e.trailing(rec.Subject, m)
			return nil
		}
	}
	if rec.Seq <= s.Seq {
		return nil // the snapshot has it
	}
	s = core.Apply(s, m)
	e.repeats.take(s, m)
	e.recall(Place{m.Project, m.Session}, m, s)
	e.takeReports(s, m)
	if !s.Over() {
		r.put(s)
		return nil
	}
	r.drop(s)
	if ses, ok := e.sessions[s.Session]; ok {
		ses.unmark(s.ID)
	}
	e.loose.take(rec.Subject, m)
	e.ended.operation(at.Operation, rec.Subject)
	for _, q := range s.Settled {
		e.ended.question(q.ID, rec.Subject)
	}
	return nil
}

// trailing takes what the log has of an operation that was over before.
func (e *Engine) trailing(subject string, m events.Message) {
	e.loose.take(subject, m)
	e.past.follow(e.past.trailing(m), m, nil)
	e.takeReports(core.State{}, m)
}

// takeReports follows which calls were let go, and which of them were reported.
func (e *Engine) takeReports(s core.State, m events.Message) {
	ses, ok := e.sessions[m.Session]
	if !ok {
		return
	}
	ses.heard(m.At)
	for _, ev := range m.Events {
		switch ev.(type) {
		case events.OperationDelivered:
			if s.Ending().Code == "" && s.Proposed.Kind == events.KindToolCall {
				ses.deliver(deliveredBy(s), e.o.Unreported)
			}
		case events.OperationFinished:
			ses.reported(m.Operation)
		}
	}
}

// takeSession folds a message of a session, and marks what it ends of that which
// the scan has found so far: all else was proposed later.
func (e *Engine) takeSession(m events.Message, r *recovery) {
	ses, known := e.sessions[m.Session]
	if !known {
		ses = e.remember(Place{m.Project, m.Session})
	}
	if m.Seq <= ses.log.Seq {
		return // the snapshot has it
	}
	e.takeIn(ses, m, 0)
	e.recallRuns(ses, m)
	for _, ev := range m.Events {
		end, ends := reachOf(ev)
		if !ends {
			continue
		}
		for _, one := range ses.family() {
			by := end
			if one != ses {
				if by = end.underneath(); !end.below {
					break
				}
			}
			for id := range r.of[one.place.Session] {
				one.mark(r.states[id], by)
			}
		}
	}
}

// takeLoose takes up the operations that were over and of which a run is open.
func (e *Engine) takeLoose(r *recovery) error {
	for _, subject := range e.loose.open() {
		s, err := e.fold(subject)
		if err != nil {
			return err
		}
		r.put(s)
	}
	return nil
}

// remember makes a session that the log knows.
func (e *Engine) remember(p Place) *session {
	ses := newSession(p, events.SessionOpened{})
	ses.reachable = true
	close(ses.ready)
	e.sessions[p.Session] = ses
	return ses
}

// keepSessions opens the sessions that are not over to frontends, and returns what
// begins to write that which was decided about them and is not in the log yet.
// One that is over stays in memory only as long as something of it is to be
// written.
func (e *Engine) keepSessions(r *recovery) (owed []func()) {
	for _, ses := range e.sessions {
		c := ses.chronicle()
		rest := endings{lost: ses.untold()}
		if c.Owed {
			rest.closed = []*session{ses}
		}
		if ses.owes() {
			rest.sweeps = []*session{ses}
		}
		switch {
		case c.Closed == "":
			e.o.OnSession(ses.head())
		case len(r.of[ses.place.Session])+len(rest.lost)+len(rest.closed)+len(rest.sweeps)+len(c.Runs) == 0:
			e.drop(ses)
		}
		owed = append(owed, func() { e.carryOut(rest) })
		if len(c.Runs) > 0 {
			owed = append(owed, func() { e.tasks.Go(func() { e.abandonRuns(ses, c.Runs) }) })
		}
	}
	return owed
}

// abandonRuns closes the runs that a crash cut off.
func (e *Engine) abandonRuns(ses *session, runs []events.HookStarted) {
	list := make([]events.Event, 0, len(runs))
	for _, started := range runs {
		list = append(list, abandonedRun(started))
	}
	if err := e.recordOn(ses.place, "", "")(list, nil); err != nil && !e.stopped() {
		e.o.Logger.Error("hooks that a crash cut off are still open", "session", ses.place.Session, "error", err)
	}
}

// keepOperations brings into memory what the core before left open. Its asker has
// a while to return.
func (e *Engine) keepOperations(r *recovery) []*operation {
	list := make([]*operation, 0, len(r.states))
	for _, s := range r.states {
		op := newOperation(Place{s.Project, s.Session}, s.ID, s)
		op.due.asker = e.in(AskerReturn)
		if s.Leased {
			op.due.asker = e.in(events.AskerLease)
		}
		e.ops[s.ID] = op
		for _, q := range s.Settled {
			e.ended.question(q.ID, op.subject())
		}
		list = append(list, op)
	}
	return list
}

// resume goes on with an operation, or ends it when its session has meanwhile.
func (e *Engine) resume(op *operation) {
	s := op.snapshot()
	ses, refused := e.sessionAt(op.place.Value())
	if refused != nil || s.Over() {
		e.takeUp(op)
		return
	}
	reason := e.standing(ses, s.ID, s.Proposed.Kind, s.Turn)
	if reason == "" {
		e.takeUp(op)
		return
	}
	e.tasks.Go(func() {
		e.withdraw(op, reason)
		e.takeUp(op)
		ses.unmark(s.ID)
	})
}

// takeUp performs what an operation that was read from the log waits for. Its
// question has a while to find a frontend, its claim one fresh lease; a hook that
// was running runs again.
func (e *Engine) takeUp(op *operation) {
	for _, effect := range core.Pending(op.snapshot()) {
		switch effect := effect.(type) {
		case core.RunHook:
			e.tasks.Go(func() { e.runAgain(op) })
		case core.Offer:
			e.offerAgain(op, effect.Question)
		case core.WaitUntil:
			op.mu.Lock()
			op.due.deadline = effect.At
			op.mu.Unlock()
		case core.Watching:
			e.tasks.Go(func() { e.abandonRun(op, effect.Started) })
		case core.Deliver: // its asker comes for it
		}
	}
	e.arm(op)
	e.settle(op)
}

func (e *Engine) offerAgain(op *operation, q core.Question) {
	e.mu.Lock()
	e.opened(q.ID, op)
	e.mu.Unlock()
	op.mu.Lock()
	defer op.mu.Unlock()
	if e.now().Sub(q.AskedAt.Time()) >= events.RingAfter { // some frontend has asked the core before
		op.rung = unique.Make(e.o.Epoch) // no frontend has this id
	}
	if q.WhenNobody != events.NobodyWait {
		op.due.nobody = e.in(NobodyGrace)
	}
	if q.Claim().Seq != 0 {
		op.due.lease = e.in(ClaimLease)
	}
}

// runAgain closes a run that died with its core and starts the hook anew; when
// the rules have changed since, today's decide from the first hook on.
func (e *Engine) runAgain(op *operation) {
	_, err := e.decide(op, "core", func(s core.State) core.Command {
		if !s.RunOpen {
			return nil
		}
		return core.Abandon{At: e.at(), Next: e.next(op, s, s.Args())}
	})
	if err != nil && !errors.Is(err, ErrStopped) {
		e.o.Logger.Error("could not go on with an operation", "operation", op.snapshot().ID, "error", err)
		e.giveUp(op)
	}
}
