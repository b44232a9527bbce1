package card

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Teller tells one person in words what became of questions and operations, the
// same on every screen and on the command line. All that it says is escaped.
type Teller struct {
	Words words.Words
	// Self is the frontend that tells. Principal is the person at it, as the server
	// knows them: nobody is taken for them by a name. "" = not known yet.
	Self      events.ID
	Principal string
	// Home is the person's directory, which paths show as ~; "" if unknown.
	Home string
	Now  time.Time
}

// Mine reports whether a principal is the person who is told.
func (t Teller) Mine(principal string) bool { return principal != "" && principal == t.Principal }

// Who names a principal; the person who is told is you.
func (t Teller) Who(principal string) string {
	if t.Mine(principal) {
		return t.Words.Say(words.You)
	}
	return Line(principal)
}

// Decided tells who chose what, after how long if that is known, else 0.
func (t Teller) Decided(principal string, a events.Answer, took time.Duration) string {
	answer := Line(t.Words.Answer(string(a)))
	text := t.Words.Say(words.Decided, Line(principal), answer)
	if t.Mine(principal) {
		text = t.Words.Say(words.YouDecided, answer)
	}
	if took > 0 {
		text = t.Words.Say(words.After, text, Took(took, t.Words))
	}
	return text
}

// Ended tells how a question ended.
func (t Teller) Ended(end events.End) string {
	switch {
	case end.Result == events.ResultAnswered && end.Who != "":
		return t.Decided(end.Who, end.Answer, 0)
	case end.Reason == "":
		return t.Words.Say(words.NoLongerOpen)
	}
	return t.Words.Say(words.Ended, Line(t.Words.End(string(end.Reason))))
}

// Refusal tells why the core said no, or why it could not be asked.
func (t Teller) Refusal(err error) string {
	var r *events.Refused
	if !errors.As(err, &r) {
		return t.Words.Say(words.SendFailed, Line(err.Error()))
	}
	return t.Refused(r, "")
}

// Refused tells why the core said no, and what had happened before: at is when, in
// words, "" to leave that out.
func (t Teller) Refused(r *events.Refused, at string) string {
	text := Line(t.Words.Reject(string(r.Code)))
	because := func(happened string) {
		if at != "" {
			happened = t.Words.Say(words.HappenedAt, happened, at)
		}
		text = t.Words.Because(text, happened)
	}
	if r.EndReason != "" {
		because(Line(t.Words.End(string(r.EndReason))))
	}
	switch {
	case r.Who != "" && r.Answer != "":
		because(t.Decided(r.Who, r.Answer, 0))
	case r.Who != "":
		text = t.Words.Say(words.TookAnswer, text, t.Who(r.Who))
	}
	return text
}

// Claimed tells who is answering, where, and for how long already.
func (t Teller) Claimed(c *events.Claim) string {
	where, since := Line(t.Words.Frontend(string(c.Kind))), Clock(t.Now.Sub(c.Since.Time()))
	if t.Mine(c.Principal) {
		return t.Words.Say(words.AnsweredByYou, where, since)
	}
	return t.Words.Say(words.AnsweredBy, Line(c.Principal), where, since)
}

// Obstacle tells why a question must not be answered from its card, "" when it may.
// passes says that it goes away when the earlier version has been fetched.
func (t Teller) Obstacle(q events.Question, c Card) (text string, passes bool) {
	switch {
	case q.Gate != events.GateHook:
		return t.Words.Say(words.UnknownGate, Line(string(q.Gate))), false
	case !c.Genuine:
		return t.Words.Say(words.WrongBytes), false
	case c.Missing && !c.First: // a yes was given to what it was
		return t.Words.Say(words.ChangedLoad), true
	}
	return "", false
}

// Left tells how long a question still waits, "" when it has no limit. It is urgent
// in its last fifth.
func (t Teller) Left(q events.Question) (text string, urgent bool) {
	if q.Deadline == 0 {
		return "", false
	}
	left, whole := q.Deadline.Time().Sub(t.Now), q.Deadline.Time().Sub(q.AskedAt.Time())
	return t.Words.Say(words.TimeLeft, Clock(left)), left <= whole/5
}

// Tool names a tool, or what is no tool's call.
func (t Teller) Tool(tool events.Tool, kind events.Kind) string {
	name := Line(tool.Name)
	if name == "" || cmp.Or(kind, events.KindToolCall) != events.KindToolCall {
		return Line(t.Words.Kind(string(kind)))
	}
	return name
}

// Lasted writes how long a program ran, given in microseconds.
func (t Teller) Lasted(micros int64) string {
	d := time.Duration(micros) * time.Microsecond
	if d < time.Second {
		return t.Words.Say(words.Milliseconds, strconv.FormatInt(max(d.Milliseconds(), 1), 10))
	}
	return Took(d, t.Words)
}
