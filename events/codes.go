package events

import "slices"

// Gate is the reason why a person is asked. New gates may come; code that
// switches on one treats an unknown gate as a question it cannot answer.
type Gate string

// The gates.
const (
	GateHook     Gate = "hook_confirmation"
	GateApproval Gate = "tool_approval"
)

// Kind says what an operation is.
type Kind string

// The operation kinds.
const (
	KindToolCall   Kind = "tool_call"
	KindUserPrompt Kind = "user_prompt"
	KindInjection  Kind = "injection"
	KindRetryNote  Kind = "retry_note"
)

// MainPath is the path of what the agent itself wants, and not a run that it
// started, such as "main > reviewer#1".
const MainPath = "main"

// InputWord is what agents and hooks call a kind of input: prompt, injection or
// retry_note; "" for a kind that is none.
func InputWord(k Kind) string {
	switch k {
	case KindUserPrompt:
		return "prompt"
	case KindInjection, KindRetryNote:
		return string(k)
	}
	return ""
}

// KindOfInput is the kind that [InputWord] says, "" for a word that it never
// says.
func KindOfInput(word string) Kind {
	for _, k := range []Kind{KindUserPrompt, KindInjection, KindRetryNote} {
		if InputWord(k) == word {
			return k
		}
	}
	return ""
}

// Answer is what a person said. Continue and Cancel belong to a hook's
// question; the others to tool approval (cancel to both).
type Answer string

// The answers.
const (
	AnswerContinue      Answer = "continue"
	AnswerCancel        Answer = "cancel"
	AnswerOnce          Answer = "proceed_once"
	AnswerAlways        Answer = "proceed_always"
	AnswerAlwaysTool    Answer = "proceed_always_tool"
	AnswerAlwaysServer  Answer = "proceed_always_server"
	AnswerModifyEditor  Answer = "modify_with_editor"
	AnswerClientCancels Answer = "client_cancelled"
)

// EndReason is the end reason that an answer gives its question.
func (a Answer) EndReason() EndReason {
	switch a {
	case AnswerCancel:
		return EndCancel
	case AnswerClientCancels:
		return EndClientCancelled
	}
	return EndContinue
}

// Result is how a wait ended.
type Result string

// The results.
const (
	ResultAnswered    Result = "answered"
	ResultTimedOut    Result = "timed_out"
	ResultUnavailable Result = "unavailable"
	ResultWithdrawn   Result = "withdrawn"
	ResultFailed      Result = "failed"
)

// EndReason is why a wait ended, one of the words of its [Result].
type EndReason string

// The end reasons.
const (
	EndContinue         EndReason = "continue"
	EndCancel           EndReason = "cancel"
	EndClientCancelled  EndReason = "client_cancelled"
	EndDeadline         EndReason = "deadline"
	EndNoFrontend       EndReason = "no_frontend"
	EndUnclaimed        EndReason = "unclaimed"
	EndTurnEnded        EndReason = "turn_ended"
	EndInterrupted      EndReason = "interrupted"
	EndMessageWithdrawn EndReason = "message_withdrawn"
	EndRunEnded         EndReason = "run_ended"
	EndSessionChanged   EndReason = "session_changed"
	EndSessionClosed    EndReason = "session_closed"
	EndBuildChanged     EndReason = "build_changed"
	EndAgentGone        EndReason = "agent_gone"
	EndCallerCancelled  EndReason = "caller_cancelled"
	EndAnsweredInAgent  EndReason = "answered_in_agent"
	EndShutdown         EndReason = "shutdown"
	EndStoreError       EndReason = "store_error"
	EndInternal         EndReason = "internal"
)

// EndReasons returns the closed set of end reasons of a result, nil for an
// unknown result.
func EndReasons(r Result) []EndReason {
	switch r {
	case ResultAnswered:
		return []EndReason{EndContinue, EndCancel, EndClientCancelled}
	case ResultTimedOut:
		return []EndReason{EndDeadline}
	case ResultUnavailable:
		return []EndReason{EndNoFrontend, EndUnclaimed}
	case ResultWithdrawn:
		return []EndReason{
			EndTurnEnded, EndInterrupted, EndMessageWithdrawn, EndRunEnded, EndSessionChanged,
			EndSessionClosed, EndBuildChanged, EndAgentGone, EndCallerCancelled, EndAnsweredInAgent, EndShutdown,
		}
	case ResultFailed:
		return []EndReason{EndStoreError, EndInternal}
	}
	return nil
}

