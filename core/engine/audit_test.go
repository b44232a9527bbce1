package engine_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// TestAnyLifeOfSessions lets sessions live through random days with deaths of the
// core at random places, and then audits the log by rules of its own.
func TestAnyLifeOfSessions(t *testing.T) {
	for seed := range 12 {
		bubble(t, fmt.Sprintf("B71 B72 B73 B74 B75 B76 F12 story %d", seed), func(t *testing.T) {
			r, _ := newAsking(t)
			d := &day{rig: r, log: moodily(r), random: rand.New(rand.NewPCG(uint64(seed), 7))}
			d.morning()
			for range 60 {
				d.step()
				synctest.Wait()
			}
			d.log.fault.Store(nil)
			r.restart()
			synctest.Wait()
			audit(t, r.messages())
		})
	}
}

// day is what happens to a rig.
type day struct {
	*rig
	log    *moody
	random *rand.Rand
	s      *screen
	calls  []*call
}

func (d *day) pick(words ...string) string { return words[d.random.IntN(len(words))] }

// morning is a new core's first: its screen attaches, its askers come back.
func (d *day) morning() {
	d.s = d.attach("uid:1")
	for i, c := range d.calls {
		_ = d.eng.Propose(d.t.Context(), c.p)
		d.calls[i] = d.wait(c.p)
	}
	d.s.receiveAll()
}

// wait is send for a call that may be over.
func (d *day) wait(p core.Proposal) *call {
	c := &call{r: d.rig, p: p, result: make(chan outcome, 1)}
	eng := d.eng
	go func() {
		v, err := eng.Await(d.t.Context(), p.Operation, p.Secret)
		if err == nil {
			_ = eng.Receipt(d.t.Context(), p.Operation, p.Secret, "")
			eng.Gone(p.Operation, p.Secret, events.EndAgentGone)
		}
		c.result <- outcome{v, err}
	}()
	return c
}

func (d *day) step() {
	defer d.eng.Renew(d.s.f, events.DoorAll, events.Renew{Input: true})
	switch n := d.random.IntN(20); {
	case n < 8:
		d.propose()
	case n < 11:
		if all := d.s.receiveAll(); len(all) > 0 {
			d.s.answer(all[d.random.IntN(len(all))], events.AnswerContinue)
		}
	case n < 18:
		d.signal()
	case n < 19:
		pass(2 * time.Second)
	default:
		d.log.fault.Store(nil)
		d.restart()
		d.morning()
	}
}

func (d *day) propose() {
	p := d.callFrom("root", "", d.pick("main", "main > sub#1", "main > sub#1 > node#2"))
	switch d.random.IntN(4) {
	case 0:
		p = d.callFrom("sub", "root", "main > sub#2")
	case 1:
		p = d.inputIn(events.Kind(d.pick("user_prompt", "injection", "retry_note")), "")
		p.Native = "root"
	}
	p.Turn = d.pick("", "", "t1", "t2", "t3")
	if d.eng.Propose(d.t.Context(), p) == nil {
		d.calls = append(d.calls, d.wait(p))
	}
	synctest.Wait()
	d.s.receiveAll()
}

func (d *day) signal() {
	o := core.Observation{
		Signal: core.Signal(d.pick(
			"before_turn", "before_turn", "after_turn", "after_turn", "user_interrupt", "build_changed", "sub_agent_end", "session_end",
		)),
		Agent: "generic", Native: d.pick("root", "root", "sub"), Cwd: d.dir, Turn: d.pick("", "t1", "t2", "t3"),
		Path: d.pick("main > sub#1", "main > sub#1 > node#2", "main"),
	}
	if dies := d.random.IntN(3) == 0; dies {
		d.log.dies(events.Type(d.pick("TurnEnded", "Interrupted", "BuildChanged", "SessionClosed")))
	}
	_, _ = d.eng.Observe(d.t.Context(), o)
	synctest.Wait()
	if d.log.fault.Swap(nil) != nil {
		d.restart()
		d.morning()
	}
}

// life is what the log should say of one operation.
type life struct {
	session    events.Token
	kind       events.Kind
	path, turn string
	committed  bool
	delivered  bool
	ended      bool
	finished   bool
	must       events.EndReason // why it must end
	lost       bool             // its outcome must be known, if only as unknown
}

