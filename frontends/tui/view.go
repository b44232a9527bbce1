package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// The smallest window in which a question can be shown and answered.
const (
	leastWidth  = 40
	leastHeight = 8
)

func (m *Model) fits() bool { return m.width >= leastWidth && m.height >= leastHeight }

// roomy says that there is space for rules and white space.
func (m *Model) roomy() bool { return m.height >= 16 }

// View implements [tea.Model].
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	v.WindowTitle = m.w.Say(words.Product) + " · " + m.w.Say(words.WaitingCount, len(m.questions))
	return v
}

// screen draws at most height lines, none wider than the window.
func (m *Model) screen() []string {
	switch {
	case m.dialog != nil && !m.fits():
		return wrapLines(m.w.Say(words.TooSmall), m.width, m.height)
	case m.dialog != nil:
		return m.dialogView(m.dialog)
	}
	return m.listView()
}

func wrapLines(s string, width, height int) []string {
	w := wrap(s, width)
	var out []string
	for i := range min(w.rows(), height) {
		row, _ := w.row(i)
		out = append(out, fit(row, width))
	}
	return out
}

// frameOf is how the dialog's lines are shared out for a window: everything but
// the boxes has its fixed number of lines, so the buttons are always there.
type frameOf struct {
	labels  int   // width of the column of names
	first   int   // first value box in sight
	heights []int // of the value boxes from first on
	spaced  bool  // an empty line between the boxes
	hidden  bool  // a line counts the boxes that are out of sight
	reason  int   // height of the reason
}

// arrange lays out the boxes for the window as it is.
func (m *Model) arrange(d *dialog) frameOf {
	f := frameOf{labels: m.labelWidth(d)}
	width := m.width - f.labels - 5
	for _, b := range d.all() {
		b.layout(width)
	}
	f.reason = min(d.reason.need(), m.reasonRows())
	room := m.height - m.fixedLines() - f.reason
	if f.heights = share(d.values, room); f.heights != nil {
		total := 0
		for _, h := range f.heights {
			total += h
		}
		f.spaced = m.roomy() && total+len(d.values)-1 <= room
		return f
	}
	f.hidden = true
	m.window(d, &f, room-1)
	return f
}

// window picks the boxes in sight when not all fit: as many as fit from the
// first, moved just far enough that the current one is among them.
func (m *Model) window(d *dialog, f *frameOf, room int) {
	current := min(d.current, len(d.values)-1)
	d.first = min(d.first, current)
	for {
		n := 0
		for left := room; d.first+n < len(d.values); n++ {
			if left -= d.values[d.first+n].least(); left < 0 {
				break
			}
		}
		if n = max(n, 1); current < d.first+n {
			f.first = d.first
			f.heights = share(d.values[d.first:d.first+n], room)
			if f.heights == nil {
				f.heights = []int{room}
			}
			return
		}
		d.first++
	}
}

func (m *Model) reasonRows() int {
	switch {
	case m.height >= 20:
		return 3
	case m.height >= 12:
		return 2
	}
	return 1
}

// fixedLines counts every line of the dialog but boxes and reason: see
// dialogView.
func (m *Model) fixedLines() int {
	if m.roomy() {
		return 11
	}
	return 4
}

func (m *Model) labelWidth(d *dialog) int {
	widest := max(cells(m.w.Say(words.AskedBy)), cells(m.w.Say(words.Reason)))
	for _, b := range d.values {
		widest = max(widest, cells(b.label))
	}
	most := 10
	if m.width >= 60 {
		most = m.width / 4
	}
	return min(widest, most)
}

// dialogView draws the question. The first lines and the buttons keep their
// places for as long as the question is shown.
func (m *Model) dialogView(d *dialog) []string {
	var out []string
	if m.roomy() {
		out = append(out, m.header(d.q), m.rule())
	}
	out = append(out, m.title(d))
	if m.roomy() {
		out = append(out, m.repeat(d))
	}
	out = append(out, m.body(d)...)
	if m.roomy() {
		out = append(out, "", m.state(d), m.buttonLine(d), m.rule(), m.bottom(d))
		return out
	}
	line := m.state(d)
	if line == "" {
		line = m.bottom(d)
	}
	return append(out, line, m.buttonLine(d))
}

