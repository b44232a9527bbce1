package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

// office is a desk that remembers what it was told. It outlives cores, as a log
// does.
type office struct {
	mu     sync.Mutex
	told   []string
	ops    map[events.ID]*paper
	order  []events.ID
	decide func(core.Proposal) *core.Verdict // nil = nothing is decided yet
	heard  core.Heard
	before func(what string) error // called without the lock
	signal []core.Observation
	down   bool // the core stops
}

// paper is what the office has of an operation.
type paper struct {
	p         core.Proposal
	askers    int
	verdict   *core.Verdict
	waits     []*func(core.Verdict, error)
	delivered bool
	finished  *core.Finished
}

func newOffice() *office { return &office{ops: map[events.ID]*paper{}} }

func (o *office) begin(what string) error {
	o.mu.Lock()
	before := o.before
	o.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(what)
}

// say is called with the lock held.
func (o *office) say(format string, a ...any) { o.told = append(o.told, fmt.Sprintf(format, a...)) }

func (o *office) heardSoFar() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.told)
}

func (o *office) first() *paper {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.order) == 0 {
		return nil
	}
	p := *o.ops[o.order[0]]
	return &p
}

func (o *office) find(op events.ID, secret string) (*paper, error) {
	f := o.ops[op]
	switch {
	case f == nil:
		return nil, &events.Refused{Code: events.RejectUnknownOperation}
	case f.p.Secret != secret:
		return nil, &events.Refused{Code: events.RejectNotYours}
	}
	return f, nil
}

func (o *office) Propose(_ context.Context, p core.Proposal) error {
	if err := o.begin("propose"); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		return errStopping
	}
	if o.ops[p.Operation] != nil {
		f, err := o.find(p.Operation, p.Secret)
		if err == nil {
			f.askers++
			o.say("joined")
		}
		return err
	}
	f := &paper{p: p, askers: 1}
	o.ops[p.Operation], o.order = f, append(o.order, p.Operation)
	o.say("proposed")
	if o.decide != nil {
		f.verdict = o.decide(p)
	}
	return nil
}

func (o *office) Notify(op events.ID, secret string, tell func(core.Verdict, error)) func() bool {
	if err := o.begin("notify"); err != nil {
		tell(core.Verdict{}, err)
		return func() bool { return false }
	}
	o.mu.Lock()
	f, err := o.find(op, secret)
	if o.down {
		err = errStopping
	}
	if err == nil && f.verdict == nil {
		w := &tell
		f.waits = append(f.waits, w)
		o.mu.Unlock()
		return func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			i := slices.Index(f.waits, w)
			if i < 0 {
				return false
			}
			f.waits = slices.Delete(f.waits, i, i+1)
			return true
		}
	}
	var v core.Verdict
	if err == nil {
		v = *f.verdict
	}
	if err == nil && f.delivered {
		v = core.Verdict{Operation: op, Code: events.CodeEnded, Message: "The right has been handed out before."}
	}
	o.mu.Unlock()
	tell(v, err)
	return func() bool { return false }
}

// rule decides every operation that waits.
func (o *office) rule(v func(core.Proposal) *core.Verdict) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, op := range o.order {
		if f := o.ops[op]; f.verdict == nil {
			o.end(f, v(f.p))
		}
	}
}

// end is called with the lock held.
func (o *office) end(f *paper, v *core.Verdict) {
	f.verdict = v
	for _, w := range f.waits {
		(*w)(*v, nil)
	}
	f.waits = nil
}

// stop is the end of a core: whoever waits is told so.
func (o *office) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = true
	for _, f := range o.ops {
		for _, w := range f.waits {
			(*w)(core.Verdict{}, errStopping)
		}
		f.waits = nil
		f.askers = 0
	}
}

func (o *office) Gone(op events.ID, secret string, reason events.EndReason) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.find(op, secret)
	if err != nil {
		return
	}
	if f.askers--; f.askers == 0 && !f.delivered && (f.verdict == nil || f.verdict.Allow) {
		o.say("gone %s", reason)
		o.end(f, &core.Verdict{Kind: f.p.Kind, Code: events.CodeEnded, EndReason: reason, Message: "It ended."})
	}
}

