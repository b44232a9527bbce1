package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// page is text that fills the screen below a title, and scrolls.
type page struct{ top, rows, room int }

// scroll moves the text by rows.
func (p *page) scroll(by int) { p.top = max(min(p.top+by, p.rows-p.room), 0) }

// field is a name and its value, escaped. One without a name goes on with the one
// before; one with neither is an empty line.
type field struct {
	name, value string
	warn, head  bool // head is a heading, above what follows
}

var pageKeys = []button{{"↑ ↓", words.Scroll, focusNone}, {"Esc", words.Back, focusNone}, {"q", words.ToList, focusNone}}

// pageView draws fields below a title, names in a column of their own.
func (m *Model) pageView(title string, fields []field) []string {
	out := m.head(m.asideHeader(m.style.strong.Render(title)))
	names := 0
	for _, f := range fields {
		names = max(names, cells(f.name))
	}
	names = min(names, max(m.width/4, 10))
	var rows []string
	for _, f := range fields {
		rows = append(rows, m.fieldRows(f, names)...)
	}
	m.page.rows, m.page.room = len(rows), max(m.height-len(out)-1, 1)
	below := len(rows) > m.page.room && m.page.room > 1
	if below {
		m.page.room--
	}
	m.page.scroll(0)
	to := min(m.page.top+m.page.room, len(rows))
	out = append(out, rows[m.page.top:to]...)
	if below {
		out = append(out, " "+m.style.dim.Render(m.more(m.page.top, to, len(rows))))
	}
	return m.fill(out, m.keysLine(pageKeys))
}

func (m *Model) fieldRows(f field, names int) []string {
	if f.head {
		return []string{" " + m.style.strong.Render(fit(f.value, m.width-2))}
	}
	style := lipgloss.NewStyle()
	if f.warn {
		style = m.style.warn
	}
	var out []string
	label := fitMiddle(f.name, names)
	for line := range strings.SplitSeq(f.value, "\n") {
		w := wrap(line, m.width-names-5)
		for i := range w.Len() {
			row, _ := w.Row(i)
			out = append(out, " "+m.style.dim.Render(pad(label, names))+"   "+style.Render(fitRow(row, m.width-names-5)))
			label = ""
		}
	}
	return out
}

// sideKey takes a key of a screen that stands beside the list.
func (m *Model) sideKey(key string) tea.Cmd {
	by, moves := m.moves(key)
	switch {
	case moves && m.on == screenHooks:
		m.moveRun(by)
	case moves:
		m.page.scroll(by)
	case key == "q":
		m.on = screenList
		return m.openDue()
	case key == "m":
		m.toggleMouse()
	case key == "enter" && m.on == screenHooks:
		return m.openRun()
	case key == "n":
		return m.openAny()
	case key == "esc" || key == "h" && m.on == screenHooks || key == "?" && m.on == screenHelp:
		return m.goBack()
	}
	return nil
}

// goBack leads from a page to the list that it was opened from. Back in the list of
// questions, what came meanwhile opens.
func (m *Model) goBack() tea.Cmd {
	if m.on == screenRun {
		m.on = screenHooks
		return nil
	}
	m.on = screenList
	return m.openDue()
}
