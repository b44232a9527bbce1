package hooks

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-hitl/fermata/events"
)

// ConfigError says what is wrong in a hooks file, where, and in which field.
// Line and Column count from 1. Path is such as hooks[2].execution.mode, ""
// for the file as a whole.
type ConfigError struct {
	File    string
	Line    int
	Column  int
	Path    string
	Message Message
	// Finding says what sort of mistake it is, Hook whose; "" when it is in no
	// hook or before its id.
	Finding FindingCode
	Hook    string
}

// Error implements error: file:line:column: path: message.
func (e *ConfigError) Error() string { return e.In(fmt.Sprintf) }

// In gives the error in the language of say, as [Message.In] does.
func (e *ConfigError) In(say func(text string, args ...any) string) string {
	return tell("%s:%d:%d: %s", e.File, e.Line, e.Column, e.about()).In(say)
}

// about is the message with the field that it is about.
func (e *ConfigError) about() Message {
	if e.Path == "" {
		return e.Message
	}
	return tell("%s: %s", e.Path, e.Message)
}

// Code is [events.CodeHooksConfigInvalid].
func (*ConfigError) Code() events.Code { return events.CodeHooksConfigInvalid }

// maxValues bounds what aliases can expand to. A file of the largest size
// without aliases stays below it.
const maxValues = 1 << 19

// document is a file being read. The first error stays; what is read behind it
// is not used.
type document struct {
	file     string
	hook     string // the id of the hook that is being read
	values   int
	err      *ConfigError
	warnings []ConfigError
}

// value is one place in a document. node is nil when nothing stands there; at
// is then the object that should hold it.
type value struct {
	doc  *document
	node *yaml.Node
	at   *yaml.Node
	path string
}

// value makes the value of a node, with an alias followed to what it names.
func (d *document) value(node *yaml.Node, path string) value {
	d.values++
	at := node
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	v := value{d, node, at, path}
	if d.values > maxValues {
		v.fail("the file expands to more than %d values", maxValues)
	}
	return v
}

func (v value) present() bool { return v.node != nil }

func (v value) problem(f FindingCode, text sentence, args ...any) *ConfigError {
	e := invalid(v.doc.file, v.at.Line, v.at.Column, tell(text, args...))
	e.Path, e.Finding, e.Hook = v.path, f, v.doc.hook
	return e
}

func (v value) fail(text sentence, args ...any) {
	if v.doc.err == nil {
		v.doc.err = v.problem(FindingInvalid, text, args...)
	}
}

func (v value) warn(f FindingCode, text sentence, args ...any) {
	v.doc.warnings = append(v.doc.warnings, *v.problem(f, text, args...))
}

func (v value) matchesNothing(text sentence, args ...any) {
	v.warn(FindingMatchesNothing, text, args...)
}

// kind names what stands here, for messages.
func (v value) kind() Message {
	switch v.node.Kind {
	case yaml.MappingNode:
		return tell("an object")
	case yaml.SequenceNode:
		return tell("a list")
	}
	switch v.node.ShortTag() {
	case "!!str":
		return tell("a string")
	case "!!bool":
		return tell("true or false")
	case "!!null":
		return tell("nothing")
	case "!!int", "!!float":
		return tell("a number")
	}
	return tell("a value of type %s", v.node.ShortTag())
}

func (v value) isNull() bool {
	return v.present() && v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!null"
}

func (v value) scalar(tags ...string) bool {
	return v.node.Kind == yaml.ScalarNode && slices.Contains(tags, v.node.ShortTag())
}

// text reads a string; a number or true in its place is an error, because its
// spelling would be lost.
func (v value) text(absent string) string {
	if !v.present() {
		return absent
	}
	if !v.scalar("!!str") {
		v.fail("must be a string (in quotes if need be), not %s", v.kind())
		return absent
	}
	return v.node.Value
}

// name reads a string that must say something.
func (v value) name() string {
	s := v.text("")
	if v.present() && s == "" {
		v.fail("must not be empty")
	}
	return s
}

func (v value) required() value {
	if !v.present() {
		v.fail("is required")
	}
	return v
}

// flag reads true or false. The words yes, no, on and off, unquoted, are read
// as YAML 1.1 reads them.
func (v value) flag(absent bool) bool {
	if !v.present() {
		return absent
	}
	if v.scalar("!!bool") || v.scalar("!!str") && v.node.Style == 0 {
		switch strings.ToLower(v.node.Value) {
		case "true", "yes", "on":
			return true
		case "false", "no", "off":
			return false
		}
	}
	v.fail("must be true or false, not %s", v.kind())
	return absent
}

