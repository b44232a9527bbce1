// Package agents is the asker's door: what agents' hooks say to the core, and
// what they hear.
//
// An agent starts cmd/agent-hook for each call. agent-hook sends one line, an
// [events.HookCall], to agent.sock; [Socket] reads it, lets the agent's
// [Adapter] translate it, proposes the operation at the [Desk], says that it
// was accepted, waits for the verdict, and sends it as the agent's own words.
// The receipt that comes back is the proof that the asker took the verdict. A
// connection that ends before is a lost asker.
//
//	agent ──stdin──► agent-hook ──HookCall──► Socket ──Translate──► Desk.Propose
//	                            ◄──accepted──
//	                            ◄──verdict───        ◄──Reply────── Desk.Notify
//	                            ──receipt───►                       Desk.Receipt
//
// What an agent's events are called, which of them can stop a call, and how
// its deny looks stands in [Table], the only place for it; agent-hook holds a
// generated copy, for the time when no core answers. The packages below this
// one are pure translations, one for each agent.
package agents

import (
	"context"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// Desk is where operations are proposed: the engine.
type Desk interface {
	// Propose begins an operation or joins it again: the same id and secret
	// are the same operation. It returns when the operation is in the log.
	// Each nil is matched by one Gone. A typed no is an *events.Refused.
	Propose(ctx context.Context, p core.Proposal) error
	// Notify calls tell once, when there is a verdict or the reason why there
	// will be none: at once if that is so already. It comes on a goroutine that
	// decides for others too, so tell must return soon. Stop says that nobody
	// listens any more; it is true when it came in time and tell stays uncalled.
	Notify(op events.ID, secret string, tell func(core.Verdict, error)) (stop func() bool)
	// Receipt says that the asker has the verdict and is about to act on it.
	Receipt(ctx context.Context, op events.ID, secret string) error
	// Gone says that one connection of the asker ended.
	Gone(op events.ID, secret string, reason events.EndReason)
}

// Adapter translates between one agent's words and Fermata's. It does no I/O
// and keeps no state; both methods get the same call.
type Adapter interface {
	// Translate reads a gated call. It fills in what the payload tells; the
	// socket adds operation, secret and deadline. Its error is one sentence
	// that says what the agent sent wrongly; the call is then denied.
	Translate(call events.HookCall) (core.Proposal, error)
	// Reply says a verdict in the agent's words. Exit is 0 for an allow and 2
	// for a deny, never anything else; a deny has text on stderr.
	Reply(call events.HookCall, v core.Verdict) events.HookLine
}

// ExitDeny is the only exit code of a deny: most agents run the call on any
// other code that is not 0.
const ExitDeny = 2

// Deny is a deny in the agent's own words: exit 2, the reason on stderr, and
// the agent's native deny on stdout. For an agent or event that [Table] does
// not have, stdout is empty.
func Deny(agent events.Agent, event string, code events.Code, reason string) events.HookLine {
	line := events.HookLine{Exit: ExitDeny, Stderr: reason + "\n"}
	if e, ok := Lookup(agent, event); ok {
		line.Stdout = e.DenyText(code, reason)
	}
	return line
}

// Refuse says a verdict that is a no, with the text for the model as reason.
func Refuse(call events.HookCall, v core.Verdict) events.HookLine {
	reason := v.Message
	if reason == "" {
		reason = NotChecked(v.Code, "the core gave no text")
	}
	return Deny(events.Agent(call.Agent), call.Event, v.Code, reason)
}

// NotChecked is the text to the model for a call that did not run because it
// could not be checked. Detail is a clause without a full stop.
func NotChecked(code events.Code, detail string) string {
	return "The call did not run: Fermata could not check it (" + string(code) + "): " + detail + "."
}
