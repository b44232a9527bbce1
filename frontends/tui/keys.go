package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// maxWords is how many bytes of words an answer carries to the model.
const maxWords = 16 << 10

// What Tab can choose: nothing, then boxes by their number, then the buttons.
const (
	focusNone     = -1
	focusContinue = 1 << 20
	focusCancel   = focusContinue + 1
	focusWords    = focusContinue + 2
)

// key takes one key. Nothing a person typed before the question could be read
// gets past the grace; only Ctrl+C always ends the program.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == "ctrl+c" {
		return tea.Quit // the core hears that this screen goes, and frees its claims
	}
	m.o.Client.Input()
	d := m.dialog
	if d == nil {
		m.notice = notice{}
		if m.o.Question != "" {
			return m.onceKey(k.String())
		}
		return m.listKey(k)
	}
	if !m.fits() {
		return m.hiddenKey(k.String())
	}
	// Words are no answer, so they are never lost; what sends them is one.
	counts := d.grace.takes(m.now)
	if !counts && (!d.composing || k.String() == "enter") {
		return nil
	}
	m.notice = notice{}
	switch {
	case d.composing:
		return m.composerKey(d, k)
	case d.sending:
		return m.sendingKey(d, k.String())
	}
	return m.dialogKey(d, k.String())
}

// hiddenKey takes a key while the window is too small to show the question.
func (m *Model) hiddenKey(key string) tea.Cmd {
	if key == "q" {
		return tea.Quit
	}
	return nil
}

// sendingKey takes a key while an answer is on its way: one may always leave.
func (m *Model) sendingKey(d *dialog, key string) tea.Cmd {
	switch key {
	case "q":
		return tea.Quit
	case "esc":
		return m.back(d)
	}
	return nil
}

// paste goes into a line that is being written and nowhere else.
func (m *Model) paste(p tea.PasteMsg) {
	m.o.Client.Input()
	d := m.dialog
	switch {
	case d == nil && m.list.filtering:
		m.list.filter.write(p)
	case d != nil && m.fits():
		d.grace.takes(m.now)
		if d.composing {
			d.input.write(p)
		}
	}
}

func (m *Model) dialogKey(d *dialog, key string) tea.Cmd {
	switch key {
	case "esc":
		return m.back(d)
	case "n", "N":
		return m.turn(key == "n")
	case "q":
		return tea.Quit
	case "c":
		return m.answer(d, events.AnswerContinue, "")
	case "x":
		return m.answer(d, events.AnswerCancel, "")
	case "w":
		return m.compose(d)
	case "enter":
		return m.press(d)
	case "y":
		return m.copy(d)
	case "m":
		m.toggleMouse()
		return nil
	case "o":
		return tea.Batch(m.looked(d), m.openPager(d))
	}
	m.look(d, key)
	return m.looked(d)
}

// look moves focus and view, and changes nothing else.
func (m *Model) look(d *dialog, key string) {
	switch key {
	case "tab":
		m.moveFocus(d, 1)
	case "shift+tab":
		m.moveFocus(d, -1)
	case "?":
		m.toggleDetails(d)
	case "up", "k":
		m.scroll(d, -1)
	case "down", "j":
		m.scroll(d, 1)
	case "pgup":
		m.turnPage(d, -1)
	case "pgdown", "space":
		m.turnPage(d, 1)
	case "home":
		d.chosen = true
		m.currentBox(d).scroll(-farthest, m.heightOf(d))
	case "end":
		d.chosen = true
		m.currentBox(d).scroll(farthest, m.heightOf(d))
	}
}

// press acts on the button that has the focus. There is none at first.
func (m *Model) press(d *dialog) tea.Cmd {
	switch d.focus {
	case focusContinue:
		return m.answer(d, events.AnswerContinue, "")
	case focusCancel:
		return m.answer(d, events.AnswerCancel, "")
	case focusWords:
		return m.compose(d)
	}
	return nil
}

// back closes what is open in front, then puts the question aside: the list stays
// until somebody asks anew, and the question keeps its place.
func (m *Model) back(d *dialog) tea.Cmd {
	if d.details != nil {
		d.details = nil
		return nil
	}
	if m.o.Question != "" {
		return tea.Quit
	}
	for _, q := range m.questions {
		m.later[q.ID] = true
	}
	if d.sending { // the answer on its way needs the claims
		m.aside.keep(d)
		m.dialog = nil
		return nil
	}
	return m.leave()
}

// turn shows the next or the previous question, with a grace of its own.
func (m *Model) turn(forward bool) tea.Cmd {
	if next := m.neighbour(m.dialog, forward); next != nil {
		return m.openSet(next)
	}
	return nil
}

