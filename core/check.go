package core

import (
	"errors"
	"fmt"

	"github.com/fermata-hitl/fermata/events"
)

// propose begins an operation. The same operation proposed again with the same
// secret is a reconnect and changes nothing; anybody else must not run.
func propose(s State, c Propose) (Decision, error) {
	if s.Phase != PhaseNone {
		return Decision{}, reproposed(s, c)
	}
	if c.End != "" && events.ResultOf(c.End) != events.ResultWithdrawn {
		return Decision{}, fmt.Errorf("propose: %q is no reason to withdraw", c.End)
	}
	if c.Args == nil && c.Refuse == "" && c.End == "" {
		return Decision{}, errors.New("propose: arguments are missing and no code says why")
	}
	if c.Args != nil {
		c.Op.Version = versionOf(0, c.Args)
	}
	d := draft{s: s}
	d.body(events.ArgsBody(0), c.Args)
	d.add(c.Op)
	switch {
	case c.End != "":
		d.add(events.OperationAborted{Reason: c.End})
		return d.Decision, nil
	case c.Refuse != "":
		d.body(events.ReasonBody(""), []byte(c.Reason)) // of no run: the operation's own
		d.refuse(c.Refuse, "", "")
		return d.Decision, nil
	}
	return d.end(d.goOn(c.Next, origin{}))
}

func reproposed(s State, c Propose) error {
	switch {
	case s.Proposed.Secret.Digest() == c.Op.Secret:
		return nil
	case s.Ending().Committed.Digest != "":
		return &events.Refused{Code: events.RejectAlreadyCommitted, Hint: "this operation has been granted to its asker; do not run it"}
	}
	return &events.Refused{Code: events.RejectNotYours, Hint: "this operation belongs to another process; do not run it"}
}

// hookDone records the end of the open run and does what the run decided. A
// run that ends after its operation is only recorded.
func hookDone(s State, c HookDone) (Decision, error) {
	if !s.RunOpen || c.Run != s.Run.Run {
		return Decision{}, nil
	}
	if s.Phase == PhaseEnded {
		d := draft{s: s}
		d.ran(c, consequence{code: c.Code})
		return d.Decision, nil
	}
	if err := checkDone(c); err != nil {
		return Decision{}, err
	}
	then := consequenceOf(s, c)
	d := draft{s: s}
	d.ran(c, then)
	if then.changed {
		d.change(c.Args, s.Run.Hook.ID)
	}
	why := origin{run: c.Run}
	switch {
	case then.code != "":
		d.reason(c.Run, c.Reason)
		d.refuse(then.code, "", c.Run)
	case then.recheck:
		d.reason(c.Run, c.Reason)
		d.add(events.RecheckStarted{Attempt: s.Attempt + 1, Cause: events.CauseHook, Config: s.Config})
		return d.end(d.goOn(c.Next, why))
	case then.repeat:
		d.reason(c.Run, c.Reason)
		d.body(events.TextBody(c.Ask.Repeat.Question), []byte(c.Ask.Repeat.Words))
		d.refuse(c.Ask.Repeat.Code, c.Ask.Repeat.Question, "")
	case c.Effect == events.EffectAsk:
		d.reason(c.Ask.Question, c.Reason)
		d.ask(*c.Ask)
	default:
		d.reason(c.Run, c.Reason)
		return d.end(d.goOn(c.Next, why))
	}
	return d.Decision, nil
}

// checkDone refuses what no runner may report of an operation that is alive.
// An effect that core does not know must neither let on nor look like a no.
func checkDone(c HookDone) error {
	if c.Outcome == events.RunAbandoned {
		return errors.New("hook done: a run that was cut off decides nothing; abandon it instead")
	}
	switch c.Effect {
	case events.EffectAllow, events.EffectModify, events.EffectError, events.EffectBlock:
		return nil
	case events.EffectAsk:
		if c.Ask == nil || c.Ask.Question == "" || !knownGate(c.Ask.Gate) {
			return fmt.Errorf("hook done: an ask needs a question id and a known gate, have %+v", c.Ask)
		}
		if r := c.Ask.Repeat; r != nil && r.Code != events.CodeDeclined && r.Code != events.CodeTimedOut {
			return fmt.Errorf("hook done: %q is no answer that counts again", r.Code)
		}
		return nil
	case events.EffectAskNotApplied:
	}
	return fmt.Errorf("hook done: effect %q is not possible for a blocking hook of a gated event", c.Effect)
}

