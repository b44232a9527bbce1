package card

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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

// maxCombining is how many combining signs one letter may carry before the
// rest is marked. Living scripts need three.
const maxCombining = 4

// Escape makes visible what could deceive in s and leaves ordinary text of any
// script as it is. Line feeds and tabs stay; a carriage return stays visible as
// ␍ before a line feed and as a mark anywhere else.
func Escape(s string) string { return escape(s, false) }

// Line is [Escape] for a place of one line: line feeds show as ⏎, tabs as ⇥.
func Line(s string) string { return escape(s, true) }

func escape(s string, line bool) string {
	if plain(s, line) {
		return s
	}
	e := escaper{src: s, line: line}
	e.out.Grow(len(s) + len(s)/8)
	for e.pos < len(s) {
		e.step()
	}
	return e.out.String()
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
	src  string
	line bool
	pos  int
	out  strings.Builder

	base      rune // the last character that others can combine with, 0 none
	combining int  // signs on it so far
	wordEnd   int  // where the current word ends
	foreign   func(rune) bool
}

func (e *escaper) step() {
	r, size := utf8.DecodeRuneInString(e.src[e.pos:])
	if r == utf8.RuneError && size == 1 {
		fmt.Fprintf(&e.out, "%sx%02X%s", markOpen, e.src[e.pos], markClose)
		e.pos++
		e.base = 0
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
	e.pos = next
}

// sign writes the characters that have a sign of their own.
func (e *escaper) sign(r rune, next int) bool {
	switch {
	case r == '\n' && e.line:
		e.out.WriteRune(signNewline)
	case r == '\t' && e.line:
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
	switch r {
	case signReturn:
		return e.at(next) == '\n'
	case signNewline, signTab:
		return e.line
	case '⟨':
		rest := e.src[next:]
		return strings.HasPrefix(rest, "U+") || strings.HasPrefix(rest, "x")
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
	case r == zeroWidthJoiner || r == zeroWidthNonJoiner || isVariation(r):
	case unicode.Is(unicode.M, r):
		e.combining++
	default:
		e.base, e.combining = r, 0
	}
}

func (e *escaper) deceives(r rune, next int) bool {
	switch {
	case r < 0x20, r == 0x7f:
		return true
	case r < 0x7f:
		return e.isForeign(r)
	case r == zeroWidthJoiner, r == zeroWidthNonJoiner:
		return !joins(e.base, e.at(next), r)
	case isVariation(r):
		return !(isPictograph(e.base) || isKeycapBase(e.base)) || r < 0xFE0E || e.afterVariation()
	case r == 0x3000: // the wide space is ordinary in East Asian text only
		return !isEastAsian(e.base) && !isEastAsian(e.at(next))
	case unicode.Is(invisible, r):
		return true
	case unicode.Is(unicode.M, r):
		return !e.combines(r)
	}
	return e.isForeign(r)
}

func (e *escaper) afterVariation() bool {
	last, _ := utf8.DecodeLastRuneInString(e.src[:e.pos])
	return isVariation(last)
}

// combines reports whether a combining sign stands where a language puts one:
// on a letter that carries few, and not one that strikes its letter out.
func (e *escaper) combines(r rune) bool {
	if r == enclosingKeycap {
		return isKeycapBase(e.base)
	}
	onLetter := unicode.IsLetter(e.base) || e.base == 0x25CC
	return onLetter && e.combining < maxCombining && !unicode.Is(overlay, r)
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
