package tui

import (
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// box is one named text in its own place: whole, scrolling inside itself. Both
// gates' dialogs and the details use it.
type box struct {
	label string
	wide  bool   // the label is wider than its column: it has rows of its own
	text  string // escaped
	raw   string // what y copies
	bytes int
	kind  boxKind
	diff  *diff // of a boxDiff
	minor bool  // says again what another box says better: it gets room last
	part  int   // of the dialog
	top   int   // first visible row
	at    int   // the byte that the first layout should begin at

	names card.Rows // of a wide label, above the text
	rows  card.Rows
}

// boxKind is how a box is drawn.
type boxKind int

const (
	boxValue    boxKind = iota // a value, behind a gutter
	boxWas                     // a value that was
	boxNow                     // a value that took its place
	boxDiff                    // lines with signs and numbers
	boxSentence                // no value: no gutter
	boxNote                    // a sentence that says less than the rest
	boxHeading                 // begins a part, at the left edge
)

// value says that the box holds what somebody else wrote.
func (b *box) value() bool { return b.kind < boxSentence }

// layout breaks the label and the text for the widths of their columns. The same text
// stays in sight at another width.
func (b *box) layout(labels, width int) {
	wide, text := cells(b.label) > labels, max(width-b.diff.margin(width), 2)
	if b.laidOut() && b.rows.Width() == text && b.wide == wide {
		return
	}
	keep := b.offset()
	b.wide, b.names, b.rows = wide, card.Rows{}, wrap(b.text, text)
	if wide {
		b.names = wrap(b.label, width)
	}
	b.seek(keep)
}

func (b *box) laidOut() bool { return b.rows.Len() > 0 }

// offset is the first byte of the text in sight, before a layout the one that it
// should begin at. The bytes of a wide label count backwards from the text.
func (b *box) offset() int {
	switch at := b.top - b.names.Len(); {
	case !b.laidOut():
		return b.at
	case at < 0:
		return b.names.Start(b.top) - len(b.label)
	default:
		return b.rows.Start(min(at, b.rows.Len()-1))
	}
}

// seek brings a byte into the first row.
func (b *box) seek(at int) {
	switch {
	case !b.laidOut():
		b.at = at
	case at < 0 && b.wide:
		b.top = b.names.At(at + len(b.label))
	default:
		b.top = b.names.Len() + b.rows.At(at)
	}
}

// need is how many rows the box would like.
func (b *box) need() int { return b.names.Len() + b.rows.Len() }

// least is how many rows it must have: one that scrolls has a line that says
// where it stands.
func (b *box) least() int { return min(b.need(), 2) }

// page is how many rows of text show in a height.
func (b *box) page(height int) int {
	if b.need() > height {
		return max(height-1, 1)
	}
	return height
}

// scroll moves by rows and reports whether it moved.
func (b *box) scroll(by, height int) bool {
	was := b.top
	b.top = max(min(b.top+by, b.need()-b.page(height)), 0)
	return b.top != was
}

// view draws the box into exactly height lines of a width. current marks the
// one that scroll keys move.
func (b *box) view(m *Model, labelWidth, width, height int, current bool) []string {
	b.scroll(0, height)
	out := make([]string, 0, height)
	page := b.page(height)
	blank := " " + pad("", labelWidth) + " "
	for i := b.top; i < min(b.top+page, b.need()); i++ {
		before := blank
		if i == b.top && b.label != "" && i >= b.names.Len() {
			before = " " + m.style.dim.Render(pad(fitMiddle(b.label, labelWidth), labelWidth)) + " "
		}
		out = append(out, before+b.row(m, i, width-labelWidth-4, current))
	}
	if b.need() > height {
		out = append(out, blank+m.closing(current)+m.style.dim.Render(b.position(m.w, page, width-labelWidth-4)))
	}
	if b.kind == boxHeading {
		for i, line := range out {
			out[i] = " " + strings.TrimPrefix(line, blank+"  ")
		}
	}
	return out
}

// row draws one row behind its gutter.
func (b *box) row(m *Model, i, width int, current bool) string {
	if i < b.names.Len() {
		return b.nameRow(m, i, width)
	}
	if i -= b.names.Len(); b.kind == boxDiff {
		return b.diffRow(m, i, width, current)
	}
	row, continues := b.rows.Row(i)
	if b.endsHere(i) {
		return "  " + m.style.dim.Render(fit("⏎ "+m.w.Say(words.EndsWithBreak), width))
	}
	switch text := fitRow(row, width); b.kind {
	case boxHeading:
		return "  " + m.style.strong.Render(text)
	case boxNote:
		return b.gutter(m, continues, current) + m.style.dim.Render(text)
	case boxValue, boxWas, boxNow, boxSentence:
		return b.gutter(m, continues, current) + m.marked(text)
	}
	return ""
}

// nameRow draws one row of a wide label, behind a sign of its own: it is the agent's
// text, and it is no value.
func (b *box) nameRow(m *Model, i, width int) string {
	sign := "┌ "
	if i > 0 {
		sign = "┊ "
	}
	row, _ := b.names.Row(i)
	return m.style.dim.Render(sign) + m.markedIn(fitRow(row, width), m.style.dim)
}

// endsHere reports whether a row is what an ending line feed leaves: nothing. A
// sign says so there. It stands outside the gutter, where no value can write.
func (b *box) endsHere(i int) bool {
	return b.value() && i > 0 && i == b.rows.Len()-1 && b.rows.Start(i) == len(b.text) && strings.HasSuffix(b.text, "\n")
}

func (b *box) gutter(m *Model, continues, current bool) string {
	switch {
	case b.kind == boxNow:
		return m.style.accent.Render("+ ")
	case b.kind == boxWas:
		return m.style.warn.Render("− ")
	case !b.value() && !current:
		return "  "
	case current && continues:
		return m.style.accent.Render("┇ ")
	case current:
		return m.style.accent.Render("┃ ")
	case continues:
		return m.style.dim.Render("┊ ")
	}
	return m.style.dim.Render("│ ")
}

// closing stands before the line that says where a box stands: no row of a value has
// it, so that none can say so itself.
func (m *Model) closing(current bool) string {
	if current {
		return m.style.accent.Render("┗ ")
	}
	return m.style.dim.Render("└ ")
}

// position tells which rows show, as fully as the width allows.
func (b *box) position(w words.Words, page, width int) string {
	from, to, n := card.Count(b.top+1), card.Count(min(b.top+page, b.need())), card.Count(b.need())
	line := w.Say(words.Rows, from, to, n, card.Count(b.bytes))
	if b.bytes == 0 {
		line = w.Say(words.RowsShort, from, to, n)
	}
	if long := line + " · " + w.Say(words.ReadLast); cells(long) <= width {
		return long
	}
	if cells(line) <= width {
		return line
	}
	return fit(w.Say(words.RowsShort, from, to, n), width)
}

// marked draws the marks of an escaped row in the warning colour.
func (m *Model) marked(row string) string { return m.markedIn(row, lipgloss.NewStyle()) }

// markedIn is [Model.marked] for a row that has a style of its own.
func (m *Model) markedIn(row string, style lipgloss.Style) string {
	if !strings.Contains(row, "⟨") {
		return style.Render(row)
	}
	var b strings.Builder
	plain := 0 // what is before a mark and not written yet
	for at := 0; at < len(row); {
		size := card.MarkAt(row[at:])
		if size == 0 {
			at++
			continue
		}
		b.WriteString(style.Render(row[plain:at]))
		b.WriteString(m.style.warn.Render(row[at : at+size]))
		at += size
		plain = at
	}
	b.WriteString(style.Render(row[plain:]))
	return b.String()
}

// share gives each box its height within a number of rows: at least what it
// must have, then one row at a time to those that want more, the minor ones last.
// It returns nil
// when even the least does not fit.
func share(boxes []*box, rows int) []int {
	heights := make([]int, len(boxes))
	for i, b := range boxes {
		heights[i] = b.least()
		rows -= heights[i]
	}
	if rows < 0 {
		return nil
	}
	for _, minor := range []bool{false, true} {
		for given := true; given && rows > 0; {
			given = false
			for i, b := range boxes {
				if b.minor == minor && rows > 0 && heights[i] < b.need() {
					heights[i]++
					rows--
					given = true
				}
			}
		}
	}
	return heights
}
