package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// callFrom is a tool call of a session below another.
func (r *rig) callFrom(native, parent, path string) core.Proposal {
	p := r.proposal(`{"path":"a"}`)
	p.Native, p.Parent, p.Path = native, parent, path
	return p
}

// token is the session of a native id.
func token(native string) events.Token {
	return events.SessionToken(events.CoreToken("rig"), "generic", native)
}

func TestCallersBelow(t *testing.T) {
	bubble(t, "B54 B55 HAND-12 main, sub-agent, its own sub-agent, background agent and workflow node all pass the gate and reach the root's screen", func(t *testing.T) {
		r, _ := newAsking(t)
		root := r.attachTo("uid:2", string(token("root")))
		keepScope(t, root, string(token("root")))
		callers := []core.Proposal{
			r.callFrom("root", "", "main"), r.callFrom("sub", "root", "main > sub#1"), r.callFrom("subsub", "sub", "main > sub#1 > sub#1"),
			r.callFrom("bg", "root", "main > bg#1"), r.callFrom("root", "", "main > flow#1 > node#2"),
		}
		for _, p := range callers {
			c := r.send(p)
			q := root.questionOf(c)
			if q.Path != p.Path || q.Session != token(p.Native) {
				t.Errorf("the question names %s in %s", q.Path, q.Session)
			}
			if !slices.ContainsFunc(r.eng.Sessions(string(token("root"))), func(h events.SessionHead) bool { return h.Session == q.Session && h.Open == 1 }) {
				t.Errorf("the root's screen does not have %s", p.Native)
			}
			root.answer(q, events.AnswerCancel)
			if v := c.verdict(); v.Code != events.CodeDeclined {
				t.Errorf("%s: %s", p.Path, toJSON(v))
			}
		}
		if ran := strings.Join(r.ran(), " "); ran != "h1 h1 h1 h1 h1" {
			t.Errorf("hooks ran: %s", ran)
		}
	})
	for _, c := range []struct {
		name   string
		o      core.Observation
		reason events.EndReason
		below  string // what the sub-agents' own sessions say
	}{
		{"B74 the end", core.Observation{Signal: signal(events.SessionEnd)}, events.EndSessionClosed, "SessionClosed"},
		{"B72 the change", core.Observation{Signal: core.SignalSessionChanged}, events.EndSessionChanged, "SessionClosed"},
		{"B71 an interrupt", core.Observation{Signal: signal(events.UserInterrupt), Turn: "t7"}, events.EndInterrupted, "Interrupted"},
	} {
		bubble(t, c.name+" of a parent ends its children's questions, HAND-12", func(t *testing.T) {
			r, s := newAsking(t)
			r.send(r.callFrom("root", "", "main"))
			var calls []*call
			var asked []events.Question
			for _, p := range []core.Proposal{r.callFrom("sub", "root", "main > sub#1"), r.callFrom("subsub", "sub", "main > sub#1 > sub#1")} {
				p.Turn = "its own"
				calls = append(calls, r.send(p))
				asked = append(asked, s.questionOf(calls[len(calls)-1]))
			}
			alone := r.send(r.callFrom("other", "", "main"))
			free := s.questionOf(alone)
			c.o.Native = "root"
			r.observe(c.o)
			for i := range calls {
				r.ended(calls[i], asked[i], c.reason)
				s.tooLate(calls[i], asked[i], c.reason)
			}
			for _, native := range []string{"sub", "subsub"} {
				if got := r.storyOf(native); !strings.HasSuffix(got, c.below) || strings.Count(got, c.below) != 1 {
					t.Errorf("%s: %s", native, got)
				}
			}
			if s.answer(free, events.AnswerContinue); !alone.verdict().Allow {
				t.Error("a session that is no child was ended too")
			}
		})
	}
	bubble(t, "B76 a parent's turn is not its children's", func(t *testing.T) {
		r, s := newAsking(t)
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Native: "root", Turn: "t1"})
		c := r.send(r.callFrom("sub", "root", "main > sub#1"))
		q := s.questionOf(c)
		r.observe(core.Observation{Signal: signal(events.AfterTurn), Native: "root", Turn: "t1"})
		synctest.Wait()
		if s.answer(q, events.AnswerContinue); !c.verdict().Allow {
			t.Error("the child's call ended")
		}
	})
}

