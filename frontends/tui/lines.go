package tui

import (
	"errors"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// tellFor is how long the end of a question stands in the bottom line of the
// next one.
const tellFor = 15 * time.Second

// state is the line above the buttons: who answers, or what is in the way.
func (m *Model) state(d *dialog) string {
	text, warn := m.stateText(d)
	if text == "" {
		return ""
	}
	style := m.style.dim
	if warn {
		style = m.style.warn
	}
	if d.composing {
		return "   " + style.Render(text) + "  " + d.input.view(m.style, m.width-6-cells(text))
	}
	return fit("   "+style.Render(fit(text, m.width-4)), m.width)
}

func (m *Model) stateText(d *dialog) (text string, warn bool) {
	switch {
	case d.card == nil:
		return "", false
	case d.q.Gate != events.GateHook:
		return m.w.Say(words.UnknownGate, card.Line(string(d.q.Gate))), true
	case !d.card.Genuine:
		return m.w.Say(words.WrongBytes), true
	case d.composing:
		return m.w.Say(words.WordsPrompt), false
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
	}
	if text := m.marksText(d); text != "" {
		return text, true // also while it is one's own to answer
	}
	if d.claim.token != 0 {
		return m.w.Say(words.HeldByYou), false
	}
	return "", false
}

// claimText says who answers, where, and for how long already.
func (m *Model) claimText(c *events.Claim) string {
	who := m.who(c.Principal)
	if !m.mayTakeOver(c) && c.Name != "" {
		who = card.Line(c.Name)
	}
	since := card.Clock(m.now.Sub(c.Since.Time()))
	text := m.w.Say(words.AnsweredBy, who, m.w.Frontend(string(c.Kind)), since)
	if !m.mayTakeOver(c) {
		return text
	}
	takes := m.w.Say(words.TakesOver)
	if cells(text)+3+cells(takes) > m.width-4 {
		return takes
	}
	return text + "   " + takes
}

// marksText counts what was made visible, so that nobody has to search for it.
func (m *Model) marksText(d *dialog) string {
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

// button is one key and what it does.
type button struct {
	key   string
	text  words.Key
	focus int
}

// buttonLine draws the keys. While they do not count they are dim, and a dot
// stands in the place of each key.
func (m *Model) buttonLine(d *dialog) string {
	left := []button{
		{"c", words.Continue, focusContinue}, {"x", words.Cancel, focusCancel}, {"w", words.CancelWords, focusWords},
	}
	right := []button{{"?", words.Why, focusNone}, {"Esc", words.Later, focusNone}}
	if d.composing {
		left, right = []button{{"Enter", words.Send, focusNone}}, []button{{"Esc", words.Back, focusNone}}
	}
	if d.details != nil {
		right = []button{{"Esc", words.Close, focusNone}}
	}
	quiet := d.grace.left(m.now) == 0
	answers := quiet && m.answerable(d)
	for _, gap := range []string{"   ", " ", ""} {
		l, r := m.drawButtons(d, left, gap, answers), m.drawButtons(d, right, gap, quiet)
		if room := m.width - 2 - cells(l) - cells(r); room >= 1 {
			return " " + l + strings.Repeat(" ", room) + r
		}
	}
	// Too narrow for all: the answers stay whole, the rest as far as it goes.
	l := m.drawButtons(d, left, "", answers)
	if cells(l) > m.width-2 {
		l = m.drawButtons(d, left[:2], "", answers) + m.drawKey(d, left[2].key, "", focusWords, answers)
	}
	r := m.drawButtons(d, right[:1], "", quiet)
	if cells(l)+cells(r) > m.width-2 {
		return " " + l
	}
	return " " + pad(l, m.width-2-cells(r)) + r
}

func (m *Model) drawButtons(d *dialog, list []button, gap string, live bool) string {
	var parts []string
	for _, b := range list {
		parts = append(parts, m.drawKey(d, b.key, " "+m.w.Say(b.text), b.focus, live))
	}
	return strings.Join(parts, gap)
}

func (m *Model) drawKey(d *dialog, key, text string, focus int, live bool) string {
	open, end := " ", " "
	if focus != focusNone && focus == d.focus {
		open, end = "[", "]"
	}
	if !live {
		return m.style.dim.Render(open + strings.Repeat("·", cells(key)) + text + end)
	}
	return m.style.strong.Render(open) + m.style.accent.Render(key) + text + m.style.strong.Render(end)
}

// bottom is the last line: what the last key did, how the last question ended,
// or who is next.
func (m *Model) bottom(d *dialog) string {
	text := m.bottomText()
	if text == "" && d != nil {
		text = m.nextText(d)
	}
	return " " + m.style.dim.Render(fit(text, m.width-2))
}

func (m *Model) bottomText() string {
	if m.notice != "" {
		return m.notice
	}
	if m.last == "" || m.dialog != nil && m.now.Sub(m.lastAt) > tellFor {
		return ""
	}
	for _, l := range m.lines {
		if l.Question == m.last && l.State != "waiting" {
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
	if took > 0 {
		text = m.w.Say(words.After, text, card.Took(took))
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
		who = m.w.Say(words.You) + ", " + card.Took(took)
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
	case l.State == "checking":
		return m.w.Say(words.Checking)
	case l.State == "waiting":
		return m.w.Say(words.Waiting)
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
		text += ", " + m.w.Say(words.SameDigest)
	default:
		text += ", " + m.w.Say(words.OtherDigest)
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
		text += ": " + m.w.End(string(r.EndReason))
	}
	if r.Who != "" && r.Answer != "" {
		text += ": " + m.decided(m.who(r.Who), r.Answer, 0)
	} else if r.Who != "" {
		text = m.w.Say(words.TookAnswer, text, m.who(r.Who))
	}
	return text
}
