package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// ruleByName lets rules without a program decide by their name, as the runner
// would by their action.
func (r *rig) ruleByName() {
	for id, res := range map[string]hooks.Result{
		"allow": allow, "ask": ask, "block": {Effect: events.EffectBlock, Outcome: events.RunOK, Code: events.CodeBlocked},
	} {
		r.hook[id] = func(hooks.Input) hooks.Result { return res }
	}
}

// chain starts a core with these hooks, in order, and a screen.
func chain(t *testing.T, list ...string) (*rig, *screen) {
	t.Helper()
	yaml := "hooks:\n"
	for _, id := range list {
		yaml += entry(id, "before_tool_call", "mode: blocking")
	}
	r := newRuled(t, engine.Options{}, yaml)
	s := r.attach("uid:1")
	keep(t, s)
	return r, s
}

// runsOnce checks that what was committed is the version that the last yes was
// about, and that it was committed once.
func runsOnce(t *testing.T, r *rig, c *call, want string) {
	t.Helper()
	v := c.verdict()
	if !v.Allow || string(v.Args) != want {
		t.Fatalf("%+v", v)
	}
	commits, yes := of[events.OperationCommitted](r, c.p.Operation), of[events.Response](r, c.p.Operation)
	if len(commits) != 1 || commits[0].Version.Digest != yes[len(yes)-1].Digest {
		t.Errorf("%+v %+v", commits, yes)
	}
}

func TestB42ChangedAfterTheYes(t *testing.T) {
	t.Run("B46 i: the repeated question lists path a to b, and b runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := chain(t, "h1", "h2")
			r.hook["h1"], r.hook["h2"] = asks, sets(`{"path":"b"}`)
			c := r.propose(`{"path":"a"}`)
			q := s.question()
			if string(q.Args) != `{"path":"a"}` || q.Attempt != 0 {
				t.Errorf("%+v", q)
			}
			s.answer(q, events.AnswerContinue)
			q = s.next(q)
			want := []events.Change{{Name: "path", Old: []byte(`"a"`), New: []byte(`"b"`)}}
			if diff := cmp.Diff(want, q.Changed); diff != "" || q.Attempt != 1 {
				t.Errorf("%s %+v", diff, q)
			}
			s.answer(q, events.AnswerContinue)
			runsOnce(t, r, c, `{"path":"b"}`)
		})
	})
	t.Run("B49 ii: one that flips back and forth is refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := chain(t, "h1", "h2")
			r.hook["h1"] = asks
			r.hook["h2"] = func(in hooks.Input) hooks.Result {
				if string(in.Payload.Args) == `{"path":"a"}` {
					return sets(`{"path":"b"}`)(in)
				}
				return sets(`{"path":"a"}`)(in)
			}
			c := r.propose(`{"path":"a"}`)
			q := s.question()
			s.answer(q, events.AnswerContinue)
			s.answer(s.next(q), events.AnswerContinue)
			if v := c.verdict(); v.Code != events.CodeRecheckCycle || !strings.Contains(v.Message, "kept changing") {
				t.Errorf("%+v", v)
			}
		})
	})
	t.Run("B48 iii: one that counts on is refused after three rechecks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := chain(t, "h1", "h2")
			r.hook["h1"] = asks
			n := 0
			r.hook["h2"] = func(in hooks.Input) hooks.Result { n++; return sets(fmt.Sprintf(`{"n":%d}`, n))(in) }
			c := r.propose(`{"path":"a"}`)
			q := s.question()
			s.answer(q, events.AnswerContinue)
			for range 3 {
				q = s.next(q)
				s.answer(q, events.AnswerContinue)
			}
			if v := c.verdict(); v.Code != events.CodeRecheckLimit || len(of[events.OperationCommitted](r, c.p.Operation)) != 0 {
				t.Errorf("%+v", v)
			}
		})
	})
	t.Run("B44 iv: a change in front of the ask is one question, about b", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := chain(t, "h2", "h1")
			r.hook["h1"], r.hook["h2"] = asks, sets(`{"path":"b"}`)
			c := r.propose(`{"path":"a"}`)
			q := s.question()
			if string(q.Args) != `{"path":"b"}` {
				t.Errorf("%s", q.Args)
			}
			s.answer(q, events.AnswerContinue)
			runsOnce(t, r, c, `{"path":"b"}`)
			if r.asked() != 1 {
				t.Errorf("%d questions", r.asked())
			}
		})
	})
	t.Run("B38 v: an ask together with new arguments shows the new ones, and they run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := chain(t, "h1", "silent")
			r.hook["h1"] = func(hooks.Input) hooks.Result { res := ask; res.Override = []byte(`{"path":"b"}`); return res }
			c := r.propose(`{"path":"a"}`)
			q := s.question()
			if string(q.Args) != `{"path":"b"}` {
				t.Errorf("%s", q.Args)
			}
			s.answer(q, events.AnswerContinue)
			runsOnce(t, r, c, `{"path":"b"}`)
		})
	})
}

