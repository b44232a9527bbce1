package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

func TestBlackboxAsking(t *testing.T) {
	play(t, "",
		behaviour{
			name:  "B1 every way in is asked in one place",
			rules: []rule{ask("b1"), {id: "b1-gemini", tool: "write_file", run: "{type: verdict, action: ask}"}},
			live: func(b *box) {
				s := b.screen()
				main := b.wish(wish{tool: "b1", session: "one", args: `{"path":"1"}`})
				s.question("b1")
				sub := b.wish(wish{tool: "b1", session: "two", path: "main > reviewer#1", args: `{"path":"2"}`})
				q := s.question("b1")
				if q.Path != "main > reviewer#1" {
					b.t.Errorf("the sub-agent's question names path %q", q.Path)
				}
				gemini := b.start(`{"session_id":"three","cwd":"/","hook_event_name":"BeforeTool","tool_name":"write_file","tool_input":{"file_path":"3"}}`,
					"agent-hook", "gemini", "BeforeTool")
				s.question("write_file")
				var mine []cliQuestion
				for _, q := range b.questions() {
					if q.Tool.Name == "b1" || q.Tool.Name == "write_file" {
						mine = append(mine, q)
					}
				}
				if len(mine) != 3 {
					b.t.Fatalf("`core questions` lists %+v, want three", mine)
				}
				for _, q := range mine {
					if r := b.run("", "core", "answer", string(q.Question), "continue"); r.Exit != 0 {
						b.t.Errorf("core answer: %+v", r)
					}
				}
				main.wantRan(`{"path":"1"}`)
				sub.wantRan(`{"path":"2"}`)
				if r := gemini.wait(); r.Exit != 0 || strings.Contains(r.Stdout, `"deny"`) {
					b.t.Errorf("gemini's hook: %+v", r)
				}
			},
		},
		behaviour{
			name:  "B2 a question is a HookConfirmationRequest with its own id",
			rules: []rule{{id: "b2-one", tool: "b2", run: "{type: verdict, action: ask}"}, {id: "b2-two", tool: "b2", run: "{type: verdict, action: ask}"}},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b2", `{}`)
				one := s.question("b2")
				s.says(one, events.AnswerContinue)
				two := s.question("b2")
				s.says(two, events.AnswerContinue)
				if one.ID == two.ID || one.ID == one.Operation || one.Operation != two.Operation || one.Gate != events.GateHook {
					b.t.Errorf("two questions of one call: %+v and %+v", one, two)
				}
				c.wantRan(`{}`)
			},
			log: func(t *testing.T, e evidence) {
				for _, f := range of(facts[events.Request](e), e.call(t, "b2")) {
					if f.Event.EventType() != "HookConfirmationRequest" {
						t.Errorf("it is called %s", f.Event.EventType())
					}
				}
			},
		},
		behaviour{
			name:  "B3 F13 a claim is one screen's, and a superseded one answers nothing",
			rules: []rule{ask("b3")},
			live: func(b *box) {
				one, two := b.screen(), b.screen()
				c := b.call("b3", `{}`)
				q := one.question("b3")
				two.question("b3")
				old, err := one.Claim(b.t.Context(), q.ID)
				if err != nil {
					b.t.Fatal(err)
				}
				must(b.t, "claim on the other screen", func() error {
					if q, _ := two.Inbox().Question(q.ID); q.ClaimedBy == nil || q.ClaimedBy.Frontend != one.id {
						return errNotYet
					}
					return nil
				})
				if _, err := two.Claim(b.t.Context(), q.ID); err != nil {
					b.t.Fatalf("the same person's second screen: %v", err)
				}
				late := reply(q, events.AnswerCancel)
				late.Claim = old
				one.no(late, events.RejectNotClaimer)
				two.says(q, events.AnswerContinue)
				c.wantRan(`{}`)
				if _, err := one.Claim(b.t.Context(), q.ID); err == nil {
					b.t.Error("a question that is answered was claimed")
				}
			},
		},
		behaviour{
			name:  "B3 of claims at once exactly one holds",
			rules: []rule{ask("b3race")},
			live: func(b *box) {
				screens := []*screen{b.screen(), b.screen(), b.screen()}
				c := b.call("b3race", `{}`)
				var q events.Question
				for _, s := range screens {
					q = s.question("b3race")
				}
				tokens := make([]uint64, len(screens))
				var all sync.WaitGroup
				for i, s := range screens {
					all.Go(func() { tokens[i], _ = s.Claim(b.t.Context(), q.ID) })
				}
				all.Wait()
				accepted := 0
				for i, s := range screens {
					r := reply(q, events.AnswerContinue)
					if r.Claim = tokens[i]; r.Claim == 0 {
						continue
					}
					if _, err := s.Answer(b.t.Context(), r); err == nil {
						accepted++
					}
				}
				if accepted != 1 {
					b.t.Errorf("%d of the claims %v could answer, want one", accepted, tokens)
				}
				c.wantRan(`{}`)
			},
		},
		behaviour{
			name:  "B4 B6 F9 what is no answer is refused with its type and recorded",
			rules: []rule{ask("b4")},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b4", `{}`)
				q := s.question("b4")
				for code, change := range map[events.Reject]func(*events.Respond){
					events.RejectStaleVersion:    func(r *events.Respond) { r.Digest = events.DigestOf([]byte("something else")) },
					events.RejectNotClaimer:      func(r *events.Respond) { r.Claim = 1 },
					events.RejectUnknownQuestion: func(r *events.Respond) { r.Question = freshID() },
				} {
					r := reply(q, events.AnswerContinue)
					change(&r)
					b.t.Run(string(code), func(t *testing.T) {
						if code == events.RejectUnknownQuestion {
							// the SDK needs to know where a question is; the CLI asks the core
							if r := b.run("", "core", "answer", string(r.Question), "continue", "--json"); r.Exit != 3 || !strings.Contains(r.Stdout, string(code)) {
								t.Errorf("%+v", r)
							}
							return
						}
						s.no(r, code)
					})
				}
				r := reply(q, events.AnswerContinue)
				r.Human = false
				s.no(r, events.RejectNotAllowed)
				for _, a := range []events.Answer{events.AnswerOnce, events.AnswerAlways, events.AnswerModifyEditor, "yes", ""} {
					r := reply(q, a)
					_, err := s.Answer(b.t.Context(), r)
					if err == nil {
						b.t.Errorf("%q answered a hook's question", a)
					}
				}
				if r := b.run("", "core", "answer", string(q.ID), "proceed_once"); r.Exit != 1 {
					b.t.Errorf("core answer proceed_once: %+v, want exit 1", r)
				}
				if _, open := s.Inbox().Question(q.ID); !open || !c.running() {
					b.t.Error("the question is no longer open")
				}
				s.says(q, events.AnswerContinue)
				c.wantRan(`{}`)
			},
			log: func(t *testing.T, e evidence) {
				rejected := map[events.Reject]bool{}
				for _, f := range of(facts[events.AnswerRejected](e), e.call(t, "b4")) {
					rejected[f.Event.Code] = true
				}
				for _, code := range []events.Reject{events.RejectStaleVersion, events.RejectNotClaimer, events.RejectNotAllowed} {
					if !rejected[code] {
						t.Errorf("no AnswerRejected %s in the log: %v", code, rejected)
					}
				}
			},
		},
		behaviour{
			name:  "B5 B80 a second answer changes nothing and is recorded",
			rules: []rule{ask("b5")},
			live: func(b *box) {
				s, other := b.screen(), b.screen()
				c := b.call("b5", `{}`)
				q := s.question("b5")
				other.question("b5")
				s.says(q, events.AnswerCancel)
				refused := other.no(reply(q, events.AnswerContinue), events.RejectAlreadyAnswered)
				if refused.Answer != events.AnswerCancel || refused.Who != principal() || refused.When == 0 {
					b.t.Errorf("the loser is told %+v", refused)
				}
				s.no(reply(q, events.AnswerContinue), events.RejectAlreadyAnswered)
				if _, err := s.Answer(b.t.Context(), reply(q, events.AnswerCancel)); err != nil {
					b.t.Errorf("the same answer once more: %v, want what was said first", err)
				}
				c.wantRefused(events.CodeDeclined)
				s.no(reply(q, events.AnswerContinue), events.RejectAlreadyAnswered)
			},
			log: func(t *testing.T, e evidence) {
				op := e.call(t, "b5")
				if r := of(facts[events.Response](e), op); len(r) != 1 || r[0].Event.Answer != events.AnswerCancel {
					t.Errorf("responses %+v, want the one cancel", r)
				}
				if r := of(facts[events.AnswerRejected](e), op); len(r) < 2 {
					t.Errorf("%d late answers recorded, want them all", len(r))
				}
				if w := of(facts[events.Withdrawn](e), op); len(w) > 0 {
					t.Errorf("an answered question was withdrawn: %+v", w)
				}
			},
		},
		behaviour{
			name: "B8 B9 B10 B13 a hook's own limit ends its question, by the core alone",
			rules: []rule{
				{id: "b8-own", tool: "b8own", run: "{type: verdict, action: ask}", more: ", confirmation: {timeout_seconds: 1.5}"},
				{id: "b8-none", tool: "b8none", run: "{type: verdict, action: ask}", more: ", confirmation: {timeout_seconds: 0}"},
				ask("b8default"),
			},
			live: func(b *box) {
				s := b.screen()
				own, none, def := b.call("b8own", `{}`), b.call("b8none", `{}`), b.call("b8default", `{}`)
				q, n, d := s.question("b8own"), s.question("b8none"), s.question("b8default")
				if wait := q.Deadline - q.AskedAt; wait < 1_490_000 || wait > 1_510_000 || q.DeadlineFrom != "hook" {
					b.t.Errorf("the hook's deadline is %d µs after the question, from %q", wait, q.DeadlineFrom)
				}
				if n.Deadline != 0 || d.Deadline != 0 {
					b.t.Errorf("deadlines %d and %d of questions without a limit", n.Deadline, d.Deadline)
				}
				end := s.end(q)
				if end.Reason != events.EndDeadline || end.At < q.Deadline || end.At > q.Deadline+1_000_000 || end.Who != "" {
					b.t.Errorf("the limit was %d; it ended %+v", q.Deadline, end)
				}
				own.wantRefused(events.CodeTimedOut)
				refused := s.no(reply(q, events.AnswerContinue), events.RejectWithdrawn)
				if refused.EndReason != events.EndDeadline {
					b.t.Errorf("a late answer is told %+v", refused)
				}
				s.says(n, events.AnswerContinue)
				s.says(d, events.AnswerContinue)
				none.wantRan(`{}`)
				def.wantRan(`{}`)
			},
			log: func(t *testing.T, e evidence) {
				op := e.call(t, "b8own")
				if w := of(facts[events.Withdrawn](e), op); len(w) != 1 || w[0].Event.Reason != events.EndDeadline {
					t.Errorf("withdrawals %+v, want one", w)
				}
				if len(of(facts[events.AnswerRejected](e), op)) != 1 {
					t.Error("the late answer is not recorded")
				}
			},
		},
		behaviour{
			name:  "B11 B20 B77 an asker that goes withdraws its question, once",
			rules: []rule{ask("b11")},
			live: func(b *box) {
				s := b.screen()
				hook := b.start(`{"session_id":"b11","agent":"generic","cwd":"/","tool":{"name":"b11","kind":"other","args":{}}}`, "agent-hook", "generic", "before_tool_call")
				q := s.question("b11")
				hook.signal(syscall.SIGTERM)
				s.wantEnd(q, events.EndAgentGone)
				if r := hook.wait(); r.Exit != 2 {
					b.t.Errorf("a hook that was told to end: %+v, want exit 2", r)
				}
				s.no(reply(q, events.AnswerContinue), events.RejectWithdrawn)

				c := b.call("b11", `{}`)
				q = s.question("b11")
				c.signal(syscall.SIGKILL) // the agent; its agent-hook has lost its parent
				s.wantEnd(q, events.EndAgentGone)
				if exists(c.file + ".ran") {
					b.t.Error("it ran")
				}
			},
			log: func(t *testing.T, e evidence) {
				for _, op := range e.calls("b11") {
					w := of(facts[events.Withdrawn](e), op)
					if len(w) != 1 || w[0].Event.EventType() != "HookConfirmationWithdrawn" {
						t.Errorf("withdrawals of %s: %+v, want one", op, w)
					}
				}
			},
		},
		behaviour{
			name:  "B12 B80 an answer and the asker's end have one winner",
			rules: []rule{ask("b12")},
			live: func(b *box) {
				s := b.screen()
				for range 8 {
					hook := b.start(`{"session_id":"b12","agent":"generic","cwd":"/","tool":{"name":"b12","kind":"other","args":{}}}`, "agent-hook", "generic", "before_tool_call")
					q := s.question("b12")
					var both sync.WaitGroup
					both.Go(func() { _ = hook.cmd.Process.Signal(syscall.SIGTERM) })
					_, err := s.Answer(b.t.Context(), reply(q, events.AnswerContinue))
					both.Wait()
					if end := s.end(q); (err == nil) != (end.Result == events.ResultAnswered) {
						b.t.Errorf("the answer: %v; the end: %+v", err, end)
					}
					if r := hook.wait(); r.Exit == 0 && err != nil {
						b.t.Errorf("it ran though the answer was refused: %+v", r)
					}
				}
			},
		},
		behaviour{
			name:  "B14 a person's time is not the hook's",
			rules: []rule{{id: "b14", tool: "b14", sh: `say '{"action":"ask"}'`, more: ", timeout_seconds: 0.8"}},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b14", `{}`)
				q := s.question("b14")
				b.since(q.AskedAt, 1600*time.Millisecond)
				s.says(q, events.AnswerContinue)
				c.wantRan(`{}`)
				b.wantRuns("b14", 1)
			},
		},
		behaviour{
			name:  "B22 questions of two calls do not touch each other",
			rules: []rule{ask("b22")},
			live: func(b *box) {
				s := b.screen()
				one := b.wish(wish{tool: "b22", args: `{"n":1}`, turn: "t"})
				q1 := s.question("b22")
				two := b.wish(wish{tool: "b22", args: `{"n":2}`, turn: "t"})
				q2 := s.question("b22")
				wrong := reply(q1, events.AnswerCancel)
				wrong.Digest = q2.Version.Digest
				s.no(wrong, events.RejectStaleVersion)
				s.says(q1, events.AnswerCancel)
				one.wantRefused(events.CodeDeclined)
				if _, open := s.Inbox().Question(q2.ID); !open || !two.running() {
					b.t.Fatal("the other question went too")
				}
				s.says(q2, events.AnswerContinue)
				two.wantRan(`{"n":2}`)
			},
		},
	)
}

