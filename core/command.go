package core

import "github.com/fermata-hitl/fermata/events"

// Command is something that is wanted of an operation. Times and ids that a
// decision may need enter here: Decide has no clock and no randomness.
//
//sumtype:decl
type Command interface{ command() }

// Plan is what a configuration says of one version of the arguments, as far as the
// decision can need it: the blocking hooks that match, in order, at least the first
// of those that may come next; and, when none of them is left, the hooks that only
// watch it run.
type Plan struct {
	Config events.Digest
	Hooks  []events.Hook
	Watch  []WatchHook
}

// WatchHook is a hook that nothing waits for. Durable says that its run is
// started again until it has succeeded, within bounds.
type WatchHook struct {
	Hook    events.Hook
	Mode    events.HookMode
	Durable bool
}

// Next is what a decision needs to go on: the plan for the arguments *as they
// will stand after the command*, under the configuration that the operation
// began with; Fresh, when the effective configuration has changed since, the
// plan under the new one (else nil); Run, the id of the next hook's run, should
// one start; Watch, ids for the runs of watchers, at least as many as the largest
// of the plans has; Available, whether a question could be shown now. Fail, when set,
// says that today's rules cannot be read: an operation that would be checked to
// its end now is refused with that code and FailReason instead.
type Next struct {
	Plan       Plan
	Fresh      *Plan
	Run        events.ID
	Watch      []events.ID
	Available  bool
	Fail       events.Code
	FailReason string
}

// Propose begins an operation. Args is the canonical form; nil when it did not
// fit (Refuse too_large) or has none (Refuse no_canonical_form). Refuse, when
// set, refuses it at once without running a hook; Reason is then one sentence
// why. End, when set, is why its reason to exist is gone already: it is aborted
// with it.
type Propose struct {
	At     events.Micros
	Op     events.OperationProposed
	Args   []byte
	Refuse events.Code
	Reason string
	End    events.EndReason
	Next   Next
}

// HookDone reports the end of the open run. Effect is what the runner decided
// after its rules (a failure with on_error block is EffectBlock with a Code; a
// failure that lets on is EffectError). Args, when not nil, is the canonical
// form that the hook wants (it may equal the current one). Ask is set with
// EffectAsk. Reminder is what a prompt hook wants the model to read beside the
// prompt.
type HookDone struct {
	At         events.Micros
	Run        events.ID
	Effect     events.Effect
	Outcome    events.RunOutcome
	Code       events.Code
	Reason     string
	Args       []byte
	FailedOpen bool
	NotApplied string
	Script     events.Digest
	Exit       int
	Micros     int64
	Waited     int64
	Stderr     string
	Reminder   string
	Ask        *Ask
	Next       Next
}

// Ask is what a new question needs. Available false refuses the operation at
// once as unavailable, unless WhenNobody is wait. Repeat, when set, is the no
// that the same call got in the same turn: then nobody is asked again.
type Ask struct {
	Question     events.ID
	Gate         events.Gate
	Deadline     events.Micros
	DeadlineFrom string
	WhenNobody   events.WhenNobody
	Offered      int
	Available    bool
	Repeat       *Repeat
}

// Repeat is a no that counts again: declined or timed_out, the question that got
// it, and the person's words with it.
type Repeat struct {
	Code     events.Code
	Question events.ID
	Words    string
}

// Abandon closes a run that died with its core, and starts the same hook again
// under the id Next.Run.
type Abandon struct {
	At   events.Micros
	Next Next
}

// Present records that a frontend drew the open question.
type Present struct {
	At       events.Micros
	Question events.ID
	Frontend events.ID
	Kind     events.FrontendKind
	Digest   events.Digest
}

// TakeClaim asks for the right to answer. The holder's own repetition changes
// nothing; another frontend of the same principal takes over.
type TakeClaim struct {
	At        events.Micros
	Question  events.ID
	Frontend  events.ID
	Kind      events.FrontendKind
	Name      string
	Principal string
}

// Release ends the claim of Frontend, if it holds it.
type Release struct {
	At       events.Micros
	Question events.ID
	Frontend events.ID
	Reason   events.ReleaseReason
}

// Answer is a frontend's answer. Claim is the fencing token, 0 to claim
// together with it. Repeats is how many answers to this question have been
// rejected so far by this core.
type Answer struct {
	At        events.Micros
	Question  events.ID
	Frontend  events.ID
	Kind      events.FrontendKind
	Name      string
	Principal string
	Digest    events.Digest
	Claim     uint64
	Answer    events.Answer
	Text      string
	Human     bool
	Repeats   int
	Next      Next
}

// EndQuestion ends the open question without an answer and refuses its
// operation: result timed_out, unavailable or failed.
type EndQuestion struct {
	At       events.Micros
	Question events.ID
	Reason   events.EndReason
}

// Withdraw ends the operation because its reason to exist went away; the open
// question ends withdrawn. A committed operation that was not delivered ends
// too; a delivered one goes on.
type Withdraw struct {
	At     events.Micros
	Reason events.EndReason
}

// Receipt records that the asker has the verdict and is about to act on it. By is
// its connection, "" where it has no name: the right goes to one of them.
type Receipt struct {
	At events.Micros
	By events.ID
}

// Commit is the [Receipt] of an asker that runs the operation itself. Digest is
// of what is about to run; another than the committed one ends the operation.
type Commit struct {
	At     events.Micros
	By     events.ID
	Digest events.Digest
}

// Record writes what became of runs that decide nothing: HookStarted and HookRan
// that carry an Event or a Mode, with their bodies. The end of a run that is not
// open is left out.
type Record struct {
	At     events.Micros
	Events []events.Event
	Bodies []events.Body
}

// Finish records what became of a committed operation.
type Finish struct {
	At      events.Micros
	Outcome events.Outcome
	Ran     events.Digest
}

func (Propose) command()     {}
func (HookDone) command()    {}
func (Abandon) command()     {}
func (Present) command()     {}
func (TakeClaim) command()   {}
func (Release) command()     {}
func (Answer) command()      {}
func (EndQuestion) command() {}
func (Withdraw) command()    {}
func (Receipt) command()     {}
func (Commit) command()      {}
func (Record) command()      {}
func (Finish) command()      {}
