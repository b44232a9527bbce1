package engine

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// Times of a session's life.
const (
	// idleFor is how long a session may give no sign while nothing of it is open.
	idleFor = 24 * time.Hour
	// closedFor is how long a session that ended stays within reach, so that
	// answers on their way to it are still heard, and recorded as late.
	closedFor = time.Minute
)

// errLeft says that a session has left memory: whoever waits for it begins anew.
var errLeft = errors.New("the session has left memory")

// reach is what an event of a session puts an end to.
type reach struct {
	reason events.EndReason
	turn   string // of that turn and of none; "" = of every turn
	path   string // of that run and below it; "" = of every run
	queue  bool   // also prompts that wait for a later turn
	calls  bool   // also calls that were delivered and never reported
	below  bool   // also all of the sessions below
}

// reachOf is what an event of a session ends, false if it ends nothing.
func reachOf(ev events.Event) (reach, bool) {
	switch ev := ev.(type) {
	case events.SessionClosed:
		return reach{reason: ev.Reason, queue: true, calls: true, below: true}, true
	case events.Interrupted:
		return reach{reason: events.EndInterrupted, turn: ev.Turn, queue: true, calls: true, below: true}, true
	case events.TurnEnded:
		return reach{reason: events.EndTurnEnded, turn: ev.Turn, calls: true}, true
	case events.BuildChanged:
		return reach{reason: events.EndBuildChanged, queue: true}, true
	}
	return reach{}, false
}

// ends is why an operation ends by it, "" if it does not.
func (r reach) ends(kind events.Kind, path, turn string) events.EndReason {
	switch {
	case r.path != "" && path != r.path && !strings.HasPrefix(path, r.path+pathStep),
		r.turn != "" && turn != "" && turn != r.turn,
		!r.queue && kind == events.KindUserPrompt && (turn == "" || turn != r.turn):
		return ""
	case r.reason == events.EndTurnEnded && kind == events.KindInjection:
		return events.EndRunEnded // it was meant for that turn
	}
	return r.reason
}

// pathStep stands between a run and one that it started.
const pathStep = " > "

// underneath is the reach of the same event in a session below, which has turns
// of its own.
func (r reach) underneath() reach {
	r.turn = ""
	return r
}

// standing is why an operation of this kind and turn must end at once, "" if it
// may go on. Ask after the operation has come into memory: what ends a turn looks
// there after it is folded, so one of the two sees the other.
func (e *Engine) standing(ses *session, id events.ID, kind events.Kind, turn string) events.EndReason {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	if reason, ok := ses.marked[id]; ok {
		return reason
	}
	if ses.log.Closed != "" {
		return ses.log.Closed
	}
	past := ses.log.past(turn)
	if past.Turn == "" {
		return ""
	}
	return reach{reason: past.Reason, turn: past.Turn}.ends(kind, "", turn)
}

// turnOf is the turn of an operation whose agent names one, or none. A prompt that
// names none is not taken for the running turn's: it waits for the next.
func (s *session) turnOf(kind events.Kind, turn string) string {
	if turn != "" || kind == events.KindUserPrompt {
		return turn
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Turn
}

// endings are what an event has ended and what remains to be written of it.
type endings struct {
	closed      []*session // over now, the one above first
	interrupted []*session // from above
	operations  []ending
	lost        []lostCall
	sweeps      []*session // the log is to be asked what they have forgotten
}

// ending is an operation that an event ends. One that is still on its way into the
// log is looked at again when it has arrived.
type ending struct {
	op  *operation
	ses *session
	by  reach
}

// lostCall is a delivered call whose outcome stays unknown.
type lostCall struct {
	place Place
	id    events.ID
}

// markEndings marks what an event of a session ends: all that there is, or what was
// proposed up to a time when that is not 0. e.mu is held.
func (e *Engine) markEndings(ses *session, r reach, until events.Micros) (ends endings) {
	of := []*session{ses}
	if r.below {
		of = ses.family()
	}
	reached := make(map[Place]ending, len(of))
	for _, one := range of {
		by := r
		if one != ses {
			by = r.underneath()
		}
		reached[one.place] = ending{ses: one, by: by}
		ends.lost = append(ends.lost, one.abandonCalls(by, e.lastSeq.Load())...)
		if one.owes() {
			ends.sweeps = append(ends.sweeps, one)
		}
	}
	hit := map[*session]bool{}
	for _, op := range e.ops {
		end, ok := reached[op.place.Value()]
		if !ok {
			continue
		}
		end.op = op
		s := op.snapshot()
		if s.Phase != core.PhaseNone && (until != 0 && s.ProposedAt > until || !end.ses.mark(s, end.by)) {
			continue
		}
		hit[end.ses] = true
		ends.operations = append(ends.operations, end)
	}
	switch {
	case !r.below:
	case ses.over():
		ends.closed = append(of[:1:1], slices.DeleteFunc(of[1:], func(c *session) bool { return !c.endWith(r.reason) })...)
	default:
		ends.interrupted = slices.DeleteFunc(of[1:], func(c *session) bool { return c.over() || !hit[c] && c.chronicle().Turn == "" })
	}
	return ends
}

// endWith ends a session together with the one above it. Its own subject is still
// to say so. It is false if the session had ended before.
func (s *session) endWith(reason events.EndReason) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log.Closed != "" {
		return false
	}
	s.log.Closed, s.log.Owed, s.log.Turn = reason, true, ""
	return true
}