// neighbour is what comes next, or what came before, beside everything that the
// dialog is about; nil when nothing else waits.
func (m *Model) neighbour(d *dialog, forward bool) []events.Question {
	rows := m.waiting.rows
	at := slices.IndexFunc(rows, func(r row) bool { return d.has(m.questions[r[0]].ID) })
	for i := range rows {
		by := i + 1
		if !forward {
			by = len(rows) - i - 1
		}
		if r := rows[(max(at, 0)+by)%len(rows)]; !d.has(m.questions[r[0]].ID) {
			return m.questionsOf(r)
		}
	}
	return nil
}

// all are the boxes in the order in which keys reach them.
func (d *dialog) all() []*box {
	if d.reason == nil {
		return d.values
	}
	return append(slices.Clip(d.values), d.reason)
}

func (m *Model) currentBox(d *dialog) *box {
	switch {
	case d.details != nil:
		return d.details
	case !d.ready():
		return &box{rows: wrap("", 2)}
	}
	all := d.all()
	return all[min(d.current, len(all)-1)]
}

// scroll moves the current box, and beyond its end to the next one.
func (m *Model) scroll(d *dialog, by int) {
	b := m.currentBox(d)
	if m.takeUp(d) || b.scroll(by, m.heightOf(d)) || d.details != nil || !d.ready() {
		return
	}
	next := d.current + 1
	if by < 0 {
		next = d.current - 1
	}
	if next >= 0 && next < len(d.all()) {
		d.choice(next)
	}
}

// turnPage moves the current box by what it shows, and beyond its end goes to the
// next box of which not everything is in sight.
func (m *Model) turnPage(d *dialog, by int) {
	page := max(m.pageOf(d)-1, 1)
	if m.takeUp(d) || m.currentBox(d).scroll(by*page, m.heightOf(d)) || d.details != nil || !d.ready() {
		return
	}
	f := m.arrange(d)
	for next := d.current + by; next >= 0 && next < len(d.all()); next += by {
		at := next - f.first
		if at < 0 || at >= len(f.heights) {
			d.first = next // what was in sight has been read
			d.choice(next)
			return
		}
		if d.values[next].need() > f.heights[at] {
			d.choice(next)
			return
		}
	}
}

// takeUp makes the first box that scrolls the person's choice, and reports whether
// that alone brought more of it into sight: then nothing else moves, or what came
// would be gone before it was read.
func (m *Model) takeUp(d *dialog) bool {
	before := m.heightOf(d)
	if d.chosen || !d.ready() {
		return false
	}
	d.chosen = true
	return m.currentBox(d).need() > before && m.heightOf(d) > before
}

// choice makes a box the current one because the person wants it.
func (d *dialog) choice(at int) { d.current, d.chosen = at, true }

// moveFocus goes through nothing, the boxes and the buttons, in that order.
func (m *Model) moveFocus(d *dialog, by int) {
	if !d.ready() {
		return
	}
	order := []int{focusNone}
	for i := range d.all() {
		order = append(order, i)
	}
	order = append(order, focusContinue, focusCancel, focusWords)
	at := 0
	for i, f := range order {
		if f == d.focus {
			at = i
		}
	}
	d.focus = order[(at+by+len(order))%len(order)]
	if d.focus >= 0 && d.focus < focusContinue {
		d.choice(d.focus)
	}
}

func (m *Model) compose(d *dialog) tea.Cmd {
	if !m.answerable(d) {
		return nil
	}
	d.composing, d.details = true, nil
	if w, q := m.draft, d.lead(); d.input.value() == "" && w.session == q.Session && w.tool == q.Tool.Name {
		d.input.set(w.text) // words whose question ended
	}
	return m.engage(d)
}

func (m *Model) composerKey(d *dialog, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		d.composing = false // the words stay for the next w
		return nil
	case "enter":
		return m.sendWords(d)
	}
	if d.sending {
		return nil
	}
	d.input.write(k)
	return nil
}

func (m *Model) sendWords(d *dialog) tea.Cmd {
	text := d.input.value()
	if !m.answerable(d) && !d.sending {
		why, _ := m.stateText(d)
		m.notice = notice{text: why} // the line that says so has the words in it
		return nil
	}
	if len(text) > maxWords {
		m.notice = notice{text: m.w.Say(words.WordsTooLong, card.Count(len(text)), card.Count(maxWords))}
		return nil
	}
	return m.answer(d, events.AnswerCancel, text)
}

// copy puts the current value, as the bytes are, on the terminal's clipboard.
func (m *Model) copy(d *dialog) tea.Cmd {
	b := m.currentBox(d)
	if b.raw == "" {
		return nil
	}
	m.notice = notice{text: m.w.Say(words.Copied, b.label, card.Count(len(b.raw)))}
	return tea.SetClipboard(b.raw)
}
