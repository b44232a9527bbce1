package card

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// alphabet is what a letter belongs to, as far as it can be taken for another's.
type alphabet int

const (
	beside alphabet = iota // signs, and writing that stands right beside Latin letters in ordinary text
	latin
	cyrillic
	greek
	other
	alphabets // how many there are
)

// neighbours are the scripts that people set right beside Latin letters, without a
// space. Read only.
var neighbours = append([]*unicode.RangeTable{
	unicode.Common, unicode.Inherited, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
	unicode.Arabic, unicode.Hebrew, unicode.Thai, unicode.Lao, unicode.Ethiopic, unicode.Syriac, unicode.Thaana, unicode.Yi,
}, stacking...)

func alphabetOf(r rune) alphabet {
	switch {
	case isASCII(r) || unicode.Is(unicode.Latin, r):
		return latin
	case r >= 0x2E80 && r <= 0xA4CF, r >= 0xAC00 && r <= 0xD7FF: // East Asian: the lookup below would say the same
		return beside
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	case unicode.Is(unicode.Greek, r):
		return greek
	case unicode.In(r, neighbours...):
		return beside
	}
	return other
}

// word counts what its letters are.
type word struct {
	letters   int
	of        [alphabets]int
	passing   int // of alphabets other than Latin, and pass for Latin
	intruding int // written beside Latin, and pass for Latin
	latinLike int
	accented  int // Latin, neither ASCII nor latinLike
}

func (w *word) add(r rune) {
	a := alphabetOf(r)
	w.letters++
	w.of[a]++
	switch {
	case isASCII(r):
	case a == latin && unicode.Is(latinLike, r):
		w.latinLike++
	case a == latin:
		w.accented++
	case !unicode.Is(passing, r):
	case a == beside:
		w.intruding++
	default:
		w.passing++
	}
}

// enterWord looks at the word that begins here and decides which of its letters
// are foreign to it. A word is a run of letters and their signs.
func (e *escaper) enterWord(first rune) {
	e.foreign = nil
	if !unicode.IsLetter(first) {
		return
	}
	if isASCII(first) && e.prev == '\\' {
		return // the letter of an escape such as \n belongs to no word
	}
	var w word
	end := e.pos
	for i, r := range e.src[e.pos:] {
		if unicode.IsLetter(r) {
			w.add(r)
		} else if isASCII(r) || !unicode.Is(unicode.M, r) {
			break
		}
		end = e.pos + i + utf8.RuneLen(r)
	}
	e.wordEnd = end
	e.foreign = e.foreignTo(w, first)
}

// foreignTo picks the letters to mark in a word: those that are not of its main
// alphabet; all of one that only imitates a Latin word; those that imitate plain
// letters in an English one. nil means none.
func (e *escaper) foreignTo(w word, first rune) func(rune) bool {
	main, used := latin, 0
	for a := latin; a < alphabets; a++ {
		if w.of[a] > 0 {
			used++
		}
		if w.of[a] > w.of[main] {
			main = a
		}
	}
	switch {
	case main == latin && w.of[latin] > 0 && (used > 1 || w.intruding > 0):
		return func(r rune) bool { return isForeignToLatin(r, w.letters) }
	case used > 1:
		return func(r rune) bool { a := alphabetOf(r); return a != main && a != beside }
	case used == 1 && main != latin && w.passing == w.of[main] && e.imitatesWord(w, first):
		return func(r rune) bool { return alphabetOf(r) == main }
	case w.latinLike > 0 && w.accented == 0:
		return func(r rune) bool { return unicode.Is(latinLike, r) }
	}
	return nil
}

// isForeignToLatin spares Greek letters that nobody takes for Latin ones, as in Δx,
// and in a short word those that only resemble one, as in αx.
func isForeignToLatin(r rune, letters int) bool {
	switch alphabetOf(r) {
	case greek:
		return unicode.Is(passing, r) && (letters > 2 || !strings.ContainsRune("αγσυ", r))
	case beside:
		return unicode.Is(passing, r)
	case cyrillic, other:
		return true
	}
	return false
}

// imitatesWord decides about a word of another alphabet whose letters all pass for
// Latin ones. Ordinary text in that alphabet has others in the same line; a line
// without a Latin letter has nothing to be taken for, unless one stands beside it. A small Greek letter by itself
// is a quantity.
func (e *escaper) imitatesWord(w word, first rune) bool {
	if w.letters == 1 && unicode.Is(unicode.Greek, first) && unicode.IsLower(first) && first != 'ο' {
		return false
	}
	line := e.around.lineOf(e)
	return (line.latin || e.is(nearLatin)) && !line.foreign
}

// surroundings remembers what was found out about the text around, so that each
// part of it is looked at once.
type surroundings struct {
	line, run       traits
	lineEnd, runEnd int
}

// traits tell of a line, or of a run without ASCII, whether it has a letter of
// ASCII, one of another alphabet that passes for nothing, an East Asian one.
type traits struct{ latin, foreign, eastAsian bool }

func (s *surroundings) lineOf(e *escaper) traits {
	if e.pos >= s.lineEnd {
		from := strings.LastIndexByte(e.src[:e.pos], '\n') + 1
		length := strings.IndexByte(e.src[e.pos:], '\n')
		if s.lineEnd = len(e.src); length >= 0 {
			s.lineEnd = e.pos + length
		}
		s.line = traitsOf(e.src[from:s.lineEnd])
	}
	return s.line
}

func (s *surroundings) runOf(e *escaper) traits {
	if e.pos >= s.runEnd {
		from := e.pos
		for from > 0 && e.src[from-1] >= utf8.RuneSelf {
			from--
		}
		for s.runEnd = e.pos; s.runEnd < len(e.src) && e.src[s.runEnd] >= utf8.RuneSelf; {
			s.runEnd++
		}
		s.run = traitsOf(e.src[from:s.runEnd])
	}
	return s.run
}

func traitsOf(text string) traits {
	var t traits
	for _, r := range text {
		switch {
		case isASCII(r):
			t.latin = t.latin || isASCIILetter(r)
		case isEastAsianLetter(r):
			t.eastAsian = true
		case !t.foreign && unicode.IsLetter(r) && !unicode.Is(passing, r):
			a := alphabetOf(r)
			t.foreign = a != latin && a != beside
		}
	}
	return t
}
