package agents

import (
	"slices"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// NativeEvent is one hook event of an agent, under the agent's own name.
type NativeEvent struct {
	Agent events.Agent
	Name  string
	// Gated: a deny stops what the agent was about to do. The others are only
	// observed, and nothing that goes wrong may hold the agent up.
	Gated bool
	// Timeout is the agent's own limit for a hook where its configuration
	// names none; 0 if it waits without limit. Of an observed event it bounds
	// the wait for what hooks say of a tool's result.
	Timeout time.Duration
	// Deny is the native deny of a gated event, JSON with the words $code and
	// $reason where those strings belong. "" where the agent reads no stdout.
	Deny string
}

// DenyText is the native deny with its two strings filled in.
func (e NativeEvent) DenyText(code events.Code, reason string) string {
	s := strings.ReplaceAll(e.Deny, "$code", quote(string(code)))
	return strings.ReplaceAll(s, "$reason", quote(reason))
}

// Lookup finds an agent's event; false if the agent or the event is unknown.
func Lookup(agent events.Agent, name string) (NativeEvent, bool) {
	for _, e := range table {
		if e.Agent == agent && e.Name == name {
			return e, true
		}
	}
	return NativeEvent{}, false
}

// Table lists every event of every agent that agent-hook accepts. Names of
// observed events are listed generously: for most agents exit 2 on an event
// that we do not know would keep them from ending their turn.
func Table() []NativeEvent {
	return slices.Clone(table)
}

// The native denies.
const (
	denyPermission = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":$reason}}`
	denyRequest    = `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":$reason}}}`
	denyBlock      = `{"decision":"block","reason":$reason}`
	denyDecision   = `{"decision":"deny","reason":$reason}`
	denyCopilot    = `{"permissionDecision":"deny","permissionDecisionReason":$reason}`
	denyBehavior   = `{"behavior":"deny","message":$reason}`
	denyCursor     = `{"permission":"deny","user_message":$reason,"agent_message":$reason}`
	denyContinue   = `{"continue":false,"user_message":$reason}`
	denyGeneric    = `{"decision":"deny","code":$code,"reason":$reason}`
)

var table = slices.Concat(
	gate("claude", 600, "PreToolUse", denyPermission),
	gate("claude", 600, "PermissionRequest", denyRequest),
	gate("claude", 30, "UserPromptSubmit", denyBlock),
	watch("claude", 600, "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStart", "SubagentStop", "SessionStart",
		"SessionEnd", "Notification", "PreCompact"),
	gate("gemini", 60, "BeforeTool", denyDecision),
	gate("gemini", 60, "BeforeAgent", denyDecision),
	watch("gemini", 60, "AfterTool", "AfterAgent", "SessionStart", "SessionEnd", "Notification", "PreCompress"),
	gate("codex", 600, "PreToolUse", denyPermission),
	gate("codex", 600, "PermissionRequest", denyRequest),
	gate("codex", 600, "UserPromptSubmit", denyBlock),
	watch("codex", 600, "PostToolUse", "Stop", "SessionStart"),
	gate("opencode", 0, "before_tool_call", denyGeneric),
	gate("opencode", 0, "user_prompt_submit", denyGeneric),
	watch("opencode", 0, observed()...),
	gate("copilot", 30, "preToolUse", denyCopilot),
	gate("copilot", 30, "permissionRequest", denyBehavior),
	watch("copilot", 30, "userPromptSubmitted", "postToolUse", "sessionStart", "sessionEnd", "errorOccurred"),
	gate("qwen", 60, "PreToolUse", denyPermission),
	gate("qwen", 60, "PermissionRequest", denyRequest),
	gate("qwen", 60, "UserPromptSubmit", denyBlock),
	watch("qwen", 60, "PostToolUse", "Stop", "SubagentStop", "SessionStart", "SessionEnd", "Notification", "PreCompact"),
	gate("crush", 30, "PreToolUse", denyDecision),
	gate("goose", 30, "PreToolUse", denyBlock),
	watch("goose", 30, "UserPromptSubmit", "PostToolUse", "Stop", "SessionStart", "SessionEnd"),
	// Cursor names no default. The smallest that any agent has is the safe
	// guess: too early only denies, too late runs the call.
	gate("cursor", 30, "beforeShellExecution", denyCursor),
	gate("cursor", 30, "beforeMCPExecution", denyCursor),
	gate("cursor", 30, "beforeReadFile", denyCursor),
	gate("cursor", 30, "preToolUse", denyCursor),
	gate("cursor", 30, "beforeSubmitPrompt", denyContinue),
	watch("cursor", 30, "afterShellExecution", "afterMCPExecution", "afterFileEdit", "stop"),
	gate("generic", 0, string(events.BeforeToolCall), denyGeneric),
	gate("generic", 0, string(events.UserPromptSubmit), denyGeneric),
	watch("generic", 0, observed()...),
)

func gate(a events.Agent, seconds int, name, deny string) []NativeEvent {
	return []NativeEvent{{Agent: a, Name: name, Gated: true, Timeout: time.Duration(seconds) * time.Second, Deny: deny}}
}

func watch(a events.Agent, seconds int, names ...string) []NativeEvent {
	var out []NativeEvent
	for _, n := range names {
		out = append(out, NativeEvent{Agent: a, Name: n, Timeout: time.Duration(seconds) * time.Second})
	}
	return out
}

// observed are the events that an agent without names of its own tells.
func observed() []string {
	var out []string
	for _, e := range events.ObservedEvents() {
		out = append(out, string(e))
	}
	for _, s := range []core.Signal{core.SignalMessageWithdrawn, core.SignalBuildChanged, core.SignalSessionChanged} {
		out = append(out, string(s))
	}
	return out
}
