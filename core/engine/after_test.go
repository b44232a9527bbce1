package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// refusals are the ways in which a question ends a call, and the word for each.
var refusals = []struct {
	name string
	end  func(r *rig, c *call)
	want string
}{
	{"declined", func(r *rig, _ *call) { s := r.attach("uid:1"); s.answer(s.question(), events.AnswerCancel) }, "declined"},
	{"timed out", func(r *rig, _ *call) { r.attach("uid:1").question() }, "timed_out"},
	{"nobody there", func(*rig, *call) {}, "unavailable"},
}

func TestB87B88B89ToolHooksHearOfARefusedCall(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRuled(t, engine.Options{Timeout: time.Minute, WhenNobody: events.NobodyWait}, "hooks:\n"+
					entry("sets", "before_tool_call", "mode: blocking")+entry("asks", "before_tool_call", "mode: blocking")+
					entry("after", "after_tool_call", "mode: blocking")+entry("looks", "after_tool_call", "mode: async"))
				r.hook["sets"] = sets(`{"path":"b"}`)
				r.hook["asks"] = asks
				if c.want == "unavailable" {
					r.kill()
					r.o.WhenNobody = events.NobodyReject
					r.start()
				}
				var seen []hooks.Payload
				r.sees("after", &seen, allow)
				call := r.propose(`{"path":"a"}`)
				c.end(r, call)
				v := call.verdict()
				r.until("both have ended", func() bool { return len(of[events.HookRan](r, call.p.Operation)) == 4 })
				want := &hooks.ResultPayload{
					Text: v.Message, Failed: true, ApprovalRejected: true, RejectionSource: "hook", HookDenied: true, HookConfirmation: c.want,
				}
				if diff := cmp.Diff(want, seen[0].Result); diff != "" {
					t.Error(diff)
				}
				if p := seen[0]; string(p.Args) != `{"path":"b"}` || p.Tool.Name != "write" || p.OperationID != call.p.Operation || p.Event != events.AfterToolCall {
					t.Errorf("%+v", p)
				}
				if !slices.Equal(r.ran(), []string{"sets", "asks", "after", "looks"}) {
					t.Errorf("%v", r.ran())
				}
				for _, ran := range of[events.HookRan](r, call.p.Operation)[2:] {
					if ran.Event != events.AfterToolCall {
						t.Errorf("%+v", ran)
					}
				}
			})
		})
	}
	t.Run("B88 a block is no confirmation", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, "hooks:\n"+entry("blocks", "before_tool_call", "mode: blocking")+entry("after", "after_tool_call", "mode: blocking"))
			r.hook["blocks"] = func(hooks.Input) hooks.Result {
				return hooks.Result{Effect: events.EffectBlock, Outcome: events.RunOK, Code: events.CodeBlocked, Reason: "no"}
			}
			var seen []hooks.Payload
			r.sees("after", &seen, allow)
			r.propose(`{}`).verdict()
			r.until("it is told", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(seen) == 1 })
			if res := seen[0].Result; !res.HookDenied || res.HookConfirmation != "" || !strings.Contains(res.Text, "did not run") {
				t.Errorf("%+v", res)
			}
		})
	})
	t.Run("a call that was withdrawn was not refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, "hooks:\n"+entry("slow", "before_tool_call", "mode: blocking")+entry("after", "after_tool_call", "mode: blocking"))
			r.long["slow"] = func(ctx context.Context) hooks.Result { return lasts(ctx, time.Hour) }
			c := r.propose(`{}`)
			must(t, r.eng.Withdraw(t.Context(), c.p.Operation, c.p.Secret, events.EndCallerCancelled))
			c.verdict()
			pass(time.Minute)
			if !slices.Equal(r.ran(), []string{"slow"}) {
				t.Errorf("%v", r.ran())
			}
		})
	})
}

// says is what a hook on a tool's end wants the model to read.
func says(text string) func(hooks.Input) hooks.Result {
	return func(hooks.Input) hooks.Result {
		return hooks.Result{Effect: events.EffectAllow, Outcome: events.RunOK, Context: text}
	}
}

