package core

import "github.com/fermata-hitl/fermata/events"

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
		v.Message, v.Human = takenText, takenHuman
		return v, true
	}
	args := s.Body(events.ArgsBody(end.Committed.N))
	if args == nil || events.DigestOf(args) != end.Committed.Digest {
		return refusal(s, events.CodeChangedAfterCheck), true
	}
	return Verdict{
		Operation: s.ID, Allow: true, Code: events.CodeChecked, Version: end.Committed, Args: args,
		Changed: end.Committed.Digest != s.Versions[0].Digest,
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
	case code == events.CodeDeclined:
		r.Hook = s.Run.Hook
		r.Words = string(s.Body(events.TextBody(s.Question.ID)))
	case code == events.CodeTimedOut, code == events.CodeUnavailable:
		r.Hook = s.Run.Hook
	}
	return Verdict{
		Operation: s.ID, Code: code, EndReason: end.EndReason, Version: s.Current(),
		Message: ModelText(r), Human: HumanText(r),
	}
}

// FaultVerdict is what the asker hears when the end of its operation could not
// be written: what is not in the log does not run.
func FaultVerdict(s State, code events.Code) Verdict {
	end := s.toEnd()
	end.Code, end.CodeRun = code, ""
	return refusal(s, code)
}
