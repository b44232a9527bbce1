package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// toldRuns lists what the feed said of each run of a hook, one string a run, in the
// order in which the runs were first heard of.
func (r *rig) toldRuns() (list []string) {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var order []events.ID
	said := map[events.ID]string{}
	for _, live := range r.live {
		for _, l := range live.Runs {
			if said[l.Run] == "" {
				order = append(order, l.Run)
				said[l.Run] = l.Hook.ID + " on " + string(l.Event)
			}
			said[l.Run] += "; " + inWords(l)
		}
	}
	for _, run := range order {
		list = append(list, said[run])
	}
	return list
}

// inWords is where a run stands.
func inWords(l events.RunLine) string {
	words := []string{string(l.State)}
	for _, w := range []string{string(l.Effect), string(l.Outcome), string(l.EndReason), string(l.Code), l.NotApplied} {
		if w != "" {
			words = append(words, w)
		}
	}
	if l.Rejected {
		words = append(words, "rejected")
	}
	if l.FailedOpen {
		words = append(words, "failed open")
	}
	return strings.Join(words, " ")
}

func TestB110B111B112RunsAreTold(t *testing.T) {
	const asking = "; running; asking ask ok; ended ask ok "
	bubble(t, "B110 B111 each run at the gate, from its start to its end", func(t *testing.T) {
		r := newRig(t, "looks", "asks", "last")
		r.hook["asks"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{"path":"a"}`)
		q := s.question()
		const looked, on = "looks on before_tool_call; running; ended allow ok", "asks on before_tool_call"
		if d := cmp.Diff([]string{looked, on + "; running; asking ask ok"}, r.toldRuns()); d != "" {
			t.Errorf("while it asks (-want +got):\n%s", d)
		}
		pass(3 * time.Second)
		s.answer(q, events.AnswerContinue)
		c.verdict()
		want := []string{looked, on + asking + "continue", "last on before_tool_call; running; ended allow ok"}
		if d := cmp.Diff(want, r.toldRuns()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		l := r.past().Runs[1]
		want1 := events.RunLine{
			Run: of[events.Request](r, c.p.Operation)[0].Run, Operation: c.p.Operation, Project: q.Project, Session: q.Session, ProjectPath: q.ProjectPath,
			Agent: "generic", Tool: c.p.Tool, Hook: q.Hook, Event: events.BeforeToolCall, Mode: events.ModeBlocking,
			State: events.RunEnded, Effect: events.EffectAsk, Outcome: events.RunOK, EndReason: events.EndContinue, At: l.At,
		}
		if d := cmp.Diff(want1, l); d != "" || l.At.Time().Sub(q.AskedAt.Time()) < 3*time.Second {
			t.Errorf("asked at %v (-want +got):\n%s", q.AskedAt.Time(), d)
		}
	})
}

func TestB110RunsOfRules(t *testing.T) {
	bubble(t, "B110 a rule without a program is told of once, with its operation's line", func(t *testing.T) {
		r := newRuled(t, engine.Options{}, verdictRules("allow", "allow"))
		r.decideByRule("allow", "allow")
		r.propose(`{"path":"a"}`).verdict()
		const ended = " on before_tool_call; ended allow ok"
		if d := cmp.Diff([]string{"allow-0" + ended, "allow-1" + ended}, r.toldRuns()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if len(r.live) != 2 || r.live[0].Line == nil || len(r.live[0].Runs) != 2 || len(r.live[1].Runs) != 0 {
			t.Errorf("%s", toJSON(r.live))
		}
	})
	bubble(t, "B110 of a call that no rule is about nothing more is published than its lines", func(t *testing.T) {
		r := newRig(t)
		r.propose(`{"path":"a"}`).verdict()
		if len(r.toldRuns()) != 0 || len(r.live) != 2 {
			t.Errorf("%s", toJSON(r.live))
		}
	})
}

func TestB112HowARunEnded(t *testing.T) {
	const at = " on before_tool_call; running; "
	const asked = at + "asking ask ok; ended ask ok "
	fails := func(onError bool) func(hooks.Input) hooks.Result {
		return func(hooks.Input) hooks.Result {
			res := hooks.Result{Effect: events.EffectError, Outcome: events.RunFailed, Exit: 3, FailedOpen: onError}
			if !onError {
				res.Effect, res.Code = events.EffectBlock, events.CodeHookFailed
			}
			return res
		}
	}
	for _, c := range []struct {
		name   string
		hooks  []func(hooks.Input) hooks.Result // h1, h2, …
		answer events.Answer                    // to every question; "" = none
		want   []string
	}{
		{"B112 cancelled", []func(hooks.Input) hooks.Result{asks}, events.AnswerCancel, []string{"h1" + asked + "cancel"}},
		{"B112 no answer in time", []func(hooks.Input) hooks.Result{asks}, "", []string{"h1" + asked + "deadline"}},
		{"B112 call rejected", []func(hooks.Input) hooks.Result{nil, blocks}, "", []string{
			"h1" + at + "ended allow ok", "h2" + at + "ended block ok blocked rejected",
		}},
		{"B112 failed", []func(hooks.Input) hooks.Result{fails(false)}, "", []string{"h1" + at + "ended block failed hook_failed rejected"}},
		{"B112 failed open", []func(hooks.Input) hooks.Result{fails(true)}, "", []string{"h1" + at + "ended error failed failed open"}},
		{"B50 B112 the run whose change came back to an earlier version", []func(hooks.Input) hooks.Result{asks, flips()}, events.AnswerContinue, []string{
			"h1" + asked + "continue", "h2" + at + "ended modify ok", "h1" + asked + "continue", "h2" + at + "ended modify ok recheck_cycle rejected",
		}},
	} {
		bubble(t, c.name, func(t *testing.T) {
			yaml := "hooks:\n"
			for i := range c.hooks {
				yaml += entry(fmt.Sprintf("h%d", i+1), "before_tool_call", "mode: blocking")
			}
			r := newRuled(t, engine.Options{Timeout: time.Minute}, yaml)
			for i, f := range c.hooks {
				r.hook[fmt.Sprintf("h%d", i+1)] = f
			}
			s := r.attach("uid:1")
			keep(t, s)
			call := r.propose(`{"path":"a"}`)
			for range strings.Count(strings.Join(c.want, " "), "asking") {
				if q := s.question(); c.answer != "" {
					s.answer(q, c.answer)
				}
			}
			call.verdict()
			if d := cmp.Diff(c.want, r.toldRuns()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	bubble(t, "B112 nobody to ask", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		r.propose(`{"path":"a"}`).verdict()
		if d := cmp.Diff([]string{"h1" + at + "ended ask ok no_frontend"}, r.toldRuns()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// flips changes the path to b, and b back to a.
func flips() func(hooks.Input) hooks.Result {
	return func(in hooks.Input) hooks.Result {
		if strings.Contains(string(in.Payload.Args), `"b"`) {
			return sets(`{"path":"a"}`)(in)
		}
		return sets(`{"path":"b"}`)(in)
	}
}

func TestB110RunsThatOnlyWatch(t *testing.T) {
	bubble(t, "B110 B26 beside a commit, on a tool's end and on events of the session", func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "hooks:\n"+entry("looks", "before_tool_call", "mode: async")+
			entry("after", "after_tool_call", "mode: blocking")+entry("turn", "before_turn", "mode: fire_and_forget"))
		r.hook["looks"] = func(hooks.Input) hooks.Result {
			return hooks.Result{Effect: events.EffectAskNotApplied, Outcome: events.RunOK, NotApplied: events.NotAppliedNonblocking}
		}
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1"})
		synctest.Wait()
		c := r.propose(`{"path":"a"}`)
		c.verdict()
		synctest.Wait()
		finish(r, c, events.OutcomeOK, `{"path":"a"}`)
		want := []string{
			"turn on before_turn; running; ended allow ok",
			"looks on before_tool_call; running; ended ask_not_applied ok nonblocking",
			"after on after_tool_call; running; ended allow ok",
		}
		if d := cmp.Diff(want, r.toldRuns()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		runs := r.past().Runs
		if l := runs[0]; l.Operation != "" || l.Agent != "generic" || l.Tool.Name != "" || l.Mode != events.ModeFireAndForget || l.ProjectPath == "" {
			t.Errorf("%s", toJSON(l))
		}
		if l := runs[1]; l.Operation != c.p.Operation || l.Tool != c.p.Tool || l.Mode != events.ModeAsync {
			t.Errorf("%s", toJSON(l))
		}
		if l := runs[2]; l.Operation != c.p.Operation || l.Mode != events.ModeBlocking {
			t.Errorf("%s", toJSON(l))
		}
	})
	bubble(t, "B99 B110 a run that a crash cut off has ended", func(t *testing.T) {
		r := newRig(t, "slow")
		r.long = map[string]func(context.Context) hooks.Result{"slow": func(ctx context.Context) hooks.Result { return lasts(ctx, time.Hour) }}
		off := r.cutOff()
		r.send(r.proposal(`{"path":"a"}`))
		synctest.Wait()
		off()
		r.kill()
		r.long = nil
		r.reopen()
		runs := r.past().Runs
		if len(runs) != 2 || inWords(runs[0]) != "ended error abandoned" || inWords(runs[1]) != "ended allow ok" {
			t.Errorf("%s", toJSON(runs))
		}
	})
}

func TestB110RunThatOutlastsItsSession(t *testing.T) {
	bubble(t, "B110 its end is in the history, and brings back nothing that was pushed out", func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "settings: {shutdown_grace_seconds: 600}\nhooks:\n"+entry("turn", "before_turn", "mode: blocking")+
			entry("slow", "session_end", "mode: fire_and_forget")+entry("gate", "before_tool_call", "mode: blocking"))
		r.long = map[string]func(context.Context) hooks.Result{"slow": func(ctx context.Context) hooks.Result { return lasts(ctx, 5*time.Minute) }}
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1"})
		synctest.Wait()
		r.observe(core.Observation{Signal: signal(events.SessionEnd)})
		synctest.Wait()
		for range events.MaxHistory - 1 {
			p := r.proposal(`{"path":"a"}`)
			p.Native = "another"
			r.letGo(p)
		}
		pass(3 * time.Minute)
		if n := len(r.eng.Sessions(events.DoorAll)); n != 1 {
			t.Fatalf("%d sessions", n)
		}
		pass(10 * time.Minute)
		runs := r.past().Runs
		if len(runs) != events.MaxHistory || runs[0].Hook.ID != "slow" || runs[0].State != events.RunEnded {
			t.Errorf("%d runs, the oldest %s", len(runs), toJSON(runs[0]))
		}
	})
}

func TestB112WhatARunSaid(t *testing.T) {
	bubble(t, "B112 stderr and reason, of a run that asked, blocked, or heard of a session's event", func(t *testing.T) {
		r := newRuled(t, engine.Options{}, "hooks:\n"+entry("asks", "before_tool_call", "mode: blocking")+
			entry("blocks", "before_tool_call", "mode: blocking")+entry("turn", "before_turn", "mode: blocking"))
		said := func(res hooks.Result, id string) func(hooks.Input) hooks.Result {
			res.Stderr, res.Reason = id+" was here", "because "+id
			return func(hooks.Input) hooks.Result { return res }
		}
		r.hook["asks"], r.hook["blocks"], r.hook["turn"] = said(ask, "asks"), said(blocks(hooks.Input{}), "blocks"), said(allow, "turn")
		s := r.attach("uid:1")
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: "t1"})
		synctest.Wait()
		c := r.propose(`{"path":"a"}`)
		q := s.question()
		s.answer(q, events.AnswerContinue)
		c.verdict()
		runs := r.past().Runs
		if len(runs) != 3 {
			t.Fatalf("%s", toJSON(runs))
		}
		for _, l := range runs {
			got := r.eng.Output(t.Context(), place(q), events.RunCommand{Operation: l.Operation, Run: l.Run})
			if want := (events.RunReply{Stderr: l.Hook.ID + " was here", Reason: "because " + l.Hook.ID}); got != want {
				t.Errorf("%s: %s", l.Hook.ID, toJSON(got))
			}
		}
		elsewhere := engine.Place{Project: q.Project, Session: token("another")}
		for _, wrong := range []struct {
			p engine.Place
			c events.RunCommand
		}{
			{place(q), events.RunCommand{Operation: c.p.Operation, Run: q.ID}},
			{place(q), events.RunCommand{Run: runs[1].Run}},
			{elsewhere, events.RunCommand{Operation: c.p.Operation, Run: runs[1].Run}},
		} {
			if got := r.eng.Output(t.Context(), wrong.p, wrong.c); got.Refused == nil || got.Refused.Code != events.RejectUnknownOperation || got.Stderr+got.Reason != "" {
				t.Errorf("%s", toJSON(got))
			}
		}
	})
}

func TestF1OneRing(t *testing.T) {
	bubble(t, "F1 the first who asks calls the person, and nobody else", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		a, b := r.attach("uid:1"), r.attach("uid:1")
		rings := func(s *screen, q events.Question) events.RingReply {
			return r.eng.Ring(t.Context(), s.f, place(q), events.Ring{Question: q.ID})
		}
		c := r.propose(`{"path":"a"}`)
		q := a.question()
		stranger := &screen{r, engine.Frontend{ID: engine.NewID(time.Now()), Principal: "uid:2"}}
		if got := rings(stranger, q); got.Yours || got.Refused == nil || got.Refused.Code != events.RejectNotAttached {
			t.Errorf("before hello: %s", toJSON(got))
		}
		if first, again, other := rings(a, q), rings(a, q), rings(b, q); !first.Yours || !again.Yours || other.Yours {
			t.Errorf("%v %v %v", first, again, other)
		}
		if a.answer(q, events.AnswerContinue); !c.verdict().Allow {
			t.Fatal("refused")
		}
		if got := rings(b, q); got.Yours || got.Refused == nil || got.Refused.Code != events.RejectAlreadyAnswered {
			t.Errorf("after its end: %s", toJSON(got))
		}
	})
	bubble(t, "F1 each question of one call rings", func(t *testing.T) {
		r, s := chain(t, "ask", "block")
		r.hook["ask"], r.hook["block"] = asks, asks
		c := r.propose(`{"path":"a"}`)
		for range 2 {
			q := s.questionOf(c)
			if !r.eng.Ring(t.Context(), s.f, place(q), events.Ring{Question: q.ID}).Yours {
				t.Error("it does not ring")
			}
			s.answer(q, events.AnswerContinue)
			synctest.Wait()
		}
		c.verdict()
	})
	for name, c := range map[string]struct {
		age  time.Duration
		want bool
	}{"young": {time.Second, true}, "three seconds old": {3 * time.Second, false}} {
		bubble(t, "F1 F3 a question that the core before left open, "+name, func(t *testing.T) {
			r := newRig(t, "h1")
			r.hook["h1"] = asks
			r.attach("uid:1")
			r.propose(`{"path":"a"}`)
			first := r.attach("uid:1").question()
			pass(c.age)
			r.restart()
			s := r.attach("uid:1")
			reply := r.eng.Ring(t.Context(), s.f, place(first), events.Ring{Question: first.ID})
			if reply.Refused != nil || reply.Yours != c.want {
				t.Errorf("%s", toJSON(reply))
			}
			if r.eng.Ring(t.Context(), r.attach("uid:1").f, place(first), events.Ring{Question: first.ID}).Yours {
				t.Error("it rings twice")
			}
		})
	}
}