// mark notes that an operation is to be ended, if the reach has it; once is enough.
func (s *session) mark(op core.State, by reach) bool {
	reason := by.ends(op.Proposed.Kind, op.Proposed.Path, op.Turn)
	if reason == "" || op.Phase == core.PhaseEnded || op.Delivered {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, before := s.marked[op.ID]; before {
		return false
	}
	if s.marked == nil {
		s.marked = map[events.ID]events.EndReason{}
	}
	s.marked[op.ID] = reason
	return true
}

// unmark forgets that an operation is to be ended: it has.
func (s *session) unmark(id events.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.marked, id)
}

// carryOut writes endings by a task of its own: whoever reported the event does not
// wait for what it ends. What an engine that stops leaves undone stays marked.
func (e *Engine) carryOut(ends endings) {
	n := len(ends.closed) + len(ends.interrupted) + len(ends.operations) + len(ends.lost) + len(ends.sweeps)
	if n > 0 && !e.stopped() {
		e.tasks.Go(func() { e.writeEndings(ends) })
	}
}

// writeEndings writes what an event led to: first that of the sessions below, then
// the ends of operations.
func (e *Engine) writeEndings(ends endings) {
	for _, ses := range ends.closed {
		e.owe(ses, func(c chronicle) []events.Event {
			if !c.Owed {
				return nil
			}
			return []events.Event{events.SessionClosed{Reason: c.Closed}}
		})
	}
	for _, ses := range ends.interrupted {
		e.owe(ses, func(c chronicle) []events.Event {
			if c.Closed != "" {
				return nil
			}
			return []events.Event{events.Interrupted{Turn: c.Turn}}
		})
	}
	abreast(ends.operations, e.withdrawMarked)
	abreast(ends.lost, e.lose)
	for _, ses := range ends.closed {
		e.announceClosed(ses)
	}
	for _, ses := range ends.sweeps {
		e.sweepLog(ses)
	}
}

// abreast does one thing for many at once, but not for too many.
func abreast[T any](list []T, do func(T)) {
	var all sync.WaitGroup
	places := make(chan struct{}, 64)
	for _, one := range list {
		places <- struct{}{}
		all.Go(func() {
			do(one)
			<-places
		})
	}
	all.Wait()
}

// owe writes what follows for a session from an event of another.
func (e *Engine) owe(ses *session, want says) {
	if _, err := e.writeSession(ses, "core", want); err != nil && !errors.Is(err, ErrStopped) && !errors.Is(err, errLeft) {
		e.o.Logger.Error("could not write to a session", "session", ses.place.Session, "error", err)
	}
}

// withdrawMarked ends one operation. One that was on its way into the log when the
// event came has arrived when its turn is free.
func (e *Engine) withdrawMarked(end ending) {
	select {
	case end.op.turn <- struct{}{}:
		<-end.op.turn
	case <-e.ctx.Done():
		return
	}
	s := end.op.snapshot()
	reason := end.by.ends(s.Proposed.Kind, s.Proposed.Path, s.Turn)
	if reason == "" || s.Phase == core.PhaseNone {
		return
	}
	e.withdraw(end.op, reason)
	if s = end.op.snapshot(); s.Phase == core.PhaseEnded || s.Delivered {
		end.ses.unmark(s.ID)
	}
}

