package hooks

import (
	"fmt"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Result is what a hook's run did, after all rules. Override, when set, is a
// JSON object to merge into the arguments. Reason is the hook's own text for a
// block or question, or names hook, file and cause of a failure. Code is set
// when the run refuses the operation. Stdout and Stderr are what was kept, as
// valid UTF-8. Exit is 128 + the signal's number for a process that a signal
// ended.
type Result struct {
	Effect     events.Effect
	Outcome    events.RunOutcome
	Code       events.Code
	Reason     string
	Override   []byte
	FailedOpen bool
	NotApplied string
	Script     events.Digest // of the script file's content, "" without one
	Exit       int
	Duration   time.Duration
	Stdout     string
	Stderr     string
}

// The reasons why an ask could not ask.
const (
	notAppliedEvent       = "event"
	notAppliedNonblocking = "nonblocking"
)

// Failure is the result of a hook that failed with the given code and cause. It
// blocks a gated operation unless the hook says on_error: warn or ignore; then
// it lets the operation on and says so.
func Failure(h Hook, code events.Code, cause string) Result {
	r := Result{
		Effect: events.EffectError, Outcome: outcomeOf(code),
		Reason: fmt.Sprintf("hook %q (%s file %s, line %d) failed: %s", h.Ref.ID, h.Ref.Scope, h.Ref.File, h.Ref.Line, cause),
	}
	if h.Mode != Blocking || !h.Event.Gated() {
		return r
	}
	if h.OnError == OnErrorWarn || h.OnError == OnErrorIgnore {
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
	r := Result{Effect: events.EffectAllow, Outcome: events.RunOK}
	switch {
	case v.action == "ask" && h.Mode != Blocking:
		r.Effect, r.NotApplied = events.EffectAskNotApplied, notAppliedNonblocking
		return r
	case v.action == "ask" && !h.Event.Gated():
		r.Effect, r.NotApplied = events.EffectAskNotApplied, notAppliedEvent
		return r
	case h.Mode != Blocking || !h.Event.Gated():
		return r // it only watches
	case v.action == "block":
		r.Effect, r.Code, r.Reason = events.EffectBlock, events.CodeBlocked, v.reason
		return r
	}
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
	return r
}
