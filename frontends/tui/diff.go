package tui

import (
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/fermata-hitl/fermata/frontends/card"
)

// numbersFrom is the width of the text's column from which a diff has the numbers of
// its lines.
const numbersFrom = 48

// diff is what stands before the lines of a diff's box, where no line can write.
type diff struct {
	lines  []card.DiffLine
	starts []int // where each begins in the box's text
	digits int   // the widest number's
	shown  int   // digits that there is room for: all or none
}

// newDiffBox makes the box of a diff. Its text is the diff's lines.
func newDiffBox(label string, lines []card.DiffLine) *box {
	d := &diff{lines: lines}
	var text, raw strings.Builder
	highest := 0
	for i, l := range lines {
		if i > 0 {
			text.WriteByte('\n')
		}
		d.starts = append(d.starts, text.Len())
		text.WriteString(l.Text)
		if l.Sign != '*' { // a patch's own line has no sign before it
			raw.WriteByte(l.Sign)
		}
		raw.WriteString(card.Unescape(l.Text) + "\n")
		highest = max(highest, l.Old, l.New)
	}
	if highest > 0 {
		d.digits = len(strconv.Itoa(highest))
	}
	return &box{label: label, text: text.String(), raw: raw.String(), kind: boxDiff, diff: d}
}

// margin settles what stands between the gutter and the text in a width, and tells
// how wide it is.
func (d *diff) margin(width int) int {
	if d == nil {
		return 0
	}
	if d.shown = d.digits; width < numbersFrom {
		d.shown = 0
	}
	return cells(d.number(0)) + 2
}

func (d *diff) number(n int) string {
	if d.shown == 0 {
		return ""
	}
	if n == 0 {
		return strings.Repeat(" ", d.shown+1)
	}
	s := strconv.Itoa(n)
	return strings.Repeat(" ", max(d.shown-len(s), 0)) + s + " "
}

// at is the line that a byte of the text stands in.
func (d *diff) at(pos int) card.DiffLine {
	i, found := slices.BinarySearch(d.starts, pos)
	if !found {
		i--
	}
	return d.lines[i]
}

// diffRow draws one row of a diff: number, sign, text. A line's further rows have
// neither number nor sign.
func (b *box) diffRow(m *Model, i, width int, current bool) string {
	row, continues := b.rows.Row(i)
	l := b.diff.at(b.rows.Start(i))
	if l.Sign == '@' { // ours: outside the gutter, where no line of a text can stand
		before := "  " + b.diff.number(0) + "  "
		return before + m.markedIn(fitRow(row, width+2-cells(before)), m.style.dim)
	}
	n := l.New
	if l.Sign == '-' {
		n = l.Old
	}
	sign := "  "
	switch {
	case continues:
		n, sign = 0, m.style.dim.Render("┊ ")
	case l.Sign == '*':
		sign = "* "
	case l.Sign == '+':
		sign = m.style.accent.Render("+ ")
	case l.Sign == '-':
		sign = m.style.warn.Render("− ")
	}
	number := b.diff.number(n)
	style := lipgloss.NewStyle()
	switch l.Sign {
	case '+':
		style = m.style.accent
	case '-':
		style = m.style.warn
	}
	text := m.markedIn(fitRow(row, width-cells(number)-2), style)
	return b.gutter(m, false, current) + m.style.dim.Render(number) + sign + text
}
