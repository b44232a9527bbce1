package agents

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/events"
)

// DialOptions say how a [Client] reaches its core. The zero value is right for an
// agent on the user's own machine.
type DialOptions struct {
	// Socket is the path of nats.sock; "" is this user's, see [DefaultSocket].
	Socket string
	// Name is the agent's, one of [events.Agents], for sessions that name none;
	// "" is generic.
	Name events.Agent
	// Start starts a core when none answers, for instance by running
	// `fermata serve` in the background. It is called at most once a second. nil
	// starts none.
	Start func() error
	// Dial connects in place of Socket.
	Dial func(context.Context) (net.Conn, error)
	// Log hears what goes wrong behind the caller's back; nil means nowhere.
	Log *slog.Logger
}

// Times of a client.
const (
	firstContact = 3 * time.Second        // without a core, before anything was proposed
	withoutCore  = time.Minute            // the same afterwards
	retryWait    = 20 * time.Millisecond  // between two attempts, without jitter
	crowdedWait  = 100 * time.Millisecond // after too_many
	dialFor      = 2 * time.Second        // for one attempt to connect
	replyFor     = 15 * time.Second       // for one command; a core gives its log 10 s
	awaitReply   = awaitFor + 10*time.Second
	hooksMayRun  = 10 * time.Minute // for a finish: hooks on after_tool_call run before its reply
	partingFor   = 2 * time.Second  // for a withdrawal
	startEvery   = time.Second
)

// Client is an agent's connection to the core. It connects anew by itself, and
// its methods and those of its sessions may be called from any goroutine.
type Client struct {
	o  DialOptions
	id events.ID

	dialing chan struct{} // full while somebody connects
	started time.Time     // when Start was called last; of whoever connects

	mu     sync.Mutex
	link   *link
	closed bool
}

// link is one connection. What it says of the core is true for as long as it
// lives.
type link struct {
	nc   *nats.Conn
	core events.CoresReply
}

// ErrClosed is the error of a client after Close.
var ErrClosed = errors.New("the client of fermata's core is closed")

// errAgain says of a request that nobody knows whether it arrived, or that the
// core does not know its session: what it was about is to be proposed again.
var errAgain = errors.New("the connection to the core was lost")

// Unreachable says that no core answered.
type Unreachable struct {
	For   time.Duration
	Cause error
}

// Error says it, with a way out.
func (u *Unreachable) Error() string {
	return fmt.Sprintf("no core answered for %v (%v); `fermata serve` starts one", u.For, u.Cause)
}

// Unwrap is the last attempt's error.
func (u *Unreachable) Unwrap() error { return u.Cause }

// Dial connects to the core. It is an error when none answers within 3 s
// (*[Unreachable]), or when the directory of the user's own socket is not the
// user's alone.
func Dial(ctx context.Context, o DialOptions) (*Client, error) {
	if o.Dial == nil {
		path, err := o.Socket, error(nil)
		if path == "" {
			path, err = DefaultSocket()
		}
		if err != nil {
			return nil, err
		}
		o.Dial = func(ctx context.Context) (net.Conn, error) {
			if o.Socket == "" {
				if err := checkOwn(path); err != nil {
					return nil, err
				}
			}
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	if o.Name == "" {
		o.Name = "generic"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{o: o, id: newID(), dialing: make(chan struct{}, 1)}
	if _, err := c.connected(ctx, firstContact); err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the connection. Operations that still wait end when their leases
// do, within a minute; end what waits first.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.link != nil {
		c.link.nc.Close()
	}
}

// living is the connection that there is, nil if it has to be made.
func (c *Client) living() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if c.link == nil || !c.link.nc.IsConnected() {
		return nil, nil
	}
	return c.link, nil
}

// connected returns a connection on which a core has answered, and makes it if
// there is none.
func (c *Client) connected(ctx context.Context, patience time.Duration) (*link, error) {
	select {
	case c.dialing <- struct{}{}:
		defer func() { <-c.dialing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for began := time.Now(); ; {
		if l, err := c.living(); l != nil || err != nil {
			return l, err
		}
		l, err := c.dial(ctx)
		switch {
		case err == nil:
			return l, c.use(l)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case time.Since(began) >= patience:
			return nil, &Unreachable{patience, err}
		}
		c.start()
		if err := sleep(ctx, retryWait); err != nil {
			return nil, err
		}
	}
}

func (c *Client) use(l *link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		l.nc.Close()
		return ErrClosed
	}
	c.link = l
	return nil
}

func (c *Client) start() {
	if c.o.Start == nil || time.Since(c.started) < startEvery {
		return
	}
	c.started = time.Now()
	if err := c.o.Start(); err != nil {
		c.o.Log.Warn("no core could be started", "error", err)
	}
}

// dial makes one connection and asks which core is behind it.
func (c *Client) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	var failed error
	release := func() bool { return true }
	dial := func() (conn net.Conn, err error) {
		if conn, failed = c.o.Dial(ctx); failed == nil { // what is behind it may be silent
			release = context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, failed
	}
	nc, err := nats.Connect("nats://127.0.0.1",
		nats.Name("op."+string(c.id)), nats.CustomInboxPrefix(events.InboxPrefix(c.id)),
		nats.SetCustomDialer(dialer(dial)), nats.NoReconnect(), nats.IgnoreDiscoveredServers(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.o.Log.Warn("connection to the core", "error", err)
		}),
	)
	release()
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	l := &link{nc: nc}
	to := events.AgentLobbySubject(events.DoorAll, c.id, events.VerbCores)
	if err := l.request(ctx, to, events.Cores{}, &l.core, dialFor); err != nil {
		nc.Close()
		return nil, err
	}
	return l, nil
}

// dialer is a function that nats.go dials with.
type dialer func() (net.Conn, error)

// Dial implements nats.CustomDialer.
func (d dialer) Dial(_, _ string) (net.Conn, error) { return d() }

// request sends one command and reads its reply. Its error is an
// *[events.Refused] for a typed no, errAgain when nobody knows what became of
// the command, and ctx's cause when ctx ended.
func (l *link) request(ctx context.Context, subject string, command, reply any, within time.Duration) error {
	data, err := events.Encode(command)
	if err != nil {
		return err
	}
	if limit := l.nc.MaxPayload(); int64(len(data)) > limit {
		return refuse(events.RejectMalformed, "a command of %d bytes; the core takes %d", len(data), limit)
	}
	timed, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	m, err := l.nc.RequestMsgWithContext(timed, &nats.Msg{Subject: subject, Data: data})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, nats.ErrNoResponders):
		return refuse(events.RejectNotAttached, "nobody answers for this session")
	default: // the connection is gone, or the core is silent
		l.nc.Close()
		return fmt.Errorf("%w: %w", errAgain, err)
	}
	var no refusal
	if err := events.Decode(m.Data, &no); err != nil {
		return fmt.Errorf("the core's reply cannot be read: %w", err)
	}
	if no.Refused != nil {
		return no.Refused
	}
	if err := events.Decode(m.Data, reply); err != nil {
		return fmt.Errorf("the core's reply cannot be read: %w", err)
	}
	return nil
}

// newID makes an id of this moment.
func newID() events.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails
	return events.NewID(time.Now(), entropy)
}
