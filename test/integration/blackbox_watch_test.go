package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/tracing"
)

// observed are the events that an agent can tell by agent-hook and that nobody
// can stop, with what belongs to each.
func observed() map[events.HookEvent]said {
	done := tool("watched", `{"n":1}`).with(said{"result": said{"text": "done", "error": "", "failed": false, "duration_ms": 3}})
	return map[events.HookEvent]said{
		events.SessionStart: {}, events.BeforeTurn: {}, events.AfterTurn: {}, events.UserInterrupt: {},
		events.AfterToolCall: done, events.ToolError: done.with(said{"result": said{"text": "", "error": "no such file", "failed": true, "duration_ms": 3}}),
		events.SubAgentStart: {"path": "main > reviewer#1"}, events.SubAgentEnd: {"path": "main > reviewer#1"}, events.PreCompact: {},
		events.WorkflowRunStart: {"path": "flow"}, events.WorkflowRunEnd: {"path": "flow"}, events.SessionEnd: {},
	}
}

// ranOf are the records of one hook's runs.
func ranOf(e evidence, id string) (all []events.HookRan) {
	for _, f := range facts[events.HookRan](e) {
		if f.Event.Hook.ID == id {
			all = append(all, f.Event)
		}
	}
	return all
}

// wantNotApplied holds every run of a hook to be an ask that was not applied.
func wantNotApplied(t *testing.T, e evidence, id string, n int, why string) {
	t.Helper()
	all := ranOf(e, id)
	if len(all) != n {
		t.Errorf("%d runs of %s are recorded, want %d", len(all), id, n)
	}
	for _, r := range all {
		if r.NotApplied != why || r.Effect != events.EffectAskNotApplied || r.Outcome != events.RunOK || r.FailedOpen {
			t.Errorf("the run of %s is recorded as %+v, want not_applied: %s", id, r, why)
		}
	}
	for _, f := range facts[events.Request](e) {
		if f.Event.Hook.ID == id {
			t.Errorf("%s asked: %+v", id, f.Event)
		}
	}
}

// askOn has a blocking hook ask on an event that cannot ask.
func askOn(event events.HookEvent, more said) scene {
	id := "b24-" + strings.ReplaceAll(string(event), "_", "-")
	return scene{
		name:  "B24 an ask on " + string(event) + " is recorded and does nothing",
		hooks: []hook{{id: id, event: string(event), match: "profile: " + id, sh: `say '{"action":"ask","reason":"May it?"}'`}},
		live: func(b *box) {
			s := b.screen()
			at := said{"session_id": id, "profile": id, "turn_id": "t1"}
			switch event {
			case events.AfterToolCall, events.ToolError:
				b.toolCall(at.with(tool("watched", `{"n":1}`))).wantRan(`{"n":1}`)
			case events.AfterTurn, events.UserInterrupt: // of a session that the core knows
				b.report("before_turn", at)
			case events.SessionEnd:
				b.report("session_start", at)
			}
			b.report(string(event), at.with(more))
			if v := b.awaitTold(id, 1)[0]; v.Event != string(event) || v.Available != nil && *v.Available {
				b.t.Errorf("the script was given %+v", v)
			}
			for _, q := range s.Inbox().Questions() {
				if q.Hook.ID == id {
					b.t.Errorf("it asked: %+v", q)
				}
			}
		},
		log: func(t *testing.T, e evidence) { wantNotApplied(t, e, id, 1, events.NotAppliedEvent) },
	}
}

