package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

func TestProposalsOfThePast(t *testing.T) {
	for name, c := range map[string]struct {
		o      core.Observation
		p      func(r *rig) core.Proposal
		reason events.EndReason
	}{
		"B76 a call of a turn that ended":                           {core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"}, call1, events.EndTurnEnded},
		"B71 a call of a turn that was interrupted":                 {core.Observation{Signal: signal(events.UserInterrupt), Turn: "t1"}, call1, events.EndInterrupted},
		"B75 an injection for a turn that ended":                    {core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"}, injection, events.EndRunEnded},
		"B79 an injection for a turn that was interrupted":          {core.Observation{Signal: signal(events.UserInterrupt), Turn: "t1"}, injection, events.EndInterrupted},
		"B71 the turn is the current one, the interrupt names none": {core.Observation{Signal: signal(events.UserInterrupt)}, call1, events.EndInterrupted},
	} {
		for _, restarted := range []bool{false, true} {
			bubble(t, fmt.Sprintf("%s ends at once, after a restart too: %v", name, restarted), func(t *testing.T) {
				r, _ := newAsking(t)
				r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1"})
				r.observe(c.o)
				if restarted {
					r.restart()
				}
				call := r.send(c.p(r))
				if v := call.verdict(); v.Code != events.CodeEnded || v.EndReason != c.reason {
					t.Error(toJSON(v))
				}
				if got := types(r.events(call.p.Operation)); !strings.HasPrefix(got, "OperationProposed OperationAborted") || len(r.ran()) != 0 {
					t.Errorf("%s, hooks ran: %v", got, r.ran())
				}
			})
		}
	}
	bubble(t, "B94 the next turn, the same turn begun anew, and a prompt of no turn go on", func(t *testing.T) {
		r, s := newAsking(t)
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1"})
		r.observe(core.Observation{Signal: signal(events.UserInterrupt), Turn: "t1"})
		for _, p := range []core.Proposal{prompt(r), r.callIn("t2"), r.callIn("")} {
			c := r.send(p)
			if s.answer(s.questionOf(c), events.AnswerContinue); !c.verdict().Allow {
				t.Errorf("refused: %+v", p)
			}
		}
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1"})
		c := r.send(call1(r))
		if s.answer(s.questionOf(c), events.AnswerContinue); !c.verdict().Allow {
			t.Error("the turn began anew and its call was refused")
		}
	})
	bubble(t, "B76 a call that names no turn is one of the turn that runs", func(t *testing.T) {
		r, s := newAsking(t)
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1"})
		c := r.send(call0(r))
		q := s.questionOf(c)
		log := r.messages()
		if log[len(log)-1].Turn != "t1" {
			t.Errorf("turn %q", log[len(log)-1].Turn)
		}
		r.observe(core.Observation{Signal: signal(events.AfterTurn)}) // names none either
		r.ended(c, q, events.EndTurnEnded)
	})
}

func TestSameSignalAgain(t *testing.T) {
	bubble(t, "twice is once, and each fact is told", func(t *testing.T) {
		r, _ := newAsking(t)
		for _, o := range []core.Observation{
			{Signal: signal(events.SessionStart)},
			{Signal: signal(events.BeforeTurn), Turn: "t1"},
			{Signal: signal(events.UserInterrupt), Turn: "t1"},
			{Signal: signal(events.AfterTurn), Turn: "t1"},
			{Signal: signal(events.SessionEnd)},
		} {
			r.observe(o)
			r.observe(o)
		}
		if got := r.story(); got != "SessionOpened TurnStarted Interrupted TurnEnded SessionClosed" {
			t.Error(got)
		}
	})
	bubble(t, "B74 of a session that is over or was never heard of, an end is nothing", func(t *testing.T) {
		r, _ := newAsking(t)
		for _, s := range []core.Signal{
			signal(events.SessionEnd), signal(events.UserInterrupt), core.SignalSessionChanged, core.SignalBuildChanged,
		} {
			r.observe(core.Observation{Signal: s, Native: "nobody"})
		}
		if got := r.story(); got != "" {
			t.Error(got)
		}
		for _, s := range []core.Signal{signal(events.SessionEnd), signal(events.BeforeTurn)} {
			_, err := r.eng.Observe(t.Context(), core.Observation{Signal: s, Session: token("nobody")})
			if !refusedAs(err, events.RejectUnknownSession) {
				t.Errorf("%s by token: %v", s, err)
			}
		}
		head, restored, err := r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: "s1", Cwd: r.dir})
		if err != nil || restored {
			t.Fatal(restored, err)
		}
		r.observe(core.Observation{Signal: signal(events.SessionEnd), Session: head.Session})
		r.observe(core.Observation{Signal: signal(events.SessionEnd), Session: head.Session}) // a reply that was lost
		_, err = r.eng.Observe(t.Context(), core.Observation{Signal: signal(events.BeforeTurn), Session: head.Session})
		if !refusedAs(err, events.RejectUnknownSession) {
			t.Error(err)
		}
	})
	bubble(t, "what is no signal is refused, and what is too long", func(t *testing.T) {
		r, _ := newAsking(t)
		for _, o := range []core.Observation{
			{Signal: "before_tool_call"}, {Signal: ""}, {Signal: signal(events.BeforeTurn), Turn: strings.Repeat("t", 513)},
		} {
			o.Agent, o.Native, o.Cwd = "generic", "s1", r.dir
			if _, err := r.eng.Observe(t.Context(), o); !refusedAs(err, events.RejectMalformed) {
				t.Errorf("%.40q: %v", o.Signal, err)
			}
		}
		if len(r.messages()) != 1 { // the genesis
			t.Error("something was written")
		}
	})
	bubble(t, "B94 a closed session opens again with the next call, and says that it was restored", func(t *testing.T) {
		r, s := newAsking(t)
		open := core.SessionOpening{Agent: "generic", Native: "s1", Cwd: r.dir}
		for i, want := range []bool{false, true, true} {
			if _, restored, err := r.eng.OpenSession(t.Context(), open); err != nil || restored != want {
				t.Fatal(i, restored, err)
			}
		}
		r.observe(core.Observation{Signal: signal(events.SessionEnd)})
		c := r.send(call1(r))
		if s.answer(s.questionOf(c), events.AnswerContinue); !c.verdict().Allow {
			t.Error("refused")
		}
		if got := r.story(); got != "SessionOpened SessionClosed SessionOpened" {
			t.Error(got)
		}
	})
}

