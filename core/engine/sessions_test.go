package engine_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// newAsking starts a core that asks about everything, with a screen.
func newAsking(t *testing.T) (*rig, *screen) {
	t.Helper()
	r := newRuled(t, engine.Options{}, "hooks:\n"+
		entry("h1", "before_tool_call", "mode: blocking")+entry("p1", "user_prompt_submit", "mode: blocking"))
	r.hook["h1"], r.hook["p1"] = asks, asks
	s := r.attach("uid:1")
	keep(t, s)
	return r, s
}

// inputIn is a proposal to submit a text.
func (r *rig) inputIn(kind events.Kind, turn string) core.Proposal {
	p := r.proposal(`"hello"`)
	p.Kind, p.Tool, p.Turn = kind, events.Tool{}, turn
	return p
}

// callIn is a proposal of a tool call in a turn.
func (r *rig) callIn(turn string) core.Proposal {
	p := r.proposal(`{"path":"a"}`)
	p.Turn = turn
	return p
}

// observe reports a signal of the session that proposals are of.
func (r *rig) observe(o core.Observation) core.Heard {
	r.t.Helper()
	if o.Native == "" {
		o.Native = "s1"
	}
	if o.Session == "" {
		o.Agent = "generic"
	}
	if o.Cwd == "" {
		o.Cwd = r.dir
	}
	heard, err := r.eng.Observe(r.t.Context(), o)
	must(r.t, err)
	return heard
}

func signal(e events.HookEvent) core.Signal { return core.Signal(e) }

// messages reads the whole log back, in its order.
func (r *rig) messages() (list []events.Message) {
	r.t.Helper()
	for rec, err := range r.log.Scan(r.t.Context(), 0) {
		must(r.t, err)
		m, err := events.DecodeMessage(rec.Data)
		must(r.t, err)
		m.Seq = rec.Seq
		list = append(list, m)
	}
	return list
}

// at is where in the log an event first stands, 0 if nowhere.
func at[E events.Event](list []events.Message, is func(m events.Message, e E) bool) uint64 {
	for _, m := range list {
		for _, ev := range m.Events {
			if e, ok := ev.(E); ok && is(m, e) {
				return m.Seq
			}
		}
	}
	return 0
}

// story lists what the log says of sessions themselves.
func (r *rig) story() string {
	r.t.Helper()
	var list []events.Event
	for _, m := range r.messages() {
		if m.Operation == "" && m.Session != "" {
			list = append(list, m.Events...)
		}
	}
	return types(list)
}

