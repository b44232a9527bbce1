package frontdesk_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/frontdesk"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

var (
	project = events.ProjectToken("/p")
	main    = engine.Place{Project: project, Session: events.SessionToken("core", "claude", "main")}
	child   = engine.Place{Project: project, Session: events.SessionToken("core", "claude", "child")}
)

func newID(n int) events.ID {
	return events.NewID(time.UnixMilli(int64(n)), [10]byte{9: byte(n), 8: byte(n >> 8), 7: byte(n >> 16)})
}

// desk answers as an engine would, from memory, and publishes through the door.
type desk struct {
	door  *frontdesk.Door
	hooks struct {
		claim, respond func(events.ID) // called without the lock, before the decision
		renew          func()
	}

	mu        sync.Mutex
	epoch     events.ID
	seq       uint64
	sessions  map[engine.Place]*events.SessionHead
	open      map[events.ID]*events.Question
	args      map[events.ID][]byte
	ended     map[events.ID]events.End
	place     map[events.ID]engine.Place
	answered  map[events.ID]events.ID // question → frontend
	answers   int
	received  map[events.ID][]events.ID
	attached  map[events.ID]events.Hello
	principal map[events.ID]string
	drawn     []events.Drawn
	inputs    int
	history   events.HistoryReply
	rung      map[events.ID]events.ID // question → frontend
	mute      bool                    // the feed is lost
}

func newDesk(epoch int) *desk {
	return &desk{
		epoch:    newID(epoch),
		sessions: map[engine.Place]*events.SessionHead{}, open: map[events.ID]*events.Question{},
		args: map[events.ID][]byte{}, ended: map[events.ID]events.End{}, place: map[events.ID]engine.Place{},
		answered: map[events.ID]events.ID{}, received: map[events.ID][]events.ID{},
		attached: map[events.ID]events.Hello{}, principal: map[events.ID]string{},
		rung: map[events.ID]events.ID{},
	}
}

func no(code events.Reject) *events.Refused { return &events.Refused{Code: code} }

// publish is called with the lock held.
func (d *desk) publish(p engine.Place, live events.Live) {
	s := d.sessions[p]
	s.Feed++
	live.Seq = d.seq
	if !d.mute {
		d.door.Publish(p, fmt.Sprintf("%s.%d", d.epoch, s.Feed), d.seq, live)
	}
}

func (d *desk) ask(p engine.Place, n int, args []byte) events.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seq++
	q := events.Question{
		ID: newID(n), Operation: newID(1_000_000 + n), Gate: events.GateHook, Project: p.Project, Session: p.Session,
		AskedAt: events.At(time.Now()), Version: events.Version{Digest: events.DigestOf(args), Bytes: len(args)}, Args: args, Seq: d.seq,
	}
	d.open[q.ID], d.args[q.ID], d.place[q.ID] = &q, args, p
	copied := q
	d.publish(p, events.Live{Asked: &copied})
	return q.ID
}

// end is called with the lock held.
func (d *desk) end(e events.End) {
	d.seq++
	delete(d.open, e.Question)
	d.ended[e.Question] = e
	d.publish(d.place[e.Question], events.Live{Ended: &e})
}

func (d *desk) withdraw(id events.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.end(events.End{Question: id, Result: events.ResultWithdrawn, Reason: events.EndInterrupted})
}

// restart is another core on the same log: the feed begins anew, frontends are
// forgotten.
func (d *desk) restart(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.epoch = newID(n)
	clear(d.attached)
	clear(d.received)
	for _, s := range d.sessions {
		s.Feed = 0
	}
}

func (d *desk) heads(scope string) (list []events.SessionHead) {
	for p, s := range d.sessions {
		if scope == events.DoorAll || scope == string(p.Project) || scope == string(p.Session) || scope == string(s.Parent) {
			list = append(list, *s)
		}
	}
	return list
}

