package tui

import (
	"errors"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// notice is one sentence about the last key, until the next key.
type notice struct {
	text     string
	question events.ID // that it is about, "" for none
	tool     string    // of that question
}

// noticeText names the tool of a notice that is about another question than the
// one on the screen.
func (m *Model) noticeText() string {
	n := m.notice
	if n.question != "" && (m.dialog == nil || !m.dialog.has(n.question)) {
		return m.w.Say(words.YourAnswer, n.tool, n.text)
	}
	return n.text
}

// lastText tells what became of the question that ended last.
func (m *Model) lastText() string {
	for _, l := range m.history.lines {
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

func (m *Model) about(q events.Question) string {
	return strings.TrimSpace(m.toolName(q.Tool, q.Kind) + "  " + m.summary(q))
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
