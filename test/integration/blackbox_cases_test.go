package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/events"
)

// The cases from the field, under their names.

// ranOnce holds a call to have run once, with the bytes of the last question.
func (c *call) ranOnce(q events.Question, args string) {
	c.b.t.Helper()
	c.wantRan(args)
	if n := c.times(); n != 1 || events.DigestOf([]byte(args)) != q.Version.Digest {
		c.b.t.Errorf("%s ran %d times; the last question was about %s", c.tool, n, q.Args)
	}
}

func TestHAND03ChangedAfterTheYes(t *testing.T) {
	h := func(id, tool, sh string) hook { return hook{id: id, match: "tool_name: " + tool, sh: sh} }
	const asks = `say '{"action":"ask"}'`
	const toB = `case $IN in *'"path":"a"'*) say '{"action":"modify","args_override":{"path":"b"}}';; esac`
	perform(t, "",
		scene{
			name:  "B42 B46 B31 (i) a rewrite behind the yes is asked about again, old and new",
			hooks: []hook{h("c3i1", "c3i", asks), h("c3i2", "c3i", toB), h("c3i3", "c3i", ""), h("c3i4", "c3i", `say '{}'`)},
			live: func(b *box) {
				s := b.screen()
				c := b.toolCall(said{"session_id": "c3i"}.with(tool("c3i", `{"path":"a"}`)))
				one := s.question("c3i")
				if string(one.Args) != `{"path":"a"}` {
					b.t.Errorf("the first question is about %s", one.Args)
				}
				s.says(one, events.AnswerContinue)
				two := s.question("c3i")
				if len(two.Changed) != 1 || two.Changed[0].Name != "path" || string(two.Changed[0].Old) != `"a"` || string(two.Changed[0].New) != `"b"` || two.Attempt != 1 {
					b.t.Errorf("the second question is %+v", two)
				}
				if exists(c.file + ".ran") {
					b.t.Error("it ran before the second yes")
				}
				s.says(two, events.AnswerContinue)
				c.ranOnce(two, `{"path":"b"}`)
			},
		},
		scene{
			name:  "B49 B82 (ii) arguments that come back are refused",
			hooks: []hook{h("c3ii1", "c3ii", asks), h("c3ii2", "c3ii", toB+` ; case $IN in *'"path":"b"'*) say '{"action":"modify","args_override":{"path":"a"}}';; esac`)},
			live: func(b *box) {
				s := b.screen()
				c := b.toolCall(said{"session_id": "c3ii"}.with(tool("c3ii", `{"path":"a"}`)))
				s.says(s.question("c3ii"), events.AnswerContinue)
				s.says(s.question("c3ii"), events.AnswerContinue)
				says(b.t, c.wantRefused(events.CodeRecheckCycle).Reason, "did not run")
			},
		},
		scene{
			name:  "B48 B86 (iii) a counter is refused after three rechecks",
			hooks: []hook{h("c3iii1", "c3iii", asks), h("c3iii2", "c3iii", `say "{\"action\":\"modify\",\"args_override\":{\"n\":$(wc -l < "$DIR/seen.c3iii2")}}"`)},
			live: func(b *box) {
				s := b.screen()
				c := b.toolCall(said{"session_id": "c3iii"}.with(tool("c3iii", `{"n":0}`)))
				for attempt := range 4 {
					q := s.question("c3iii")
					if q.Attempt != attempt {
						b.t.Errorf("question %d is attempt %d", attempt, q.Attempt)
					}
					s.says(q, events.AnswerContinue)
				}
				says(b.t, c.wantRefused(events.CodeRecheckLimit).Reason, "did not run", "chang")
				b.wantRuns("c3iii1", 4)
			},
		},
		scene{
			name:  "B44 (iv) a rewrite before the question is what the one question shows",
			hooks: []hook{h("c3iv2", "c3iv", toB), h("c3iv1", "c3iv", asks)},
			live: func(b *box) {
				s := b.screen()
				c := b.toolCall(said{"session_id": "c3iv"}.with(tool("c3iv", `{"path":"a"}`)))
				q := s.question("c3iv")
				s.says(q, events.AnswerContinue)
				c.ranOnce(q, `{"path":"b"}`)
				b.wantRuns("c3iv1", 1)
			},
		},
		scene{
			name:  "B38 (v) ask with new arguments shows them, and they run",
			hooks: []hook{h("c3v1", "c3v", `say '{"action":"ask","args_override":{"path":"b"}}'`), h("c3v2", "c3v", "")},
			live: func(b *box) {
				s := b.screen()
				c := b.toolCall(said{"session_id": "c3v"}.with(tool("c3v", `{"path":"a","m":"é"}`)))
				q := s.question("c3v")
				s.says(q, events.AnswerContinue)
				c.ranOnce(q, `{"m":"é","path":"b"}`)
				b.wantRuns("c3v1", 1)
			},
		},
	)
}

