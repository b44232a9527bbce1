package journal_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

var (
	core    = events.CoreToken("test")
	project = events.ProjectToken("/test")
	session = events.SessionToken(core, "generic", "1")
)

func newID() events.ID {
	var e [10]byte
	_, _ = rand.Read(e[:]) // never fails
	return events.NewID(time.Now(), e)
}

func subject() string { return events.OperationSubject(project, session, newID()) }

func entry(subject string, expected uint64) journal.Entry {
	return journal.Entry{Subject: subject, Expected: expected, ID: newID(), Types: "Test", Data: []byte("data of " + subject)}
}

func options() journal.Options {
	return journal.Options{Core: core, MaxBytes: 64 << 20, Now: time.Now, NewID: newID}
}

// log is a journal on a server with file storage, in a bubble.
type log struct {
	*testing.T
	*journal.Journal
	server *natsd.Server
	nc     *nats.Conn
	ctx    context.Context
}

func bubble(t *testing.T, f func(l *log)) {
	synctest.Test(t, func(t *testing.T) { f(open(t, t.TempDir(), options())) })
}

// bothWays runs a test with entries that go alone, and with each in a batch.
func bothWays(t *testing.T, f func(l *log)) {
	bothWaysOn(t, options(), func(l *log, _ *lossy) { f(l) })
}

// bothWaysOn is bothWays on a log with these options and a connection that loses
// acknowledgements.
func bothWaysOn(t *testing.T, o journal.Options, f func(l *log, drop *lossy)) {
	for _, batched := range []bool{false, true} {
		t.Run(map[bool]string{false: "alone", true: "in a batch"}[batched], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { <-time.After(time.Second) }) // fake time: the server's stores of batches come to rest
				drop := &lossy{quiet: true}                     // reconnecting takes timers that nats.go shares between bubbles
				l := open(t, t.TempDir(), o, drop.wrap)
				if batched {
					l.BatchesOf(1)
				}
				f(l, drop)
			})
		})
	}
}

func open(t testing.TB, dir string, o journal.Options, no ...nats.Option) *log {
	t.Helper()
	s, err := natsd.Start(natsd.Options{StateDir: dir, RuntimeDir: t.TempDir(), SyncAlways: o.SyncAlways})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	nc, err := s.Core(no...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	j, err := journal.Open(t.Context(), nc, o)
	if err != nil {
		t.Fatal(err)
	}
	l := &log{Journal: j, server: s, nc: nc, ctx: t.Context()}
	l.T, _ = t.(*testing.T)
	return l
}

// append writes an entry that must win.
func (l *log) append(e journal.Entry) uint64 {
	l.Helper()
	seq, err := l.Append(l.ctx, e)
	if err != nil {
		l.Fatal(err)
	}
	return seq
}

// collect reads a sequence to its end.
func collect(seq func(func(journal.Record, error) bool)) (all []journal.Record, err error) {
	for r, e := range seq {
		if e != nil {
			return all, e
		}
		all = append(all, r)
	}
	return all, nil
}

// lossy makes a connection that, when armed, loses the answer to the next
// publish: the server has stored the message or refused it, the client never
// hears it.
type lossy struct {
	nats.InProcessConnProvider
	quiet bool         // the answer vanishes; else the connection breaks
	armed atomic.Int32 // answers still to lose
	lost  atomic.Int32
}

// wrap is a connection option.
func (l *lossy) wrap(o *nats.Options) error {
	if o.InProcessServer == nil {
		return errors.New("not an in-process connection")
	}
	l.InProcessConnProvider = o.InProcessServer
	o.InProcessServer = l
	return nil
}

// InProcessConn wraps a connection of the server.
func (l *lossy) InProcessConn() (net.Conn, error) {
	c, err := l.InProcessConnProvider.InProcessConn()
	return &lossyConn{c, l}, err
}

type lossyConn struct {
	net.Conn
	l *lossy
}

// answer is an answer to a publish, as the server sends it.
var answer = regexp.MustCompile(`MSG \S+ \S+ \d+\r\n\{[^\r]*"stream":"FERMATA_0001"[^\r]*\r\n`)

func (c *lossyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.l.armed.Load() <= 0 {
		return n, err
	}
	at := answer.FindIndex(b[:n])
	if at == nil {
		return n, err
	}
	c.l.armed.Add(-1)
	c.l.lost.Add(1)
	if c.l.quiet {
		return at[0] + copy(b[at[0]:], b[at[1]:n]), err
	}
	_ = c.Close()
	return 0, net.ErrClosed
}

// TestMain is also the child of the kill test.
func TestMain(m *testing.M) {
	if dir := os.Getenv("FERMATA_TEST_APPENDER"); dir != "" {
		fmt.Fprintln(os.Stderr, appendForever(dir, os.Getenv("FERMATA_TEST_SYNC") != ""))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func server(t testing.TB) (*natsd.Server, *nats.Conn) {
	t.Helper()
	s, err := natsd.Start(natsd.Options{StateDir: t.TempDir(), RuntimeDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	nc, err := s.Core()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return s, nc
}
