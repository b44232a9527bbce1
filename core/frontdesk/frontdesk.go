// Package frontdesk is the answerer's door: it takes the commands of frontends
// off the wire, checks their form, asks the [Desk], and sends the reply. It
// also publishes the feed.
//
// A command is never half understood and never without a reply: what has no
// proper form is refused as malformed, whoever is not connected as not_allowed,
// and a fault in here as internal. Who a frontend is comes from its subject,
// which the server has pinned to its connection, and never from a payload.
package frontdesk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// Desk answers what frontends ask; the engine is one. A method that takes a
// context may wait for the log.
type Desk interface {
	Hello(f engine.Frontend, scope string, c events.Hello) events.HelloReply
	Renew(f engine.Frontend, scope string, c events.Renew) events.RenewReply
	Bye(f engine.Frontend)
	Sessions(scope string) []events.SessionHead
	Find(ctx context.Context, c events.Find) events.FindReply
	History(scope string, c events.History) events.HistoryReply
	Sync(p engine.Place, c events.Sync) events.SyncReply
	Show(ctx context.Context, p engine.Place, c events.Show) events.ShowReply
	Received(f engine.Frontend, p engine.Place, c events.Received) events.Ack
	Presented(ctx context.Context, f engine.Frontend, p engine.Place, c events.Drawn) events.Ack
	Ring(ctx context.Context, f engine.Frontend, p engine.Place, c events.Ring) events.RingReply
	Output(ctx context.Context, p engine.Place, c events.RunCommand) events.RunReply
	Claim(ctx context.Context, f engine.Frontend, p engine.Place, c events.ClaimCommand) events.ClaimReply
	Release(ctx context.Context, f engine.Frontend, p engine.Place, c events.ReleaseCommand) events.Ack
	Respond(ctx context.Context, f engine.Frontend, p engine.Place, c events.Respond) events.Ack
}

// Options configure a door. All but Log are required.
type Options struct {
	Desk Desk
	// Conn is the core's own connection to the account of the doors.
	Conn *nats.Conn
	// Principal tells who is behind the live connection of that name, "fe.<id>".
	Principal func(name string) (string, bool)
	Core      events.Token
	Epoch     events.ID
	Log       *slog.Logger
}

const (
	announceEvery = 5 * time.Second
	// backlog is how many commands wait for the dispatcher at most; the rest is
	// dropped, and a frontend asks again.
	backlog = 1 << 16
)

// Door serves the frontends of one core.
type Door struct {
	o        Options
	commands chan *nats.Msg
	verbs    map[string]verb
	busy     busy
	tasks    sync.WaitGroup

	mu      sync.Mutex
	subject map[string]*nats.Subscription // what is listened to
}

// New makes a door that is still shut: [Door.Run] opens the lobby and serves,
// [Door.Open] opens sessions, before Run or while it runs.
func New(o Options) *Door {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Door{
		o: o, commands: make(chan *nats.Msg, backlog), verbs: newVerbs(),
		busy:    busy{of: map[events.ID]load{}},
		subject: map[string]*nats.Subscription{},
	}
}

// Run serves until ctx ends, then stops listening and waits for the commands
// that are under way; their context ends with ctx.
func (d *Door) Run(ctx context.Context) error {
	defer d.tasks.Wait()
	defer d.shut()
	if err := d.listen(ctx, events.LobbySubject(events.DoorAll, "*", "*")); err != nil {
		return fmt.Errorf("open the lobby: %w", err)
	}
	d.announce(nil)
	again := time.NewTicker(announceEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			d.announce(nil)
		case m := <-d.commands:
			d.dispatch(ctx, m)
		}
	}
}

// Open listens for commands about a session and, once the server knows that,
// announces it. The feed of a session must not begin before Open has returned.
func (d *Door) Open(ctx context.Context, h events.SessionHead) error {
	err := d.listen(ctx,
		events.FrontendSubject(h.Project, h.Session, "*", "*"),
		events.LobbySubject(string(h.Project), "*", "*"),
		events.LobbySubject(string(h.Session), "*", "*"),
	)
	if err != nil {
		return fmt.Errorf("open session %s to frontends: %w", h.Session, err)
	}
	d.announce(&h)
	return nil
}

// Close stops listening for commands about a session that has ended. The lobby of
// its project stays open: other sessions and later ones are found there.
func (d *Door) Close(h events.SessionHead) {
	d.hush(
		events.FrontendSubject(h.Project, h.Session, "*", "*"),
		events.LobbySubject(string(h.Session), "*", "*"),
	)
}

// listen subscribes to exact subjects, each once, and returns when the server
// has them all.
func (d *Door) listen(ctx context.Context, subjects ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range subjects {
		if d.subject[s] != nil {
			continue
		}
		sub, err := d.o.Conn.ChanSubscribe(s, d.commands)
		if err != nil {
			return err
		}
		d.subject[s] = sub
	}
	flush, cancel := context.WithTimeout(ctx, announceEvery)
	defer cancel()
	return d.o.Conn.FlushWithContext(flush)
}

func (d *Door) shut() {
	d.mu.Lock()
	all := slices.Collect(maps.Keys(d.subject))
	d.mu.Unlock()
	d.hush(all...)
}

// hush stops listening to subjects.
func (d *Door) hush(subjects ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range subjects {
		sub, ok := d.subject[s]
		if !ok {
			continue
		}
		if err := sub.Unsubscribe(); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
			d.o.Log.Warn("stop listening", "subject", s, "error", err)
		}
		delete(d.subject, s)
	}
}

func (d *Door) announce(opened *events.SessionHead) {
	data, err := events.Encode(events.Announce{Core: d.o.Core, Epoch: d.o.Epoch, Opened: opened})
	if err == nil {
		err = d.o.Conn.Publish(events.AnnounceSubject, data)
	}
	if err != nil {
		d.o.Log.Error("announce this core", "error", err)
	}
}

// Publish sends a message of a session's feed; feed is "<epoch>.<n>", seq the
// stream sequence behind it. It never waits. A message that cannot be sent
// leaves a gap in the numbers, at which frontends list again.
func (d *Door) Publish(p engine.Place, feed string, seq uint64, live events.Live) {
	data, err := d.encodeLive(live)
	if err == nil {
		m := nats.NewMsg(events.LiveSubject(p.Project, p.Session))
		m.Data = data
		m.Header.Set(events.HeaderFeed, feed)
		m.Header.Set(events.HeaderSeq, strconv.FormatUint(seq, 10))
		err = d.o.Conn.PublishMsg(m)
	}
	if err != nil {
		d.o.Log.Error("publish to the feed", "session", p.Session, "feed", feed, "error", err)
	}
}

// inFeed is the most that a question takes in the feed, bytes. The server keeps a
// message for each frontend that does not read, so that long arguments in it would
// cost as much memory as there are frontends.
const inFeed = 256 << 10

// encodeLive leaves out the arguments of a question that is longer than the feed
// takes; show brings them.
func (d *Door) encodeLive(live events.Live) ([]byte, error) {
	data, err := events.Encode(live)
	if err != nil || live.Asked == nil || len(data) <= inFeed {
		return data, err
	}
	q := *live.Asked
	q.Args = nil
	changed := make([]events.Change, len(q.Changed))
	for i, c := range q.Changed {
		changed[i].Name = c.Name
	}
	q.Changed = changed
	live.Asked = &q
	return events.Encode(live)
}
