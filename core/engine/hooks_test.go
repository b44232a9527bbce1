package engine_test

import (
	"context"
	"errors"
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
	"github.com/fermata-hitl/fermata/events"
)

// newRuled is newRig with a hooks file of its own.
func newRuled(t *testing.T, o engine.Options, yaml string) *rig {
	t.Helper()
	r := &rig{
		t: t, dir: t.TempDir(), o: o, seen: map[events.ID]int{}, hook: map[string]func(hooks.Input) hooks.Result{},
		long: map[string]func(context.Context) hooks.Result{},
	}
	r.write(yaml)
	r.start()
	t.Cleanup(func() { r.kill() })
	return r
}

func (r *rig) write(yaml string) {
	r.t.Helper()
	file := filepath.Join(r.dir, "config", "hooks.yaml")
	must(r.t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(r.t, os.WriteFile(file, []byte("version: 1\n"+yaml), 0o600))
}

// entry is one hook of a file that runs the program of its name.
func entry(id, event, execution string) string {
	return "  - id: " + id + "\n    event: " + event + "\n    execution: {" + execution + "}\n    run: {type: command, argv: [" + id + "]}\n"
}

func (r *rig) ran() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.runs)
}

// sendInput waits for the verdict of an input.
func (r *rig) sendInput(kind events.Kind, text string) *call {
	r.t.Helper()
	p := r.proposal(text)
	p.Kind, p.Tool = kind, events.Tool{}
	return r.send(p)
}

// of lists the events of one type of an operation.
func of[E events.Event](r *rig, op events.ID) (list []E) {
	for _, ev := range r.events(op) {
		if e, ok := ev.(E); ok {
			list = append(list, e)
		}
	}
	return list
}

// until lets time go on until something holds.
func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	for range 10_000 {
		if holds() {
			return
		}
		pass(10 * time.Millisecond)
	}
	r.t.Fatalf("never: %s", what)
}

// sees records what a hook is told.
func (r *rig) sees(id string, to *[]hooks.Payload, give hooks.Result) {
	r.hook[id] = func(in hooks.Input) hooks.Result {
		r.mu.Lock()
		defer r.mu.Unlock()
		*to = append(*to, in.Payload)
		return give
	}
}

