package plain

import (
	"io"
	"strings"

	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Measures of a page.
const (
	defaultWidth = 80
	leastWidth   = 20
	tabStop      = 8
	longName     = 24  // columns of a name that stands beside its value, at most
	short        = 200 // bytes of a value that is not counted
)

// The signs before a row of a value: its line begins here, or goes on; a name that is
// too long to stand beside it has rows above it. No row that the agent's text begins
// stands without one, so that none can look like a line of ours.
const (
	begins = "│ "
	goesOn = "┊ "
	named  = "┌ "
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

// row writes a line of ours. What of it does not fit has a sign, since it may begin
// with what the line quotes.
func (p *page) row(text string) { p.broken("", goesOn, text) }

// broken writes a text, one line or more, with a sign before what begins and
// before what goes on.
func (p *page) broken(first, next, text string) {
	// A column for the margin, and one for a space at the end of a row.
	rows := card.Wrap(text, p.columns()-max(cells(first), cells(next))-2, tabStop)
	for i := range rows.Len() {
		row, continues := rows.Row(i)
		sign := first
		if continues {
			sign = next
		}
		p.write(" " + sign + row + "\n")
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

// fits reports whether a name is short enough to stand beside something.
func (p *page) fits(name string) bool { return cells(name) <= min(longName, p.columns()/3) }

// heading writes a name and what there is to say of it.
func (p *page) heading(name, text string) {
	if p.fits(name) {
		p.row(name + text)
		return
	}
	p.broken(named, goesOn, name)
	p.row(strings.TrimLeft(text, " ·"))
}

// labelled writes a name and a short text beside it, or below a name that is long.
func (p *page) labelled(name, text string) {
	if !p.fits(name) {
		p.broken(named, goesOn, name)
		p.broken(begins, goesOn, text)
		return
	}
	label := name + strings.Repeat(" ", max(min(10, p.columns()/4)-cells(name), 0)) + " "
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
		p.heading(name, " · "+p.w.Say(words.PlainCounted, card.Count(n), card.Count(bytes)))
		p.broken(begins, goesOn, lines)
	}
	if ended {
		p.row("⏎ " + p.w.Say(words.EndsWithBreak))
	}
}

func cells(s string) int { return card.Cells(s) }
