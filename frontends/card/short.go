package card

import (
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// About is [events.About] made safe to show in one line, for lists. args is
// canonical JSON.
func About(args []byte) string { return Line(events.About(args)) }

// Short is a value for a place that cannot scroll, such as a message of another
// protocol that somebody else's screen draws: its text when that is at most
// limit bytes, else its beginning and its end with the count of what is left out
// between them, as in "⋯ 79,000 bytes ⋯". left counts the bytes of the raw value
// that are not in the text. No character and no mark is cut. limit is of the bytes
// of the text that is kept, the count beside it not included.
func Short(f Field, limit int, w words.Words) (text string, left int) {
	limit = max(limit, 0)
	if len(f.Text) <= limit {
		return f.Text, 0
	}
	half := limit / 2
	head, tail := cutBack(f.Text, half), cutForward(f.Text, len(f.Text)-half)
	left = len(Unescape(f.Text[head:tail]))
	return f.Text[:head] + LeftOut(left, w) + f.Text[tail:], left
}

// LeftOut says in words how many bytes of a value are not shown, as in
// "⋯ 79,000 bytes ⋯". No value can say so itself: [Escape] marks the sign where a
// value has it before a number.
func LeftOut(bytes int, w words.Words) string {
	return " ⋯ " + w.Say(words.Bytes, Count(bytes)) + " ⋯ "
}

// Shown writes a cut value in one piece, with the counts of what is left out.
func (c Cut) Shown(w words.Words) string {
	text := c.Lead + c.Middle + c.Trail
	if c.Before > 0 {
		text = LeftOut(c.Before, w) + text
	}
	if c.After > 0 {
		text += LeftOut(c.After, w)
	}
	return text
}

// cutBack and cutForward give the nearest place where an escaped text may be cut.
func cutBack(s string, at int) int {
	for at > 0 && !cuttable(s, at) {
		at--
	}
	return at
}

func cutForward(s string, at int) int {
	for at < len(s) && !cuttable(s, at) {
		at++
	}
	return at
}
