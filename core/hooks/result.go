package hooks

import (
	"fmt"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Result is what a hook's run did, after all rules. Override, when set, is a
// JSON object to merge into the arguments. Reason is the hook's own text for a
// block or question, or names hook, file and cause of a failure. Code is set
// when the run refuses the operation. Reminder is a prompt hook's text for the
// model, of an ask for the case that it is continued; Context is a text to read
// behind a tool's result. Stdout and Stderr are what was kept, as valid UTF-8.
// Exit is 128 + the signal's number for a process that a signal ended.
type Result struct {
	Effect     events.Effect
	Outcome    events.RunOutcome
	Code       events.Code
	Reason     string
	Override   []byte
	Reminder   string
	Context    string
	FailedOpen bool
	NotApplied string
	Note       Message       // what whoever wrote the hook should know
	Script     events.Digest // of the script file's content, "" without one
	Exit       int
	Duration   time.Duration
	Stdout     string
	Stderr     string
}

// Failure is the result of a hook that failed with the given code and cause. It
// blocks a gated operation unless the hook says on_error: warn or ignore; then
// it lets the operation on and says so. A script that is not the trusted one
// blocks in any case: the on_error beside it may be what was tampered with.
func Failure(h Hook, code events.Code, cause string) Result {
	r := Result{
		Effect: events.EffectError, Outcome: outcomeOf(code),
		Reason: fmt.Sprintf("hook %q (%s file %s, line %d) failed: %s", h.Ref.ID, h.Ref.Scope, h.Ref.File, h.Ref.Line, cause),
	}
	if !h.decides() {
		return r
	}
	if code != events.CodeNotTrusted && (h.OnError == OnErrorWarn || h.OnError == OnErrorIgnore) {
		r.FailedOpen = true
		return r
	}
	r.Effect, r.Code = events.EffectBlock, code
	return r
}

func outcomeOf(code events.Code) events.RunOutcome {
	switch code {
	case events.CodeHookTimedOut:
		return events.RunTimedOut
	case events.CodeHookMissing:
		return events.RunMissing
	case events.CodeHookBadVerdict:
		return events.RunBadVerdict
	}
	return events.RunFailed
}

// apply turns a verdict into the run's result, by what the hook's event and
// mode permit.
func (v verdict) apply(h Hook, args []byte) Result {
	switch {
	case h.Mode != Blocking:
		return v.watched(events.NotAppliedNonblocking)
	case h.Event == events.AfterToolCall || h.Event == events.ToolError:
		r := v.watched(events.NotAppliedEvent)
		r.Context = v.context
		return r
	case !h.Event.Gated():
		return v.watched(events.NotAppliedEvent)
	case v.action == "block":
		return Result{Effect: events.EffectBlock, Outcome: events.RunOK, Code: events.CodeBlocked, Reason: v.reason}
	}
	r := Result{Effect: events.EffectAllow, Outcome: events.RunOK}
	if v.override != nil {
		if h.Event != events.BeforeToolCall {
			return Failure(h, events.CodeHookBadVerdict, fmt.Sprintf("args_override does not apply to %s", h.Event))
		}
		if !isObject(args) {
			return Failure(h, events.CodeHookBadVerdict, "args_override does not apply to arguments that are not an object")
		}
		r.Effect, r.Override = events.EffectModify, v.override
	}
	if v.action == "ask" {
		r.Effect, r.Reason = events.EffectAsk, v.reason
	}
	if h.Event == events.UserPromptSubmit {
		r.Reminder = v.reminder
	}
	return r
}

// watched is the result of a run that decides nothing. Had it asked, that is
// recorded with why nobody was asked.
func (v verdict) watched(notApplied string) Result {
	if v.action == "ask" {
		return Result{Effect: events.EffectAskNotApplied, Outcome: events.RunOK, NotApplied: notApplied}
	}
	return Result{Effect: events.EffectAllow, Outcome: events.RunOK}
}
