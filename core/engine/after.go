package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// observed is an event that nobody can stop, as its hooks are told of it.
type observed struct {
	place   Place
	set     *hooks.Set // nil: the rules could not be read
	sub     hooks.Subject
	payload hooks.Payload
	version int        // of the operation that it is about
	state   core.State // of that operation, else only of the session's names
	record  record
	op      *operation // where runs are recorded; nil = on the session
}

// observed prepares an event of a session. Runs are recorded on the session's
// subject.
func (e *Engine) observed(p Place, o core.Observation, event events.HookEvent) observed {
	set, err := e.o.Rules.For(o.Cwd)
	if err != nil {
		e.o.Logger.Warn("hooks do not hear of an event: their rules cannot be read", "event", event, "error", err)
	}
	return e.observedUnder(set, p, o, event)
}

func (e *Engine) observedUnder(set *hooks.Set, p Place, o core.Observation, event events.HookEvent) observed {
	args := canonicalOr(o.Args)
	return observed{
		place: p, set: set,
		sub: hooks.Subject{Event: event, Agent: o.Agent, Profile: o.Profile, Cwd: o.Cwd, Tool: o.Tool, Args: args},
		payload: hooks.Payload{
			Event: event, SessionID: e.native(p), Profile: o.Profile, Cwd: o.Cwd, Tool: o.Tool, Args: args,
			Path: o.Path, Turn: o.Turn, OperationID: o.Operation, Result: resultPayload(o.Result),
		},
		state: core.State{
			ID: o.Operation, Project: p.Project, Session: p.Session, Turn: o.Turn, Traceparent: o.Traceparent,
		},
		record: e.recordOn(p, o.Turn, o.Traceparent),
	}
}

// runObserved runs the hooks of an event: the blocking ones one by one, then it
// starts those that nothing waits for. It returns what they want the model to
// read. A run whose start is not in the log does not start.
func (e *Engine) runObserved(ctx context.Context, o observed) (said string) {
	if o.set == nil {
		return ""
	}
	var parts []string
	var lines []events.Event
	var bodies []events.Body
	flush := func() bool {
		if len(lines) == 0 {
			return true
		}
		err := o.record(lines, bodies)
		if err != nil && !e.stopped() {
			e.o.Logger.Error("hooks do not hear of an event: the log did not take their start", "event", o.sub.Event, "error", err)
		}
		lines, bodies = nil, nil
		return err == nil
	}
	for _, ref := range o.set.Plan(o.sub) {
		started := events.HookStarted{Run: e.newID(), Hook: ref, Version: o.version, Event: o.sub.Event}
		lines = append(lines, started)
		if !flush() {
			return strings.Join(parts, "\n\n")
		}
		res, waited := e.attend(ctx, o.place, o.set, o.set.Hook(ref.Index), e.observedInput(o, started))
		if res.Context != "" {
			parts = append(parts, first(res.Context, maxReminder))
		}
		ran, its := ranOf(started, res, waited)
		lines, bodies = append(lines, ran), append(bodies, its...)
	}
	watches := e.observers(o)
	for _, w := range watches {
		lines = append(lines, w.started)
	}
	if flush() {
		for _, w := range watches {
			e.start(w)
		}
	}
	return strings.Join(parts, "\n\n")
}

// observers are the runs of an event that nothing waits for.
func (e *Engine) observers(o observed) []*watch {
	var list []*watch
	for _, h := range o.set.Watchers(o.sub) {
		started := events.HookStarted{Run: e.newID(), Hook: h.Hook, Version: o.version, Event: o.sub.Event, Mode: h.Mode}
		w := &watch{
			place: o.place, set: o.set, hook: o.set.Hook(h.Hook.Index), record: o.record,
		}
		if h.Durable {
			started.Start = 1
			w.entry = &hooks.Entry{
				Run: started.Run, Hook: h.Hook, Event: o.sub.Event, Session: o.place.Session, Project: o.place.Project,
				Cwd: o.sub.Cwd, Starts: 1, Last: e.now(),
			}
			if o.op != nil {
				w.entry.Operation = o.op.id
			}
		}
		w.started, w.in = started, e.observedInput(o, started)
		if w.entry != nil {
			w.in.Raw = w.in.Payload.Encode()
			w.entry.Payload = w.in.Raw
		}
		list = append(list, w)
	}
	return list
}

func (e *Engine) observedInput(o observed, started events.HookStarted) hooks.Input {
	o.payload.Timestamp = e.now()
	return hooks.Input{Payload: o.payload, Env: e.environment(o.state, started.Run), Cwd: o.sub.Cwd}
}

// ofOperation turns an event of a session into one of an operation: its runs are
// recorded there, and its rules are those that the operation began with, as long
// as this core has them.
func (e *Engine) ofOperation(op *operation, event events.HookEvent, args []byte, result *hooks.ResultPayload) observed {
	s := op.snapshot()
	told := core.Observation{
		Agent: s.Proposed.Agent, Cwd: s.Proposed.Cwd, Profile: s.Proposed.Profile, Turn: s.Turn, Path: s.Proposed.Path,
		Operation: s.ID, Tool: s.Proposed.Tool,
	}
	var o observed
	if began := e.adopt(op, s.Config, nil); began != nil {
		o = e.observedUnder(began, op.place.Value(), told, event)
	} else {
		o = e.observed(op.place.Value(), told, event)
	}
	o.sub.Args, o.payload.Args, o.payload.Result = args, args, result
	o.version, o.state, o.record, o.op = s.Current().N, s, e.recordRuns(op), op
	return o
}