func (o *office) Withdraw(_ context.Context, op events.ID, secret string, reason events.EndReason) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.find(op, secret)
	if err == nil {
		o.say("withdrawn %s", reason)
		o.end(f, &core.Verdict{Kind: f.p.Kind, Code: events.CodeEnded, EndReason: reason, Message: "It ended."})
	}
	return err
}

func (o *office) Receipt(ctx context.Context, op events.ID, secret string, by events.ID) error {
	o.mu.Lock()
	f, err := o.find(op, secret)
	o.mu.Unlock()
	if err != nil || f.verdict == nil {
		return errors.Join(err, &events.Refused{Code: events.RejectNotAllowed})
	}
	return o.Commit(ctx, op, secret, f.verdict.Version.Digest, by)
}

func (o *office) Commit(_ context.Context, op events.ID, secret string, digest events.Digest, _ events.ID) error {
	if err := o.begin("commit"); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.find(op, secret)
	switch {
	case err != nil:
		return err
	case f.verdict == nil || !f.verdict.Allow || f.delivered:
		return &events.Refused{Code: events.RejectWithdrawn, EndReason: events.EndInterrupted}
	case f.verdict.Version.Digest != digest:
		o.say("another digest")
		return &events.Refused{Code: events.RejectStaleVersion, Hint: "it changed"}
	}
	f.delivered = true
	o.say("committed")
	return nil
}

func (o *office) Finish(_ context.Context, c core.Finished) (core.Heard, error) {
	if err := o.begin("finish"); err != nil {
		return core.Heard{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.find(c.Operation, c.Secret)
	if err == nil {
		f.finished = &c
		o.say("finished %s", c.Outcome)
	}
	return o.heard, err
}

func (o *office) OpenSession(_ context.Context, s core.SessionOpening) (events.SessionHead, bool, error) {
	if err := o.begin("open"); err != nil {
		return events.SessionHead{}, false, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return events.SessionHead{Project: events.ProjectToken(s.Cwd), Session: events.SessionToken("core", s.Agent, s.Native)}, s.Native == "old", nil
}

func (o *office) Observe(_ context.Context, w core.Observation) (core.Heard, error) {
	if err := o.begin("observe"); err != nil {
		return core.Heard{}, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.say("observed %s", w.Signal)
	o.signal = append(o.signal, w)
	return core.Heard{}, nil
}

func (o *office) Check(context.Context, core.Proposal) core.Forecast {
	if err := o.begin("check"); err != nil {
		panic(err)
	}
	return core.Forecast{Would: "ask", Available: true, Hooks: []events.Hook{{ID: "h", Scope: events.ScopeGlobal, File: "f", Line: 3}}}
}

// yes lets an operation run as it is.
func yes(p core.Proposal) *core.Verdict { return with(string(p.Args))(p) }

// with lets an operation run with other arguments.
func with(args string) func(core.Proposal) *core.Verdict {
	return func(p core.Proposal) *core.Verdict {
		canonical, err := core.Canonical([]byte(args))
		if err != nil {
			panic(err)
		}
		return &core.Verdict{
			Operation: p.Operation, Kind: p.Kind, Allow: true, Code: events.CodeChecked, Args: canonical, Changed: args != string(p.Args),
			Version: events.Version{Digest: events.DigestOf(canonical), Bytes: len(canonical)},
		}
	}
}

func declined(p core.Proposal) *core.Verdict {
	v := &core.Verdict{Operation: p.Operation, Kind: p.Kind, Code: events.CodeDeclined, Message: "The user said no."}
	if p.Kind != events.KindToolCall {
		v.Args = p.Args
	}
	return v
}

// place is a core with the agents' door, on the real server, in a bubble.
type place struct {
	t       *testing.T
	office  *office
	ctx     context.Context
	options natsd.Options
	// open makes the desk of a core; nil = the office.
	open func(*natsd.Server) (d agents.Desk, stop func())

	mu     sync.Mutex
	server *natsd.Server
	conns  []net.Conn
	nth    int
	stop   func()
}

var coreToken = events.CoreToken("office")

// inPlace runs f in a bubble with a core.
func inPlace(t *testing.T, f func(p *place)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &place{t: t, office: newOffice(), ctx: ctx, options: natsd.Options{Memory: true}}
		p.start()
		defer func() { cancel(); p.kill() }()
		f(p)
	})
}

func (p *place) start() {
	p.t.Helper()
	server, err := natsd.Start(p.options)
	must(p.t, err)
	var desk agents.Desk = p.office
	stopDesk := p.office.stop
	if p.open != nil {
		desk, stopDesk = p.open(server)
	}
	nc, err := server.Doors()
	must(p.t, err)
	p.mu.Lock()
	p.nth++
	p.server = server
	p.mu.Unlock()
	p.office.mu.Lock()
	p.office.down = false
	p.office.mu.Unlock()
	door := agents.NewDoor(agents.DoorOptions{
		Desk: desk, Conn: nc, Core: coreToken, Epoch: events.NewID(time.UnixMilli(int64(p.nth)), [10]byte{}), Stopping: errStopping,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- door.Run(ctx) }()
	p.stop = func() {
		stopDesk()
		cancel()
		if err := <-done; err != nil {
			p.t.Errorf("Run: %v", err)
		}
		nc.Close()
		p.mu.Lock()
		p.server = nil
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.conns = nil
		p.mu.Unlock()
		server.Close()
	}
	synctest.Wait()
}

// kill ends the core; nothing that waits ends with it.
func (p *place) kill() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// cut ends every connection.
func (p *place) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *place) dial(context.Context) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return nil, io.ErrClosedPipe
	}
	near, far := net.Pipe()
	server := p.server
	go func() { _ = server.Bridge(p.ctx, far, natsd.Peer{UID: 1, PID: 1}) }()
	p.conns = append(p.conns, near)
	return near, nil
}

