package engine

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// subject is what hooks of this operation match on, for the given arguments.
func subject(s core.State, args []byte) hooks.Subject {
	return hooks.Subject{
		Event: gateOf(s.Proposed.Kind), Agent: s.Proposed.Agent, Profile: s.Proposed.Profile, Cwd: s.Proposed.Cwd,
		Tool: s.Proposed.Tool, Args: args,
	}
}

// gateOf is the event whose hooks an operation must pass.
func gateOf(k events.Kind) events.HookEvent {
	if k == events.KindToolCall {
		return events.BeforeToolCall
	}
	return events.UserPromptSubmit
}

// next prepares what a decision needs to go on with the given arguments: the
// plan under the configuration that the operation began with, and the plan
// under today's if that is another.
func (e *Engine) next(op *operation, s core.State, args []byte) core.Next {
	n := core.Next{Run: e.newID(), Available: e.capable(op.place.Value()) > 0}
	sub := subject(s, args)
	from, watchers := s.Cursor, 0
	if s.RunOpen {
		from = s.Run.Hook.Index + 1
	}
	now, err := e.o.Rules.For(s.Proposed.Cwd)
	switch {
	case err != nil:
		// The file is broken now, or not trusted any more: what was checked must
		// not run under rules that nobody can read or has agreed to.
		n.Fail, n.FailReason = rulesCode(err), err.Error()
	case now.Digest != s.Config:
		fresh := planOf(now, sub, 0)
		n.Fresh, watchers = &fresh, len(fresh.Watch)
	}
	// Without the rules that it began with, the plan stays of no configuration:
	// core then takes the fresh one from its first hook, or refuses.
	if set := e.adopt(op, s.Config, now); set != nil {
		n.Plan = planOf(set, sub, from)
		if from > 0 && !bytes.Equal(args, s.Args()) { // it may be checked again from its first hook
			if h, ok := set.Next(sub, 0); ok && h.Index < from {
				n.Plan.Hooks = append([]events.Hook{h}, n.Plan.Hooks...)
			}
		}
	}
	n.Watch = e.newIDs(max(watchers, len(n.Plan.Watch)))
	return n
}

// planOf is what a set has for an operation that has come to one of its hooks: the
// next that matches, or, when there is none, those that watch it run. Asking for
// more would match every rule again at each step.
func planOf(set *hooks.Set, sub hooks.Subject, from int) core.Plan {
	p := core.Plan{Config: set.Digest}
	if h, ok := set.Next(sub, from); ok {
		p.Hooks = []events.Hook{h}
		return p
	}
	for _, w := range set.Watchers(sub) {
		p.Watch = append(p.Watch, core.WatchHook{Hook: w.Hook, Mode: w.Mode, Durable: w.Durable})
	}
	return p
}

// rulesCode is why no rules could be had.
func rulesCode(err error) events.Code {
	return cmp.Or(hooks.CodeOf(err), events.CodeHooksConfigInvalid)
}

// adopt returns the rules that an operation stands under, nil if this core does
// not have them: those that it began with, or today's when it has come under
// them by a recheck or a restart. Running operations keep what they began with.
func (e *Engine) adopt(op *operation, config events.Digest, now *hooks.Set) *hooks.Set {
	op.mu.Lock()
	defer op.mu.Unlock()
	if now != nil && now.Digest == config {
		op.set = now
	}
	if op.set != nil && op.set.Digest == config {
		return op.set
	}
	return nil
}

// launch starts the hook that a decision is about to record, so that its run
// overlaps the append. It returns what ends the run again should the log not
// take the decision; the verdict waits for the operation's turn in any case.
func (e *Engine) launch(op *operation, s core.State, d core.Decision) (cancel func()) {
	after := core.After(s, d)
	if !after.RunOpen || !begins(d, after.Run.Run) {
		return func() {}
	}
	run := e.openRun(op, after)
	ctx, end := context.WithCancel(e.ctx)
	op.mu.Lock()
	op.running, op.endRun = after.Run.Run, end
	op.mu.Unlock()
	e.tasks.Go(func() {
		defer end()
		e.runHook(ctx, run)
	})
	return end
}

