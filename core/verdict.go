package core

import (
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// VerdictOf is what the asker may be told, false while nothing is decided. It
// allows at most one run: only a commit that was neither delivered nor reported
// is an allow, and only with the very bytes that were checked. An asker that
// comes again after its receipt hears that the right has been handed out.
func VerdictOf(s State) (Verdict, bool) {
	end := s.Ending()
	switch {
	case s.Phase != PhaseCommitted && s.Phase != PhaseEnded:
		return Verdict{}, false
	case end.Code != "":
		return refusal(s, end.Code), true
	case s.Delivered || end.Outcome != "":
		v := refusal(s, events.CodeEnded)
		v.Message = takenText(s.Proposed.Kind)
		return v, true
	}
	args := s.Body(events.ArgsBody(end.Committed.N))
	if args == nil || events.DigestOf(args) != end.Committed.Digest {
		return refusal(s, events.CodeChangedAfterCheck), true
	}
	return Verdict{
		Operation: s.ID, Kind: s.Proposed.Kind, Allow: true, Code: events.CodeChecked, Version: end.Committed, Args: args,
		Changed: end.Committed.Digest != s.Versions[0].Digest, Reminder: s.reminder(),
	}, true
}

func refusal(s State, code events.Code) Verdict {
	end := s.Ending()
	r := Refusal{
		Code: code, EndReason: end.EndReason, Kind: s.Proposed.Kind, Tool: s.Proposed.Tool.Name,
		Reason: string(s.Body(events.ReasonBody(end.CodeRun))),
	}
	switch {
	case end.CodeRun != "" && end.CodeRun == s.Run.Run:
		r.Hook = s.Run.Hook
	case code == events.CodeDeclined, code == events.CodeTimedOut, code == events.CodeUnavailable:
		if code == events.CodeDeclined {
			r.Words = string(s.Body(events.TextBody(end.Question)))
		}
		if end.Question == s.Question.ID { // else an earlier call was asked about, by a hook that this one may not have
			r.Hook = s.Run.Hook
		}
	}
	v := Verdict{
		Operation: s.ID, Kind: s.Proposed.Kind, Code: code, EndReason: end.EndReason, Version: s.Current(), Message: ModelText(r),
	}
	if v.Kind != events.KindToolCall {
		v.Args = s.Body(events.ArgsBody(0)) // whoever wrote it must not lose it
	}
	return v
}

// reminder is what the hooks of the pass that counts want the model to read
// beside the prompt, in their order.
func (s *State) reminder() string {
	var parts []string
	for _, b := range s.Bodies {
		if b.isReminder() {
			parts = append(parts, string(b.Data))
		}
	}
	return strings.Join(parts, "\n\n")
}

// FaultVerdict is what the asker hears when the end of its operation could not
// be written: what is not in the log does not run.
func FaultVerdict(s State, code events.Code) Verdict {
	end := s.toEnd()
	end.Code, end.CodeRun = code, ""
	return refusal(s, code)
}
