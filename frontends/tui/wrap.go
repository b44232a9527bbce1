package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-hitl/fermata/frontends/card"
)

// tabStop is how wide a tab is at most.
const tabStop = 4

func wrap(text string, width int) card.Rows { return card.Wrap(text, width, tabStop) }

func cells(s string) int { return card.Cells(s) }

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