func (d *desk) Hello(f engine.Frontend, scope string, h events.Hello) events.HelloReply {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attached[f.ID], d.principal[f.ID] = h, f.Principal
	return events.HelloReply{Core: "core", Epoch: d.epoch, LeaseMS: 15000, Sessions: d.heads(scope)}
}

func (d *desk) Renew(f engine.Frontend, scope string, r events.Renew) events.RenewReply {
	if d.hooks.renew != nil {
		d.hooks.renew()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.attached[f.ID]; !ok {
		return events.RenewReply{Refused: no(events.RejectNotAllowed)}
	}
	if r.Input {
		d.inputs++
	}
	return events.RenewReply{Epoch: d.epoch, Sessions: d.heads(scope)}
}

func (d *desk) Bye(f engine.Frontend) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.attached, f.ID)
}

func (d *desk) Sessions(scope string) []events.SessionHead {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.heads(scope)
}

func (d *desk) Find(_ context.Context, c events.Find) events.FindReply {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.place[c.Question]
	if !ok {
		return events.FindReply{Refused: no(events.RejectUnknownQuestion)}
	}
	r := events.FindReply{Project: p.Project, Session: p.Session, Question: c.Question, State: "open"}
	if e, over := d.ended[c.Question]; over {
		r.State, r.End = "ended", &e
	}
	return r
}

