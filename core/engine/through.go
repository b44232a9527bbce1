package engine

import (
	"slices"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// maxThrough bounds the rules that one message takes an operation through.
const maxThrough = 64

// through carries a decision on through rules that need no program. What they say
// is known at once, so their runs begin and end in the message that starts them:
// an operation that only such rules are about waits for one append.
//
// Two things stay apart in messages of their own. A run of a program, whose end
// nobody knows yet; and a second question, because frontends hear of one end and
// one beginning a message.
func (e *Engine) through(op *operation, s core.State, d core.Decision) core.Decision {
	after := core.After(s, d)
	for range maxThrough {
		if !after.RunOpen || after.Phase != core.PhaseHook || !begins(d, after.Run.Run) {
			return d
		}
		run := e.openRun(op, after)
		if run.set == nil || run.set.Hook(run.started.Hook.Index).Run.Type != hooks.RunVerdict {
			return d
		}
		res, _, hook := e.execute(e.ctx, run)
		more, err := core.Decide(after, e.hookDone(run, hook, res, after))
		if err != nil || asks(more) && asked(d) {
			return d // its run goes the usual way, and so does what is wrong with it
		}
		d.Events = append(d.Events, more.Events...)
		d.Bodies = append(d.Bodies, more.Bodies...)
		after = core.After(after, more)
	}
	return d
}

// begins reports whether a decision starts a run.
func begins(d core.Decision, run events.ID) bool {
	return slices.ContainsFunc(d.Events, func(ev events.Event) bool {
		started, ok := ev.(events.HookStarted)
		return ok && started.Run == run
	})
}

func asks(d core.Decision) bool {
	return slices.ContainsFunc(d.Events, func(ev events.Event) bool { _, ok := ev.(events.Request); return ok })
}

// asked reports whether a decision ends a question.
func asked(d core.Decision) bool {
	return slices.ContainsFunc(d.Events, func(ev events.Event) bool { _, ok := ev.(events.Response); return ok })
}
