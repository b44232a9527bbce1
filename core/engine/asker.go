package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// Propose begins an operation, or joins it again: the same id and secret is
// the same operation, whatever happened to the connection or the core in
// between. It returns when the operation is in the log. Each call that returns
// nil must be matched by one Gone.
func (e *Engine) Propose(ctx context.Context, p core.Proposal) error {
	if err := check(p); err != nil {
		return err
	}
	if op, ok := e.lookup(p.Operation); ok {
		return e.join(op, p)
	}
	if e.full.Load() {
		return refuse(events.RejectLogUnavailable, "the log is over 90 % of its limit; new operations are refused")
	}
	ses, err := e.open(ctx, p)
	if err != nil {
		return err
	}
	op := newOperation(ses.place, p.Operation, core.State{
		ID: p.Operation, Turn: ses.turnOf(p.Kind, p.Turn), Traceparent: p.Traceparent,
	})
	op.askers = 1
	op.turn <- struct{}{} // nobody else may decide before it is proposed
	if other, err := e.admit(op); err != nil {
		return err
	} else if other != nil {
		return e.join(other, p)
	}
	// Asked only now: a signal that came before has left its mark, and one that
	// comes later finds the operation.
	if err = e.propose(op, p, e.standing(ses, p.Operation, p.Kind, op.state.Turn)); err != nil {
		e.giveUp(op) // a hook that it may have started decides nothing
	}
	<-op.turn
	if err != nil {
		e.forget(op)
		if _, ok := errors.AsType[*journal.Lost](err); ok {
			return e.rejoin(op, p)
		}
	}
	return err
}

func check(p core.Proposal) error {
	if _, err := events.ParseID(string(p.Operation)); err != nil {
		return refuse(events.RejectMalformed, err.Error())
	}
	switch p.Kind {
	case events.KindToolCall:
	case events.KindUserPrompt, events.KindInjection, events.KindRetryNote:
		if !bytes.HasPrefix(bytes.TrimLeft(p.Args, " \t\r\n"), []byte(`"`)) {
			return refuse(events.RejectMalformed, "an input is a text, as a JSON string")
		}
	default:
		return refuse(events.RejectMalformed, fmt.Sprintf("unknown kind of operation %.40q", p.Kind))
	}
	if len(p.Secret) < 16 || len(p.Secret) > 128 {
		return refuse(events.RejectMalformed, "the operation's secret must have 16 to 128 bytes")
	}
	return checkLengths(bounds{
		{"cwd", p.Cwd, maxCwd},
		{"tool name", p.Tool.Name, maxToolName},
		{"tool kind", p.Tool.Kind, maxToolKind},
		{"call id", p.Tool.CallID, maxCallID},
		{"path", p.Path, maxPath},
		{"turn", p.Turn, maxTurn},
		{"profile", p.Profile, maxProfile},
		{"traceparent", p.Traceparent, maxTraceparent},
		{"session id", p.Native, maxNative},
		{"parent's session id", p.Parent, maxNative},
	})
}

// propose writes the operation's beginning. End is why its reason to exist is
// gone already, "" while it is not.
func (e *Engine) propose(op *operation, p core.Proposal, end events.EndReason) error {
	cmd := core.Propose{At: e.at(), End: end, Op: events.OperationProposed{
		Kind: p.Kind, Agent: p.Agent, Path: p.Path, Tool: p.Tool, Cwd: p.Cwd, Profile: p.Profile,
		Secret: events.DigestOf([]byte(p.Secret)), AgentDeadline: events.At(p.Deadline), Leased: p.Leased,
	}}
	sub := hooks.Subject{Event: gateOf(p.Kind), Agent: p.Agent, Profile: p.Profile, Cwd: p.Cwd, Tool: p.Tool, Args: p.Args}
	set, err := e.o.Rules.For(p.Cwd)
	if err != nil {
		cmd.Refuse, cmd.Reason = rulesCode(err), err.Error()
	} else {
		op.set, cmd.Op.Config = set, set.Digest
	}
	e.arguments(&cmd, set, p, sub)
	s := op.state
	if cmd.Refuse == "" {
		sub.Args = cmd.Args
		n := core.Next{Plan: planOf(set, sub, 0), Run: e.newID(), Available: e.capable(op.place.Value()) > 0}
		n.Watch = e.newIDs(len(n.Plan.Watch))
		cmd.Next = n
	}
	d, err := core.Decide(s, cmd)
	if err != nil {
		return err
	}
	_, err = e.write(e.ctx, op, s, d, 0, e.o.Owner)
	return err
}