// choice reads one of a few words.
func (v value) choice(absent string, words ...string) string {
	s := v.text(absent)
	if v.present() && v.doc.err == nil && !slices.Contains(words, s) {
		v.fail("must be one of %s, not %q", joined("%s, %s", words...), clip(s))
		return absent
	}
	return s
}

// maxSeconds is about 31 years: everything up to it fits a [time.Duration].
const maxSeconds = 1e9

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// seconds reads a number of seconds, 0 or more.
func (v value) seconds(absent time.Duration) time.Duration {
	if !v.present() {
		return absent
	}
	f := v.number()
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		v.fail("must be a finite number of seconds")
	case f < 0:
		v.fail("must not be negative")
	case f > maxSeconds:
		v.fail("must be at most %d seconds", int(maxSeconds))
	default:
		return time.Duration(f * float64(time.Second))
	}
	return absent
}

// number reads a number as JSON writes it. What only some YAML readers take for
// a number (1_000, 0x10, 1:30, 010) is an error, because others read it
// differently.
func (v value) number() float64 {
	plain := v.node.Kind == yaml.ScalarNode && v.node.Style == 0
	if plain && v.scalar("!!float") && strings.ContainsAny(v.node.Value, "nN") {
		return math.NaN() // .inf, .nan
	}
	if !plain || !decimal.MatchString(v.node.Value) {
		v.fail("must be a number in plain decimal notation, not %s %q", v.kind(), clip(v.node.Value))
		return 0
	}
	f, _ := strconv.ParseFloat(v.node.Value, 64) // out of range gives ±Inf
	return f
}

// count reads a whole number of at least least.
func (v value) count(absent, least int) int {
	if !v.present() {
		return absent
	}
	f := v.number()
	if f != math.Trunc(f) || f < float64(least) || f > math.MaxInt32 {
		v.fail("must be a whole number, at least %d", least)
		return absent
	}
	return int(f)
}

// list reads a list; absent is empty.
func (v value) list() []value {
	if !v.present() {
		return nil
	}
	if v.node.Kind != yaml.SequenceNode {
		v.fail("must be a list, not %s", v.kind())
		return nil
	}
	var out []value
	for i, n := range v.node.Content {
		if v.doc.err != nil {
			return nil
		}
		out = append(out, v.doc.value(n, fmt.Sprintf("%s[%d]", v.path, i)))
	}
	return out
}

func (v value) texts() []string {
	var out []string
	for _, e := range v.list() {
		out = append(out, e.text(""))
	}
	return out
}

// entry is one key of an object and what stands there.
type entry struct {
	key   string
	value value
}

// entries reads an object with keys of the writer's own; absent is empty.
func (v value) entries() []entry {
	if !v.present() {
		return nil
	}
	if v.node.Kind != yaml.MappingNode {
		v.fail("must be an object, not %s", v.kind())
		return nil
	}
	seen := make(map[string]bool, len(v.node.Content)/2)
	var out []entry
	for i := 0; i+1 < len(v.node.Content) && v.doc.err == nil; i += 2 {
		key := v.doc.value(v.node.Content[i], v.path)
		if !key.scalar("!!str") {
			key.fail("a key must be a string, not %s", key.kind())
			return nil
		}
		name := key.node.Value
		key.path = join(v.path, name)
		if seen[name] {
			key.fail("the key stands here twice")
			return nil
		}
		seen[name] = true
		out = append(out, entry{name, v.doc.value(v.node.Content[i+1], key.path)})
	}
	return out
}

// object reads an object whose keys are known; any other key is an error.
type object struct {
	value
	fields map[string]value
}

func (v value) object(known ...string) object {
	o := object{v, map[string]value{}}
	for _, e := range v.entries() {
		if !slices.Contains(known, e.key) {
			e.value.fail("unknown key; known here: %s", joined("%s, %s", known...))
		}
		o.fields[e.key] = e.value
	}
	return o
}

// field is what stands at a key, or an absent value.
func (o object) field(key string) value {
	if v, ok := o.fields[key]; ok {
		return v
	}
	at := o.at
	return value{o.doc, nil, at, join(o.path, key)}
}

func join(path, key string) string {
	if path == "" {
		return clip(key)
	}
	return path + "." + clip(key)
}

// clip keeps messages short; it cuts between characters.
func clip(s string) string {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
