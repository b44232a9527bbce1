package natsd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// connectTimeout is how long a client may take to say who it is.
const connectTimeout = 5 * time.Second

// Sizes of what is copied at once, per connection and direction.
const (
	upSize   = 8 << 10
	downSize = 16 << 10
)

// Run listens on nats.sock in the runtime directory until ctx ends, then ends
// its connections and returns nil. It returns an error when it cannot listen.
func (s *Server) Run(ctx context.Context) error {
	l, err := s.listen("nats.sock")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		c, p, err := l.accept()
		switch {
		case err == nil:
			open.Go(func() { s.serve(ctx, c, p) })
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		default: // out of descriptors: the others go on, and so does this when some close
			s.log.Warn("nats.sock: accept", "err", err)
			pause(ctx, 100*time.Millisecond)
		}
	}
}

func (s *Server) serve(ctx context.Context, c net.Conn, p Peer) {
	if err := s.Bridge(ctx, c, p); err != nil && ctx.Err() == nil {
		s.log.Debug("nats.sock: connection ended before it was one", "peer", p.String(), "pid", p.PID, "err", err)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Bridge serves one connection of a frontend or agent whose process the caller
// has identified as p, until it ends or ctx does, and closes c. It returns nil
// at the end of a connection that was admitted, and why one was not.
func (s *Server) Bridge(ctx context.Context, c net.Conn, p Peer) error {
	defer c.Close()
	if err := s.doors.arrive(p); err != nil {
		tell(c, err)
		return err
	}
	defer s.doors.leave(p)
	up, err := s.nats.InProcessConn()
	if err != nil {
		return fmt.Errorf("reach the NATS server: %w", err)
	}
	defer up.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close(); _ = up.Close() })()

	hello, err := s.greet(c, up)
	if err != nil {
		tell(c, err)
		return err
	}
	a, ticket, err := s.doors.admit(hello.role, hello.id, p)
	if err != nil {
		tell(c, err)
		return err
	}
	defer s.doors.dismiss(a, ticket)
	first, err := hello.args.encode(ticket)
	if err != nil {
		return err
	}
	relay(c, up, io.MultiReader(bytes.NewReader(first), bytes.NewReader(hello.rest), c))
	return nil
}

// hello is how a client began: its CONNECT, and what it sent right behind it.
type hello struct {
	args     connectArgs
	role, id string
	rest     []byte
}

// greet passes the server's INFO to the client and reads the client's CONNECT.
// All of it has to be done within [connectTimeout], however slowly bytes drip.
func (s *Server) greet(c, up net.Conn) (h hello, err error) {
	limit := time.Now().Add(connectTimeout)
	_ = up.SetDeadline(limit)
	_ = c.SetDeadline(limit)
	info, _, err := readLine(up, 64<<10)
	if err != nil {
		return h, fmt.Errorf("read the server's INFO: %w", err)
	}
	if _, err := c.Write(append(info, "\r\n"...)); err != nil {
		return h, fmt.Errorf("write INFO: %w", err)
	}
	line, rest, err := readLine(c, maxConnect)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return h, refused(fmt.Sprintf("No CONNECT Within %s", connectTimeout))
	case err != nil:
		return h, err
	}
	h.rest = rest
	h.args, h.role, h.id, err = parseConnect(line)
	_ = up.SetDeadline(time.Time{})
	_ = c.SetDeadline(time.Time{})
	return h, err
}

// relay copies both ways until one side ends. When the server ends first, its
// last words still reach the client.
func relay(c, up net.Conn, from io.Reader) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyTo(up, from, upSize)
		_ = up.Close()
	}()
	copyTo(deadlined{c}, up, downSize)
	_ = c.Close()
	_ = up.Close()
	<-done
}

func copyTo(dst io.Writer, src io.Reader, size int) {
	buf := make([]byte, size)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deadlined gives each write its own time limit: a client that does not read is
// a closed one.
type deadlined struct{ net.Conn }

// Write writes b within [writeDeadline].
func (d deadlined) Write(b []byte) (int, error) {
	if err := d.SetWriteDeadline(time.Now().Add(writeDeadline)); err != nil {
		return 0, err
	}
	return d.Conn.Write(b)
}

// linger is how long a refused client may take to read why.
const linger = 200 * time.Millisecond

// tell writes a refusal to the client, as a NATS server would. Other errors are
// ours and say nothing to a stranger. What the client still sends is read and
// dropped meanwhile: a client that is in the middle of a write would otherwise
// see a broken connection and not the reason.
func tell(c net.Conn, err error) {
	var r refused
	if !errors.As(err, &r) {
		return
	}
	_ = c.SetDeadline(time.Now().Add(linger))
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, c)
	}()
	_, _ = fmt.Fprintf(c, "-ERR '%s'\r\n", string(r)) // the client may be gone already
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	<-drained
}
