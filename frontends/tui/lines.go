package tui

import (
	"errors"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// state is the line above the buttons: who answers, or what is in the way, or
// the words that are being written, in up to a number of rows.
func (m *Model) state(d *dialog, rows int) []string {
	if d.composing {
		return m.composer(d, rows)
	}
	text, warn := m.stateText(d)
	style := m.style.dim
	if warn {
		style = m.style.warn
	}
	marks := ""
	if m.cramped() {
		marks = m.marksText(d)
	}
	switch {
	case marks != "" && text != "":
		// One line for both: the warning has at least its half.
		const between = " · "
		room := m.stateWidth() - cells(between)
		marks = fit(marks, room-min(cells(text), room/2))
		return []string{m.indent() + m.style.warn.Render(marks) + between + style.Render(fit(text, room-cells(marks)))}
	case marks != "":
		return []string{m.indent() + m.style.warn.Render(fit(marks, m.stateWidth()))}
	case text != "":
		return []string{m.indent() + style.Render(fit(text, m.stateWidth()))}
	}
	return []string{""}
}

// composer draws the words that are being written.
func (m *Model) composer(d *dialog, rows int) []string {
	label := m.style.dim.Render(m.w.Say(words.WordsPrompt))
	if m.width < 60 {
		label = m.style.dim.Render(m.w.Say(words.WordsShort))
	}
	if marks := m.marksText(d); m.cramped() && marks != "" {
		label = m.style.warn.Render(fit(marks, m.stateWidth()/3))
	}
	out := d.input.view(m.style, m.stateWidth()-cells(label)-2, rows)
	for i, row := range out {
		if i > 0 {
			label = pad("", cells(label))
		}
		out[i] = m.indent() + label + "  " + row
	}
	return out
}

// indent is before the state, stateWidth what is left for it.
func (m *Model) indent() string {
	if m.width < 60 {
		return "  "
	}
	return "   "
}

func (m *Model) stateWidth() int { return m.width - cells(m.indent()) - 1 }

func (m *Model) stateText(d *dialog) (text string, warn bool) {
	switch {
	case d.card == nil:
		return "", false
	case d.q.Gate != events.GateHook:
		return m.w.Say(words.UnknownGate, card.Line(string(d.q.Gate))), true
	case !d.card.Genuine:
		return m.w.Say(words.WrongBytes), true
	case d.problem != "":
		return d.problem, true
	case d.comparing:
		return m.w.Say(words.ChangedLoad), false
	case d.pending != nil:
		return m.w.Say(words.Claiming), false
	case d.sending:
		return m.w.Say(words.Sending), false
	case m.lockedBy(d) != nil:
		return m.claimText(m.lockedBy(d)), true
	case d.claim.token != 0:
		return m.w.Say(words.HeldByYou), false
	}
	return "", false
}

// claimText says who answers, where, and for how long already.
func (m *Model) claimText(c *events.Claim) string {
	where, since := m.w.Frontend(string(c.Kind)), card.Clock(m.now.Sub(c.Since.Time()))
	if !m.mayTakeOver(c) {
		who := card.Line(c.Name)
		if who == "" {
			who = card.Line(c.Principal)
		}
		return m.w.Say(words.AnsweredBy, who, where, since)
	}
	text, takes := m.w.Say(words.AnsweredByYou, where, since), m.w.Say(words.TakesOver)
	if cells(text)+3+cells(takes) > m.stateWidth() {
		return takes
	}
	return text + "   " + takes
}

// marksText counts what was made visible, so that nobody has to search for it.
// It has its own line: nothing that happens may take its place.
func (m *Model) marksText(d *dialog) string {
	if d.card == nil {
		return ""
	}
	if d.marks == nil {
		d.marks = new(m.countMarks(d))
	}
	return *d.marks
}

func (m *Model) countMarks(d *dialog) string {
	var parts []string
	bad, total := false, 0
	seen := map[string]bool{}
	for _, f := range d.card.Fields {
		bad = bad || f.Bad
		for _, mark := range append(card.Marks(f.Name), card.Marks(f.Text)...) {
			total += mark.Count
			if !seen[mark.Text] {
				seen[mark.Text] = true
				parts = append(parts, mark.Text)
			}
		}
	}
	switch {
	case bad:
		return m.w.Say(words.NotJSON)
	case total > 0:
		return m.w.Say(words.Marked, total, strings.Join(parts[:min(len(parts), 8)], " "))
	}
	return ""
}

// notice is one sentence about the last key, until the next key.
type notice struct {
	text     string
	question events.ID // that it is about, "" for none
	tool     string    // of that question
}

// bottom is the last line of a dialog: what the last key did, or who is next.
// How another question ended is not told here, where it would read as if this
// one had.
func (m *Model) bottom(d *dialog) string {
	text := m.noticeText()
	if text == "" {
		text = m.nextText(d)
	}
	return " " + m.style.dim.Render(fit(text, m.width-2))
}

// noticeText names the tool of a notice that is about another question than the
// one on the screen.
func (m *Model) noticeText() string {
	n := m.notice
	if n.question != "" && (m.dialog == nil || m.dialog.q.ID != n.question) {
		return m.w.Say(words.YourAnswer, n.tool, n.text)
	}
	return n.text
}

// lastText tells what became of the question that ended last.
func (m *Model) lastText() string {
	for _, l := range m.lines {
		if m.last != "" && l.Question == m.last {
			return m.receipt(l)
		}
	}
	return m.ended
}

// who names a principal; the person at this screen is you.
func (m *Model) who(principal string) string {
	if principal != "" && principal == m.o.Principal() {
		return m.w.Say(words.You)
	}
	return card.Line(principal)
}

func (m *Model) nextText(d *dialog) string {
	at := m.index(d.q.ID)
	if at < 0 || len(m.questions) < 2 {
		return ""
	}
	q := m.questions[(at+1)%len(m.questions)]
	left := m.w.Say(words.Next) + "  " + card.Session(q.Agent, q.ProjectPath) + "   " + m.about(q)
	return sides(left, m.w.Say(words.WaitingFor, card.Clock(m.now.Sub(q.AskedAt.Time()))), m.width-2)
}

func (m *Model) about(q events.Question) string {
	name := card.Line(q.Tool.Name)
	if q.Kind != events.KindToolCall || name == "" {
		name = m.w.Kind(string(q.Kind))
	}
	return strings.TrimSpace(name + "  " + m.summaries[q.ID])
}

// endText tells in words how the question of a card ended.
func (m *Model) endText(c *card.Card, end events.End) string {
	title := ""
	if c != nil {
		title = c.Title + " · "
	}
	if end.Result == events.ResultAnswered && end.Who != "" {
		return title + m.decided(m.who(end.Who), end.Answer, 0)
	}
	return title + m.w.Say(words.Ended, m.w.End(string(end.Reason)))
}

// decided tells who chose what, after how long if that is known.
func (m *Model) decided(who string, a events.Answer, took time.Duration) string {
	text := m.w.Say(words.Decided, who, m.w.Answer(string(a)))
	if who == m.w.Say(words.You) {
		text = m.w.Say(words.YouDecided, m.w.Answer(string(a)))
	}
	if took > 0 {
		text = m.w.Say(words.After, text, card.Took(took, m.w))
	}
	return text
}

// receipt tells what became of an operation, step by step.
func (m *Model) receipt(l events.Line) string {
	parts := []string{m.verdict(l)}
	switch l.State {
	case "committed":
		parts = append(parts, m.w.Say(words.Sent))
	case "delivered":
		parts = append(parts, m.w.Say(words.Delivered))
	case "finished":
		if l.Outcome != events.OutcomeUnknown {
			parts = append(parts, m.w.Say(words.Delivered))
		}
		parts = append(parts, m.ran(l))
	}
	return strings.Join(parts, " → ")
}

// short is the receipt for a row of the list: the sign before the row tells
// the decision, so who and the last step are enough.
func (m *Model) short(l events.Line) string {
	who := m.verdict(l)
	if took, ours := m.took[l.Question]; l.Code == "" && ours {
		who = m.w.Say(words.YouTook, card.Took(took, m.w))
	} else if l.Code == "" && l.Who != "" {
		who = m.who(l.Who)
	}
	switch l.State {
	case "committed":
		return who + " → " + m.w.Say(words.Sent)
	case "delivered":
		return who + " → " + m.w.Say(words.Delivered)
	case "finished":
		l.Bytes = 0
		if l.Ran == l.Committed {
			l.Ran = ""
		}
		return who + " → " + m.ran(l)
	}
	return m.verdict(l)
}

// verdict tells who or what decided.
func (m *Model) verdict(l events.Line) string {
	took, ours := m.took[l.Question]
	who := m.who(l.Who)
	if ours {
		who = m.w.Say(words.You)
	}
	switch {
	case l.State == "aborted":
		return m.w.Code(string(events.CodeEnded))
	case l.Code == events.CodeDeclined && who != "":
		return m.decided(who, events.AnswerCancel, took)
	case l.Code != "" && l.Code != events.CodeChecked:
		return m.w.Code(string(l.Code))
	case who != "":
		return m.decided(who, events.AnswerContinue, took)
	}
	return m.w.Say(words.NoQuestion)
}

func (m *Model) ran(l events.Line) string {
	text := m.w.Outcome(string(l.Outcome))
	if l.Outcome != events.OutcomeOK && l.Outcome != events.OutcomeFailed {
		return text
	}
	if l.Bytes > 0 {
		text = m.w.Say(words.RanBytes, text, card.Count(l.Bytes))
	}
	switch {
	case l.Ran == "" || l.Committed == "":
	case l.Ran == l.Committed:
		text = m.w.Say(words.SameDigest, text)
	default:
		text = m.w.Say(words.OtherDigest, text)
	}
	return text
}

// refusal tells why the core said no, or why it could not be asked.
func (m *Model) refusal(err error) string {
	var r *events.Refused
	if !errors.As(err, &r) {
		return m.w.Say(words.SendFailed, card.Line(err.Error()))
	}
	text := m.w.Reject(string(r.Code))
	if r.EndReason != "" {
		text = m.w.Because(text, m.w.End(string(r.EndReason)))
	}
	if r.Who != "" && r.Answer != "" {
		text = m.w.Because(text, m.decided(m.who(r.Who), r.Answer, 0))
	} else if r.Who != "" {
		text = m.w.Say(words.TookAnswer, text, m.who(r.Who))
	}
	return text
}
