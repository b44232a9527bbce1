package engine

import (
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// moment is a time on the clock that nobody sets, in nanoseconds since the engine
// was made; zero = never.
type moment int64

// in is the moment so long from now.
func (e *Engine) in(d time.Duration) moment { return moment(time.Since(e.began) + d) }

// dues are what must happen and when. There may be 100,000 of them.
type dues struct {
	deadline events.Micros // the question's own, which people see on the wall
	nobody   moment        // nobody has it in a list
	lease    moment        // the claim lapses
	asker    moment        // the asker has not returned after a restart
	drawn    moment        // drawings must be written
}

// arm sets the operation's one timer to the next moment at which something is
// due.
func (e *Engine) arm(op *operation) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if len(op.received) > 0 {
		op.due.nobody = 0
	}
	next := e.first(op.due)
	switch wait := max(0, time.Duration(next-e.in(0))); {
	case next == 0 || op.state.Phase == core.PhaseEnded && op.due.asker == 0:
		if op.timer != nil {
			op.timer.Stop()
			op.timer = nil
		}
	case op.timer == nil:
		op.timer = time.AfterFunc(wait, func() { e.tick(op) })
	default:
		op.timer.Reset(wait)
	}
}

// first is the earliest of what is due.
func (e *Engine) first(d dues) moment {
	var first moment
	for _, m := range [...]moment{e.wall(d.deadline), d.nobody, d.lease, d.asker, d.drawn} {
		if m != 0 && (first == 0 || m < first) {
			first = m
		}
	}
	return first
}

// wall is a time on the wall as a moment, as the two clocks stand now.
func (e *Engine) wall(m events.Micros) moment {
	if m == 0 {
		return 0
	}
	return max(1, e.in(time.Until(m.Time())))
}

// retry is how long the core waits before it tries again to write an end that
// the log did not take.
const retry = 5 * time.Second

// tick does what is due. Each due is cleared before it is acted on; an end that
// the log did not take comes due again.
func (e *Engine) tick(op *operation) {
	if e.stopped() {
		return
	}
	now := e.in(0)
	op.mu.Lock()
	s, d := op.state, op.due
	past := func(m moment) bool { return m != 0 && m <= now }
	if past(d.lease) {
		op.due.lease = 0
	}
	if past(d.asker) {
		op.due.asker = 0
	}
	if past(d.drawn) {
		op.due.drawn = 0
	}
	op.mu.Unlock()

	if past(d.drawn) {
		e.flush(op)
	}
	if past(d.lease) && s.Question.Claim().Seq != 0 {
		e.release(op, s.Question.Claim().Frontend, events.ReleasedLapsed)
	}
	if past(d.asker) {
		e.abandoned(op, s)
	}
	if past(e.wall(d.deadline)) {
		e.endQuestion(op, s.Question.ID, events.EndDeadline)
	} else if past(d.nobody) {
		e.endQuestion(op, s.Question.ID, events.EndUnclaimed)
	}
	e.arm(op)
}

// flush writes drawings that no other event took along.
func (e *Engine) flush(op *operation) {
	_, err := e.decide(op, "core", func(core.State) core.Command {
		op.mu.Lock()
		defer op.mu.Unlock()
		n := len(op.drawn)
		if n == 0 {
			return nil
		}
		last := op.drawn[n-1]
		op.drawn = op.drawn[:n-1]
		return last
	})
	if err != nil && !e.stopped() {
		e.o.Logger.Warn("a drawing was not written", "error", err)
	}
}

func (e *Engine) endQuestion(op *operation, question events.ID, why events.EndReason) {
	_, err := e.decide(op, "core", func(s core.State) core.Command {
		return core.EndQuestion{At: e.at(), Question: question, Reason: why}
	})
	op.mu.Lock()
	defer op.mu.Unlock()
	switch {
	case op.state.Question.ID != question:
	case err == nil:
		op.due.deadline, op.due.nobody = 0, 0
	case why == events.EndDeadline:
		op.due.deadline = events.At(e.now().Add(retry))
	default:
		op.due.nobody = e.in(retry)
	}
}

// abandoned ends an operation whose asker did not come back after a restart.
// What was committed may have run: its outcome is unknown, and it is never run
// again.
func (e *Engine) abandoned(op *operation, s core.State) {
	if s.Phase != core.PhaseCommitted {
		e.withdraw(op, events.EndAgentGone)
		return
	}
	e.finishUnknown(op)
}

// finishUnknown records that nobody has reported what became of a commit, and
// maybe nobody will. What is known already stays.
func (e *Engine) finishUnknown(op *operation) {
	_, err := e.decide(op, "core", func(core.State) core.Command {
		return core.Finish{At: e.at(), Outcome: events.OutcomeUnknown}
	})
	if err != nil && !e.stopped() {
		e.o.Logger.Error("could not record an unknown outcome", "operation", op.id, "error", err)
	}
}

// quiesce stops every timer, so that nothing begins while the engine ends, and
// tells whoever waits that it does.
func (e *Engine) quiesce() {
	e.mu.Lock()
	open := e.all()
	for _, fe := range e.frontends {
		fe.lapse.Stop()
	}
	e.mu.Unlock()
	for _, op := range open {
		op.mu.Lock()
		if op.timer != nil {
			op.timer.Stop()
		}
		op.mu.Unlock()
		e.wake(op)
	}
}
