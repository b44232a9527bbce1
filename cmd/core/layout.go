package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// pageWidth is how wide text is set, in cells, where the terminal has room.
const pageWidth = 80

// table is rows whose columns stand below each other. A last column that is too
// long goes on in lines of its own.
type table [][]string

func (t *table) add(cells ...string) { *t = append(*t, cells) }

func (t table) print(out io.Writer) {
	for i := range t {
		t.printRow(out, i)
	}
}

func (t table) printRow(out io.Writer, i int) {
	widths, row := t.widths(), t[i]
	var line strings.Builder
	for i, cell := range row[:len(row)-1] {
		line.WriteString(cell + strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
	}
	paragraph(out, line.String(), row[len(row)-1])
}

// widths are those of the columns, without the last.
func (t table) widths() []int {
	var widths []int
	for _, row := range t {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	return widths
}

// solid stands for a hyphen at which no line ends: flags, paths and zh-Hans stay
// in one piece.
const solid = "\u2011"

// A text that does not fit behind its lead begins in a line of its own, deep cells
// in, when there is less room than narrow or than its longest word needs.
const (
	narrow = 20
	deep   = 6
)

// longestWord is the width of the longest word that no line can end in: Chinese
// can end a line anywhere.
func longestWord(text string) int {
	longest := 0
	for word := range strings.FieldsSeq(text) {
		if n := ansi.StringWidth(word); n == utf8.RuneCountInString(word) {
			longest = max(longest, n)
		}
	}
	return longest
}

// paragraph prints a text behind a lead. On a terminal it is set to the width of
// the page, and further lines stand below its beginning; who reads a pipe gets it
// in one line.
func paragraph(out io.Writer, lead, text string) {
	text = strings.ReplaceAll(text, "-", solid)
	indent := ansi.StringWidth(lead)
	if room := width(out); room > 0 {
		if left := room - indent; indent > deep && left < ansi.StringWidth(text) && left < max(narrow, longestWord(text)) {
			fmt.Fprintln(out, strings.TrimRight(lead, " "))
			indent = deep
			lead = strings.Repeat(" ", indent)
		}
		text = ansi.Wrap(text, max(room-indent, narrow), "，。；：、）")
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(out, strings.TrimRight(lead+strings.ReplaceAll(line, solid, "-"), " "))
		lead = strings.Repeat(" ", indent)
	}
}

// page is what is always set to its width.
type page struct{ io.Writer }

// width is how many cells a line may have, 0 for any number.
func width(out io.Writer) int {
	if _, ok := out.(page); ok {
		return pageWidth
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(f.Fd()) {
		if w, _, err := term.GetSize(f.Fd()); err == nil && w > 0 {
			return min(w, pageWidth)
		}
	}
	return 0
}
