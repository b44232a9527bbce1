package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// dies lets nothing more into the log once an event of a session is in it, as if
// the core had died right there.
func (m *moody) dies(event events.Type) {
	dead := false
	f := func(e journal.Entry, seq uint64, _ error) error {
		switch {
		case seq == 0 && dead:
			return journal.ErrUnavailable
		case seq != 0 && strings.Contains(e.Types, string(event)):
			dead = true
		}
		return nil
	}
	m.fault.Store(&f)
}

// reborn starts a core on what the dead one left.
func (r *rig) reborn() {
	r.t.Helper()
	r.wrap = nil
	r.restart()
	synctest.Wait()
}

func TestDeathBetweenSignalAndWithdrawals(t *testing.T) {
	for _, c := range []struct {
		name   string
		p      func(r *rig) core.Proposal
		o      core.Observation
		event  events.Type
		reason events.EndReason
	}{
		{"B71 interrupt", call1, core.Observation{Signal: signal(events.UserInterrupt), Turn: "t1"}, "Interrupted", events.EndInterrupted},
		{"B71 interrupt that names no turn", call1, core.Observation{Signal: signal(events.UserInterrupt)}, "Interrupted", events.EndInterrupted},
		{"B79 interrupt of a prompt", prompt, core.Observation{Signal: signal(events.UserInterrupt), Turn: "t1"}, "Interrupted", events.EndInterrupted},
		{"B72 session change", call1, core.Observation{Signal: core.SignalSessionChanged}, "SessionClosed", events.EndSessionChanged},
		{"B73 build change", call1, core.Observation{Signal: core.SignalBuildChanged}, "BuildChanged", events.EndBuildChanged},
		{"B74 session end", call1, core.Observation{Signal: signal(events.SessionEnd)}, "SessionClosed", events.EndSessionClosed},
		{"B75 injection", injection, core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"}, "TurnEnded", events.EndRunEnded},
		{"B76 turn end", call1, core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"}, "TurnEnded", events.EndTurnEnded},
		{"B76 turn end of a call of no turn", call0, core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"}, "TurnEnded", events.EndTurnEnded},
	} {
		bubble(t, c.name+": the next core ends it with its reason", func(t *testing.T) {
			r, _ := newAsking(t)
			log := moodily(r)
			s := r.attach("uid:1")
			keep(t, s)
			doomed := r.send(c.p(r))
			q := s.questionOf(doomed)
			log.dies(c.event)
			r.observe(c.o)
			<-doomed.result
			if n := count[events.Withdrawn](r.events(doomed.p.Operation)); n != 0 {
				t.Fatal("it was withdrawn before the crash")
			}
			r.reborn()
			if n := count[events.Withdrawn](r.events(doomed.p.Operation)); n != 1 {
				t.Fatalf("withdrawn %d times: %s", n, types(r.events(doomed.p.Operation)))
			}
			again := r.send(doomed.p) // its asker comes back
			if v := again.verdict(); v.Code != events.CodeEnded || v.EndReason != c.reason {
				t.Errorf("%s, want %s", toJSON(v), c.reason)
			}
			s = r.attach("uid:1")
			s.tooLate(again, q, c.reason)
		})
	}
	bubble(t, "B74 HAND-12 F12 a parent's end: its children and their calls end with it in the next core", func(t *testing.T) {
		r, _ := newAsking(t)
		log := moodily(r)
		s := r.attach("uid:1")
		keep(t, s)
		r.send(r.callFrom("root", "", "main"))
		ran := r.send(r.callFrom("sub", "root", "main > sub#1"))
		s.answer(s.questionOf(ran), events.AnswerContinue)
		ran.verdict()
		r.eng.Gone(ran.p.Operation, ran.p.Secret, events.EndAgentGone)
		below := r.send(r.callFrom("sub", "root", "main > sub#1"))
		s.questionOf(below)
		log.dies("SessionClosed")
		r.observe(core.Observation{Signal: signal(events.SessionEnd), Native: "root"})
		<-below.result
		r.reborn()
		if got := types(r.events(below.p.Operation)); !strings.HasSuffix(got, "Withdrawn OperationAborted") {
			t.Error(got)
		}
		if got := r.storyOf("sub"); got != "SessionOpened SessionClosed" {
			t.Error(got)
		}
		if got := r.outcomes(ran.p.Operation); got != "unknown" {
			t.Error(got)
		}
		if n := len(r.eng.Sessions(events.DoorAll)); n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}

func TestRestartsKeepSessions(t *testing.T) {
	for _, whole := range []bool{false, true} {
		name := "from the snapshot"
		if whole {
			name = "from the whole log"
		}
		bubble(t, "F3 what sessions know outlives the core, "+name, func(t *testing.T) {
			r := newRig(t)
			r.observe(core.Observation{Signal: signal(events.BeforeTurn), Native: "root", Turn: "t0"})
			r.observe(core.Observation{Signal: signal(events.AfterTurn), Native: "root", Turn: "t0"})
			r.observe(core.Observation{Signal: signal(events.BeforeTurn), Native: "root", Turn: "t1"})
			call := r.callFrom("sub", "root", "main > sub#1")
			call.Tool.CallID = "c1"
			op := r.letGo(call)
			r.observe(core.Observation{Signal: signal(events.SessionStart), Native: "gone"})
			r.observe(core.Observation{Signal: signal(events.SessionEnd), Native: "gone"})
			synctest.Wait()
			for range 3 {
				r.kill()
				if whole {
					_ = os.Remove(filepath.Join(r.dir, "snapshot"))
				}
				r.start()
			}
			var list []string
			for _, h := range r.eng.Sessions(string(token("root"))) {
				list = append(list, h.Native)
			}
			if slices.Sort(list); strings.Join(list, " ") != "root sub" || len(r.eng.Sessions(events.DoorAll)) != 2 {
				t.Errorf("sessions: %v of %d", list, len(r.eng.Sessions(events.DoorAll)))
			}
			p := r.proposal(`{}`)
			p.Native = "root"
			c := r.send(p)
			c.verdict()
			past := p
			past.Operation, past.Turn = engine.NewID(time.Now()), "t0"
			if v := r.send(past).verdict(); v.EndReason != events.EndTurnEnded {
				t.Error(toJSON(v))
			}
			log := r.messages()
			if turn := log[len(log)-1].Turn; turn != "t0" {
				t.Errorf("the last message is of turn %q", turn)
			}
			if seq := at(log, func(m events.Message, _ events.OperationProposed) bool {
				return m.Operation == p.Operation && m.Turn == "t1"
			}); seq == 0 {
				t.Error("the current turn was forgotten")
			}
			r.observe(core.Observation{
				Signal: signal(events.AfterToolCall), Native: "sub", Tool: events.Tool{Name: "write", CallID: "c1"}, Result: &core.ToolResult{},
			})
			if got := r.outcomes(op); got != "ok" {
				t.Errorf("outcome %q", got)
			}
		})
	}
	bubble(t, "a call of a leased asker waits a lease for it after a restart, others ten seconds", func(t *testing.T) {
		r, s := newAsking(t)
		var leased, other *call
		for _, c := range []struct {
			to     **call
			leased bool
		}{{&leased, true}, {&other, false}} {
			p := r.callIn("")
			p.Leased = c.leased
			*c.to = r.send(p)
			s.questionOf(*c.to)
		}
		r.restart()
		s = r.attach("uid:1")
		keep(t, s)
		s.receiveAll()
		pass(engine.AskerReturn + time.Second)
		if got := types(r.events(other.p.Operation)); !strings.HasSuffix(got, "OperationAborted") {
			t.Error(got)
		}
		pass(events.AskerLease - engine.AskerReturn - 3*time.Second)
		if got := types(r.events(leased.p.Operation)); strings.HasSuffix(got, "OperationAborted") {
			t.Error("its lease is not over")
		}
		pass(4 * time.Second)
		if got := types(r.events(leased.p.Operation)); !strings.HasSuffix(got, "OperationAborted") {
			t.Error(got)
		}
	})
}

func TestHooksOfSignals(t *testing.T) {
	bubble(t, "hooks of a session's events are on record, blocking ones first, and nobody waits for them", func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "hooks:\n"+entry("first", "before_turn", "mode: blocking")+
			entry("later", "before_turn", "mode: async")+entry("second", "before_turn", "mode: blocking"))
		var told []hooks.Payload
		r.sees("later", &told, allow)
		slow := make(chan struct{})
		r.hook["first"] = func(hooks.Input) hooks.Result { <-slow; return allow }
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1", Profile: "reviewer"})
		if got := r.story(); !strings.HasPrefix(got, "SessionOpened TurnStarted") || strings.Contains(got, "HookRan") {
			t.Error(got)
		}
		close(slow)
		synctest.Wait()
		if got := strings.Join(r.ran(), " "); got != "first second later" {
			t.Error(got)
		}
		if got := r.story(); got != "SessionOpened TurnStarted HookStarted HookRan HookStarted HookRan HookStarted HookRan" {
			t.Error(got)
		}
		if len(told) != 1 || told[0].Turn != "t1" || told[0].SessionID != "s1" || told[0].Profile != "reviewer" || told[0].Event != events.BeforeTurn {
			t.Errorf("%+v", told)
		}
	})
	bubble(t, "B78 B17 a session's end with a hung hook and an open question ends all the same", func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "hooks:\n"+entry("h1", "before_tool_call", "mode: blocking")+
			entry("hung", "before_turn", "mode: async")+entry("bye", "session_end", "mode: async"))
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		var told []hooks.Payload
		r.sees("bye", &told, allow)
		ended := make(chan time.Duration, 1)
		start := time.Now()
		r.long["hung"] = hung(func() { ended <- time.Since(start) })
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1"})
		c := r.send(call1(r))
		q := s.questionOf(c)
		start = time.Now()
		r.observe(core.Observation{Signal: signal(events.SessionEnd)})
		r.ended(c, q, events.EndSessionClosed)
		if took := <-ended; took != 5*time.Second {
			t.Errorf("the hung hook was ended after %v; the grace is 5 s", took)
		}
		if len(told) != 1 || told[0].Reason != string(events.EndSessionClosed) {
			t.Errorf("%+v", told)
		}
		synctest.Wait()
		if started, ran := strings.Count(r.story(), "HookStarted"), strings.Count(r.story(), "HookRan"); started != 2 || ran != 2 {
			t.Errorf("%d started, %d ended", started, ran)
		}
	})
	bubble(t, "B99 a hook of a session's event that a crash cut off is closed by the next core", func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "hooks:\n"+entry("hung", "before_turn", "mode: blocking"))
		log := moodily(r)
		r.long["hung"] = hung(func() {})
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1"})
		synctest.Wait()
		f := func(e journal.Entry, seq uint64, _ error) error {
			if seq == 0 {
				return journal.ErrUnavailable
			}
			return nil
		}
		log.fault.Store(&f)
		r.reborn()
		if got := r.story(); got != "SessionOpened TurnStarted HookStarted HookRan" {
			t.Fatal(got)
		}
		r.restart()
		synctest.Wait()
		if got := r.story(); strings.Count(got, "HookRan") != 1 {
			t.Error(got)
		}
	})
	bubble(t, "a session that opens, opens again, or was open all the time", func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "hooks:\n"+entry("start", "session_start", "mode: async")+entry("restored", "session_restored", "mode: async"))
		open := core.SessionOpening{Agent: "generic", Native: "s1", Cwd: r.dir}
		for _, want := range []string{"start", "start", "start restored"} {
			if strings.Contains(want, "restored") {
				r.observe(core.Observation{Signal: signal(events.SessionEnd)})
			}
			_, _, err := r.eng.OpenSession(t.Context(), open)
			must(t, err)
			synctest.Wait()
			if got := strings.Join(r.ran(), " "); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	})
}

// hung is a hook that only its context ends.
func hung(then func()) func(context.Context) hooks.Result {
	return func(ctx context.Context) hooks.Result {
		<-ctx.Done()
		then()
		return hooks.Result{Effect: events.EffectError, Outcome: events.RunAbandoned}
	}
}
