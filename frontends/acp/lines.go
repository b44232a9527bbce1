package acp

import (
	"bytes"
	"errors"
	"io"
)

// MessageLimit is the longest line, its end included, that is handled as one
// message: 64 MiB. A longer one still passes, in pieces that nobody looks at.
const MessageLimit = 64 << 20

const (
	firstBuffer = 64 << 10
	// keepBuffer is the size from which a buffer is given back after the long
	// line that needed it.
	keepBuffer = 1 << 20
)

// Piece is what was read: one message, or bytes that are none. Raw is exactly
// as read, line end included.
//
// Message is false for a line longer than the limit, of which a piece is a
// part, and for bytes behind the last line end.
type Piece struct {
	Raw     []byte
	Message bool
}

// Lines divides a stream into messages, one a line. The pieces of a stream,
// one behind the other, are the stream, whatever it holds.
type Lines struct {
	src        io.Reader
	limit      int
	buf        []byte
	start, end int // what was read and not given out: buf[start:end]
	seen       int // buf[start:seen] holds no line end
	inLong     bool
	err        error
}

// NewLines reads messages of at most limit bytes from src.
func NewLines(src io.Reader, limit int) *Lines {
	return &Lines{src: src, limit: limit, buf: make([]byte, min(firstBuffer, limit))}
}

// Next returns the next piece, whose bytes are valid until the following call,
// or the error that ended the stream after every byte before it: [io.EOF] at
// its end.
func (l *Lines) Next() (Piece, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.seen:l.end], '\n'); i >= 0 {
			message := !l.inLong
			l.inLong = false
			return l.take(l.seen+i+1, message), nil
		}
		l.seen = l.end
		held := l.end - l.start
		switch {
		case held > 0 && (l.inLong || held >= l.limit):
			l.inLong = true
			return l.take(l.end, false), nil
		case held > 0 && l.err != nil:
			return l.take(l.end, false), nil
		case l.err != nil:
			return Piece{}, l.err
		}
		l.read()
	}
}

// More tells whether Next will give a piece without reading.
func (l *Lines) More() bool {
	return l.start < l.end && (l.inLong || bytes.IndexByte(l.buf[l.seen:l.end], '\n') >= 0)
}

func (l *Lines) take(to int, message bool) Piece {
	p := Piece{l.buf[l.start:to], message}
	l.start, l.seen = to, to
	return p
}

// read makes room and reads once. It is called with less than the limit held.
func (l *Lines) read() {
	held := l.end - l.start
	switch {
	case held == 0 && len(l.buf) > keepBuffer:
		l.buf = make([]byte, min(firstBuffer, l.limit))
	case held == len(l.buf):
		bigger := make([]byte, min(2*len(l.buf), l.limit))
		copy(bigger, l.buf)
		l.buf = bigger
	case l.end == len(l.buf):
		copy(l.buf, l.buf[l.start:l.end])
	default:
		l.fill()
		return
	}
	l.start, l.seen, l.end = 0, held, held
	l.fill()
}

func (l *Lines) fill() {
	n, err := l.src.Read(l.buf[l.end:])
	l.end += n
	l.err = err
	if n == 0 && err == nil {
		l.err = errors.New("a reader gave nothing and no error")
	}
}
