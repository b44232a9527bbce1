// Package core decides. It knows what an operation is, what may happen to it
// next, and nothing of logs, clocks, processes or networks: time and ids enter
// as fields of commands, plans of hooks come ready made.
//
// An operation is one thing that an agent wants to do. Its whole history is a
// list of [events.Event] on one subject of the log, and [State] is the fold of
// that list:
//
//	Decide(State, Command) → Decision   what happens, or why not
//	Apply(State, Message)  → State      what is true after it is in the log
//	Pending(State)         → []Effect   what the world still owes the operation
//
// A decision counts only once its message is in the log. Effects are derived
// from the state and never handed out by a decision, so that recovery after a
// crash is the same as going on: fold, then perform what is pending.
//
// # The life of an operation
//
// Rows are commands, columns phases. "–": nothing happens and nothing is
// refused. Words in lower case are codes of an [events.Refused]. "on" is the
// next hook's HookStarted or, when none is left, Checked + Committed; when the
// configuration has changed meanwhile, RecheckStarted and the first hook of the
// new one. After three rechecks, or back at an earlier version, "on" is Refused.
//
//	             None        Hook               Asking                 Committed           Ended
//	Propose      Proposed    – or not_yours     – or not_yours         – or                – or not_yours or
//	             + on, or                                              already_committed   already_committed
//	             + Refused, or
//	             + Aborted
//	HookDone     –           HookRan [Changed]  –                      –                   HookRan, if the
//	                         + on, Recheck,                                                run was open
//	                         Request, Refused
//	Abandon      –           HookRan, Started   –                      –                   HookRan, likewise
//	Present      –           –                  Presented              –                   –
//	TakeClaim    –           end                [Released,] Claimed,   end                 end
//	                                            – or not_claimer
//	Release      –           –                  Released or –          –                   –
//	Answer yes   –           Rejected + end     [Claimed,] Response    Rejected + end      Rejected + end
//	                                            + on, or Rejected
//	Answer no    –           Rejected + end     [Claimed,] Response,   Rejected + end      Rejected + end
//	                                            Refused, or Rejected
//	EndQuestion  –           –                  Withdrawn, Refused     –                   –
//	Withdraw     –           Aborted            Withdrawn, Aborted     Aborted or, once    –
//	                                                                   delivered, –
//	Receipt      not_allowed not_allowed        not_allowed            Delivered, once     Delivered, once; over,
//	                                                                                       if it was committed
//	Commit       not_allowed not_allowed        not_allowed            Delivered, once,    over
//	                                                                   or Refused +
//	                                                                   stale_version
//	Finish       not_allowed not_allowed        not_allowed            Finished            Finished, if it was
//	                                                                                       committed, once; twice
//	                                                                                       if the first was unknown
//	Record       a fault     Started, HookRan   Started, HookRan       Started, HookRan    Started, HookRan
//
// In the row Record, Started and HookRan are of runs that carry an Event or a
// Mode: they decide nothing, so no phase minds them. "on" brings the Started of
// watchers behind Committed. "over" is withdrawn with how it ended, or
// not_allowed.
//
// A question that the operation never had is unknown_question everywhere. "end"
// is how it ended: already_answered or withdrawn. An answer that repeats the
// accepted one word for word is –. Whoever misses a question that is gone has
// lost nothing by it: Present, Release and EndQuestion are then –.
//
// What must hold in every history: a question ends exactly once; the version
// that is committed is the one that was checked last and the newest; it is
// committed at most once; no operation is checked more than four times over;
// whatever frontends send, an end can still be appended.
//
// # Where things are
//
// check.go runs the hooks' chain up to the commit, answer.go holds what
// frontends may do, watch.go the runs that decide nothing, evolve.go the fold,
// verdict.go and texts.go what the asker hears, canonical.go and args.go the
// form in which arguments are compared.
package core

import (
	"bytes"
	"fmt"

	"github.com/fermata-hitl/fermata/events"
)

// The bounds of one operation. With them it cannot outgrow its place, whatever
// hooks or frontends do; the commands that end it ignore them.
const (
	// MaxRechecks is how often an operation goes back to its first hook, for
	// all causes together.
	MaxRechecks = 3
	// maxClaims is how often one question can be claimed without an answer.
	maxClaims = 64
	// maxFrontendClaims and maxPrincipalClaims are how much of that one frontend
	// and one principal can use up, so that who claims and lets go in a loop locks
	// nobody else out.
	maxFrontendClaims  = 8
	maxPrincipalClaims = 32
	// maxOutsiders is how many events frontends may cause that end nothing.
	maxOutsiders = 200
	// maxPresented is the part of maxOutsiders that drawing may use up, so
	// that a frontend which redraws keeps nobody from claiming.
	maxPresented = 100
	// maxRepeated is the part of maxOutsiders that rejected answers and claims by
	// who had the question before may use up. The rest is for first claims.
	maxRepeated = 150
)