// ResultOf returns the result that an end reason belongs to, "" for an unknown
// reason.
func ResultOf(e EndReason) Result {
	for _, r := range []Result{ResultAnswered, ResultTimedOut, ResultUnavailable, ResultWithdrawn, ResultFailed} {
		if slices.Contains(EndReasons(r), e) {
			return r
		}
	}
	return ""
}

// Code says why an operation was refused, or [CodeChecked] that it was allowed.
type Code string

// The verdict codes.
const (
	CodeChecked            Code = "checked"
	CodeDeclined           Code = "declined"
	CodeTimedOut           Code = "timed_out"
	CodeUnavailable        Code = "unavailable"
	CodeBlocked            Code = "blocked"
	CodeHookFailed         Code = "hook_failed"
	CodeHookTimedOut       Code = "hook_timed_out"
	CodeHookMissing        Code = "hook_missing"
	CodeHookBadVerdict     Code = "hook_bad_verdict"
	CodeHooksConfigInvalid Code = "hooks_config_invalid"
	CodeNotTrusted         Code = "not_trusted"
	CodeRecheckLimit       Code = "recheck_limit"
	CodeRecheckCycle       Code = "recheck_cycle"
	CodeChangedAfterCheck  Code = "changed_after_check"
	CodeEnded              Code = "ended"
	CodeNoCanonicalForm    Code = "no_canonical_form"
	CodeTooLarge           Code = "too_large"
	CodeLogUnavailable     Code = "log_unavailable"
	CodeCoreUnreachable    Code = "core_unreachable"
	CodeNeedsNewerCore     Code = "needs_newer_core"
)

// Reject says why a command at a door was refused.
type Reject string

// The rejections. The first eight are about answers and claims, the next three
// about operations, the rest about the request itself.
const (
	RejectAlreadyAnswered  Reject = "already_answered"
	RejectWithdrawn        Reject = "withdrawn"
	RejectNotClaimer       Reject = "not_claimer"
	RejectStaleVersion     Reject = "stale_version"
	RejectNotAllowed       Reject = "not_allowed"
	RejectNotAttached      Reject = "not_attached"
	RejectUnknownQuestion  Reject = "unknown_question"
	RejectUnknownSession   Reject = "unknown_session"
	RejectAlreadyCommitted Reject = "already_committed"
	RejectNotYours         Reject = "not_yours"
	RejectUnknownOperation Reject = "unknown_operation"
	RejectMalformed        Reject = "malformed"
	RejectTooMany          Reject = "too_many"
	RejectLogUnavailable   Reject = "log_unavailable"
	RejectInternal         Reject = "internal"
)

// Effect is what a hook's run did to its operation.
type Effect string

// The hook effects. EffectAskNotApplied is an ask that could not ask there.
const (
	EffectAllow         Effect = "allow"
	EffectBlock         Effect = "block"
	EffectModify        Effect = "modify"
	EffectAsk           Effect = "ask"
	EffectError         Effect = "error"
	EffectAskNotApplied Effect = "ask_not_applied"
)

// RunOutcome is how a hook's process ended.
type RunOutcome string

// The outcomes of a hook's run. A run that a core's death cut off is abandoned;
// of a detached one nothing is known but that it started.
const (
	RunOK         RunOutcome = "ok"
	RunFailed     RunOutcome = "failed"
	RunTimedOut   RunOutcome = "timed_out"
	RunMissing    RunOutcome = "missing"
	RunBadVerdict RunOutcome = "bad_verdict"
	RunAbandoned  RunOutcome = "abandoned"
	RunDetached   RunOutcome = "detached"
)

// HookMode says whether an operation waits for a hook's run. Only a blocking
// one can decide anything.
type HookMode string

// The modes. In events a blocking run has none.
const (
	ModeBlocking      HookMode = "blocking"
	ModeAsync         HookMode = "async"
	ModeFireAndForget HookMode = "fire_and_forget"
)