// arguments makes the canonical form and decides about arguments that have
// none or do not fit: where a hook would check them they are refused.
func (e *Engine) arguments(cmd *core.Propose, set *hooks.Set, p core.Proposal, sub hooks.Subject) {
	args, err := core.Canonical(p.Args)
	switch {
	case err != nil && set != nil && !set.Concerns(sub):
		args = p.Args // no hook would check them: they run as they came
	case err != nil:
		cmd.Op.Version = events.Version{Digest: events.DigestOf(p.Args), Bytes: len(p.Args)}
		if cmd.Refuse == "" {
			cmd.Refuse, cmd.Reason = events.CodeNoCanonicalForm, err.Error()
		}
		return
	}
	cmd.Op.Version = events.Version{Digest: events.DigestOf(args), Bytes: len(args)}
	if len(args) > maxArguments {
		if cmd.Refuse == "" {
			cmd.Refuse = events.CodeTooLarge
			cmd.Reason = fmt.Sprintf("%d bytes of arguments; the log takes %d", len(args), maxArguments)
		}
		return
	}
	cmd.Args = args
}

// Receipt records that the asker has the verdict and is about to act on it. By is
// its connection, "" for one without a name: of several with the same operation and
// secret the first has the right to run. An error means that the asker must not run
// anything.
func (e *Engine) Receipt(_ context.Context, id events.ID, secret string, by events.ID) error {
	op, ok := e.lookup(id)
	if !ok {
		return refuse(events.RejectUnknownOperation, "")
	}
	return e.asker(op, secret, func(core.State) core.Command { return core.Receipt{At: e.at(), By: by} })
}

// Commit is the receipt of an asker that runs the operation itself, right before
// it does. Digest is of what is about to run: any other than the checked one ends
// the operation, and is refused as stale_version. Its error means that the asker
// must not run anything.
func (e *Engine) Commit(_ context.Context, id events.ID, secret string, digest events.Digest, by events.ID) error {
	if digest == "" {
		return refuse(events.RejectMalformed, "say the digest of what is about to run")
	}
	op, ok := e.lookup(id)
	if !ok {
		var err error
		if op, err = e.reload(id); err != nil {
			return err
		}
	}
	var ended events.EndReason
	err := e.asker(op, secret, func(s core.State) core.Command {
		if ended = e.overtaken(op, s); ended != "" {
			return core.Withdraw{At: e.at(), Reason: ended}
		}
		return core.Commit{At: e.at(), By: by, Digest: digest}
	})
	if err == nil && ended != "" {
		return &events.Refused{Code: events.RejectWithdrawn, EndReason: ended, Hint: "the operation has ended; do not run it"}
	}
	return err
}

// overtaken is why an operation that was granted must not run any more, "" while it
// may: its session has recorded what ends it, and its own subject does not say so
// yet.
func (e *Engine) overtaken(op *operation, s core.State) events.EndReason {
	if s.Phase != core.PhaseCommitted || s.Delivered {
		return ""
	}
	ses, refused := e.sessionAt(op.place.Value())
	if refused != nil {
		return ""
	}
	return e.standing(ses, s.ID, s.Proposed.Kind, s.Turn)
}

// Withdraw ends an operation that its asker does not want any more. What was
// committed and taken is the asker's: only a report ends it.
func (e *Engine) Withdraw(_ context.Context, id events.ID, secret string, reason events.EndReason) error {
	if events.ResultOf(reason) != events.ResultWithdrawn {
		return refuse(events.RejectMalformed, fmt.Sprintf("%.40q is no reason to withdraw", reason))
	}
	op, ok := e.lookup(id)
	if !ok {
		return nil // it has left memory, so it has ended or is its asker's
	}
	return e.asker(op, secret, func(core.State) core.Command { return core.Withdraw{At: e.at(), Reason: reason} })
}

func (e *Engine) asker(op *operation, secret string, want wants) error {
	var stranger bool
	_, err := e.decide(op, e.o.Owner, func(s core.State) core.Command {
		if stranger = !owns(&s, secret); stranger {
			return nil
		}
		return want(s)
	})
	if stranger {
		return refuse(events.RejectNotYours, "")
	}
	return err
}

// Gone says that a connection of the asker ended, before a receipt or after.
// When it was the last one, what was not delivered ends with the reason.
func (e *Engine) Gone(id events.ID, secret string, reason events.EndReason) {
	op, ok := e.lookup(id)
	if !ok {
		return
	}
	op.mu.Lock()
	if !owns(&op.state, secret) || op.askers == 0 {
		op.mu.Unlock()
		return
	}
	op.askers--
	last := op.askers == 0
	op.mu.Unlock()
	if !last {
		return
	}
	if e.stopped() {
		return // the core is going, not the asker
	}
	e.withdraw(op, reason)
	e.settle(op)
}

// withdraw ends an operation whose reason to exist went away. One that was
// committed before this core started, and whose asker has not come back, may have
// run: of it only that nothing is known can be said.
func (e *Engine) withdraw(op *operation, reason events.EndReason) {
	_, err := e.decide(op, "core", func(s core.State) core.Command {
		if s.Phase == core.PhaseCommitted && op.missed() {
			return core.Finish{At: e.at(), Outcome: events.OutcomeUnknown}
		}
		return core.Withdraw{At: e.at(), Reason: reason}
	})
	if err != nil && !errors.Is(err, ErrStopped) {
		e.o.Logger.Error("could not withdraw", "operation", op.snapshot().ID, "reason", reason, "error", err)
		e.giveUp(op)
	}
}

