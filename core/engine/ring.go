package engine

import (
	"context"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// rungAfter is how old a question is when a core that has just started takes it for
// rung: by then some frontend has asked the core before.
const rungAfter = 3 * time.Second

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
	if op.rung == "" && op.state.Question.ID == c.Question {
		op.rung = f.ID
	}
	return events.RingReply{Yours: op.rung == f.ID}
}
