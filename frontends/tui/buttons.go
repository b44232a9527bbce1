package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

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
	otherKeys  = []button{{"?", words.Why, focusNone}, {"Esc", words.Later, focusNone}}
	detailKeys = []button{{"o", words.Pager, focusNone}, {"Esc", words.Close, focusNone}}
	composeKey = []button{{"Enter", words.Send, focusNone}}
	backKey    = []button{{"Esc", words.Back, focusNone}}
	quitKey    = button{"q", words.Quit, focusNone}
)

// keyRow is a line of keys, and where each stands in it.
type keyRow struct {
	text string
	keys []keyAt
}

// keyAt is the place of a key: columns from to, without to.
type keyAt struct {
	key      string
	from, to int
}

// oneRow says that all keys of the dialog fit into one line.
func (m *Model) oneRow() bool {
	return m.buttonsWidth(answerKeys)+m.buttonsWidth(otherKeys)+1 <= m.width-2
}

func (m *Model) buttonsWidth(list []button) int {
	n := 0
	for _, b := range list {
		n += cells(b.key) + cells(m.buttonText(b)) + 3
	}
	return n
}

// buttonText names a button. An answer to several questions says to how many.
func (m *Model) buttonText(b button) string {
	text := m.w.Say(b.text)
	if d := m.dialog; d != nil && (b.focus == focusContinue || b.focus == focusCancel) {
		if n := len(d.questions()); n > 1 {
			text += " " + m.w.Say(words.Times, n)
		}
	}
	return text
}

// buttonLines draws the keys, in one line or in two: as many as there are for
// the answers, whatever they are at the moment. While they do not count they
// are dim, and a dot stands in the place of each key.
func (m *Model) buttonLines(d *dialog) []keyRow {
	left, right := answerKeys, slices.Clone(otherKeys)
	if m.o.Question != "" {
		right[len(right)-1].text = words.Leave
	}
	if d.details != nil {
		right = detailKeys
	}
	if d.composing {
		left, right = composeKey, backKey
	}
	quiet := d.grace.left(m.now) == 0
	answers := quiet && m.answerable(d)
	if m.oneRow() {
		return []keyRow{m.buttonLine(d, left, right, answers, quiet)}
	}
	if !d.composing {
		right = append(slices.Clip(right), quitKey)
	}
	if m.buttonsWidth(left) > m.width-2 {
		left = append(left[:len(left)-1:len(left)-1], button{"w", words.WithWords, focusWords})
	}
	return []keyRow{m.buttonRow(d, left, answers), m.buttonRow(d, right, quiet)}
}

// buttonLine has the answers at the left edge and the rest at the right one.
func (m *Model) buttonLine(d *dialog, left, right []button, answers, quiet bool) keyRow {
	for _, gap := range []int{3, 1, 0} {
		l, r := m.drawButtons(d, left, gap, answers), m.drawButtons(d, right, gap, quiet)
		if room := m.width - 2 - cells(l.text) - cells(r.text); room >= 1 {
			l.append(strings.Repeat(" ", room), keyRow{})
			l.append("", r)
			return l.indented(m.width)
		}
	}
	return m.drawButtons(d, left, 0, answers).indented(m.width)
}

func (m *Model) buttonRow(d *dialog, list []button, live bool) keyRow {
	row := m.drawButtons(d, list, 1, live)
	if cells(row.text) > m.width-2 {
		row = m.drawButtons(d, list, 0, live)
	}
	return row.indented(m.width)
}

func (m *Model) drawButtons(d *dialog, list []button, gap int, live bool) keyRow {
	var row keyRow
	for i, b := range list {
		text := m.drawKey(d, b, live)
		one := keyRow{text, []keyAt{{b.key, 0, cells(text)}}}
		if i > 0 {
			row.append(strings.Repeat(" ", gap), one)
			continue
		}
		row.append("", one)
	}
	return row
}

// append puts another row behind this one.
func (r *keyRow) append(gap string, next keyRow) {
	r.text += gap
	at := cells(r.text)
	for _, k := range next.keys {
		r.keys = append(r.keys, keyAt{k.key, k.from + at, k.to + at})
	}
	r.text += next.text
}

// indented puts a row behind the window's margin.
func (r keyRow) indented(width int) keyRow {
	out := keyRow{text: " "}
	out.append("", keyRow{fit(r.text, width-2), r.keys})
	return out
}

func (m *Model) drawKey(d *dialog, b button, live bool) string {
	open, end, text := " ", " ", " "+m.buttonText(b)
	live = live && (b.focus != focusContinue || d.unseen() == 0)
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

// zonesOf lets clicks press the keys of a row.
func (m *Model) zonesOf(d *dialog, at int, row keyRow) {
	for _, k := range row.keys {
		m.zone(at, k.from, k.to, func() tea.Cmd { return m.clicked(d, strings.ToLower(k.key)) })
	}
}

// clicked does what the key would do that a button stands for. The click has been
// held against the grace before; one that meant another dialog does nothing.
func (m *Model) clicked(d *dialog, key string) tea.Cmd {
	switch {
	case m.dialog != d || !d.grace.passed(m.now):
		return nil
	case d.composing && key == "enter":
		return m.sendWords(d)
	case d.composing && key == "esc":
		d.composing = false
		return nil
	case d.composing || d.sending:
		return nil
	}
	return m.dialogKey(d, key)
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