// Decision is what is to be written, in one message: all of it or nothing. The
// bodies have no salts yet. An empty decision changes nothing.
type Decision struct {
	Events []events.Event
	Bodies []events.Body
}

// Decide says what a command leads to. An error that is a [*events.Refused] is
// the reply to whoever sent it; there may be events beside it, which are to be
// written all the same. Any other error is a fault of the caller: the command
// does not fit what core promises to it, and nothing was decided.
func Decide(s State, c Command) (Decision, error) {
	switch c := c.(type) {
	case Propose:
		return propose(s, c)
	case HookDone:
		return hookDone(s, c)
	case Abandon:
		return abandon(s, c)
	case Present:
		return present(s, c)
	case TakeClaim:
		return takeClaim(s, c)
	case Release:
		return release(s, c)
	case Answer:
		return answer(s, c)
	case EndQuestion:
		return endQuestion(s, c)
	case Withdraw:
		return withdraw(s, c)
	case Receipt:
		return receipt(s, c.By)
	case Commit:
		return commit(s, c)
	case Record:
		return record(s, c)
	case Finish:
		return finish(s, c)
	}
	return Decision{}, fmt.Errorf("decide: unknown command %T", c)
}

// Apply folds a message of the log into the state. Messages must come in the
// order of their subject. Events that keep a sequence or a time take those of
// the message.
func Apply(s State, m events.Message) State {
	if s.Phase == PhaseNone {
		s.ID, s.Project, s.Session = m.Operation, m.Project, m.Session
		s.Turn, s.Traceparent, s.ProposedAt = m.Turn, m.Traceparent, m.At
	}
	s.Seq, s.Hash, s.At = m.Seq, sumOf(m.Hash), m.At
	for _, b := range m.Bodies {
		s.keepBody(b.Key, b.Data)
	}
	for _, e := range m.Events {
		s.evolve(e)
	}
	return s
}

// After is the state that a decision will lead to, without what only the log can
// say of it (sequence, hash, time): for who goes on deciding before it is written.
func After(s State, d Decision) State {
	for _, b := range d.Bodies {
		s.keepBody(b.Key, b.Data)
	}
	for _, e := range d.Events {
		s.evolve(e)
	}
	return s
}

// Effect is something that the world owes an operation.
//
//sumtype:decl
type Effect interface{ effect() }

// RunHook wants the open run's hook to run and its end to be reported with
// [HookDone]; of an operation that has ended, only its end.
type RunHook struct{ Run Run }

// Offer wants a question on the screens of its session.
type Offer struct{ Question Question }

// WaitUntil wants [EndQuestion] with the reason deadline at a moment.
type WaitUntil struct {
	Question events.ID
	At       events.Micros
}

// Deliver wants the asker told, and its [Receipt].
type Deliver struct{ Verdict Verdict }

// Watching wants the end of a run that decides nothing recorded.
type Watching struct{ Started events.HookStarted }

func (RunHook) effect()   {}
func (Offer) effect()     {}
func (WaitUntil) effect() {}
func (Deliver) effect()   {}
func (Watching) effect()  {}

// Pending lists what the operation waits for. Performing an effect twice is
// harmless: the commands that report it are idempotent.
func Pending(s State) []Effect {
	effects := waits(s)
	for _, w := range s.Ending().Watch {
		effects = append(effects, Watching{w})
	}
	return effects
}

func waits(s State) []Effect {
	switch s.Phase {
	case PhaseNone:
		return nil
	case PhaseHook:
		if s.RunOpen {
			return []Effect{RunHook{s.Run}}
		}
	case PhaseAsking:
		effects := []Effect{Offer{s.Question}}
		if s.Question.Deadline != 0 {
			effects = append(effects, WaitUntil{s.Question.ID, s.Question.Deadline})
		}
		return effects
	case PhaseCommitted, PhaseEnded:
		var effects []Effect
		if s.RunOpen {
			effects = append(effects, RunHook{s.Run})
		}
		if v, ok := VerdictOf(s); ok && !s.Delivered && s.Ending().Outcome == "" {
			effects = append(effects, Deliver{v})
		}
		return effects
	}
	return nil
}

