package card

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Rows is a text broken into rows for one width. Only where rows begin is kept: one
// pass over the text for a width, and nothing but the rows in sight is touched after
// it. All rows together are the text, byte for byte. The zero value has no rows.
type Rows struct {
	text       string
	width, tab int
	starts     []int
}

// Wrap breaks a text into rows: behind a space where that leaves at least half a
// row. width is in columns, at least 2; tab is how wide a tab is at most. One space
// may stand beyond the width, at the end of a row.
func Wrap(text string, width, tab int) Rows {
	w := wrapper{text: text, width: max(width, 2), tab: tab, starts: []int{0}}
	for w.pos < len(text) {
		w.step()
	}
	return Rows{text, w.width, tab, w.starts}
}

// Len is the number of rows.
func (r Rows) Len() int { return len(r.starts) }

// Width is what the text was broken for.
func (r Rows) Width() int { return r.width }

// Start is the first byte of a row.
func (r Rows) Start(i int) int { return r.starts[i] }

// At is the row that a byte of the text stands in, the first one for what is before
// the text and the last one for what is behind it.
func (r Rows) At(pos int) int {
	i := 0
	for i+1 < len(r.starts) && r.starts[i+1] <= pos {
		i++
	}
	return i
}

// Row gives one row without its line feed, its tabs as spaces. continues is true
// when the line began in a row before it.
func (r Rows) Row(i int) (row string, continues bool) {
	from, to := r.starts[i], len(r.text)
	if i+1 < len(r.starts) {
		to = r.starts[i+1]
	}
	continues = from > 0 && r.text[from-1] != '\n'
	return expandTabs(strings.TrimSuffix(r.text[from:to], "\n"), r.tab), continues
}

// Cells is how many columns a text takes at most: terminals count an emoji of
// several parts either as one or as its parts, and no row may be too long in
// either.
func Cells(s string) int { return max(ansi.StringWidth(s), ansi.StringWidthWc(s)) }

type wrapper struct {
	text       string
	width, tab int
	starts     []int
	pos, col   int
	space      int // where the row may break: behind its last space, 0 none
	spaceCol   int
}

func (w *wrapper) step() {
	c := w.text[w.pos]
	if c == '\n' {
		w.breakAt(w.pos+1, 0)
		w.pos++
		return
	}
	size, wide := w.next(c)
	if w.col+wide > w.width && w.pos > w.starts[len(w.starts)-1] {
		if c == ' ' && w.col == w.width {
			wide = 0 // one space may stand beyond the edge, unseen, before a break
		} else {
			w.overflow()
			return // a tab has another width in the new row
		}
	}
	w.pos += size
	w.col += wide
	if c == ' ' || c == '\t' {
		w.space, w.spaceCol = w.pos, w.col
		if wide == 0 {
			w.breakAt(w.pos, 0)
		}
	}
}

// next measures the character at pos. A character may be several code points;
// only an ASCII one that another ASCII follows is certain to be alone.
func (w *wrapper) next(c byte) (size, wide int) {
	switch {
	case c == '\t':
		return 1, w.tab - w.col%w.tab
	case c < 0x80 && (w.pos+1 == len(w.text) || w.text[w.pos+1] < 0x80):
		return 1, 1
	}
	cluster, _ := ansi.FirstGraphemeCluster(w.text[w.pos:], ansi.GraphemeWidth)
	return len(cluster), Cells(cluster)
}

// overflow ends the row: behind its last space if that leaves at least half a
// row, else right here.
func (w *wrapper) overflow() {
	if w.space > w.starts[len(w.starts)-1] && w.spaceCol >= w.width/2 {
		w.breakAt(w.space, w.col-w.spaceCol)
		return
	}
	w.breakAt(w.pos, 0)
}

func (w *wrapper) breakAt(pos, col int) {
	w.starts = append(w.starts, pos)
	w.col, w.space, w.spaceCol = col, 0, 0
}

func expandTabs(s string, tab int) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	col := 0
	for part := range strings.SplitAfterSeq(s, "\t") {
		text, ended := strings.CutSuffix(part, "\t")
		b.WriteString(text)
		col += Cells(text)
		if ended {
			n := tab - col%tab
			b.WriteString(strings.Repeat(" ", n))
			col += n
		}
	}
	return b.String()
}
