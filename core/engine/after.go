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
	watches []*watch   // the runs that nothing waits for, once they are prepared
}

// ofSession is an event of a session, under today's rules. Runs are recorded on the
// session's subject.
func (e *Engine) ofSession(p Place, about core.Observation, event events.HookEvent) observed {
	about.Args = canonicalOr(about.Args)
	o := e.described(p, about, event)
	o.set = e.rulesOf(about.Cwd, event)
	o.payload.Result = resultPayload(about.Result)
	o.state = core.State{
		ID: about.Operation, Project: p.Project, Session: p.Session, Turn: about.Turn, Traceparent: about.Traceparent,
	}
	o.record = e.recordOn(p, about.Turn, about.Traceparent)
	return o
}

// ofOperation is an event of an operation: runs are recorded there, and the rules
// are those that the operation began with, as long as this core has them.
func (e *Engine) ofOperation(op *operation, event events.HookEvent, args []byte, result *hooks.ResultPayload) observed {
	s := op.snapshot()
	o := e.described(op.place.Value(), core.Observation{
		Agent: s.Proposed.Agent, Cwd: s.Proposed.Cwd, Profile: s.Proposed.Profile, Turn: s.Turn, Path: s.Proposed.Path,
		Operation: s.ID, Tool: s.Proposed.Tool, Args: args,
	}, event)
	if o.set = e.adopt(op, s.Config, nil); o.set == nil {
		o.set = e.rulesOf(s.Proposed.Cwd, event)
	}
	o.payload.Result = result
	o.version, o.state, o.record, o.op = s.Current().N, s, e.recordRuns(op), op
	return o
}

// described is what an event is about.
func (e *Engine) described(p Place, o core.Observation, event events.HookEvent) observed {
	return observed{
		place: p,
		sub:   hooks.Subject{Event: event, Agent: o.Agent, Profile: o.Profile, Cwd: o.Cwd, Tool: o.Tool, Args: o.Args},
		payload: hooks.Payload{
			Event: event, SessionID: e.native(p), Profile: o.Profile, Cwd: o.Cwd, Tool: o.Tool, Args: o.Args,
			Path: o.Path, Turn: o.Turn, OperationID: o.Operation,
		},
	}
}

// rulesOf are today's rules for an event, nil if they cannot be read.
func (e *Engine) rulesOf(cwd string, event events.HookEvent) *hooks.Set {
	set, err := e.o.Rules.For(cwd)
	if err != nil {
		e.o.Logger.Warn("hooks do not hear of an event: their rules cannot be read", "event", event, "error", err)
		return nil
	}
	return set
}

// prepared is an event with the runs that nothing waits for. What its durable hooks
// are owed is kept from here on: prepare before the event itself is in the log, so
// that a crash in between loses no delivery, and forgo it if the log has nothing to
// tell.
func (e *Engine) prepared(o observed) observed {
	if o.set == nil {
		return o
	}
	o.watches = e.observers(o)
	for _, w := range o.watches {
		e.outbox.owe(w.entry)
	}
	return o
}

// forgo takes back what was prepared for an event that did not happen.
func (e *Engine) forgo(o observed) {
	for _, w := range o.watches {
		if w.entry != nil {
			e.outbox.done(w.entry.Run)
		}
	}
}

// runObserved runs the hooks of a prepared event: the blocking ones one by one, then
// it starts those that nothing waits for. It returns what they want the model to
// read. A run whose start is not in the log does not start.
func (e *Engine) runObserved(ctx context.Context, o observed) (said []string) {
	if o.set == nil {
		return nil
	}
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
	kept := true
	for _, ref := range o.set.Plan(o.sub) {
		started := events.HookStarted{Run: e.newID(), Hook: ref, Version: o.version, Event: o.sub.Event}
		lines = append(lines, started)
		if kept = flush(); !kept {
			break
		}
		res, waited := e.attend(ctx, o.place, o.set, o.set.Hook(ref.Index), e.observedInput(o, started))
		if res.Context != "" {
			said = append(said, first(res.Context, maxReminder))
		}
		ran, its := ranOf(started, res, waited)
		lines, bodies = append(lines, ran), append(bodies, its...)
	}
	for _, w := range o.watches {
		lines = append(lines, w.started)
	}
	kept = kept && flush()
	for _, w := range o.watches {
		switch {
		case kept:
			e.start(w)
		case w.entry != nil:
			e.outbox.unclaim(w.entry.Run) // it is made when the log takes its start
		}
	}
	return said
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
		e.runObserved(e.ctx, e.prepared(e.ofOperation(op, events.AfterToolCall, s.Args(), result)))
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
	s := op.snapshot()
	if !may(s) {
		return core.Heard{}, refuse(events.RejectNotYours, "")
	}
	ends := e.toolEnds(op, s, args, f)
	before := uint64(0)
	s, err = e.decide(op, e.o.Owner, func(s core.State) core.Command {
		before = s.Seq
		return core.Finish{At: e.at(), Outcome: f.Outcome, Ran: f.Ran}
	})
	if err != nil || s.Seq == before {
		for _, o := range ends {
			e.forgo(o)
		}
		return core.Heard{}, err
	}
	return e.tellAll(ctx, ends), nil
}

// toolEnds are the events of a tool's end, prepared; none when no tool ran.
func (e *Engine) toolEnds(op *operation, s core.State, args []byte, f core.Finished) []observed {
	ran := f.Outcome == events.OutcomeOK || f.Outcome == events.OutcomeFailed
	if !ran || s.Proposed.Kind != events.KindToolCall || s.Ending().Committed.Digest == "" {
		return nil
	}
	if args = canonicalOr(args); args == nil {
		args = s.Body(events.ArgsBody(s.Ending().Committed.N))
	}
	result := resultPayload(f.Result)
	if result == nil {
		result = &hooks.ResultPayload{Failed: f.Outcome == events.OutcomeFailed}
	}
	var ends []observed
	for _, event := range endsOfTool(result.Error != "") {
		ends = append(ends, e.prepared(e.ofOperation(op, event, args, result)))
	}
	return ends
}

// endsOfTool are the events of a tool's end.
func endsOfTool(failed bool) []events.HookEvent {
	if failed {
		return []events.HookEvent{events.AfterToolCall, events.ToolError}
	}
	return []events.HookEvent{events.AfterToolCall}
}

// tellAll runs the hooks of events, one after the other, and returns what they want
// the model to read.
func (e *Engine) tellAll(ctx context.Context, list []observed) core.Heard {
	var said []string
	for _, o := range list {
		said = append(said, e.runObserved(ctx, o)...)
	}
	return core.Heard{Context: strings.Join(said, "\n\n")}
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
