package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
)

// soon is when a question ends that should not wait behind older ones.
const soon = time.Minute

// fillFor is how long a new attachment may take to list all that is open, before
// what is known so far opens.
const fillFor = time.Second

// filling is the wait for an inbox that does not have everything yet.
type filling struct {
	since   time.Time // when the core was found, zero while there is none
	looking bool      // a message to look again is on its way
}

// filledMsg makes the screen look again whether everything is there.
type filledMsg struct{}

// incomplete says that older questions may still come than those that are known:
// nothing opens by itself before them.
func (m *Model) incomplete() bool {
	return m.attached && !m.o.Inbox.Complete() && m.now.Sub(m.filling.since) < fillFor
}

// awaitAll notes when the core was found, and looks again for as long as the inbox
// fills.
func (m *Model) awaitAll() tea.Cmd {
	f := &m.filling
	switch {
	case !m.attached:
		f.since = time.Time{}
	case f.since.IsZero():
		f.since = m.now
	}
	if f.looking || !m.incomplete() {
		return nil
	}
	f.looking = true
	return tea.Tick(restBetween, func(time.Time) tea.Msg { return filledMsg{} })
}

// openDue opens what is due, where nobody is at something else: in the list, with
// nothing ticked and no filter being written.
func (m *Model) openDue() tea.Cmd {
	if m.dialog != nil || m.on != screenList || m.list.filtering || len(m.waiting.ticked) > 0 || m.incomplete() ||
		m.o.Question != "" {
		return nil
	}
	return m.openSet(m.upNext(nil))
}

// openAny opens what is next, be it one that was put aside.
func (m *Model) openAny() tea.Cmd {
	if next := m.upNext(nil); next != nil {
		return m.openSet(next)
	}
	return m.openSet(m.first(func(events.ID) bool { return false }))
}

// upNext is what opens by itself after a dialog, and so what the dialog names as
// next: of what was not put aside, the first. nil if there is none.
func (m *Model) upNext(after *dialog) []events.Question {
	return m.first(func(id events.ID) bool { return m.later[id] || after != nil && after.has(id) })
}

// first is the row to be answered first, without those that are left out: of those
// that press the one that ends soonest, else the oldest.
func (m *Model) first(left func(events.ID) bool) []events.Question {
	var best row
	var ends events.Micros
	for _, r := range m.waiting.rows {
		if left(m.questions[r[0]].ID) {
			continue
		}
		if best == nil {
			best = r
		}
		if end := m.presses(r); end > 0 && (ends == 0 || end < ends) {
			best, ends = r, end
		}
	}
	return m.questionsOf(best)
}

// presses is when the first question of a row ends of which the last half has
// begun, or the last minute; 0 if there is none.
func (m *Model) presses(r row) (end events.Micros) {
	for _, i := range r {
		q := &m.questions[i]
		if q.Deadline == 0 {
			continue
		}
		left, whole := q.Deadline.Time().Sub(m.now), q.Deadline.Time().Sub(q.AskedAt.Time())
		if (left < soon || left <= whole/2) && (end == 0 || q.Deadline < end) {
			end = q.Deadline
		}
	}
	return end
}

// endsSoon tells how long the question still has that ends first, if that is within
// a minute.
func (m *Model) endsSoon() (left time.Duration, ends bool) {
	left = soon
	for i := range m.questions {
		if end := m.questions[i].Deadline; end != 0 {
			left = min(left, end.Time().Sub(m.now))
		}
	}
	return left, left < soon
}