// afterRefusal tells the hooks on after_tool_call of a call that did not run.
// Its asker does not wait for them.
func (e *Engine) afterRefusal(op *operation, s core.State) {
	if s.Proposed.Kind != events.KindToolCall || e.stopped() {
		return
	}
	v, ok := core.VerdictOf(s)
	if !ok {
		return
	}
	result := &hooks.ResultPayload{
		Text: v.Message, Failed: true, ApprovalRejected: true, RejectionSource: "hook", HookDenied: true,
	}
	switch v.Code {
	case events.CodeDeclined, events.CodeTimedOut, events.CodeUnavailable:
		result.HookConfirmation = string(v.Code)
	}
	op.hold()
	e.tasks.Go(func() {
		defer e.unhold(op)
		e.runObserved(e.ctx, e.ofOperation(op, events.AfterToolCall, s.Args(), result))
	})
}

// after takes the report of a tool's end from somebody who saw it, the agent's
// own event, and runs the hooks on it. It waits for the blocking ones.
func (e *Engine) after(ctx context.Context, op *operation, o core.Observation) core.Heard {
	f := core.Finished{Operation: op.id, Outcome: events.OutcomeOK, Result: o.Result}
	if o.Args != nil {
		f.Ran = events.DigestOf(canonicalOr(o.Args))
	}
	if o.Result != nil && (o.Result.Failed || o.Result.Error != "") {
		f.Outcome = events.OutcomeFailed
	}
	heard, err := e.report(ctx, op, f, func(core.State) bool { return true }, o.Args)
	if _, known := errors.AsType[*events.Refused](err); known {
		return heard // of a call that was refused its hooks have heard already
	}
	if err != nil && !e.stopped() {
		e.o.Logger.Warn("the end of a tool was not recorded", "operation", op.id, "error", err)
	}
	return heard
}

// Finish reports what became of a committed operation, and returns what hooks on
// the tool's end want the model to read. It waits for the blocking ones. Only
// the first report is told to hooks, and the one that follows an unknown end.
func (e *Engine) Finish(ctx context.Context, f core.Finished) (core.Heard, error) {
	op, ok := e.lookup(f.Operation)
	if !ok {
		var err error
		if op, err = e.reload(f.Operation); err != nil {
			return core.Heard{}, err
		}
	}
	return e.report(ctx, op, f, func(s core.State) bool { return owns(&s, f.Secret) }, nil)
}

// report writes the end of an operation, then runs the hooks on it. Args is what
// ran, if that was seen.
func (e *Engine) report(ctx context.Context, op *operation, f core.Finished, may func(core.State) bool, args []byte) (core.Heard, error) {
	op, err := e.keep(op)
	if err != nil {
		return core.Heard{}, err
	}
	defer e.unhold(op)
	stranger, before := false, uint64(0)
	s, err := e.decide(op, e.o.Owner, func(s core.State) core.Command {
		before = s.Seq
		if stranger = !may(s); stranger {
			return nil
		}
		return core.Finish{At: e.at(), Outcome: f.Outcome, Ran: f.Ran}
	})
	if stranger {
		return core.Heard{}, refuse(events.RejectNotYours, "")
	}
	ran := f.Outcome == events.OutcomeOK || f.Outcome == events.OutcomeFailed
	if err != nil || s.Seq == before || !ran || s.Proposed.Kind != events.KindToolCall {
		return core.Heard{}, err
	}
	if args = canonicalOr(args); args == nil {
		args = s.Body(events.ArgsBody(s.Ending().Committed.N))
	}
	return e.afterTool(ctx, op, args, f), nil
}

func (e *Engine) afterTool(ctx context.Context, op *operation, args []byte, f core.Finished) core.Heard {
	result := resultPayload(f.Result)
	if result == nil {
		result = &hooks.ResultPayload{Failed: f.Outcome == events.OutcomeFailed}
	}
	said := e.runObserved(ctx, e.ofOperation(op, events.AfterToolCall, args, result))
	if result.Error == "" {
		return core.Heard{Context: said}
	}
	more := e.runObserved(ctx, e.ofOperation(op, events.ToolError, args, result))
	if said != "" && more != "" {
		said += "\n\n"
	}
	return core.Heard{Context: said + more}
}

func resultPayload(r *core.ToolResult) *hooks.ResultPayload {
	if r == nil {
		return nil
	}
	return &hooks.ResultPayload{
		Text: r.Text, Error: r.Error, Failed: r.Failed || r.Error != "", DurationMS: r.Duration.Milliseconds(),
	}
}

// canonicalOr is the canonical form of arguments, or they themselves when they
// have none; nil stays nil.
func canonicalOr(args []byte) []byte {
	if args == nil {
		return nil
	}
	if canonical, err := core.Canonical(args); err == nil {
		return canonical
	}
	return args
}
