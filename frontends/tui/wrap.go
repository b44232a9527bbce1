package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// tabStop is how wide a tab is at most.
const tabStop = 4

// wrapped is a text broken into rows for one width. Only where rows begin is
// kept: one pass over the text for a width, and nothing but the visible rows is
// touched for a frame. All rows together are the text, byte for byte.
type wrapped struct {
	text   string
	width  int
	starts []int
}

func wrap(text string, width int) wrapped {
	r := wrapper{text: text, width: max(width, 2), starts: []int{0}}
	for r.pos < len(text) {
		r.step()
	}
	return wrapped{text, r.width, r.starts}
}

func (w wrapped) rows() int { return len(w.starts) }

// row gives one row without its line feed. continues is true when the line
// began in a row before it.
func (w wrapped) row(i int) (row string, continues bool) {
	from, to := w.starts[i], len(w.text)
	if i+1 < len(w.starts) {
		to = w.starts[i+1]
	}
	continues = from > 0 && w.text[from-1] != '\n'
	return expandTabs(strings.TrimSuffix(w.text[from:to], "\n")), continues
}

type wrapper struct {
	text     string
	width    int
	starts   []int
	pos, col int
	space    int // where the row may break: behind its last space, 0 none
	spaceCol int
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
		return 1, tabStop - w.col%tabStop
	case c < 0x80 && (w.pos+1 == len(w.text) || w.text[w.pos+1] < 0x80):
		return 1, 1
	}
	cluster, _ := ansi.FirstGraphemeCluster(w.text[w.pos:], ansi.GraphemeWidth)
	return len(cluster), cells(cluster)
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

// cells is how many columns a text takes at most: terminals count an emoji of
// several parts either as one or as its parts, and no row may be too long in
// either.
func cells(s string) int { return max(ansi.StringWidth(s), ansi.StringWidthWc(s)) }

func expandTabs(s string) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	col := 0
	for part := range strings.SplitAfterSeq(s, "\t") {
		text, tab := strings.CutSuffix(part, "\t")
		b.WriteString(text)
		col += cells(text)
		if tab {
			n := tabStop - col%tabStop
			b.WriteString("    "[:n])
			col += n
		}
	}
	return b.String()
}

// fit shortens a line to a width, with an ellipsis.
func fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if cells(s) <= width {
		return s
	}
	s = ansi.Truncate(s, width, "…")
	for less := width - 1; cells(s) > width && less > 0; less-- {
		s = ansi.Truncate(s, less, "…") // an emoji of several parts may count as all of them
	}
	return s
}

// fitLeft shortens a line at its beginning.
func fitLeft(s string, width int) string {
	cut := s
	for over := cells(s) - width; cells(cut) > max(width, 0); over++ {
		cut = ansi.TruncateLeft(s, over, "…")
		if over > cells(s) {
			return ""
		}
	}
	return cut
}

// fitRow fits a row of wrapped text: a space beyond the edge goes, and no letter
// with it.
func fitRow(row string, width int) string {
	if cells(row) > width {
		row = strings.TrimSuffix(row, " ")
	}
	return fit(row, width)
}

// fitMiddle shortens a name in its middle: names often differ at their ends.
func fitMiddle(s string, width int) string {
	if cells(s) <= width {
		return s
	}
	head := ansi.Truncate(s, (width-1)/2, "")
	tail := ansi.TruncateLeft(s, cells(s)-(width-1-cells(head)), "")
	return fit(head+"…"+tail, width)
}

// fitPlace shortens the name of a file in its middle and keeps the line number
// behind it.
func fitPlace(s string, width int) string {
	at := strings.LastIndexByte(s, ':')
	if cells(s) <= width || at < 0 {
		return fit(s, width)
	}
	return fitMiddle(s[:at], width-cells(s[at:])) + s[at:]
}

// pad fits a line and fills it up with spaces.
func pad(s string, width int) string {
	s = fit(s, width)
	return s + strings.Repeat(" ", max(width-cells(s), 0))
}

// sides puts one text at the left and one at the right edge. The left one
// gives way.
func sides(left, right string, width int) string {
	if right == "" {
		return fit(left, width)
	}
	right = fit(right, width)
	room := width - cells(right)
	if room < 8 {
		return fit(left, width)
	}
	return pad(fit(left, room-2), room) + right
}
