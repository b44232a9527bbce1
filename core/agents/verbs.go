package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// Limits of commands, bytes. What the log does not take is refused by the core,
// with words for the model; this is far more.
const (
	maxCommand   = 64 << 10
	maxArguments = 8 << 20
	maxNative    = 16 << 10
)

// verb is one thing that an agent can ask for.
type verb struct {
	lobby bool // of the core, not of a session
	class class
	limit int // bytes of the command
	// read decodes a command and checks its form; run then asks the desk.
	read func(data []byte) (run, error)
}

// run carries out a command that was read.
type run func(ctx context.Context, d *Door, from caller) (reply any)

func doorVerbs() map[string]verb {
	m := map[string]verb{
		events.VerbCores:       {lobby: true, limit: maxCommand, read: read(free[events.Cores], (*Door).cores)},
		events.VerbSessionOpen: {lobby: true, limit: maxCommand, read: read(checkOpen, (*Door).sessionOpen)},

		events.VerbPropose:  {limit: maxArguments, read: read(checkPropose, (*Door).propose)},
		events.VerbAwait:    {limit: maxCommand, class: awaiting, read: read(checkAwait, (*Door).await)},
		events.VerbCommit:   {limit: maxCommand, read: read(checkCommit, (*Door).commit)},
		events.VerbReceipt:  {limit: maxCommand, read: read(checkReceiptOf, (*Door).receipt)},
		events.VerbFinish:   {limit: maxArguments, read: read(checkFinish, (*Door).finish)},
		events.VerbWithdraw: {limit: maxCommand, read: read(checkWithdraw, (*Door).withdraw)},
		events.VerbCheck:    {limit: maxArguments, read: read(checkCheck, (*Door).check)},

		events.VerbSessionClose:     {limit: maxCommand, read: read(free[events.SessionSignal], (*Door).sessionClose)},
		events.VerbMessageWithdrawn: {limit: maxCommand, read: read(checkMessage, (*Door).messageWithdrawn)},
		events.VerbObserve:          {limit: maxCommand, read: read(checkObserve, (*Door).observe)},
	}
	for name, signal := range map[string]core.Signal{
		events.VerbInterrupt:    core.Signal(events.UserInterrupt),
		events.VerbTurnStarted:  core.Signal(events.BeforeTurn),
		events.VerbTurnEnded:    core.Signal(events.AfterTurn),
		events.VerbBuildChanged: core.SignalBuildChanged,
	} {
		m[name] = verb{limit: maxCommand, read: read(free[events.SessionSignal],
			func(d *Door, ctx context.Context, from caller, c events.SessionSignal) any {
				return d.signal(ctx, from, core.Observation{Signal: signal, Turn: c.Turn})
			})}
	}
	return m
}

// read makes the decoder of a verb from its command's type, the check of its
// form, and what it does.
func read[C any](check func(C) error, do func(*Door, context.Context, caller, C) any) func([]byte) (run, error) {
	return func(data []byte) (run, error) {
		var c C
		if _, err := events.DecodeCommand(data, &c); err != nil {
			return nil, err
		}
		if err := check(c); err != nil {
			return nil, err
		}
		return func(ctx context.Context, d *Door, from caller) any { return do(d, ctx, from, c) }, nil
	}
}

func (d *Door) cores(_ context.Context, _ caller, _ events.Cores) any {
	return events.CoresReply{Core: d.o.Core, Epoch: d.o.Epoch}
}

func (d *Door) sessionOpen(ctx context.Context, from caller, c events.SessionOpen) any {
	from.opening = core.SessionOpening{
		Agent: c.Agent, Native: c.Native, Cwd: c.Cwd, Profile: c.Profile, Parent: c.Parent, Pane: c.Pane,
	}
	head, restored, err := d.o.Desk.OpenSession(ctx, from.opening)
	if err == nil {
		from.project, from.session = head.Project, head.Session
		err = d.opened.add(ctx, from)
	}
	if err != nil {
		return refusal{d.no(err)}
	}
	return events.SessionOpenReply{
		Project: head.Project, Session: head.Session, Core: d.o.Core, Epoch: d.o.Epoch,
		LeaseMS: events.AskerLease.Milliseconds(), Restored: restored,
	}
}

func (d *Door) propose(ctx context.Context, from caller, c events.Propose) any {
	if d.held.full(from.agent) {
		return refusal{refuse(events.RejectTooMany, "%d operations are open; repeat when some have ended", maxHeld)}
	}
	if err := d.o.Desk.Propose(ctx, proposal(from, c)); err != nil {
		return refusal{d.no(err)}
	}
	if first := d.held.keep(from.agent, c.Operation, c.Secret); !first {
		d.o.Desk.Gone(c.Operation, c.Secret, events.EndAgentGone) // this connection counts once
	}
	now, cancel := context.WithCancel(ctx)
	cancel() // propose does not wait
	return d.verdict(now, from, c.Operation, c.Secret)
}

func (d *Door) await(ctx context.Context, from caller, c events.Await) any {
	ctx, cancel := context.WithTimeout(ctx, awaitFor)
	defer cancel()
	if !d.held.await(from.agent, c.Operation, c.Secret, cancel) {
		return refusal{refuse(events.RejectUnknownOperation, "propose it first, with the same id and secret")}
	}
	return d.verdict(ctx, from, c.Operation, c.Secret)
}