func TestWatchersOfACall(t *testing.T) {
	const rules = "hooks:\n"
	t.Run("B25 B26 B28 B31 they start behind the blocking pass, are told that nobody can be asked, and decide nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+
				entry("looks", "before_tool_call", "mode: async")+entry("asks", "before_tool_call", "mode: blocking"))
			r.attach("uid:1")
			var gate, look []hooks.Payload
			r.sees("asks", &gate, allow)
			r.sees("looks", &look, hooks.Result{Effect: events.EffectAskNotApplied, Outcome: events.RunOK, NotApplied: events.NotAppliedNonblocking})
			c := r.propose(`{"path":"a"}`)
			if v := c.verdict(); !v.Allow {
				t.Fatalf("%+v", v)
			}
			r.until("the watcher's end is on record", func() bool { return len(of[events.HookRan](r, c.p.Operation)) == 2 })
			if !slices.Equal(r.ran(), []string{"asks", "looks"}) || !gate[0].ConfirmationAvailable || look[0].ConfirmationAvailable {
				t.Errorf("%v %+v %+v", r.ran(), gate, look)
			}
			ran := of[events.HookRan](r, c.p.Operation)[1]
			if ran.Effect != events.EffectAskNotApplied || ran.NotApplied != events.NotAppliedNonblocking || ran.Mode != events.ModeAsync {
				t.Errorf("%+v", ran)
			}
			if n := len(of[events.Request](r, c.p.Operation)); n != 0 {
				t.Errorf("%d questions", n)
			}
		})
	})
	t.Run("B33 a cancel starts no further hook of the event", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+
				entry("asks", "before_tool_call", "mode: blocking")+entry("next", "before_tool_call", "mode: blocking")+
				entry("looks", "before_tool_call", "mode: fire_and_forget"))
			r.hook["asks"] = asks
			s := r.attach("uid:1")
			c := r.propose(`{"path":"a"}`)
			s.answer(s.question(), events.AnswerCancel)
			if v := c.verdict(); v.Allow || v.Code != events.CodeDeclined {
				t.Errorf("%+v", v)
			}
			pass(time.Minute)
			if !slices.Equal(r.ran(), []string{"asks"}) {
				t.Errorf("%v", r.ran())
			}
		})
	})
	t.Run("B31 B33 a block stops those that nothing waits for too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+
				entry("looks", "before_tool_call", "mode: async")+entry("blocks", "before_tool_call", "mode: blocking"))
			r.hook["blocks"] = func(hooks.Input) hooks.Result {
				return hooks.Result{Effect: events.EffectBlock, Outcome: events.RunOK, Code: events.CodeBlocked}
			}
			r.propose(`{}`).verdict()
			pass(time.Minute)
			if !slices.Equal(r.ran(), []string{"blocks"}) {
				t.Errorf("%v", r.ran())
			}
		})
	})
	t.Run("B78 an end of the core gives them their grace, then ends them", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, "settings: {shutdown_grace_seconds: 3}\n"+rules+
				entry("short", "before_tool_call", "mode: async")+entry("long", "before_tool_call", "mode: async"))
			r.long["short"] = func(ctx context.Context) hooks.Result { return lasts(ctx, 2*time.Second) }
			r.long["long"] = func(ctx context.Context) hooks.Result { return lasts(ctx, time.Hour) }
			c := r.propose(`{}`)
			c.verdict()
			began := time.Now()
			r.restart()
			if took := time.Since(began); took < 3*time.Second || took > 5*time.Second {
				t.Errorf("the end took %v", took)
			}
			ran := of[events.HookRan](r, c.p.Operation)
			if len(ran) != 2 || ran[0].Outcome != events.RunOK || ran[1].Outcome != events.RunAbandoned {
				t.Errorf("%+v", ran)
			}
		})
	})
	t.Run("B78 a stop waits for askers, not for them", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+entry("long", "before_tool_call", "mode: async"))
			r.long["long"] = func(ctx context.Context) hooks.Result { return lasts(ctx, time.Hour) }
			c := r.propose(`{}`)
			c.verdict()
			began := time.Now()
			go func() { pass(time.Second); r.eng.Gone(c.p.Operation, c.p.Secret, events.EndAgentGone) }()
			r.eng.Stop(t.Context())
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the stop took %v", took)
			}
		})
	})
	t.Run("B78 not even one that never ends holds the core", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+entry("deaf", "before_tool_call", "mode: async"))
			deaf := make(chan struct{})
			r.long["deaf"] = func(context.Context) hooks.Result { <-deaf; return allow }
			c := r.propose(`{}`)
			c.verdict()
			r.eng.Gone(c.p.Operation, c.p.Secret, events.EndAgentGone)
			began := time.Now()
			r.kill()
			if took := time.Since(began); took > 11*time.Second {
				t.Errorf("the end took %v", took)
			}
			close(deaf)
			r.start()
			r.until("its run is closed", func() bool { return len(of[events.HookRan](r, c.p.Operation)) == 1 })
			if ran := of[events.HookRan](r, c.p.Operation); ran[0].Outcome != events.RunAbandoned {
				t.Errorf("%+v", ran)
			}
		})
	})
}

// lasts is a hook that ends after d, or when it is told to.
func lasts(ctx context.Context, d time.Duration) hooks.Result {
	select {
	case <-time.After(d):
		return allow
	case <-ctx.Done():
		return hooks.Result{Effect: events.EffectError, Outcome: events.RunAbandoned}
	}
}

