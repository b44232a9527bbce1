package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// inTurn proposes a call in a turn that the agent has a name for.
func (r *rig) inTurn(turn, args string) *call {
	r.t.Helper()
	p := r.proposal(args)
	p.Turn = turn
	return r.send(p)
}

// asked counts the questions that a screen has seen.
func (r *rig) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}

const asking = "hooks:\n" +
	"  - id: asks\n    event: before_tool_call\n    execution: {mode: blocking}\n    run: {type: command, argv: [asks]}\n"

func TestB83AfterANo(t *testing.T) {
	decline := func(t *testing.T, r *rig, s *screen) {
		t.Helper()
		c := r.inTurn("t1", `{"db":"prod"}`)
		q := s.question()
		ack := r.eng.Respond(t.Context(), s.f, place(q), events.Respond{
			Question: q.ID, Digest: q.Version.Digest, Answer: events.AnswerCancel, Text: "use the staging db", Human: true,
		})
		if ack.Refused != nil {
			t.Fatal(ack.Refused)
		}
		c.verdict()
	}
	isRepeat := func(t *testing.T, r *rig, c *call) {
		t.Helper()
		v := c.verdict()
		if v.Code != events.CodeDeclined || !strings.HasSuffix(v.Message, "The user's own words:\nuse the staging db") {
			t.Errorf("%+v", v)
		}
		ran := of[events.HookRan](r, c.p.Operation)[0]
		if ran.NotApplied != events.NotAppliedRepeat {
			t.Errorf("%+v", ran)
		}
	}
	t.Run("ten identical calls ask once, a changed one asks, a new message clears it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, asking)
			r.hook["asks"] = asks
			s := r.attach("uid:1")
			decline(t, r, s)
			for range 9 {
				isRepeat(t, r, r.inTurn("t1", ` { "db" : "prod" } `))
			}
			if r.asked() != 1 {
				t.Errorf("%d questions", r.asked())
			}
			changed := r.inTurn("t1", `{"db":"staging"}`)
			s.answer(s.question(), events.AnswerContinue)
			changed.verdict()
			anew := r.inTurn("t2", `{"db":"prod"}`)
			s.answer(s.question(), events.AnswerContinue)
			if v := anew.verdict(); !v.Allow {
				t.Errorf("%+v", v)
			}
			isRepeat(t, r, r.inTurn("t1", `{"db":"prod"}`))

			if v := r.sendInput(events.KindUserPrompt, `"go ahead"`).verdict(); !v.Allow {
				t.Fatalf("%+v", v)
			}
			again := r.inTurn("t1", `{"db":"prod"}`)
			s.answer(s.question(), events.AnswerContinue)
			if v := again.verdict(); !v.Allow {
				t.Errorf("%+v", v)
			}
		})
	})
	t.Run("hooks that rewrite a call anew each time do not make it another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, "hooks:\n"+entry("counts", "before_tool_call", "mode: blocking")+asking[len("hooks:\n"):])
			n := 0
			r.hook["counts"] = func(hooks.Input) hooks.Result {
				n++
				return sets(`{"n":"` + strings.Repeat("x", n) + `"}`)(hooks.Input{})
			}
			r.hook["asks"] = asks
			s := r.attach("uid:1")
			decline(t, r, s)
			if v := r.inTurn("t1", `{"db":"prod"}`).verdict(); v.Code != events.CodeDeclined || r.asked() != 1 {
				t.Errorf("%+v, %d questions", v, r.asked())
			}
		})
	})
	t.Run("F3 a restart forgets none of it", func(t *testing.T) {
		for _, how := range []string{"by the snapshot", "by the log"} {
			t.Run(how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRuled(t, engine.Options{}, asking)
					r.hook["asks"] = asks
					decline(t, r, r.attach("uid:1"))
					r.kill()
					if how == "by the log" {
						must(t, os.Remove(filepath.Join(r.dir, "snapshot")))
					}
					r.start()
					isRepeat(t, r, r.inTurn("t1", `{"db":"prod"}`))
				})
			})
		}
	})
	t.Run("without a reported turn each call is judged anew", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, asking)
			r.hook["asks"] = asks
			s := r.attach("uid:1")
			for range 2 {
				c := r.propose(`{}`)
				s.answer(s.question(), events.AnswerCancel)
				c.verdict()
			}
			if r.asked() != 2 {
				t.Errorf("%d questions", r.asked())
			}
		})
	})
}

func TestB84B85AfterOtherEnds(t *testing.T) {
	t.Run("timed_out counts for the turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{Timeout: 2 * time.Second}, asking)
			r.hook["asks"] = asks
			s := r.attach("uid:1")
			c := r.inTurn("t1", `{}`)
			s.question()
			if v := c.verdict(); v.Code != events.CodeTimedOut {
				t.Fatalf("%+v", v)
			}
			for range 9 {
				if v := r.inTurn("t1", `{}`).verdict(); v.Code != events.CodeTimedOut {
					t.Errorf("%+v", v)
				}
			}
			if r.asked() != 1 {
				t.Errorf("%d questions", r.asked())
			}
		})
	})
	for name, c := range map[string]struct {
		res  hooks.Result
		want events.Code
	}{
		"unavailable is judged anew each time":    {ask, events.CodeUnavailable},
		"a rule's refusal is judged anew as well": {hooks.Result{Effect: events.EffectBlock, Outcome: events.RunOK, Code: events.CodeBlocked}, events.CodeBlocked},
		"so is a hook that failed": {
			hooks.Result{Effect: events.EffectBlock, Outcome: events.RunFailed, Code: events.CodeHookFailed}, events.CodeHookFailed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRuled(t, engine.Options{}, asking)
				r.hook["asks"] = func(hooks.Input) hooks.Result { return c.res }
				if v := r.inTurn("t1", `{}`).verdict(); v.Code != c.want {
					t.Fatalf("%+v", v)
				}
				r.mu.Lock()
				r.hook["asks"] = nil
				r.mu.Unlock()
				if v := r.inTurn("t1", `{}`).verdict(); !v.Allow {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}

// TestB82B83B84B85FourTexts: a model can tell the four refusals apart, and each says
// that the call did not run.
func TestB82B83B84B85FourTexts(t *testing.T) {
	texts := map[string]events.Code{}
	for _, c := range []events.Code{events.CodeDeclined, events.CodeTimedOut, events.CodeUnavailable, events.CodeBlocked} {
		text := core.ModelText(core.Refusal{Code: c, Kind: events.KindToolCall})
		if other, again := texts[text]; again || !strings.Contains(text, "did not run") {
			t.Errorf("%s and %s: %q", c, other, text)
		}
		texts[text] = c
	}
}
