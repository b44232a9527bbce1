package card

import (
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Sign is where an operation stands as one character: ● on its way or running, ✓
// went on, ✕ refused by a person or a rule, ⌛ no answer or nobody to ask, –
// withdrawn, · went on and nobody was asked.
func Sign(l events.Line) string {
	switch l.State {
	case events.LineAborted:
		return "–"
	case events.LineRefused:
		switch l.Code {
		case events.CodeTimedOut, events.CodeUnavailable:
			return "⌛"
		case events.CodeEnded:
			return "–"
		}
		return "✕"
	case events.LineCommitted, events.LineDelivered:
		return "●"
	}
	if l.Question == "" {
		return "·"
	}
	return "✓"
}

// DecisionTook is how long the question of an operation was open, 0 if that is not
// known.
func DecisionTook(l events.Line) time.Duration {
	if l.AskedAt == 0 || l.EndedAt < l.AskedAt {
		return 0
	}
	return l.EndedAt.Time().Sub(l.AskedAt.Time())
}

// RanOther reports that something else ran than was allowed.
func RanOther(l events.Line) bool { return l.Ran != "" && l.Committed != "" && l.Ran != l.Committed }

// Receipt tells what became of an operation, step by step.
func (t Teller) Receipt(l events.Line) string {
	return strings.Join(append([]string{t.Verdict(l)}, t.Became(l)...), " → ")
}

// Verdict tells who or what decided about an operation.
func (t Teller) Verdict(l events.Line) string {
	took := DecisionTook(l)
	switch {
	case l.State == events.LineAborted || l.Code == events.CodeEnded:
		text := Line(t.Words.Code(string(events.CodeEnded)))
		if l.EndReason != "" {
			text = t.Words.Because(text, Line(t.Words.End(string(l.EndReason))))
		}
		return text
	case l.Code == events.CodeDeclined && l.Who != "":
		return t.Decided(l.Who, events.AnswerCancel, took)
	case l.Code == events.CodeTimedOut && took > 0:
		return t.Words.Say(words.NoAnswerIn, Clock(took))
	case l.Code != "" && l.Code != events.CodeChecked:
		return t.refusedBy(l)
	case l.Who != "":
		return t.Decided(l.Who, events.AnswerContinue, took)
	case l.Hook != nil:
		return t.Words.Say(words.RuleDecided, Line(l.Hook.ID))
	}
	return t.Words.Say(words.NoQuestion)
}

// refusedBy tells why an operation was refused without a person's word, and which
// rule it was.
func (t Teller) refusedBy(l events.Line) string {
	code := Line(t.Words.Code(string(l.Code)))
	switch {
	case l.Hook == nil || l.Code == events.CodeUnavailable:
		return code
	case l.Code == events.CodeBlocked:
		return t.Words.Say(words.RuleRefused, Line(l.Hook.ID))
	}
	return t.Words.Because(code, Line(l.Hook.ID))
}

// Became are the steps of an operation behind the decision.
func (t Teller) Became(l events.Line) []string {
	switch l.State {
	case events.LineCommitted:
		return []string{t.Words.Say(words.Sent)}
	case events.LineDelivered:
		return []string{t.Words.Say(words.Delivered)}
	case events.LineFinished:
		if l.Outcome == events.OutcomeUnknown {
			return []string{t.Ran(l)}
		}
		return []string{t.Words.Say(words.Delivered), t.Ran(l)}
	case events.LineRefused, events.LineAborted:
	}
	return nil
}

// Ran tells what the agent reported, how large it was and whether it is what was
// allowed.
func (t Teller) Ran(l events.Line) string {
	text := Line(t.Words.Outcome(string(l.Outcome)))
	if l.Outcome != events.OutcomeOK && l.Outcome != events.OutcomeFailed {
		return text
	}
	if l.Bytes > 0 {
		text = t.Words.Say(words.RanBytes, text, Count(l.Bytes))
	}
	switch {
	case RanOther(l):
		return t.Words.Say(words.OtherDigest, text)
	case l.Ran != "" && l.Committed != "":
		return t.Words.Say(words.SameDigest, text)
	}
	return text
}