// failures are the ways in which a hook fails, and their codes.
func failures() map[string]struct {
	h    hook
	code []events.Code
} {
	type way = struct {
		h    hook
		code []events.Code
	}
	failed, missing := []events.Code{events.CodeHookFailed}, []events.Code{events.CodeHookMissing, events.CodeHookFailed}
	return map[string]way{
		"exit1": {hook{sh: "exit 1"}, failed}, "exit3": {hook{sh: `say '{"action":"allow"}'; exit 3`}, failed},
		"program-absent": {hook{run: "{type: command, argv: [/nowhere/no-such-program]}"}, missing[:1]},
		"exit127":        {hook{run: "{type: shell, shell: no-such-program-at-all}"}, missing},
		"script-absent":  {hook{run: "{type: command, argv: [sh, /nowhere/absent.sh]}"}, missing},
		"kills-itself":   {hook{sh: `say '{"action":"allow"}'; kill -9 $$`}, failed},
		"too-slow":       {hook{sh: `say '{"action":"allow"}'; exec sleep 9`, more: ", timeout_seconds: 2"}, []events.Code{events.CodeHookTimedOut}},
	}
}

func TestHAND04FailureIsNotConsent(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	var global, project []hook
	for name, v := range failures() {
		v.h.id, v.h.match = "g-"+name, "tool_name: g-"+name
		global = append(global, v.h)
		v.h.id, v.h.match = "p-"+name, "tool_name: p-"+name
		project = append(project, v.h)
	}
	for n := range 8 {
		id := fmt.Sprintf("at-once%d", n)
		global = append(global, hook{id: id, match: "tool_name: " + id, sh: `sleep 1.9; say '{"action":"block","reason":"Denied."}'`, more: ", timeout_seconds: 2"})
	}
	global = append(global, hook{id: "open", match: "tool_name: open", sh: "exit 1", more: ", on_error: warn"},
		hook{id: "quiet", match: "tool_name: quiet", sh: "exit 0"},
		hook{id: "person", match: "tool_name: person", sh: `say '{"action":"ask"}'`, more: ", timeout_seconds: 2"})
	b.setHooks(b.dirs.Config, "", global...)
	dir := b.dir + "/project"
	b.setHooks(dir+"/.fermata", "", project...)
	trust := b.command("", "fermata", "hooks", "trust", "--yes")
	trust.Dir = dir
	if r := b.launch(trust).wait(); r.Exit != 0 {
		t.Fatalf("hooks trust: %+v", r)
	}
	s := b.screen()
	person := b.toolCall(said{"session_id": "person"}.with(tool("person", `{}`)))
	q := s.question("person")
	begun := map[string]*call{}
	for scope, at := range map[string]said{"g": {"session_id": "g"}, "p": {"session_id": "p", "cwd": dir}} {
		for name := range failures() {
			begun[scope+"-"+name] = b.toolCall(at.with(tool(scope+"-"+name, `{}`)))
		}
	}
	for scope, of := range map[string][2]string{"g": {"global", b.dirs.Config}, "p": {"project", dir + "/.fermata"}} {
		for name, v := range failures() {
			t.Run("B35 B30 "+of[0]+" "+name, func(t *testing.T) {
				c := begun[scope+"-"+name]
				c.b = b.in(t)
				says(t, c.wantRefused(v.code...).Reason, "did not run", scope+"-"+name, of[0], of[1]+"/hooks.yaml")
			})
		}
	}
	t.Run("B35 B37 eight slow ones at once", func(t *testing.T) {
		b := b.in(t)
		var calls []*call
		for n := range 8 {
			id := fmt.Sprintf("at-once%d", n)
			calls = append(calls, b.toolCall(said{"session_id": id}.with(tool(id, `{}`))))
		}
		for _, c := range calls {
			c.wantRefused(events.CodeBlocked, events.CodeHookTimedOut)
		}
	})
	t.Run("B35 no opinion, and a failure that was written down as harmless", func(t *testing.T) {
		b := b.in(t)
		b.toolCall(said{"session_id": "quiet"}.with(tool("quiet", `{}`))).wantRan(`{}`)
		b.toolCall(said{"session_id": "open"}.with(tool("open", `{}`))).wantRan(`{}`)
	})
	t.Run("B14 a person may take longer than the hook", func(t *testing.T) {
		b := b.in(t)
		person.b = b
		b.since(q.AskedAt, 3*time.Second)
		s.says(q, events.AnswerContinue)
		person.wantRan(`{}`)
	})
	b.stopCore()
	e := b.evidence(t)
	t.Run("B35 B97 what failed open is recorded so, and nothing else", func(t *testing.T) {
		for _, f := range facts[events.HookRan](e) {
			if f.Event.FailedOpen != (f.Event.Hook.ID == "open") {
				t.Errorf("the run of %s is recorded with failed_open %v", f.Event.Hook.ID, f.Event.FailedOpen)
			}
		}
		e.checkSpans(t)
		e.checkRuns(t)
	})
}

