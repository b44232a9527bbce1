package main

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// reply is a line of the core: that it accepted the call, or its verdict.
type reply struct {
	accepted       bool
	exit           int
	stdout, stderr string
}

// parseReply reads a line as events.HookLine is written:
//
//	{"accepted":true,"exit":0,"stdout":"","stderr":""}
//
// where accepted may be absent. The order is part of the protocol. Anything
// else is not understood, and what is not understood is no allow.
func parseReply(line []byte) (reply, bool) {
	s := scanner{rest: string(line), ok: utf8.Valid(line)}
	var r reply
	if s.skip(`{"accepted":true,`) {
		r.accepted = true
	} else {
		s.must(`{`)
	}
	s.must(`"exit":`)
	r.exit = s.number()
	s.must(`,"stdout":`)
	r.stdout = s.text()
	s.must(`,"stderr":`)
	r.stderr = s.text()
	s.must(`}`)
	return r, s.ok && s.rest == ""
}

// scanner reads from the front of a text; ok turns false at the first thing
// that it did not expect.
type scanner struct {
	rest string
	ok   bool
}

func (s *scanner) skip(prefix string) bool {
	if len(s.rest) < len(prefix) || s.rest[:len(prefix)] != prefix {
		return false
	}
	s.rest = s.rest[len(prefix):]
	return true
}

func (s *scanner) must(prefix string) { s.ok = s.ok && s.skip(prefix) }

func (s *scanner) number() int {
	i := 0
	for i < len(s.rest) && s.rest[i] >= '0' && s.rest[i] <= '9' {
		i++
	}
	n, err := strconv.Atoi(s.rest[:i])
	s.ok = s.ok && err == nil && (i == 1 || s.rest[0] != '0')
	s.rest = s.rest[i:]
	return n
}

// text reads a JSON string.
func (s *scanner) text() string {
	s.must(`"`)
	b := make([]byte, 0, min(len(s.rest), 4<<10))
	for s.ok {
		if s.rest == "" {
			break
		}
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '"':
			return string(b)
		case c < ' ':
			s.ok = false
		case c == '\\':
			b = s.escape(b)
		default:
			b = append(b, c)
		}
	}
	s.ok = false
	return ""
}

func (s *scanner) escape(b []byte) []byte {
	if s.rest == "" {
		s.ok = false
		return b
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	switch c {
	case '"', '\\', '/':
		return append(b, c)
	case 'b':
		return append(b, '\b')
	case 'f':
		return append(b, '\f')
	case 'n':
		return append(b, '\n')
	case 'r':
		return append(b, '\r')
	case 't':
		return append(b, '\t')
	case 'u':
		r := s.unit()
		if utf16.IsSurrogate(r) {
			s.must(`\u`)
			if r = utf16.DecodeRune(r, s.unit()); r == utf8.RuneError {
				s.ok = false // half a pair: no writer of ours makes one
			}
		}
		return utf8.AppendRune(b, r)
	}
	s.ok = false
	return b
}

// unit reads four hexadecimal digits.
func (s *scanner) unit() rune {
	if len(s.rest) < 4 {
		s.ok = false
		return 0
	}
	n, err := strconv.ParseUint(s.rest[:4], 16, 16)
	s.ok = s.ok && err == nil
	s.rest = s.rest[4:]
	return rune(n)
}
