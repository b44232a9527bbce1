package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// list is the screen without a question: everything that waits, and what was
// decided of late.
type list struct {
	cursor    int // among the questions in sight
	top       int
	filtering bool // the filter has the keys
	filter    entry
}

func (m *Model) listKey(k tea.KeyPressMsg) tea.Cmd {
	if m.list.filtering {
		return m.filterKey(k)
	}
	shown := m.filtered()
	switch k.String() {
	case "q":
		return tea.Quit
	case "/":
		m.list.filtering = true
	case "esc":
		m.list.filter.set("")
	case "up", "k":
		m.list.cursor--
	case "down", "j":
		m.list.cursor++
	case "home":
		m.list.cursor = 0
	case "end":
		m.list.cursor = len(shown) - 1
	case "enter":
		if i := m.list.cursor; i >= 0 && i < len(shown) {
			return m.open(shown[i])
		}
	}
	m.list.cursor = max(min(m.list.cursor, len(shown)-1), 0)
	return nil
}

// filterKey writes into the filter. Leaving it with Enter does nothing else:
// no key that was meant for the filter opens or answers anything.
func (m *Model) filterKey(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		m.list.filtering = false
		return nil
	case "esc":
		m.list.filter.set("")
		m.list.filtering = false
		return nil
	}
	m.list.cursor = 0
	m.list.filter.write(k)
	return nil
}

// filtered are the questions that the filter lets through.
func (m *Model) filtered() []events.Question {
	want := strings.ToLower(m.list.filter.value())
	if want == "" {
		return m.questions
	}
	var out []events.Question
	for _, q := range m.questions {
		text := card.Session(q.Agent, q.ProjectPath) + " " + m.about(q) + " " + q.Hook.ID + " " + q.Path
		if strings.Contains(strings.ToLower(text), want) {
			out = append(out, q)
		}
	}
	return out
}

func (m *Model) listView() []string {
	out := []string{m.listHeader(), m.rule()}
	room := m.height - 3 // both above and the bottom line
	shown := m.filtered()
	history := min(len(m.lines), max(room/2, 0))
	if m.list.filter.value() != "" {
		history = 0
	}
	waiting := m.waitingRows(shown, max(room-history-1, 1))
	if history = min(len(m.lines), room-len(waiting)-1); m.list.filter.value() != "" {
		history = 0
	}
	out = append(out, waiting...)
	if history > 0 {
		out = append(out, m.earlierRule())
		for _, l := range m.lines[:history] {
			out = append(out, m.lineRow(l))
		}
	}
	for len(out) < m.height-1 {
		out = append(out, "")
	}
	out = append(out[:max(m.height-1, 0)], m.listBottom())
	for i, line := range out {
		out[i] = fit(line, m.width)
	}
	return out
}

func (m *Model) waitingRows(shown []events.Question, room int) []string {
	if len(shown) == 0 {
		text := words.NothingWaits
		if len(m.questions) > 0 {
			text = words.NoMatch
		}
		return []string{" " + m.style.dim.Render(fit(m.w.Say(text), m.width-2))}
	}
	m.list.cursor = min(m.list.cursor, len(shown)-1)
	n := min(len(shown), room)
	if n < len(shown) {
		n = max(n-1, 1) // one row counts the rest
	}
	m.list.top = max(min(m.list.top, m.list.cursor), m.list.cursor-n+1, 0)
	m.list.top = min(m.list.top, len(shown)-n)
	var out []string
	for i := m.list.top; i < m.list.top+n; i++ {
		out = append(out, m.questionRow(shown[i], i == m.list.cursor))
	}
	if n < len(shown) {
		var parts []string
		if m.list.top > 0 {
			parts = append(parts, m.w.Say(words.MoreAbove, m.list.top))
		}
		if below := len(shown) - m.list.top - n; below > 0 {
			parts = append(parts, m.w.Say(words.MoreBelow, below))
		}
		out = append(out, " "+m.style.dim.Render(strings.Join(parts, " · ")))
	}
	return out
}

func (m *Model) questionRow(q events.Question, current bool) string {
	right := card.Clock(m.now.Sub(q.AskedAt.Time()))
	if q.ClaimedBy != nil {
		right = "● " + right
	}
	row := m.columns("?", string(q.Agent), q.ProjectPath, m.toolName(q.Tool, q.Kind), m.summaries[q.ID], right)
	if current {
		return m.style.accent.Render("›") + m.style.strong.Render(row)
	}
	return " " + row
}

func (m *Model) toolName(t events.Tool, kind events.Kind) string {
	if t.Name == "" || kind != events.KindToolCall && kind != "" {
		return m.w.Kind(string(kind))
	}
	return card.Line(t.Name)
}

func (m *Model) lineRow(l events.Line) string {
	row := m.columns(m.signOf(l), string(l.Agent), m.projects[l.Project], m.toolName(l.Tool, ""),
		m.summaries[l.Question], m.short(l))
	return " " + m.style.dim.Render(row)
}

// signOf is the sign of an operation in the history.
func (m *Model) signOf(l events.Line) string {
	switch l.State {
	case "aborted":
		return "–"
	case "refused":
		if l.Code == events.CodeTimedOut || l.Code == events.CodeUnavailable {
			return "⌛"
		}
		return "✕"
	}
	if l.Question == "" {
		return "·"
	}
	return "✓"
}

// columns lines up a row: sign, agent, project, tool, what it is about, and
// what is at the right edge. A narrow window has only sign, tool and the rest.
func (m *Model) columns(sign, agent, project, tool, about, right string) string {
	width := m.width - 2
	sign = pad(sign, 3)
	if m.width < 60 {
		return sides(sign+pad(tool, 11)+" "+about, fit(right, max(width/2, 8)), width)
	}
	if i := strings.LastIndexByte(project, '/'); i >= 0 {
		project = project[i+1:]
	}
	left := sign + pad(card.Line(agent), 8) + " " + pad(card.Line(project), 10) + " " + pad(tool, 11) + " "
	right = fit(right, max(width-cells(left)-8, 8))
	return sides(left+about, right, width)
}

func (m *Model) listHeader() string {
	left := m.w.Say(words.Product) + " · " + m.w.Say(words.WaitingCount, len(m.questions))
	if m.width >= 60 && m.sessions > 1 {
		left += " · " + m.w.Say(words.SessionCount, m.sessions)
	}
	right := "/ " + m.w.Say(words.Filter)
	switch {
	case !m.attached:
		right = m.w.Say(words.Detached)
	case m.list.filter.value() != "":
		right = "/ " + card.Line(m.list.filter.value())
	}
	return " " + m.style.dim.Render(sides(left, right, m.width-2))
}

func (m *Model) earlierRule() string {
	label := "─ " + m.w.Say(words.Earlier) + " "
	return " " + m.style.dim.Render(label+strings.Repeat("─", max(m.width-2-cells(label), 0)))
}

func (m *Model) listBottom() string {
	if m.list.filtering {
		keys := m.keyLine(filterKeys, m.width-16)
		room := max(m.width-cells(keys)-6, 8)
		return " / " + pad(m.list.filter.view(m.style, room, 1)[0], room) + " " + keys
	}
	text := m.noticeText()
	if text == "" {
		text = m.lastText()
	}
	if text != "" {
		return " " + m.style.dim.Render(fit(text, m.width-2))
	}
	return " " + m.keyLine(listKeys, m.width-2)
}
