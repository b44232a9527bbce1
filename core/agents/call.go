package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Limits of what an agent-hook sends.
const (
	MaxLine    = 24 << 20 // bytes of the first line
	maxReceipt = 256      // bytes of the receipt line
	maxTimeout = 1e9      // seconds; some thirty years
)

var errLineTooLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)

// readLine reads up to and including a line break and returns what stands
// before it. The buffer grows with the line and belongs to the caller; nothing
// is kept for the connection. Bytes behind the line are an error: neither side
// speaks before it has heard.
func readLine(r io.Reader, first, limit int) ([]byte, error) {
	buf := make([]byte, 0, first)
	for {
		if len(buf) > limit {
			return nil, errLineTooLong
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), limit+1)])
		at := bytes.IndexByte(buf[len(buf):len(buf)+n], '\n')
		buf = buf[:len(buf)+n]
		switch {
		case at >= 0 && at != n-1:
			return nil, errors.New("something follows the line")
		case at >= 0:
			return buf[:len(buf)-1], nil
		case err != nil:
			return nil, err
		}
	}
}

// badCall is what is wrong with a HookCall line.
type badCall struct {
	code events.Code
	text string
}

func (b *badCall) Error() string { return b.text }

// DecodeCall reads the line of an agent-hook. The payload is in Stdin
// afterwards, however it travelled. The call that comes with an error holds
// what could be read, so that the deny can be in the agent's words.
func DecodeCall(line []byte) (events.HookCall, error) {
	var c events.HookCall
	if len(line) == 0 || line[0] != '{' {
		return c, &badCall{events.CodeNoCanonicalForm, "agent-hook sent no JSON object"}
	}
	if _, err := events.DecodeCommand(line, &c); err != nil {
		return c, &badCall{events.CodeNoCanonicalForm, "agent-hook sent a line that cannot be read: " + err.Error()}
	}
	if c.V > 1 {
		return c, &badCall{events.CodeNeedsNewerCore, "agent-hook is newer than the core; stop the core and start the new one"}
	}
	if c.Agent == ControlAgent {
		return c, nil // belongs to no operation
	}
	if err := checkCall(c); err != nil {
		return c, &badCall{events.CodeNoCanonicalForm, err.Error()}
	}
	if len(c.StdinB64) > 0 {
		c.Stdin, c.StdinB64 = string(c.StdinB64), nil
	}
	return c, nil
}

func checkCall(c events.HookCall) error {
	if c.V != 1 {
		return fmt.Errorf("version %d of agent-hook's line is unknown", c.V)
	}
	if _, err := events.ParseID(string(c.Operation)); err != nil {
		return err
	}
	if err := checkSecret(c.Secret); err != nil {
		return err
	}
	if c.Timeout < 0 || c.Timeout > maxTimeout {
		return fmt.Errorf("a time limit of %g s is not possible", c.Timeout)
	}
	if c.Stdin != "" && len(c.StdinB64) > 0 {
		return errors.New("the payload is there twice")
	}
	return nil
}

// deadline is when the agent stops listening, zero if it never does.
func deadline(c events.HookCall, e NativeEvent, now time.Time) time.Time {
	limit := time.Duration(c.Timeout * float64(time.Second))
	if limit == 0 {
		limit = e.Timeout
	}
	if limit == 0 {
		return time.Time{}
	}
	return now.Add(limit)
}

// isClosed reports whether an error says that a connection or listener ended.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}
