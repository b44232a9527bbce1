package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// View implements [tea.Model].
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	m.terminal(&v)
	m.paint()
	return v
}

// screen draws at most height lines, none wider than the window.
func (m *Model) screen() []string {
	switch {
	case m.dialog != nil && !m.fits():
		return wrapLines(m.w.Say(words.TooSmall), m.width, m.height)
	case m.dialog != nil:
		return m.dialogView(m.dialog)
	case m.o.Question != "":
		return m.onceView()
	}
	return m.listView()
}

func wrapLines(s string, width, height int) []string {
	w := wrap(s, width)
	var out []string
	for i := range min(w.Len(), height) {
		row, _ := w.Row(i)
		out = append(out, fit(row, width))
	}
	return out
}

// dialogView draws the question. The first lines and the buttons keep their
// places for as long as the question is shown; only words that are being
// written push the buttons down, into rows that are free.
func (m *Model) dialogView(d *dialog) []string {
	f := m.arrange(d)
	out := m.top(d, f.airy)
	out = append(out, m.body(d, f, len(out))...)
	foot := m.foot(d, f.airy, 1)
	if free := m.height - len(out) - len(foot); d.composing && free > 0 {
		foot = m.foot(d, f.airy, 1+free)
	}
	out = append(out, foot...)
	keys := m.buttonLines(d)
	at := len(out) - len(keys)
	if m.roomy() {
		at -= 2
	}
	for i, row := range keys {
		m.zonesOf(d, at+i, row)
	}
	m.boxZones(d)
	return out
}

// top are the lines above the values.
func (m *Model) top(d *dialog, airy bool) []string {
	var out []string
	if m.roomy() {
		out = append(out, m.header(d), m.rule())
	}
	out = append(out, m.title(d))
	if airy || m.roomy() && m.repeat(d) != "" {
		out = append(out, m.repeat(d))
	}
	return out
}

// foot are the lines below the values. What is being written has up to a number
// of rows.
func (m *Model) foot(d *dialog, airy bool, rows int) []string {
	var out []string
	if airy {
		out = append(out, "")
	}
	if marks := m.marksText(d); marks != "" && !m.cramped() {
		out = append(out, m.indent()+m.style.warn.Render(fit(marks, m.stateWidth())))
	}
	state := m.state(d, rows)
	if !m.roomy() && state[0] == "" {
		state[0] = m.bottom(d)
	}
	out = append(out, state...)
	for _, row := range m.buttonLines(d) {
		out = append(out, row.text)
	}
	if m.roomy() {
		out = append(out, m.rule(), m.bottom(d))
	}
	return out
}

// body draws the boxes and where the question comes from, or the details in
// their place, from a row of the window on.
func (m *Model) body(d *dialog, f frameOf, row int) []string {
	d.spans = d.spans[:0]
	if !d.ready() {
		return []string{" " + m.style.dim.Render(fit(m.fetching(d), m.width-2))}
	}
	if d.details != nil {
		if d.wide != m.width {
			m.openDetails(d)
		}
		return d.details.view(m, 0, m.width-1, m.bodyRows(d, f.airy), true)
	}
	var out []string
	for i, h := range f.heights {
		at := f.first + i
		if f.spaced && i > 0 && d.values[at].apart() {
			out = append(out, "")
		}
		d.span(at, row+len(out), h)
		out = append(out, d.values[at].view(m, f.labels, m.width-1, h, m.isCurrent(d, f, at))...)
	}
	if f.hidden {
		for len(out) < f.room {
			out = append(out, "") // the buttons stay where they are
		}
		out = append(out, " "+m.style.warn.Render(fit(m.hiddenCount(d, f), m.width-2)))
	}
	out = append(out, m.source(d, f)...)
	if d.reason == nil {
		return out
	}
	d.span(len(d.values), row+len(out), f.reason)
	return append(out, m.reasonView(d, f)...)
}

func (m *Model) fetching(d *dialog) string {
	if d.problem != "" {
		return d.problem
	}
	bytes := 0
	for _, p := range d.parts {
		bytes += p.lead().Version.Bytes
	}
	return m.w.Say(words.Loading, card.Count(bytes))
}

// source says which hook asks. A window that is cramped in both directions
// leaves it to "?". In a set each part says so itself.
func (m *Model) source(d *dialog, f frameOf) []string {
	switch {
	case d.set():
		return nil
	case f.airy:
		return []string{"", m.askedBy(d, f.labels)}
	case m.cramped() && !m.oneRow():
		return nil
	}
	return []string{m.askedBy(d, f.labels)}
}

// reasonView draws the reason. Where there is one line for a longer reason, it
// shows where to read on.
func (m *Model) reasonView(d *dialog, f frameOf) []string {
	if f.reason > 1 || d.reason.need() == 1 {
		return d.reason.view(m, f.labels, m.width-1, f.reason, m.isCurrent(d, f, len(d.values)))
	}
	text := strings.ReplaceAll(d.reason.text, "\n", " ⏎ ")
	hint := "  (?)"
	label := m.style.dim.Render(pad(d.reason.label, f.labels))
	return []string{" " + label + "   " + m.marked(fit(text, m.width-f.labels-5-len(hint))) + m.style.dim.Render(hint)}
}

// isCurrent says whether a box is drawn as the one that keys scroll: only where
// that matters, because something scrolls or because the person chose it.
func (m *Model) isCurrent(d *dialog, f frameOf, at int) bool {
	if at != min(d.current, len(d.all())-1) {
		return false
	}
	if d.focus == at || f.hidden || d.current > 0 {
		return true
	}
	for i, h := range f.heights {
		if d.values[f.first+i].need() > h {
			return true
		}
	}
	return false
}

