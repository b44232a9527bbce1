package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

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
			return m.teller().Receipt(l)
		}
	}
	return m.ended
}

// endStands is how long the line about an end stands.
const endStands = 10 * time.Second

// tellEnd lets a new line about an end stand for its time.
func (m *Model) tellEnd(before toldMsg) tea.Cmd {
	now := toldMsg{m.last, m.ended}
	if now == before || now == (toldMsg{}) || m.o.Once || m.o.Question != "" {
		return nil // a program for one question ends with that line
	}
	return tea.Tick(endStands, func(time.Time) tea.Msg { return now })
}

func (m *Model) told(msg toldMsg) {
	if m.last == msg.last && m.ended == msg.ended {
		m.last, m.ended = "", ""
	}
}

func (m *Model) about(q events.Question) string {
	return strings.TrimSpace(m.teller().Tool(q.Tool, q.Kind) + "  " + m.summary(q))
}

// teller tells in words what became of things, to the person at this screen.
func (m *Model) teller() card.Teller {
	return card.Teller{Words: m.w, Self: m.o.Self, Principal: m.o.Principal(), Home: m.o.Home, Now: m.now}
}

// endText tells in words how the question of a card ended.
func (m *Model) endText(c *card.Card, end events.End) string {
	if c == nil {
		return m.teller().Ended(end)
	}
	return c.Title + " · " + m.teller().Ended(end)
}
