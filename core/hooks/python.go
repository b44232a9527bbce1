package hooks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Python's classes in the engine's words. The engine's own \w and \b count
// marks and joiners as parts of words, and its \s misses four separators: a
// rule that relied on Python's meaning would miss calls.
const (
	pyWord   = `\p{L}\p{N}_`
	pySpace  = `\s\u001c-\u001f`
	anything = `[\s\S]`
	boundary = `(?:(?<=[` + pyWord + `])(?![` + pyWord + `])|(?<![` + pyWord + `])(?=[` + pyWord + `]))`
	within   = `(?:(?<=[` + pyWord + `])(?=[` + pyWord + `])|(?<![` + pyWord + `])(?![` + pyWord + `]))`
)

// translate rewrites a regular expression from Python's syntax into the
// engine's. What would mean something else there is written out; what Python
// refuses and the engine would understand in its own way is refused. The rest,
// such as what can be repeated, is left to the engine.
func translate(source string) (string, error) {
	t := translator{src: []rune(source), names: map[string]int{}}
	for t.err == nil && t.pos < len(t.src) {
		t.step()
	}
	if t.err == nil && len(t.open) > 0 {
		t.fail("a parenthesis is not closed")
	}
	return t.out.String(), t.err
}

type translator struct {
	src     []rune
	pos     int
	out     strings.Builder
	begun   bool // something other than flags for the whole has been written
	verbose bool
	groups  int            // numbered groups opened so far
	closed  []int          // numbers of those that are closed again
	names   map[string]int // name → number
	open    []parenthesis
	counted bool // what comes next stands behind a count
	err     error
}

type parenthesis struct {
	number  int  // 0 for one that has none
	verbose bool // as it was outside
	atomic  bool // something in it gives nothing back once it matched
}

func (t *translator) fail(text sentence, args ...any) {
	if t.err == nil {
		t.err = tell("at character %d: %s", t.pos, tell(text, args...))
	}
}

func (t *translator) write(s string) {
	t.out.WriteString(s)
	t.begun = true
}

// take consumes s if it comes next.
func (t *translator) take(s string) bool {
	r := []rune(s)
	if len(t.src)-t.pos < len(r) || !slices.Equal(t.src[t.pos:t.pos+len(r)], r) {
		return false
	}
	t.pos += len(r)
	return true
}

// until consumes up to and including stop, and returns what stands before it.
func (t *translator) until(stop rune) (string, bool) {
	n := slices.Index(t.src[t.pos:], stop)
	if n < 0 {
		t.fail("%q is missing", stop)
		return "", false
	}
	s := string(t.src[t.pos : t.pos+n])
	t.pos += n + 1
	return s, true
}

// while consumes at most limit characters out of set.
func (t *translator) while(limit int, set string) string {
	start := t.pos
	for t.pos < len(t.src) && t.pos-start < limit && strings.ContainsRune(set, t.src[t.pos]) {
		t.pos++
	}
	return string(t.src[start:t.pos])
}

func (t *translator) next() rune {
	if t.pos == len(t.src) {
		t.fail("the expression ends too early")
		return 0
	}
	t.pos++
	return t.src[t.pos-1]
}

func (t *translator) step() {
	counted := t.counted
	t.counted = false
	switch c := t.next(); {
	case c == '\\':
		t.write(t.escape())
	case c == '[':
		t.class()
	case c == '(':
		t.group()
	case c == ')':
		t.close()
	case c == '{':
		t.repeat()
	case c == '#' && t.verbose:
		for t.pos < len(t.src) && t.src[t.pos] != '\n' {
			t.pos++
		}
	case strings.ContainsRune("}#", c):
		t.write(literal(c))
	case strings.ContainsRune("*+?", c):
		if counted && c == '+' && len(t.open) > 0 {
			t.open[len(t.open)-1].atomic = true
		}
		t.counted = !counted
		t.write(string(c))
	default:
		t.write(string(c))
	}
}

// literal is one character that stands for itself, anywhere.
func literal(c rune) string {
	if c > 0xffff || unicode.IsLetter(c) || unicode.IsDigit(c) {
		return string(c)
	}
	return fmt.Sprintf(`\u%04x`, c)
}

// repeat reads what may be a count. Without a number before the comma Python
// counts from 0; what is no count at all is a brace.
func (t *translator) repeat() {
	start := t.pos
	low := t.while(len(t.src), digits)
	high := low
	comma := t.take(",")
	if comma {
		high = t.while(len(t.src), digits)
	}
	if (low == "" && !comma) || !t.take("}") {
		t.pos = start
		t.write(literal('{'))
		return
	}
	t.counted = true
	if low == "" {
		low = "0"
	}
	if comma {
		t.write("{" + low + "," + high + "}")
		return
	}
	t.write("{" + low + "}")
}

const digits = "0123456789"

// group reads what follows an opening parenthesis. Every named group is written
// as a numbered one and every reference by number, in Python's order.
func (t *translator) group() {
	if !t.take("?") {
		t.begin("(", t.number())
		return
	}
	for _, plain := range []string{":", "=", "!", "<=", "<!", ">"} {
		if t.take(plain) {
			t.begin("(?"+plain, 0)
			t.open[len(t.open)-1].atomic = plain == ">"
			return
		}
	}
	switch {
	case t.take("#"):
		t.until(')')
	case t.take("P<"):
		if name, ok := t.until('>'); ok {
			t.name(name)
			t.begin("(", t.number())
		}
	case t.take("P="):
		if name, ok := t.until(')'); ok {
			t.write(t.reference(t.named(name)))
		}
	case t.take("("):
		if name, ok := t.until(')'); ok {
			t.begin(fmt.Sprintf("(?(%d)", t.named(name)), 0)
		}
	default:
		t.flags()
	}
}

