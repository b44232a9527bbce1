package acp

import (
	"bufio"
	"errors"
	"io"
)

// Relay carries one direction: every byte of src to dst, in order, until src
// ends. It holds one message at a time and reads on only when that is written,
// so a slow reader slows the writer and nothing is dropped. Messages that
// arrived together leave together; none waits for a later one.
//
// It returns nil at the end of src, else a [*SourceError] or a [*SinkError].
func Relay(dst io.Writer, src io.Reader) error {
	lines := NewLines(src, MessageLimit)
	out := bufio.NewWriterSize(dst, firstBuffer)
	for {
		piece, err := lines.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return &SourceError{err}
		}
		if _, err := out.Write(piece.Raw); err != nil {
			return &SinkError{err}
		}
		if lines.More() {
			continue
		}
		if err := out.Flush(); err != nil {
			return &SinkError{err}
		}
	}
}

// SourceError says that a direction could not be read any further.
type SourceError struct{ Err error }

// Error implements error.
func (e *SourceError) Error() string { return "read: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *SourceError) Unwrap() error { return e.Err }

// SinkError says that nobody takes a direction's bytes any more.
type SinkError struct{ Err error }

// Error implements error.
func (e *SinkError) Error() string { return "write: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *SinkError) Unwrap() error { return e.Err }
