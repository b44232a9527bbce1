package integration_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/frontdesk"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// stand is a core's engine and its frontends' door on the real embedded server, in a
// bubble: frontends of several people, and time that passes at once.
type stand struct {
	t     *testing.T
	ctx   context.Context
	nats  *natsd.Server
	eng   *engine.Engine
	deaf  atomic.Bool // what the feed says is lost
	calls int
}

const standRules = `version: 1
hooks:
  - id: asks
    event: before_tool_call
    execution: {mode: blocking}
    run: {type: command, argv: [asks]}
`

// onStand runs a test inside a bubble.
func onStand(t *testing.T, name string, test func(s *stand)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &stand{t: t, ctx: t.Context()}
			defer s.open(t.TempDir())()
			test(s)
		})
	})
}

func (s *stand) want(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// open starts everything, and returns what ends it.
func (s *stand) open(dir string) (stop func()) {
	s.want(os.WriteFile(filepath.Join(dir, "hooks.yaml"), []byte(standRules), 0o600))
	var err error
	s.nats, err = natsd.Start(natsd.Options{StateDir: dir + "/state", RuntimeDir: dir + "/run", MaxStore: 1 << 30})
	s.want(err)
	inner, err := s.nats.Core()
	s.want(err)
	doors, err := s.nats.Doors()
	s.want(err)
	own, epoch := events.CoreToken("stand"), freshID()
	log, err := journal.Open(s.ctx, inner, journal.Options{Core: own, Replicas: 1, MaxBytes: 1 << 30, Now: time.Now, NewID: freshID})
	s.want(err)
	var door *frontdesk.Door
	s.eng = engine.New(engine.Options{
		Log: log, Core: own, Epoch: epoch, Alone: true, Owner: "uid:1",
		Rules: hooks.NewStore(hooks.StoreOptions{GlobalDir: dir}),
		Run: func(context.Context, hooks.Hook, hooks.Input) hooks.Result {
			return hooks.Result{Effect: events.EffectAsk, Outcome: events.RunOK, Reason: "May it?", Stderr: "looked"}
		},
		OnSession: func(h events.SessionHead) { s.want(door.Open(s.ctx, h)) },
		OnLeave:   func(h events.SessionHead) { door.Close(h) },
		Feed: func(p engine.Place, feed string, seq uint64, l events.Live) {
			if !s.deaf.Load() {
				door.Publish(p, feed, seq, l)
			}
		},
	})
	door = frontdesk.New(frontdesk.Options{
		Desk: s.eng, Conn: doors, Core: own, Epoch: epoch,
		Principal: func(name string) (string, bool) { p, ok := s.nats.Principal(name); return p.String(), ok },
	})
	s.want(s.eng.Recover(s.ctx))
	run, cancel := context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(func() { _ = s.eng.Run(run) }) // that run has ended is why
	both.Go(func() { s.want(door.Run(run)) })
	return func() {
		cancel()
		both.Wait()
		inner.Close()
		doors.Close()
		s.nats.Close()
	}
}

// glass is a frontend of one person.
type glass struct {
	*frontends.Client
	s    *stand
	id   events.ID
	conn net.Conn
	stop func()
}

func (s *stand) glass(uid int) *glass {
	s.t.Helper()
	g := &glass{s: s, id: freshID()}
	ctx, cancel := context.WithCancel(s.ctx)
	dead := false
	var err error
	g.Client, err = frontends.New(frontends.Options{
		ID: g.id, Kind: events.FrontendTUI, Capable: true, Name: "glass",
		Dial: func(context.Context) (net.Conn, error) {
			if dead {
				return nil, net.ErrClosed
			}
			near, far := net.Pipe()
			go func() { _ = s.nats.Bridge(s.ctx, far, natsd.Peer{UID: uid, PID: uid}) }()
			g.conn, dead = near, true // it is not dialled again
			return near, nil
		},
	})
	s.want(err)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = g.Run(ctx) }()
	g.stop = func() { cancel(); <-ended }
	s.pass(200 * time.Millisecond)
	if !g.Inbox().Complete() {
		s.t.Fatal("a frontend has no complete list")
	}
	return g
}

func (s *stand) pass(d time.Duration) { <-time.After(d); synctest.Wait() }

// ask makes a call; what its agent hears goes to the channel.
func (s *stand) ask() (events.ID, <-chan core.Verdict) {
	s.t.Helper()
	s.calls++
	p := core.Proposal{
		Operation: freshID(), Secret: "a secret of the asker", Agent: "generic", Native: "s1", Cwd: "/", Path: "main", Kind: events.KindToolCall,
		Tool: events.Tool{Name: "write", Kind: "filesystem.write"}, Args: []byte(`{"n":1}`),
	}
	s.want(s.eng.Propose(s.ctx, p))
	heard := make(chan core.Verdict, 1)
	go func() {
		v, err := s.eng.Await(s.ctx, p.Operation, p.Secret)
		if err == nil {
			heard <- v
		}
	}()
	s.pass(10 * time.Millisecond)
	return p.Operation, heard
}

