// Package words holds every sentence that a person reads on a frontend or from
// a command, in English and in Simplified Chinese. Screens and commands name a
// [Key]; nothing else in them spells out a sentence. Not here are texts for
// models and lines of the core's own log, which are English, and what a sentence
// quotes: paths, details of an error.
package words

import (
	"fmt"
	"slices"
	"strings"
)

// Key names one text of the catalogue. The texts of rooms that know no
// catalogue are named by their English.
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

// tables are all texts that have a key; none stands in two. Read only.
var tables = []map[Key]text{catalogue, commands, codes, cards, browsing, plainly, notices}

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

// Saying is what another room tells a person: texts of the catalogue with their
// arguments. In puts it together as say gives each text.
type Saying interface {
	In(say func(text string, args ...any) string) string
}

// Say gives the text of a key with its arguments filled in. A [Saying] among
// them is said in the same language. A key that the catalogue does not know is
// taken for the text itself.
func (w Words) Say(k Key, args ...any) string {
	s := string(k)
	if t, ok := find(k); ok {
		s = t.en
		if w.lang == Chinese {
			s = t.zh
		}
	}
	if len(args) == 0 {
		return s
	}
	said := slices.Clone(args)
	for i, a := range args {
		if a, ok := a.(Saying); ok {
			said[i] = w.Tell(a)
		}
	}
	return fmt.Sprintf(s, said...)
}

// Tell says what another room tells.
func (w Words) Tell(s Saying) string {
	return s.In(func(text string, args ...any) string { return w.Say(Key(text), args...) })
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

// Setting tells what a key of config.yaml does.
func (w Words) Setting(name string) string { return w.code("setting.", name) }

// Trust tells whether a hooks file counts.
func (w Words) Trust(state string) string { return w.code("trust.", state) }

// Severity names how much a finding about a hooks file matters.
func (w Words) Severity(severity string) string { return w.code("severity.", severity) }

// Finding tells what a finding about a hooks file means.
func (w Words) Finding(code string) string { return w.code("finding.", code) }

// Does tells what a rule does, or would do.
func (w Words) Does(action string) string { return w.code("does.", action) }

// Effect tells what a hook said.
func (w Words) Effect(effect string) string { return w.code("effect.", effect) }

// NotApplied tells why what a hook said does not count.
func (w Words) NotApplied(why string) string { return w.code("not_applied.", why) }

// Cause names what made a call be checked again.
func (w Words) Cause(cause string) string { return w.code("cause.", cause) }

// Why tells why a hook does not run for a call.
func (w Words) Why(why string) string { return w.code("why.", why) }

// Coded says what, and behind it the code that programs know it by.
func (w Words) Coded(what, code string) string {
	if w.lang == Chinese {
		return what + "（" + code + "）"
	}
	return what + " (" + code + ")"
}

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
	for _, table := range tables {
		if t, ok := table[k]; ok {
			return t, true
		}
	}
	zh, ok := sentences[k]
	return text{string(k), zh}, ok
}
