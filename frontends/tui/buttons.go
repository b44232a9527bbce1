package tui

import (
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// button is one key and what it does.
type button struct {
	key   string
	text  words.Key
	focus int
}

// The keys of a dialog: its answers, and the rest where there is room for it.
var (
	answerKeys = []button{
		{"c", words.Continue, focusContinue}, {"x", words.Cancel, focusCancel}, {"w", words.CancelWords, focusWords},
	}
	otherKeys = []button{{"?", words.Why, focusNone}, {"Esc", words.Later, focusNone}}
	listKeys  = []button{
		{"↑ ↓", words.Pick, focusNone},
		{"Enter", words.Open, focusNone},
		{"/", words.Filter, focusNone},
		{"q", words.Quit, focusNone},
	}
	filterKeys = []button{{"Enter", words.Keep, focusNone}, {"Esc", words.Clear, focusNone}}
)

// oneRow says that all keys of the dialog fit into one line.
func (m *Model) oneRow() bool {
	return m.buttonsWidth(answerKeys)+m.buttonsWidth(otherKeys)+1 <= m.width-2
}

func (m *Model) buttonsWidth(list []button) int {
	n := 0
	for _, b := range list {
		n += cells(b.key) + cells(m.w.Say(b.text)) + 3
	}
	return n
}

// buttonLines draws the keys, in one line or in two: as many as there are for
// the answers, whatever they are at the moment. While they do not count they
// are dim, and a dot stands in the place of each key.
func (m *Model) buttonLines(d *dialog) []string {
	left, right := answerKeys, otherKeys
	if d.details != nil {
		right = []button{{"Esc", words.Close, focusNone}}
	}
	if d.composing {
		left, right = []button{{"Enter", words.Send, focusNone}}, []button{{"Esc", words.Back, focusNone}}
	}
	quiet := d.grace.left(m.now) == 0
	answers := quiet && m.answerable(d)
	if m.oneRow() {
		return []string{m.buttonLine(d, left, right, answers, quiet)}
	}
	if !d.composing {
		right = append(slices.Clip(right), button{"q", words.Quit, focusNone})
	}
	if m.buttonsWidth(left) > m.width-2 {
		left = append(left[:len(left)-1:len(left)-1], button{"w", words.WithWords, focusWords})
	}
	return []string{m.buttonRow(d, left, answers), m.buttonRow(d, right, quiet)}
}

// buttonLine has the answers at the left edge and the rest at the right one.
func (m *Model) buttonLine(d *dialog, left, right []button, answers, quiet bool) string {
	for _, gap := range []string{"   ", " ", ""} {
		l, r := m.drawButtons(d, left, gap, answers), m.drawButtons(d, right, gap, quiet)
		if room := m.width - 2 - cells(l) - cells(r); room >= 1 {
			return " " + l + strings.Repeat(" ", room) + r
		}
	}
	return " " + fit(m.drawButtons(d, left, "", answers), m.width-2)
}

func (m *Model) buttonRow(d *dialog, list []button, live bool) string {
	row := m.drawButtons(d, list, " ", live)
	if cells(row) > m.width-2 {
		row = m.drawButtons(d, list, "", live)
	}
	return " " + fit(row, m.width-2)
}

func (m *Model) drawButtons(d *dialog, list []button, gap string, live bool) string {
	var parts []string
	for _, b := range list {
		parts = append(parts, m.drawKey(d, b, live))
	}
	return strings.Join(parts, gap)
}

func (m *Model) drawKey(d *dialog, b button, live bool) string {
	open, end, text := " ", " ", " "+m.w.Say(b.text)
	focused := b.focus != focusNone && b.focus == d.focus
	if focused {
		open, end = "[", "]"
	}
	if !live {
		return m.style.dim.Render(open + strings.Repeat("·", cells(b.key)) + text + end)
	}
	if focused {
		open, end = m.style.strong.Render(open), m.style.strong.Render(end)
	}
	return open + m.style.key.Render(b.key) + text + end
}

// keyLine names keys in a line of their own, as far apart as the width allows.
func (m *Model) keyLine(list []button, width int) string {
	var parts []string
	n := 0
	for _, b := range list {
		n += cells(b.key) + 1 + cells(m.w.Say(b.text))
		parts = append(parts, m.style.strong.Render(b.key)+m.style.dim.Render(" "+m.w.Say(b.text)))
	}
	gap := max(min((width-n)/max(len(list)-1, 1), 3), 1)
	return fit(strings.Join(parts, strings.Repeat(" ", gap)), width)
}
