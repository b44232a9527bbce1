package events

import (
	"encoding/json"
	"time"
)

// The agents' door over NATS: what an agent's connection sends, and what it
// hears. Verbs of a session go to [AgentSubject], verbs of the lobby to
// [AgentLobbySubject]. Every reply holds either its own fields or Refused; that of
// a verb without a reply of its own is an [Ack].

// The verbs of the agents' lobby.
const (
	VerbCores       = "cores"
	VerbSessionOpen = "session_open"
)

// The verbs of an agent about one of its sessions.
const (
	VerbPropose          = "propose"
	VerbAwait            = "await"
	VerbCommit           = "commit"
	VerbReceipt          = "receipt"
	VerbFinish           = "finish"
	VerbWithdraw         = "withdraw"
	VerbInterrupt        = "interrupt"
	VerbTurnStarted      = "turn_started"
	VerbTurnEnded        = "turn_ended"
	VerbMessageWithdrawn = "message_withdrawn"
	VerbBuildChanged     = "build_changed"
	VerbSessionClose     = "session_close"
	VerbObserve          = "observe"
	VerbCheck            = "check"
)

// AskerLease is how long a core keeps an operation of this door after its asker was
// last heard. Both who renews it and a core that starts again count by it.
const AskerLease = 60 * time.Second

// Cores asks which cores answer here.
type Cores struct{}

// CoresReply is one core's answer.
type CoresReply struct {
	Core    Token    `json:"core"`
	Epoch   ID       `json:"epoch"`
	Refused *Refused `json:"refused,omitempty"`
}

// SessionOpen begins a session, or takes up one that the log knows. Native is
// the agent's own id for it; Parent is the session that it belongs to, "" for
// none. Pane is the terminal's pane that the agent stands in, as in [ParsePane], ""
// for none; one that is not readable counts as none.
type SessionOpen struct {
	Agent   Agent  `json:"agent"`
	Native  string `json:"native"`
	Cwd     string `json:"cwd"`
	Profile string `json:"profile,omitempty"`
	Parent  Token  `json:"parent,omitempty"`
	Pane    string `json:"pane,omitempty"`
}

// SessionOpenReply names the session in subjects. Restored says that the log
// had it already.
type SessionOpenReply struct {
	Project  Token    `json:"project,omitempty"`
	Session  Token    `json:"session,omitempty"`
	Core     Token    `json:"core,omitempty"`
	Epoch    ID       `json:"epoch,omitempty"`
	LeaseMS  int64    `json:"lease_ms,omitempty"`
	Restored bool     `json:"restored,omitempty"`
	Refused  *Refused `json:"refused,omitempty"`
}