// next waits for a question that is not the one before.
func (s *screen) next(before events.Question) events.Question {
	s.r.t.Helper()
	for {
		if q := s.question(); q.ID != before.ID {
			return q
		}
		pass(time.Millisecond)
	}
}

func TestB35AFailureIsNoConsent(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(hooks.Input) hooks.Result
		code events.Code
	}{
		"a failure":            {fails(events.CodeHookFailed, "exit status 3"), events.CodeHookFailed},
		"a time-out":           {fails(events.CodeHookTimedOut, "it did not end within 2s"), events.CodeHookTimedOut},
		"no program":           {fails(events.CodeHookMissing, "exit status 127"), events.CodeHookMissing},
		"the core's own panic": {func(hooks.Input) hooks.Result { panic("on purpose") }, events.CodeHookFailed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _ := chain(t, "h1")
				r.hook["h1"] = c.run
				call := r.propose(`{}`)
				v := call.verdict()
				if v.Allow || v.Code != c.code || !strings.Contains(v.Message, `hook "h1", global`) || !strings.Contains(v.Message, "hooks.yaml") {
					t.Errorf("%+v", v)
				}
			})
		})
	}
	t.Run("B14 the time that a person needs is not the hook's", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, "hooks:\n"+entry("h1", "before_tool_call", "mode: blocking, timeout_seconds: 2"))
			s := r.attach("uid:1")
			keep(t, s)
			r.hook["h1"] = asks
			c := r.propose(`{}`)
			q := s.question()
			pass(30 * time.Second)
			s.answer(q, events.AnswerContinue)
			if v := c.verdict(); !v.Allow {
				t.Errorf("%+v", v)
			}
		})
	})
}

func fails(code events.Code, cause string) func(hooks.Input) hooks.Result {
	return func(hooks.Input) hooks.Result {
		h := hooks.Hook{
			Ref:  events.Hook{ID: "h1", Scope: events.ScopeGlobal, File: "hooks.yaml", Line: 3},
			Mode: hooks.Blocking, Event: events.BeforeToolCall, OnError: hooks.OnErrorBlock,
		}
		return hooks.Failure(h, code, cause)
	}
}

func TestB35RulesThatAreNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := chain(t, "h1")
		rules := &swayed{}
		r.kill()
		r.rulesAre = func(given engine.Rules) engine.Rules { rules.Rules = given; return rules }
		r.start()
		s := r.attach("uid:1")
		keep(t, s)
		r.hook["h1"] = asks
		open := r.propose(`{}`)
		q := s.question()
		rules.err = notTrusted{errors.New("the project's hooks have changed; run fermata hooks trust")}
		if v := r.propose(`{}`).verdict(); v.Code != events.CodeNotTrusted || !strings.Contains(v.Message, "hooks trust") {
			t.Errorf("%+v", v)
		}
		s.answer(q, events.AnswerContinue)
		if v := open.verdict(); v.Code != events.CodeNotTrusted {
			t.Errorf("at its commit: %+v", v)
		}
	})
}

// swayed are rules that somebody changed without a yes.
type swayed struct {
	engine.Rules
	err error
}

type notTrusted struct{ error }

func (notTrusted) Code() events.Code { return events.CodeNotTrusted }

func (s *swayed) For(cwd string) (*hooks.Set, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.Rules.For(cwd)
}
