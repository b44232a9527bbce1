package events

import (
	"maps"
	"slices"
)

// Type is the name of an event on the wire.
type Type string

// Event is a fact: something that happened, named in the past tense. The set is
// closed; a reader that meets a type it does not know must not guess.
//
//sumtype:decl
type Event interface {
	// EventType is the event's name on the wire.
	EventType() Type
	event()
}

// Version is one state of an operation's arguments or text. N is 0 for what
// was received. Digest is over the canonical form.
type Version struct {
	N      int    `json:"n"`
	Digest Digest `json:"digest"`
	Bytes  int    `json:"bytes"`
}

// Tool is the tool of a tool call. Name is the agent's own word; Kind is one of
// [ToolKinds].
type Tool struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	CallID string `json:"call_id,omitempty"`
}

// Hook names one hook of the configuration that an operation began with. Index
// is its place in the order of blocking hooks, project file first.
type Hook struct {
	ID    string `json:"id"`
	Scope Scope  `json:"scope"`
	File  string `json:"file"`
	Line  int    `json:"line"`
	Index int    `json:"index"`
}

// Genesis opens a log segment. Config is the digest of the stream's
// configuration; Previous is the last hash of the segment before, "" for the
// first.
type Genesis struct {
	Segment  int    `json:"segment"`
	Core     Token  `json:"core"`
	Config   Digest `json:"config"`
	Previous Digest `json:"previous,omitempty"`
}

// SessionOpened begins a session. Native is the agent's own id for it.
type SessionOpened struct {
	Agent       Agent  `json:"agent"`
	Native      string `json:"native"`
	Cwd         string `json:"cwd"`
	ProjectPath string `json:"project_path"`
	Parent      Token  `json:"parent,omitempty"`
}

// SessionClosed ends a session.
type SessionClosed struct {
	Reason EndReason `json:"reason"`
}

// TurnStarted begins a turn of a session.
type TurnStarted struct {
	Turn string `json:"turn"`
}

// TurnEnded ends a turn.
type TurnEnded struct {
	Turn string `json:"turn"`
}

// Interrupted says that the user stopped the agent.
type Interrupted struct {
	Turn string `json:"turn,omitempty"`
}

// BuildChanged says that model, profile or settings changed.
type BuildChanged struct{}

// OperationProposed begins an operation. The arguments stand beside it as the
// body [ArgsBody](0). Secret is the SHA-256 of the asker's secret.
// AgentDeadline is when the agent stops listening, 0 if it never does. Leased
// says that its asker keeps it by asking again, and not by a connection.
type OperationProposed struct {
	Kind          Kind    `json:"kind"`
	Agent         Agent   `json:"agent"`
	Path          string  `json:"path"`
	Tool          Tool    `json:"tool"`
	Cwd           string  `json:"cwd"`
	Profile       string  `json:"profile,omitempty"`
	Version       Version `json:"version"`
	Config        Digest  `json:"config"`
	Secret        Digest  `json:"secret"`
	AgentDeadline Micros  `json:"agent_deadline,omitempty"`
	Leased        bool    `json:"leased,omitempty"`
}

// HookStarted says that a hook is running on a version. Attempt counts the
// rechecks before it, 0–3. Event is the observed event that it runs for, "" at
// the gate that its operation stands before. Mode is [ModeAsync] or
// [ModeFireAndForget], "" for a run that is waited for. Start counts the starts
// of a durable delivery from 1, and is 0 for every other run.
type HookStarted struct {
	Run       ID        `json:"run"`
	Hook      Hook      `json:"hook"`
	Version   int       `json:"version"`
	Attempt   int       `json:"attempt"`
	Available bool      `json:"confirmation_available"`
	Event     HookEvent `json:"event,omitempty"`
	Mode      HookMode  `json:"mode,omitempty"`
	Start     int       `json:"start,omitempty"`
}

