package engine

import (
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// arm sets the operation's one timer to the next moment at which something is
// due.
func (e *Engine) arm(op *operation) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if len(op.received) > 0 {
		op.due.nobody = time.Time{}
	}
	next := op.due.next()
	switch {
	case next.IsZero() || op.state.Phase == core.PhaseEnded && op.due.asker.IsZero():
		if op.timer != nil {
			op.timer.Stop()
			op.timer = nil
		}
	case op.timer == nil:
		op.timer = time.AfterFunc(max(0, next.Sub(e.now())), func() { e.tick(op) })
	default:
		op.timer.Reset(max(0, next.Sub(e.now())))
	}
}

func (d dues) next() time.Time {
	var first time.Time
	for _, t := range []time.Time{d.deadline, d.nobody, d.lease, d.asker, d.drawn} {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
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
	now := e.now()
	op.mu.Lock()
	s, d := op.state, op.due
	past := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	if past(d.lease) {
		op.due.lease = time.Time{}
	}
	if past(d.asker) {
		op.due.asker = time.Time{}
	}
	if past(d.drawn) {
		op.due.drawn = time.Time{}
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
	if past(d.deadline) {
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
	switch again := e.now().Add(retry); {
	case op.state.Question.ID != question:
	case err == nil:
		op.due.deadline, op.due.nobody = time.Time{}, time.Time{}
	case why == events.EndDeadline:
		op.due.deadline = again
	default:
		op.due.nobody = again
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
	_, err := e.decide(op, "core", func(core.State) core.Command {
		return core.Finish{At: e.at(), Outcome: events.OutcomeUnknown}
	})
	if err != nil && !e.stopped() {
		e.o.Logger.Error("could not record an unknown outcome", "operation", s.ID, "error", err)
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
