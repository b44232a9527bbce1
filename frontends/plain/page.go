package plain

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Measures of a page.
const (
	defaultWidth = 80
	leastWidth   = 20
	tabStop      = 8   // the widest that a tab can be
	short        = 200 // bytes of a value that is not counted
)

// The signs before a row of a value: its line begins here, or goes on. A row of a
// value never stands without one, so that no value can look like a line of ours.
const (
	begins = "│ "
	goesOn = "┊ "
)

// page writes rows, broken at a width, and keeps the first error.
type page struct {
	w     words.Words
	out   io.Writer
	width int
	rows  int // written so far
	err   error
	batch *strings.Builder // not yet written, nil = each row at once
}

// row writes a line of ours.
func (p *page) row(text string) { p.broken("", "  ", text) }

// broken writes a text, one line or more, with a sign before what begins and
// before what goes on.
func (p *page) broken(first, next, text string) {
	room := p.columns() - max(cells(first), cells(next)) - 1
	for line := range strings.SplitSeq(text, "\n") {
		sign := first
		for i, row := range fold(line, max(room, leastWidth/2)) {
			if i > 0 {
				sign = next
			}
			p.write(" " + sign + row + "\n")
		}
	}
}

func (p *page) columns() int {
	if p.width == 0 {
		return defaultWidth
	}
	return max(p.width, leastWidth)
}

func (p *page) write(row string) {
	p.rows++
	if p.batch != nil {
		p.batch.WriteString(row)
		return
	}
	p.flush(row)
}

func (p *page) flush(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.out, text)
	}
}

// together writes what do writes in one go, and gives the number of rows.
func (p *page) together(do func()) int {
	from := p.rows
	p.batch = &strings.Builder{}
	do()
	text := p.batch.String()
	p.batch = nil
	p.flush(text)
	return p.rows - from
}

// labelled writes a name and a short text beside it.
func (p *page) labelled(name, text string) {
	label := name + strings.Repeat(" ", max(10-cells(name), 0)) + " "
	indent := strings.Repeat(" ", cells(label))
	for line := range strings.SplitSeq(text, "\n") {
		p.broken(label+begins, indent+goesOn, line)
		label = indent
	}
}

// value writes a value whole. A long one is counted before it begins, since its
// beginning will be out of sight when it has ended.
func (p *page) value(name, text string, bytes int) {
	lines, ended := strings.CutSuffix(text, "\n")
	n := strings.Count(lines, "\n") + 1
	switch {
	case text == "":
		p.labelled(name, p.w.Say(words.Empty))
	case n == 1 && len(lines) <= short:
		p.labelled(name, lines)
	default:
		p.row(p.w.Say(words.PlainCounted, name, card.Count(n), card.Count(bytes)))
		p.broken(begins, goesOn, lines)
	}
	if ended {
		p.row("⏎ " + p.w.Say(words.EndsWithBreak))
	}
}

// cells is how many columns a text takes at most.
func cells(s string) int { return max(ansi.StringWidth(s), ansi.StringWidthWc(s)) }

// fold breaks a line into rows: behind a space where that leaves at least half a
// row. All rows together are the line, byte for byte.
func fold(line string, width int) (rows []string) {
	f := folder{line: line, width: width}
	for f.pos < len(line) {
		size, wide := f.next()
		if f.col+wide > width && f.pos > f.from {
			rows = append(rows, f.end())
			continue // a tab has another width in the new row
		}
		f.pos += size
		f.col += wide
		if c := line[f.pos-1]; c == ' ' || c == '\t' {
			f.space, f.spaceCol = f.pos, f.col
		}
	}
	return append(rows, line[f.from:])
}

type folder struct {
	line      string
	width     int
	from, pos int // of the row
	col       int
	space     int // behind the row's last space, 0 none
	spaceCol  int
}

// next measures the character at pos, which may be several code points; only an
// ASCII one that another ASCII follows is certain to be alone.
func (f *folder) next() (size, wide int) {
	rest := f.line[f.pos:]
	switch {
	case rest[0] == '\t':
		return 1, tabStop - f.col%tabStop
	case rest[0] < 0x80 && (len(rest) == 1 || rest[1] < 0x80):
		return 1, 1
	}
	cluster, _ := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
	return len(cluster), cells(cluster)
}

// end ends the row and gives it.
func (f *folder) end() string {
	at, col := f.pos, 0
	if f.space > f.from && f.spaceCol >= f.width/2 {
		at, col = f.space, f.col-f.spaceCol
	}
	row := f.line[f.from:at]
	f.from, f.col, f.space = at, col, 0
	return row
}
