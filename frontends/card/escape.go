package card

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A mark stands for a character that a reader could not see, or would take for
// another one: ⟨U+202E⟩ for a character, ⟨xFF⟩ for a byte that is no UTF-8.
// Where the text itself holds what looks like a mark, its bracket is marked, so
// that a mark on the screen is never the author's and [Unescape] is exact.
const (
	markOpen  = "⟨"
	markClose = "⟩"
)

// Three signs are kinder than a mark: the carriage return of a Windows line
// end, and in one-line places the line feed and the tab.
const (
	signReturn  = '␍'
	signNewline = '⏎'
	signTab     = '⇥'
)

// signLeftOut stands beside the count of what is not shown; see [LeftOut].
const signLeftOut = '⋯'

// Escape makes visible what could deceive in s and leaves ordinary text of any
// script as it is. Line feeds and tabs stay; a carriage return stays visible as
// ␍ before a line feed and as a mark anywhere else.
func Escape(s string) string { return escape(s, 0) }

// Line is [Escape] for a place of one line: line feeds show as ⏎, tabs as ⇥.
func Line(s string) string { return escape(s, oneLine) }

// manner is what a text is escaped for, as flags. 0 is prose.
type manner int

const (
	oneLine   manner = 1 << iota // a place of one line
	command                      // what a shell reads: typographic quotes and dashes do not quote there
	nearLatin                    // beside a text with Latin letters, which a word could imitate
	exact                        // beside a text that looks the same: all but ASCII is marked
)

func escape(s string, as manner) string {
	if plain(s, as&oneLine != 0) {
		return s
	}
	e := escaper{src: s, as: as}
	e.out.Grow(len(s) + len(s)/8)
	for e.pos < len(s) {
		e.step()
	}
	return e.out.String()
}

// escapeBoth escapes two texts that are read against each other, so that they never
// look the same where they differ.
func escapeBoth(o, n string, as manner) (before, now string) {
	if strings.ContainsFunc(o, isASCIILetter) || strings.ContainsFunc(n, isASCIILetter) {
		as |= nearLatin
	}
	if o != n && norm.NFKC.String(o) == norm.NFKC.String(n) {
		as |= exact
	}
	return escape(o, as), escape(n, as)
}

// plain reports whether s is printable ASCII throughout, which needs no work.
func plain(s string, line bool) bool {
	for i := range len(s) {
		c := s[i]
		if c >= 0x7f || c < ' ' && (line || c != '\n' && c != '\t') {
			return false
		}
	}
	return true
}

type escaper struct {
	src string
	as  manner
	pos int
	out strings.Builder

	prev      rune // the character before, 0 at the start
	base      rune // the last character that others can combine with, 0 none
	combining int  // signs on it so far
	wordEnd   int  // where the current word ends
	foreign   func(rune) bool
	around    surroundings
}

func (e *escaper) is(m manner) bool { return e.as&m != 0 }

func (e *escaper) step() {
	r, size := utf8.DecodeRuneInString(e.src[e.pos:])
	if r == utf8.RuneError && size == 1 {
		fmt.Fprintf(&e.out, "%sx%02X%s", markOpen, e.src[e.pos], markClose)
		e.pos++
		e.base, e.prev = 0, r
		return
	}
	if e.pos >= e.wordEnd {
		e.enterWord(r)
	}
	next := e.pos + size
	switch {
	case e.sign(r, next):
	case e.deceives(r, next):
		writeMark(&e.out, r)
		e.base = 0
	default:
		e.out.WriteString(e.src[e.pos:next])
		e.track(r)
	}
	e.pos, e.prev = next, r
}

// sign writes the characters that have a sign of their own.
func (e *escaper) sign(r rune, next int) bool {
	switch {
	case r == '\n' && e.is(oneLine):
		e.out.WriteRune(signNewline)
	case r == '\t' && e.is(oneLine):
		e.out.WriteRune(signTab)
	case r == '\n' || r == '\t':
		e.out.WriteRune(r)
	case r == '\r' && e.at(next) == '\n':
		e.out.WriteRune(signReturn)
	case e.isLiteralSign(r, next):
		writeMark(&e.out, r)
	default:
		return false
	}
	e.base = 0
	return true
}

// isLiteralSign finds text that would read as a sign or a mark of ours.
func (e *escaper) isLiteralSign(r rune, next int) bool {
	rest := e.src[next:]
	switch r {
	case signReturn:
		return e.at(next) == '\n'
	case signNewline, signTab:
		return e.is(oneLine)
	case signLeftOut:
		return len(rest) > 1 && rest[0] == ' ' && rest[1] >= '0' && rest[1] <= '9'
	case '⟨':
		return strings.HasPrefix(rest, "U+") || strings.HasPrefix(rest, "x")
	case 0x1438, 0x2329, 0x276C, 0x2770, 0x3008: // brackets that look like ours
		return strings.HasPrefix(rest, "U+")
	}
	return false
}

