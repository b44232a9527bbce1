package tui

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-hitl/fermata/frontends/card"
)

// entry is one line to write in. It keeps what was typed or pasted byte for
// byte, line feeds included, and shows it escaped. Nothing in it blinks.
type entry struct {
	before, after string // around the cursor
}

func (e *entry) value() string { return e.before + e.after }

func (e *entry) set(s string) { e.before, e.after = s, "" }

// write takes a key or a paste. Keys that write nothing do nothing.
func (e *entry) write(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.PasteMsg:
		e.before += msg.Content
	case tea.KeyPressMsg:
		e.key(msg)
	}
}

func (e *entry) key(k tea.KeyPressMsg) {
	switch k.String() {
	case "left", "ctrl+b":
		last := lastCluster(e.before)
		e.before, e.after = strings.TrimSuffix(e.before, last), last+e.after
	case "right", "ctrl+f":
		first, _ := ansi.FirstGraphemeCluster(e.after, ansi.GraphemeWidth)
		e.before, e.after = e.before+first, strings.TrimPrefix(e.after, first)
	case "home", "ctrl+a":
		e.before, e.after = "", e.value()
	case "end", "ctrl+e":
		e.before, e.after = e.value(), ""
	case "backspace", "ctrl+h":
		e.before = strings.TrimSuffix(e.before, lastCluster(e.before))
	case "delete", "ctrl+d":
		first, _ := ansi.FirstGraphemeCluster(e.after, ansi.GraphemeWidth)
		e.after = strings.TrimPrefix(e.after, first)
	case "ctrl+u":
		e.before = ""
	case "ctrl+k":
		e.after = ""
	case "ctrl+w":
		trimmed := strings.TrimRight(e.before, " ")
		e.before = trimmed[:strings.LastIndexByte(trimmed, ' ')+1]
	default:
		e.before += k.Text
	}
}

// lastCluster is the last character of s as a reader counts them. It looks
// back over a bounded part of s.
func lastCluster(s string) string {
	from := max(len(s)-128, 0)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from++
	}
	last := ""
	for rest := s[from:]; rest != ""; rest = rest[len(last):] {
		last, _ = ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
	}
	return last
}

// view draws the line into a width, in one row or, where it is longer, in up to
// rows of them, with the cursor in sight.
func (e *entry) view(s styles, width, rows int) []string {
	before, after := card.Line(e.before), card.Line(e.after)
	under := " "
	if after != "" {
		under, _ = ansi.FirstGraphemeCluster(after, ansi.GraphemeWidth)
		after = strings.TrimPrefix(after, under)
	}
	w := wrap(before+under+after, width-2) // a column at either end for the ellipsis
	if rows == 1 || w.Len() == 1 {
		before = fitLeft(before, width-cells(under))
		return []string{before + s.cursor.Render(under) + fit(after, width-cells(before)-cells(under))}
	}
	return paragraph(s, w, len(before), len(under), rows)
}

// paragraph draws the rows around the cursor, which stands on size bytes of the
// text. An ellipsis says that there is more above or below.
func paragraph(s styles, w card.Rows, cursor, size, rows int) []string {
	at := w.At(cursor)
	rows = min(rows, w.Len())
	top := max(at-rows+1, 0)
	var out []string
	for i := top; i < top+rows; i++ {
		row, _ := w.Row(i)
		if from := cursor - w.Start(i); i == at {
			to := min(from+size, len(row))
			row = row[:from] + s.cursor.Render(row[from:to]) + row[to:]
		}
		if i == top && top > 0 {
			row = "…" + row
		}
		if i == top+rows-1 && i+1 < w.Len() {
			row += "…"
		}
		out = append(out, row)
	}
	return out
}
