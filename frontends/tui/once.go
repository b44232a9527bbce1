package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Times of a program that shows one question and leaves.
const (
	lookFor = 3 * time.Second // how long a question that is not there may take to come
	tellFor = time.Second     // how long its end stands on the screen
)

// only is an inbox with one question.
type only struct {
	Inbox
	question events.ID
}

// Questions are the one question, if it is open.
func (o only) Questions() []events.Question {
	for _, q := range o.Inbox.Questions() {
		if q.ID == o.question {
			return []events.Question{q}
		}
	}
	return nil
}

// once is where a program is that shows one question and leaves.
type once struct {
	looking bool // a message that it did not come is on its way
	over    bool // what became of it is on the screen
}

// onceMsg ends the looking, or the program.
type onceMsg struct{ over bool }

// oneQuestion opens the question when it comes and leaves when it has ended.
func (m *Model) oneQuestion() tea.Cmd {
	if m.dialog != nil || m.once.over {
		return nil
	}
	if len(m.questions) > 0 {
		return m.openSet(m.questions)
	}
	if m.last != "" {
		return m.tellAndLeave()
	}
	if _, ended := m.o.Inbox.Ended(m.o.Question); ended {
		return m.notOpen()
	}
	if m.once.looking || !m.attached {
		return nil
	}
	m.once.looking = true
	return tea.Tick(lookFor, func(time.Time) tea.Msg { return onceMsg{} })
}

// notOpen tells how a question ended that was never on this screen.
func (m *Model) notOpen() tea.Cmd {
	m.last, m.ended = m.o.Question, m.w.Say(words.NotOpen)
	if end, known := m.o.Inbox.Ended(m.o.Question); known {
		m.ended = m.endText(nil, end)
	}
	return m.tellAndLeave()
}

func (m *Model) tellAndLeave() tea.Cmd {
	m.once.over = true
	return tea.Tick(tellFor, func(time.Time) tea.Msg { return onceMsg{over: true} })
}

func (m *Model) gotOnce(msg onceMsg) tea.Cmd {
	switch {
	case msg.over:
		return tea.Quit
	case m.dialog == nil && !m.once.over:
		return m.notOpen()
	}
	return nil
}

// onceView is the screen of one question while it is not there: one line.
func (m *Model) onceView() []string {
	text := m.lastText()
	if text == "" {
		text = m.w.Say(words.LookingFor)
		if !m.attached {
			text = m.w.Say(words.Detached)
		}
	}
	return []string{"", " " + fit(text, m.width-2)}
}

// onceKey leaves: nothing on this screen can be answered any more.
func (m *Model) onceKey(key string) tea.Cmd {
	if key == "esc" || key == "q" || key == "enter" {
		return tea.Quit
	}
	return nil
}
