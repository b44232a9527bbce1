package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// OpenSession begins a session, or takes up one that the log knows; restored tells
// which. Hooks hear of a session that begins, and of one that was over and is taken
// up again; a connection that comes back to an open one is no event of its life.
// An unknown parent is an [*events.Refused].
func (e *Engine) OpenSession(ctx context.Context, o core.SessionOpening) (head events.SessionHead, restored bool, err error) {
	if err := checkLengths(bounds{{"cwd", o.Cwd, maxCwd}, {"profile", o.Profile, maxProfile}, {"session id", o.Native, maxNative}}); err != nil {
		return head, false, err
	}
	ses, how, err := e.enter(ctx, visit{agent: o.Agent, native: o.Native, cwd: o.Cwd, parent: o.Parent, pane: o.Pane})
	if err != nil {
		return head, false, err
	}
	told := core.Observation{Agent: o.Agent, Native: o.Native, Cwd: o.Cwd, Profile: o.Profile}
	switch how {
	case begun:
		e.tellHooks(e.prepared(e.ofSession(ses.place, told, events.SessionStart)))
	case begunAgain:
		e.tellHooks(e.prepared(e.ofSession(ses.place, told, events.SessionRestored)))
	case foundOpen:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return ses.head(), how != begun, nil
}

// Observe takes note of something that happened to a session and that nobody can
// stop. What it ends is marked when Observe returns: first the session's event is
// in the log, then the withdrawals follow. Its hooks run by themselves; only for
// the end of a tool does it wait for the blocking ones, and returns what they want
// the model to read. The same signal again changes nothing. An error that is an
// [*events.Refused] is the reply.
func (e *Engine) Observe(ctx context.Context, o core.Observation) (core.Heard, error) {
	if err := checkObservation(o); err != nil {
		return core.Heard{}, err
	}
	ses, err := e.sessionFor(ctx, o)
	if err != nil || ses == nil {
		return core.Heard{}, err
	}
	e.mu.Lock()
	o.Agent, o.Native, o.Session = ses.opened.Agent, ses.opened.Native, ses.place.Session
	o.Cwd = cmp.Or(o.Cwd, ses.opened.Cwd)
	e.mu.Unlock()
	switch events.HookEvent(o.Signal) {
	case events.AfterToolCall, events.ToolError:
		return e.toolEnded(ctx, ses, o), nil
	}
	return core.Heard{}, e.signal(ses, o)
}

// The signals of a life: they have no meaning for a session that is not there.
func endsOnly(s core.Signal) bool {
	switch s {
	case core.SignalSessionChanged, core.SignalBuildChanged, core.SignalMessageWithdrawn,
		core.Signal(events.SessionEnd), core.Signal(events.UserInterrupt):
		return true
	}
	return false
}

// checkObservation refuses what is no signal, and what is too long to keep.
func checkObservation(o core.Observation) error {
	if !endsOnly(o.Signal) && !slices.Contains(events.ObservedEvents(), events.HookEvent(o.Signal)) {
		return refuse(events.RejectMalformed, fmt.Sprintf("%.40q is no signal of a session", o.Signal))
	}
	return checkLengths(bounds{
		{"cwd", o.Cwd, maxCwd},
		{"profile", o.Profile, maxProfile},
		{"session id", o.Native, maxNative},
		{"turn", o.Turn, maxTurn},
		{"path", o.Path, maxPath},
		{"traceparent", o.Traceparent, maxTraceparent},
		{"tool name", o.Tool.Name, maxToolName},
		{"tool kind", o.Tool.Kind, maxToolKind},
		{"call id", o.Tool.CallID, maxCallID},
	})
}

// sessionFor is the session that a signal is about. Whoever names it by its token
// has opened it. Of an agent's own event it may be the first that the core hears
// of it; nil then means that there is nothing to end.
func (e *Engine) sessionFor(ctx context.Context, o core.Observation) (*session, error) {
	if o.Session == "" && !endsOnly(o.Signal) {
		return e.enterBelow(ctx, o.Parent, visit{agent: o.Agent, native: o.Native, cwd: o.Cwd, pane: o.Pane})
	}
	token := o.Session
	if token == "" {
		token = events.SessionToken(e.o.Core, o.Agent, o.Native)
	}
	e.mu.Lock()
	ses, ok := e.sessions[token]
	e.mu.Unlock()
	switch {
	case ok && !ses.over():
		ses.heard(e.at())
		return ses, nil
	case o.Session == "" || ok && endsOnly(o.Signal):
		return nil, nil
	}
	return nil, refuse(events.RejectUnknownSession, "open the session first")
}

// signal writes what happened, ends what it ends, and tells the hooks of it, unless
// it was known already.
func (e *Engine) signal(ses *session, o core.Observation) error {
	if o.Signal == core.SignalMessageWithdrawn {
		return e.withdrawMessage(ses, o.Operation)
	}
	o.Turn = cmp.Or(o.Turn, ses.chronicle().Turn)
	var told observed
	event := eventOf(o.Signal)
	if event != "" {
		told = e.prepared(e.ofSignal(ses, o, event))
	}
	if want := saying(o); want != nil {
		wrote, err := e.writeSession(ses, e.o.Owner, want)
		if err != nil {
			e.failClosed(ses, want)
		}
		if err != nil || !wrote {
			e.forgo(told)
			return err
		}
	}
	switch events.HookEvent(o.Signal) {
	case events.SubAgentEnd, events.WorkflowRunEnd:
		e.endRun(ses, o.Path)
	}
	if event != "" {
		e.tellHooks(told)
	}
	return nil
}

// ofSignal is the event of a signal, as hooks hear of it.
func (e *Engine) ofSignal(ses *session, o core.Observation, event events.HookEvent) observed {
	told := e.ofSession(ses.place, o, event)
	if event == events.SessionEnd {
		told.payload.Reason = string(sessionEnds[o.Signal])
	}
	return told
}

// sessionEnds tell why a session is over, by the signal that says so.
var sessionEnds = map[core.Signal]events.EndReason{
	core.Signal(events.SessionEnd): events.EndSessionClosed,
	core.SignalSessionChanged:      events.EndSessionChanged,
}

// saying is what a signal writes to its session's log, nil if nothing.
func saying(o core.Observation) says {
	var event func(c chronicle) events.Event
	switch o.Signal {
	case core.Signal(events.BeforeTurn):
		event = func(c chronicle) events.Event {
			if o.Turn != "" && c.Turn == o.Turn {
				return nil
			}
			return events.TurnStarted{Turn: o.Turn}
		}
	case core.Signal(events.AfterTurn):
		event = func(c chronicle) events.Event {
			if c.past(o.Turn).Ended {
				return nil
			}
			return events.TurnEnded{Turn: o.Turn}
		}
	case core.Signal(events.UserInterrupt):
		event = func(c chronicle) events.Event {
			if c.past(o.Turn).Interrupted {
				return nil
			}
			return events.Interrupted{Turn: o.Turn}
		}
	case core.SignalBuildChanged:
		event = func(chronicle) events.Event { return events.BuildChanged{} }
	case core.Signal(events.SessionEnd), core.SignalSessionChanged:
		event = func(chronicle) events.Event { return events.SessionClosed{Reason: sessionEnds[o.Signal]} }
	default:
		return nil
	}
	return func(c chronicle) []events.Event {
		if c.Closed != "" {
			return nil
		}
		if ev := event(c); ev != nil {
			return []events.Event{ev}
		}
		return nil
	}
}

// eventOf is the hook event of a signal, "" if it has none.
func eventOf(s core.Signal) events.HookEvent {
	switch s {
	case core.SignalSessionChanged:
		return events.SessionEnd
	case core.SignalBuildChanged, core.SignalMessageWithdrawn:
		return ""
	}
	return events.HookEvent(s)
}

// failClosed refuses the askers of what a signal would have ended, had the log
// taken it: the agent does not want it any more. The log still has it as open; it
// ends when its asker has gone.
func (e *Engine) failClosed(ses *session, want says) {
	for _, ev := range want(ses.chronicle()) {
		r, ok := reachOf(ev)
		if !ok {
			continue
		}
		r.calls = false // what was delivered is the agent's in any case
		e.mu.Lock()
		ends := e.markEndings(ses, r, 0)
		e.mu.Unlock()
		for _, end := range ends.operations {
			end.ses.unmark(end.op.id) // the same signal again may end it yet
			e.giveUp(end.op)
			e.settle(end.op)
		}
	}
}

// withdrawMessage ends a queued input that its person took back.
func (e *Engine) withdrawMessage(ses *session, id events.ID) error {
	op, ok := e.lookup(id)
	if !ok || op.place.Value() != ses.place {
		return refuse(events.RejectUnknownOperation, "nothing of that id waits in this session")
	}
	if op.snapshot().Proposed.Kind == events.KindToolCall {
		return refuse(events.RejectNotAllowed, "that is a tool call; its own asker withdraws it")
	}
	e.withdraw(op, events.EndMessageWithdrawn)
	return nil
}

// endRun ends what belongs to a sub-agent's or workflow's run, and to runs below.
func (e *Engine) endRun(ses *session, path string) {
	if path == "" || path == events.MainPath { // the agent itself is no run: its turns end
		return
	}
	e.mu.Lock()
	ends := e.markEndings(ses, reach{reason: events.EndRunEnded, path: path, queue: true, calls: true}, 0)
	e.mu.Unlock()
	e.carryOut(ends)
}

// tellHooks runs the hooks on an event of a session, which nobody waits for. With
// the session's end, those that still run have their rules' grace to end.
func (e *Engine) tellHooks(told observed) {
	e.tasks.Go(func() {
		e.runObserved(e.ctx, told)
		if told.sub.Event == events.SessionEnd {
			e.drainWatchers(told.place)
		}
	})
}

// toolEnded finds the call that has ended and takes its report. Hooks also hear of
// a call that the core never saw; their runs are recorded on the session then.
func (e *Engine) toolEnded(ctx context.Context, ses *session, o core.Observation) core.Heard {
	if op, ok := e.calledBy(ses, o); ok {
		return e.after(ctx, op, o)
	}
	var ends []observed
	for _, event := range endsOfTool(o.Result != nil && o.Result.Error != "") {
		ends = append(ends, e.prepared(e.ofSession(ses.place, o, event)))
	}
	return e.tellAll(ctx, ends)
}

// calledBy is the operation of a tool's end.
func (e *Engine) calledBy(ses *session, o core.Observation) (*operation, bool) {
	var ran events.Digest
	if len(o.Args) > 0 {
		ran = events.DigestOf(canonicalOr(o.Args))
	}
	id, ok := ses.find(o.Operation, o.Tool, ran)
	if !ok && o.Operation == "" {
		return nil, false
	}
	if op, here := e.lookup(cmp.Or(id, o.Operation)); here {
		return op, op.place.Value() == ses.place
	}
	op, err := e.read(ses.place, cmp.Or(id, o.Operation))
	return op, err == nil
}