// verdict waits for one until ctx ends, and sets the lease that begins with the
// reply.
func (d *Door) verdict(ctx context.Context, from caller, op events.ID, secret string) any {
	told := make(chan any, 1)
	stop := d.o.Desk.Notify(op, secret, func(v core.Verdict, err error) {
		switch {
		case err == nil:
			told <- events.OperationReply{Verdict: say(v)}
		case d.isStopping(err):
			told <- events.OperationReply{}
		default:
			told <- refusal{d.no(err)}
		}
	})
	var reply any = events.OperationReply{}
	select {
	case reply = <-told:
	case <-ctx.Done():
		if !stop() {
			reply = <-told
		}
	}
	left := events.AskerLease
	if r, ok := reply.(events.OperationReply); ok && r.Verdict != nil && !r.Verdict.Allow {
		left = afterward
	}
	d.held.answered(from.agent, op, left)
	return reply
}

// say is a verdict on the wire.
func say(v core.Verdict) *events.OperationVerdict {
	w := &events.OperationVerdict{
		Allow: v.Allow, Code: v.Code, EndReason: v.EndReason, Version: v.Version, Message: v.Message,
	}
	if v.Allow {
		w.Changed, w.SystemReminder = v.Changed, v.Reminder
	}
	if v.Kind == "" || v.Kind == events.KindToolCall {
		if v.Allow {
			w.Args = v.Args
		}
		return w
	}
	var text string
	if err := json.Unmarshal(v.Args, &text); err == nil {
		w.Text = &text
	}
	if !v.Allow {
		w.Input = events.InputWord(v.Kind)
	}
	return w
}

func (d *Door) commit(ctx context.Context, from caller, c events.Commit) any {
	err := d.o.Desk.Commit(ctx, c.Operation, c.Secret, c.Digest, from.agent)
	return d.settled(from, c.Operation, c.Secret, err)
}

func (d *Door) receipt(ctx context.Context, from caller, c events.Receipt) any {
	err := d.o.Desk.Receipt(ctx, c.Operation, c.Secret, from.agent)
	return d.settled(from, c.Operation, c.Secret, err)
}

func (d *Door) withdraw(ctx context.Context, from caller, c events.Withdraw) any {
	err := d.o.Desk.Withdraw(ctx, c.Operation, c.Secret, events.EndCallerCancelled)
	return d.settled(from, c.Operation, c.Secret, err)
}

// settled ends the connection's part in an operation that needs no lease any
// more: a tool may run for hours.
func (d *Door) settled(from caller, op events.ID, secret string, err error) any {
	if err != nil {
		return refusal{d.no(err)}
	}
	if d.held.release(from.agent, op, secret) {
		d.o.Desk.Gone(op, secret, events.EndAgentGone)
	}
	return events.Ack{}
}

func (d *Door) finish(ctx context.Context, _ caller, c events.Finish) any {
	f := core.Finished{Operation: c.Operation, Secret: c.Secret, Outcome: c.Outcome, Ran: c.Ran}
	if r := c.Result; r != nil {
		f.Result = &core.ToolResult{
			Text: r.Text, Error: r.Error, Failed: r.Failed, Duration: time.Duration(r.DurationMS) * time.Millisecond,
		}
	}
	heard, err := d.o.Desk.Finish(ctx, f)
	if err != nil {
		return refusal{d.no(err)}
	}
	return events.FinishReply{ExtraContext: heard.Context}
}

func (d *Door) check(ctx context.Context, from caller, c events.Check) any {
	f := d.o.Desk.Check(ctx, proposal(from, events.Propose{
		Kind: c.Kind, Path: c.Path, Cwd: c.Cwd, Profile: c.Profile, Tool: c.Tool, Args: c.Args, Text: c.Text,
	}))
	return events.CheckReply{Would: f.Would, Hooks: f.Hooks, Available: f.Available}
}

// proposal is a command with what its session adds.
func proposal(from caller, c events.Propose) core.Proposal {
	o := from.opening
	p := core.Proposal{
		Operation: c.Operation, Secret: c.Secret, Agent: o.Agent, Native: o.Native, Cwd: cmp.Or(c.Cwd, o.Cwd), Pane: o.Pane,
		Profile: cmp.Or(c.Profile, o.Profile), Turn: c.Turn, Path: cmp.Or(c.Path, events.MainPath), Traceparent: c.Traceparent,
		Kind: c.Kind, Args: c.Args, Leased: true,
	}
	if c.Tool != nil {
		p.Tool = *c.Tool
	}
	if c.Text != nil {
		p.Args = []byte(quote(*c.Text))
	}
	if c.TimeoutMS > 0 {
		p.Deadline = time.Now().Add(time.Duration(c.TimeoutMS) * time.Millisecond)
	}
	return p
}

func (d *Door) sessionClose(ctx context.Context, from caller, c events.SessionSignal) any {
	signal := core.Signal(events.SessionEnd)
	if c.Changed {
		signal = core.SignalSessionChanged
	}
	reply := d.signal(ctx, from, core.Observation{Signal: signal, Turn: c.Turn})
	if _, ok := reply.(events.Ack); ok {
		d.opened.drop(from.agent, from.session)
	}
	return reply
}

func (d *Door) messageWithdrawn(ctx context.Context, from caller, c events.MessageWithdrawn) any {
	return d.signal(ctx, from, core.Observation{Signal: core.SignalMessageWithdrawn, Operation: c.Operation})
}

func (d *Door) observe(ctx context.Context, from caller, c events.Observe) any {
	return d.signal(ctx, from, core.Observation{Signal: core.Signal(c.Event), Turn: c.Turn, Path: c.Path})
}

// signal tells the desk, with what the session adds.
func (d *Door) signal(ctx context.Context, from caller, o core.Observation) any {
	o.Agent, o.Native, o.Session = from.opening.Agent, from.opening.Native, from.session
	o.Cwd, o.Profile = from.opening.Cwd, from.opening.Profile
	if _, err := d.o.Desk.Observe(ctx, o); err != nil {
		return refusal{d.no(err)}
	}
	return events.Ack{}
}
