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
		return tea.Sequence(m.release(), tea.Quit)
	}
	m.o.Client.Input()
	d := m.dialog
	if d == nil {
		m.notice = notice{}
		return m.listKey(k)
	}
	if !d.grace.takes(m.now) {
		return nil
	}
	m.notice = notice{}
	if d.composing {
		return m.composerKey(d, k)
	}
	if d.sending {
		return nil
	}
	return m.dialogKey(d, k.String())
}

// paste goes into a line that is being written and nowhere else.
func (m *Model) paste(p tea.PasteMsg) {
	m.o.Client.Input()
	d := m.dialog
	switch {
	case d == nil && m.list.filtering:
		m.list.filter.write(p)
	case d != nil && d.grace.takes(m.now) && d.composing:
		d.input.write(p)
	}
}

func (m *Model) dialogKey(d *dialog, key string) tea.Cmd {
	switch key {
	case "esc":
		return m.back(d)
	case "n", "N":
		return m.turn(key == "n")
	case "q":
		return tea.Sequence(m.release(), tea.Quit)
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
	}
	m.look(d, key)
	if m.lockedBy(d) != nil {
		return nil // looking takes nothing over
	}
	return m.engage(d)
}

// look moves focus and view, and changes nothing else.
func (m *Model) look(d *dialog, key string) {
	page := max(m.pageOf(d)-1, 1)
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
		m.scroll(d, -page)
	case "pgdown", "space":
		m.scroll(d, page)
	case "home":
		m.currentBox(d).top = 0
	case "end":
		m.currentBox(d).top = m.currentBox(d).need()
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

// back closes what is open in front, then puts the question aside.
func (m *Model) back(d *dialog) tea.Cmd {
	if d.details != nil {
		d.details = nil
		return nil
	}
	for _, q := range m.questions {
		m.later[q.ID] = true // the list stays until somebody asks anew
	}
	cmd := m.release()
	m.list.cursor = max(m.index(d.q.ID), 0)
	m.dialog = nil
	return cmd
}

// turn shows the next or the previous question, with a grace of its own.
func (m *Model) turn(forward bool) tea.Cmd {
	if len(m.questions) < 2 {
		return nil
	}
	by := len(m.questions) - 1
	if forward {
		by = 1
	}
	return m.open(m.questions[(m.index(m.dialog.q.ID)+by)%len(m.questions)])
}

// all are the boxes in the order in which keys reach them.
func (d *dialog) all() []*box { return append(slices.Clip(d.values), d.reason) }

func (m *Model) currentBox(d *dialog) *box {
	switch {
	case d.details != nil:
		return d.details
	case d.card == nil:
		return &box{rows: wrap("", 2)}
	}
	return d.all()[min(d.current, len(d.values))]
}

// scroll moves the current box, and beyond its end to the next one.
func (m *Model) scroll(d *dialog, by int) {
	b := m.currentBox(d)
	if b.scroll(by, m.heightOf(d)) || d.details != nil || d.card == nil {
		return
	}
	next := d.current + 1
	if by < 0 {
		next = d.current - 1
	}
	if next >= 0 && next <= len(d.values) {
		d.current = next
	}
}

// moveFocus goes through nothing, the boxes and the buttons, in that order.
func (m *Model) moveFocus(d *dialog, by int) {
	if d.card == nil {
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
		d.current = d.focus
	}
}

func (m *Model) compose(d *dialog) tea.Cmd {
	if !m.answerable(d) {
		return nil
	}
	d.composing, d.details = true, nil
	d.input.set(m.draft)
	return m.engage(d)
}

func (m *Model) composerKey(d *dialog, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		m.draft = d.input.value()
		d.composing = false
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