// withdraw ends an operation that nobody wants any more. A delivered one is
// the agent's: it may be running, and only its report ends it.
func withdraw(s State, c Withdraw) (Decision, error) {
	result := events.ResultOf(c.Reason)
	if result != events.ResultWithdrawn && result != events.ResultFailed {
		return Decision{}, fmt.Errorf("withdraw: %q is no reason to withdraw", c.Reason)
	}
	if s.Phase == PhaseNone || s.Phase == PhaseEnded || s.Delivered {
		return Decision{}, nil
	}
	d := draft{s: s}
	if s.Question.Open {
		d.add(events.Withdrawn{Gate: s.Question.Gate, ID: s.Question.ID, Result: result, Reason: c.Reason})
	}
	d.add(events.OperationAborted{Reason: c.Reason})
	return d.Decision, nil
}

// receipt records that the asker has its verdict. One that comes for a grant
// which has ended meanwhile is recorded too, and its asker must not run.
func receipt(s State, by events.ID) (Decision, error) {
	if s.Phase != PhaseCommitted && s.Phase != PhaseEnded {
		return Decision{}, &events.Refused{Code: events.RejectNotAllowed, Hint: "there is no verdict yet; await it first"}
	}
	if s.Delivered && s.Ending().Taker != by {
		return Decision{}, &events.Refused{Code: events.RejectAlreadyCommitted, Hint: "the right to run it went to another connection; do not run it"}
	}
	if s.Delivered {
		return Decision{}, nil
	}
	d := Decision{Events: []events.Event{events.OperationDelivered{By: by}}}
	if s.Phase == PhaseEnded && s.Ending().Committed.Digest != "" {
		return d, over(s)
	}
	return d, nil
}

// commit is the receipt of an asker that runs the operation itself, and says
// what is about to run. Anything else than what was checked must not: the
// operation ends with it.
func commit(s State, c Commit) (Decision, error) {
	changed := &events.Refused{Code: events.RejectStaleVersion, Hint: "what is about to run is not what was checked; do not run it"}
	same := c.Digest == s.Ending().Committed.Digest
	switch {
	case s.Phase == PhaseEnded:
		return Decision{}, over(s)
	case s.Phase != PhaseCommitted || same:
		return receipt(s, c.By)
	case s.Delivered:
		return Decision{}, changed
	}
	d := draft{s: s}
	d.refuse(events.CodeChangedAfterCheck, "", "")
	return d.Decision, changed
}

// over says to an asker that its operation has ended.
func over(s State) *events.Refused {
	end := s.Ending()
	if end.Code == events.CodeEnded {
		return &events.Refused{Code: events.RejectWithdrawn, EndReason: end.EndReason, Hint: "the operation has ended; do not run it"}
	}
	return &events.Refused{Code: events.RejectNotAllowed, Hint: "the operation is over; do not run it"}
}

// finish records what became of a commit, once. A report that comes after the
// operation was given up for lost is evidence all the same and is kept; that
// nothing is known of it would add nothing then.
func finish(s State, c Finish) (Decision, error) {
	if s.Ending().Committed.Digest == "" {
		return Decision{}, &events.Refused{Code: events.RejectNotAllowed, Hint: "the operation was never committed and must not have run"}
	}
	known := s.Ending().Outcome != "" && s.Ending().Outcome != events.OutcomeUnknown
	if known || s.Phase == PhaseEnded && c.Outcome == events.OutcomeUnknown {
		return Decision{}, nil
	}
	return Decision{Events: []events.Event{events.OperationFinished{Outcome: c.Outcome, Ran: c.Ran}}}, nil
}

// draft is a decision in the making together with the state that it leads to,
// so that each step sees what the steps before it did.
type draft struct {
	Decision
	s State
}

func (d *draft) add(e events.Event) {
	d.Events = append(d.Events, e)
	d.s.evolve(e)
}

// body adds content, copied: what the caller does with its bytes afterwards
// must not reach the state. Empty content is left out.
func (d *draft) body(key string, data []byte) {
	if len(data) == 0 {
		return
	}
	d.Bodies = append(d.Bodies, events.Body{Key: key, Data: bytes.Clone(data)})
	d.s.keepBody(key, d.Bodies[len(d.Bodies)-1].Data)
}

// refuse ends the operation. Run and question name what led to it; either may
// be empty.
func (d *draft) refuse(code events.Code, question, run events.ID) {
	d.add(events.OperationRefused{Code: code, Question: question, Run: run})
}