// ledger reads a log as an auditor would.
type ledger struct {
	t      *testing.T
	ops    map[events.ID]*life
	parent map[events.Token]events.Token
	closed map[events.Token]events.EndReason
	past   map[events.Token]map[string]events.EndReason
}

func audit(t *testing.T, log []events.Message) {
	t.Helper()
	l := &ledger{
		t: t, ops: map[events.ID]*life{}, parent: map[events.Token]events.Token{},
		closed: map[events.Token]events.EndReason{}, past: map[events.Token]map[string]events.EndReason{},
	}
	for _, m := range log {
		for _, ev := range m.Events {
			if m.Operation != "" {
				l.operation(m, ev)
			} else if m.Session != "" {
				l.session(m.Session, ev)
			}
		}
	}
	for id, op := range l.ops {
		if op.must != "" && !op.ended && !op.delivered {
			t.Errorf("%s (%s, turn %q, %q) is open and must have ended: %s", id, op.kind, op.turn, op.path, op.must)
		}
		if op.lost && !op.finished {
			t.Errorf("%s was let go, its turn or session is over, and nobody says what became of it", id)
		}
	}
}

func (l *ledger) operation(m events.Message, ev events.Event) {
	op := l.ops[m.Operation]
	switch ev := ev.(type) {
	case events.OperationProposed:
		op = &life{session: m.Session, kind: ev.Kind, path: ev.Path, turn: m.Turn}
		l.ops[m.Operation] = op
		if reason := l.past[m.Session][m.Turn]; m.Turn != "" && reason != "" {
			op.must = reason
			if reason == events.EndTurnEnded && ev.Kind == events.KindInjection {
				op.must = events.EndRunEnded
			}
		}
	case events.OperationCommitted:
		op.committed = true
	case events.OperationDelivered:
		op.delivered = op.committed && !op.ended
	case events.OperationRefused:
		op.ended = true
	case events.OperationFinished:
		op.ended, op.finished = true, true
	case events.OperationAborted:
		op.ended = true
		ofRun := ev.Reason == events.EndRunEnded && op.path != "main" && op.must == "" // no session's event says so
		if want := cmp.Or(op.must, events.EndAgentGone); ev.Reason != want && !ofRun {
			l.t.Errorf("%s (%s, turn %q, %q) ended with %s, want %s", m.Operation, op.kind, op.turn, op.path, ev.Reason, want)
		}
	}
}

func (l *ledger) session(s events.Token, ev events.Event) {
	switch ev := ev.(type) {
	case events.SessionOpened:
		if l.closed[s] != "" || l.past[s] == nil {
			l.past[s] = map[string]events.EndReason{}
		}
		l.parent[s], l.closed[s] = ev.Parent, ""
	case events.TurnStarted:
		delete(l.past[s], ev.Turn)
	case events.TurnEnded:
		l.end(s, ev.Turn, events.EndTurnEnded)
	case events.Interrupted:
		l.end(s, ev.Turn, events.EndInterrupted)
		l.below(s, events.EndInterrupted)
	case events.BuildChanged:
		for _, op := range l.ops {
			if op.session == s {
				l.must(op, events.EndBuildChanged)
			}
		}
	case events.SessionClosed:
		l.closed[s] = ev.Reason
		for _, op := range l.ops {
			if op.session == s {
				l.must(op, ev.Reason)
				op.lost = op.lost || op.delivered && op.kind == events.KindToolCall
			}
		}
		l.below(s, ev.Reason)
	}
}

// below ends all of the sessions that name s as their parent.
func (l *ledger) below(s events.Token, reason events.EndReason) {
	for _, op := range l.ops {
		if l.parent[op.session] == s && l.closed[op.session] == "" {
			l.must(op, reason)
			op.lost = op.lost || op.delivered && op.kind == events.KindToolCall
		}
	}
}

func (l *ledger) must(op *life, reason events.EndReason) {
	if op.must == "" && !op.ended && !op.delivered {
		op.must = reason
	}
}