// hookRun is a run at the gate; set is nil when its rules are gone.
type hookRun struct {
	op      *operation
	started core.Run
	set     *hooks.Set
	state   core.State
	args    []byte
}

// openRun is the run that is open in a state.
func (e *Engine) openRun(op *operation, s core.State) hookRun {
	set := e.adopt(op, s.Config, nil)
	if set == nil { // a recheck or a restart has brought it under today's
		now, _ := e.o.Rules.For(s.Proposed.Cwd)
		set = e.adopt(op, s.Config, now)
	}
	return hookRun{op: op, started: s.Run, set: set, state: s, args: s.Body(events.ArgsBody(s.Run.Version))}
}

func (e *Engine) runHook(ctx context.Context, r hookRun) {
	res, waited, hook := e.execute(ctx, r)
	cut := ctx.Err() != nil
	r.op.mu.Lock()
	if r.op.running == r.started.Run {
		r.op.endRun = nil
	}
	r.op.mu.Unlock()
	if e.stopped() {
		return // the run stays open in the log; the next core abandons it
	}
	_, err := e.decide(r.op, "core", func(s core.State) core.Command {
		switch {
		case r.op.givenUp():
			return nil // likewise: whoever takes the operation up abandons the run
		case cut && s.Phase == core.PhaseHook && s.Run.Run == r.started.Run:
			// It was ended because the append seemed lost; the log has it after all.
			return core.Abandon{At: e.at(), Next: e.next(r.op, s, s.Args())}
		}
		done := e.hookDone(r, hook, res, s)
		done.Waited = waited.Microseconds()
		return done
	})
	if err != nil && !e.stopped() {
		e.giveUp(r.op)
	}
	e.settle(r.op)
}

func (e *Engine) execute(ctx context.Context, r hookRun) (hooks.Result, time.Duration, hooks.Hook) {
	if r.set == nil {
		return hooks.Result{
			Effect: events.EffectBlock, Outcome: events.RunMissing, Code: events.CodeHookMissing,
			Reason: fmt.Sprintf("hook %s is no longer in the rules", r.started.Hook.ID),
		}, 0, hooks.Hook{}
	}
	hook := r.set.Hook(r.started.Hook.Index)
	in := hooks.Input{Payload: e.payload(r), Cwd: r.state.Proposed.Cwd}
	if hook.Run.Type != hooks.RunVerdict {
		in.Env = e.environment(r.state, r.started.Run)
	}
	res, waited := e.attend(ctx, r.op.place.Value(), r.set, hook, in)
	return res, waited, hook
}

// attend runs one hook when its turn among its session's has come; waited is how
// long that took. A fault of the core's own in it is a failed hook, never an
// allow.
func (e *Engine) attend(ctx context.Context, p Place, set *hooks.Set, hook hooks.Hook, in hooks.Input) (res hooks.Result, waited time.Duration) {
	if hook.Run.Type != hooks.RunVerdict && !hook.Detach {
		leave, stood, err := e.slots.take(ctx, p, set.Settings.MaxParallel)
		waited = stood
		if err != nil {
			hook.OnError = hooks.OnErrorBlock // should its result be acted on all the same
			res = hooks.Failure(hook, events.CodeHookFailed, "it was ended before it could start")
			res.Outcome = events.RunAbandoned
			return res, waited
		}
		defer leave()
	}
	defer func() {
		if p := recover(); p != nil {
			e.o.Logger.Error("a hook's run panicked", "hook", hook.Ref.ID, "panic", p, "stack", string(debug.Stack()))
			res = hooks.Failure(hook, events.CodeHookFailed, "the core failed while it ran the hook")
		}
	}()
	in.Payload.Timestamp = e.now()
	res = e.o.Run(ctx, hook, in)
	if res.NotApplied != "" {
		e.o.Logger.Warn("what a hook wanted was not applied", "hook", hook.Ref.ID, "event", hook.Event, "not_applied", res.NotApplied)
	}
	return res, waited
}