func (e *escaper) at(pos int) rune {
	if pos >= len(e.src) {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(e.src[pos:])
	return r
}

// track remembers what a following sign would combine with.
func (e *escaper) track(r rune) {
	switch {
	case r == zeroWidthJoiner || r == zeroWidthNonJoiner || isVariation(r) || isTag(r):
	case unicode.Is(unicode.M, r):
		e.combining++
	default:
		e.base, e.combining = r, 0
	}
}

// deceives reports whether a character would be overlooked here, or taken for
// another one.
func (e *escaper) deceives(r rune, next int) bool {
	after := e.at(next)
	switch {
	case r < 0x20, r == 0x7f:
		return true
	case r < 0x7f:
		return e.isForeign(r)
	case e.is(exact):
		return true
	case isIdeograph(r): // most of East Asian text, and nothing below is about them
		return unicode.Is(strokes, r) && e.imitates(r, after)
	case r == zeroWidthJoiner, r == zeroWidthNonJoiner:
		return !e.joins(r, after)
	case isVariation(r), unicode.Is(mongolianFormats, r):
		return !e.selects(r, after)
	case isSpace(r):
		return !e.spaces(r, next)
	case isTag(r):
		return !e.inFlag()
	case unicode.Is(invisible, r), !isAssigned(r):
		return true
	case unicode.Is(unicode.M, r):
		return !e.combines(r)
	case isFullWidth(r):
		return !e.isWideHere(r, after)
	}
	return e.isForeign(r) || e.imitates(r, after)
}

// combines reports whether a combining sign stands where a language puts one:
// on a letter that carries few, and not one that strikes its letter out.
func (e *escaper) combines(r rune) bool {
	if r == enclosingKeycap {
		return isKeycapBase(e.base)
	}
	onLetter := unicode.IsLetter(e.base) && ofSameWriting(r, e.base) || e.base == 0x25CC
	return onLetter && e.combining < maxSigns(e.base) && !unicode.Is(overlay, r)
}

// ofSameWriting keeps the signs of other scripts off the letters of an alphabet.
func ofSameWriting(sign, letter rune) bool {
	a := alphabetOf(letter)
	return a == beside || a == alphabetOf(sign) || unicode.Is(unicode.Inherited, sign)
}

func (e *escaper) isForeign(r rune) bool {
	return e.foreign != nil && e.pos < e.wordEnd && e.foreign(r)
}

func writeMark(b *strings.Builder, r rune) { fmt.Fprintf(b, "%sU+%04X%s", markOpen, r, markClose) }

// Unescape gives back what [Escape] was given.
func Unescape(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		text, size := readMark(s[i:])
		switch {
		case size > 0:
			b.WriteString(text)
		case strings.HasPrefix(s[i:], string(signReturn)+"\n"):
			b.WriteByte('\r')
			size = len(string(signReturn))
		default:
			_, size = utf8.DecodeRuneInString(s[i:])
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// Mark is one sort of mark in an escaped text, and how often it stands there.
type Mark struct {
	Text  string // as it is shown, such as ⟨U+202E⟩
	Count int
}

// Marks counts the marks of an escaped text, in order of first appearance.
func Marks(escaped string) []Mark {
	var all []Mark
	at := map[string]int{}
	for i := strings.Index(escaped, markOpen); i >= 0; {
		size := 0
		if _, size = readMark(escaped[i:]); size > 0 {
			text := escaped[i : i+size]
			if n, ok := at[text]; ok {
				all[n].Count++
			} else {
				at[text] = len(all)
				all = append(all, Mark{text, 1})
			}
		} else {
			size = len(markOpen)
		}
		next := strings.Index(escaped[i+size:], markOpen)
		if next < 0 {
			break
		}
		i += size + next
	}
	return all
}

// MarkAt gives the length of the mark at the start of an escaped text, 0 when
// there is none.
func MarkAt(escaped string) int {
	_, size := readMark(escaped)
	return size
}

// readMark reads a mark at the start of s: what it stands for and its length,
// 0 when there is none.
func readMark(s string) (text string, size int) {
	if !strings.HasPrefix(s, markOpen) {
		return "", 0
	}
	end := strings.Index(s[:min(len(s), 16)], markClose)
	if end < 0 {
		return "", 0
	}
	code := s[len(markOpen):end]
	size = end + len(markClose)
	if hex, ok := strings.CutPrefix(code, "U+"); ok {
		if n, err := strconv.ParseUint(hex, 16, 32); err == nil && n <= unicode.MaxRune {
			return string(rune(n)), size
		}
	}
	if hex, ok := strings.CutPrefix(code, "x"); ok && len(hex) == 2 {
		if n, err := strconv.ParseUint(hex, 16, 8); err == nil {
			return string([]byte{byte(n)}), size
		}
	}
	return "", 0
}