func TestHAND08NobodyToAsk(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	b.setHooks(b.dirs.Config, "", hook{id: "c8", match: "tool_name: c8", sh: `say '{"action":"ask"}'`})
	runs := 0
	refused := func(t *testing.T, more said) {
		t.Helper()
		b := b.in(t)
		v := b.toolCall(said{"session_id": "c8"}.with(more).with(tool("c8", `{}`))).wantRefused(events.CodeUnavailable)
		says(t, v.Reason, "did not run", "refused again")
		runs++
		if got := b.awaitTold("c8", runs)[runs-1]; got.Available == nil || *got.Available {
			t.Errorf("the hook was told confirmation_available %v", got.Available)
		}
	}
	t.Run("B29 B30 B93 no frontend", func(t *testing.T) { refused(t, nil) })
	t.Run("B29 B30 a sub-agent with none", func(t *testing.T) {
		refused(t, said{"session_id": "c8sub", "parent_session_id": "c8", "path": "main > sub#1"})
	})
	t.Run("B30 B93 stdin closed", func(t *testing.T) {
		r := b.run("", "sh", "-c", "agent-hook generic before_tool_call <&-")
		if r.Exit != 2 || !strings.Contains(r.Stdout, `"deny"`) || r.Stderr == "" {
			t.Errorf("%+v, want a deny", r)
		}
	})
	t.Run("B29 B30 a frontend that cannot show questions", func(t *testing.T) {
		b.in(t).attach(false, "a logger")
		refused(t, nil)
	})
	t.Run("B29 a remote frontend, and no terminal", func(t *testing.T) {
		b := b.in(t)
		s := b.screen()
		c := b.toolCall(said{"session_id": "c8", "path": "main > sub#1"}.with(tool("c8", `{"n":1}`)))
		s.says(s.question("c8"), events.AnswerContinue)
		c.wantRan(`{"n":1}`)
		runs++
		if got := b.awaitTold("c8", runs)[runs-1]; got.Available == nil || !*got.Available {
			t.Errorf("the hook was told confirmation_available %v", got.Available)
		}
	})
	b.stopCore()
	e := b.evidence(t)
	t.Run("B30 at once, by the log", func(t *testing.T) {
		at := map[events.ID]events.Micros{}
		for _, f := range facts[events.OperationProposed](e) {
			at[f.Message.Operation] = f.Message.At
		}
		n := 0
		for _, f := range facts[events.OperationRefused](e) {
			n++
			if took := f.Message.At.Time().Sub(at[f.Message.Operation].Time()); f.Event.Code != events.CodeUnavailable || took > time.Second {
				t.Errorf("refused %s after %v", f.Event.Code, took)
			}
		}
		if n != 3 {
			t.Errorf("%d refusals, want 3", n)
		}
		e.checkSpans(t)
	})
}