// lose records that nobody will tell what became of a call.
func (e *Engine) lose(l lostCall) {
	op, err := e.holdAt(l.place, l.id)
	if err != nil {
		e.o.Logger.Error("an unknown outcome is not on record", "operation", l.id, "error", err)
		return
	}
	defer e.unhold(op)
	e.finishUnknown(op)
}

// announceClosed tells frontends, last of all, that a session is over.
func (e *Engine) announceClosed(ses *session) {
	e.mu.Lock()
	head := ses.head()
	e.mu.Unlock()
	head.Closed = true
	e.publish(ses.place, events.Live{Session: &head})
}

// idle looks through the sessions, once a minute: one that ended a while ago leaves
// memory, and one of which nothing was heard for a day is ended.
func (e *Engine) idle() {
	now := e.now()
	for _, ses := range e.departing(now.Add(-closedFor)) {
		e.leave(ses)
	}
	for _, ses := range e.silentSessions(now.Add(-idleFor)) {
		e.tasks.Go(func() {
			e.owe(ses, func(c chronicle) []events.Event {
				if c.Closed != "" || ses.lastSign().After(now.Add(-idleFor)) {
					return nil
				}
				return []events.Event{events.SessionClosed{Reason: events.EndAgentGone}}
			})
		})
	}
}

func (s *session) lastSign() time.Time { return events.Micros(s.sign.Load()).Time() }

// departing lists the sessions that are over and of which nothing was heard since
// a time, but for those that a frontend has for its scope: it stays attached.
func (e *Engine) departing(since time.Time) (list []*session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ses := range e.sessions {
		if ses.over() && ses.lastSign().Before(since) && !ses.owes() {
			list = append(list, ses)
		}
	}
	if len(list) == 0 {
		return nil
	}
	busy := e.busy()
	for _, fe := range e.frontends {
		busy[events.Token(fe.scope)] = true
	}
	return slices.DeleteFunc(list, func(s *session) bool { return busy[s.place.Session] })
}

// busy tells of which sessions operations are open. e.mu is held.
func (e *Engine) busy() map[events.Token]bool {
	busy := map[events.Token]bool{}
	for _, op := range e.ops {
		busy[op.place.Value().Session] = true
	}
	return busy
}

// leave takes a session that is over out of memory. It holds the session's turn:
// who wants to open it again waits, and then begins anew.
func (e *Engine) leave(ses *session) {
	select {
	case ses.turn <- struct{}{}:
	default:
		return // somebody writes to it: another minute
	}
	defer func() { <-ses.turn }()
	if !ses.over() || ses.left {
		return
	}
	e.mu.Lock()
	head := ses.head()
	e.mu.Unlock()
	head.Closed = true
	e.o.OnLeave(head)
	e.leftSession(ses.place)
	e.mu.Lock()
	defer e.mu.Unlock()
	ses.left = true
	e.drop(ses)
	e.feedFloor = max(e.feedFloor, ses.feed.Load())
}

// drop takes a session out of the maps. e.mu is held.
func (e *Engine) drop(ses *session) {
	delete(e.sessions, ses.place.Session)
	if above, ok := e.sessions[ses.opened.Parent]; ok {
		above.children = slices.DeleteFunc(above.children, func(c *session) bool { return c == ses })
	}
}

// silentSessions lists the sessions that gave no sign, and of which nothing is open,
// since a time; not those below another of the list. A session stands as long as
// one below it does.
func (e *Engine) silentSessions(since time.Time) (list []*session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	silent := map[events.Token]bool{}
	for token, ses := range e.sessions {
		if ses.listed() && ses.lastSign().Before(since) {
			silent[token] = true
		}
	}
	if len(silent) == 0 {
		return nil
	}
	busy := e.busy()
	for token, ses := range e.sessions {
		if busy[token] || !silent[token] && !ses.over() {
			e.removeWithAbove(silent, token)
		}
	}
	for token := range silent {
		if ses := e.sessions[token]; !silent[ses.opened.Parent] {
			list = append(list, ses)
		}
	}
	return list
}

// removeWithAbove takes a session and all above it off a set. e.mu is held.
func (e *Engine) removeWithAbove(set map[events.Token]bool, token events.Token) {
	for ses, ok := e.sessions[token]; ok; ses, ok = e.sessions[ses.opened.Parent] {
		delete(set, ses.place.Session)
	}
}
