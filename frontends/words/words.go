// Package words holds every sentence that a person reads on a frontend, in
// English and in Simplified Chinese. Screens name a [Key]; nothing else in a
// frontend spells out a sentence. Texts for models are not here: they are
// English and belong to the core.
package words

import (
	"fmt"
	"strings"
)

// Key names one text of the catalogue.
type Key string

// Language is a language of the catalogue.
type Language string

// The languages.
const (
	English Language = "en"
	Chinese Language = "zh-Hans"
)

// text is one entry: both languages side by side, so that none is forgotten.
type text struct{ en, zh string }

// Words speaks one language. The zero value speaks English.
type Words struct{ lang Language }

// In returns the catalogue in a language; an unknown one means English.
func In(l Language) Words { return Words{l} }

// Choose finds the language: option if it is set (from the configuration or a
// flag), else the first of LC_ALL, LC_MESSAGES and LANG that is set.
func Choose(option string, getenv func(string) string) Language {
	for _, s := range []string{option, getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG")} {
		if s == "" {
			continue
		}
		if s = strings.ToLower(s); s == "zh" || strings.HasPrefix(s, "zh-") || strings.HasPrefix(s, "zh_") {
			return Chinese
		}
		return English
	}
	return English
}

// Language is the language that is spoken.
func (w Words) Language() Language {
	if w.lang == Chinese {
		return Chinese
	}
	return English
}

// Say gives the text of a key with its arguments filled in. A key that the
// catalogue does not know is given back as it is.
func (w Words) Say(k Key, args ...any) string {
	t, ok := find(k)
	if !ok {
		return string(k)
	}
	s := t.en
	if w.lang == Chinese {
		s = t.zh
	}
	if len(args) == 0 {
		return s
	}
	return fmt.Sprintf(s, args...)
}

// End tells how a question ended: an end reason in words.
func (w Words) End(reason string) string { return w.code("end.", reason) }

// Code tells why an operation was refused.
func (w Words) Code(code string) string { return w.code("code.", code) }

// Reject tells why a command was refused.
func (w Words) Reject(code string) string { return w.code("reject.", code) }

// Answer tells what a person chose, as a past deed.
func (w Words) Answer(answer string) string { return w.code("answer.", answer) }

// Outcome tells what became of an operation that was allowed.
func (w Words) Outcome(outcome string) string { return w.code("outcome.", outcome) }

// Kind names a sort of operation.
func (w Words) Kind(kind string) string { return w.code("kind.", kind) }

// Scope names where a rule stands.
func (w Words) Scope(scope string) string { return w.code("scope.", scope) }

// Frontend names a sort of screen, as the place where somebody answers.
func (w Words) Frontend(kind string) string { return w.code("frontend.", kind) }

// List names several things one after the other.
func (w Words) List(items []string) string {
	if w.lang == Chinese {
		return strings.Join(items, "、")
	}
	return strings.Join(items, ", ")
}

// Because says what, and behind it why.
func (w Words) Because(what, why string) string {
	if w.lang == Chinese {
		return what + "：" + why
	}
	return what + ": " + why
}

// code speaks a word of a closed table; one that only a newer core knows is
// shown as it is.
func (w Words) code(table, code string) string {
	k := Key(table + code)
	if _, ok := find(k); !ok {
		return code
	}
	return w.Say(k)
}

func find(k Key) (text, bool) {
	t, ok := catalogue[k]
	if !ok {
		t, ok = codes[k]
	}
	return t, ok
}
