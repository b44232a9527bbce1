package plain

import (
	"errors"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// maxHistory is how many operations h tells.
const maxHistory = 20

// claimed tells who is answering.
func (s *screen) claimed(c *events.Claim) string {
	where, since := card.Line(s.w.Frontend(string(c.Kind))), card.Clock(s.o.Now().Sub(c.Since.Time()))
	if c.Principal != "" && c.Principal == s.o.Principal() {
		return s.w.Say(words.AnsweredByYou, where, since)
	}
	who := card.Line(c.Name)
	if who == "" {
		who = card.Line(c.Principal)
	}
	return s.w.Say(words.AnsweredBy, who, where, since)
}

// ended tells how a question ended.
func (s *screen) ended(end events.End) string {
	if end.Result == events.ResultAnswered && end.Who != "" {
		return s.decided(end.Who, end.Answer)
	}
	if end.Reason == "" {
		return s.w.Say(words.PlainClosed)
	}
	return s.w.Say(words.Ended, card.Line(s.w.End(string(end.Reason))))
}

func (s *screen) decided(who string, a events.Answer) string {
	if who == s.o.Principal() {
		return s.w.Say(words.YouDecided, card.Line(s.w.Answer(string(a))))
	}
	return s.w.Say(words.Decided, card.Line(who), card.Line(s.w.Answer(string(a))))
}

// refusal tells why the core said no, or why it could not be asked.
func (s *screen) refusal(err error) string {
	var no *events.Refused
	if !errors.As(err, &no) {
		return s.w.Say(words.SendFailed, card.Line(err.Error()))
	}
	text := card.Line(s.w.Reject(string(no.Code)))
	if no.EndReason != "" {
		text = s.w.Because(text, card.Line(s.w.End(string(no.EndReason))))
	}
	switch {
	case no.Who != "" && no.Answer != "":
		text = s.w.Because(text, s.decided(no.Who, no.Answer))
	case no.Who != "":
		text = s.w.Say(words.TookAnswer, text, card.Line(no.Who))
	}
	return text
}

// history tells the operations of late, the newest last.
func (s *screen) history() {
	lines := s.o.Inbox.Lines()
	slices.SortStableFunc(lines, func(a, b events.Line) int { return int(a.At - b.At) })
	lines = lines[max(0, len(lines)-maxHistory):]
	if len(lines) == 0 {
		s.say(words.PlainNoHistory)
		return
	}
	s.page.together(func() {
		for _, l := range lines {
			name := card.Line(l.Tool.Name)
			if name == "" {
				name = card.Line(s.w.Kind(string(l.Kind)))
			}
			about := strings.TrimSpace(name + "   " + card.Line(l.About))
			s.page.row(sign(l) + " " + card.Session(l.Agent, l.ProjectPath) + "   " + about)
			s.page.row("  " + s.receipt(l))
			if l.Text != "" {
				s.page.row("  “" + card.Line(l.Text) + "”")
			}
		}
	})
}

// sign is the end of an operation as one character.
func sign(l events.Line) string {
	switch {
	case l.State == events.LineAborted:
		return "–"
	case l.Code == events.CodeTimedOut:
		return "⌛"
	case l.Code != "" && l.Code != events.CodeChecked:
		return "✕"
	case l.Question == "":
		return "·"
	}
	return "✓"
}

// receipt tells what became of an operation, step by step.
func (s *screen) receipt(l events.Line) string {
	var steps []string
	switch {
	case l.State == events.LineAborted:
		steps = append(steps, card.Line(s.w.Code(string(events.CodeEnded))))
	case l.Code == events.CodeDeclined && l.Who != "":
		steps = append(steps, s.decided(l.Who, events.AnswerCancel))
	case l.Code != "" && l.Code != events.CodeChecked:
		steps = append(steps, card.Line(s.w.Code(string(l.Code))))
	case l.Who != "":
		steps = append(steps, s.decided(l.Who, events.AnswerContinue))
	default:
		steps = append(steps, s.w.Say(words.NoQuestion))
	}
	return strings.Join(append(steps, s.became(l)...), " → ")
}

// became tells what the agent did with its leave to go on.
func (s *screen) became(l events.Line) []string {
	switch l.State {
	case events.LineCommitted:
		return []string{s.w.Say(words.Sent)}
	case events.LineDelivered:
		return []string{s.w.Say(words.Delivered)}
	case events.LineFinished:
		if l.Outcome == events.OutcomeUnknown {
			return []string{s.ran(l)}
		}
		return []string{s.w.Say(words.Delivered), s.ran(l)}
	case events.LineRefused, events.LineAborted:
	}
	return nil
}

func (s *screen) ran(l events.Line) string {
	text := card.Line(s.w.Outcome(string(l.Outcome)))
	if l.Outcome != events.OutcomeOK && l.Outcome != events.OutcomeFailed {
		return text
	}
	if l.Bytes > 0 {
		text = s.w.Say(words.RanBytes, text, card.Count(l.Bytes))
	}
	switch {
	case l.Ran == "" || l.Committed == "":
		return text
	case l.Ran == l.Committed:
		return s.w.Say(words.SameDigest, text)
	}
	return s.w.Say(words.OtherDigest, text)
}
