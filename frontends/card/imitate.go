package card

import (
	"strings"
	"unicode"
)

func isASCIILetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func isASCIIDigit(r rune) bool { return r >= '0' && r <= '9' }

// isTight reports whether a sign that touches r reads as part of the same word,
// path, address or command.
func isTight(r rune) bool {
	return isASCIILetter(r) || isASCIIDigit(r) || r != 0 && strings.ContainsRune("/\\.-_~$:@&|;<>*", r)
}

// imitates reports whether a character that is no letter of a foreign alphabet
// passes for one of ASCII, as it stands here.
func (e *escaper) imitates(r, after rune) bool {
	switch {
	case unicode.Is(signs, r):
		return e.imitatesSign(r, after)
	case unicode.Is(strokes, r):
		return isTight(e.prev) && isTight(after) && !(isASCIIDigit(e.prev) && isASCIIDigit(after))
	case isStyled(r):
		return r == kelvin || isStyled(e.prev) || isStyled(after) || isASCIILetter(e.prev) || isASCIILetter(after)
	case unicode.Is(unicode.Nd, r) && unicode.Is(passing, r):
		return isASCIILetter(e.prev) || isASCIIDigit(e.prev) || isASCIIDigit(after)
	}
	return e.is(command) && e.misquotes(r, after)
}

// imitatesSign leaves alone what a language or a formula puts where it stands.
func (e *escaper) imitatesSign(r, after rune) bool {
	ordinary := false
	switch {
	case r == 0x1FEF: // the grave accent by another name
		return true
	case r == 0x037E: // the Greek question mark looks like nothing but a semicolon
		return !unicode.Is(unicode.Greek, e.prev)
	case r == 0x2044: // ½ as 1⁄2
		ordinary = unicode.IsDigit(e.prev) && unicode.IsDigit(after)
	case r >= 0x02BB && r <= 0x02BE, r == 0xA78B, r == 0xA78C: // letters of Uzbek, Ukrainian, Hawaiian, Mayan
		ordinary = unicode.IsLetter(e.prev) && (unicode.IsLetter(after) || !isTight(after))
	case r >= 0x2032 && r <= 0x2037: // minutes, feet, derivatives
		ordinary = unicode.IsLetter(e.prev) || unicode.IsDigit(e.prev)
	case r == 0x2212: // a negative number
		ordinary = isASCIIDigit(after)
	case r == 0x02D0, r == 0x01C0, r == 0x01C3: // length in phonetics, clicks
		ordinary = unicode.IsLetter(after)
	}
	return !ordinary && (isTight(e.prev) || isTight(after))
}

// misquotes finds in a command what a person reads as a quotation mark, the dash of
// an option or a pipe, and a shell does not.
func (e *escaper) misquotes(r, after rune) bool {
	switch r {
	case '’':
		return !(unicode.IsLetter(e.prev) && unicode.IsLetter(after))
	case '‘', '‚', '‛', '“', '”', '„', '‟', '‹', '›', '│', '┃':
		return true
	case '‒', '–', '—', '―':
		return !unicode.IsLetter(e.prev) && !unicode.IsDigit(e.prev) && isTight(after)
	}
	return false
}

const kelvin = 0x212A

// isStyled finds letters and digits of formulas, which are whole alphabets in bold,
// script or outline, and Roman numerals of one character. One alone is ordinary.
func isStyled(r rune) bool {
	switch {
	case r == 0x2139: // ℹ
		return false
	case r >= 0x1D400 && r <= 0x1D7FF, r >= 0x1FBF0 && r <= 0x1FBF9, r >= 0x2160 && r <= 0x217F:
		return true
	}
	return r >= 0x2100 && r <= 0x214F && unicode.IsLetter(r) && r != 0x2126 && r != 0x212B
}

func isFullWidth(r rune) bool { return r >= 0xFF01 && r <= 0xFF5E }

// isWideHere reports whether a full-width form of an ASCII character stands where
// East Asian text has one: a stop in a line of such text, a letter or digit beside
// such letters, another sign between them.
func (e *escaper) isWideHere(r, after rune) bool {
	if !e.around.lineOf(e).eastAsian {
		return false
	}
	narrow := r - 0xFEE0
	visible := func(r rune) bool { return r > ' ' && r < 0x7F }
	switch {
	case isASCIILetter(narrow), isASCIIDigit(narrow):
		return e.around.runOf(e).eastAsian
	case narrow == ':':
		return !visible(e.prev) || !visible(after) || isASCIIDigit(e.prev) && isASCIIDigit(after) // the time
	case narrow == '%' && unicode.IsDigit(e.prev), strings.ContainsRune("!,;?()", narrow):
		return true
	}
	return !visible(e.prev) && !visible(after) && e.around.runOf(e).eastAsian
}