// Propose begins an operation, or joins it again: the same id and secret are
// the same operation. Of a tool call Tool and Args are set, of an input Text.
// Cwd and Profile are the session's when absent, Path is "main". TimeoutMS is how
// long the agent listens, 0 without end.
type Propose struct {
	Operation   ID              `json:"operation"`
	Secret      string          `json:"secret"`
	Kind        Kind            `json:"kind"`
	Path        string          `json:"path,omitempty"`
	Turn        string          `json:"turn,omitempty"`
	Cwd         string          `json:"cwd,omitempty"`
	Profile     string          `json:"profile,omitempty"`
	Traceparent string          `json:"traceparent,omitempty"`
	Tool        *Tool           `json:"tool,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	Text        *string         `json:"text,omitempty"`
	TimeoutMS   int64           `json:"timeout_ms,omitempty"`
}

// Await asks for the verdict and keeps the operation's lease. It is answered
// when there is a verdict, at the latest after 25 s.
type Await struct {
	Operation ID     `json:"operation"`
	Secret    string `json:"secret"`
}

// OperationReply is the reply to propose and await. Verdict is absent while
// nothing is decided.
type OperationReply struct {
	Verdict *OperationVerdict `json:"verdict,omitempty"`
	Refused *Refused          `json:"refused,omitempty"`
}

// OperationVerdict says whether the operation may run. Allow permits exactly
// Args (or Text), once, after a commit or receipt. Message is the one English
// text for the model when it was refused. A refused input comes back whole in
// Text, and Input says what it was: prompt, injection or retry_note.
type OperationVerdict struct {
	Allow          bool            `json:"allow"`
	Code           Code            `json:"code"`
	EndReason      EndReason       `json:"end_reason,omitempty"`
	Version        Version         `json:"version"`
	Args           json.RawMessage `json:"args,omitempty"`
	Text           *string         `json:"text,omitempty"`
	Changed        bool            `json:"changed,omitempty"`
	SystemReminder string          `json:"system_reminder,omitempty"`
	Input          string          `json:"input,omitempty"`
	Message        string          `json:"message,omitempty"`
}

// Commit takes the right to run, innermost, right before the tool: Digest is of
// what is about to run. Any other than the checked one ends the operation
// (changed_after_check).
type Commit struct {
	Operation ID     `json:"operation"`
	Secret    string `json:"secret"`
	Digest    Digest `json:"digest"`
}

// Receipt is [Commit] of an asker that passes the verdict on and does not run
// anything itself.
type Receipt struct {
	Operation ID     `json:"operation"`
	Secret    string `json:"secret"`
}

// Finish says what became of a committed operation. Ran is the digest of what
// ran, "" when nobody saw it.
type Finish struct {
	Operation ID          `json:"operation"`
	Secret    string      `json:"secret"`
	Outcome   Outcome     `json:"outcome"`
	Ran       Digest      `json:"ran,omitempty"`
	Result    *ToolResult `json:"result,omitempty"`
}

// ToolResult is what a tool gave back. Failed says that the tool itself calls
// it a failure; Error is why it could not run at all, "" when it ran.
type ToolResult struct {
	Text       string `json:"text,omitempty"`
	Error      string `json:"error,omitempty"`
	Failed     bool   `json:"failed,omitempty"`
	DurationMS int64  `json:"duration_ms,omitempty"`
}

// FinishReply confirms. ExtraContext is what hooks on after_tool_call want the
// model to read beside the result.
type FinishReply struct {
	ExtraContext string   `json:"extra_context,omitempty"`
	Refused      *Refused `json:"refused,omitempty"`
}

// Withdraw ends an operation that its asker does not want any more.
type Withdraw struct {
	Operation ID     `json:"operation"`
	Secret    string `json:"secret"`
}

// SessionSignal is what the verbs interrupt, turn_started, turn_ended,
// build_changed and session_close carry. Turn is the agent's id of the turn, ""
// when it has none. Changed, of session_close, says that the agent goes on with
// another session.
type SessionSignal struct {
	Turn    string `json:"turn,omitempty"`
	Changed bool   `json:"changed,omitempty"`
}

// MessageWithdrawn ends a queued input that its person took back.
type MessageWithdrawn struct {
	Operation ID `json:"operation"`
}

// Observe reports an event that nobody can stop any more: sub_agent_start,
// sub_agent_end, pre_compact, workflow_run_start or workflow_run_end. Path names
// the run that it is about, such as "main > reviewer#1".
type Observe struct {
	Event HookEvent `json:"event"`
	Path  string    `json:"path,omitempty"`
	Turn  string    `json:"turn,omitempty"`
}

// Check asks what would happen to an operation, without beginning one: no
// program is run, nobody is asked, nothing is recorded.
type Check struct {
	Kind    Kind            `json:"kind"`
	Path    string          `json:"path,omitempty"`
	Cwd     string          `json:"cwd,omitempty"`
	Profile string          `json:"profile,omitempty"`
	Tool    *Tool           `json:"tool,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Text    *string         `json:"text,omitempty"`
}

// Would is what would happen to an operation.
type Would string

// What would happen. WouldRun: a program would decide.
const (
	WouldAllow Would = "allow"
	WouldBlock Would = "block"
	WouldAsk   Would = "ask"
	WouldRun   Would = "run"
)

// CheckReply says it. Hooks are the blocking ones that match, in order.
type CheckReply struct {
	Would     Would    `json:"would,omitempty"`
	Hooks     []Hook   `json:"hooks,omitempty"`
	Available bool     `json:"confirmation_available,omitempty"`
	Refused   *Refused `json:"refused,omitempty"`
}
