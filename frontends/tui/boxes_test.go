package tui

import (
	"slices"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// TestB113OneBoxForBothGates draws the same arguments for either gate: every row of
// every value is the same, and begins at the same column.
func TestB113OneBoxForBothGates(t *testing.T) {
	const args = `{"command":"echo a\n  echo b\n\techo c","list":["one","two","three","four","five","six","seven","eight","nine"],"long":"` +
		`a long line that goes on and on until it does not fit into one row of the window any more and has to be folded","n":5}`
	for _, size := range sizes {
		var drawn [][]string
		for _, gate := range []events.Gate{events.GateHook, events.GateApproval} {
			bubble(t, size.width, size.height, func(tm *terminal) {
				q := question("q1", "Bash", args)
				q.Gate = gate
				tm.ask(q)
				tm.settle()
				drawn = append(drawn, valueRows(tm))
			})
		}
		if len(drawn[0]) == 0 || !slices.Equal(drawn[0], drawn[1]) {
			t.Errorf("%d×%d: the gates differ:\n%s\n\n%s", size.width, size.height,
				strings.Join(drawn[0], "\n"), strings.Join(drawn[1], "\n"))
		}
		column := -1
		for _, row := range drawn[0] {
			at := gutterAt(row)
			if column < 0 {
				column = at
			}
			if at != column {
				t.Errorf("%d×%d: a value begins at column %d and another at %d: %q", size.width, size.height, column, at, row)
			}
		}
	}
}

// valueRows are the rows of the window that have the gutter of a value.
func valueRows(tm *terminal) []string {
	var rows []string
	for line := range strings.SplitSeq(tm.text(), "\n") {
		if gutterAt(line) >= 0 {
			rows = append(rows, line)
		}
	}
	return rows
}

func gutterAt(line string) int {
	at := strings.IndexAny(line, "│┃┊┇")
	if at < 0 {
		return -1
	}
	return cells(line[:at])
}
