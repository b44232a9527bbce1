package engine

import (
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
		Event: hookEvent(s), Agent: s.Proposed.Agent, Profile: s.Proposed.Profile, Cwd: s.Proposed.Cwd,
		Tool: s.Proposed.Tool, Args: args,
	}
}

func hookEvent(s core.State) events.HookEvent {
	if s.Proposed.Kind == events.KindToolCall {
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
	now, err := e.o.Rules.For(s.Proposed.Cwd)
	switch {
	case err != nil:
		// The file is broken now: what was checked must not run under rules
		// that nobody can read.
		n.Fail, n.FailReason = events.CodeHooksConfigInvalid, err.Error()
	case now.Digest != s.Config:
		n.Fresh = &core.Plan{Config: now.Digest, Hooks: now.Plan(sub)}
	}
	// Without the rules that it began with, the plan stays of no configuration:
	// core then takes the fresh one from its first hook, or refuses.
	if set := e.adopt(op, s.Config, now); set != nil {
		n.Plan = core.Plan{Config: set.Digest, Hooks: set.Plan(sub)}
	}
	return n
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
func (e *Engine) launch(op *operation, s core.State, m events.Message) (cancel func()) {
	after := s
	for _, ev := range m.Events {
		after = core.Evolve(after, ev)
		started, ok := ev.(events.HookStarted)
		if !ok {
			continue
		}
		args, ok := m.Body(events.ArgsBody(started.Version))
		if !ok {
			args = s.Body(events.ArgsBody(started.Version))
		}
		set := e.adopt(op, after.Config, nil)
		if set == nil { // a recheck or a restart has brought it under today's
			now, _ := e.o.Rules.For(after.Proposed.Cwd)
			set = e.adopt(op, after.Config, now)
		}
		ctx, end := context.WithCancel(e.ctx)
		op.mu.Lock()
		op.running, op.endRun = started.Run, end
		op.mu.Unlock()
		run := hookRun{op: op, started: started, set: set, state: after, args: args}
		e.tasks.Go(func() {
			defer end()
			e.runHook(ctx, run)
		})
		return end
	}
	return func() {}
}

type hookRun struct {
	op      *operation
	started events.HookStarted
	set     *hooks.Set
	state   core.State
	args    []byte
}

func (e *Engine) runHook(ctx context.Context, r hookRun) {
	res, hook := e.execute(ctx, r)
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
		return e.hookDone(r, hook, res, s)
	})
	if err != nil && !e.stopped() {
		e.giveUp(r.op)
	}
	e.settle(r.op)
}

// execute runs the hook. A fault of the core's own in it is a failed hook,
// never an allow.
func (e *Engine) execute(ctx context.Context, r hookRun) (res hooks.Result, hook hooks.Hook) {
	if r.set == nil {
		return hooks.Result{
			Effect: events.EffectBlock, Outcome: events.RunMissing, Code: events.CodeHookMissing,
			Reason: fmt.Sprintf("hook %s is no longer in the rules", r.started.Hook.ID),
		}, hook
	}
	hook = r.set.Hook(r.started.Hook.Index)
	defer func() {
		if p := recover(); p != nil {
			e.o.Logger.Error("a hook's run panicked", "hook", hook.Ref.ID, "panic", p, "stack", string(debug.Stack()))
			res = hooks.Failure(hook, events.CodeHookFailed, "the core failed while it ran the hook")
		}
	}()
	return e.o.Run(ctx, hook, hooks.Input{Payload: e.payload(r), Env: e.environment(r), Cwd: r.state.Proposed.Cwd}), hook
}

func (e *Engine) payload(r hookRun) hooks.Payload {
	s := r.state
	return hooks.Payload{
		Event: hookEvent(s), Timestamp: e.now(), SessionID: e.native(r.op.place.Value()), Profile: s.Proposed.Profile,
		Cwd: s.Proposed.Cwd, Tool: s.Proposed.Tool, Args: r.args,
		ConfirmationAvailable: r.started.Available, Attempt: r.started.Attempt, OperationID: s.ID,
	}
}

func (e *Engine) environment(r hookRun) []string {
	if e.o.HookTrace == nil {
		return nil
	}
	return []string{"TRACEPARENT=" + e.o.HookTrace(r.state, r.started.Run)}
}

// hookDone turns a run's result into a command for the state it meets.
func (e *Engine) hookDone(r hookRun, hook hooks.Hook, res hooks.Result, s core.State) core.Command {
	cmd := core.HookDone{
		Run: r.started.Run, At: e.at(), Exit: res.Exit, Micros: res.Duration.Microseconds(), Script: res.Script,
		Stderr: last(res.Stderr, maxStderr),
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
		Offered: offered, Available: offered > 0,
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
	maxReason = 16 << 10
	maxStderr = 16 << 10
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
