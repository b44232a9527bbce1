package core

import (
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Proposal is an agent's wish as an adapter understood it. Args is the JSON
// that was received, with the kind's argument names added; the core makes the
// canonical form. Of an input it is the text as a JSON string. Deadline is when
// the agent stops listening, zero if it never does or it is unknown. Parent is
// the agent's own id of the session that this one belongs to, "" for none.
// Pane is the terminal's pane that the agent stands in, as in [events.ParsePane], ""
// for none. Leased says that the asker keeps the operation by asking again within its
// lease, and not by a connection.
type Proposal struct {
	Operation   events.ID
	Secret      string
	Agent       events.Agent
	Native      string
	Parent      string
	Cwd         string
	Pane        string
	Profile     string
	Turn        string
	Path        string
	Traceparent string
	Kind        events.Kind
	Tool        events.Tool
	Args        []byte
	Deadline    time.Time
	Leased      bool
}

// Verdict is what the asker hears. Allow permits to run exactly Args, once.
// Message is the one English text for the model when it was refused. Changed is
// true when Args differs from what was proposed. Reminder is what prompt hooks
// want the model to read beside the prompt, "" for nothing. Of a refused input
// Args holds it as it came, so that nothing is lost.
type Verdict struct {
	Operation events.ID
	Kind      events.Kind
	Allow     bool
	Code      events.Code
	EndReason events.EndReason
	Version   events.Version
	Args      []byte
	Changed   bool
	Reminder  string
	Message   string
}

// Signal is something that happened to a session and that nobody can stop. Most
// are hook events, and have their name.
type Signal string

// The signals that are no hook events.
const (
	// SignalSessionChanged: the agent goes on with another session.
	SignalSessionChanged Signal = "session_changed"
	// SignalBuildChanged: model, profile or settings changed.
	SignalBuildChanged Signal = "build_changed"
	// SignalMessageWithdrawn: a queued input was taken back.
	SignalMessageWithdrawn Signal = "message_withdrawn"
)

// Observation is a signal as an adapter understood it. Session, when set, names
// the session; else Agent and Native do. Operation is the call or message that
// it is about, if the asker knows its id; of a tool's end Tool and Args are what
// ran. Path names the run that a sub-agent's or workflow's signal is about. Pane is
// as in [Proposal].
type Observation struct {
	Signal      Signal
	Agent       events.Agent
	Native      string
	Session     events.Token
	Parent      string
	Cwd         string
	Pane        string
	Profile     string
	Turn        string
	Path        string
	Traceparent string
	Operation   events.ID
	Tool        events.Tool
	Args        []byte
	Result      *ToolResult
}

// ToolResult is what a tool gave back. Failed says that the tool itself calls it
// a failure; Error is why it did not run, "" when it did.
type ToolResult struct {
	Text     string
	Error    string
	Failed   bool
	Duration time.Duration
}

// Heard is what hooks on a tool's end want the model to read beside its result,
// "" for nothing.
type Heard struct{ Context string }

// Finished is the report of an asker that ran a committed operation.
type Finished struct {
	Operation events.ID
	Secret    string
	Outcome   events.Outcome
	Ran       events.Digest // "" when nobody saw it
	Result    *ToolResult   // nil when nothing is known of it
}

// Forecast is what would happen to an operation. Hooks are the blocking ones that
// match, in order.
type Forecast struct {
	Would     events.Would
	Hooks     []events.Hook
	Available bool
}

// SessionOpening is a session as its agent names it. Parent is the session that
// it belongs to, "" for none. Pane is as in [Proposal].
type SessionOpening struct {
	Agent   events.Agent
	Native  string
	Cwd     string
	Profile string
	Parent  events.Token
	Pane    string
}
