package engine

import (
	"cmp"

	"github.com/fermata-hitl/fermata/events"
)

// sweep is what remains to be found out after an event that ended calls of a
// session which has forgotten some: which of them nobody reported. The log knows.
// Its fields are exported because a snapshot holds it.
type sweep struct {
	Reason events.EndReason
	Turn   string
	Path   string
	UpTo   uint64 // no message behind it is of a call that the event ended
}

func (w sweep) reach() reach {
	return reach{reason: w.Reason, turn: w.Turn, path: w.Path, calls: true}
}

// owesSweep notes that an event ended calls which memory has forgotten. The
// session's lock is held.
func (s *session) owesSweep(r reach, upTo uint64) {
	s.sweeps = append(s.sweeps, sweep{r.reason, r.turn, r.path, upTo})
}

// sweeping lists what a session still has to find out, and counts what it has
// forgotten.
func (s *session) sweeping() (todo []sweep, forgotten int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sweeps, s.forgotten
}

func (s *session) owes() bool {
	todo, _ := s.sweeping()
	return len(todo) > 0
}

// swept takes off what has been found out. If nothing that was forgotten remains in
// the log, nothing is forgotten any more but what came meanwhile.
func (s *session) swept(done int, forgotten int, remains bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeps = s.sweeps[done:]; !remains {
		s.forgotten -= forgotten
	}
}

// sweepLog finds the calls of a session that were let go and never reported, and
// gives up those that its sweeps reach. It reads the whole log, once for all of
// them, and never beside another who does.
func (e *Engine) sweepLog(ses *session) {
	select {
	case e.searching <- struct{}{}:
		defer func() { <-e.searching }()
	case <-e.ctx.Done():
		return
	}
	todo, forgotten := ses.sweeping()
	if len(todo) == 0 {
		return // whoever was here before has done it
	}
	calls, err := e.unfinished(ses.place, todo[len(todo)-1].UpTo)
	if err != nil {
		if !e.stopped() {
			e.o.Logger.Error("unknown outcomes are not on record yet; the next start looks again", "session", ses.place.Session, "error", err)
		}
		return
	}
	var lost []lostCall
	ses.forgets(calls)
	for id, c := range calls {
		if c.reached(todo) {
			lost = append(lost, lostCall{ses.place, id})
		}
	}
	abreast(lost, e.lose)
	ses.swept(len(todo), forgotten, len(lost) < len(calls))
}

// forgets leaves of a list what memory does not have.
func (s *session) forgets(calls map[events.ID]unfinishedCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.unreported {
		delete(calls, d.Operation)
	}
}

// unfinishedCall is a call that was let go and not reported, as far as the log was
// read.
type unfinishedCall struct {
	turn, path string
	delivered  uint64 // the message that says so, 0 before it
}

func (c unfinishedCall) reached(list []sweep) bool {
	for _, w := range list {
		if c.delivered <= w.UpTo && w.reach().ends(events.KindToolCall, c.path, c.turn) != "" {
			return true
		}
	}
	return false
}

// unfinished reads them from the log.
func (e *Engine) unfinished(p Place, upTo uint64) (map[events.ID]unfinishedCall, error) {
	calls := map[events.ID]unfinishedCall{}
	for r, err := range e.o.Log.Scan(e.ctx, 0) {
		if err != nil {
			return nil, err
		}
		if r.Seq > upTo {
			break
		}
		at, err := events.ParseLogSubject(r.Subject)
		if err != nil || at.Session != p.Session || at.Operation == "" {
			continue
		}
		m, err := events.DecodeEnvelope(r.Data)
		if err != nil {
			return nil, err
		}
		c, known := calls[at.Operation]
		for _, ev := range m.Events {
			switch ev := ev.(type) {
			case events.OperationProposed:
				c, known = unfinishedCall{turn: m.Turn, path: ev.Path}, ev.Kind == events.KindToolCall
			case events.OperationDelivered:
				c.delivered = cmp.Or(c.delivered, r.Seq)
			case events.OperationRefused, events.OperationAborted, events.OperationFinished:
				known = false
			}
		}
		if delete(calls, at.Operation); known {
			calls[at.Operation] = c
		}
	}
	for id, c := range calls {
		if c.delivered == 0 {
			delete(calls, id)
		}
	}
	return calls, nil
}
