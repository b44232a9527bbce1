package tui

import (
	"strings"

	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// box is one named value in its own place: whole, scrolling inside itself. Both
// gates' dialogs and the details use it.
type box struct {
	label string
	text  string // escaped
	raw   string // what y copies
	bytes int
	sign  string // in place of the gutter, for what was (−) and what is (+); "" for the gutter
	bare  bool   // no gutter: a sentence, not a value
	top   int    // first visible row

	rows wrapped
}

// layout breaks the text for a width of the text's column.
func (b *box) layout(width int) {
	if b.rows.starts == nil || b.rows.width != max(width, 2) {
		keep := 0
		if b.rows.starts != nil {
			keep = b.rows.starts[min(b.top, b.rows.rows()-1)]
		}
		b.rows = wrap(b.text, width)
		for b.top = 0; b.top+1 < b.rows.rows() && b.rows.starts[b.top+1] <= keep; {
			b.top++ // the same text stays in sight at another width
		}
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
	for i := b.top; i < min(b.top+page, b.need()); i++ {
		row, continues := b.rows.row(i)
		label := ""
		if i == b.top {
			label = b.label
		}
		text := m.marked(fitRow(row, width-labelWidth-4))
		if b.endsHere(i) {
			sign := m.style.dim.Render(fit("⏎ "+m.w.Say(words.EndsWithBreak), width-labelWidth-4))
			out = append(out, " "+pad("", labelWidth)+"   "+sign)
			continue
		}
		out = append(out, " "+m.style.dim.Render(pad(fitMiddle(label, labelWidth), labelWidth))+" "+b.gutter(m, continues, current)+text)
	}
	if b.need() > height {
		out = append(out, " "+pad("", labelWidth)+" "+b.gutter(m, false, current)+
			m.style.dim.Render(b.position(m.w, page, width-labelWidth-4)))
	}
	return out
}

// endsHere reports whether a row is what an ending line feed leaves: nothing. A
// sign says so there. It stands outside the gutter, where no value can write.
func (b *box) endsHere(i int) bool {
	return !b.bare && i > 0 && i == b.need()-1 && b.rows.starts[i] == len(b.text) && strings.HasSuffix(b.text, "\n")
}

func (b *box) gutter(m *Model, continues, current bool) string {
	switch {
	case b.sign == "+":
		return m.style.accent.Render("+ ")
	case b.sign != "":
		return m.style.warn.Render(b.sign + " ")
	case b.bare && !current:
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
	if long := line + " · " + w.Say(words.ReadLast); cells(long) <= width {
		return long
	}
	if cells(line) <= width {
		return line
	}
	return fit(w.Say(words.RowsShort, from, to, n), width)
}

// marked draws the marks of an escaped row in the warning colour.
func (m *Model) marked(row string) string {
	at := strings.Index(row, "⟨")
	if at < 0 {
		return row
	}
	var b strings.Builder
	for at >= 0 {
		size := card.MarkAt(row[at:])
		if size == 0 {
			size = len("⟨")
			b.WriteString(row[:at+size])
		} else {
			b.WriteString(row[:at])
			b.WriteString(m.style.warn.Render(row[at : at+size]))
		}
		row = row[at+size:]
		at = strings.Index(row, "⟨")
	}
	b.WriteString(row)
	return b.String()
}

// share gives each box its height within a number of rows: at least what it
// must have, then one row at a time to those that want more. It returns nil
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
	for given := true; given && rows > 0; {
		given = false
		for i, b := range boxes {
			if rows > 0 && heights[i] < b.need() {
				heights[i]++
				rows--
				given = true
			}
		}
	}
	return heights
}
