package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// letGo has a call delivered and its connection gone, as agent-hook leaves it.
func (r *rig) letGo(p core.Proposal) events.ID {
	r.t.Helper()
	c := r.send(p)
	if v := c.verdict(); !v.Allow {
		r.t.Fatal(toJSON(v))
	}
	r.eng.Gone(p.Operation, p.Secret, events.EndAgentGone)
	return p.Operation
}

// outcomes lists what the log says became of an operation.
func (r *rig) outcomes(op events.ID) string {
	r.t.Helper()
	synctest.Wait()
	var list []string
	for _, ev := range r.events(op) {
		if f, ok := ev.(events.OperationFinished); ok {
			list = append(list, string(f.Outcome))
		}
	}
	return strings.Join(list, " ")
}

func (r *rig) called(turn, path, callID, args string) core.Proposal {
	p := r.proposal(args)
	p.Turn, p.Path, p.Tool.CallID = turn, path, callID
	return p
}

func TestF12Unreported(t *testing.T) {
	for name, c := range map[string]struct {
		o    core.Observation
		want string // of the call in t1, of one in t2
	}{
		"its turn's end":               {core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"}, "unknown,"},
		"an interrupt":                 {core.Observation{Signal: signal(events.UserInterrupt), Turn: "t1"}, "unknown,"},
		"the session's end":            {core.Observation{Signal: signal(events.SessionEnd)}, "unknown,unknown"},
		"the end of its run":           {core.Observation{Signal: signal(events.SubAgentEnd), Path: "main > sub#1"}, "unknown,"},
		"a change of the model is not": {core.Observation{Signal: core.SignalBuildChanged}, ","},
	} {
		for _, crash := range []bool{false, true} {
			bubble(t, fmt.Sprintf("F12 a call that nobody reported ends as unknown with %s; restarted before: %v", name, crash), func(t *testing.T) {
				r := newRig(t)
				first := r.letGo(r.called("t1", "main > sub#1", "c1", `{"n":1}`))
				second := r.letGo(r.called("t2", "main", "c2", `{"n":2}`))
				if crash {
					r.restart()
				}
				r.observe(c.o)
				r.observe(c.o)
				if got := r.outcomes(first) + "," + r.outcomes(second); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		}
	}
	bubble(t, "F12 what is submitted has no outcome, and what was reported keeps its own", func(t *testing.T) {
		r := newRig(t)
		said := r.letGo(r.inputIn(events.KindUserPrompt, "t1"))
		p := r.called("t1", "main", "c1", `{}`)
		done := r.letGo(p)
		_, err := r.eng.Finish(t.Context(), core.Finished{Operation: done, Secret: p.Secret, Outcome: events.OutcomeOK})
		must(t, err)
		r.observe(core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"})
		r.observe(core.Observation{Signal: signal(events.SessionEnd)})
		if a, b := r.outcomes(said), r.outcomes(done); a != "" || b != "ok" {
			t.Errorf("%q %q", a, b)
		}
	})
	bubble(t, "F12 HAND-12 a parent's end tells of its children's calls too", func(t *testing.T) {
		r := newRig(t)
		below := r.letGo(r.callFrom("sub", "root", "main > sub#1"))
		r.observe(core.Observation{Signal: signal(events.SessionEnd), Native: "root"})
		if got := r.outcomes(below); got != "unknown" {
			t.Error(got)
		}
	})
}

// TestF12TheReceiptThatACrashMayHaveLost: what was committed before a crash, and
// whose asker has not come back, may have run. Whatever ends it, nobody says that
// it did not.
func TestF12TheReceiptThatACrashMayHaveLost(t *testing.T) {
	for name, o := range map[string]core.Observation{
		"the session's end": {Signal: signal(events.SessionEnd)},
		"its turn's end":    {Signal: signal(events.AfterTurn), Turn: "t1"},
		"an interrupt":      {Signal: signal(events.UserInterrupt)},
		"another model":     {Signal: core.SignalBuildChanged},
		"nothing":           {Signal: signal(events.PreCompact)},
	} {
		bubble(t, "F12 F3 a committed call without a receipt ends as unknown after a crash: "+name, func(t *testing.T) {
			r := newRig(t)
			p := r.called("t1", "main", "c1", `{"n":1}`)
			must(t, r.eng.Propose(t.Context(), p))
			v, err := r.eng.Await(t.Context(), p.Operation, p.Secret)
			if err != nil || !v.Allow {
				t.Fatal(toJSON(v), err)
			}
			r.restart()
			r.observe(o)
			pass(engine.AskerReturn + time.Second)
			if got := r.outcomes(p.Operation); got != "unknown" {
				t.Errorf("%q: %s", got, types(r.events(p.Operation)))
			}
		})
	}
}

// TestF12MoreThanMemoryKeeps: what memory forgot of a session is looked up in the
// log when it matters, also by the next core, with its snapshot and without.
func TestF12MoreThanMemoryKeeps(t *testing.T) {
	for name, between := range map[string]func(r *rig){
		"one core":                        func(*rig) {},
		"the next core":                   func(r *rig) { r.restart() },
		"the next core, without snapshot": func(r *rig) { r.kill(); must(r.t, os.Remove(filepath.Join(r.dir, "snapshot"))); r.start() },
	} {
		bubble(t, "F12 of more calls than are kept each ends as unknown, once, with its turn; "+name, func(t *testing.T) {
			r := newRuled(t, engine.Options{Unreported: 3}, "hooks: []\n")
			var first, second []events.ID
			for i := range 6 {
				first = append(first, r.letGo(r.called("t1", "main", "", fmt.Sprintf(`{"n":%d}`, i))))
			}
			p := r.called("t1", "main", "", `{}`)
			told := r.letGo(p)
			_, err := r.eng.Finish(t.Context(), core.Finished{Operation: told, Secret: p.Secret, Outcome: events.OutcomeOK})
			must(t, err)
			for i := range 4 {
				second = append(second, r.letGo(r.called("t2", "main", "", fmt.Sprintf(`{"n":%d}`, i))))
			}
			between(r)
			check := func(list []events.ID, want string) {
				t.Helper()
				for i, op := range list {
					if got := r.outcomes(op); got != want {
						t.Errorf("call %d: %q, want %q", i, got, want)
					}
				}
			}
			r.observe(core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"})
			check(first, "unknown")
			check(second, "")
			between(r)
			r.observe(core.Observation{Signal: signal(events.SessionEnd)})
			between(r)
			check(first, "unknown")
			check(second, "unknown")
			check([]events.ID{told}, "ok")
		})
	}
}

func TestToolsEnd(t *testing.T) {
	end := func(e events.HookEvent, callID, args string) core.Observation {
		return core.Observation{
			Signal: signal(e), Tool: events.Tool{Name: "write", Kind: "filesystem.write", CallID: callID}, Args: []byte(args),
			Result: &core.ToolResult{Text: "done"},
		}
	}
	bubble(t, "F11 a tool's end is found by the operation, by the agent's id of the call, or by the only one with its arguments", func(t *testing.T) {
		r := newRig(t)
		byID := r.letGo(r.called("t1", "main", "c1", `{"n":1}`))
		byCall := r.letGo(r.called("t1", "main", "c2", `{"n":1}`))
		byArgs := r.letGo(r.called("t1", "main", "", `{"n": 3.0}`))
		twin, other := r.letGo(r.called("t1", "main", "", `{"n":4}`)), r.letGo(r.called("t1", "main", "", `{"n":4}`))
		o := end(events.AfterToolCall, "", `{"n":1}`)
		o.Operation = byID
		r.observe(o)
		r.observe(end(events.AfterToolCall, "c2", `{"n":99}`)) // what ran is another version, and says so
		r.observe(end(events.AfterToolCall, "", `{ "n":3.0 }`))
		r.observe(end(events.AfterToolCall, "", `{"n":4}`)) // either of two: of neither is it known
		r.observe(end(events.AfterToolCall, "never seen", `{"n":1}`))
		for op, want := range map[events.ID]string{byID: "ok", byCall: "ok", byArgs: "ok", twin: "", other: ""} {
			if got := r.outcomes(op); got != want {
				t.Errorf("%s: %q, want %q", op, got, want)
			}
		}
		if ran := of[events.OperationFinished](r, byCall)[0].Ran; ran != events.DigestOf([]byte(`{"n":99}`)) {
			t.Errorf("ran %s", ran)
		}
	})
	bubble(t, "F12 a report may still come after the turn's end, once, and after a restart too", func(t *testing.T) {
		r := newRig(t)
		op := r.letGo(r.called("t1", "main", "c1", `{"n":1}`))
		r.observe(core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"})
		r.restart()
		synctest.Wait()
		o := end(events.ToolError, "c1", `{"n":1}`)
		o.Result = &core.ToolResult{Error: "no such file"}
		r.observe(o)
		r.observe(o)
		if got := r.outcomes(op); got != "unknown failed" {
			t.Error(got)
		}
	})
	bubble(t, "a tool's end that no call was asked for still reaches its hooks, and their words the model", func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "hooks:\n"+entry("look", "after_tool_call", "mode: blocking")+
			entry("err", "tool_error", "mode: blocking"))
		for id, words := range map[string]string{"look": "mind the gap", "err": "try again"} {
			r.hook[id] = func(hooks.Input) hooks.Result {
				return hooks.Result{Effect: events.EffectAllow, Outcome: events.RunOK, Context: words}
			}
		}
		o := end(events.AfterToolCall, "c9", `{}`)
		o.Result.Error = "broken"
		if heard := r.observe(o); heard.Context != "mind the gap\n\ntry again" {
			t.Errorf("%q", heard.Context)
		}
		if got := r.story(); got != "SessionOpened HookStarted HookRan HookStarted HookRan" {
			t.Error(got)
		}
	})
}

// left are the sessions that have left memory.
type left struct {
	mu   sync.Mutex
	list []events.SessionHead
}

func (l *left) add(h events.SessionHead) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, h)
}

func (l *left) heads() []events.SessionHead {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list
}

func TestSessionsLeave(t *testing.T) {
	start := func(t *testing.T) (*rig, *left) {
		l := &left{}
		r := newRuled(t, engine.Options{OnLeave: l.add}, "hooks:\n"+entry("h1", "before_tool_call", "mode: blocking"))
		return r, l
	}
	bubble(t, "B74 a session that ended is no longer listed, says so last, and leaves after a minute", func(t *testing.T) {
		r, l := start(t)
		r.letGo(r.called("t1", "main", "c1", `{}`))
		before := r.eng.Sessions(events.DoorAll)[0].Feed
		r.observe(core.Observation{Signal: signal(events.SessionEnd)})
		synctest.Wait()
		r.mu.Lock()
		newest := r.live[len(r.live)-1]
		r.mu.Unlock()
		if newest.Session == nil || !newest.Session.Closed {
			t.Errorf("the last message of the feed is %s", toJSON(newest))
		}
		if list := r.eng.Sessions(events.DoorAll); len(list) != 0 || len(l.heads()) != 0 {
			t.Errorf("%s, left %d", toJSON(list), len(l.heads()))
		}
		pass(3 * time.Minute)
		if len(l.heads()) != 1 || !l.heads()[0].Closed || l.heads()[0].Session != token("s1") {
			t.Errorf("left: %s", toJSON(l.heads()))
		}
		r.letGo(r.called("t1", "main", "c1", `{}`))
		if got := r.story(); got != "SessionOpened SessionClosed SessionOpened" {
			t.Error(got)
		}
		if h := r.eng.Sessions(events.DoorAll)[0]; h.Feed <= before {
			t.Errorf("its feed begins again at %d, below what frontends know", h.Feed)
		}
	})
	bubble(t, "F12 a day without a sign and nothing open: gone, and its calls are unknown", func(t *testing.T) {
		r, l := start(t)
		op := r.letGo(r.callFrom("sub", "root", "main > sub#1"))
		pass(2 * time.Hour)
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Native: "sub", Turn: "t1"})
		pass(23 * time.Hour) // a parent stands as long as its child
		if n := len(r.eng.Sessions(events.DoorAll)); n != 2 {
			t.Fatalf("%d sessions", n)
		}
		pass(70 * time.Minute)
		if got := r.outcomes(op); got != "unknown" {
			t.Error(got)
		}
		for _, native := range []string{"root", "sub"} {
			if got := r.storyOf(native); !strings.HasSuffix(got, "SessionClosed") {
				t.Errorf("%s: %s", native, got)
			}
		}
		if len(l.heads()) != 2 || len(r.eng.Sessions(events.DoorAll)) != 0 {
			t.Errorf("left: %s", toJSON(l.heads()))
		}
		for _, m := range r.messages() {
			for _, ev := range m.Events {
				if c, ok := ev.(events.SessionClosed); ok && c.Reason != events.EndAgentGone {
					t.Errorf("closed: %s", c.Reason)
				}
			}
		}
	})
	bubble(t, "a question that is open keeps its session, however long", func(t *testing.T) {
		r, l := start(t)
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		c := r.send(r.callFrom("sub", "root", "main"))
		q := s.questionOf(c)
		pass(25 * time.Hour)
		if n := len(r.eng.Sessions(events.DoorAll)); n != 2 || len(l.heads()) != 0 {
			t.Fatalf("%d sessions, %d left", n, len(l.heads()))
		}
		if s.answer(q, events.AnswerContinue); !c.verdict().Allow {
			t.Error("refused")
		}
		pass(2 * time.Minute)
		if n := len(r.eng.Sessions(events.DoorAll)); n != 2 {
			t.Errorf("%d sessions right after the answer", n)
		}
	})
	bubble(t, "a session that a frontend has for its scope stays within its reach", func(t *testing.T) {
		r, l := start(t)
		r.letGo(r.called("", "main", "", `{}`))
		s := r.attachTo("uid:1", string(token("s1")))
		keepScope(t, s, string(token("s1")))
		r.observe(core.Observation{Signal: signal(events.SessionEnd)})
		pass(5 * time.Minute)
		if len(l.heads()) != 0 {
			t.Fatal("it left")
		}
		r.eng.Bye(s.f)
		pass(2 * time.Minute)
		if len(l.heads()) != 1 {
			t.Errorf("left: %d", len(l.heads()))
		}
	})
	bubble(t, "B94 calls that come while a session leaves open it again, each once", func(t *testing.T) {
		r, _ := start(t)
		for i := range 40 {
			r.letGo(r.called("", "main", "", `{}`))
			r.observe(core.Observation{Signal: signal(events.SessionEnd)})
			pass(time.Minute + time.Duration(i)*3*time.Second)
		}
		opened, closed := strings.Count(r.story(), "SessionOpened"), strings.Count(r.story(), "SessionClosed")
		if opened != 40 || closed != 40 {
			t.Errorf("%d openings, %d ends", opened, closed)
		}
	})
}
