package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// follow takes over what is new about the questions on the screen. One that has
// ended leaves it; with the last one the dialog closes. Buttons that somebody
// else's claim had locked and that come free, and what moves because something
// left, begin a grace of their own.
func (m *Model) follow() {
	d := m.dialog
	if d == nil {
		return
	}
	wasLocked := m.lockedBy(d) != nil
	open := 0
	for _, q := range d.questions() {
		if now, ok := m.find(q.ID); ok {
			open++
			m.renew(d, now)
		}
	}
	switch {
	case open == 0:
		m.closeEnded(d)
	case open < len(d.questions()) && !d.sending: // an answer on its way tells about all
		m.drop(d)
	}
	if wasLocked && m.dialog == d && m.lockedBy(d) == nil {
		d.grace.begin(m.now)
	}
}

// join puts equal questions that have just come onto the card that shows the first
// of them, since parallel calls do not arrive as one. Only while keys do not count
// yet: what a person has begun to read, or has answered, is not made to mean more.
func (m *Model) join(fresh []events.Question) tea.Cmd {
	d := m.dialog
	if d == nil || d.set() || !d.ready() || d.sending || d.composing || d.grace.left(m.now) == 0 {
		return nil
	}
	p := d.parts[0]
	before := len(p.all)
	for _, q := range fresh {
		if !p.has(q.ID) && frontends.Equal(p.lead(), q) {
			q.Args = nil // the card holds them
			p.all = append(p.all, q)
			delete(m.later, q.ID)
		}
	}
	if len(p.all) == before {
		return nil
	}
	d.grace.begin(m.now)
	return tea.Tick(frame, func(time.Time) tea.Msg { return drawnMsg{} })
}

// renew takes one question as it is now.
func (m *Model) renew(d *dialog, q events.Question) {
	p := d.part(q.ID)
	at := slices.IndexFunc(p.all, func(old events.Question) bool { return old.ID == q.ID })
	q.Args = nil // the card holds them
	p.all[at] = q
	token := d.claims[q.ID].token
	switch {
	case token == 0:
	case q.ClaimedBy == nil && q.Seq >= token: // it lapsed
		delete(d.claims, q.ID)
	case q.ClaimedBy != nil && q.ClaimedBy.Frontend != m.o.Self && q.ClaimedBy.Claim > token: // taken over
		delete(d.claims, q.ID)
	}
}

// drop takes out what has ended, and says how.
func (m *Model) drop(d *dialog) {
	for _, q := range d.questions() {
		if _, open := m.find(q.ID); open {
			continue
		}
		if end, known := m.o.Inbox.Ended(q.ID); known {
			m.notice = notice{text: m.endText(d.part(q.ID).card, end)}
		}
		m.without(d, q.ID)
	}
}

// without takes a question out of the dialog, which is about others too. Where that
// moves something, keys wait for another grace.
func (m *Model) without(d *dialog, id events.ID) {
	p := d.part(id)
	delete(d.claims, id) // one that is on its way is given back when it comes
	p.all = slices.DeleteFunc(p.all, func(q events.Question) bool { return q.ID == id })
	if len(p.all) > 0 {
		return
	}
	d.parts = slices.DeleteFunc(d.parts, func(other *part) bool { return other == p })
	if !d.ready() {
		return
	}
	m.layOut(d)
	d.current, d.chosen, d.first, d.focus, d.details = 0, false, 0, focusNone, nil
	d.grace.begin(m.now)
}

// closeEnded closes the dialog when nothing on it is open any more, and keeps the
// end in words for the list. Words that were being written stay for the next w.
func (m *Model) closeEnded(d *dialog) {
	q := d.lead()
	m.last, m.ended = q.ID, ""
	if end, known := m.o.Inbox.Ended(q.ID); known {
		m.ended = m.endText(d.parts[0].card, end)
	}
	if !d.sending {
		m.notice = notice{text: m.ended} // the next question opens over it
		m.unsent(q.Session, q.Tool.Name, d.input.value())
	}
	m.dialog = nil
}

// draft are words whose question has ended. They were for one agent about one tool,
// and come back for nobody else.
type draft struct {
	session    events.Token
	tool, text string
}

// unsent keeps words whose question has ended.
func (m *Model) unsent(session events.Token, tool, text string) {
	if text == "" {
		return
	}
	m.draft = draft{session, tool, text}
	m.notice = notice{text: m.w.Say(words.UnsentWords, card.Line(tool))}
}