// onTime answers a question at a moment that is before its deadline. When the
// machine is too late for that, it goes on with another question.
func (s *screen) onTime(q events.Question, after time.Duration, another func() events.Question) (events.Question, error) {
	s.b.t.Helper()
	for range 5 {
		s.b.since(q.AskedAt, after)
		_, err := s.Answer(s.b.t.Context(), reply(q, events.AnswerContinue))
		if err == nil || time.Now().Before(q.Deadline.Time()) {
			return q, err
		}
		q = another()
	}
	s.b.t.Fatalf("this machine is never on time")
	return q, nil
}

func TestHAND09Time(t *testing.T) {
	t.Parallel()
	b := newBox(t, "confirmation: {timeout_seconds: 2}\n")
	hooks := []hook{{id: "c9v", match: "tool_name: c9v", sh: `say '{"action":"ask"}'`, more: ", confirmation: {timeout_seconds: 0}"}}
	for _, id := range []string{"c9i", "c9ii", "c9iii", "c9iv", "c9viii"} {
		hooks = append(hooks, hook{id: id, match: "tool_name: " + id, sh: `say '{"action":"ask"}'`})
	}
	b.setHooks(b.dirs.Config, "", hooks...)
	s := b.screen()
	d := b.door("c9", "")
	proposed := map[string]events.Propose{}
	propose := func(name string) events.Question {
		p := events.Propose{Operation: freshID(), Secret: strings.Repeat("v", 32), Kind: events.KindToolCall, Tool: &events.Tool{Name: name, Kind: "other"}, Args: []byte(`{}`)}
		proposed[name] = p
		d.to(events.AgentSubject(d.open.Project, d.open.Session, d.id, events.VerbPropose), p, new(events.OperationReply))
		return s.question(name)
	}
	calls, qs := map[string]*call{}, map[string]events.Question{}
	begin := func(name string) events.Question {
		calls[name] = b.toolCall(said{"session_id": name}.with(tool(name, `{}`)))
		qs[name] = s.question(name)
		return qs[name]
	}
	run := func(name string, f func(b *box)) {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			s.b = b
			for _, c := range calls {
				c.b = b
			}
			f(b)
		})
	}
	run("B22 B14 (ii) a poll that ends is no end", func(b *box) {
		q := propose("c9ii")
		ctx, cancel := context.WithTimeout(b.t.Context(), 500*time.Millisecond)
		defer cancel()
		body := fmt.Sprintf(`{"operation":%q,"secret":%q}`, proposed["c9ii"].Operation, proposed["c9ii"].Secret)
		_, err := d.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: events.AgentSubject(d.open.Project, d.open.Session, d.id, events.VerbAwait), Data: []byte(body)})
		if !errors.Is(err, context.DeadlineExceeded) {
			b.t.Fatalf("await: %v", err)
		}
		if _, open := s.Inbox().Question(q.ID); !open {
			b.t.Error("the question went with the poll")
		}
		s.says(q, events.AnswerContinue)
		if v := d.verdict(proposed["c9ii"]); !v.Allow {
			b.t.Errorf("the verdict is %+v", v)
		}
	})
	for _, name := range []string{"c9i", "c9iv", "c9v", "c9iii"} {
		begin(name)
	}
	late := propose("c9viii")
	run("B8 (iii) yes at 1.9 s", func(b *box) {
		_, err := s.onTime(qs["c9iii"], 1900*time.Millisecond, func() events.Question { return begin("c9iii") })
		if v := calls["c9iii"].verdict(); err != nil || !v.ran {
			b.t.Errorf("the answer: %v; the call: %+v", err, v)
		}
	})
	run("B8 (viii) another yes at 1.9 s", func(b *box) {
		var err error
		late, err = s.onTime(late, 1900*time.Millisecond, func() events.Question { return propose("c9viii") })
		if err != nil {
			b.t.Fatal(err)
		}
	})
	run("B8 B10 B13 (i) nobody answers", func(b *box) {
		q := qs["c9i"]
		<-time.After(time.Until(q.Deadline.Time()))
		late := max(0, time.Since(q.Deadline.Time())) // how late clocks fire on this machine
		end := s.end(q)
		if took := end.At.Time().Sub(q.AskedAt.Time()); end.Reason != events.EndDeadline || end.Result != events.ResultTimedOut || end.Who != "" || took < 1800*time.Millisecond || took > 2200*time.Millisecond+late {
			b.t.Errorf("it ended %+v after %v", end, took)
		}
		calls["c9i"].wantRefused(events.CodeTimedOut)
	})
	run("B4 B80 (iv) yes at 2.1 s", func(b *box) {
		q := qs["c9iv"]
		b.since(q.AskedAt, 2100*time.Millisecond)
		if r := s.no(reply(q, events.AnswerContinue), events.RejectWithdrawn); r.EndReason != events.EndDeadline {
			b.t.Errorf("the late answer is told %+v", r)
		}
		calls["c9iv"].wantRefused(events.CodeTimedOut)
	})
	run("B9 (v) no limit", func(b *box) {
		b.since(qs["c9v"].AskedAt, 3*time.Second)
		s.says(qs["c9v"], events.AnswerContinue)
		calls["c9v"].wantRan(`{}`)
	})
	run("B8 B58 (viii) yes at 1.9 s and commit at 4 s", func(b *box) {
		p := proposed["c9viii"]
		v := d.verdict(p)
		b.since(late.AskedAt, 4*time.Second)
		if r := d.do(events.VerbCommit, events.Commit{Operation: p.Operation, Secret: p.Secret, Digest: v.Version.Digest}); !v.Allow || r != nil {
			b.t.Errorf("the verdict is %+v, the commit %v", v, r)
		}
	})
	t.Run("B9 (v) a limit below nothing is refused at load", func(t *testing.T) {
		h := emptyHome(t)
		h.write("config.yaml", "mode: process\nconfirmation: {timeout_seconds: -1}\n")
		if r := h.run("", "core", "serve"); r.Exit != 1 || !strings.Contains(r.Stderr, "timeout_seconds") {
			t.Errorf("%+v", r)
		}
	})
	b.stopCore()
	e := b.evidence(t)
	t.Run("B95 B96 B99 spans, and no approver where nobody answered", func(t *testing.T) {
		op := e.call(t, "c9i")
		if r, w := of(facts[events.Response](e), op), of(facts[events.Withdrawn](e), op); len(r) != 0 || len(w) != 1 || strings.HasPrefix(w[0].Message.Principal, "uid:") {
			t.Errorf("responses %+v, withdrawals %+v", r, w)
		}
		var reasons []string
		for _, v := range named(e.spans, "wait.hook_confirmation") {
			if v.Text("fermata.operation.id") == string(op) {
				reasons = append(reasons, v.Text("fermata.wait.end_reason"))
			}
		}
		if !slices.Equal(reasons, []string{"deadline"}) {
			t.Errorf("the wait's end reasons are %v", reasons)
		}
		e.checkSpans(t)
		e.checkRuns(t)
	})
}