// ended checks that a question ended with a reason, once, and that the dialogs
// closed by themselves.
func (r *rig) ended(c *call, q events.Question, reason events.EndReason) {
	r.t.Helper()
	if v := c.verdict(); v.Allow || v.Code != events.CodeEnded || v.EndReason != reason {
		r.t.Errorf("verdict %s, want %s", toJSON(v), reason)
	}
	synctest.Wait()
	n := 0
	for _, ev := range r.events(c.p.Operation) {
		if w, ok := ev.(events.Withdrawn); ok && w.ID == q.ID {
			n++
			if w.Reason != reason || w.Result != events.ResultWithdrawn {
				r.t.Errorf("withdrawn %s/%s, want %s", w.Result, w.Reason, reason)
			}
		}
	}
	if n != 1 {
		r.t.Errorf("withdrawn %d times", n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	closed := 0
	for _, l := range r.live {
		if l.Ended != nil && l.Ended.Question == q.ID && l.Ended.Reason == reason {
			closed++
		}
	}
	if closed != 1 {
		r.t.Errorf("the feed closed the dialog %d times", closed)
	}
}

// tooLate checks that an answer changes nothing now and is recorded as late.
func (s *screen) tooLate(c *call, q events.Question, reason events.EndReason) {
	s.r.t.Helper()
	before := s.r.events(c.p.Operation)
	ack := s.answer(q, events.AnswerContinue)
	if ack.Refused == nil || ack.Refused.Code != events.RejectWithdrawn || ack.Refused.EndReason != reason {
		s.r.t.Errorf("a late answer heard %s", toJSON(ack))
	}
	after := s.r.events(c.p.Operation)
	if len(after) != len(before)+1 {
		s.r.t.Fatalf("a late answer made %s of %s", types(after), types(before))
	}
	if _, ok := after[len(before)].(events.AnswerRejected); !ok {
		s.r.t.Errorf("a late answer is recorded as %s", types(after[len(before):]))
	}
}

func TestSignalsEndQuestions(t *testing.T) {
	turn := core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"}
	for _, c := range []struct {
		name    string
		p       func(r *rig) core.Proposal
		o       core.Observation
		reason  events.EndReason
		session events.Type // the event of the session that is in the log before
	}{
		{"B71 HAND-07 an interrupt ends a tool call", call1, core.Observation{Signal: signal(events.UserInterrupt), Turn: "t1"}, events.EndInterrupted, "Interrupted"},
		{"B71 B79 an interrupt ends a prompt that waits", prompt, core.Observation{Signal: signal(events.UserInterrupt), Turn: "t1"}, events.EndInterrupted, "Interrupted"},
		{"B71 an interrupt that names no turn ends whatever waits", call1, core.Observation{Signal: signal(events.UserInterrupt)}, events.EndInterrupted, "Interrupted"},
		{"B72 a change of the session", call1, core.Observation{Signal: core.SignalSessionChanged}, events.EndSessionChanged, "SessionClosed"},
		{"B73 a change of model, profile or settings", call1, core.Observation{Signal: core.SignalBuildChanged}, events.EndBuildChanged, "BuildChanged"},
		{"B73 the same ends a prompt that waits", prompt, core.Observation{Signal: core.SignalBuildChanged}, events.EndBuildChanged, "BuildChanged"},
		{"B74 the session's end", call1, core.Observation{Signal: signal(events.SessionEnd)}, events.EndSessionClosed, "SessionClosed"},
		{"B74 the session's end and a prompt", prompt, core.Observation{Signal: signal(events.SessionEnd)}, events.EndSessionClosed, "SessionClosed"},
		{"B75 an injection ends with the turn that it was meant for", injection, turn, events.EndRunEnded, "TurnEnded"},
		{"B76 a turn's end ends its tool call", call1, turn, events.EndTurnEnded, "TurnEnded"},
		{"B76 a turn's end ends a call of which no turn is known", call0, turn, events.EndTurnEnded, "TurnEnded"},
		{"B76 a turn's end ends its retry note", retryNote, turn, events.EndTurnEnded, "TurnEnded"},
		{"B75 a sub-agent's end ends what runs below it", below, core.Observation{Signal: signal(events.SubAgentEnd), Path: "main > sub#1"}, events.EndRunEnded, ""},
		{"B75 a workflow's end ends its own", below, core.Observation{Signal: signal(events.WorkflowRunEnd), Path: "main > sub#1 > node#2"}, events.EndRunEnded, ""},
	} {
		bubble(t, "B77 B80 "+c.name, func(t *testing.T) {
			r, s := newAsking(t)
			r.observe(core.Observation{Signal: signal(events.SessionStart)})
			call := r.send(c.p(r))
			q := s.question()
			r.observe(c.o)
			r.ended(call, q, c.reason)
			s.tooLate(call, q, c.reason)
			if c.session == "" {
				return
			}
			log := r.messages()
			first := at(log, func(_ events.Message, e events.Event) bool { return e.EventType() == c.session })
			then := at(log, func(_ events.Message, e events.Withdrawn) bool { return e.ID == q.ID })
			if first == 0 || first > then {
				t.Errorf("the session's event is message %d, the withdrawal %d", first, then)
			}
		})
	}
	bubble(t, "B70 B77 B80 a queued injection that is taken back", func(t *testing.T) {
		r, s := newAsking(t)
		call := r.send(injection(r))
		q := s.question()
		r.observe(core.Observation{Signal: core.SignalMessageWithdrawn, Operation: call.p.Operation})
		r.ended(call, q, events.EndMessageWithdrawn)
		s.tooLate(call, q, events.EndMessageWithdrawn)
	})
}

func call1(r *rig) core.Proposal     { return r.callIn("t1") }
func call0(r *rig) core.Proposal     { return r.callIn("") }
func prompt(r *rig) core.Proposal    { return r.inputIn(events.KindUserPrompt, "") }
func injection(r *rig) core.Proposal { return r.inputIn(events.KindInjection, "t1") }
func retryNote(r *rig) core.Proposal { return r.inputIn(events.KindRetryNote, "t1") }

func below(r *rig) core.Proposal {
	p := r.callIn("t1")
	p.Path = "main > sub#1 > node#2"
	return p
}

func TestSignalsSpareOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		p    func(r *rig) core.Proposal
		o    core.Observation
	}{
		{"B69 a prompt that waits outlives the end of the turn that runs", prompt, core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"}},
		{"B76 a call of another turn", call1, core.Observation{Signal: signal(events.AfterTurn), Turn: "t0"}},
		{"B71 an interrupt that names another turn comes late", call1, core.Observation{Signal: signal(events.UserInterrupt), Turn: "t0"}},
		{"B75 the end of a run with a like name", below, core.Observation{Signal: signal(events.SubAgentEnd), Path: "main > sub"}},
		{"B75 the end of a run that nobody names", below, core.Observation{Signal: signal(events.SubAgentEnd)}},
		{"B75 the agent itself is no run", below, core.Observation{Signal: signal(events.WorkflowRunEnd), Path: "main"}},
		{"B72 another session's end", call1, core.Observation{Signal: signal(events.SessionEnd), Native: "s2"}},
		{"B76 a turn's start", call1, core.Observation{Signal: signal(events.BeforeTurn), Turn: "t2"}},
	} {
		bubble(t, c.name, func(t *testing.T) {
			r, s := newAsking(t)
			other := r.proposal(`{}`)
			other.Native = "s2"
			r.send(other)
			call := r.send(c.p(r))
			q := s.questionOf(call)
			r.observe(c.o)
			synctest.Wait()
			if ack := s.answer(q, events.AnswerContinue); ack.Refused != nil || !call.verdict().Allow {
				t.Fatal(toJSON(ack))
			}
		})
	}
	bubble(t, "B70 a tool call is no message, and another session's message is not ours to take back", func(t *testing.T) {
		r, s := newAsking(t)
		call := r.send(call1(r))
		s.questionOf(call)
		for native, want := range map[string]events.Reject{"s1": events.RejectNotAllowed, "s2": events.RejectUnknownOperation} {
			_, _, err := r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: native, Cwd: r.dir})
			must(t, err)
			_, err = r.eng.Observe(t.Context(), core.Observation{
				Signal: core.SignalMessageWithdrawn, Agent: "generic", Native: native, Cwd: r.dir, Operation: call.p.Operation,
			})
			if no := (*events.Refused)(nil); !errors.As(err, &no) || no.Code != want {
				t.Errorf("%s: %v, want %s", native, err, want)
			}
		}
	})
}