func (d *desk) Sync(p engine.Place, c events.Sync) events.SyncReply {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.sessions[p]
	if !ok {
		return events.SyncReply{Refused: no(events.RejectUnknownSession)}
	}
	r := events.SyncReply{Epoch: d.epoch, Feed: s.Feed}
	var ids []events.ID
	for id := range d.open {
		if d.place[id] == p && id > c.Cursor {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for i, id := range ids {
		if i == 16 {
			r.Next = ids[i-1]
			break
		}
		q := *d.open[id]
		if len(q.Args) > 10_000 {
			q.Args = nil
		}
		r.Questions = append(r.Questions, q)
	}
	return r
}

func (d *desk) Show(_ context.Context, _ engine.Place, c events.Show) events.ShowReply {
	d.mu.Lock()
	defer d.mu.Unlock()
	args := d.args[c.Question]
	rest := args[c.Offset:]
	return events.ShowReply{Data: rest[:min(len(rest), 256<<10)], Total: int64(len(args))}
}

func (d *desk) Received(f engine.Frontend, _ engine.Place, c events.Received) events.Ack {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.attached[f.ID]; !ok {
		return events.Ack{Refused: no(events.RejectNotAllowed)}
	}
	for _, id := range c.Questions {
		d.received[id] = append(d.received[id], f.ID)
	}
	return events.Ack{}
}

func (d *desk) Presented(_ context.Context, _ engine.Frontend, _ engine.Place, c events.Drawn) events.Ack {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drawn = append(d.drawn, c)
	return events.Ack{}
}

func (d *desk) History(scope string, c events.History) events.HistoryReply {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := events.HistoryReply{Epoch: d.epoch}
	for _, l := range d.history.Lines {
		if scope == events.DoorAll || scope == string(l.Project) || scope == string(l.Session) {
			r.Lines = append(r.Lines, l)
		}
	}
	for _, l := range d.history.Runs {
		if scope == events.DoorAll || scope == string(l.Project) || scope == string(l.Session) {
			r.Runs = append(r.Runs, l)
		}
	}
	if c.Limit > 0 {
		r.Lines, r.Runs = r.Lines[max(0, len(r.Lines)-c.Limit):], r.Runs[max(0, len(r.Runs)-c.Limit):]
	}
	return r
}

func (d *desk) Ring(_ context.Context, f engine.Frontend, _ engine.Place, c events.Ring) events.RingReply {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.open[c.Question]; !ok {
		return events.RingReply{Refused: d.over(c.Question)}
	}
	if _, rung := d.rung[c.Question]; rung {
		return events.RingReply{}
	}
	d.rung[c.Question] = f.ID
	return events.RingReply{Yours: true}
}

func (d *desk) Output(_ context.Context, _ engine.Place, c events.RunCommand) events.RunReply {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.history.Runs {
		if l.Run == c.Run && l.Operation == c.Operation {
			return events.RunReply{Stderr: "said by " + string(c.Run), Reason: "because"}
		}
	}
	return events.RunReply{Refused: no(events.RejectUnknownOperation)}
}

// over is called with the lock held.
func (d *desk) over(id events.ID) *events.Refused {
	e, ok := d.ended[id]
	switch {
	case !ok:
		return no(events.RejectUnknownQuestion)
	case e.Result == events.ResultAnswered:
		return &events.Refused{Code: events.RejectAlreadyAnswered, Who: e.Who, Answer: e.Answer, When: e.At}
	}
	return &events.Refused{Code: events.RejectWithdrawn, EndReason: e.Reason, When: e.At}
}

func (d *desk) Claim(_ context.Context, f engine.Frontend, p engine.Place, c events.ClaimCommand) events.ClaimReply {
	if d.hooks.claim != nil {
		d.hooks.claim(c.Question)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	q, ok := d.open[c.Question]
	switch {
	case !ok:
		return events.ClaimReply{Refused: d.over(c.Question)}
	case q.ClaimedBy == nil:
		d.seq++
		by := events.Claim{Frontend: f.ID, Kind: d.attached[f.ID].Kind, Name: d.attached[f.ID].Name, Principal: f.Principal, Claim: d.seq}
		q.ClaimedBy, q.Seq = &by, d.seq
		d.publish(p, events.Live{Claimed: &events.LiveClaim{Question: q.ID, By: by}})
	case q.ClaimedBy.Frontend != f.ID:
		return events.ClaimReply{Refused: &events.Refused{Code: events.RejectNotClaimer, Who: q.ClaimedBy.Principal}}
	}
	return events.ClaimReply{Claim: q.ClaimedBy.Claim, LeaseMS: 30000}
}

func (d *desk) Release(_ context.Context, f engine.Frontend, p engine.Place, c events.ReleaseCommand) events.Ack {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, ok := d.open[c.Question]
	if !ok {
		return events.Ack{Refused: d.over(c.Question)}
	}
	if q.ClaimedBy == nil || q.ClaimedBy.Claim != c.Claim || q.ClaimedBy.Frontend != f.ID {
		return events.Ack{}
	}
	d.seq++
	q.ClaimedBy, q.Seq = nil, d.seq
	d.publish(p, events.Live{Released: q.ID})
	return events.Ack{Seq: d.seq}
}

func (d *desk) Respond(_ context.Context, f engine.Frontend, _ engine.Place, c events.Respond) events.Ack {
	d.mu.Lock()
	q, ok := d.open[c.Question]
	var r events.Ack
	switch {
	case !ok && d.answered[c.Question] == f.ID:
		r.Seq = d.seq
	case !ok:
		r.Refused = d.over(c.Question)
	case !c.Human:
		r.Refused = no(events.RejectNotAllowed)
	case q.ClaimedBy != nil && q.ClaimedBy.Frontend != f.ID:
		r.Refused = no(events.RejectNotClaimer)
	default:
		d.answered[c.Question] = f.ID
		d.answers++
		d.end(events.End{
			Question: c.Question, Result: events.ResultAnswered, Reason: events.EndContinue, Who: f.Principal,
			Kind: d.attached[f.ID].Kind, Answer: c.Answer, At: events.At(time.Now()),
		})
		r.Seq = d.seq
	}
	d.mu.Unlock()
	if d.hooks.respond != nil {
		d.hooks.respond(c.Question)
	}
	return r
}

// rig is a door on the real embedded server, with the fake desk behind it. It
// lives inside a bubble.
type rig struct {
	t      *testing.T
	ctx    context.Context
	desk   *desk
	door   *frontdesk.Door
	server *natsd.Server
	core   *nats.Conn
	stop   func() // ends the core; the server lives on
	next   int
}

// bubble runs a test inside a bubble; everything has ended when it returns.
func bubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := natsd.Start(natsd.Options{Memory: true})
		must(t, err)
		defer server.Close()
		r := newCore(t, server, "first", 1)
		defer r.stop()
		r.session(main, "")
		synctest.Wait()
		test(t, r)
	})
}

