package main

import (
	"fmt"
	"io"
	"os"
	"slices"
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

// printRow prints a row; where the columns do not fit beside each other, its cells one
// after the other.
func (t table) printRow(out io.Writer, i int) {
	widths, row := t.widths(), t[i]
	lead := 0
	for _, w := range widths {
		lead += w + 2
	}
	if room := width(out); room > 0 && lead > room {
		printCells(out, row, room)
		return
	}
	var line strings.Builder
	for i, cell := range row[:len(row)-1] {
		line.WriteString(cell + strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
	}
	paragraph(out, line.String(), row[len(row)-1])
}

// printCells fills lines with cells and breaks none that has room in a line of its
// own.
func printCells(out io.Writer, row []string, room int) {
	indent := strings.Repeat(" ", len(row[0])-len(strings.TrimLeft(row[0], " ")))
	line := strings.TrimRight(row[0], " ")
	indent += "    "
	for _, cell := range row[1:] {
		switch {
		case cell == "":
		case ansi.StringWidth(line)+2+ansi.StringWidth(cell) <= room:
			line += "  " + cell
		default:
			paragraph(out, "", line)
			line = indent + cell
		}
	}
	text := strings.TrimLeft(line, " ")
	paragraph(out, line[:len(line)-len(text)], text)
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
		text = wrapped(text, max(room-indent, narrow))
	}
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(out, strings.TrimRight(lead+strings.ReplaceAll(line, solid, "-"), " "))
		lead = strings.Repeat(" ", indent)
	}
}

// closing are signs that no line begins with.
const closing = "，。；：、）”》"

// wrapped is a text in lines of so many cells. In Chinese, where nearly every place
// can end a line, a closing sign hangs at the end of the line before it.
func wrapped(text string, room int) string {
	const hanging = 4 // cells of two signs
	if ansi.StringWidth(text) <= room {
		return text
	}
	if strings.ContainsAny(text, closing) {
		room -= hanging
	}
	lines := strings.Split(ansi.Wrap(text, room, closing), "\n")
	for i := 1; i < len(lines); i++ {
		rest := strings.TrimLeft(lines[i], closing)
		lines[i-1] += lines[i][:len(lines[i])-len(rest)]
		lines[i] = strings.TrimLeft(rest, " ")
	}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
}

// page is what is set to its width also where there is no terminal.
type page struct{ io.Writer }

// width is how many cells a line may have, 0 for any number.
func width(out io.Writer) int {
	if p, ok := out.(page); ok {
		if w := width(p.Writer); w > 0 {
			return w
		}
		return pageWidth
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(f.Fd()) {
		if w, _, err := term.GetSize(f.Fd()); err == nil && w > 0 {
			return min(w, pageWidth)
		}
	}
	return 0
}
