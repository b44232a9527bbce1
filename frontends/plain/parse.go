package plain

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// verb is what a line wants.
type verb int

const (
	doNothing verb = iota // an empty line
	doAnswer
	doLater
	doExplain
	doShow
	doList
	doHistory
	doHelp
	doQuit
)

// command is a line that was understood. Number is of the question, where the verb
// is about one.
type command struct {
	verb   verb
	number int
	answer events.Answer
	text   string // to the model
}

// numbered are the verbs that need a question's number, and nothing behind it.
var numbered = map[string]command{
	"c": {verb: doAnswer, answer: events.AnswerContinue},
	"x": {verb: doAnswer, answer: events.AnswerCancel},
	"l": {verb: doLater},
	"?": {verb: doExplain},
}

// alone are the verbs that stand alone.
var alone = map[string]command{"list": {verb: doList}, "h": {verb: doHistory}, "help": {verb: doHelp}, "q": {verb: doQuit}}

// parse reads a line. What is not understood whole is a problem, and does nothing.
func parse(line string) (c command, problem words.Key) {
	first, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	first = strings.ToLower(first)
	rest = strings.TrimSpace(rest)
	if c, ok := alone[first]; ok && rest == "" {
		return c, ""
	}
	if n, ok := number(first); ok && rest == "" {
		return command{verb: doShow, number: n}, ""
	}
	switch c, ok := numbered[first]; {
	case first == "":
		return command{}, ""
	case first == "w":
		return parseWords(rest)
	case !ok:
		return command{}, words.PlainUnknown
	case rest == "":
		return command{}, words.PlainWhich
	default:
		if c.number, ok = number(rest); !ok {
			return command{}, words.PlainUnknown
		}
		return c, ""
	}
}

// parseWords reads what stands behind w.
func parseWords(rest string) (c command, problem words.Key) {
	of, text, _ := strings.Cut(rest, " ")
	c = command{verb: doAnswer, answer: events.AnswerCancel, text: strings.TrimSpace(text)}
	var ok bool
	switch c.number, ok = number(of); {
	case of == "":
		return command{}, words.PlainWhich
	case !ok:
		return command{}, words.PlainUnknown
	}
	if problem = unsendable(c.text); problem != "" {
		return command{}, problem
	}
	return c, ""
}

// unsendable tells what is wrong with words to the model, "" for nothing.
func unsendable(text string) (problem words.Key) {
	switch {
	case text == "":
		return words.PlainNoWords
	case len(text) > maxWords:
		return words.PlainTooLong
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
		return words.PlainNotText
	}
	return ""
}

// number reads a question's number: digits, none of them a zero in front.
func number(s string) (int, bool) {
	if s == "" || s[0] == '0' || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

func itoa(n int) string { return strconv.Itoa(n) }