// notWaiting has hooks of both modes that nothing waits for ask at both gates.
func notWaiting(mode events.HookMode) scene {
	id := "b25-" + strings.ReplaceAll(string(mode), "_", "-")
	return scene{
		name: "B25 B26 B28 an ask of a hook that is " + string(mode) + " is recorded and does nothing",
		hooks: []hook{
			{id: id + "-call", match: "profile: " + id, mode: string(mode), sh: `say '{"action":"ask"}'`},
			{id: id + "-text", event: "user_prompt_submit", match: "profile: " + id, mode: string(mode), sh: `say '{"action":"ask","system_reminder":"R"}'`},
			{id: id + "-block", match: "profile: " + id, mode: string(mode), sh: `say '{"action":"block","reason":"Too late."}'`},
			{id: id + "-change", match: "profile: " + id, mode: string(mode), sh: `say '{"action":"modify","args_override":{"n":2}}'`},
			{id: id + "-first", match: "profile: " + id, sh: ""},
		},
		live: func(b *box) {
			s := b.screen()
			at := said{"session_id": id, "profile": id}
			b.toolCall(at.with(tool("watched", `{"n":1}`))).wantRan(`{"n":1}`)
			b.input(at, "prompt", id).wantSubmitted(id, "")
			for _, name := range []string{id + "-call", id + "-text", id + "-block", id + "-change"} {
				if v := b.awaitTold(name, 1)[0]; v.Available == nil || *v.Available {
					b.t.Errorf("B28 %s was told confirmation_available %v though nothing waits for it", name, v.Available)
				}
			}
			if v := b.awaitTold(id+"-first", 1)[0]; v.Available == nil || !*v.Available {
				b.t.Errorf("a hook that blocks was told confirmation_available %v with a screen there", v.Available)
			}
			for _, q := range s.Inbox().Questions() {
				if strings.HasPrefix(q.Hook.ID, id) {
					b.t.Errorf("it asked: %+v", q)
				}
			}
		},
		log: func(t *testing.T, e evidence) {
			wantNotApplied(t, e, id+"-call", 1, events.NotAppliedNonblocking)
			wantNotApplied(t, e, id+"-text", 1, events.NotAppliedNonblocking)
			for _, f := range facts[events.HookRan](e) {
				if f.Event.Hook.ID == id+"-block" && (f.Event.Effect == events.EffectBlock && f.Event.NotApplied == "" || f.Event.Code != "") {
					t.Errorf("B25 a late block is recorded as %+v", f.Event)
				}
			}
		},
	}
}

// ended is a way in which a call is refused, and what watching hooks read of it.
type ended struct {
	name         string
	code         events.Code
	confirmation any // nil for none
	ask          string
	more         string
	answer       events.Answer
}

func (v ended) scene() scene {
	id := "b87-" + v.name
	return scene{
		name: "B87 B88 B89 after a call that was " + v.name + " a watching hook reads how, and the final arguments",
		hooks: []hook{
			{id: id + "-set", match: "profile: " + id, sh: `say '{"action":"modify","args_override":{"n":2}}'`},
			{id: id, match: "profile: " + id, sh: v.ask, more: v.more},
			{id: id + "-after", event: "after_tool_call", match: "profile: " + id, mode: "async", sh: ""},
		},
		live: func(b *box) {
			s := b.screen()
			c := b.toolCall(said{"session_id": id, "profile": id, "turn_id": "t1"}.with(tool(id, `{"n":1}`)))
			if v.answer != "" {
				s.says(s.question(id), v.answer)
			}
			c.wantRefused(v.code)
			got := b.awaitTold(id+"-after", 1)[0]
			if got.Event != "after_tool_call" || got.Tool.Name != id || string(got.Tool.Args) != `{"n":2}` {
				b.t.Errorf("B89 the hook read %+v, want the final arguments", got)
			}
			r := got.Result
			if r["hook_confirmation"] != v.confirmation {
				b.t.Errorf("B87 hook_confirmation is %v, want %v", r["hook_confirmation"], v.confirmation)
			}
			if r["approval_rejected"] != true || r["rejection_source"] != "hook" || r["hook_denied"] != true || r["failed"] != true {
				b.t.Errorf("B88 the result is %v", r)
			}
		},
		log: func(t *testing.T, e evidence) {
			op := e.call(t, id)
			if p, r := of(facts[events.OperationProposed](e), op), of(facts[events.OperationRefused](e), op); len(p) != 1 || len(r) != 1 || r[0].Event.Code != v.code {
				t.Errorf("B89 proposed %d times, refused %+v", len(p), r)
			}
		},
	}
}

