// Package frontends is the kit for programs that show questions to a person and
// carry the answer back: a terminal screen, a proxy, a page, a command.
//
// Make a [Client], start [Client.Run], range over [Client.Updates], read what
// there is from the [Inbox], and answer with [Client.Claim] and
// [Client.Answer]:
//
//	c, err := frontends.New(frontends.Options{Dial: dial, ID: id, Kind: events.FrontendTUI, Capable: true})
//	go c.Run(ctx)
//	for update, err := range c.Updates(ctx) { … c.Inbox().Questions() … }
//
// The client follows the feed of its scope before it asks for the list of open
// questions, so that a question cannot fall between the two; it lists again
// whenever the feed's numbers show a gap; it keeps its lease; and when the
// connection is lost it makes a new one and starts over. It never answers by
// itself.
package frontends

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// Options say who a frontend is. Dial, ID and Kind are required.
type Options struct {
	// Dial connects to the core's socket. An error of it is tried again.
	Dial func(context.Context) (net.Conn, error)
	// ID names this connection; make a new one for each process.
	ID   events.ID
	Kind events.FrontendKind
	// Capable = can show questions and carry answers. A frontend that is not
	// sees everything and counts for nothing.
	Capable bool
	// Panes narrows Capable to sessions whose agent stands in a terminal's pane. It is
	// for a frontend that opens its screen over that pane and has none elsewhere: a
	// question of any other session does not wait for it.
	Panes bool
	// Name is what other people see, such as "tui on pts/3".
	Name string
	// Scope is events.DoorAll, a project's token or a session's; "" = all.
	Scope string
	Log   *slog.Logger
}

// Times of a client.
const (
	renewEvery   = 5 * time.Second
	inputCounts  = 30 * time.Second       // a claim is kept for input this recent
	retryWait    = 20 * time.Millisecond  // between two attempts, without jitter
	nobodyWait   = time.Second            // what retryWait grows to where no core answers the scope
	gatherFor    = 100 * time.Millisecond // for the answers of several cores
	tryFor       = 5 * time.Second        // for what a core answers from memory
	replyFor     = 15 * time.Second       // for one attempt of a command; a core gives its log 10 s, then says so
	refusedFor   = 3 * time.Second        // a refused connection is tried again
	sayGoodbye   = 200 * time.Millisecond
	maxMissed    = 3   // renewals without an answer, a lease of 15 s
	maxInFlight  = 256 // requests at once; the others wait their turn
	maxReceived  = 256 // questions in one received
	maxArguments = 16 << 20
)

// Client is a frontend's connection to the core. Its methods may be called from
// any goroutine.
type Client struct {
	o         Options
	inbox     *Inbox
	slots     chan struct{}
	lastInput atomic.Int64           // UnixNano of a person's last input, 0 = never
	principal atomic.Pointer[string] // as the core last said it, nil before

	mu        sync.Mutex
	link      *link         // the attached connection, nil while there is none
	changed   chan struct{} // closed and renewed when link or ended changes
	ended     error         // why Run ended, nil before
	listeners map[*queue]struct{}
}

// Principal is who this frontend is to the core, the name that its answers are
// recorded under; "" before a core has said it.
func (c *Client) Principal() string {
	if p := c.principal.Load(); p != nil {
		return *p
	}
	return ""
}

// New checks the options and makes a client. Nothing is dialled before Run.
func New(o Options) (*Client, error) {
	if o.Dial == nil {
		return nil, errors.New("frontends.Options.Dial is missing: it connects to the core's socket")
	}
	if _, err := events.ParseID(string(o.ID)); err != nil {
		return nil, fmt.Errorf("frontends.Options.ID: %w", err)
	}
	if o.Kind == "" {
		return nil, errors.New("frontends.Options.Kind is missing: tui, acp, web or cli")
	}
	if o.Scope == "" {
		o.Scope = events.DoorAll
	}
	if _, err := events.ParseToken(o.Scope); err != nil && o.Scope != events.DoorAll {
		return nil, fmt.Errorf("frontends.Options.Scope: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Client{
		o: o, inbox: newInbox(),
		slots:     make(chan struct{}, maxInFlight),
		changed:   make(chan struct{}),
		listeners: map[*queue]struct{}{},
	}, nil
}

// Inbox is what the client knows, kept up to date while Run runs.
func (c *Client) Inbox() *Inbox { return c.inbox }

// Input says that a person has just typed or clicked. Claims are kept only
// while this happens.
func (c *Client) Input() { c.lastInput.Store(time.Now().UnixNano()) }

func (c *Client) recentInput() bool {
	at := c.lastInput.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < inputCounts
}

// Run attaches and stays attached until ctx ends, which is no error. It returns
// early when the core refuses this frontend for good: a *[events.Refused], or
// the server's reason.
func (c *Client) Run(ctx context.Context) error {
	err := c.run(ctx)
	ended := ErrClosed
	if err != nil {
		ended = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	c.mu.Lock()
	c.ended = ended
	c.setLink(nil)
	for q := range c.listeners {
		q.close(ended)
	}
	c.mu.Unlock()
	return err
}

func (c *Client) run(ctx context.Context) error {
	var refusedSince time.Time
	for {
		err := c.connected(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if fatal, ok := errors.AsType[*fatalError](err); ok {
			return fatal.err
		}
		// An id is refused as long as the server has not noticed that the
		// connection before this one has gone.
		if refused := (*refusedError)(nil); !errors.As(err, &refused) {
			refusedSince = time.Time{}
		} else if refusedSince.IsZero() {
			refusedSince = time.Now()
		} else if time.Since(refusedSince) >= refusedFor {
			return refused
		}
		c.o.Log.Debug("no core in reach", "error", err)
		if wait(ctx, retryWait) != nil {
			return nil
		}
	}
}

// fatalError ends Run.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

// refusedError is a server's no to a connection.
type refusedError struct{ err error }

func (e *refusedError) Error() string {
	return "the core's server refused this frontend: " + e.err.Error()
}
func (e *refusedError) Unwrap() error { return e.err }

// setLink is called with c.mu held.
func (c *Client) setLink(l *link) {
	c.link = l
	close(c.changed)
	c.changed = make(chan struct{})
}

// attachedLink waits until a core knows this frontend.
func (c *Client) attachedLink(ctx context.Context) (*link, error) {
	for {
		c.mu.Lock()
		l, ended, changed := c.link, c.ended, c.changed
		c.mu.Unlock()
		if ended != nil {
			return nil, ended
		}
		if l != nil {
			return l, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no core in reach: %w", context.Cause(ctx))
		case <-changed:
		}
	}
}

func (c *Client) listen() *queue {
	q := newQueue()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners[q] = struct{}{}
	if c.ended != nil {
		q.close(c.ended)
	}
	return q
}

func (c *Client) unlisten(q *queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.listeners, q)
}

func (c *Client) emit(updates []Update) {
	if len(updates) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for q := range c.listeners {
		q.add(updates...)
	}
}

// wait sleeps, or returns why ctx ended.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
