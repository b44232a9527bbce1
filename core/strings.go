package core

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// str copies a string in canonical writing.
func (p *parser) str() error {
	open := p.pos
	p.pos++
	p.out = append(p.out, '"')
	from := p.pos // in[from:pos] is still to be copied
	for p.pos < len(p.in) {
		switch c := p.in[p.pos]; {
		case c == '"':
			p.pos++
			p.out = append(p.out, p.in[from:p.pos]...)
			return nil
		case c == '\\':
			p.out = append(p.out, p.in[from:p.pos]...)
			r, err := p.escape()
			if err != nil {
				return err
			}
			p.out = appendCanonical(p.out, r)
			from = p.pos
		case c < 0x20:
			return p.fail(p.pos, "control character in a string, write it as an escape")
		case c < utf8.RuneSelf:
			p.pos++
		default:
			r, size := utf8.DecodeRune(p.in[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return p.fail(p.pos, "invalid UTF-8")
			}
			p.pos += size
		}
	}
	return p.fail(open, "this string does not end")
}

// decoded is the meaning of a name in canonical writing. The bytes belong to
// p.names and stay valid: out will be moved about, and names grows by
// appending only.
func (p *parser) decoded(text []byte) []byte {
	start := len(p.names)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' {
			i++
			switch c = text[i]; c {
			case 'b':
				c = '\b'
			case 't':
				c = '\t'
			case 'n':
				c = '\n'
			case 'f':
				c = '\f'
			case 'r':
				c = '\r'
			case 'u': // \u00xx, the only long escapes of canonical writing
				n, _ := strconv.ParseUint(string(text[i+3:i+5]), 16, 8)
				c = byte(n)
				i += 4
			}
		}
		p.names = append(p.names, c)
	}
	return p.names[start:]
}

// escape reads one escaped character, a pair of surrogates included.
func (p *parser) escape() (rune, error) {
	at := p.pos
	p.pos += 2
	if p.pos > len(p.in) {
		return 0, p.fail(at, "this escape does not end")
	}
	switch c := p.in[p.pos-1]; c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
	default:
		return 0, p.fail(at, "unknown escape")
	}
	r, ok := p.hex4()
	if !ok {
		return 0, p.fail(at, `\u needs four hexadecimal digits`)
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if bytes.HasPrefix(p.in[p.pos:], []byte(`\u`)) {
		p.pos += 2
		if low, ok := p.hex4(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, nil
			}
		}
	}
	return 0, p.fail(at, "lone surrogate")
}

func (p *parser) hex4() (rune, bool) {
	if len(p.in)-p.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range p.in[p.pos : p.pos+4] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.pos += 4
	return r, true
}

// appendCanonical writes a character as RFC 8785 does: an escape only where
// JSON demands one, the short one where there is one.
func appendCanonical(out []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(out, '\\', byte(r))
	case '\b':
		return append(out, `\b`...)
	case '\t':
		return append(out, `\t`...)
	case '\n':
		return append(out, `\n`...)
	case '\f':
		return append(out, `\f`...)
	case '\r':
		return append(out, `\r`...)
	}
	if r < 0x20 {
		return fmt.Appendf(out, `\u%04x`, r)
	}
	return utf8.AppendRune(out, r)
}

// compareUTF16 orders valid UTF-8 by UTF-16 code units. Both orders agree but
// for one thing: characters beyond U+FFFF (first byte F0 and above) are
// surrogates, which lie below U+E000 (first bytes EE and EF).
func compareUTF16(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}