func TestSlots(t *testing.T) {
	t.Run("B15 a hook whose question is open holds no slot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, "settings: {max_parallel_hooks: 1}\nhooks:\n"+entry("asks", "before_tool_call", "mode: blocking"))
			s := r.attach("uid:1")
			r.hook["asks"] = asks
			c := r.propose(`{"path":"a"}`)
			q := s.question()
			r.mu.Lock()
			r.hook["asks"] = nil
			r.mu.Unlock()
			if v := r.propose(`{"path":"b"}`).verdict(); !v.Allow {
				t.Errorf("%+v", v)
			}
			s.answer(q, events.AnswerContinue)
			if v := c.verdict(); !v.Allow {
				t.Errorf("%+v", v)
			}
		})
	})
	t.Run("first come, first served; the wait is recorded and is not the hook's time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, "settings: {max_parallel_hooks: 2}\nhooks:\n"+entry("slow", "before_tool_call", "mode: blocking"))
			most, now := 0, 0
			r.long["slow"] = func(ctx context.Context) hooks.Result {
				r.mu.Lock()
				now++
				most = max(most, now)
				r.mu.Unlock()
				defer func() { r.mu.Lock(); now--; r.mu.Unlock() }()
				res := lasts(ctx, 1900*time.Millisecond)
				res.Duration = 1900 * time.Millisecond
				return res
			}
			var calls []*call
			for range 8 {
				calls = append(calls, r.propose(`{}`))
				pass(time.Millisecond)
			}
			for i, c := range calls {
				if v := c.verdict(); !v.Allow {
					t.Fatalf("%+v", v)
				}
				ran := of[events.HookRan](r, c.p.Operation)[0]
				if waited := time.Duration(ran.Waited) * time.Microsecond; waited.Round(2*time.Second) != time.Duration(i/2)*2*time.Second || ran.Micros != 1_900_000 {
					t.Errorf("call %d waited %v, ran %d µs", i, waited, ran.Micros)
				}
			}
			if most != 2 {
				t.Errorf("%d ran beside each other", most)
			}
		})
	})
	t.Run("rules without a program need none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, "settings: {max_parallel_hooks: 1}\nhooks:\n"+
				"  - {id: rule, event: before_tool_call, execution: {mode: blocking}, run: {type: verdict, action: allow}}\n"+
				entry("slow", "before_tool_call", "mode: async"))
			r.long["slow"] = func(ctx context.Context) hooks.Result { return lasts(ctx, time.Hour) }
			r.propose(`{}`).verdict()
			began := time.Now()
			r.propose(`{}`).verdict()
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %v", took)
			}
		})
	})
	t.Run("whoever is withdrawn while it waits in line gives its place up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, "settings: {max_parallel_hooks: 1}\nhooks:\n"+entry("slow", "before_tool_call", "mode: blocking"))
			r.long["slow"] = func(ctx context.Context) hooks.Result { return lasts(ctx, 10*time.Second) }
			first := r.propose(`{}`)
			synctest.Wait() // it has the place
			second := r.propose(`{}`)
			synctest.Wait()
			third := r.propose(`{}`)
			must(t, r.eng.Withdraw(t.Context(), second.p.Operation, second.p.Secret, events.EndCallerCancelled))
			if v := second.verdict(); v.EndReason != events.EndCallerCancelled {
				t.Errorf("%+v", v)
			}
			first.verdict()
			third.verdict()
			r.until("the run that did not start is closed", func() bool { return len(of[events.HookRan](r, second.p.Operation)) == 1 })
			if len(r.ran()) != 2 {
				t.Errorf("%v", r.ran())
			}
		})
	})
}

func TestInputsAtTheGate(t *testing.T) {
	const rules = "hooks:\n"
	prompt := entry("checks", "user_prompt_submit", "mode: blocking")
	t.Run("B23 B54 B91 each kind of input is told by its name", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+prompt)
			var seen []hooks.Payload
			r.sees("checks", &seen, hooks.Result{Effect: events.EffectAllow, Outcome: events.RunOK, Reminder: "be brief"})
			for _, kind := range []events.Kind{events.KindUserPrompt, events.KindInjection, events.KindRetryNote} {
				v := r.sendInput(kind, `"fix \u0041"`).verdict()
				if !v.Allow || v.Kind != kind || string(v.Args) != `"fix A"` || v.Reminder != "be brief" {
					t.Errorf("%+v", v)
				}
			}
			for i, want := range []string{"prompt", "injection", "retry_note"} {
				p := seen[i]
				if p.Input != want || string(p.Text) != `"fix A"` || p.Injected != (want == "injection") || p.Args != nil || p.Event != events.UserPromptSubmit {
					t.Errorf("%+v", p)
				}
			}
		})
	})
	t.Run("B40 B90 a declined prompt comes back, and its reminder does not count", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+prompt)
			s := r.attach("uid:1")
			r.hook["checks"] = func(hooks.Input) hooks.Result { res := ask; res.Reminder = "be brief"; return res }
			c := r.sendInput(events.KindUserPrompt, `"fix\nthe cache"`)
			s.answer(s.question(), events.AnswerCancel)
			if v := c.verdict(); v.Allow || string(v.Args) != `"fix\nthe cache"` || v.Reminder != "" || v.Kind != events.KindUserPrompt {
				t.Errorf("%+v", v)
			}
			c = r.sendInput(events.KindUserPrompt, `"fix\nthe cache"`)
			s.answer(s.question(), events.AnswerContinue)
			if v := c.verdict(); !v.Allow || v.Reminder != "be brief" {
				t.Errorf("%+v", v)
			}
		})
	})
	t.Run("B60 B69 B58 an input is pending until it commits, and commits once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+prompt)
			p := r.proposal(`"x"`)
			p.Kind, p.Tool = events.KindInjection, events.Tool{}
			must(t, r.eng.Propose(t.Context(), p))
			v, err := r.eng.Await(t.Context(), p.Operation, p.Secret)
			must(t, err)
			if found := r.eng.Find(t.Context(), events.Find{Operation: p.Operation}); found.State != "committed" {
				t.Errorf("%+v", found)
			}
			must(t, r.eng.Commit(t.Context(), p.Operation, p.Secret, v.Version.Digest, ""))
			r.eng.Gone(p.Operation, p.Secret, events.EndAgentGone)
			if n := len(of[events.OperationDelivered](r, p.Operation)); n != 1 {
				t.Errorf("%d deliveries", n)
			}
		})
	})
	t.Run("B94 after a refusal the next prompt works", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+prompt)
			r.hook["checks"] = asks
			if v := r.sendInput(events.KindUserPrompt, `"x"`).verdict(); v.Code != events.CodeUnavailable {
				t.Fatalf("%+v", v)
			}
			r.mu.Lock()
			r.hook["checks"] = nil
			r.mu.Unlock()
			if v := r.sendInput(events.KindUserPrompt, `"x"`).verdict(); !v.Allow {
				t.Errorf("%+v", v)
			}
		})
	})
}

func TestCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "hooks:\n"+entry("after", "after_tool_call", "mode: blocking"))
		var seen []hooks.Payload
		r.sees("after", &seen, allow)
		granted := func() (core.Proposal, core.Verdict) {
			p := r.proposal(`{"a":1}`)
			must(t, r.eng.Propose(t.Context(), p))
			v, err := r.eng.Await(t.Context(), p.Operation, p.Secret)
			must(t, err)
			return p, v
		}
		other := events.DigestOf([]byte(`{"a":{"b":2}}`))
		p, v := granted()
		wantRefused(t, r.eng.Commit(t.Context(), p.Operation, p.Secret, "", ""), events.RejectMalformed)
		wantRefused(t, r.eng.Commit(t.Context(), p.Operation, "another secret here", v.Version.Digest, ""), events.RejectNotYours)
		must(t, r.eng.Commit(t.Context(), p.Operation, p.Secret, v.Version.Digest, ""))
		must(t, r.eng.Commit(t.Context(), p.Operation, p.Secret, v.Version.Digest, ""))
		wantRefused(t, r.eng.Commit(t.Context(), p.Operation, p.Secret, other, ""), events.RejectStaleVersion)

		t.Log("B61 B62 B68 B86: another version ends the operation, and says so to the model")
		p, v = granted()
		wantRefused(t, r.eng.Commit(t.Context(), p.Operation, p.Secret, other, ""), events.RejectStaleVersion)
		refused, err := r.eng.Await(t.Context(), p.Operation, p.Secret)
		must(t, err)
		if refused.Allow || refused.Code != events.CodeChangedAfterCheck || !strings.Contains(refused.Message, "did not run") {
			t.Errorf("%+v", refused)
		}
		wantRefused(t, r.eng.Commit(t.Context(), p.Operation, p.Secret, v.Version.Digest, ""), events.RejectNotAllowed)
		r.until("its end is told", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(seen) == 1 })
		if res := seen[0].Result; res.Text != refused.Message || !res.ApprovalRejected || res.HookConfirmation != "" {
			t.Errorf("%+v", res)
		}

		p, v = granted()
		must(t, r.eng.Withdraw(t.Context(), p.Operation, p.Secret, events.EndCallerCancelled))
		wantRefused(t, r.eng.Commit(t.Context(), p.Operation, p.Secret, v.Version.Digest, ""), events.RejectWithdrawn)
		wantRefused(t, r.eng.Withdraw(t.Context(), p.Operation, p.Secret, events.EndDeadline), events.RejectMalformed)
	})
}

func wantRefused(t *testing.T, err error, code events.Reject) {
	t.Helper()
	if r, ok := errors.AsType[*events.Refused](err); !ok || r.Code != code {
		t.Errorf("%v, want %s", err, code)
	}
}