// questionOf waits for the question of a call.
func (s *screen) questionOf(c *call) events.Question {
	s.r.t.Helper()
	for range 10_000 {
		for _, h := range s.r.eng.Sessions(events.DoorAll) {
			p := engine.Place{Project: h.Project, Session: h.Session}
			for _, q := range s.r.eng.Sync(p, events.Sync{}).Questions {
				s.r.eng.Received(s.f, p, events.Received{Questions: []events.ID{q.ID}})
				if q.Operation == c.p.Operation {
					return q
				}
			}
		}
		pass(1e6)
	}
	s.r.t.Fatal("there is no question")
	return events.Question{}
}

// TestF9MoreSessionsThanAMessageCarries: whoever opens thousands of them keeps no
// frontend from attaching, and hides no question.
func TestF9MoreSessionsThanAMessageCarries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newAsking(t)
		c := r.propose(`{}`)
		q := s.question()
		pass(time.Minute)
		far := "/" + strings.Repeat(strings.Repeat("d", 250)+"/", 16)
		for i := range 2500 {
			_, _, err := r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: "m" + strconv.Itoa(i), Cwd: far})
			must(t, err)
		}
		reply := r.eng.Hello(s.f, events.DoorAll, events.Hello{Kind: events.FrontendTUI, Capable: true})
		data, err := events.EncodeReply(reply, true)
		must(t, err)
		if len(data) > 12<<20 || len(reply.Sessions) < 1000 || reply.Sessions[0].Session != q.Session || reply.Sessions[0].Open != 1 {
			t.Errorf("%d bytes, %d sessions, first %+v", len(data), len(reply.Sessions), reply.Sessions[0])
		}
		s.answer(q, events.AnswerCancel)
		c.verdict()
	})
}
