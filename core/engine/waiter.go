package engine

import (
	"context"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// waiter is one who waits for an operation's verdict, a link of the operation's
// list. It is called once: whoever takes it off the list, under the operation's
// lock, calls it after that.
type waiter struct {
	tell func(core.Verdict, error)
	next *waiter
}

// Notify calls tell once: with the verdict when there is one, or with why there
// will be none: a typed no, or ErrStopped when the engine ends. It calls at once
// if that is so already. Tell is called without any lock, by whoever decided, and
// must return soon. Stop takes the wish back; it is true if tell was not called
// and never will be.
func (e *Engine) Notify(id events.ID, secret string, tell func(core.Verdict, error)) (stop func() bool) {
	op, ok := e.lookup(id)
	if !ok {
		tell(core.Verdict{}, refuse(events.RejectUnknownOperation, "propose it first"))
		return func() bool { return false }
	}
	op.mu.Lock()
	if !owns(&op.state, secret) {
		op.mu.Unlock()
		tell(core.Verdict{}, refuse(events.RejectNotYours, ""))
		return func() bool { return false }
	}
	w := &waiter{tell: tell, next: op.waiters}
	op.waiters = w
	op.mu.Unlock()
	e.wake(op)
	return func() bool { return op.leave(w) }
}

// leave takes a waiter off the list; false if somebody did before.
func (op *operation) leave(w *waiter) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	for at := &op.waiters; *at != nil; at = &(*at).next {
		if *at == w {
			*at = w.next
			return true
		}
	}
	return false
}

// wake calls the waiters if there is something to tell them. It follows each
// change of what they wait for, so that whoever joins the list before or after
// is told.
func (e *Engine) wake(op *operation) {
	v, told := core.Verdict{}, false
	op.mu.Lock()
	if op.waiters != nil {
		v, told = op.verdict()
	}
	var err error
	if !told && e.stopped() {
		told, err = true, ErrStopped
	}
	var list *waiter
	if told {
		list, op.waiters = op.waiters, nil
	}
	op.mu.Unlock()
	for ; list != nil; list = list.next {
		list.tell(v, err)
	}
}

// verdict is what the asker hears. op.mu is held.
func (op *operation) verdict() (core.Verdict, bool) {
	if v, ok := core.VerdictOf(op.state); ok {
		return v, true
	}
	if op.fault {
		return core.FaultVerdict(op.state, events.CodeLogUnavailable), true
	}
	return core.Verdict{}, false
}

// Await is Notify for a goroutine that has nothing else to do.
func (e *Engine) Await(ctx context.Context, id events.ID, secret string) (core.Verdict, error) {
	var v core.Verdict
	told := make(chan error, 1)
	stop := e.Notify(id, secret, func(given core.Verdict, err error) {
		v = given
		told <- err
	})
	select {
	case err := <-told:
		return v, err
	case <-ctx.Done():
	}
	if stop() {
		return core.Verdict{}, context.Cause(ctx)
	}
	err := <-told
	return v, err
}