// missed reports whether the asker has not come back after a restart.
func (op *operation) missed() bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.due.asker != 0
}

// owns takes a pointer because it is called where askers wait: a State on each
// of their stacks would be more than all else that waiting costs.
func owns(s *core.State, secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(s.Proposed.Secret[:], sum[:]) == 1
}

// join counts one more connection of the asker.
func (e *Engine) join(op *operation, p core.Proposal) error {
	proposed := events.DigestOf(canonicalOr(p.Args))
	select {
	case op.turn <- struct{}{}: // it may still be on its way into the log
		<-op.turn
	case <-e.ctx.Done():
		return ErrStopped
	}
	e.mu.Lock()
	op.mu.Lock()
	kept := e.ops[op.id] == op
	e.mu.Unlock()
	s := op.state
	if !kept && s.Phase != core.PhaseNone { // it left memory meanwhile; the log has it
		op.mu.Unlock()
		return e.rejoin(op, p)
	}
	if s.Phase == core.PhaseNone {
		op.mu.Unlock()
		return refuse(events.RejectLogUnavailable, "the operation did not get into the log")
	}
	if !owns(&s, p.Secret) {
		op.mu.Unlock()
		if s.Phase == core.PhaseCommitted {
			return refuse(events.RejectAlreadyCommitted, "this operation belongs to another process and has its verdict")
		}
		return refuse(events.RejectNotYours, "this operation belongs to another process")
	}
	if s.Versions[0].Digest != proposed {
		op.mu.Unlock() // an adapter whose agent runs what it sent itself would let this one on
		return refuse(events.RejectStaleVersion, "this operation was proposed with other arguments; do not run these")
	}
	op.askers++
	op.due.asker = 0
	op.mu.Unlock()
	e.arm(op)
	if ses, refused := e.sessionAt(op.place.Value()); refused == nil {
		e.stands(ses, p.Pane) // a core that has just started does not know it
	}
	return nil
}

// rejoin takes up an operation that the log has but memory has not.
func (e *Engine) rejoin(op *operation, p core.Proposal) error {
	s, err := e.fold(op.subject())
	if err != nil {
		return e.appendFailed(err)
	}
	again := newOperation(op.place.Value(), s.ID, s)
	if other, err := e.admit(again); err != nil {
		return err
	} else if other != nil {
		return e.join(other, p)
	}
	if err := e.join(again, p); err != nil {
		e.forget(again)
		return err
	}
	if ses, no := e.sessionAt(again.place.Value()); no == nil {
		if end := e.standing(ses, s.ID, s.Proposed.Kind, s.Turn); end != "" {
			e.withdraw(again, end)
		}
	}
	e.takeUp(again)
	return nil
}

// reload takes an ended operation from the log for one command.
func (e *Engine) reload(id events.ID) (*operation, error) {
	e.mu.Lock()
	at, ok := e.ended.operations[id]
	e.mu.Unlock()
	if !ok {
		return nil, refuse(events.RejectUnknownOperation, "")
	}
	p, err := events.ParseLogSubject(at)
	if err != nil {
		return nil, refuse(events.RejectInternal, err.Error())
	}
	return e.read(Place{p.Project, p.Session}, id)
}

// read makes an operation of what the log has.
func (e *Engine) read(p Place, id events.ID) (*operation, error) {
	s, err := e.fold(events.OperationSubject(p.Project, p.Session, id))
	if err != nil {
		return nil, e.appendFailed(err)
	}
	if s.Phase == core.PhaseNone {
		return nil, refuse(events.RejectUnknownOperation, "")
	}
	return newOperation(p, id, s), nil
}

// keep holds an operation in memory until unhold, or the one that is there. All
// that is decided about it then passes one mailbox.
func (e *Engine) keep(op *operation) (*operation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped() {
		return nil, ErrStopped
	}
	if other, ok := e.ops[op.id]; ok {
		op = other
	}
	e.ops[op.id] = op
	op.hold()
	return op, nil
}

// holdAt holds an operation, in memory or not.
func (e *Engine) holdAt(p Place, id events.ID) (*operation, error) {
	op, ok := e.lookup(id)
	if !ok {
		var err error
		if op, err = e.read(p, id); err != nil {
			return nil, err
		}
	}
	return e.keep(op)
}

func (e *Engine) lookup(id events.ID) (*operation, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	op, ok := e.ops[id]
	return op, ok
}

// admit puts an operation into memory, or returns the one that is there.
func (e *Engine) admit(op *operation) (other *operation, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining || e.stopped() {
		return nil, ErrStopped
	}
	if other, taken := e.ops[op.id]; taken {
		return other, nil
	}
	e.ops[op.id] = op
	return nil, nil
}

func (e *Engine) forget(op *operation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ops[op.id] == op {
		delete(e.ops, op.id)
	}
}