// AtGate reports whether the operation that the run is about waits for it. Every
// other run only watches.
func (e HookStarted) AtGate() bool { return e.Event == "" && e.Mode == "" }

// HookRan says how a hook's run ended and what it did. Code is set when the run
// refused the operation. A block's or failure's reason is the body
// [ReasonBody](Run). Micros is the duration of the process, Waited how long it
// stood in line for a place among the session's parallel hooks before that.
// Event and Mode are those of its [HookStarted].
type HookRan struct {
	Run        ID         `json:"run"`
	Hook       Hook       `json:"hook"`
	Effect     Effect     `json:"effect"`
	Outcome    RunOutcome `json:"outcome"`
	Code       Code       `json:"code,omitempty"`
	FailedOpen bool       `json:"failed_open,omitempty"`
	NotApplied string     `json:"not_applied,omitempty"`
	Script     Digest     `json:"script,omitempty"`
	Exit       int        `json:"exit"`
	Micros     int64      `json:"micros"`
	Waited     int64      `json:"waited,omitempty"`
	Event      HookEvent  `json:"event,omitempty"`
	Mode       HookMode   `json:"mode,omitempty"`
}

// AtGate is [HookStarted.AtGate].
func (e HookRan) AtGate() bool { return e.Event == "" && e.Mode == "" }

// ArgumentsChanged makes a new version, whose body is [ArgsBody](To.N). Names
// lists the changed top-level arguments, in order.
type ArgumentsChanged struct {
	From  int      `json:"from"`
	To    Version  `json:"to"`
	Cause Cause    `json:"cause"`
	Hook  string   `json:"hook,omitempty"`
	Names []string `json:"names"`
}

// RecheckStarted sends the operation back to the first hook, for the
// Attempt-th time (1–3). Config is the configuration that holds from here on.
type RecheckStarted struct {
	Attempt int    `json:"attempt"`
	Cause   Cause  `json:"cause"`
	Config  Digest `json:"config"`
}

// OperationChecked says that a version passed every hook of a configuration.
type OperationChecked struct {
	Version Version `json:"version"`
	Config  Digest  `json:"config"`
}

// OperationCommitted grants the right to run exactly one version, once.
type OperationCommitted struct {
	Version Version `json:"version"`
}

// OperationDelivered says that the asker confirmed that it has the verdict and
// is about to act on it. By is the connection that did, "" on the agents' socket.
type OperationDelivered struct {
	By ID `json:"by,omitempty"`
}

// OperationRefused ends an operation by a rule, a person, or a fault.
type OperationRefused struct {
	Code     Code `json:"code"`
	Question ID   `json:"question,omitempty"`
	Run      ID   `json:"run,omitempty"`
}

// OperationAborted ends an operation whose reason to exist went away.
type OperationAborted struct {
	Reason EndReason `json:"reason"`
}

// OperationFinished says what became of a committed operation. Ran is the
// digest of what ran, "" when nobody saw it.
type OperationFinished struct {
	Outcome Outcome `json:"outcome"`
	Ran     Digest  `json:"ran,omitempty"`
}

// The six events of a question. Their name on the wire is the gate's word
// (HookConfirmation or ToolApproval) and the type's own: one life for every
// gate.

// Request asks a person about one version. The hook's reason is the body
// [ReasonBody](ID). Previous is the version that was last answered with yes,
// -1 for a first question; Changed names what differs from it. Offered is the
// number of capable frontends at that moment. Deadline 0 means none; its
// source is hook, config or agent.
type Request struct {
	Gate         Gate       `json:"-"`
	ID           ID         `json:"id"`
	Hook         Hook       `json:"hook"`
	Run          ID         `json:"run"`
	Version      Version    `json:"version"`
	Attempt      int        `json:"attempt"`
	Previous     int        `json:"previous"`
	Changed      []string   `json:"changed,omitempty"`
	Deadline     Micros     `json:"deadline,omitempty"`
	DeadlineFrom string     `json:"deadline_from,omitempty"`
	WhenNobody   WhenNobody `json:"when_nobody"`
	Offered      int        `json:"offered"`
}

