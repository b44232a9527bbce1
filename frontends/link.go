package frontends

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/events"
)

// link is one connection, from its dial to its loss. What runs on it ends with
// ctx.
type link struct {
	c      *Client
	nc     *nats.Conn
	ctx    context.Context
	cancel context.CancelCauseFunc

	keep, sync, tell, past chan struct{} // wake keeping, listing, reporting as received, remembering

	missed int         // renewals in a row that some core did not answer; only keepAttached touches it
	alone  atomic.Bool // the core said that no other answers here: nothing is gathered

	mu       sync.Mutex
	epochs   map[events.ID]bool // of the cores that know this frontend
	followed map[events.Token]*nats.Subscription
	unsure   []events.ID          // questions that are over, and it is not known how
	inFlight map[string][]*flight // by subject
}

// flight is a request under way; a permission error on its subject ends it.
type flight struct{ fail context.CancelCauseFunc }

var errLost = errors.New("the connection to the core was lost")

// connected makes one connection and serves it until it is lost or ctx ends.
func (c *Client) connected(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	l := &link{
		c: c, ctx: ctx, cancel: cancel,
		keep: make(chan struct{}, 1), sync: make(chan struct{}, 1), tell: make(chan struct{}, 1), past: make(chan struct{}, 1),
		epochs: map[events.ID]bool{}, followed: map[events.Token]*nats.Subscription{}, inFlight: map[string][]*flight{},
	}
	closed := make(chan struct{})
	if err := l.dial(closed); err != nil {
		return err
	}
	defer func() {
		l.detach()
		l.nc.Close()
		<-closed
	}()
	if err := l.followScope(); err != nil {
		return err
	}
	var tasks sync.WaitGroup
	tasks.Go(l.keepAttached)
	tasks.Go(l.keepListed)
	tasks.Go(l.keepReported)
	tasks.Go(l.keepRemembered)
	tasks.Wait()
	if parent.Err() != nil {
		l.bye()
	}
	return context.Cause(ctx)
}

func (l *link) dial(closed chan struct{}) error {
	d := &dialer{l: l}
	id := l.c.o.ID
	nc, err := nats.Connect("nats://127.0.0.1",
		nats.Name("fe."+string(id)), nats.CustomInboxPrefix(events.InboxPrefix(id)),
		nats.SetCustomDialer(d), nats.NoReconnect(), nats.IgnoreDiscoveredServers(),
		nats.ErrorHandler(l.onError),
		nats.ClosedHandler(func(*nats.Conn) { l.cancel(errLost); close(closed) }),
	)
	if err == nil {
		l.nc = nc
		return nil
	}
	var timeout net.Error
	switch {
	case d.err != nil:
		return d.err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), errors.As(err, &timeout):
		return err
	}
	return &refusedError{err}
}

// dialer lets the options dial, and remembers whether that was what failed.
type dialer struct {
	l   *link
	err error
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(_, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.l.ctx, nats.DefaultTimeout)
	defer cancel()
	var c net.Conn
	c, d.err = d.l.c.o.Dial(ctx)
	return c, d.err
}

// onError hears of what the server refuses after the fact. A refused subject
// ends the requests on it at once; without its subscriptions a frontend is
// blind, so a refused one ends Run.
func (l *link) onError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		l.c.o.Log.Warn("connection to the core", "error", err)
		signal(l.keep) // a renewal shows whether the feed lost something
		return
	}
	refused := &events.Refused{Code: events.RejectNotAllowed, Hint: err.Error()}
	_, rest, _ := strings.Cut(err.Error(), `"`)
	subject, _, _ := strings.Cut(rest, `"`)
	if strings.Contains(err.Error(), "Subscription") {
		l.cancel(&fatalError{refused})
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.inFlight[subject] {
		f.fail(refused)
	}
}