// end ends a turn, "" for whatever runs.
func (l *ledger) end(s events.Token, turn string, why events.EndReason) {
	for _, op := range l.ops {
		same := turn == "" || op.turn == "" || op.turn == turn
		if op.session != s || !same {
			continue
		}
		if op.delivered && op.kind == events.KindToolCall {
			op.lost = true
		}
		switch {
		case why == events.EndInterrupted:
			l.must(op, why)
		case op.kind == events.KindUserPrompt && (op.turn == "" || op.turn != turn):
		case op.kind == events.KindInjection:
			l.must(op, events.EndRunEnded)
		default:
			l.must(op, why)
		}
	}
	if turn != "" && l.past[s][turn] == "" {
		l.past[s][turn] = why
	}
}

// TestStormOfSignals: calls, answers and signals of everybody at once. Each asker
// hears how it ended, and whatever a session's last end left is over.
func TestStormOfSignals(t *testing.T) {
	bubble(t, "B11 B22 B71 B74 nobody hangs, and nothing outlives the last end", func(t *testing.T) {
		r, s := newAsking(t)
		var all sync.WaitGroup
		stop := make(chan struct{})
		for who := range 6 {
			random := rand.New(rand.NewPCG(uint64(who), 3))
			all.Go(func() {
				for range 40 {
					p := r.callFrom([]string{"root", "sub", "subsub"}[random.IntN(3)], "", "main")
					switch p.Native {
					case "sub":
						p.Parent = "root"
					case "subsub":
						p.Parent = "sub"
					}
					p.Turn = []string{"", "t1", "t2"}[random.IntN(3)]
					if r.eng.Propose(t.Context(), p) != nil {
						continue // its parent closed at that moment
					}
					if v, err := r.eng.Await(t.Context(), p.Operation, p.Secret); err == nil && v.Allow {
						_ = r.eng.Receipt(t.Context(), p.Operation, p.Secret, "")
					}
					r.eng.Gone(p.Operation, p.Secret, events.EndAgentGone)
				}
			})
		}
		var others sync.WaitGroup
		for who, what := range []events.HookEvent{events.BeforeTurn, events.AfterTurn, events.UserInterrupt, events.SessionEnd} {
			random := rand.New(rand.NewPCG(uint64(who), 5))
			others.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(1+random.IntN(5)) * time.Millisecond):
					}
					_, _ = r.eng.Observe(t.Context(), core.Observation{
						Signal: signal(what), Agent: "generic", Native: []string{"root", "sub"}[random.IntN(2)], Cwd: r.dir,
						Turn: []string{"", "t1", "t2"}[random.IntN(3)],
					})
				}
			})
		}
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				for i, q := range s.receiveAll() {
					s.answer(q, []events.Answer{events.AnswerContinue, events.AnswerCancel}[i%2])
				}
			}
		})
		all.Wait()
		close(stop)
		others.Wait()
		for _, native := range []string{"root", "sub", "subsub"} {
			r.observe(core.Observation{Signal: signal(events.SessionEnd), Native: native})
		}
		pass(2 * time.Minute)
		open := map[events.ID]bool{}
		for _, m := range r.messages() {
			for _, ev := range m.Events {
				switch ev := ev.(type) {
				case events.Request:
					open[ev.ID] = true
				case events.Response:
					delete(open, ev.ID)
				case events.Withdrawn:
					delete(open, ev.ID)
				}
			}
		}
		if len(open) != 0 || len(r.eng.Sessions(events.DoorAll)) != 0 {
			t.Errorf("%d questions never ended, %d sessions are open", len(open), len(r.eng.Sessions(events.DoorAll)))
		}
		opened, closed := strings.Count(r.story(), "SessionOpened"), strings.Count(r.story(), "SessionClosed")
		if closed == 0 || opened < closed {
			t.Errorf("%d openings, %d ends", opened, closed)
		}
		for id, op := range r.bookOf() {
			if !op.ended {
				t.Errorf("%s is still open", id)
			}
		}
	})
}

// bookOf is what the log says of every operation.
func (r *rig) bookOf() map[events.ID]*life {
	ops := map[events.ID]*life{}
	for _, m := range r.messages() {
		for _, ev := range m.Events {
			switch ev := ev.(type) {
			case events.OperationProposed:
				ops[m.Operation] = &life{kind: ev.Kind}
			case events.OperationRefused, events.OperationAborted, events.OperationFinished:
				ops[m.Operation].ended = true
			}
		}
	}
	return ops
}