// Presented says that a frontend drew the question, and what it drew.
type Presented struct {
	Gate     Gate         `json:"-"`
	ID       ID           `json:"id"`
	Frontend ID           `json:"frontend"`
	Kind     FrontendKind `json:"kind"`
	Digest   Digest       `json:"digest"`
	At       Micros       `json:"at"`
}

// Claimed gives one frontend the right to answer. The sequence of its message
// is the claim's fencing token.
type Claimed struct {
	Gate     Gate         `json:"-"`
	ID       ID           `json:"id"`
	Frontend ID           `json:"frontend"`
	Kind     FrontendKind `json:"kind"`
	Name     string       `json:"name,omitempty"`
	// Principal is who stands behind the connection, as the server knows it.
	Principal string `json:"principal"`
}

// Released ends a claim without an answer.
type Released struct {
	Gate     Gate          `json:"-"`
	ID       ID            `json:"id"`
	Frontend ID            `json:"frontend"`
	Reason   ReleaseReason `json:"reason"`
}

// Response is the one accepted answer. A person's words to the model are the
// body [TextBody](ID). Claim is the sequence of the claim it was given under,
// 0 when claim and answer are in the same message.
type Response struct {
	Gate      Gate         `json:"-"`
	ID        ID           `json:"id"`
	Frontend  ID           `json:"frontend"`
	Kind      FrontendKind `json:"kind"`
	Principal string       `json:"principal"`
	Answer    Answer       `json:"answer"`
	Digest    Digest       `json:"digest"`
	Claim     uint64       `json:"claim,omitempty"`
	HasText   bool         `json:"has_text,omitempty"`
}

// Withdrawn ends a question without an answer.
type Withdrawn struct {
	Gate   Gate      `json:"-"`
	ID     ID        `json:"id"`
	Result Result    `json:"result"`
	Reason EndReason `json:"reason"`
}

// AnswerRejected records an answer that changed nothing. The first ten of a
// question are written each, then one with the count of those that followed.
type AnswerRejected struct {
	ID       ID     `json:"id"`
	Frontend ID     `json:"frontend"`
	Code     Reject `json:"code"`
	Answer   Answer `json:"answer,omitempty"`
	Count    int    `json:"count,omitempty"`
}

// Words of the gates in event types.
var gateWords = map[Gate]string{GateHook: "HookConfirmation", GateApproval: "ToolApproval"}

func gated(g Gate, step string) Type { return Type(gateWords[g] + step) }

// EventType implements [Event].
func (Genesis) EventType() Type { return "Genesis" }

// EventType implements [Event].
func (SessionOpened) EventType() Type { return "SessionOpened" }

// EventType implements [Event].
func (SessionClosed) EventType() Type { return "SessionClosed" }

// EventType implements [Event].
func (TurnStarted) EventType() Type { return "TurnStarted" }

// EventType implements [Event].
func (TurnEnded) EventType() Type { return "TurnEnded" }

// EventType implements [Event].
func (Interrupted) EventType() Type { return "Interrupted" }

// EventType implements [Event].
func (BuildChanged) EventType() Type { return "BuildChanged" }

// EventType implements [Event].
func (OperationProposed) EventType() Type { return "OperationProposed" }

// EventType implements [Event].
func (HookStarted) EventType() Type { return "HookStarted" }

// EventType implements [Event].
func (HookRan) EventType() Type { return "HookRan" }

// EventType implements [Event].
func (ArgumentsChanged) EventType() Type { return "ArgumentsChanged" }

// EventType implements [Event].
func (RecheckStarted) EventType() Type { return "RecheckStarted" }

// EventType implements [Event].
func (OperationChecked) EventType() Type { return "OperationChecked" }

// EventType implements [Event].
func (OperationCommitted) EventType() Type { return "OperationCommitted" }