// principal is who this test is to a core.
func principal() string { return fmt.Sprintf("uid:%d", os.Getuid()) }

// cliQuestion is a line of `core questions --json`.
type cliQuestion struct {
	Event    string
	Question events.ID
	Hook     string
	Scope    string
	Reason   string
	Tool     struct{ Name string }
	Args     json.RawMessage
	Digest   events.Digest
	Attempt  int
	Changed  json.RawMessage
	Deadline string
	End      *events.End
}

// questions are those that `core questions --json` lists.
func (b *box) questions() []cliQuestion {
	b.t.Helper()
	r := b.run("", "core", "questions", "--json")
	if r.Exit != 0 {
		b.t.Fatalf("core questions: %+v", r)
	}
	return b.lines(r.Stdout)
}

func (b *box) lines(text string) (all []cliQuestion) {
	b.t.Helper()
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		var q cliQuestion
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			b.t.Fatalf("%s: %v", line, err)
		}
		all = append(all, q)
	}
	return all
}

// B15 has a core of its own, with one place for hooks.
func TestBlackboxB15AnOpenQuestionHoldsNoPlace(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	b.write("slow.sh", fmt.Sprintf(scriptHead, b.dir, "slow")+`say '{"action":"allow"}'`)
	b.write("hooks.yaml", `version: 1
settings: {max_parallel_hooks: 1}
hooks:
  - id: asks
    event: before_tool_call
    match: {tool_name: asks}
    execution: {mode: blocking}
    run: {type: shell, shell: 'echo "{\"action\":\"ask\"}" > "$FERMATA_HOOK_RESULT"'}
  - id: slow
    event: before_tool_call
    match: {tool_name: slow}
    execution: {mode: blocking}
    run: {type: script, path: slow.sh}
`)
	s := b.screen()
	asks := b.wish(wish{tool: "asks", session: "one", args: `{}`})
	q := s.question("asks")
	b.wish(wish{tool: "slow", session: "one", args: `{}`}).wantRan(`{}`)
	b.wantRuns("slow", 1)
	if !asks.running() {
		t.Error("the question did not stay open")
	}
	s.says(q, events.AnswerContinue)
	asks.wantRan(`{}`)
}

