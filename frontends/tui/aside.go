package tui

import (
	"slices"

	"github.com/fermata-hitl/fermata/events"
)

// maxAside is how many questions that were put aside keep their place. Of more,
// the oldest are shown from their beginning again.
const maxAside = 64

// aside is what a person left behind in questions that they put aside: where they
// were, and the words that they had written. Nothing in it answers: a button that
// had the focus has it no more.
type aside struct {
	list []place // the one that was left last is last
}

// place is where a person was in a dialog.
type place struct {
	questions      []events.ID
	at             []int // first byte in sight, by box
	current, first int
	chosen         bool
	focus          int // a box, or none
	details        bool
	detailsAt      int
	session        events.Token
	tool           string
	words          string
	composing      bool
}

func idsOf(list []events.Question) []events.ID {
	var all []events.ID
	for _, q := range list {
		all = append(all, q.ID)
	}
	return all
}

// keep notes where the person is in a dialog that is being left.
func (a *aside) keep(d *dialog) {
	if !d.ready() {
		return
	}
	p := place{
		questions: idsOf(d.questions()), current: d.current, chosen: d.chosen, first: d.first, focus: focusNone,
		session: d.lead().Session, tool: d.lead().Tool.Name, words: d.input.value(), composing: d.composing, details: d.details != nil,
	}
	for _, b := range d.all() {
		p.at = append(p.at, b.offset())
	}
	if d.details != nil {
		p.detailsAt = d.details.offset()
	}
	if d.focus >= 0 && d.focus < focusContinue {
		p.focus = d.focus
	}
	a.drop(p.questions[0])
	a.list = append(a.list, p)
	if len(a.list) > maxAside {
		a.list = a.list[1:]
	}
}

func (a *aside) drop(lead events.ID) {
	a.list = slices.DeleteFunc(a.list, func(p place) bool { return p.questions[0] == lead })
}

// restore goes back to where the person was. A dialog over other questions than
// then begins anew, with the words.
func (a *aside) restore(m *Model, d *dialog) {
	i := slices.IndexFunc(a.list, func(p place) bool { return p.questions[0] == d.lead().ID })
	if i < 0 {
		return
	}
	p := a.list[i]
	a.drop(d.lead().ID)
	d.input.set(p.words)
	boxes := d.all()
	if len(boxes) != len(p.at) || !slices.Equal(p.questions, idsOf(d.questions())) {
		return
	}
	for i, b := range boxes {
		b.at = p.at[i]
	}
	d.current, d.chosen, d.first, d.focus, d.composing = p.current, p.chosen, p.first, p.focus, p.composing
	if p.details {
		m.openDetails(d)
		d.details.seek(p.detailsAt)
	}
}

// keptAside reports whether a question was put aside with words that were not
// sent.
func (m *Model) keptAside(id events.ID) bool {
	return slices.ContainsFunc(m.aside.list, func(p place) bool {
		return p.words != "" && slices.Contains(p.questions, id)
	})
}

// forgetAside drops the places of questions that have ended. Their words stay for
// the next w.
func (m *Model) forgetAside() {
	m.aside.list = slices.DeleteFunc(m.aside.list, func(p place) bool {
		if slices.ContainsFunc(p.questions, func(id events.ID) bool { return m.index(id) >= 0 }) {
			return false
		}
		if !m.settled[p.questions[0]] {
			m.unsent(p.session, p.tool, p.words)
		}
		return true
	})
}
