package plain

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of what is typed.
const (
	maxWords = 16 << 10      // to the model, bytes
	maxLine  = maxWords + 64 // the command before the words included
	maxTyped = 256           // lines that wait to be taken
)

// typed is one line of input.
type typed struct {
	text string
	at   time.Time // when it had come; it cannot be about what was shown later
	long bool      // it was longer than maxLine, and text is only its beginning
	lost bool      // lines before it were dropped, since too many came at once
	err  error     // the input cannot be read any more
}

// read hands over one line after the other and closes lines at the end of the
// input. It never waits for whoever takes them, so that the time of each line is
// true. A last line without a line feed is no line: the one who wrote it was cut
// off.
func read(in io.Reader, now func() time.Time, lines chan<- typed) {
	defer close(lines)
	r := reader{lines: lines}
	for buf := make([]byte, 4096); ; {
		n, err := in.Read(buf)
		r.take(buf[:n], now())
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			lines <- typed{err: fmt.Errorf("read what is typed: %w", err)}
			return
		}
	}
}

// reader cuts what comes into lines.
type reader struct {
	lines chan<- typed
	text  []byte
	long  bool
	lost  bool
}

func (r *reader) take(part []byte, at time.Time) {
	for _, c := range part {
		switch {
		case c == '\n':
			r.give(at)
		case len(r.text) == maxLine:
			r.long = true
		default:
			r.text = append(r.text, c)
		}
	}
}

func (r *reader) give(at time.Time) {
	l := typed{text: string(r.text), at: at, long: r.long, lost: r.lost}
	r.text, r.long = r.text[:0], false
	select {
	case r.lines <- l:
		r.lost = false
	default:
		r.lost = true
	}
}
