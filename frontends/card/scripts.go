package card

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	zeroWidthNonJoiner = 0x200C
	zeroWidthJoiner    = 0x200D
	enclosingKeycap    = 0x20E3
)

// invisible holds the characters that show nothing, move what follows, or mean
// something only to a machine. Read only.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0080, 0x00A0, 1}, // C1 controls, no-break space
		{0x00AD, 0x00AD, 1}, // soft hyphen
		{0x034F, 0x034F, 1}, // grapheme joiner
		{0x061C, 0x061C, 1}, // Arabic letter mark
		{0x115F, 0x1160, 1}, // Hangul fillers
		{0x1680, 0x1680, 1}, // Ogham space
		{0x17B4, 0x17B5, 1}, // Khmer inherent vowels
		{0x180B, 0x180F, 1}, // Mongolian selectors
		{0x2000, 0x200B, 1}, // spaces of many widths, zero-width space
		{0x200E, 0x200F, 1}, // direction marks
		{0x2028, 0x202F, 1}, // separators, direction embeddings, narrow space
		{0x205F, 0x206F, 1}, // math space, invisible operators, isolates
		{0x2800, 0x2800, 1}, // blank braille
		{0x3164, 0x3164, 1}, // Hangul filler
		{0xE000, 0xF8FF, 1}, // private use: what it shows is anybody's guess
		{0xFDD0, 0xFDEF, 1}, // no characters
		{0xFEFF, 0xFEFF, 1}, // byte order mark
		{0xFFA0, 0xFFA0, 1}, // half-width filler
		{0xFFF0, 0xFFFB, 1}, // annotations
		{0xFFFE, 0xFFFF, 1}, // no characters
	},
	R32: []unicode.Range32{
		{0x13430, 0x1343F, 1}, // hieroglyph controls
		{0x16FE4, 0x16FE4, 1}, // Khitan filler
		{0x1BCA0, 0x1BCA3, 1}, // shorthand controls
		{0x1D159, 0x1D159, 1}, // empty note head
		{0x1D173, 0x1D17A, 1}, // musical controls
		{0x1FFFE, 0x1FFFF, 1},
		{0xE0000, 0xE0FFF, 1}, // tags, further variation selectors
		{0xF0000, 0x10FFFF, 1},
	},
	LatinOffset: 2,
}

// overlay holds the combining signs that strike through what they stand on.
// Read only.
var overlay = &unicode.RangeTable{R16: []unicode.Range16{
	{0x0334, 0x0338, 1}, {0x20D2, 0x20D3, 1}, {0x20D8, 0x20DA, 1}, {0x20E5, 0x20E6, 1}, {0x20EA, 0x20EB, 1},
}}

// pictographs approximates the characters that emoji are made of. Read only.
var pictographs = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x00A9, 0x00A9, 1},
		{0x00AE, 0x00AE, 1},
		{0x203C, 0x203C, 1},
		{0x2049, 0x2049, 1},
		{0x2122, 0x2122, 1},
		{0x2139, 0x2139, 1},
		{0x2190, 0x21FF, 1},
		{0x2300, 0x23FF, 1},
		{0x25AA, 0x25FE, 1},
		{0x2600, 0x27BF, 1},
		{0x2900, 0x297F, 1},
		{0x2B00, 0x2BFF, 1},
		{0x3030, 0x3030, 1},
		{0x303D, 0x303D, 1},
		{0x3297, 0x3299, 2},
	},
	R32:         []unicode.Range32{{0x1F000, 0x1FAFF, 1}},
	LatinOffset: 2,
}

// confusableGreek are the Greek letters that pass for Latin ones; the others
// are ordinary beside Latin letters, as in Δx.
const confusableGreek = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρκι"

func isVariation(r rune) bool { return r >= 0xFE00 && r <= 0xFE0F }

func isPictograph(r rune) bool { return unicode.Is(pictographs, r) }

func isKeycapBase(r rune) bool { return r >= '0' && r <= '9' || r == '#' || r == '*' }

func isEastAsian(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) ||
		r >= 0x3001 && r <= 0x303F || r >= 0xFF01 && r <= 0xFFEF && r != 0xFFA0
}

// joins reports whether a joiner or non-joiner stands where writing needs it:
// between the parts of an emoji, or between letters of a script that joins.
func joins(before, after, joiner rune) bool {
	if joiner == zeroWidthJoiner && isPictograph(before) && isPictograph(after) {
		return true
	}
	return isJoining(before) && isJoining(after)
}

func isJoining(r rune) bool {
	return unicode.IsLetter(r) && unicode.In(r,
		unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko, unicode.Devanagari, unicode.Bengali,
		unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada,
		unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Tibetan, unicode.Myanmar)
}

// enterWord looks at the word that begins here and decides which of its letters
// are foreign to it. A word is a run of letters and their signs.
func (e *escaper) enterWord(first rune) {
	e.foreign = nil
	if !unicode.IsLetter(first) {
		return
	}
	if first < utf8.RuneSelf && e.pos > 0 && e.src[e.pos-1] == '\\' {
		return // the letter of an escape such as \n belongs to no word
	}
	end := e.pos
	var latin, cyrillic, greek int
	for i, r := range e.src[e.pos:] {
		if !unicode.IsLetter(r) && !unicode.Is(unicode.M, r) {
			break
		}
		end = e.pos + i + utf8.RuneLen(r)
		switch {
		case unicode.Is(unicode.Latin, r):
			latin++
		case unicode.Is(unicode.Cyrillic, r):
			cyrillic++
		case unicode.Is(unicode.Greek, r):
			greek++
		}
	}
	e.wordEnd = end
	e.foreign = foreignLetters(latin, cyrillic, greek)
}

// foreignLetters picks the letters to mark in a word of more than one script:
// those that are not of its main script. nil means none.
func foreignLetters(latin, cyrillic, greek int) func(rune) bool {
	switch {
	case cyrillic == 0 && greek == 0, latin == 0 && greek == 0, latin == 0 && cyrillic == 0:
		return nil
	case latin >= cyrillic && latin >= greek:
		return func(r rune) bool {
			return unicode.Is(unicode.Cyrillic, r) || strings.ContainsRune(confusableGreek, r)
		}
	case cyrillic >= greek:
		return func(r rune) bool { return unicode.In(r, unicode.Latin, unicode.Greek) }
	}
	return func(r rune) bool { return unicode.In(r, unicode.Latin, unicode.Cyrillic) }
}
