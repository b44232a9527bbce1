package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// maxPast is how many turns of a session are remembered as over. A proposal that
// names an older one is that of an agent which lives in the past by so many turns.
const maxPast = 64

// chronicle is the fold of a session's own subject. Its fields are exported
// because a snapshot holds it.
type chronicle struct {
	Seq    uint64
	Hash   events.Digest
	Opened events.Micros // when it began, or began again after its end
	Turn   string        // the turn that runs, "" when none does or it has no name
	Past   []pastTurn
	Closed events.EndReason // why it is over, "" while it is not
	// Owed says that the end of a session above ended this one, and that its own
	// subject does not say so yet.
	Owed bool
	Runs []events.HookStarted // hooks on observed events that have not ended
}

// pastTurn is a turn that is over, and why. An agent may report both that it was
// interrupted and that it ended; the first counts.
type pastTurn struct {
	Turn               string
	Reason             events.EndReason
	Ended, Interrupted bool
}

// apply folds one message. It changes no list that an older copy shares.
func (c *chronicle) apply(m events.Message) {
	c.Seq, c.Hash = m.Seq, m.Hash
	for _, ev := range m.Events {
		switch ev := ev.(type) {
		case events.SessionOpened:
			if c.Opened == 0 || c.Closed != "" {
				c.Opened = m.At
			}
			if c.Closed != "" {
				c.Closed, c.Owed, c.Turn, c.Past = "", false, "", nil
			}
		case events.SessionClosed:
			c.Closed, c.Owed, c.Turn = ev.Reason, false, ""
		case events.TurnStarted:
			c.Turn = ev.Turn
			c.Past = slices.DeleteFunc(slices.Clone(c.Past), func(p pastTurn) bool { return p.Turn == ev.Turn })
		case events.TurnEnded:
			c.over(pastTurn{Turn: ev.Turn, Reason: events.EndTurnEnded, Ended: true})
		case events.Interrupted:
			c.over(pastTurn{Turn: ev.Turn, Reason: events.EndInterrupted, Interrupted: true})
		case events.HookStarted:
			c.Runs = append(slices.Clone(c.Runs), ev)
		case events.HookRan:
			c.Runs = slices.DeleteFunc(slices.Clone(c.Runs), func(s events.HookStarted) bool { return s.Run == ev.Run })
		}
	}
}

func (c *chronicle) over(p pastTurn) {
	if p.Turn == "" || p.Turn == c.Turn {
		c.Turn = ""
	}
	if p.Turn == "" {
		return
	}
	past := slices.Clone(c.Past)
	if i := slices.IndexFunc(past, func(o pastTurn) bool { return o.Turn == p.Turn }); i >= 0 {
		past[i].Ended = past[i].Ended || p.Ended
		past[i].Interrupted = past[i].Interrupted || p.Interrupted
	} else if past = append(past, p); len(past) > maxPast {
		past = past[1:]
	}
	c.Past = past
}

// past is a turn that is over, the zero pastTurn if it is not.
func (c *chronicle) past(turn string) pastTurn {
	if i := slices.IndexFunc(c.Past, func(p pastTurn) bool { return p.Turn == turn }); turn != "" && i >= 0 {
		return c.Past[i]
	}
	return pastTurn{}
}

// chronicle is what the log says of the session.
func (s *session) chronicle() chronicle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log
}

// says is what shall be written of a session as the log has it; nothing when
// nothing is wanted any more.
type says func(c chronicle) []events.Event

// writeSession takes the session's turn and writes one message on its subject:
// all that want says, or nothing. It is true when something was written. What
// the message ends is marked with it, and carried out by a task of its own.
func (e *Engine) writeSession(ses *session, principal string, want says) (bool, error) {
	return e.writeWithin(e.ctx, ses, events.Message{Principal: principal}, want)
}

