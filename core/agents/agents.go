// Package agents is the asker's door: what agents say to the core, and what they
// hear. It has two leaves and a client.
//
// An agent that can only start a program has cmd/agent-hook started for each
// call. agent-hook sends one line, an [events.HookCall], to agent.sock; [Socket]
// reads it, lets the agent's [Adapter] translate it, proposes the operation at the
// [Desk], says that it was accepted, waits for the verdict, and sends it as the
// agent's own words. The receipt that comes back is the proof that the asker took
// the verdict. A connection that ends before is a lost asker.
//
//	agent ──stdin──► agent-hook ──HookCall──► Socket ──Translate──► Desk.Propose
//	                            ◄──accepted──
//	                            ◄──verdict───        ◄──Reply────── Desk.Notify
//	                            ──receipt───►                       Desk.Receipt
//
// An agent that keeps a connection speaks NATS, as docs/protocol.md says: [Door]
// answers it. [Client] is that for agents written in Go: [Do] runs a tool when it
// may, and with exactly what was checked.
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

// Desk is where operations are proposed and sessions are kept: the engine. A
// typed no of any method is an *[events.Refused].
type Desk interface {
	Asking
	Running
	Sessions
}

// Asking is the part of a [Desk] that decides.
type Asking interface {
	// Propose begins an operation or joins it again: the same id and secret
	// are the same operation. It returns when the operation is in the log.
	// Each nil is matched by one Gone.
	Propose(ctx context.Context, p core.Proposal) error
	// Notify calls tell once, when there is a verdict or the reason why there
	// will be none: at once if that is so already. It comes on a goroutine that
	// decides for others too, so tell must return soon. Stop says that nobody
	// listens any more; it is true when it came in time and tell stays uncalled.
	Notify(op events.ID, secret string, tell func(core.Verdict, error)) (stop func() bool)
	// Gone says that one connection of the asker ended.
	Gone(op events.ID, secret string, reason events.EndReason)
	// Withdraw ends an operation for its asker.
	Withdraw(ctx context.Context, op events.ID, secret string, reason events.EndReason) error
}

// Running is the part of a [Desk] about what may run.
type Running interface {
	// Receipt says that the asker has the verdict and is about to act on it. By
	// is its connection, "" for one without a name: of several the first has the
	// right to run.
	Receipt(ctx context.Context, op events.ID, secret string, by events.ID) error
	// Commit is Receipt of an asker that runs the operation itself; digest is
	// of what is about to run.
	Commit(ctx context.Context, op events.ID, secret string, digest events.Digest, by events.ID) error
	// Finish reports what became of it.
	Finish(ctx context.Context, f core.Finished) (core.Heard, error)
}

// Sessions is the part of a [Desk] about the agents' sessions.
type Sessions interface {
	// OpenSession begins a session, or takes up one that the log knows.
	OpenSession(ctx context.Context, o core.SessionOpening) (head events.SessionHead, restored bool, err error)
	// Observe records a signal. It waits for hooks only after a tool's end;
	// what they want the model to read comes back.
	Observe(ctx context.Context, o core.Observation) (core.Heard, error)
	// Check tells what would happen to an operation.
	Check(ctx context.Context, p core.Proposal) core.Forecast
}

// Adapter translates between one agent's words and Fermata's. It does no I/O
// and keeps no state; all methods get the same call.
type Adapter interface {
	// Translate reads a gated call. It fills in what the payload tells; the
	// socket adds operation, secret and deadline. Its error is one sentence
	// that says what the agent sent wrongly; the call is then denied.
	Translate(call events.HookCall) (core.Proposal, error)
	// Reply says a verdict in the agent's words. Exit is 0 for an allow and 2
	// for a deny, never anything else; a deny has text on stderr.
	Reply(call events.HookCall, v core.Verdict) events.HookLine
	// Observe reads an observed event. Its error is one sentence for the log.
	Observe(call events.HookCall) (core.Observation, error)
	// Heard says in the agent's words what hooks want the model to read after a
	// tool's end. Exit is 0.
	Heard(call events.HookCall, h core.Heard) events.HookLine
}

// Denier is an [Adapter] whose agent wants more in a deny than code and reason.
type Denier interface {
	// Deny says that a call was denied before there was a verdict.
	Deny(call events.HookCall, code events.Code, reason string) events.HookLine
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

// Reason is the text for the model of a verdict that is a no.
func Reason(v core.Verdict) string {
	if v.Message == "" {
		return NotChecked(v.Code, "the core gave no text")
	}
	return v.Message
}

// OfTool reports whether a signal is a tool's end: its agent waits for what hooks
// say about the result.
func OfTool(s core.Signal) bool {
	return s == core.Signal(events.AfterToolCall) || s == core.Signal(events.ToolError)
}

// NotChecked is the text to the model for a call that did not run because it
// could not be checked. Detail is a clause without a full stop.
func NotChecked(code events.Code, detail string) string {
	return "The call did not run: Fermata could not check it (" + string(code) + "): " + detail + "."
}