// client is the Go client, at this core.
func (p *place) client() *agents.Client {
	p.t.Helper()
	c, err := agents.Dial(p.ctx, agents.DialOptions{Dial: p.dial})
	must(p.t, err)
	return c
}

func (p *place) session() *agents.Session {
	p.t.Helper()
	s, err := p.client().Open(p.ctx, agents.SessionOptions{Native: "s1", Cwd: "/w"})
	must(p.t, err)
	return s
}

func (p *place) told(want ...string) {
	p.t.Helper()
	synctest.Wait()
	if got := p.office.heardSoFar(); !slices.Equal(got, want) {
		p.t.Errorf("the office heard %q, want %q", got, want)
	}
}

// wire is an agent that speaks NATS itself.
type wire struct {
	p    *place
	nc   *nats.Conn
	id   events.ID
	open events.SessionOpenReply
}

type netDial struct{ p *place }

func (d netDial) Dial(string, string) (net.Conn, error) { return d.p.dial(d.p.ctx) }

func (p *place) wire(n byte) *wire {
	p.t.Helper()
	w := &wire{p: p, id: events.NewID(time.UnixMilli(1), [10]byte{9: n})}
	var err error
	w.nc, err = nats.Connect("nats://127.0.0.1", nats.SetCustomDialer(netDial{p}), nats.NoReconnect(),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
		nats.Name("op."+string(w.id)), nats.CustomInboxPrefix(events.InboxPrefix(w.id)))
	must(p.t, err)
	p.t.Cleanup(w.nc.Close)
	return w
}

// raw sends one command and gives the reply's bytes.
func (w *wire) raw(subject string, data []byte) string {
	w.p.t.Helper()
	ctx, cancel := context.WithTimeout(w.p.ctx, time.Minute)
	defer cancel()
	m, err := w.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data})
	if err != nil {
		return err.Error()
	}
	return string(m.Data)
}

// say sends a command in JSON about the open session.
func (w *wire) say(verb, command string) string {
	w.p.t.Helper()
	return w.raw(events.AgentSubject(w.open.Project, w.open.Session, w.id, verb), []byte(command))
}

func (w *wire) begin(native string) *wire {
	w.p.t.Helper()
	reply := w.raw(events.AgentLobbySubject(string(coreToken), w.id, events.VerbSessionOpen),
		[]byte(`{"agent":"generic","native":"`+native+`","cwd":"/w","pane":"zellij:5:calm"}`))
	if err := json.Unmarshal([]byte(reply), &w.open); err != nil || w.open.Session == "" || w.open.LeaseMS != 60000 {
		w.p.t.Fatalf("session_open: %s, %v", reply, err)
	}
	return w
}

// expect checks that a reply says a word.
func (p *place) expect(reply, word string) {
	p.t.Helper()
	if !strings.Contains(reply, word) {
		p.t.Errorf("the reply is %s, want one that says %s", reply, word)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
