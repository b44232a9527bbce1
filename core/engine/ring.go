package engine

import (
	"context"
	"unique"

	"github.com/fermata-hitl/fermata/events"
)

// Ring gives the first frontend that asks the right to call the person to a question;
// it hears the same again when it repeats a request whose reply was lost.
func (e *Engine) Ring(_ context.Context, f Frontend, p Place, c events.Ring) events.RingReply {
	if _, refused := e.attached(f); refused != nil {
		return events.RingReply{Refused: refused}
	}
	op, ok := e.openQuestion(p, c.Question)
	if !ok {
		return events.RingReply{Refused: e.ending(p, c.Question)}
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	asks := unique.Make(f.ID)
	if op.rung == (unique.Handle[events.ID]{}) && op.state.Question.ID == c.Question {
		op.rung = asks
	}
	return events.RingReply{Yours: op.rung == asks}
}
