package engine

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// foldVersion changes whenever core.State or the fold does: an older snapshot
// is then dropped and the log read from its beginning.
const foldVersion = 3

type cachedSession struct {
	Place  Place
	Opened events.SessionOpened
}

// cached is the content of a snapshot: a cache of the fold, never evidence.
type cached struct {
	sessions []cachedSession
	open     []core.State
}

// encode writes the sessions and then each state on its own, so that the
// encoder's memory is that of one state and not of 100,000.
func (c cached) encode() ([]byte, error) {
	var data bytes.Buffer
	enc := gob.NewEncoder(&data) // gob keeps every exported field, whatever its wire tag says
	if err := enc.Encode(c.sessions); err != nil {
		return nil, err
	}
	for i := range c.open {
		if err := enc.Encode(&c.open[i]); err != nil {
			return nil, err
		}
	}
	return data.Bytes(), nil
}

// takeCached takes a snapshot's content into what is being recovered.
func (e *Engine) takeCached(data []byte, states map[events.ID]core.State) error {
	dec := gob.NewDecoder(bytes.NewReader(data))
	var sessions []cachedSession
	if err := dec.Decode(&sessions); err != nil {
		return err
	}
	for _, s := range sessions {
		e.remember(s.Place, s.Opened)
	}
	for {
		var s core.State
		switch err := dec.Decode(&s); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		states[s.ID] = s
	}
}

// recover rebuilds what is open: from the snapshot if there is a good one, then
// from every message behind it.
func (e *Engine) recover(ctx context.Context) error {
	states := map[events.ID]core.State{}
	from, err := e.fromSnapshot(states)
	if err != nil {
		e.o.Logger.Info("the snapshot was dropped; the whole log is read", "reason", err)
		from, states = 0, map[events.ID]core.State{}
		e.sessions = map[events.Token]*session{}
	}
	for r, err := range e.o.Log.Scan(ctx, from) {
		if err != nil {
			return err
		}
		if err := e.take(r, states); err != nil {
			return fmt.Errorf("message %d: %w", r.Seq, err)
		}
		e.lastSeq.Store(r.Seq)
	}
	for _, ses := range e.sessions {
		e.o.OnSession(ses.head())
	}
	for _, s := range states {
		e.resume(s)
	}
	e.checkUsage(ctx)
	return nil
}

// take folds one message. Operations that are over are forgotten at once.
func (e *Engine) take(r journal.Record, states map[events.ID]core.State) error {
	at, err := events.ParseLogSubject(r.Subject)
	if err != nil {
		return err
	}
	if at.Session == "" {
		return nil
	}
	m, err := events.DecodeMessage(r.Data)
	if err != nil {
		return err
	}
	m.Seq = r.Seq
	if at.Operation == "" {
		e.takeSession(m)
		return nil
	}
	s, known := states[at.Operation]
	if !known {
		if _, begins := m.Events[0].(events.OperationProposed); !begins {
			return nil // the trailing record of an operation that was over before the snapshot
		}
	}
	if r.Seq <= s.Seq {
		return nil // the snapshot has it
	}
	s = core.Apply(s, m)
	if s.Phase == core.PhaseEnded || (s.Phase == core.PhaseCommitted && s.Delivered) {
		delete(states, at.Operation)
		e.ended.operation(at.Operation, r.Subject)
		for _, q := range s.Settled {
			e.ended.question(q.ID, r.Subject)
		}
		return nil
	}
	states[at.Operation] = s
	return nil
}

func (e *Engine) takeSession(m events.Message) {
	for _, ev := range m.Events {
		switch ev := ev.(type) {
		case events.SessionOpened:
			e.remember(Place{m.Project, m.Session}, ev)
		case events.SessionClosed:
			delete(e.sessions, m.Session)
		}
	}
}

func (e *Engine) remember(p Place, opened events.SessionOpened) {
	ses := &session{place: p, opened: opened, ready: make(chan struct{})}
	close(ses.ready)
	e.sessions[p.Session] = ses
}

// resume takes up an operation that the core before left open. Its asker has a
// while to return.
func (e *Engine) resume(s core.State) {
	op := newOperation(Place{s.Project, s.Session}, s.ID, s)
	op.due.asker = e.in(AskerReturn)
	e.ops[s.ID] = op
	for _, q := range s.Settled {
		e.ended.question(q.ID, op.subject())
	}
	e.takeUp(op)
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
		case core.Deliver: // its asker comes for it
		}
	}
	e.arm(op)
}

func (e *Engine) offerAgain(op *operation, q core.Question) {
	e.mu.Lock()
	e.opened(q.ID, op)
	e.mu.Unlock()
	op.mu.Lock()
	defer op.mu.Unlock()
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
		if s.Phase != core.PhaseHook {
			return nil
		}
		return core.Abandon{At: e.at(), Next: e.next(op, s, s.Args())}
	})
	if err != nil && !errors.Is(err, ErrStopped) {
		e.o.Logger.Error("could not go on with an operation", "operation", op.snapshot().ID, "error", err)
		e.giveUp(op)
	}
}

func (e *Engine) fromSnapshot(states map[events.ID]core.State) (uint64, error) {
	if e.o.Snapshot == "" {
		return 0, nil
	}
	snap, err := journal.ReadSnapshot(e.o.Snapshot)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if snap.Fold != foldVersion || snap.Core != e.o.Core {
		return 0, errors.New("it was made by another fold or another core")
	}
	return snap.Seq, e.takeCached(snap.Data, states)
}

// snapshot writes the open states to the snapshot file. Only one runs at a
// time; the barrier is held only while values are copied.
func (e *Engine) snapshot() {
	if e.o.Snapshot == "" || e.doubtful.Load() || !e.snapping.CompareAndSwap(false, true) {
		return
	}
	defer e.snapping.Store(false)
	seq, c := e.copyStates()
	data, err := c.encode()
	if err == nil {
		err = journal.WriteSnapshot(e.o.Snapshot, journal.Snapshot{Seq: seq, Fold: foldVersion, Core: e.o.Core, Data: data})
	}
	if err != nil {
		e.o.Logger.Warn("no snapshot was written; the next start reads more of the log", "error", err)
	}
}

func (e *Engine) copyStates() (uint64, cached) {
	e.barrier.Lock()
	defer e.barrier.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	c := cached{open: make([]core.State, 0, len(e.ops))}
	for _, ses := range e.sessions {
		select {
		case <-ses.ready:
			c.sessions = append(c.sessions, cachedSession{ses.place, ses.opened})
		default:
		}
	}
	for _, op := range e.ops {
		if s := op.snapshot(); s.Phase != core.PhaseNone && s.Phase != core.PhaseEnded {
			c.open = append(c.open, s)
		}
	}
	return e.lastSeq.Load(), c
}