// body draws the boxes and where the question comes from, or the details in
// their place.
func (m *Model) body(d *dialog) []string {
	if d.card == nil {
		text := d.problem
		if text == "" {
			text = m.w.Say(words.Loading, card.Count(d.q.Version.Bytes))
		}
		return []string{" " + m.style.dim.Render(fit(text, m.width-2))}
	}
	if d.details != nil {
		return d.details.view(m, 0, m.width-1, m.heightOf(d), true)
	}
	f := m.arrange(d)
	var out []string
	for i, h := range f.heights {
		if f.spaced && i > 0 && d.values[f.first+i].sign != "+" {
			out = append(out, "")
		}
		at := f.first + i
		out = append(out, d.values[at].view(m, f.labels, m.width-1, h, m.isCurrent(d, f, at))...)
	}
	if f.hidden {
		out = append(out, " "+m.style.warn.Render(fit(m.hiddenCount(d, f), m.width-2)))
	}
	if m.roomy() {
		out = append(out, "")
	}
	out = append(out, m.askedBy(d, f.labels))
	return append(out, m.reasonView(d, f)...)
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
	if at != min(d.current, len(d.values)) {
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

// heightOf is the height of the box that scroll keys move.
func (m *Model) heightOf(d *dialog) int {
	switch {
	case d.card == nil || !m.fits():
		return 1
	case d.details != nil:
		return m.height - m.fixedLines() + m.sparedLines()
	}
	f := m.arrange(d)
	if d.current >= len(d.values) {
		return f.reason
	}
	if at := d.current - f.first; at >= 0 && at < len(f.heights) {
		return f.heights[at]
	}
	return 1
}

// sparedLines are lines that only the boxes' view needs: the hook's and the
// empty one before it.
func (m *Model) sparedLines() int {
	if m.roomy() {
		return 2
	}
	return 1
}

func (m *Model) pageOf(d *dialog) int { return m.currentBox(d).page(m.heightOf(d)) }

func (m *Model) rule() string {
	return " " + m.style.dim.Render(strings.Repeat("─", max(m.width-2, 0)))
}

func (m *Model) header(q events.Question) string {
	left := m.w.Say(words.Product) + " · " + m.w.Say(words.WaitingCount, len(m.questions))
	if m.width < 60 {
		left = m.w.Say(words.WaitingCount, len(m.questions))
	}
	right := card.Session(q.Agent, q.ProjectPath)
	if !m.attached {
		right = m.w.Say(words.Detached)
	}
	return " " + m.style.dim.Render(sides(left, right, m.width-2))
}

// title names the tool, says when it is asked again, and how long it waits.
func (m *Model) title(d *dialog) string {
	name := card.Line(d.q.Tool.Name)
	if d.card != nil {
		name = d.card.Title
	}
	again := ""
	if d.q.Previous >= 0 {
		again = " · " + m.w.Say(words.AskedAgain, d.q.Attempt)
	}
	right, urgent := m.times(d.q)
	room := m.width - 2 - cells(right) - 2
	left := fit(name, room)
	if again != "" {
		left = m.style.strong.Render(left) + m.style.warn.Render(fit(again, room-cells(left)))
	} else {
		left = m.style.strong.Render(left)
	}
	style := m.style.dim
	if urgent {
		style = m.style.warn
	}
	return " " + pad(left, m.width-2-cells(right)) + style.Render(right)
}

// repeat says, in a line that is otherwise empty, why it is asked again.
func (m *Model) repeat(d *dialog) string {
	if d.q.Previous < 0 {
		return ""
	}
	names := changedNames(d.q.Changed, m.valueName(d))
	text := m.w.Say(words.HookChanged, names)
	if cells(text) > m.width-2 {
		text = m.w.Say(words.HookChangedShort, names)
	}
	return " " + m.style.warn.Render(fit(text, m.width-2))
}

func changedNames(list []events.Change, whole string) string {
	var all []string
	for _, c := range list {
		if c.Name == "" {
			c.Name = whole
		}
		all = append(all, card.Line(c.Name))
	}
	return strings.Join(all, ", ")
}

// times says how long the question waits and, with a limit, what is left. It is
// urgent in the last fifth.
func (m *Model) times(q events.Question) (text string, urgent bool) {
	asked := q.AskedAt.Time()
	clock := card.Clock(m.now.Sub(asked))
	text = m.w.Say(words.AskedAgo, clock)
	if m.width < 60 {
		text = clock
	}
	if q.Deadline == 0 {
		return text, false
	}
	left := q.Deadline.Time().Sub(m.now)
	urgent = left <= q.Deadline.Time().Sub(asked)/5
	remains := m.w.Say(words.TimeLeft, card.Clock(left))
	if m.width < 60 {
		return remains, urgent
	}
	return text + " · " + remains, urgent
}

// askedBy names the hook and where it stands.
func (m *Model) askedBy(d *dialog, labels int) string {
	left := " " + m.style.dim.Render(pad(m.w.Say(words.AskedBy), labels)) + "   "
	room := m.width - labels - 5
	if m.width < 60 {
		left, room = " ", m.width-2
	}
	hook, origin := d.card.Hook, d.card.Origin
	if cells(hook)+3+cells(origin) > room {
		// The place in the file says more than the scope before it.
		if _, place, ok := strings.Cut(origin, " "); ok {
			origin = place
		}
	}
	gap := "   "
	if m.width < 60 {
		gap = "  "
	}
	text := fit(hook, room)
	if rest := room - cells(text) - cells(gap); rest > 6 {
		text += gap + m.style.dim.Render(fit(origin, rest))
	}
	return left + text
}
