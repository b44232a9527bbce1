package hooks

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Of each output 256 KiB are kept: the beginning and the end.
const (
	keptHead = 128 << 10
	keptTail = 128 << 10
	// readSize is small because most hooks write a line or nothing.
	readSize = 8 << 10
	// largestPipe is the most that a pipe can hold without the superuser's help.
	largestPipe = 1 << 20
)

// capture keeps the beginning and the end of what is written to it.
type capture struct {
	limit int    // of the beginning
	begin []byte // at most limit
	tail  []byte // the last keptTail bytes behind begin, and up to as many before those
	total int
}

func (c *capture) add(b []byte) {
	c.total += len(b)
	n := min(len(b), c.limit-len(c.begin))
	c.begin = append(c.begin, b[:n]...)
	c.tail = append(c.tail, b[n:]...)
	if len(c.tail) > 2*keptTail {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-keptTail:]...)
	}
}

// text is what was kept, with a line that counts what was not, as valid UTF-8.
func (c *capture) text() string {
	begin := c.begin[:min(len(c.begin), keptHead)]
	tail := c.tail
	if len(begin) < len(c.begin) {
		tail = append(c.begin[len(begin):len(c.begin):len(c.begin)], tail...)
	}
	tail = tail[max(len(tail)-keptTail, 0):]
	middle := ""
	if left := c.total - len(begin) - len(tail); left > 0 {
		middle = fmt.Sprintf("\n[%d bytes left out]\n", left)
	}
	return strings.ToValidUTF8(string(begin)+middle+string(tail), "\uFFFD")
}

// head is the whole of what was written, as a verdict.
func (c *capture) head() ([]byte, error) {
	if c.total > len(c.begin) {
		return nil, errors.New("the verdict on stdout is larger than 1 MiB")
	}
	return c.begin, nil
}

// output is a pipe whose reading end is drained into a capture.
type output struct {
	read  *os.File
	write *os.File
	kept  capture
	done  chan struct{}
}

func newOutput(limit int) (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &output{read: r, write: w, kept: capture{limit: limit}, done: make(chan struct{})}, nil
}

// start begins to read, and gives the writing end to the process alone.
func (o *output) start() {
	o.write.Close()
	go func() {
		defer close(o.done)
		buffer := make([]byte, readSize)
		for {
			n, err := o.read.Read(buffer)
			o.kept.add(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
}

// await waits until every writer is gone, at most until then.
func (o *output) await(until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	}
}

// finish reads what is still there, for at most [drainGrace], and then stops.
// After it the capture is at rest, whoever still holds the other end.
func (o *output) finish() {
	if o.read.SetReadDeadline(time.Now().Add(drainGrace)) != nil {
		o.read.Close() // a pipe that knows no deadline
	}
	<-o.done
	o.takeRest(largestPipe)
}

// takeRest takes what is in the pipe at this moment without waiting, so that a
// busy machine loses nothing of what the process itself wrote. A child that goes
// on writing is not followed much beyond limit.
func (o *output) takeRest(limit int) {
	if o.read.SetReadDeadline(time.Time{}) != nil {
		return
	}
	pipe, err := o.read.SyscallConn()
	if err != nil {
		return
	}
	buffer := make([]byte, readSize)
	for taken := 0; taken < limit; {
		n := 0
		_ = pipe.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buffer) // an empty pipe is an error too
			return true
		})
		if n <= 0 {
			return
		}
		o.kept.add(buffer[:n])
		taken += n
	}
}

// close gives both ends back. It is safe whether or not start was called.
func (o *output) close() {
	o.write.Close()
	o.read.Close()
}