func (e *Engine) payload(r hookRun) hooks.Payload {
	s := r.state
	p := hooks.Payload{
		Event: gateOf(s.Proposed.Kind), SessionID: e.native(r.op.place.Value()), Profile: s.Proposed.Profile, Cwd: s.Proposed.Cwd,
		ConfirmationAvailable: r.started.Available, Attempt: r.started.Attempt, OperationID: s.ID,
	}
	if s.Proposed.Kind == events.KindToolCall {
		p.Tool, p.Args = s.Proposed.Tool, r.args
		return p
	}
	p.Text, p.Input, p.Injected = r.args, events.InputWord(s.Proposed.Kind), s.Proposed.Kind == events.KindInjection
	return p
}

func (e *Engine) environment(s core.State, run events.ID) []string {
	if e.o.HookTrace == nil {
		return nil
	}
	return []string{"TRACEPARENT=" + e.o.HookTrace(s, run)}
}

// hookDone turns a run's result into a command for the state it meets.
func (e *Engine) hookDone(r hookRun, hook hooks.Hook, res hooks.Result, s core.State) core.HookDone {
	cmd := core.HookDone{
		Run: r.started.Run, At: e.at(), Exit: res.Exit, Micros: res.Duration.Microseconds(), Script: res.Script,
		Stderr: last(res.Stderr, maxStderr), Reminder: first(res.Reminder, maxReminder),
	}
	args := s.Args()
	if res.Override != nil {
		merged, err := core.Merge(args, res.Override)
		switch {
		case err != nil:
			res = hooks.Failure(hook, events.CodeHookBadVerdict, "args_override does not fit: "+err.Error())
		case len(merged) > maxArguments:
			res = hooks.Failure(hook, events.CodeTooLarge, "args_override makes the arguments too large")
		default:
			args, cmd.Args = merged, merged
		}
	}
	cmd.Effect, cmd.Outcome, cmd.Code, cmd.Reason = res.Effect, res.Outcome, res.Code, first(res.Reason, maxReason)
	cmd.FailedOpen, cmd.NotApplied = res.FailedOpen, res.NotApplied
	if cmd.Effect == events.EffectAsk {
		cmd.Ask = e.ask(r.op, hook, s)
	}
	if cmd.Effect != events.EffectAsk || cmd.Args != nil { // a plain question goes on with its answer's plan
		cmd.Next = e.next(r.op, s, args)
	}
	return cmd
}

// ask prepares a question: its deadline is the hook's own or the core's, and
// never later than the agent listens.
func (e *Engine) ask(op *operation, hook hooks.Hook, s core.State) *core.Ask {
	now := e.now()
	offered := e.capable(op.place.Value())
	a := &core.Ask{
		Question: e.newID(), Gate: events.GateHook, WhenNobody: e.o.WhenNobody,
		Offered: offered, Available: offered > 0, Repeat: e.repeats.find(op.place.Value(), s),
	}
	if hook.Confirmation.WhenNobody != "" {
		a.WhenNobody = hook.Confirmation.WhenNobody
	}
	limit, from := e.o.Timeout, "config"
	if hook.Confirmation.Timeout != nil {
		limit, from = *hook.Confirmation.Timeout, "hook"
	}
	var deadline time.Time
	if limit > 0 {
		deadline = now.Add(limit)
	}
	if agent := s.Proposed.AgentDeadline.Time(); !agent.IsZero() {
		if agent = agent.Add(-deadlineMargin); deadline.IsZero() || agent.Before(deadline) {
			deadline, from = agent, "agent"
		}
	}
	if !deadline.IsZero() {
		a.Deadline, a.DeadlineFrom = events.At(deadline), from
	}
	return a
}

// giveUp refuses the asker although the log could not take the end: what is
// not in the log does not run.
func (e *Engine) giveUp(op *operation) {
	op.mu.Lock()
	op.fault = true
	op.mu.Unlock()
	e.wake(op)
}

func (op *operation) givenUp() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.fault
}

// What a hook says beside its verdict must fit into the message together with
// the largest arguments. What is left out is counted.
const (
	maxReason   = 16 << 10
	maxStderr   = 16 << 10
	maxReminder = 16 << 10
)

func first(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("… (%d bytes more)", len(s)-most)
}

func last(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("(%d bytes before) …", len(s)-most) + strings.ToValidUTF8(s[len(s)-most:], "")
}
