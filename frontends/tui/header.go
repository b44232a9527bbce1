package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// listHeader counts what waits at the left, and names the keys of the whole screen
// at the right. A click on one is the key.
func (m *Model) listHeader() string {
	parts := []string{m.style.dim.Render(m.w.Say(words.Product) + " · " + m.waitingText())}
	if left, ends := m.endsSoon(); ends {
		parts = append(parts, m.style.warn.Render(m.w.Say(words.EndsIn, card.Clock(left))))
	}
	if m.width >= 60 && m.sessions > 1 {
		parts = append(parts, m.style.dim.Render(m.w.Say(words.SessionCount, m.sessions)))
	}
	if text := m.tickedText(); text != "" {
		parts = append(parts, m.style.dim.Render(text))
	}
	if m.width < 60 && len(parts) > 1 { // the name gives way
		parts[0] = m.style.dim.Render(m.waitingText())
	}
	left := strings.Join(parts, m.style.dim.Render(" · "))
	return " " + sides(left, m.style.dim.Render(m.headerKeys()), m.width-2)
}

// headerKeys is the right end of the list's header, and where it can be clicked.
func (m *Model) headerKeys() string {
	filter, help := "/ "+m.w.Say(words.Filter), "? "+m.w.Say(words.Help)
	edge := m.width - 1
	zone := func(from int, text, key string) {
		m.zone(0, from, from+cells(text), func() tea.Cmd { return m.pressed(key) })
	}
	switch {
	case !m.attached:
		return m.w.Say(words.Detached)
	case m.list.filter.value() != "":
		text := fit("/ "+card.Line(m.list.filter.value()), m.width/2)
		zone(edge-cells(text), text, "/")
		return text
	case m.width < 60:
		zone(edge-cells(help), help, "?")
		return help
	}
	text := filter + "   " + help
	zone(edge-cells(text), filter, "/")
	zone(edge-cells(help), help, "?")
	return text
}

// waitingText counts what waits, and with a filter how much of it is shown.
func (m *Model) waitingText() string {
	if m.list.filter.value() == "" {
		return m.w.Say(words.WaitingCount, len(m.questions))
	}
	shown := 0
	for _, r := range m.filtered() {
		shown += len(r)
	}
	return m.w.Say(words.WaitingOf, shown, len(m.questions))
}

// tickedText counts the ticks, with those of rows that the filter hides.
func (m *Model) tickedText() string {
	all, shown := len(m.waiting.ticked), 0
	if all == 0 {
		return ""
	}
	for _, r := range m.filtered() {
		for _, i := range r {
			if m.waiting.ticked[m.questions[i].ID] {
				shown++
			}
		}
	}
	if shown < all {
		return m.w.Say(words.TickedHidden, all, all-shown)
	}
	return m.w.Say(words.TickedCount, all)
}

// asideText is what a screen beside the list says of what happens there: how much
// waits, and that no core is there.
func (m *Model) asideText() string {
	var parts []string
	if n := len(m.questions); n > 0 {
		parts = append(parts, m.style.accent.Render(m.w.Say(words.WaitingCount, n)))
	}
	if !m.attached {
		parts = append(parts, m.style.warn.Render(m.w.Say(words.Detached)))
	}
	return strings.Join(parts, m.style.dim.Render(" · "))
}

// asideHeader is the header of a screen beside the list.
func (m *Model) asideHeader(title string) string {
	return " " + sides(title, m.asideText(), m.width-2)
}

// countSessions counts the sessions in which something waits.
func countSessions(questions []events.Question) int {
	seen := map[[2]events.Token]bool{}
	for i := range questions {
		seen[[2]events.Token{questions[i].Project, questions[i].Session}] = true
	}
	return len(seen)
}
