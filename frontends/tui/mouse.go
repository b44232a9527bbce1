package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// zone is a part of the screen that a click acts on: the columns from to, without
// to, of a row, both counted from 0 at the window's edge. The views register their
// zones with m.zone while they draw, so a click means what the person saw.
type zone struct {
	row, from, to int
	act           func() tea.Cmd
}

// zone registers a part of the screen that is being drawn. What lies above hides
// what lies below: of two zones at one place the later counts.
func (m *Model) zone(row, from, to int, act func() tea.Cmd) {
	m.zones = append(m.zones, zone{row, from, to, act})
}

// mouse takes a click or a turn of the wheel. A click in a dialog counts when a
// key would count.
func (m *Model) mouse(msg tea.MouseMsg) tea.Cmd {
	at := msg.Mouse()
	switch msg.(type) {
	case tea.MouseWheelMsg:
		return m.turnWheel(at)
	case tea.MouseClickMsg:
		if at.Button == tea.MouseLeft {
			return m.click(at.X, at.Y)
		}
	}
	return nil
}

func (m *Model) click(column, row int) tea.Cmd {
	m.o.Client.Input()
	if d := m.dialog; d != nil && !d.grace.takes(m.now) {
		return nil
	}
	for _, z := range slices.Backward(m.zones) {
		if z.row == row && z.from <= column && column < z.to {
			if m.notice = (notice{}); m.dialog == nil {
				m.last, m.ended = "", "" // it was read
			}
			return z.act()
		}
	}
	return nil
}

// wheelRows is how far one turn of the wheel moves what is under it.
const wheelRows = 3

func (m *Model) turnWheel(at tea.Mouse) tea.Cmd {
	by := wheelRows
	switch at.Button {
	case tea.MouseWheelUp:
		by = -wheelRows
	case tea.MouseWheelDown:
	default:
		return nil
	}
	m.o.Client.Input()
	switch {
	case m.dialog != nil:
		return m.wheelAt(at.Y, by)
	case m.on == screenHooks:
		m.moveRun(by)
	case m.on != screenList:
		m.page.scroll(by)
	default:
		m.list.lower = m.list.firstEarlier > 0 && at.Y >= m.list.firstEarlier
		m.moveCursor(by)
	}
	return nil
}

// toggleMouse hands the mouse to the terminal, whose own selection then works, or
// takes it back.
func (m *Model) toggleMouse() {
	m.captures = !m.captures
	text := words.MouseTerminal
	if m.captures {
		text = words.MouseHere
	}
	m.notice = notice{text: m.w.Say(text)}
}

// terminal says what the terminal should do besides showing the frame. View calls
// it last.
func (m *Model) terminal(v *tea.View) {
	v.ReportFocus = true
	v.WindowTitle = m.windowTitle()
	if m.captures {
		v.MouseMode = tea.MouseModeCellMotion
	}
}