// EventType implements [Event].
func (OperationDelivered) EventType() Type { return "OperationDelivered" }

// EventType implements [Event].
func (OperationRefused) EventType() Type { return "OperationRefused" }

// EventType implements [Event].
func (OperationAborted) EventType() Type { return "OperationAborted" }

// EventType implements [Event].
func (OperationFinished) EventType() Type { return "OperationFinished" }

// EventType implements [Event].
func (e Request) EventType() Type { return gated(e.Gate, "Request") }

// EventType implements [Event].
func (e Presented) EventType() Type { return gated(e.Gate, "Presented") }

// EventType implements [Event].
func (e Claimed) EventType() Type { return gated(e.Gate, "Claimed") }

// EventType implements [Event].
func (e Released) EventType() Type { return gated(e.Gate, "Released") }

// EventType implements [Event].
func (e Response) EventType() Type { return gated(e.Gate, "Response") }

// EventType implements [Event].
func (e Withdrawn) EventType() Type { return gated(e.Gate, "Withdrawn") }

// EventType implements [Event].
func (AnswerRejected) EventType() Type { return "AnswerRejected" }

func (Genesis) event()            {}
func (SessionOpened) event()      {}
func (SessionClosed) event()      {}
func (TurnStarted) event()        {}
func (TurnEnded) event()          {}
func (Interrupted) event()        {}
func (BuildChanged) event()       {}
func (OperationProposed) event()  {}
func (HookStarted) event()        {}
func (HookRan) event()            {}
func (ArgumentsChanged) event()   {}
func (RecheckStarted) event()     {}
func (OperationChecked) event()   {}
func (OperationCommitted) event() {}
func (OperationDelivered) event() {}
func (OperationRefused) event()   {}
func (OperationAborted) event()   {}
func (OperationFinished) event()  {}
func (Request) event()            {}
func (Presented) event()          {}
func (Claimed) event()            {}
func (Released) event()           {}
func (Response) event()           {}
func (Withdrawn) event()          {}
func (AnswerRejected) event()     {}

// decoders maps every wire name to the function that decodes its event. It is
// filled once and only read.
var decoders = newDecoders()

func newDecoders() map[Type]func([]byte) (Event, error) {
	m := map[Type]func([]byte) (Event, error){}
	plain[Genesis](m)
	plain[SessionOpened](m)
	plain[SessionClosed](m)
	plain[TurnStarted](m)
	plain[TurnEnded](m)
	plain[Interrupted](m)
	plain[BuildChanged](m)
	plain[OperationProposed](m)
	plain[HookStarted](m)
	plain[HookRan](m)
	plain[ArgumentsChanged](m)
	plain[RecheckStarted](m)
	plain[OperationChecked](m)
	plain[OperationCommitted](m)
	plain[OperationDelivered](m)
	plain[OperationRefused](m)
	plain[OperationAborted](m)
	plain[OperationFinished](m)
	plain[AnswerRejected](m)
	for g := range gateWords {
		step(m, func(e *Request) { e.Gate = g })
		step(m, func(e *Presented) { e.Gate = g })
		step(m, func(e *Claimed) { e.Gate = g })
		step(m, func(e *Released) { e.Gate = g })
		step(m, func(e *Response) { e.Gate = g })
		step(m, func(e *Withdrawn) { e.Gate = g })
	}
	return m
}

func plain[E Event](m map[Type]func([]byte) (Event, error)) {
	var zero E
	m[zero.EventType()] = func(b []byte) (Event, error) {
		var e E
		err := Decode(b, &e)
		return e, err
	}
}

func step[E Event](m map[Type]func([]byte) (Event, error), set func(*E)) {
	var zero E
	set(&zero)
	m[zero.EventType()] = func(b []byte) (Event, error) {
		var e E
		err := Decode(b, &e)
		set(&e)
		return e, err
	}
}

// Types lists every event type on the wire, unordered.
func Types() []Type {
	return slices.Collect(maps.Keys(decoders))
}
