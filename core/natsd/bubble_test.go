package natsd_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/natsd"
)

// Ids as clients choose them.
const (
	alice = "01jz0000000000000000000000"
	bob   = "01jz0000000000000000000001"
	agent = "01jz0000000000000000000002"

	project = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	session = "bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

var me = natsd.Peer{UID: 1000, PID: 42, Start: 7}

// house is a server in a bubble.
type house struct {
	*testing.T
	*natsd.Server
	ctx context.Context
}

// bubble runs f with a server on fake time. Everything that f opened with its
// own methods is closed before the server.
func bubble(t *testing.T, f func(h *house)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := natsd.Start(natsd.Options{StateDir: t.TempDir(), RuntimeDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		f(&house{t, s, ctx})
	})
}

// dial opens a bridged connection and gives the client's end.
func (h *house) dial() net.Conn {
	client, server := net.Pipe()
	go func() { _ = h.Bridge(h.ctx, server, me) }() // what it refuses, the client reads
	h.Cleanup(func() { _ = client.Close() })
	return client
}

type pipes struct{ h *house }

func (p pipes) Dial(string, string) (net.Conn, error) { return p.h.dial(), nil }

// connect connects a NATS client as fe.<id> or op.<id>. Asynchronous errors
// arrive in the channel.
func (h *house) connect(name string) (*nats.Conn, chan error) {
	h.Helper()
	nc, errs, err := h.tryConnect(name)
	if err != nil {
		h.Fatalf("connect %s: %v", name, err)
	}
	return nc, errs
}

func (h *house) tryConnect(name string, o ...nats.Option) (*nats.Conn, chan error, error) {
	errs := make(chan error, 64)
	_, id, _ := strings.Cut(name, ".")
	nc, err := nats.Connect("nats://127.0.0.1", append([]nats.Option{
		nats.SetCustomDialer(pipes{h}), nats.Name(name), nats.CustomInboxPrefix("_IB." + id), nats.NoReconnect(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err }),
	}, o...)...)
	if err == nil {
		h.Cleanup(nc.Close)
	}
	return nc, errs, err
}

func (h *house) doors() *nats.Conn {
	h.Helper()
	nc, err := h.Doors()
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(nc.Close)
	return nc
}

func (h *house) flush(nc *nats.Conn) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, 5*time.Second)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		h.Fatalf("flush: %v", err)
	}
}

// echo answers every command of both doors, as a core would.
func (h *house) echo() {
	h.Helper()
	nc := h.doors()
	for _, subject := range []string{"fermata.v1.>", "fermata.lobby.v1.>"} {
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond([]byte(m.Subject)) }); err != nil {
			h.Fatal(err)
		}
	}
	h.flush(nc)
}

// ask sends a request and fails unless it is answered.
func (h *house) ask(nc *nats.Conn, subject string) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, 5*time.Second)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, subject, nil)
	if err != nil {
		h.Fatalf("request %s: %v", subject, err)
	}
	if string(m.Data) != subject {
		h.Fatalf("request %s: answered %q", subject, m.Data)
	}
}

// raw speaks the protocol by hand.
type raw struct {
	h *house
	net.Conn
	r *bufio.Reader
}

func (h *house) raw() *raw {
	h.Helper()
	c := h.dial()
	r := &raw{h, c, bufio.NewReader(c)}
	if line := r.line(); !strings.HasPrefix(line, "INFO {") {
		h.Fatalf("the server began with %q", line)
	}
	return r
}

func (r *raw) line() string {
	r.h.Helper()
	line, err := r.r.ReadString('\n')
	if err != nil {
		r.h.Fatalf("read a line: %v", err)
	}
	return strings.TrimSpace(line)
}

// send writes without waiting: the other side may close before it has read all.
func (r *raw) send(format string, a ...any) {
	go func() { _, _ = fmt.Fprintf(r.Conn, format, a...) }()
}

// refusal reads up to the -ERR and gives its text, "" when the connection ends
// without one.
func (r *raw) refusal() string {
	for {
		line, err := r.r.ReadString('\n')
		if text, ok := strings.CutPrefix(line, "-ERR "); ok {
			return strings.Trim(text, "'\r\n")
		}
		if err != nil {
			return ""
		}
	}
}
