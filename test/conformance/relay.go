package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// frame is one operation of the NATS protocol on the wire.
type frame struct {
	verb    string   // in capitals
	args    []string // behind it, on its line
	header  string
	payload []byte
	raw     []byte
}

const maxPayload = 16 << 20

// readFrame reads one operation, with its payload.
func readFrame(in *bufio.Reader) (frame, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return frame{}, err
	}
	f := frame{raw: []byte(line)}
	verb, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
	f.verb = strings.ToUpper(verb)
	if f.verb == "CONNECT" {
		f.payload = []byte(rest)
		return f, nil
	}
	f.args = strings.Fields(rest)
	if !slices.Contains([]string{"PUB", "HPUB", "MSG", "HMSG"}, f.verb) || len(f.args) == 0 {
		return f, nil
	}
	size, err := strconv.Atoi(f.args[len(f.args)-1])
	if err != nil || size < 0 || size > maxPayload {
		return frame{}, fmt.Errorf("%s of %q bytes", f.verb, f.args[len(f.args)-1])
	}
	body := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(in, body); err != nil {
		return frame{}, err
	}
	f.raw, f.payload = append(f.raw, body...), body[:size]
	if f.verb[0] == 'H' {
		head, err := strconv.Atoi(f.args[len(f.args)-2])
		if err != nil || head < 0 || head > size {
			return frame{}, fmt.Errorf("%s with a header of %q bytes", f.verb, f.args[len(f.args)-2])
		}
		f.header, f.payload = string(body[:head]), body[head:size]
	}
	return f, nil
}

func (f frame) subject() string { return f.args[0] }

// reply is where a request wants its answer, "" for none.
func (f frame) reply() string {
	own := map[string]int{"PUB": 2, "HPUB": 3}[f.verb] // subject and sizes
	if own == 0 || len(f.args) <= own {
		return ""
	}
	return f.args[1]
}

// seen is a frame that passed the relay.
type seen struct {
	frame
	at       time.Time
	line     *line
	fromCore bool
}

// onFeed tells whether it is a message of a session's feed.
func (f seen) onFeed() bool {
	return f.fromCore && f.payload != nil && strings.HasSuffix(f.subject(), ".live")
}

// relay stands between the program and the core's nats.sock. It keeps what
// passes, and can keep a message of the feed back.
type relay struct {
	core string // the real socket

	mu    sync.Mutex
	tape  []seen
	more  chan struct{} // closed and renewed with each frame
	lines []*line
	hold  func(events.Live) bool // a feed message to keep back, nil = none
}

// line is one connection of the program.
type line struct {
	program, core net.Conn
	name          string            // of its CONNECT
	subscribed    map[string]string // subject by sid
	ended         time.Time
	out           sync.Mutex // writes to program
}

// serve takes connections until ctx ends.
func (r *relay) serve(ctx context.Context, l net.Listener) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer context.AfterFunc(ctx, func() { _ = l.Close(); r.cut() })()
	for {
		program, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		core, err := new(net.Dialer).DialContext(ctx, "unix", r.core)
		if err != nil {
			_ = program.Close()
			continue
		}
		c := &line{program: program, core: core, subscribed: map[string]string{}}
		r.mu.Lock()
		r.lines = append(r.lines, c)
		r.mu.Unlock()
		tasks.Go(func() { r.pass(c, false) })
		tasks.Go(func() { r.pass(c, true) })
	}
}

// pass carries one direction of a connection.
func (r *relay) pass(c *line, fromCore bool) {
	from, to := c.program, c.core
	if fromCore {
		from, to = to, from
	}
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		f, err := readFrame(in)
		if err != nil {
			break
		}
		if held := r.keep(c, f, fromCore); held {
			continue
		}
		if fromCore {
			c.out.Lock()
			_, err = to.Write(f.raw)
			c.out.Unlock()
		} else {
			_, err = to.Write(f.raw)
		}
		if err != nil {
			break
		}
	}
	c.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.ended.IsZero() {
		c.ended = time.Now()
	}
}

func (c *line) close() {
	_ = c.program.Close()
	_ = c.core.Close()
}

// keep notes a frame, and says whether it is to be held back.
func (r *relay) keep(c *line, f frame, fromCore bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case f.verb == "CONNECT":
		var hello struct {
			Name string `json:"name"`
		}
		if read(f.payload, &hello) == nil {
			c.name = hello.Name
		}
	case f.verb == "SUB" && len(f.args) >= 2:
		c.subscribed[f.args[len(f.args)-1]] = f.args[0]
	}
	if r.hold != nil && fromCore && f.payload != nil && strings.HasSuffix(f.subject(), ".live") {
		var live events.Live
		if read(f.payload, &live) == nil && r.hold(live) {
			return true
		}
	}
	r.tape = append(r.tape, seen{f, time.Now(), c, fromCore})
	close(r.more)
	r.more = make(chan struct{})
	return false
}

// holdBack keeps feed messages from the program; nil lets all pass.
func (r *relay) holdBack(which func(events.Live) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hold = which
}

// cut ends every connection of the program.
func (r *relay) cut() {
	r.mu.Lock()
	lines := slices.Clone(r.lines)
	r.mu.Unlock()
	for _, c := range lines {
		c.close()
	}
}

// so gives everything that has passed.
func (r *relay) so() []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tape)
}

// until waits for a frame at or behind a place on the tape.
func (r *relay) until(ctx context.Context, from int, limit time.Duration, fits func(seen) bool) (seen, bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		r.mu.Lock()
		tape, more := r.tape, r.more
		r.mu.Unlock()
		for ; from < len(tape); from++ {
			if fits(tape[from]) {
				return tape[from], true
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return seen{}, false
		}
	}
}

var errNotSubscribed = errors.New("the program follows no such feed")

// inject sends the program a message of a feed that the core did not send.
func (r *relay) inject(subject, feed string, live events.Live) error {
	body, err := events.Encode(live)
	if err != nil {
		return err
	}
	r.mu.Lock()
	c := r.lines[len(r.lines)-1]
	sid := ""
	for s, pattern := range c.subscribed {
		if covers(pattern, subject) {
			sid = s
		}
	}
	r.mu.Unlock()
	if sid == "" {
		return errNotSubscribed
	}
	head := "NATS/1.0\r\n" + events.HeaderFeed + ": " + feed + "\r\n\r\n"
	c.out.Lock()
	defer c.out.Unlock()
	_, err = fmt.Fprintf(c.program, "HMSG %s %s %d %d\r\n%s%s\r\n", subject, sid, len(head), len(head)+len(body), head, body)
	return err
}

// covers tells whether a subscription's subject covers another subject.
func covers(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		if token == ">" {
			return len(s) > i
		}
		if i >= len(s) || token != "*" && token != s[i] {
			return false
		}
	}
	return len(p) == len(s)
}