// Why what a run wanted was not applied.
const (
	// NotAppliedEvent: its event cannot ask.
	NotAppliedEvent = "event"
	// NotAppliedNonblocking: nothing waits for such a run.
	NotAppliedNonblocking = "nonblocking"
	// NotAppliedRecheck: the arguments that it changed are checked again first.
	NotAppliedRecheck = "recheck"
	// NotAppliedRepeat: the same call got its no in this turn already.
	NotAppliedRepeat = "repeat"
)

// Outcome is what became of a committed operation.
type Outcome string

// The outcomes.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeFailed  Outcome = "failed"
	OutcomeNotRun  Outcome = "not_run"
	OutcomeUnknown Outcome = "unknown"
)

// ReleaseReason is why a claim ended without an answer.
type ReleaseReason string

// The release reasons.
const (
	ReleasedBack      ReleaseReason = "given_back"
	ReleasedLapsed    ReleaseReason = "lapsed"
	ReleasedTakenOver ReleaseReason = "taken_over"
)

// Cause is why an operation was checked again, or its arguments changed.
type Cause string

// The causes.
const (
	CauseHook   Cause = "hook"
	CauseEditor Cause = "editor"
	CauseConfig Cause = "config"
	CauseFiles  Cause = "files"
)

// WhenNobody says what happens to a question that no frontend can show.
type WhenNobody string

// The choices of confirmation.when_nobody.
const (
	NobodyReject WhenNobody = "reject"
	NobodyWait   WhenNobody = "wait"
)

// Scope says which of the user's hook files a hook stands in.
type Scope string

// The scopes.
const (
	ScopeProject Scope = "project"
	ScopeGlobal  Scope = "global"
)

// FrontendKind is what sort of program shows questions.
type FrontendKind string

// The frontend kinds.
const (
	FrontendTUI FrontendKind = "tui"
	FrontendACP FrontendKind = "acp"
	FrontendWeb FrontendKind = "web"
	FrontendCLI FrontendKind = "cli"
)

// Agent is the name of an agent's kind, the same word everywhere.
type Agent string

// Agents lists every agent name that Fermata knows.
func Agents() []Agent {
	return []Agent{
		"claude", "gemini", "codex", "opencode", "copilot", "qwen", "crush", "goose", "cursor", "acp", "generic",
	}
}

// ToolKinds lists the kinds that hooks can match on.
func ToolKinds() []string {
	return []string{
		"shell", "filesystem.read", "filesystem.write", "search", "web_search", "web_fetch", "ask_user",
		"sleep", "doc_converter", "todo", "sub_agent", "mcp", "skill", "context", "other",
	}
}

// HookEvent is a point in an agent's life at which hooks run.
type HookEvent string

// The gated hook events: their hooks can stop an operation.
const (
	BeforeToolCall   HookEvent = "before_tool_call"
	UserPromptSubmit HookEvent = "user_prompt_submit"
)

// The observed hook events: their hooks only watch.
const (
	SessionStart      HookEvent = "session_start"
	SessionRestored   HookEvent = "session_restored"
	SessionEnd        HookEvent = "session_end"
	BeforeTurn        HookEvent = "before_turn"
	AfterTurn         HookEvent = "after_turn"
	UserInterrupt     HookEvent = "user_interrupt"
	AfterToolCall     HookEvent = "after_tool_call"
	ToolError         HookEvent = "tool_error"
	ApprovalRequested HookEvent = "approval_requested"
	ApprovalResolved  HookEvent = "approval_resolved"
	SubAgentStart     HookEvent = "sub_agent_start"
	SubAgentEnd       HookEvent = "sub_agent_end"
	PreCompact        HookEvent = "pre_compact"
	WorkflowRunStart  HookEvent = "workflow_run_start"
	WorkflowRunEnd    HookEvent = "workflow_run_end"
)

// ObservedEvents lists the hook events whose hooks only watch.
func ObservedEvents() []HookEvent {
	return []HookEvent{
		SessionStart, SessionRestored, SessionEnd, BeforeTurn, AfterTurn, UserInterrupt, AfterToolCall, ToolError,
		ApprovalRequested, ApprovalResolved, SubAgentStart, SubAgentEnd, PreCompact, WorkflowRunStart, WorkflowRunEnd,
	}
}

// Gated reports whether hooks of this event can stop an operation.
func (e HookEvent) Gated() bool { return e == BeforeToolCall || e == UserPromptSubmit }
