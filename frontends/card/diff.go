package card

import (
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// DiffLine is one line of a unified diff. Sign is ' ' for a line of both texts,
// '-' for one of the old and '+' for one of the new; '*' for a line that a patch has
// besides them, such as its headers; '@' for what we say in between: how many lines
// are left out, that the end's line break is new or gone, which edit begins. A screen
// draws '@' where no other line can write. Text is escaped, without a line break and
// without the sign. Old and New are the line's number in either text, from 1: 0 in a
// text that does not have it, and in a patch that has no numbers. Of lines that are
// left out they are those of the first.
type DiffLine struct {
	Sign byte
	Text string
	Old  int
	New  int
}

// Bounds of what is compared line by line: two texts together, bytes and lines.
const (
	maxDiffBytes = 1 << 20
	maxDiffLines = 40_000
)

// context is how many lines that did not change stand around those that did.
const context = 3

// withinBounds reports whether two texts are small enough to be compared.
func withinBounds(o, n string) bool {
	return len(o)+len(n) <= maxDiffBytes && strings.Count(o, "\n")+strings.Count(n, "\n") <= maxDiffLines
}

// diff compares two escaped texts line by line. A line break stands between lines.
func diff(o, n string, w words.Words) []DiffLine {
	d := differ{old: splitLines(o), new: splitLines(n), w: w}
	if endsEmpty(d.old) && endsEmpty(d.new) {
		d.old, d.new = d.old[:len(d.old)-1], d.new[:len(d.new)-1]
	}
	changes := lcs.DiffLines(d.old, d.new)
	shown := 0 // lines of old that were dealt with
	for i, c := range changes {
		d.same(shown, c.Start, c.ReplStart-c.Start, i > 0, true)
		d.removed(c.Start, c.End)
		d.added(c.ReplStart, c.ReplEnd)
		shown = c.End
	}
	if len(changes) > 0 {
		d.same(shown, len(d.old), len(d.new)-len(d.old), true, false)
	}
	return d.out
}

// splitLines gives the lines of a text; a line break at its end makes the last one
// empty. No text has no lines.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func endsEmpty(lines []string) bool { return len(lines) > 1 && lines[len(lines)-1] == "" }

type differ struct {
	old, new []string
	w        words.Words
	out      []DiffLine
}

func (d *differ) removed(from, to int) {
	for at := from; at < to; at++ {
		l := DiffLine{Sign: '-', Text: d.old[at], Old: at + 1}
		if at == len(d.old)-1 && endsEmpty(d.old) {
			l.Sign, l.Text = '@', d.w.Say(words.EndBreakGone)
		}
		d.out = append(d.out, l)
	}
}

func (d *differ) added(from, to int) {
	for at := from; at < to; at++ {
		l := DiffLine{Sign: '+', Text: d.new[at], New: at + 1}
		if at == len(d.new)-1 && endsEmpty(d.new) {
			l.Sign, l.Text = '@', d.w.Say(words.EndBreakNew)
		}
		d.out = append(d.out, l)
	}
}

// same writes the lines from..to of the old text, which stand by further down in
// the new one: those beside a change before or behind them, and the count of the
// rest.
func (d *differ) same(from, to, by int, before, behind bool) {
	head, tail := from, to
	if before {
		head = min(from+context, to)
	}
	if behind {
		tail = max(to-context, head)
	}
	if left := tail - head; left > 1 { // one alone is shown
		d.context(from, head, by)
		d.out = append(d.out, DiffLine{'@', d.w.Say(words.UnchangedLines, Count(left)), head + 1, head + 1 + by})
		from = tail
	}
	d.context(from, to, by)
}

func (d *differ) context(from, to, by int) {
	for at := from; at < to; at++ {
		d.out = append(d.out, DiffLine{' ', d.old[at], at + 1, at + 1 + by})
	}
}

// tally counts what lines add and take away.
type tally struct{ added, removed int }

func count(lines []DiffLine) tally {
	var t tally
	for _, l := range lines {
		switch l.Sign {
		case '+':
			t.added++
		case '-':
			t.removed++
		}
	}
	return t
}

func (t tally) String() string {
	var parts []string
	if t.added > 0 {
		parts = append(parts, "+"+strconv.Itoa(t.added))
	}
	if t.removed > 0 {
		parts = append(parts, "−"+strconv.Itoa(t.removed))
	}
	return strings.Join(parts, " ")
}