// moody is the real log with a fault that a test chooses for each entry.
type moody struct {
	engine.Log
	fault atomic.Pointer[func(e journal.Entry, seq uint64, err error) error]
}

func (m *moody) Append(ctx context.Context, e journal.Entry) (uint64, error) {
	f := m.fault.Load()
	if f != nil {
		if err := (*f)(e, 0, nil); err != nil {
			return 0, err
		}
	}
	seq, err := m.Log.Append(ctx, e)
	if f != nil && err == nil {
		err = (*f)(e, seq, nil)
	}
	return seq, err
}

// moodily restarts a rig on a log with faults.
func moodily(r *rig) *moody {
	r.kill()
	log := &moody{}
	r.wrap = func(l engine.Log) engine.Log { log.Log = l; return log }
	r.start()
	return log
}

// fails makes entries of an event fail: before they are written, or after.
func (m *moody) fails(event events.Type, written bool, times int32) {
	var left atomic.Int32
	left.Store(times)
	f := func(e journal.Entry, seq uint64, _ error) error {
		if strings.Contains(e.Types, string(event)) && (seq != 0) == written && left.Add(-1) >= 0 {
			return journal.ErrUnavailable
		}
		return nil
	}
	m.fault.Store(&f)
}

func TestSignalsInDoubt(t *testing.T) {
	bubble(t, "B71 an interrupt that the log does not take: the call is refused all the same, and nobody is told that it is written", func(t *testing.T) {
		r, _ := newAsking(t)
		log := moodily(r)
		s := r.attach("uid:1")
		keep(t, s)
		c := r.send(call1(r))
		s.questionOf(c)
		log.fails("Interrupted", false, 1)
		_, err := r.eng.Observe(t.Context(), core.Observation{Signal: signal(events.UserInterrupt), Agent: "generic", Native: "s1", Cwd: r.dir})
		if !refusedAs(err, events.RejectLogUnavailable) {
			t.Error(err)
		}
		if v := (<-c.result).v; v.Allow || v.Code != events.CodeLogUnavailable {
			t.Error(toJSON(v))
		}
	})
	bubble(t, "B71 an interrupt whose ack was lost is found by the next signal, and ends what it meant and nothing younger", func(t *testing.T) {
		r, _ := newAsking(t)
		log := moodily(r)
		s := r.attach("uid:1")
		keep(t, s)
		c := r.send(call1(r))
		s.questionOf(c)
		log.fails("Interrupted", true, 1)
		_, err := r.eng.Observe(t.Context(), core.Observation{Signal: signal(events.UserInterrupt), Agent: "generic", Native: "s1", Cwd: r.dir})
		if !refusedAs(err, events.RejectLogUnavailable) {
			t.Error(err)
		}
		if v := (<-c.result).v; v.Allow {
			t.Error(toJSON(v))
		}
		pass(time.Second)
		young := r.send(r.callIn("t2"))
		q := s.questionOf(young)
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t2"})
		synctest.Wait()
		if s.answer(q, events.AnswerContinue); !young.verdict().Allow {
			t.Error("a younger call was ended")
		}
		if got := r.story(); got != "SessionOpened Interrupted TurnStarted" {
			t.Error(got)
		}
		r.restart()
		synctest.Wait()
		if got := types(r.events(c.p.Operation)); !strings.Contains(got, "Withdrawn OperationAborted") {
			t.Error(got)
		}
	})
	bubble(t, "a session whose opening was not heard of opens with the next call", func(t *testing.T) {
		r, _ := newAsking(t)
		log := moodily(r)
		s := r.attach("uid:1")
		keep(t, s)
		log.fails("SessionOpened", true, 1)
		if err := r.eng.Propose(t.Context(), call1(r)); !refusedAs(err, events.RejectLogUnavailable) {
			t.Fatal(err)
		}
		c := r.send(call1(r))
		if s.answer(s.questionOf(c), events.AnswerContinue); !c.verdict().Allow {
			t.Error("refused")
		}
		if got := r.story(); got != "SessionOpened" {
			t.Error(got)
		}
	})
	bubble(t, "proposals do not wait for a session's append, nor calls for each other", func(t *testing.T) {
		r, _ := newAsking(t)
		log := moodily(r)
		s := r.attach("uid:1")
		keep(t, s)
		s.questionOf(r.send(call1(r)))
		slow := make(chan struct{})
		f := func(e journal.Entry, seq uint64, _ error) error {
			if seq == 0 && strings.Contains(e.Types, "TurnStarted") {
				<-slow
			}
			return nil
		}
		log.fault.Store(&f)
		told := make(chan error, 1)
		go func() {
			_, err := r.eng.Observe(context.Background(), core.Observation{Signal: signal(events.BeforeTurn), Agent: "generic", Native: "s1", Cwd: r.dir, Turn: "t1"})
			told <- err
		}()
		synctest.Wait()
		start := time.Now()
		c := r.send(call1(r))
		if s.answer(s.questionOf(c), events.AnswerContinue); !c.verdict().Allow || time.Since(start) > time.Second {
			t.Errorf("it waited %v", time.Since(start))
		}
		close(slow)
		must(t, <-told)
	})
	bubble(t, "a caller that gives up while a session opens does not end the opening", func(t *testing.T) {
		r, _ := newAsking(t)
		log := moodily(r)
		slow := make(chan struct{})
		f := func(e journal.Entry, seq uint64, _ error) error {
			if seq == 0 && strings.Contains(e.Types, "SessionOpened") {
				<-slow
			}
			return nil
		}
		log.fault.Store(&f)
		first := make(chan error, 1)
		go func() { first <- r.eng.Propose(context.Background(), call1(r)) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.eng.Propose(ctx, call1(r)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(slow)
		must(t, <-first)
	})
}

// TestB59CommitAfterTheEnd: once a signal is acknowledged nothing that it ends can
// take the right to run, however soon it asks.
func TestB59CommitAfterTheEnd(t *testing.T) {
	bubble(t, "B59 B62 B71 an interrupt that was acknowledged is before every commit", func(t *testing.T) {
		r := newRig(t)
		for i := range 100 {
			p := r.called(fmt.Sprintf("t%d", i), "main", "", `{}`)
			must(t, r.eng.Propose(t.Context(), p))
			v, err := r.eng.Await(t.Context(), p.Operation, p.Secret)
			must(t, err)
			r.observe(core.Observation{Signal: signal(events.UserInterrupt), Turn: p.Turn})
			if err := r.eng.Commit(t.Context(), p.Operation, p.Secret, v.Version.Digest, "01k00000000000000000000001"); err == nil {
				t.Fatalf("round %d: committed", i)
			}
			if got := types(r.events(p.Operation)); strings.Contains(got, "Delivered") {
				t.Fatalf("round %d: %s", i, got)
			}
		}
	})
}