// newCore starts a door of its own on the server.
func newCore(t *testing.T, server *natsd.Server, name string, epoch int) *rig {
	t.Helper()
	core, err := server.Doors()
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &rig{t: t, ctx: ctx, desk: newDesk(epoch), server: server, core: core, next: 5000}
	r.door = frontdesk.New(frontdesk.Options{
		Desk: r.desk, Conn: core, Core: events.CoreToken(name), Epoch: r.desk.epoch,
		Principal: func(name string) (string, bool) { p, ok := server.Principal(name); return p.String(), ok },
	})
	r.desk.door = r.door
	var run sync.WaitGroup
	run.Go(func() { must(t, r.door.Run(ctx)) })
	r.stop = func() {
		cancel()
		run.Wait()
		core.Close()
	}
	return r
}

func (r *rig) session(p engine.Place, parent events.Token) {
	r.t.Helper()
	h := events.SessionHead{Project: p.Project, Session: p.Session, Agent: "claude", ProjectPath: "/p", Parent: parent}
	r.desk.mu.Lock()
	r.desk.sessions[p] = &h
	r.desk.mu.Unlock()
	must(r.t, r.door.Open(r.ctx, h))
}

// screen is a frontend, and what its updates said.
type screen struct {
	*frontends.Client
	id   events.ID
	wire *wire
	stop func()

	mu    sync.Mutex
	asked map[events.ID]int
	kinds []frontends.Kind
}

func (s *screen) count(id events.ID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[id]
}

func (s *screen) saw(k frontends.Kind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.kinds, k)
}

// wire dials through net.Pipe, and can be cut.
type wire struct {
	r   *rig
	uid int
	// wrap, if set, stands between the client and the server.
	wrap func(net.Conn) net.Conn

	mu   sync.Mutex
	conn net.Conn
	down bool
}

func (w *wire) dial(context.Context) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, io.ErrClosedPipe
	}
	near, far := net.Pipe()
	go func() { _ = w.r.server.Bridge(w.r.ctx, far, natsd.Peer{UID: w.uid, PID: w.uid}) }()
	if w.wrap != nil {
		near = w.wrap(near)
	}
	w.conn = near
	return near, nil
}

func (w *wire) cut(stayDown bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = stayDown
	_ = w.conn.Close()
}

func (w *wire) up() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}

func (r *rig) screen(uid int, set ...func(*frontends.Options)) *screen {
	r.t.Helper()
	r.next++
	s := &screen{id: newID(r.next), wire: &wire{r: r, uid: uid}, asked: map[events.ID]int{}}
	o := frontends.Options{
		Dial: s.wire.dial, ID: s.id, Kind: events.FrontendTUI, Capable: true, Name: fmt.Sprintf("screen of %d", uid),
	}
	for _, f := range set {
		f(&o)
	}
	var err error
	s.Client, err = frontends.New(o)
	must(r.t, err)
	ctx, cancel := context.WithCancel(r.ctx)
	var tasks sync.WaitGroup
	ready := make(chan struct{})
	tasks.Go(func() {
		first := sync.OnceFunc(func() { close(ready) })
		for u, err := range s.Updates(context.Background()) {
			if err != nil {
				return
			}
			first()
			s.mu.Lock()
			s.kinds = append(s.kinds, u.Kind)
			if u.Kind == frontends.KindAsked {
				s.asked[u.Question]++
			}
			s.mu.Unlock()
		}
	})
	<-ready // so that no update passes by unheard
	tasks.Go(func() { must(r.t, s.Run(ctx)) })
	s.stop = func() { cancel(); tasks.Wait() }
	return s
}

// settle lets the bubble come to rest after d, which is enough for gathering
// and for reconnecting.
func settle(d time.Duration) {
	<-time.After(d) // the bubble's clock: no time passes outside
	synctest.Wait()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