func TestBlackboxB9LimitsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"-1", ".inf", "-.inf", ".nan", "x"} {
		t.Run("B9 config "+bad, func(t *testing.T) {
			h := emptyHome(t)
			h.write("config.yaml", "mode: process\nconfirmation: {timeout_seconds: "+bad+"}\n")
			if r := h.run("", "core", "serve"); r.Exit != 1 || !strings.Contains(r.Stderr, "timeout_seconds") {
				t.Errorf("%+v, want exit 1 and the setting's name", r)
			}
		})
	}
	for _, bad := range []string{"-1", "inf", "-Inf", "NaN", "x", ""} {
		t.Run("B9 flag "+bad, func(t *testing.T) {
			h := emptyHome(t)
			if r := h.run("", "core", "serve", "--mode", "process", "--confirmation-timeout-seconds="+bad); r.Exit != 1 || r.Stderr == "" {
				t.Errorf("%+v, want exit 1 and a reason", r)
			}
		})
	}
	b := newBox(t, "", ask("any"))
	s := b.screen()
	for _, bad := range []string{"-1", ".inf", ".nan", `"5"`} {
		t.Run("B9 hook "+bad, func(t *testing.T) {
			b, s := b.in(t), s
			b.setRules(rule{id: "limited", tool: "any", run: "{type: verdict, action: ask}", more: ", confirmation: {timeout_seconds: " + bad + "}"})
			v := b.call("any", `{}`).wantRefused(events.CodeHooksConfigInvalid)
			if !strings.Contains(v.Reason, "timeout_seconds") || !strings.Contains(v.Reason, "hooks.yaml") {
				t.Errorf("the reason is %q, want file and key", v.Reason)
			}
			if n := len(s.Inbox().Questions()); n > 0 {
				t.Errorf("%d questions", n)
			}
		})
	}
	for _, bad := range []string{"-1", "inf", "NaN"} {
		t.Run("B9 agent-hook "+bad, func(t *testing.T) {
			b := b.in(t)
			r := b.run(`{"session_id":"s","agent":"generic","cwd":"/","tool":{"name":"free","kind":"other","args":{}}}`, "agent-hook", "--timeout", bad, "generic", "before_tool_call")
			if r.Exit != 2 || !strings.Contains(r.Stdout, `"deny"`) {
				t.Errorf("%+v, want a deny", r)
			}
		})
	}
}