// keptChanging is a call whose arguments a hook changes again and again.
func keptChanging() scene {
	return scene{
		name: "B88 B89 after rechecks that led nowhere a watching hook reads the final arguments",
		hooks: []hook{
			{id: "b89ask", match: "tool_name: b89", sh: `say '{"action":"ask"}'`},
			{id: "b89set", match: "tool_name: b89", sh: `say "{\"action\":\"modify\",\"args_override\":{\"n\":$(wc -l < "$DIR/seen.b89set")}}"`},
			{id: "b89after", event: "after_tool_call", match: "tool_name: b89", mode: "async", sh: ""},
		},
		live: func(b *box) {
			s := b.screen()
			c := b.toolCall(said{"session_id": "b89"}.with(tool("b89", `{"n":0}`)))
			var q events.Question
			for range 4 {
				q = s.question("b89")
				s.says(q, events.AnswerContinue)
			}
			c.wantRefused(events.CodeRecheckLimit)
			v := b.awaitTold("b89after", 1)[0]
			if string(v.Tool.Args) != `{"n":4}` || v.Result["rejection_source"] != "hook" || v.Result["approval_rejected"] != true || v.Result["hook_denied"] != true || v.Result["hook_confirmation"] != nil {
				b.t.Errorf("the last question was about %s; the hook read %+v", q.Args, v)
			}
		},
	}
}

func TestBlackboxWatch(t *testing.T) {
	var all []scene
	for event, more := range observed() {
		all = append(all, askOn(event, more))
	}
	for _, v := range []ended{
		{name: "declined", code: events.CodeDeclined, confirmation: "declined", ask: `say '{"action":"ask"}'`, answer: events.AnswerCancel},
		{name: "timed-out", code: events.CodeTimedOut, confirmation: "timed_out", ask: `say '{"action":"ask"}'`, more: ", confirmation: {timeout_seconds: 0.3}"},
		{name: "blocked", code: events.CodeBlocked, ask: `say '{"action":"block","reason":"No."}'`},
		{name: "failed", code: events.CodeHookFailed, ask: `exit 3`},
	} {
		all = append(all, v.scene())
	}
	perform(t, "", append(all, notWaiting(events.ModeAsync), notWaiting(events.ModeFireAndForget), keptChanging(),
		scene{
			name: "B31 B33 what does not block starts when the blocking pass is over, and not after a cancel",
			hooks: []hook{
				{id: "b33late", match: "tool_name: b33", mode: "async", sh: ""},
				{id: "b33ask", match: "tool_name: b33", sh: `say '{"action":"ask"}'`},
				{id: "b33then", match: "tool_name: b33", sh: ""},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.toolCall(said{"session_id": "b33"}.with(tool("b33", `{"n":1}`)))
				q := s.question("b33")
				b.wantRuns("b33late", 0)
				s.says(q, events.AnswerCancel)
				c.wantRefused(events.CodeDeclined)
				c = b.toolCall(said{"session_id": "b33"}.with(tool("b33", `{"n":2}`)))
				s.says(s.question("b33"), events.AnswerContinue)
				c.wantRan(`{"n":2}`)
				if v := b.awaitTold("b33late", 1)[0]; string(v.Tool.Args) != `{"n":2}` {
					b.t.Errorf("it ran about %s, want the call that went on", v.Tool.Args)
				}
			},
			log: func(t *testing.T, e evidence) {
				if n := len(ranOf(e, "b33late")); n != 1 {
					t.Errorf("%d runs, want one", n)
				}
			},
		},
		scene{
			name: "B25 B26 B28 nor does one that is detached or durable",
			hooks: []hook{
				{id: "b25detached", match: "profile: b25d", mode: "fire_and_forget", more: ", detach: true", sh: `say '{"action":"ask"}'`},
				{id: "b25durable", match: "profile: b25d", mode: "async", more: ", delivery: durable", sh: `say '{"action":"ask"}'`},
			},
			live: func(b *box) {
				b.screen()
				b.toolCall(said{"session_id": "b25d", "profile": "b25d"}.with(tool("watched", `{"n":1}`))).wantRan(`{"n":1}`)
				for _, name := range []string{"b25detached", "b25durable"} {
					if v := b.awaitTold(name, 1)[0]; v.Available == nil || *v.Available {
						b.t.Errorf("%s was told confirmation_available %v", name, v.Available)
					}
				}
			},
			log: func(t *testing.T, e evidence) {
				wantNotApplied(t, e, "b25durable", 1, events.NotAppliedNonblocking)
				if all := ranOf(e, "b25detached"); len(all) != 1 || all[0].Effect == events.EffectAsk || all[0].Effect == events.EffectBlock {
					t.Errorf("the detached run is recorded as %+v", all)
				}
			},
		},
		scene{
			name:  "B88 B89 a call that ran is reported as it ran",
			hooks: []hook{{id: "b88after", event: "after_tool_call", match: "profile: b88", sh: `say '{"extra_context":"Remember the tests."}'`}},
			live: func(b *box) {
				at := said{"session_id": "b88", "profile": "b88", "turn_id": "t1"}
				b.toolCall(at.with(tool("b88", `{"n":1}`))).wantRan(`{"n":1}`)
				out := b.report("after_tool_call", at.with(tool("b88", `{"n":1}`)).with(said{"result": said{"text": "done", "error": "", "failed": false, "duration_ms": 3}}))
				if !strings.Contains(out, `"extra_context":"Remember the tests."`) {
					b.t.Errorf("the agent reads %q", out)
				}
				r := b.awaitTold("b88after", 1)[0].Result
				if r["text"] != "done" || r["approval_rejected"] == true || r["hook_denied"] == true || r["failed"] == true || r["hook_confirmation"] != nil || r["rejection_source"] != nil && r["rejection_source"] != "" {
					b.t.Errorf("the result is %v", r)
				}
			},
		},
	)...)
}