// writeWithin is writeSession for what may still be written while the engine ends.
// What m has beside its events is written with them.
func (e *Engine) writeWithin(ctx context.Context, ses *session, m events.Message, want says) (bool, error) {
	select {
	case ses.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ErrStopped
	}
	defer func() { <-ses.turn }()
	if ses.left {
		return false, errLeft
	}
	for {
		if err := e.catchUp(ses); err != nil {
			return false, err
		}
		c := ses.chronicle()
		if m.Events = want(c); len(m.Events) == 0 {
			return false, nil
		}
		err := e.appendTo(ctx, ses, c, m)
		if _, ok := errors.AsType[*journal.Lost](err); ok {
			continue
		}
		return err == nil, err
	}
}

// appendTo writes one message behind the chronicle that it was decided on.
func (e *Engine) appendTo(ctx context.Context, ses *session, c chronicle, m events.Message) error {
	m.ID, m.Project, m.Session, m.At, m.Prev = e.newID(), ses.place.Project, ses.place.Session, e.at(), c.Hash
	entry, err := e.encode(&m, c.Seq)
	if err != nil {
		return err
	}
	e.barrier.RLock()
	defer e.barrier.RUnlock()
	if m.Seq, err = e.append(ctx, entry); err != nil {
		ses.stale = true
		return err
	}
	e.carryOut(e.takeIn(ses, m, 0))
	e.tellRuns(ses, m)
	e.advance(m.Seq)
	return nil
}

// catchUp reads the session's subject again when an append left it in doubt.
// What the log has more than this core knew is performed now.
func (e *Engine) catchUp(ses *session) error {
	if !ses.stale {
		return nil
	}
	known := ses.chronicle().Seq
	for m, err := range e.messages(e.ctx, events.SessionSubject(ses.place.Project, ses.place.Session)) {
		if err != nil {
			return e.appendFailed(err)
		}
		if m.Seq > known {
			e.carryOut(e.takeIn(ses, m, m.At))
			if known > 0 { // else all of it is old
				e.tellRuns(ses, m)
			}
		}
	}
	ses.stale = false
	return nil
}

// takeIn folds one message of a session and marks what it ends, in one breath: a
// snapshot has both or neither. Until is as in [Engine.markEndings].
func (e *Engine) takeIn(ses *session, m events.Message, until events.Micros) (ends endings) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ses.heard(m.At)
	ses.mu.Lock()
	wasOver := ses.log.Closed != ""
	ses.log.apply(m)
	ses.mu.Unlock()
	for _, ev := range m.Events {
		if opened, ok := ev.(events.SessionOpened); ok {
			e.introduce(ses, opened)
		}
		if r, ok := reachOf(ev); ok {
			ends = e.markEndings(ses, r, until)
		}
	}
	if wasOver && len(ends.closed) > 0 {
		ends.closed = ends.closed[1:] // the end of the one above takes care of it
	}
	return ends
}

// recordOn is the record of hooks on a session's subject, of one that is over too;
// turn and traceparent are what they were told. It may outlive the engine's own
// end; nobody who calls it holds an operation's turn.
func (e *Engine) recordOn(p Place, turn, traceparent string) record {
	return func(list []events.Event, bodies []events.Body) error {
		return e.writeOn(p, events.Message{Principal: "core", Turn: turn, Traceparent: traceparent, Bodies: bodies}, list)
	}
}

func (e *Engine) writeOn(p Place, m events.Message, list []events.Event) error {
	ctx, end := context.WithTimeout(context.Background(), appendLimit)
	defer end()
	all := func(chronicle) []events.Event { return list }
	if ses, refused := e.sessionAt(p); refused == nil {
		if _, err := e.writeWithin(ctx, ses, m, all); !errors.Is(err, errLeft) {
			return err
		}
	}
	absent := newSession(p, events.SessionOpened{}) // it left memory while its hooks ran on
	absent.stale = true
	_, err := e.writeWithin(ctx, absent, m, all)
	return err
}
