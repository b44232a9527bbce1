package card

import (
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// SectionKind says what a [Section] holds.
type SectionKind int

// The kinds of a section. A screen that does not know one leaves it out: the
// values alone hold everything.
const (
	SectionValue  SectionKind = iota // one argument, whole
	SectionDiff                      // what an edit takes away and puts in its place, line by line
	SectionChange                    // an argument that is not what it was
)

// Section is one part of a card, as a screen draws them from top to bottom: what
// changed, the values, the edits, what the model says of it all, and last the
// values that the edits were made of. Every argument is a SectionValue exactly
// once, so that every byte can be read. All strings are escaped.
type Section struct {
	Name   string // stands beside it: the argument's name, or what a value without one is called
	Kind   SectionKind
	Field  Field      // of a SectionValue
	Change *Change    // of a SectionChange, else nil
	Lines  []DiffLine // of a SectionDiff; of a SectionChange with several lines, where both sides exist
	Stats  string     // what Lines add and take away, as in "+12 −3"; "" for nothing
	Note   string     // what a screen says with it, in words; "" for nothing
}

// sections puts together what a card shows. compared are its changes.
func (c *Card) sections(args []byte, compared []comparison, w words.Words) {
	for i := range compared {
		c.Changes = append(c.Changes, compared[i].Change)
	}
	for i, x := range compared {
		c.Sections = append(c.Sections, x.section(&c.Changes[i], w))
	}
	edits := editsOf(args, w)
	c.Stats = edits.stats()
	var claimed, raws []Section
	for _, f := range c.Fields {
		s := Section{Name: f.Name, Field: f, Note: gap(f.Text, w)}
		switch {
		case edits.covered[f.Name]:
			raws = append(raws, s)
		case f.Claimed:
			s.Note = joined(w.Say(words.Claimed), s.Note)
			claimed = append(claimed, s)
		default:
			c.Sections = append(c.Sections, s)
		}
	}
	c.Sections = append(c.Sections, edits.sections...)
	c.Sections = append(append(c.Sections, claimed...), raws...)
}

// From how many empty lines, or spaces in a line, a screen says that there is more
// behind them: somebody who reads only what he sees would take it for the end.
const (
	manyLines  = 12
	manySpaces = 120
)

// gap says what white space in a value could push out of sight what stands behind
// it; "" for none that is long.
func gap(text string, w words.Words) string {
	lines, spaces := 0, 0
	breaks, run := 0, 0 // line breaks in the white space here, and spaces since the last
	begun := false
	for _, r := range text {
		switch {
		case r == '\n':
			breaks, run = breaks+1, 0
		case r == signReturn || unicode.IsSpace(r):
			run++
		default:
			if begun {
				breaks-- // the first one ends a line that is not empty
			}
			lines, spaces = max(lines, breaks), max(spaces, run)
			breaks, run, begun = 0, 0, true
		}
	}
	var notes []string
	if lines >= manyLines {
		notes = append(notes, w.Say(words.MoreBehindLines, Count(lines)))
	}
	if spaces >= manySpaces {
		notes = append(notes, w.Say(words.MoreBehindSpaces, Count(spaces)))
	}
	return joined(notes...)
}

func joined(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), " · ")
}