// TestBlackboxB87Nobody has a core without a screen.
func TestBlackboxB87Nobody(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	b.setHooks(b.dirs.Config, "",
		hook{id: "b87", match: "tool_name: b87", sh: `say '{"action":"ask"}'`},
		hook{id: "b87after", event: "after_tool_call", mode: "fire_and_forget", sh: ""},
		hook{id: "b90", event: "user_prompt_submit", match: "profile: b90", sh: `say '{"action":"ask"}'`},
	)
	t.Run("B87 B88 nobody to ask is unavailable to a watching hook", func(t *testing.T) {
		b := b.in(t)
		b.toolCall(said{"session_id": "b87"}.with(tool("b87", `{"n":1}`))).wantRefused(events.CodeUnavailable)
		v := b.awaitTold("b87after", 1)[0]
		if v.Result["hook_confirmation"] != "unavailable" || v.Result["rejection_source"] != "hook" || v.Result["approval_rejected"] != true || v.Result["hook_denied"] != true {
			t.Errorf("the result is %v", v.Result)
		}
	})
	t.Run("B90 B94 B29 a prompt that nobody can be asked about comes back, and the next goes", func(t *testing.T) {
		b := b.in(t)
		b.input(said{"session_id": "b90", "profile": "b90"}, "prompt", awkward).wantReturned(events.CodeUnavailable, "prompt", awkward)
		if v := b.awaitTold("b90", 1)[0]; v.Available == nil || *v.Available {
			t.Errorf("confirmation_available is %v", v.Available)
		}
		b.input(said{"session_id": "b90"}, "prompt", "b90 free").wantSubmitted("b90 free", "")
	})
	b.stopCore()
	b.evidence(t).checkSpans(t)
}

