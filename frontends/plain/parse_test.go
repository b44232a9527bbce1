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

// TestF7RowsAreTheLine: whatever a line is and whatever stands before it, no row is
// wider than the page, each has a sign, and together they are the line.
func TestF7RowsAreTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := strings.NewReplacer("\n", "", "\r", "").Replace(rapid.OneOf(
			rapid.StringOf(rapid.SampledFrom([]rune("ab 漢e\u0301👩\u200d🔬"))), rapid.StringMatching(`[a-z ]{0,300}`),
		).Draw(t, "line"))
		out := &strings.Builder{}
		p := page{out: out, width: rapid.IntRange(leastWidth, 90).Draw(t, "width")}
		p.labelled(rapid.StringMatching(`[a-z]{0,60}`).Draw(t, "name"), line)
		got, inValue := "", false
		for row := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\n"), "\n") {
			if cells(row) > p.width {
				t.Fatalf("row %q is wider than %d", row, p.width)
			}
			before, text, begun := strings.Cut(row, begins)
			if inValue = inValue || begun; !begun {
				before, text, _ = strings.Cut(row, goesOn)
			}
			if strings.TrimSpace(before) != "" && !begun && !strings.HasPrefix(row, " "+named) {
				t.Fatalf("row %q has no sign", row)
			}
			if inValue {
				got += text
			}
		}
		if got != line {
			t.Fatalf("%q is not %q", got, line)
		}
	})
}
