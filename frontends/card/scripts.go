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
	noBreakSpace       = 0x00A0
	narrowNoBreakSpace = 0x202F
)

// invisible holds the characters that show nothing, move what follows, or mean
// something only to a machine. Read only.
var invisible = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0080, 0x009F, 1}, // C1 controls
		{0x00AD, 0x00AD, 1}, // soft hyphen
		{0x034F, 0x034F, 1}, // grapheme joiner
		{0x061C, 0x061C, 1}, // Arabic letter mark
		{0x115F, 0x1160, 1}, // Hangul fillers
		{0x1680, 0x1680, 1}, // Ogham space
		{0x17B4, 0x17B5, 1}, // Khmer inherent vowels
		{0x2000, 0x200B, 1}, // spaces of many widths, zero-width space
		{0x200E, 0x200F, 1}, // direction marks
		{0x2028, 0x202E, 1}, // separators, direction embeddings
		{0x205F, 0x206F, 1}, // math space, invisible operators, isolates
		{0x2800, 0x2800, 1}, // blank braille
		{0x3164, 0x3164, 1}, // Hangul filler
		{0xE000, 0xF8FF, 1}, // private use: what it shows is anybody's guess
		{0xFDD0, 0xFDEF, 1}, // no characters
		{0xFEFF, 0xFEFF, 1}, // byte order mark
		{0xFFA0, 0xFFA0, 1}, // half-width filler
		{0xFFF0, 0xFFFC, 1}, // annotations, the place of an object
		{0xFFFE, 0xFFFF, 1}, // no characters
	},
	R32: []unicode.Range32{
		{0x13430, 0x1343F, 1}, // hieroglyph controls
		{0x16FE4, 0x16FE4, 1}, // Khitan filler
		{0x1BCA0, 0x1BCA3, 1}, // shorthand controls
		{0x1D159, 0x1D159, 1}, // empty note head
		{0x1D173, 0x1D17A, 1}, // musical controls
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

// mongolianFormats choose the form of a letter, or keep a suffix apart. Read only.
var mongolianFormats = &unicode.RangeTable{R16: []unicode.Range16{{0x180B, 0x180F, 1}}}

// stacking are the scripts whose syllables are built from many signs. Read only.
var stacking = []*unicode.RangeTable{
	unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
	unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Tibetan, unicode.Myanmar, unicode.Tai_Tham,
	unicode.Balinese, unicode.Javanese,
}

// viramas kill a vowel; a joiner behind one chooses how that is written. Read only.
var viramas = &unicode.RangeTable{R16: []unicode.Range16{
	{0x094D, 0x0D4D, 0x80}, {0x0DCA, 0x0DCA, 1}, {0x1039, 0x1039, 1}, {0x17D2, 0x17D2, 1},
}}

// flags are the flags that are written with tags: England, Scotland, Wales. Read only.
var flags = []string{
	"\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F",
	"\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F",
	"\U0001F3F4\U000E0067\U000E0062\U000E0077\U000E006C\U000E0073\U000E007F",
}

func isVariation(r rune) bool { return r >= 0xFE00 && r <= 0xFE0F }

func isTag(r rune) bool { return r >= 0xE0020 && r <= 0xE007F }

func isPictograph(r rune) bool { return unicode.Is(pictographs, r) }

func isKeycapBase(r rune) bool { return r >= '0' && r <= '9' || r == '#' || r == '*' }

func isSpace(r rune) bool { return r == 0x3000 || r == noBreakSpace || r == narrowNoBreakSpace }

// isAssigned reports whether a character is known to show something: one that is
// new to our tables could be anything, save where only ideographs and pictures are.
func isAssigned(r rune) bool {
	return unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) ||
		r >= 0x20000 && r <= 0x3FFFD && r&0xFFFE != 0xFFFE || r >= 0x1F000 && r <= 0x1FAFF
}

// maxSigns is how many combining signs one letter may carry before the rest is
// marked.
func maxSigns(letter rune) int {
	if unicode.In(letter, stacking...) {
		return 8
	}
	return 4
}

func isEastAsian(r rune) bool {
	return isEastAsianLetter(r) || r >= 0x3001 && r <= 0x303F || r >= 0xFF01 && r <= 0xFFEF && r != 0xFFA0
}

func isEastAsianLetter(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}

func isIdeograph(r rune) bool { return r >= 0x3400 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3 }

// selects reports whether a selector stands behind what it can choose a form of.
func (e *escaper) selects(r, after rune) bool {
	switch {
	case r == 0x180E:
		return unicode.Is(unicode.Mongolian, e.prev) && unicode.Is(unicode.Mongolian, after)
	case !isVariation(r):
		return unicode.Is(unicode.Mongolian, e.prev) && unicode.IsLetter(e.prev)
	}
	return r >= 0xFE0E && (isPictograph(e.prev) || isKeycapBase(e.prev) && after == enclosingKeycap)
}

// spaces reports whether a space that is none of ASCII's stands where writing puts
// it: the wide one in East Asian text, those that keep a line together before the
// stops of French and beside its quotation marks, the narrow one in Mongolian.
func (e *escaper) spaces(r rune, next int) bool {
	after := e.at(next)
	switch {
	case r == 0x3000:
		return isEastAsian(e.base) || isEastAsian(after) || e.around.runOf(e).eastAsian
	case unicode.Is(unicode.Mongolian, e.prev) && unicode.Is(unicode.Mongolian, after):
		return r == narrowNoBreakSpace
	case e.prev == '«':
		return unicode.IsLetter(after)
	case after == '»':
		return true
	}
	behind := e.at(next + 1)
	return unicode.IsLetter(e.prev) && after != 0 && strings.ContainsRune("?!;:", after) && (behind == 0 || unicode.IsSpace(behind))
}

// inFlag reports whether a tag is part of one of the flags.
func (e *escaper) inFlag() bool {
	from := max(0, e.pos-len(flags[0]))
	at := strings.LastIndex(e.src[from:e.pos], "\U0001F3F4")
	if at < 0 {
		return false
	}
	for _, flag := range flags {
		if from+at+len(flag) > e.pos && strings.HasPrefix(e.src[from+at:], flag) {
			return true
		}
	}
	return false
}

// joins reports whether a joiner or non-joiner stands where writing needs it:
// between the parts of an emoji, between letters of a script that joins, behind a
// killed vowel, or before the ending that Persian sets to a foreign word.
func (e *escaper) joins(joiner, after rune) bool {
	switch {
	case joiner == zeroWidthJoiner && isPictograph(e.base) && isPictograph(after):
		return true
	case e.prev == zeroWidthJoiner || e.prev == zeroWidthNonJoiner:
		return false
	case unicode.Is(viramas, e.prev):
		return !isASCII(after) || after == 0 || unicode.IsSpace(after) || unicode.IsPunct(after)
	case joiner == zeroWidthNonJoiner && unicode.Is(unicode.Arabic, after):
		return unicode.IsLetter(e.base) || unicode.IsDigit(e.base)
	}
	return isJoining(e.base) && (isJoining(after) || unicode.Is(viramas, after))
}

func isASCII(r rune) bool { return r < utf8.RuneSelf }

func isJoining(r rune) bool {
	return unicode.IsLetter(r) && (unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko) ||
		unicode.In(r, stacking...))
}
