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
	text  string // escaped
	raw   string // what y copies
	bytes int
	kind  boxKind
	diff  *diff // of a boxDiff
	minor bool  // says again what another box says better: it gets room last
	part  int   // of the dialog
	top   int   // first visible row
	at    int   // the byte that the first layout should begin at

	rows wrapped
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

// layout breaks the text for a width of the text's column. The same text stays in
// sight at another width.
func (b *box) layout(width int) {
	width = max(width-b.diff.margin(width), 2)
	if b.rows.starts != nil && b.rows.width == width {
		return
	}
	keep := b.at
	if b.rows.starts != nil {
		keep = b.offset()
	}
	b.rows = wrap(b.text, width)
	b.seek(keep)
}

// offset is the first byte in sight, before a layout the one that it should begin
// at.
func (b *box) offset() int {
	if b.rows.starts == nil {
		return b.at
	}
	return b.rows.starts[min(b.top, b.rows.rows()-1)]
}

// seek brings a byte into the first row.
func (b *box) seek(at int) {
	if b.rows.starts == nil {
		b.at = at
		return
	}
	for b.top = 0; b.top+1 < b.rows.rows() && b.rows.starts[b.top+1] <= at; {
		b.top++
	}
}

// need is how many rows the box would like.
func (b *box) need() int { return b.rows.rows() }

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
		if i == b.top && b.label != "" {
			before = " " + m.style.dim.Render(pad(fitMiddle(b.label, labelWidth), labelWidth)) + " "
		}
		out = append(out, before+b.row(m, i, width-labelWidth-4, current))
	}
	if b.need() > height {
		out = append(out, blank+b.gutter(m, false, current)+m.style.dim.Render(b.position(m.w, page, width-labelWidth-4)))
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
	if b.kind == boxDiff {
		return b.diffRow(m, i, width, current)
	}
	row, continues := b.rows.row(i)
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

// endsHere reports whether a row is what an ending line feed leaves: nothing. A
// sign says so there. It stands outside the gutter, where no value can write.
func (b *box) endsHere(i int) bool {
	return b.value() && i > 0 && i == b.need()-1 && b.rows.starts[i] == len(b.text) && strings.HasSuffix(b.text, "\n")
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
