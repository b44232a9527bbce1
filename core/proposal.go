package core

import (
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Proposal is an agent's wish as an adapter understood it. Args is the JSON
// that was received, with the kind's argument names added; the core makes the
// canonical form. Deadline is when the agent stops listening, zero if it never
// does or it is unknown.
type Proposal struct {
	Operation   events.ID
	Secret      string
	Agent       events.Agent
	Native      string
	Cwd         string
	Profile     string
	Turn        string
	Path        string
	Traceparent string
	Kind        events.Kind
	Event       events.HookEvent
	Tool        events.Tool
	Args        []byte
	Deadline    time.Time
}

// Verdict is what the asker hears. Allow permits to run exactly Args, once.
// Message is the one English text for the model when it was refused; Human is
// one sentence for the person at the agent. Changed is true when Args differs
// from what was proposed.
type Verdict struct {
	Operation events.ID
	Allow     bool
	Code      events.Code
	EndReason events.EndReason
	Version   events.Version
	Args      []byte
	Changed   bool
	Message   string
	Human     string
}