// only is the one open question of a frontend.
func (g *glass) only() events.Question {
	g.s.t.Helper()
	list := g.Inbox().Questions()
	if len(list) != 1 {
		g.s.t.Fatalf("%d open questions, want one", len(list))
	}
	return list[0]
}

func refusal(err error) events.Refused {
	if no, ok := errors.AsType[*events.Refused](err); ok {
		return *no
	}
	return events.Refused{}
}

func TestScreens(t *testing.T) {
	onStand(t, "F13 a person's second screen takes the claim over, and the first cannot answer with its own any more", func(s *stand) {
		one, two := s.glass(1), s.glass(1)
		_, heard := s.ask()
		q := one.only()
		first, err := one.Claim(s.ctx, q.ID)
		s.want(err)
		second, err := two.Claim(s.ctx, q.ID)
		s.want(err)
		synctest.Wait()
		if by := one.only().ClaimedBy; by == nil || by.Frontend != two.id || by.Claim != second {
			t.Errorf("the first screen sees the claim of %+v", by)
		}
		r := reply(q, events.AnswerContinue)
		r.Claim = first
		if _, err := one.Answer(s.ctx, r); refusal(err).Code != events.RejectNotClaimer || refusal(err).Who != "uid:1" {
			t.Errorf("the first screen's answer: %v", err)
		}
		r.Claim = second
		_, err = two.Answer(s.ctx, r)
		s.want(err)
		if v := <-heard; !v.Allow {
			t.Errorf("the agent heard %+v", v)
		}
		one.stop()
		two.stop()
	})
	onStand(t, "F1 F2 one that claims and goes silent keeps the others waiting no longer than its lease", func(s *stand) {
		silent, other := s.glass(1), s.glass(2)
		_, heard := s.ask()
		q := other.only()
		_, err := silent.Claim(s.ctx, q.ID)
		s.want(err)
		silent.s.want(silent.conn.Close()) // no goodbye, and no other connection
		if _, err := other.Claim(s.ctx, q.ID); refusal(err).Code != events.RejectNotClaimer || refusal(err).Who != "uid:1" {
			t.Errorf("a claim of what somebody has: %v", err)
		}
		s.pass(31 * time.Second)
		if by := other.only().ClaimedBy; by != nil {
			t.Errorf("it is still held by %+v", by)
		}
		_, err = other.Answer(s.ctx, reply(q, events.AnswerCancel))
		s.want(err)
		if v := <-heard; v.Allow || v.Code != events.CodeDeclined {
			t.Errorf("the agent heard %+v", v)
		}
		silent.stop()
		other.stop()
	})
	for reason, signal := range map[events.EndReason]core.Signal{
		events.EndInterrupted: core.Signal(events.UserInterrupt), events.EndTurnEnded: core.Signal(events.AfterTurn),
		events.EndBuildChanged: core.SignalBuildChanged, events.EndSessionClosed: core.Signal(events.SessionEnd),
	} {
		onStand(t, "B77 B80 HAND-07 every frontend drops a question that is over, and a late yes hears why: "+string(reason), func(s *stand) {
			all := []*glass{s.glass(1), s.glass(2), s.glass(3)}
			_, heard := s.ask()
			q := all[0].only()
			_, err := s.eng.Observe(s.ctx, core.Observation{Signal: signal, Agent: "generic", Native: "s1", Cwd: "/"})
			s.want(err)
			s.pass(400 * time.Millisecond)
			for i, g := range all {
				if end, over := g.Inbox().Ended(q.ID); len(g.Inbox().Questions()) > 0 || !over || end.Reason != reason {
					t.Errorf("frontend %d: over %v, %+v", i, over, end)
				}
				if _, err := g.Answer(s.ctx, reply(q, events.AnswerContinue)); refusal(err).Code != events.RejectWithdrawn || refusal(err).EndReason != reason {
					t.Errorf("frontend %d: a late yes: %v", i, err)
				}
				g.stop()
			}
			if v := <-heard; v.Allow || v.Code != events.CodeEnded {
				t.Errorf("the agent heard %+v", v)
			}
		})
	}
	onStand(t, "F2 a feed message that was lost is found at the next renewal", func(s *stand) {
		g := s.glass(1)
		op, heard := s.ask()
		_, err := g.Answer(s.ctx, reply(g.only(), events.AnswerContinue))
		s.want(err)
		<-heard
		s.pass(time.Second)
		s.deaf.Store(true)
		lost, heard := s.ask()
		if len(g.Inbox().Questions()) != 0 {
			t.Fatal("it was not lost")
		}
		s.deaf.Store(false)
		s.pass(6 * time.Second)
		q := g.only()
		if q.Operation != lost || lost == op {
			t.Errorf("question %+v", q)
		}
		_, err = g.Answer(s.ctx, reply(q, events.AnswerContinue))
		s.want(err)
		<-heard
		g.stop()
	})
	onStand(t, "B4 F4 F9 what a lying frontend says changes nothing", func(s *stand) {
		g, liar := s.glass(1), s.glass(2)
		_, heard := s.ask()
		q := g.only()
		token, err := g.Claim(s.ctx, q.ID)
		s.want(err)
		good := reply(q, events.AnswerContinue)
		for name, c := range map[string]struct {
			change func(*events.Respond)
			code   events.Reject
		}{
			"somebody else's claim":  {func(r *events.Respond) { r.Claim = token }, events.RejectNotClaimer},
			"no claim":               {func(*events.Respond) {}, events.RejectNotClaimer},
			"a made-up claim":        {func(r *events.Respond) { r.Claim = 1 << 50 }, events.RejectNotClaimer},
			"a made-up question":     {func(r *events.Respond) { r.Question = freshID() }, events.RejectUnknownQuestion},
			"an answer of its own":   {func(r *events.Respond) { r.Answer = "always" }, events.RejectMalformed},
			"somebody else's digest": {func(r *events.Respond) { r.Digest = events.DigestOf([]byte(`{"n":2}`)) }, events.RejectNotClaimer},
		} {
			r := good
			c.change(&r)
			if _, err := liar.Answer(s.ctx, r); refusal(err).Code != c.code {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
		}
		s.want(g.Release(s.ctx, q.ID, token))
		stale, nobody := good, good
		stale.Digest, nobody.Human = events.DigestOf([]byte(`{"n":2}`)), false
		if _, err := liar.Answer(s.ctx, stale); refusal(err).Code != events.RejectStaleVersion {
			t.Errorf("a forged digest: %v", err)
		}
		if _, err := liar.Answer(s.ctx, nobody); refusal(err).Code != events.RejectNotAllowed {
			t.Errorf("no person: %v", err)
		}
		if len(heard) != 0 {
			t.Fatal("the call has ended")
		}
		_, err = g.Answer(s.ctx, good)
		s.want(err)
		<-heard
		g.stop()
		liar.stop()
	})
	onStand(t, "B3 a frontend that sends thousands of commands holds up nobody, and locks no question", func(s *stand) {
		g, flood := s.glass(1), s.glass(2)
		_, heard := s.ask()
		q := g.only()
		for range 3000 {
			go func() {
				if token, err := flood.Claim(s.ctx, q.ID); err == nil {
					_ = flood.Release(s.ctx, q.ID, token)
				}
			}()
		}
		began := time.Now()
		s.pass(time.Second)
		token, err := g.Claim(s.ctx, q.ID)
		s.want(err)
		r := reply(q, events.AnswerContinue)
		r.Claim = token
		_, err = g.Answer(s.ctx, r)
		s.want(err)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if v := <-heard; !v.Allow {
			t.Errorf("the agent heard %+v", v)
		}
		synctest.Wait()
		g.stop()
		flood.stop()
	})
	onStand(t, "B22 several answers at once: each counts for itself", func(s *stand) {
		one, two := s.glass(1), s.glass(2)
		var all []events.Respond
		for range 4 {
			s.ask()
		}
		open := one.Inbox().Questions()
		if groups := frontends.Groups(open); len(groups) != 1 || len(groups[0]) != 4 {
			t.Errorf("%d groups", len(groups))
		}
		for _, q := range open {
			all = append(all, reply(q, events.AnswerContinue))
		}
		_, err := two.Answer(s.ctx, reply(open[2], events.AnswerCancel))
		s.want(err)
		for i, r := range one.AnswerAll(s.ctx, all) {
			switch no := refusal(r.Err); {
			case r.Question != open[i].ID:
				t.Errorf("result %d is about %s", i, r.Question)
			case i == 2 && (no.Code != events.RejectAlreadyAnswered || no.Who != "uid:2" || no.Answer != events.AnswerCancel):
				t.Errorf("the one that was answered: %+v", r)
			case i != 2 && (r.Err != nil || r.Ack.Seq == 0):
				t.Errorf("result %d: %+v", i, r)
			}
		}
		one.stop()
		two.stop()
	})
	onStand(t, "F11 a late frontend knows what was before, and one of all may ring", func(s *stand) {
		one := s.glass(1)
		op, heard := s.ask()
		_, err := one.Answer(s.ctx, reply(one.only(), events.AnswerCancel))
		s.want(err)
		<-heard
		s.ask()
		two := s.glass(2)
		lines, runs := two.Inbox().Lines(), two.Inbox().Runs()
		if len(lines) != 1 || lines[0].Operation != op || lines[0].State != events.LineRefused || lines[0].Who != "uid:1" {
			t.Errorf("lines %+v", lines)
		}
		if len(runs) != 2 || runs[0].Operation != op || runs[0].State != events.RunEnded || runs[1].State != events.RunAsking {
			t.Fatalf("runs %+v", runs)
		}
		said, err := two.Output(s.ctx, runs[0])
		s.want(err)
		if said.Reason != "May it?" {
			t.Errorf("it said %+v", said)
		}
		for _, g := range []*glass{two, one} {
			mine, err := g.Ring(s.ctx, two.only().ID)
			s.want(err)
			if mine != (g == two) {
				t.Errorf("the first that asks: %v, may ring: %v", g == two, mine)
			}
		}
		one.stop()
		two.stop()
	})
}
