package tui

import (
	tea "charm.land/bubbletea/v2"
)

// span is where a box was drawn: rows from to, without to.
type span struct{ box, from, to int }

func (d *dialog) span(box, from, height int) {
	d.spans = append(d.spans, span{box, from, from + height})
}

// apart says that an empty line may stand before the box.
func (b *box) apart() bool { return b.kind != boxNow && b.kind != boxNote }

// wheelAt scrolls the box that stands in a row of the window, or the current one
// where none does. A wheel answers nothing, so it turns at any time; it claims only
// when keys count.
func (m *Model) wheelAt(row, by int) tea.Cmd {
	d := m.dialog
	if d == nil || !d.ready() || !m.fits() {
		return nil
	}
	if d.details == nil {
		for _, s := range d.spans {
			if s.from <= row && row < s.to {
				d.choice(s.box)
			}
		}
	}
	m.currentBox(d).scroll(by, m.heightOf(d))
	if !d.grace.passed(m.now) {
		return nil
	}
	return m.looked(d)
}

// boxZones lets a click choose the box that scroll keys move.
func (m *Model) boxZones(d *dialog) {
	for _, s := range d.spans {
		for row := s.from; row < s.to; row++ {
			m.zone(row, 0, m.width, func() tea.Cmd {
				if m.dialog != d || s.box >= len(d.all()) {
					return nil
				}
				d.choice(s.box)
				return m.looked(d)
			})
		}
	}
}
