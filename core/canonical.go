package core

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// maxDepth is how deep arrays and objects may be nested in arguments.
const maxDepth = 128

// CanonicalError says why a text has no canonical form. Offset counts bytes
// from 0.
type CanonicalError struct {
	Offset int
	Reason string
}

// Error implements error.
func (e *CanonicalError) Error() string {
	return fmt.Sprintf("no canonical JSON, byte %d: %s", e.Offset, e.Reason)
}

// Canonical gives the one form in which arguments are compared, shown and run:
// RFC 8785 for the order of members (UTF-16 code units), the writing of strings
// and the absence of spaces; numbers exactly as they were sent, because what an
// agent's 1.0 or 12345678901234567890 means is not ours to decide. A text that
// two readers could understand differently has none: duplicate names, lone
// surrogates, invalid UTF-8, more than 128 levels, anything behind the value.
// The error is a [*CanonicalError]. The form of a canonical text is itself, and
// never longer than the text it was made from.
//
// It reads its input once and allocates per text, not per value. Ordering moves
// a byte at most once per level, so hostile input costs no more than that
// many copies.
func Canonical(raw []byte) ([]byte, error) {
	p := newParser(raw)
	if err := p.document(); err != nil {
		return nil, err
	}
	return p.out, nil
}

// field is one member of a top-level object, in canonical form. Name is
// decoded, text is name and value as written: "name":value.
type field struct{ name, text, value []byte }

// fields gives the members of an object in canonical order.
func fields(raw []byte) ([]field, error) {
	p := newParser(raw)
	p.keep = true
	if err := p.document(); err != nil {
		return nil, err
	}
	if p.out[0] != '{' {
		return nil, &CanonicalError{p.first, "not an object"}
	}
	list := make([]field, len(p.members))
	for i, m := range p.members {
		list[i] = field{m.name, p.out[m.start:m.end], p.out[m.value:m.end]}
	}
	return list, nil
}

// parser reads in[pos:] and writes the canonical form to out. Members of all
// objects that are open lie on one stack.
type parser struct {
	in      []byte
	pos     int
	first   int // where the top value begins
	out     []byte
	depth   int
	members []member
	names   []byte // decoded names
	spare   []byte // room to put members in order
	keep    bool   // leave the top object's members on the stack
}

// member is one member of an object. In out it is [start:end], its value
// [value:end]; at is where its name begins in the input.
type member struct {
	name              []byte
	start, value, end int
	at                int
}

func newParser(raw []byte) *parser {
	return &parser{in: raw, out: make([]byte, 0, len(raw))}
}

func (p *parser) fail(at int, reason string) error { return &CanonicalError{at, reason} }

// unexpected tells what stands at pos instead of what was wanted.
func (p *parser) unexpected(want string) error {
	if p.pos >= len(p.in) {
		return p.fail(len(p.in), "ends where "+want+" should stand")
	}
	return p.fail(p.pos, fmt.Sprintf("%q where %s should stand", p.in[p.pos:p.pos+1], want))
}

func (p *parser) document() error {
	p.space()
	p.first = p.pos
	if err := p.value(); err != nil {
		return err
	}
	p.space()
	if p.pos < len(p.in) {
		return p.fail(p.pos, "something follows the value")
	}
	return nil
}

func (p *parser) space() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek is the next byte, 0 at the end (no JSON token is a NUL).
func (p *parser) peek() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

// punct takes one structural character, with the spaces in front of it.
func (p *parser) punct(c byte) bool {
	p.space()
	if p.peek() != c {
		return false
	}
	p.pos++
	p.out = append(p.out, c)
	return true
}

func (p *parser) value() error {
	p.space()
	switch c := p.peek(); {
	case c == '{':
		return p.nested(p.object)
	case c == '[':
		return p.nested(p.array)
	case c == '"':
		return p.str()
	case c == '-' || isDigit(c):
		return p.number()
	case c == 't':
		return p.word("true")
	case c == 'f':
		return p.word("false")
	case c == 'n':
		return p.word("null")
	}
	return p.unexpected("a value")
}

func (p *parser) nested(read func() error) error {
	if p.depth == maxDepth {
		return p.fail(p.pos, fmt.Sprintf("nested deeper than %d", maxDepth))
	}
	p.depth++
	err := read()
	p.depth--
	return err
}

func (p *parser) word(w string) error {
	if !bytes.HasPrefix(p.in[p.pos:], []byte(w)) {
		return p.unexpected("a value")
	}
	p.pos += len(w)
	p.out = append(p.out, w...)
	return nil
}

func (p *parser) array() error {
	p.punct('[')
	if p.punct(']') {
		return nil
	}
	for {
		if err := p.value(); err != nil {
			return err
		}
		if p.punct(']') {
			return nil
		}
		if !p.punct(',') {
			return p.unexpected(`"," or "]"`)
		}
	}
}

func (p *parser) object() error {
	base, sorted := len(p.members), true
	p.punct('{')
	from := len(p.out)
	if p.punct('}') {
		return nil
	}
	for {
		m, err := p.member()
		if err != nil {
			return err
		}
		if n := len(p.members); n > base && compareUTF16(p.members[n-1].name, m.name) >= 0 {
			sorted = false // or a duplicate, which ordering will find
		}
		p.members = append(p.members, m)
		if p.punct('}') {
			break
		}
		if !p.punct(',') {
			return p.unexpected(`"," or "}"`)
		}
	}
	if !sorted {
		if err := p.order(from, p.members[base:]); err != nil {
			return err
		}
	}
	if !p.keep || p.depth > 1 {
		p.members = p.members[:base]
	}
	return nil
}

func (p *parser) member() (member, error) {
	p.space()
	m := member{at: p.pos, start: len(p.out)}
	if p.peek() != '"' {
		return m, p.unexpected("a name in quotes")
	}
	if err := p.str(); err != nil {
		return m, err
	}
	m.name = p.decoded(p.out[m.start+1 : len(p.out)-1])
	if !p.punct(':') {
		return m, p.unexpected(`":"`)
	}
	m.value = len(p.out)
	err := p.value()
	m.end = len(p.out)
	return m, err
}

// order puts the members of the object whose inside begins at out[from] in
// canonical order. The object's closing brace is already written.
func (p *parser) order(from int, members []member) error {
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(compareUTF16(a.name, b.name), cmp.Compare(a.at, b.at))
	})
	p.spare = p.spare[:0]
	for i := range members {
		m := &members[i]
		if i > 0 {
			if bytes.Equal(members[i-1].name, m.name) {
				return p.fail(m.at, "this name occurs twice in its object")
			}
			p.spare = append(p.spare, ',')
		}
		moved := from + len(p.spare) - m.start
		p.spare = append(p.spare, p.out[m.start:m.end]...)
		m.start, m.value, m.end = m.start+moved, m.value+moved, m.end+moved
	}
	copy(p.out[from:], p.spare)
	return nil
}

// number copies a number as it was sent, after checking its grammar.
func (p *parser) number() error {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
	} else if err := p.digits(); err != nil {
		return err
	}
	if p.peek() == '.' {
		p.pos++
		if err := p.digits(); err != nil {
			return err
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if err := p.digits(); err != nil {
			return err
		}
	}
	p.out = append(p.out, p.in[start:p.pos]...)
	return nil
}

func (p *parser) digits() error {
	if !isDigit(p.peek()) {
		return p.unexpected("a digit")
	}
	for isDigit(p.peek()) {
		p.pos++
	}
	return nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
