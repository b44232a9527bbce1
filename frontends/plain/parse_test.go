package plain

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

var answers = regexp.MustCompile(`^(?:[cCxX] +[1-9][0-9]{0,8}|[wW] +[1-9][0-9]{0,8} +[\s\S]+)$`)

// FuzzParse: only a line that is an answer from its first to its last character is
// one.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"c 1", "x 12", "w 3 words", "l 1", "? 1", "12", "list", "h", "q", "", "c 1 2", "w 1 \x1b", "C\t1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, problem := parse(line)
		if problem != "" && c != (command{}) {
			t.Fatalf("%q: %+v in spite of %s", line, c, problem)
		}
		if c.verb != doAnswer {
			if c.answer != "" || c.text != "" {
				t.Fatalf("%q: %+v", line, c)
			}
			return
		}
		trimmed := strings.TrimSpace(line)
		if !answers.MatchString(trimmed) || c.number < 1 {
			t.Fatalf("%q is taken for an answer: %+v", line, c)
		}
		if carries := c.answer == events.AnswerContinue; carries != (trimmed[0] == 'c' || trimmed[0] == 'C') {
			t.Fatalf("%q answers %s", line, c.answer)
		}
		if !utf8.ValidString(c.text) || len(c.text) > maxWords {
			t.Fatalf("%q has words that cannot be sent", line)
		}
	})
}

// TestF7RowsAreTheLine: broken into rows, a line has the same bytes, and no row is
// wider than it may be.
func TestF7RowsAreTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := strings.ReplaceAll(rapid.OneOf(
			rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("ab \t漢e\u0301👩\u200d🔬"))), rapid.StringMatching(`[a-z ]{0,300}`),
		).Draw(t, "line"), "\n", "")
		width := rapid.IntRange(leastWidth/2, 90).Draw(t, "width")
		rows := fold(line, width)
		if got := strings.Join(rows, ""); got != line {
			t.Fatalf("rows %q are not %q", rows, line)
		}
		for _, row := range rows {
			if !strings.Contains(row, "\t") && cells(row) > width && utf8.RuneCountInString(row) > 1 && len(row) == utf8.RuneCountInString(row) {
				t.Fatalf("row %q is wider than %d", row, width)
			}
		}
	})
}