func (m *Model) hiddenCount(d *dialog, f frameOf) string {
	var parts []string
	if f.first > 0 {
		parts = append(parts, m.w.Say(words.MoreAbove, f.first))
	}
	if below := len(d.values) - f.first - len(f.heights); below > 0 {
		parts = append(parts, m.w.Say(words.MoreBelow, below))
	}
	return strings.Join(parts, " · ")
}

func (m *Model) rule() string {
	return " " + m.style.dim.Render(strings.Repeat("─", max(m.width-2, 0)))
}

func (m *Model) header(d *dialog) string {
	left := m.w.Say(words.Product) + " · " + m.w.Say(words.WaitingCount, len(m.questions))
	if m.width < 60 {
		left = m.w.Say(words.WaitingCount, len(m.questions))
	}
	right := ""
	if !d.set() {
		right = card.Session(d.lead().Agent, d.lead().ProjectPath)
	}
	if !m.attached {
		right = m.w.Say(words.Detached)
	}
	return " " + m.style.dim.Render(sides(left, right, m.width-2))
}

// title names the tool and who in the agent wants it, says when it is asked
// again, and how long it waits. Of a set it counts the questions.
func (m *Model) title(d *dialog) string {
	name, again := m.partTitle(d.parts[0]), ""
	if d.set() {
		name = m.w.Say(words.QuestionCount, len(d.questions())) + m.where(d)
	} else if d.parts[0].again() {
		again = " · " + m.w.Say(words.AskedAgain, d.lead().Attempt)
	}
	right, urgent := m.times(d.soonest())
	room := m.width - 2 - cells(right) - 2
	left := fit(name, room)
	room -= cells(left)
	again = fit(again, room)
	path := m.pathText(d, room-cells(again))
	if !m.roomy() && !d.set() { // there is no header that says it
		path += m.whose(d, room-cells(again)-cells(path))
	}
	left = m.style.strong.Render(left) + m.style.dim.Render(path) + m.style.warn.Render(again)
	style := m.style.dim
	if urgent {
		style = m.style.warn
	}
	return " " + pad(left, m.width-2-cells(right)) + style.Render(right)
}

// whose names agent and project where room allows, at least the agent.
func (m *Model) whose(d *dialog, room int) string {
	q := d.lead()
	for _, text := range []string{card.Session(q.Agent, q.ProjectPath), card.Line(string(q.Agent))} {
		if text = " · " + text; cells(text) <= room {
			return text
		}
	}
	return ""
}

// where says which part of a set the current box is of.
func (m *Model) where(d *dialog) string {
	if !d.ready() || !d.chosen {
		return ""
	}
	at := d.values[min(d.current, len(d.values)-1)].part
	return " · " + m.w.Say(words.PartOf, at+1, len(d.parts), m.partTitle(d.parts[at]))
}

// soonest has the times of what waits longest and of what ends first.
func (d *dialog) soonest() events.Question {
	first := d.lead()
	for _, q := range d.questions() {
		first.AskedAt = min(first.AskedAt, q.AskedAt)
		if first.Deadline == 0 || q.Deadline != 0 && q.Deadline < first.Deadline {
			first.Deadline = q.Deadline
		}
	}
	return first
}

// pathText names the sub-agent or workflow that wants the call, nothing for the
// agent itself. Where room is short, its own name is what stays.
func (m *Model) pathText(d *dialog, room int) string {
	const before = " · "
	c := d.parts[0].card
	if d.set() || c == nil || c.Path == "" || room <= cells(before) {
		return ""
	}
	return before + fitLeft(c.Path, room-cells(before))
}

// repeat says, in a line that is otherwise empty, why it is asked again, or that
// the agent asked for something else.
func (m *Model) repeat(d *dialog) string {
	c := d.parts[0].card
	if d.set() || c == nil || c.ChangedIn == "" {
		return ""
	}
	text := c.ChangedIn
	if names := m.changedNames(d.lead()); cells(text) > m.width-2 && !c.First {
		text = m.w.Say(words.HookChangedShort, names)
	}
	return " " + m.style.warn.Render(fit(text, m.width-2))
}

func (m *Model) changedNames(q events.Question) string {
	var all []string
	for _, c := range q.Changed {
		if c.Name == "" {
			c.Name = card.Whole(q.Kind, m.w)
		}
		all = append(all, card.Line(c.Name))
	}
	return m.w.List(all)
}

// times says how long the question waits and, with a limit, what is left. It is
// urgent in the last fifth.
func (m *Model) times(q events.Question) (text string, urgent bool) {
	clock := card.Clock(m.now.Sub(q.AskedAt.Time()))
	text = m.w.Say(words.AskedAgo, clock)
	if m.width < 60 {
		text = clock
	}
	left, urgent := m.teller().Left(q)
	switch {
	case left == "":
		return text, false
	case m.width < 60:
		return left, urgent
	}
	return text + " · " + left, urgent
}

// askedBy names the hook and where it stands.
func (m *Model) askedBy(d *dialog, labels int) string {
	left := " " + m.style.dim.Render(pad(m.w.Say(words.AskedBy), labels)) + "   "
	room := m.width - labels - 5
	if m.width < 60 {
		left, room = " ", m.width-2
	}
	gap := "   "
	if m.width < 60 {
		gap = "  "
	}
	hook, origin := d.parts[0].card.Hook, d.parts[0].card.Origin
	if cells(hook+gap+origin) > room {
		// The place in the file says more than the scope before it.
		if _, place, ok := strings.Cut(origin, " "); ok {
			origin = place
		}
	}
	text := fitMiddle(hook, room-cells(gap)-min(cells(origin), room/2))
	text += gap + m.style.dim.Render(fitPlace(origin, room-cells(text+gap)))
	return left + text
}