func (t *translator) begin(text string, number int) {
	t.open = append(t.open, parenthesis{number: number, verbose: t.verbose})
	t.write(text)
}

func (t *translator) number() int {
	t.groups++
	return t.groups
}

func (t *translator) close() {
	if len(t.open) == 0 {
		t.fail("a parenthesis is closed that was never opened")
		return
	}
	last := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	t.verbose = last.verbose
	if last.number > 0 {
		t.closed = append(t.closed, last.number)
	}
	if last.atomic && len(t.open) > 0 {
		t.open[len(t.open)-1].atomic = true
	}
	if last.atomic && last.number == 0 && t.pos < len(t.src) && strings.ContainsRune("*+?{", t.src[t.pos]) {
		// The engine does not try fewer rounds of such a group and would miss
		// texts that Python finds.
		t.fail("repeating a group that holds an atomic or possessive part is not supported")
	}
	t.write(")")
}

func (t *translator) name(name string) {
	if name == "" || strings.ContainsAny(name, "()<>?!=- ") {
		t.fail("%q is no name for a group", clip(name))
	}
	if _, ok := t.names[name]; ok {
		t.fail("the group name %q is used twice", clip(name))
	}
	t.names[name] = t.groups + 1
}

// named finds a group that was opened before, by name or number.
func (t *translator) named(name string) int {
	if n, ok := t.names[name]; ok {
		return n
	}
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 || n > t.groups {
		t.fail("there is no group %q before this place", clip(name))
	}
	return n
}

func (t *translator) reference(n int) string {
	if !slices.Contains(t.closed, n) {
		t.fail("there is no complete group %d before this place", n)
	}
	return fmt.Sprintf(`\k<%d>`, n)
}

// flags reads inline flags: for a group, or at the start for the whole.
func (t *translator) flags() {
	on := t.while(len(t.src), "aiLmsux")
	off, minus := "", t.take("-")
	if minus {
		off = t.while(len(t.src), "imsx")
	}
	if on+off == "" {
		t.fail("Python has no group that begins like this")
		return
	}
	if strings.ContainsAny(on, "aL") {
		t.fail("the flags a and L are not supported")
	}
	text := strings.ReplaceAll(on, "u", "")
	if off != "" {
		text += "-" + off
	}
	verbose := (t.verbose || strings.Contains(on, "x")) && !strings.Contains(off, "x")
	switch {
	case t.take(":") && minus == (off != ""):
		t.begin("(?"+text+":", 0)
	case !minus && t.take(")") && !t.begun:
		if text != "" {
			t.out.WriteString("(?" + text + ")")
		}
	default:
		t.fail("flags for the whole belong at the start, others before a colon")
	}
	t.verbose = verbose
}

// escape reads what follows a backslash outside a class.
func (t *translator) escape() string {
	switch c := t.next(); {
	case c == 'A' || c == 'd' || c == 'D':
		return `\` + string(c)
	case c == 'Z':
		return `\z`
	case c == 'b':
		return boundary
	case c == 'B':
		return within
	case c == 'w':
		return "[" + pyWord + "]"
	case c == 'W':
		return "[^" + pyWord + "]"
	case c == 's':
		return "[" + pySpace + "]"
	case c == 'S':
		return "[^" + pySpace + "]"
	case c >= '1' && c <= '9':
		return t.backslashNumber(c)
	default:
		return literal(t.character(c))
	}
}

// backslashNumber is a group of one or two digits, or a character in three
// octal ones.
func (t *translator) backslashNumber(first rune) string {
	const octal = "01234567"
	number := string(first) + t.while(1, digits)
	if len(number) == 2 && strings.Trim(number, octal) == "" {
		if third := t.while(1, octal); third != "" {
			return literal(t.octal(number + third))
		}
	}
	n, _ := strconv.Atoi(number)
	return t.reference(n)
}

func (t *translator) octal(s string) rune {
	n, err := strconv.ParseInt(s, 8, 32)
	if err != nil || n > 0o377 {
		t.fail("the octal number %s is larger than 377", s)
	}
	return rune(n)
}

// character reads an escape that stands for one character, in a class or not.
func (t *translator) character(c rune) rune {
	switch c {
	case 'a':
		return '\a'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	case '0':
		return t.octal("0" + t.while(2, "01234567"))
	case 'x':
		return t.hex(2)
	case 'u':
		return t.hex(4)
	case 'U':
		return t.hex(8)
	}
	if c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
		t.fail("\\%c has no meaning here", c)
	}
	return c
}

func (t *translator) hex(n int) rune {
	s := t.while(n, "0123456789abcdefABCDEF")
	v, err := strconv.ParseUint(s, 16, 32)
	if len(s) != n || err != nil || !utf8.ValidRune(rune(v)) || v > unicode.MaxRune {
		t.fail("a character's number must have %d digits and name a character", n)
		return 0
	}
	return rune(v)
}