// consequence is what a run's end means, before anything is written: whether
// it changed the arguments, whether they must be checked again (that comes first),
// whether its ask is answered by an earlier no, and the code when the run itself
// ends the operation.
type consequence struct {
	changed bool
	recheck bool
	repeat  bool
	code    events.Code
}

// consequenceOf compares canonical forms. A change matters only when it comes
// from a hook behind one whose question was continued: in front of it, the
// person has seen it or will see it.
func consequenceOf(s State, c HookDone) consequence {
	if c.Effect == events.EffectBlock {
		if c.Code == "" {
			return consequence{code: events.CodeBlocked}
		}
		return consequence{code: c.Code}
	}
	then := consequence{repeat: c.Effect == events.EffectAsk && c.Ask.Repeat != nil}
	if c.Args == nil || c.Effect != events.EffectModify && c.Effect != events.EffectAsk {
		return then
	}
	digest := events.DigestOf(c.Args)
	if digest == s.Current().Digest {
		return then
	}
	then.changed = true
	then.recheck = s.YesHook >= 0 && s.Run.Hook.Index > s.YesHook
	switch {
	case !then.recheck:
	case s.hadVersion(digest):
		then.code = events.CodeRecheckCycle
	case s.Attempt >= MaxRechecks:
		then.code = events.CodeRecheckLimit
	}
	return then
}

// abandon closes a run that its core did not survive and starts the hook
// again. When the configuration it stood in cannot be had any more (the plan
// is not of it) but a new one can, the operation is checked again under that.
func abandon(s State, c Abandon) (Decision, error) {
	if !s.RunOpen {
		return Decision{}, nil
	}
	d := draft{s: s}
	d.add(events.HookRan{Run: s.Run.Run, Hook: s.Run.Hook, Effect: events.EffectError, Outcome: events.RunAbandoned})
	switch {
	case s.Phase == PhaseEnded:
		return d.Decision, nil
	case c.Next.Plan.Config != s.Config:
		return d.end(d.goOn(c.Next, origin{run: s.Run.Run}))
	}
	return d.end(d.start(s.Run.Hook, c.Next))
}

// origin names what made the operation go on, for the refusal that may follow.
type origin struct{ question, run events.ID }

// goOn starts the next hook of the plan, or commits when none is left.
func (d *draft) goOn(n Next, why origin) error {
	changed := n.Fresh != nil && n.Fresh.Config != d.s.Config
	if n.Plan.Config != d.s.Config {
		if n.Fail != "" {
			d.fail(n)
			return nil
		}
		if !changed {
			return fmt.Errorf("plan is of configuration %.12q, the operation stands under %.12q", n.Plan.Config, d.s.Config)
		}
		return d.recheckFresh(n, why)
	}
	for _, h := range n.Plan.Hooks {
		if h.Index >= d.s.Cursor {
			return d.start(h, n)
		}
	}
	if n.Fail != "" {
		d.fail(n)
		return nil
	}
	if changed {
		return d.recheckFresh(n, why)
	}
	return d.commit(n)
}

// fail refuses an operation that would go on under rules that nobody can read.
func (d *draft) fail(n Next) {
	d.body(events.ReasonBody(""), []byte(n.FailReason))
	d.refuse(n.Fail, "", "")
}

// recheckFresh sends the operation through the hooks of a configuration that
// came into force after it began.
func (d *draft) recheckFresh(n Next, why origin) error {
	if d.s.Attempt >= MaxRechecks {
		d.refuse(events.CodeRecheckLimit, why.question, why.run)
		return nil
	}
	d.add(events.RecheckStarted{Attempt: d.s.Attempt + 1, Cause: events.CauseConfig, Config: n.Fresh.Config})
	n.Plan, n.Fresh = *n.Fresh, nil
	return d.goOn(n, why)
}

func (d *draft) start(h events.Hook, n Next) error {
	if n.Run == "" {
		return fmt.Errorf("hook %q is to start, but the command brings no run id", h.ID)
	}
	d.add(events.HookStarted{
		Run: n.Run, Hook: h, Version: d.s.Current().N, Attempt: d.s.Attempt, Available: n.Available,
	})
	return nil
}