func TestParents(t *testing.T) {
	bubble(t, "B109 HAND-12 a parent that becomes known later counts from then on", func(t *testing.T) {
		r, _ := newAsking(t)
		subsub := r.send(r.callFrom("subsub", "sub", "main > sub#1 > sub#1")) // "sub" opens without a parent
		r.send(r.callFrom("sub", "root", "main > sub#1"))
		r.attachTo("uid:2", string(token("root"))).questionOf(subsub)
		if n := len(r.eng.Sessions(string(token("root")))); n != 3 {
			t.Errorf("%d sessions in the root's scope", n)
		}
		r.restart()
		if n := len(r.eng.Sessions(string(token("root")))); n != 3 {
			t.Errorf("%d sessions in the root's scope after a restart", n)
		}
	})
	bubble(t, "a session cannot be its own ancestor, and a parent that nobody opened is refused", func(t *testing.T) {
		r, _ := newAsking(t)
		r.send(r.callFrom("b", "a", "main"))
		for name, p := range map[string]core.Proposal{"its own": r.callFrom("a", "a", "main"), "a circle": r.callFrom("a", "b", "main")} {
			if err := r.eng.Propose(t.Context(), p); !refusedAs(err, events.RejectMalformed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, _, err := r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: "c", Cwd: r.dir, Parent: token("nobody")})
		if !refusedAs(err, events.RejectUnknownSession) {
			t.Error(err)
		}
		if n := len(r.eng.Sessions(events.DoorAll)); n != 2 {
			t.Errorf("%d sessions", n)
		}
	})
	bubble(t, "a call below a closed parent opens both again, and a late signal of it ends nothing", func(t *testing.T) {
		r, s := newAsking(t)
		s.answer(s.questionOf(r.send(r.callFrom("sub", "root", "main"))), events.AnswerCancel)
		r.observe(core.Observation{Signal: signal(events.SessionEnd), Native: "root"})
		synctest.Wait()
		for _, late := range []core.Signal{signal(events.SessionEnd), signal(events.UserInterrupt), core.SignalBuildChanged} {
			r.observe(core.Observation{Signal: late, Native: "sub"})
		}
		if n := len(r.eng.Sessions(events.DoorAll)); n != 0 {
			t.Fatalf("%d sessions", n)
		}
		c := r.send(r.callFrom("sub", "root", "main"))
		s.answer(s.questionOf(c), events.AnswerContinue)
		if !c.verdict().Allow || len(r.eng.Sessions(string(token("root")))) != 2 {
			t.Error(toJSON(r.eng.Sessions(events.DoorAll)))
		}
		if got := r.storyOf("sub"); got != "SessionOpened SessionClosed SessionOpened" {
			t.Error(got)
		}
	})
}

// storyOf lists what the log says of one session itself.
func (r *rig) storyOf(native string) string {
	r.t.Helper()
	var list []events.Event
	for _, m := range r.messages() {
		if m.Operation == "" && m.Session == token(native) {
			list = append(list, m.Events...)
		}
	}
	return types(list)
}

func refusedAs(err error, code events.Reject) bool {
	no := (*events.Refused)(nil)
	return errors.As(err, &no) && no.Code == code
}

// attachTo is attach with a scope.
func (r *rig) attachTo(principal, scope string) *screen {
	r.t.Helper()
	s := &screen{r, engine.Frontend{ID: engine.NewID(time.Now()), Principal: principal}}
	if reply := r.eng.Hello(s.f, scope, events.Hello{Kind: events.FrontendTUI, Capable: true}); reply.Refused != nil {
		r.t.Fatal(reply.Refused)
	}
	return s
}

func TestHelloIsCheap(t *testing.T) {
	bubble(t, "a thousand sessions and a narrow scope", func(t *testing.T) {
		r := newRig(t)
		for i := range 1000 {
			_, _, err := r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: fmt.Sprint(i), Cwd: r.dir})
			must(t, err)
		}
		if n := len(r.eng.Sessions(string(token("7")))); n != 1 {
			t.Errorf("%d sessions", n)
		}
		s := r.attach("uid:1")
		if n := testing.AllocsPerRun(10, func() { r.eng.Renew(s.f, string(token("7")), events.Renew{}) }); n > 10 {
			t.Errorf("a renewal in a narrow scope makes %v allocations", n)
		}
	})
}

// keepScope renews a screen of a narrower scope.
func keepScope(t *testing.T, s *screen, scope string) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-done:
				return
			case <-time.After(5 * time.Second):
				s.r.eng.Renew(s.f, scope, events.Renew{Input: true})
			}
		}
	}()
	t.Cleanup(func() { close(done); <-over })
}
