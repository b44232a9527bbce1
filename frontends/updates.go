package frontends

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/fermata-hitl/fermata/events"
)

// Kind says what an [Update] is about.
type Kind string

// The kinds of updates. KindResynced says that anything may have changed: read
// the whole [Inbox] again.
const (
	KindAttached Kind = "attached"
	KindDetached Kind = "detached"
	KindAsked    Kind = "asked"
	KindClaimed  Kind = "claimed"
	KindReleased Kind = "released"
	KindEnded    Kind = "ended"
	KindLine     Kind = "line"
	KindRun      Kind = "run"
	KindSession  Kind = "session"
	KindResynced Kind = "resynced"
)

// Update says that something changed and where to look; what it is now stands
// in the [Inbox]. Question is set for asked, claimed, released and ended,
// Operation for line, Run for run, and Session for all but attached, detached and
// resynced.
type Update struct {
	Kind      Kind
	Question  events.ID
	Operation events.ID
	Run       events.ID
	Session   events.Token
}

// ErrClosed is returned by every call once [Client.Run] has ended.
var ErrClosed = errors.New("the frontend client has stopped; make a new one to go on")

// maxPending bounds what is kept for a consumer that does not read.
const maxPending = 4096

// Updates yields what changes, until ctx or the client ends; the last pair
// carries the error that says why. Each caller has its own queue, which starts
// with one KindResynced. Updates that were not read yet are folded together, so
// a slow consumer skips steps and never misses the outcome, and nobody waits
// for it.
func (c *Client) Updates(ctx context.Context) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		q := c.listen()
		defer c.unlisten(q)
		for {
			u, err := q.next(ctx)
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// queue holds what one consumer has not read: at most one update for each
// thing, in the order in which the things first changed.
type queue struct {
	wake chan struct{} // capacity 1: something is pending, or the end came

	mu      sync.Mutex
	order   []Update // keys
	pending map[Update]Kind
	end     error
}

func newQueue() *queue {
	q := &queue{wake: make(chan struct{}, 1), pending: map[Update]Kind{}}
	q.add(Update{Kind: KindResynced})
	return q
}

// add never blocks.
func (q *queue) add(updates ...Update) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, u := range updates {
		key := u
		key.Kind = ""
		if u.Kind == KindResynced {
			key.Kind = KindResynced
		}
		old, ok := q.pending[key]
		if !ok {
			q.order = append(q.order, key)
		}
		q.pending[key] = folded(old, u.Kind)
	}
	if len(q.order) > maxPending {
		all := Update{Kind: KindResynced}
		q.order, q.pending = []Update{all}, map[Update]Kind{all: KindResynced}
	}
	signal(q.wake)
}

// folded is what remains of two changes of one thing. A consumer that has not
// been told of a question hears of it as asked, whatever happened since, unless
// it has ended.
func folded(old, next Kind) Kind {
	if old == KindAsked && next != KindEnded {
		return KindAsked
	}
	if old == KindEnded {
		return KindEnded
	}
	return next
}

func (q *queue) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end = err
	signal(q.wake)
}

func (q *queue) next(ctx context.Context) (Update, error) {
	for {
		if u, ok, err := q.take(); ok || err != nil {
			return u, err
		}
		select {
		case <-ctx.Done():
			return Update{}, context.Cause(ctx)
		case <-q.wake:
		}
	}
}

// take gives the next update; the end comes only after the last of them.
func (q *queue) take() (u Update, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return Update{}, false, q.end
	}
	u = q.order[0]
	q.order = q.order[1:]
	kind := q.pending[u]
	delete(q.pending, u)
	u.Kind = kind
	return u, true, nil
}

// signal wakes the one reader of a channel of capacity 1, or leaves the signal
// that is already there.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