// fly registers a request for the time of its flight.
func (l *link) fly(parent context.Context, subject string) (ctx context.Context, land func()) {
	ctx, fail := context.WithCancelCause(parent)
	f := &flight{fail}
	l.mu.Lock()
	l.inFlight[subject] = append(l.inFlight[subject], f)
	l.mu.Unlock()
	return ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		rest := slices.DeleteFunc(l.inFlight[subject], func(g *flight) bool { return g == f })
		if l.inFlight[subject] = rest; len(rest) == 0 {
			delete(l.inFlight, subject)
		}
		fail(nil)
	}
}

// request sends one command and waits for its reply, at most replyFor. The error
// is a *events.Refused when the server did not let the command through.
func (l *link) request(parent context.Context, subject string, data []byte) ([]byte, error) {
	if limit := l.nc.MaxPayload(); int64(len(data)) > limit {
		return nil, &events.Refused{
			Code: events.RejectMalformed, Hint: fmt.Sprintf("a command of %d bytes; the server takes %d", len(data), limit),
		}
	}
	timed, cancel := context.WithTimeout(parent, replyFor)
	defer cancel()
	ctx, land := l.fly(timed, subject)
	defer land()
	msg, err := l.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		if refused := (*events.Refused)(nil); errors.As(context.Cause(ctx), &refused) {
			return nil, refused
		}
		return nil, err
	}
	return msg.Data, nil
}

// flush waits until the server has seen what was sent before.
func (l *link) flush() error {
	ctx, cancel := context.WithTimeout(l.ctx, tryFor)
	defer cancel()
	return l.nc.FlushWithContext(ctx)
}

// followScope subscribes to the announcements and, where one subject covers the
// scope, to the feed of all its sessions.
func (l *link) followScope() error {
	if _, err := l.nc.Subscribe(events.AnnounceSubject, l.onAnnounce); err != nil {
		return err
	}
	if l.c.o.Scope == events.DoorAll {
		if _, err := l.nc.Subscribe(events.LiveSubject("*", "*"), l.onLive); err != nil {
			return err
		}
	}
	return l.flush()
}

// follow subscribes to the exact feeds of sessions where the scope is narrower.
func (l *link) follow(heads []events.SessionHead) error {
	if l.c.o.Scope == events.DoorAll {
		return nil
	}
	fresh := 0
	for _, h := range heads {
		l.mu.Lock()
		known := l.followed[h.Session] != nil
		l.mu.Unlock()
		if known {
			continue
		}
		sub, err := l.nc.Subscribe(events.LiveSubject(h.Project, h.Session), l.onLive)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.followed[h.Session] = sub
		l.mu.Unlock()
		fresh++
	}
	if fresh == 0 {
		return nil
	}
	return l.flush()
}

// unfollow ends the subscriptions to sessions that have left the scope.
func (l *link) unfollow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for token, sub := range l.followed {
		if !l.c.inbox.holds(token) {
			_ = sub.Unsubscribe() // fails only on a lost connection
			delete(l.followed, token)
		}
	}
}

// emit tells of updates. How a question ended that only is no longer there is
// looked up by keepListed.
func (l *link) emit(updates []Update) {
	l.mu.Lock()
	for _, u := range updates {
		if _, known := l.c.inbox.Ended(u.Question); u.Kind == KindEnded && !known {
			l.unsure = append(l.unsure, u.Question)
		}
	}
	wanted := len(l.unsure) > 0
	l.mu.Unlock()
	l.c.emit(updates)
	if wanted {
		signal(l.sync)
	}
}

// takeUnsure gives the questions to look up, each once.
func (l *link) takeUnsure() []events.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.unsure
	l.unsure = nil
	return list
}

