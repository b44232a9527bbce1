package hooks

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// complain tells of what keeps a rule from ever holding. It is an error, except
// in a file that was written for iCode: that loads as it is.
func (f fileReader) complain(v value, text sentence, args ...any) {
	if f.icode {
		v.matchesNothing(text, args...)
	} else {
		v.fail(text, args...)
	}
}

// oneLine wants a text without any control character.
func (f fileReader) oneLine(v value, text string) {
	if found := controlIn(text, ""); found != "" {
		f.complain(v, "holds a control character (%s)", found)
	}
}

// labels wants the words of a match to be one line each.
func (f fileReader) labels(o object) {
	labels := o.field("profiles").list()
	for _, key := range []string{"profile", "tool_kind", "tool_name", "cwd"} {
		labels = append(labels, o.field(key))
	}
	for _, v := range labels {
		f.oneLine(v, v.text(""))
	}
}

// lines wants a text without a control character other than a line break and a
// tab: in double quotes the \b of a regex becomes a backspace.
func (f fileReader) lines(v value) {
	found := controlIn(v.text(""), "\n\t")
	switch {
	case found == "":
	case isJSON(f.file):
		f.complain(v, "holds a control character (%s); in JSON, write each backslash of a regex twice", found)
	default:
		f.complain(v, "holds a control character (%s); in YAML, write a regex in single quotes", found)
	}
}

// controlIn names the first control character of a text that is not among the
// allowed ones, "" when there is none.
func controlIn(text, allowed string) string {
	at := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(allowed, r) })
	if at < 0 {
		return ""
	}
	r, _ := utf8.DecodeRuneInString(text[at:])
	return fmt.Sprintf("U+%04X", r)
}

// directory tells of a pattern that no working directory matches. Those are
// absolute paths.
func (f fileReader) directory(v value, pattern string) {
	switch {
	case pattern == "":
	case pattern[0] == '~':
		f.complain(v, "~ is not expanded; write the whole path")
	case !strings.ContainsRune(`/*[{\`, rune(pattern[0])):
		v.matchesNothing("matches no whole path; begin it with / or **/")
	case len(pattern) > 1 && strings.HasSuffix(pattern, "/"):
		v.matchesNothing("ends with /, which no working directory does")
	}
}

// kindNames tells for a kind of tool the argument that its calls always have,
// and how some agents call it.
var kindNames = map[string]struct {
	name   string
	others []string
}{
	"shell":            {"command", []string{"cmd", "cmdline", "command_line", "script", "shell"}},
	"filesystem.read":  {"path", fileNamesOfAgents},
	"filesystem.write": {"path", fileNamesOfAgents},
}

var fileNamesOfAgents = []string{
	"file", "file_path", "filepath", "file_name", "filename", "absolute_path", "notebook_path", "dir_path",
}

// foreignNames warns of conditions that hang on the name that one agent gives to
// an argument, when none is on the name that all calls of the kind have.
func (m match) foreignNames(conditions []entry) {
	kind, ok := kindNames[m.toolKind]
	if !ok || slices.ContainsFunc(conditions, func(e entry) bool { return e.key == kind.name }) {
		return
	}
	for _, e := range conditions {
		if slices.Contains(kind.others, e.key) {
			e.value.warn(FindingForeignName, "only some agents name it %q; Fermata always adds %q to a call of kind %s, so write that", e.key, kind.name, m.toolKind)
		}
	}
}