// TestBlackboxB24Warning: a rule that can never ask is said so before it is used,
// or in the core's own words when it did.
func TestBlackboxB24Warning(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	b.setHooks(b.dirs.Config, "", hook{id: "b24warned", event: "after_turn", match: "profile: b24", sh: `say '{"action":"ask"}'`})
	b.report("before_turn", said{"session_id": "b24", "profile": "b24", "turn_id": "t1"})
	b.report("after_turn", said{"session_id": "b24", "profile": "b24", "turn_id": "t1"})
	b.awaitTold("b24warned", 1)
	b.stopCore()
	b.core.wait()
	t.Run("B24 an ask on an event that cannot ask is warned about", func(t *testing.T) {
		wantNotApplied(t, b.evidence(t), "b24warned", 1, events.NotAppliedEvent)
		words := b.core.stdout.String() + b.core.stderr.String() + b.file("state/core.log")
		warned := false
		for line := range strings.Lines(words) {
			warned = warned || strings.Contains(line, "WARN") && strings.Contains(line, "b24warned")
		}
		if !warned {
			t.Errorf("the core does not warn about it; it says %q", words)
		}
	})
}

// TestBlackboxB15Places has a core with one place for hooks in a session.
func TestBlackboxB15Places(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	b.setHooks(b.dirs.Config, "settings: {max_parallel_hooks: 1}\n",
		hook{id: "b15ask", match: "tool_name: b15ask", sh: `say '{"action":"ask"}'`},
		hook{id: "b15text", event: "user_prompt_submit", sh: `say '{"action":"ask"}'`},
		hook{id: "b71long", match: "tool_name: b71long", sh: `: > "$DIR/b71long"; exec sleep 30`, more: ", timeout_seconds: 60"},
		hook{id: "b71line", match: "tool_name: b71line", sh: ""},
		hook{id: "b15slow", match: "tool_name: b15slow", sh: `mkdir "$DIR/place" || echo two >> "$DIR/both"; sleep 0.4; rmdir "$DIR/place"; say '{"action":"allow"}'`, more: ", timeout_seconds: 1.5"},
	)
	s := b.screen()
	at := said{"session_id": "b15"}
	t.Run("B15 open questions hold no place, while hooks that run stand in line", func(t *testing.T) {
		b := b.in(t)
		s.b = b
		var asking []*call
		for n := range 3 {
			asking = append(asking, b.toolCall(at.with(tool("b15ask", fmt.Sprintf(`{"n":%d}`, n)))))
			s.question("b15ask")
		}
		text := b.input(at, "prompt", "b15")
		s.about("b15")
		var slow []*call
		for n := range 5 { // 2 s in all: one behind the other, none over its own limit
			slow = append(slow, b.toolCall(at.with(tool("b15slow", fmt.Sprintf(`{"n":%d}`, n)))))
		}
		for n, c := range slow {
			c.wantRan(fmt.Sprintf(`{"n":%d}`, n))
		}
		if b.file("both") != "" {
			t.Error("two hooks of a session ran at once, and one is allowed")
		}
		for _, open := range s.Inbox().Questions() {
			s.says(open, events.AnswerContinue)
		}
		for _, c := range asking {
			if v := c.verdict(); !v.ran {
				t.Errorf("a call that was asked about: %+v", v)
			}
		}
		text.wantSubmitted("b15", "")
	})
	t.Run("B71 B15 an interrupt ends what runs and what stands in line", func(t *testing.T) {
		b := b.in(t)
		runs := b.propose(t, payload("b71", "b71long", `{}`))
		must(t, "running hook", func() error {
			if !exists(b.dir + "/b71long") {
				return errNotYet
			}
			return nil
		})
		waits := b.propose(t, payload("b71", "b71line", `{}`))
		b.report("user_interrupt", said{"session_id": "b71", "cwd": "/"})
		for _, a := range []*asker{runs, waits} {
			if line, args := a.verdict(); line.Exit != 2 || args != nil || !strings.Contains(line.Stdout, `"ended"`) {
				t.Errorf("it hears %+v, want its end", line)
			}
		}
		b.wantRuns("b71line", 0)
	})
	b.stopCore()
	e := b.evidence(t)
	t.Run("B15 B95 standing in line is a wait of its own", func(t *testing.T) {
		e.checkSpans(t)
		if !slices.ContainsFunc(named(e.spans, "wait.hook_slot"), func(v tracing.Span) bool { return v.EndTimeUnixNano > v.StartTimeUnixNano }) {
			t.Error("no wait.hook_slot in the spans")
		}
	})
}