func TestFinishTellsTheHooks(t *testing.T) {
	const rules = "hooks:\n"
	finish := func(r *rig, c *call, o events.Outcome, res *core.ToolResult) core.Heard {
		r.t.Helper()
		h, err := r.eng.Finish(r.t.Context(), core.Finished{
			Operation: c.p.Operation, Secret: c.p.Secret, Outcome: o, Ran: events.DigestOf([]byte(`{}`)), Result: res,
		})
		must(r.t, err)
		return h
	}
	t.Run("B87 in order, once, and returns what they say", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+
				entry("looks", "after_tool_call", "mode: async")+entry("one", "after_tool_call", "mode: blocking")+
				entry("two", "after_tool_call", "mode: blocking")+entry("fails", "tool_error", "mode: blocking"))
			r.hook["one"], r.hook["two"], r.hook["fails"] = says("one"), says("two"), says("three")
			var seen []hooks.Payload
			r.sees("looks", &seen, allow)
			c := r.propose(`{}`)
			c.verdict()
			r.eng.Gone(c.p.Operation, c.p.Secret, events.EndAgentGone) // it leaves memory
			res := &core.ToolResult{Text: "out", Error: "no such file", Duration: 3 * time.Millisecond}
			if h := finish(r, c, events.OutcomeFailed, res); h.Context != "one\n\ntwo\n\nthree" {
				t.Errorf("%q", h.Context)
			}
			if h := finish(r, c, events.OutcomeFailed, res); h.Context != "" {
				t.Errorf("the same report again says %q", h.Context)
			}
			r.until("the watcher's end is on record", func() bool { return len(of[events.HookRan](r, c.p.Operation)) == 4 })
			want := &hooks.ResultPayload{Text: "out", Error: "no such file", Failed: true, DurationMS: 3}
			if diff := cmp.Diff(want, seen[0].Result); diff != "" {
				t.Error(diff)
			}
			got := types(r.events(c.p.Operation))
			if !strings.HasPrefix(got, "OperationProposed OperationChecked OperationCommitted OperationDelivered OperationFinished HookStarted HookRan HookStarted HookRan HookStarted") {
				t.Error(got)
			}
		})
	})
	t.Run("F12 a report after an unknown end is told too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+entry("one", "after_tool_call", "mode: blocking"))
			r.hook["one"] = says("one")
			c := r.propose(`{}`)
			c.verdict()
			if h := finish(r, c, events.OutcomeUnknown, nil); h.Context != "" || len(r.ran()) != 0 {
				t.Errorf("%q %v", h.Context, r.ran())
			}
			if h := finish(r, c, events.OutcomeOK, nil); h.Context != "one" {
				t.Errorf("%q", h.Context)
			}
			if n := len(of[events.OperationFinished](r, c.p.Operation)); n != 2 {
				t.Errorf("%d ends", n)
			}
		})
	})
	t.Run("a stranger reports nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+entry("one", "after_tool_call", "mode: blocking"))
			c := r.propose(`{}`)
			c.verdict()
			_, err := r.eng.Finish(t.Context(), core.Finished{Operation: c.p.Operation, Secret: "somebody else's", Outcome: events.OutcomeOK})
			wantRefused(t, err, events.RejectNotYours)
			_, err = r.eng.Finish(t.Context(), core.Finished{Operation: engine.NewID(time.Now()), Outcome: events.OutcomeOK})
			wantRefused(t, err, events.RejectUnknownOperation)
			if len(r.ran()) != 0 {
				t.Errorf("%v", r.ran())
			}
		})
	})
	t.Run("B99 a run that the core did not survive is closed by the next", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRuled(t, engine.Options{}, rules+entry("one", "after_tool_call", "mode: blocking")+entry("watches", "before_tool_call", "mode: async"))
			cut := r.cutOff()
			r.long["one"] = func(ctx context.Context) hooks.Result { cut(); return lasts(ctx, time.Hour) }
			r.long["watches"] = func(ctx context.Context) hooks.Result { return lasts(ctx, time.Hour) }
			c := r.propose(`{}`)
			c.verdict()
			done := make(chan struct{})
			eng := r.eng
			go func() {
				defer close(done)
				_, _ = eng.Finish(context.Background(), core.Finished{Operation: c.p.Operation, Secret: c.p.Secret, Outcome: events.OutcomeOK})
			}()
			r.until("it runs", func() bool { return slices.Contains(r.ran(), "one") })
			r.kill()
			<-done
			if n := len(of[events.HookRan](r.reopen(), c.p.Operation)); n != 2 {
				t.Errorf("%d runs are closed", n)
			}
			for _, ran := range of[events.HookRan](r, c.p.Operation) {
				if ran.Outcome != events.RunAbandoned {
					t.Errorf("%+v", ran)
				}
			}
		})
	})
}

func TestB99ARunOfACallThatEndedBeforeTheCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "hooks:\n"+entry("deaf", "before_tool_call", "mode: blocking"))
		cut := r.cutOff()
		r.long["deaf"] = func(context.Context) hooks.Result { pass(time.Minute); return allow }
		c := r.propose(`{}`)
		pass(time.Second)
		must(t, r.eng.Withdraw(t.Context(), c.p.Operation, c.p.Secret, events.EndCallerCancelled))
		c.verdict()
		cut()
		r.kill()
		r.reopen()
		ran := of[events.HookRan](r, c.p.Operation)
		if len(ran) != 1 || ran[0].Outcome != events.RunAbandoned {
			t.Errorf("%+v", ran)
		}
		if found := r.eng.Find(t.Context(), events.Find{Operation: c.p.Operation}); found.State != "ended" {
			t.Errorf("%+v", found)
		}
	})
}

// cutOff makes a log that takes nothing more once the returned function has been
// called, until the next start: what a crash leaves.
func (r *rig) cutOff() func() {
	r.kill()
	off := &offLog{}
	r.wrap = func(l engine.Log) engine.Log { off.Log = l; return off }
	r.start()
	return func() { off.off.Store(true) }
}

type offLog struct {
	engine.Log
	off atomic.Bool
}

func (l *offLog) Append(ctx context.Context, e journal.Entry) (uint64, error) {
	if l.off.Load() {
		return 0, journal.ErrUnavailable
	}
	return l.Log.Append(ctx, e)
}

// reopen starts a core on the whole log, and gives it a moment.
func (r *rig) reopen() *rig {
	r.t.Helper()
	r.wrap = nil
	r.start()
	pass(time.Second)
	return r
}
