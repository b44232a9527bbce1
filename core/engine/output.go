package engine

import (
	"context"
	"slices"

	"github.com/fermata-hitl/fermata/events"
)

// Output tells what one run of a hook said, as far as the log has it.
func (e *Engine) Output(ctx context.Context, p Place, c events.RunCommand) events.RunReply {
	subject := events.SessionSubject(p.Project, p.Session)
	if c.Operation != "" {
		subject = events.OperationSubject(p.Project, p.Session, c.Operation)
	}
	done, err := e.readBack(ctx) // a session's may be long
	if err != nil {
		return events.RunReply{Refused: typed(err)}
	}
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.ctx, func() { cancel(ErrStopped) })()
	r := events.RunReply{Refused: refuse(events.RejectUnknownOperation, "the log has no such run here")}
	for m, err := range e.messages(ctx, subject) {
		switch {
		case ctx.Err() != nil:
			return events.RunReply{Refused: typed(context.Cause(ctx))}
		case err != nil:
			return events.RunReply{Refused: typed(e.appendFailed(err))}
		}
		for _, ev := range m.Events {
			hear(&r, m, ev, c.Run)
		}
		if ends(m, c.Run) {
			return r
		}
	}
	return r
}

// ends reports whether a message tells how a run ended. A question of the run is in
// it too, and nothing that it said comes later.
func ends(m events.Message, run events.ID) bool {
	return slices.ContainsFunc(m.Events, func(ev events.Event) bool {
		ran, ok := ev.(events.HookRan)
		return ok && ran.Run == run
	})
}

// hear takes what an event of a message tells of a run. The reason of one that asks
// is that of its question.
func hear(r *events.RunReply, m events.Message, ev events.Event, run events.ID) {
	reason := run
	switch ev := ev.(type) {
	case events.HookStarted:
		if ev.Run == run {
			r.Refused = nil
		}
		return
	case events.HookRan:
		if ev.Run != run {
			return
		}
		stderr, _ := m.Body(events.StderrBody(run))
		r.Stderr = string(stderr)
	case events.Request:
		if ev.Run != run {
			return
		}
		reason = ev.ID
	default:
		return
	}
	if text, ok := m.Body(events.ReasonBody(reason)); ok {
		r.Reason = string(text)
	}
}