// commit alone marks a version checked, whether there were hooks or not, and
// grants it in the same message: nothing can come between. With it begin the
// hooks that only watch.
func (d *draft) commit(n Next) error {
	if len(n.Watch) < len(n.Plan.Watch) {
		return fmt.Errorf("%d watchers are to start, but the command brings %d run ids", len(n.Plan.Watch), len(n.Watch))
	}
	v := d.s.Current()
	d.add(events.OperationChecked{Version: v, Config: d.s.Config})
	d.add(events.OperationCommitted{Version: v})
	for i, w := range n.Plan.Watch {
		e := events.HookStarted{Run: n.Watch[i], Hook: w.Hook, Version: v.N, Attempt: d.s.Attempt, Mode: w.Mode}
		if w.Durable {
			e.Start = 1
		}
		d.add(e)
	}
	return nil
}

// end is the decision, or none of it when a step failed.
func (d *draft) end(err error) (Decision, error) {
	if err != nil {
		return Decision{}, err
	}
	return d.Decision, nil
}

// ran records a run's end. An ask whose arguments must be checked again first
// is no question: hooks in front have not seen what it would be about. Neither
// is one that got its no already.
func (d *draft) ran(c HookDone, then consequence) {
	e := events.HookRan{
		Run: c.Run, Hook: d.s.Run.Hook, Effect: c.Effect, Outcome: c.Outcome, Code: then.code,
		FailedOpen: c.FailedOpen || c.Effect == events.EffectError && d.s.Phase == PhaseHook,
		NotApplied: c.NotApplied, Script: c.Script, Exit: c.Exit, Micros: c.Micros, Waited: c.Waited,
	}
	switch {
	case c.Effect == events.EffectAsk && then.recheck:
		e.Effect, e.NotApplied = events.EffectAskNotApplied, events.NotAppliedRecheck
	case then.repeat:
		e.Effect, e.NotApplied = events.EffectAskNotApplied, events.NotAppliedRepeat
	}
	d.body(events.StderrBody(c.Run), []byte(c.Stderr))
	d.body(events.ReminderBody(c.Run), []byte(c.Reminder))
	d.add(e)
}

func (d *draft) reason(id events.ID, text string) { d.body(events.ReasonBody(id), []byte(text)) }

func (d *draft) change(args []byte, hook string) {
	from, to := d.s.Current(), versionOf(len(d.s.Versions), args)
	names := ChangedNames(d.s.Args(), args)
	d.body(events.ArgsBody(to.N), args)
	d.add(events.ArgumentsChanged{From: from.N, To: to, Cause: events.CauseHook, Hook: hook, Names: names})
}

// ask opens a question about the current version. Where nobody can be asked it
// opens and ends in the same message, unless the rule is to wait.
func (d *draft) ask(a Ask) {
	q := events.Request{
		Gate: a.Gate, ID: a.Question, Hook: d.s.Run.Hook, Run: d.s.Run.Run,
		Version: d.s.Current(), Attempt: d.s.Attempt, Previous: d.s.Yes,
		Deadline: a.Deadline, DeadlineFrom: a.DeadlineFrom, WhenNobody: a.WhenNobody, Offered: a.Offered,
	}
	if q.WhenNobody == "" {
		q.WhenNobody = events.NobodyReject
	}
	if d.s.Yes >= 0 {
		q.Changed = ChangedNames(d.s.Body(events.ArgsBody(d.s.Yes)), d.s.Args())
	}
	d.add(q)
	if !a.Available && q.WhenNobody != events.NobodyWait {
		d.add(events.Withdrawn{Gate: q.Gate, ID: q.ID, Result: events.ResultUnavailable, Reason: events.EndNoFrontend})
		d.refuse(events.CodeUnavailable, q.ID, "")
	}
}

func (s *State) hadVersion(digest events.Digest) bool {
	for _, v := range s.Versions {
		if v.Digest == digest {
			return true
		}
	}
	return false
}

func versionOf(n int, args []byte) events.Version {
	return events.Version{N: n, Digest: events.DigestOf(args), Bytes: len(args)}
}