// onLive folds one message of a feed. It never waits for anybody.
func (l *link) onLive(m *nats.Msg) {
	at, feed, ok := readFeed(m)
	if !ok {
		l.c.o.Log.Warn("a feed message without a place in its feed was left out", "subject", m.Subject)
		return
	}
	var live events.Live
	if err := events.Decode(m.Data, &live); err != nil {
		l.c.o.Log.Warn("a feed message could not be read; listing again", "subject", m.Subject, "error", err)
		l.c.inbox.spoil(at, feed)
		signal(l.sync)
		return
	}
	l.emit(l.c.inbox.apply(at, feed, live))
	if live.Asked != nil {
		signal(l.tell)
	}
	if live.Session != nil && live.Session.Closed {
		return // nothing of it is left to ask for
	}
	whole, known := l.c.inbox.state(at)
	if !whole {
		signal(l.sync)
	}
	if !known || !l.knows(feed.epoch) {
		signal(l.keep)
	}
}

// readFeed reads where a feed message belongs.
func readFeed(m *nats.Msg) (at place, feed mark, ok bool) {
	f := strings.Split(m.Subject, ".")
	if len(f) != 5 {
		return place{}, mark{}, false
	}
	project, err1 := events.ParseToken(f[2])
	session, err2 := events.ParseToken(f[3])
	epoch, number, found := strings.Cut(m.Header.Get(events.HeaderFeed), ".")
	id, err3 := events.ParseID(epoch)
	n, err4 := strconv.ParseUint(number, 10, 64)
	if errors.Join(err1, err2, err3, err4) != nil || !found || n == 0 {
		return place{}, mark{}, false
	}
	return place{project, session}, mark{id, n}, true
}

// onAnnounce hears of cores and of sessions that open.
func (l *link) onAnnounce(m *nats.Msg) {
	var a events.Announce
	if err := events.Decode(m.Data, &a); err != nil {
		l.c.o.Log.Warn("an announcement could not be read", "error", err)
		return
	}
	h := a.Opened
	switch {
	case !l.knows(a.Epoch):
		signal(l.keep)
	case h == nil || !l.inScope(*h):
	case l.c.o.Scope == events.DoorAll:
		l.c.emit(l.c.inbox.opened(*h))
		signal(l.sync)
	default:
		signal(l.keep) // renewing names it, and its feed has to be followed first
	}
}

// knows reports whether the core with this epoch knows this frontend.
func (l *link) knows(epoch events.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epochs[epoch]
}

func (l *link) inScope(h events.SessionHead) bool {
	scope := events.Token(l.c.o.Scope)
	return l.c.o.Scope == events.DoorAll || h.Project == scope || h.Session == scope ||
		h.Parent != "" && l.c.inbox.holds(h.Parent)
}

// attached makes the link the one that calls use.
func (l *link) attached(epochs map[events.ID]bool) {
	l.mu.Lock()
	l.epochs = epochs
	l.mu.Unlock()
	l.c.mu.Lock()
	l.c.setLink(l)
	l.c.mu.Unlock()
	signal(l.sync)
	signal(l.tell)
	signal(l.past)
}

// detach tells everybody that no core knows this frontend now.
func (l *link) detach() {
	l.c.mu.Lock()
	if l.c.link == l {
		l.c.setLink(nil)
	}
	l.c.mu.Unlock()
	l.c.emit(l.c.inbox.detach())
}

func (l *link) bye() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), sayGoodbye)
	defer cancel()
	data, err := events.Encode(events.Bye{})
	if err == nil {
		_, err = l.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: l.lobby(events.VerbBye), Data: data})
	}
	if err != nil {
		l.c.o.Log.Debug("left without a goodbye", "error", err)
	}
}

func (l *link) lobby(verb string) string {
	return events.LobbySubject(l.c.o.Scope, l.c.o.ID, verb)
}

// pauseOr is pause, or shorter when something may have changed.
func (l *link) pauseOr(woken <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-woken:
	case <-t.C:
	case <-l.ctx.Done():
	}
	return l.ctx.Err() == nil
}

// pause waits before another attempt on this link.
func (l *link) pause(d time.Duration) bool { return wait(l.ctx, d) == nil }
