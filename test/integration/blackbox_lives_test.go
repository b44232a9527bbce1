package integration_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// ender is one way in which what waits in a session comes to its end.
type ender struct {
	number string
	event  string // as agent-hook is told
	say    func(context.Context, *agents.Session) error
	reason events.EndReason
}

func enders() []ender {
	return []ender{
		{"B71 B79", "user_interrupt", func(ctx context.Context, s *agents.Session) error { return s.Interrupt(ctx) }, events.EndInterrupted},
		{"B72", "session_changed", func(ctx context.Context, s *agents.Session) error { return s.Leave(ctx) }, events.EndSessionChanged},
		{"B73", "build_changed", func(ctx context.Context, s *agents.Session) error { return s.BuildChanged(ctx) }, events.EndBuildChanged},
		{"B74", "session_end", func(ctx context.Context, s *agents.Session) error { return s.Close(ctx) }, events.EndSessionClosed},
		{"B76", "after_turn", func(ctx context.Context, s *agents.Session) error { return s.EndTurn(ctx, "t1") }, events.EndTurnEnded},
	}
}

// gone holds a question to have ended within half a second of a moment, and its
// late answer to be told why.
func (s *screen) gone(q events.Question, reason events.EndReason, since time.Time) {
	s.b.t.Helper()
	s.wantEnd(q, reason)
	if end := s.end(q); end.At.Time().Sub(since) > 500*time.Millisecond {
		s.b.t.Errorf("it took %v", end.At.Time().Sub(since))
	}
	if r := s.no(reply(q, events.AnswerContinue), events.RejectWithdrawn); r.EndReason != reason {
		s.b.t.Errorf("a late answer is told %+v, want %s", r, reason)
	}
}

// byHook ends a session's pending operations through agent-hook.
func byHook(v ender) scene {
	id := "hook-" + v.event
	ops := map[events.ID]bool{}
	return scene{
		name:  v.number + " B69 B77 B80 agent-hook " + v.event + " ends what waits, dialogs and late answers included",
		hooks: []hook{askInput(id), {id: id + "-tool", match: "profile: " + id + ", tool_name: " + id, sh: `say '{"action":"ask"}'`}},
		live: func(b *box) {
			s := b.screen()
			at := said{"session_id": id, "profile": id, "turn_id": "t1"}
			b.report("before_turn", at)
			tool1 := b.toolCall(at.with(tool(id, `{"n":1}`)))
			q1 := s.question(id)
			sub := b.toolCall(at.with(tool(id, `{"n":2}`)).with(said{"path": "main > reviewer#1"}))
			q2 := s.question(id)
			elsewhere := b.toolCall(at.with(tool(id, `{"n":3}`)).with(said{"session_id": id + "-other"}))
			kept := s.question(id)
			var input *call
			var q3 events.Question
			if v.event != "after_turn" { // a prompt belongs to no turn
				input = b.input(said{"session_id": id, "profile": id}, "prompt", id+" text")
				q3 = s.about(id + " text")
			}
			ops[q1.Operation], ops[q2.Operation] = true, true
			began := time.Now()
			b.report(v.event, at)
			s.wantEnd(q1, v.reason)
			s.gone(q1, v.reason, began.Add(time.Second)) // agent-hook's own start is not the core's
			s.gone(q2, v.reason, began.Add(time.Second))
			for _, c := range []*call{tool1, sub} {
				says(b.t, c.wantRefused(events.CodeEnded).Reason, "did not run")
			}
			if input != nil {
				s.gone(q3, v.reason, began.Add(time.Second))
				input.wantReturned(events.CodeEnded, "prompt", id+" text")
			}
			if _, open := s.Inbox().Question(kept.ID); !open || !elsewhere.running() {
				b.t.Error("another session's question has ended too")
			}
			s.says(kept, events.AnswerContinue)
			elsewhere.wantRan(`{"n":3}`)
			// the agent goes on
			b.toolCall(said{"session_id": id, "profile": id, "turn_id": "t2"}.with(tool(id+"-free", `{"n":4}`))).wantRan(`{"n":4}`)
		},
		log: func(t *testing.T, e evidence) {
			for op := range ops {
				if w := of(facts[events.Withdrawn](e), op); len(w) != 1 || w[0].Event.Reason != v.reason {
					t.Errorf("withdrawals %+v, want one", w)
				}
				if a := of(facts[events.OperationAborted](e), op); len(a) != 1 || a[0].Event.Reason != v.reason {
					t.Errorf("aborted %+v", a)
				}
				if r := of(facts[events.AnswerRejected](e), op); len(r) != 1 {
					t.Errorf("%d late answers recorded, want one", len(r))
				}
				if n := len(of(facts[events.OperationCommitted](e), op)); n > 0 {
					t.Errorf("committed %d times", n)
				}
			}
		},
	}
}

// byClient does the same through the Go client.
func byClient(v ender) scene {
	id := "go-" + v.event
	return scene{
		name:  v.number + " B69 B77 B80 the Go client's " + v.event + " ends what waits",
		hooks: []hook{askInput(id), {id: id + "-tool", match: "profile: " + id + ", tool_name: " + id, sh: `say '{"action":"ask"}'`}},
		live: func(b *box) {
			s := b.screen()
			session := b.client(agents.SessionOptions{Native: id, Profile: id})
			if err := session.Turn(b.t.Context(), "t1"); err != nil {
				b.t.Fatal(err)
			}
			ended, prompted := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := agents.Do(b.t.Context(), session, agents.Call{Tool: id, Kind: "other"}, map[string]int{"n": 1}, func(context.Context, map[string]int) (agents.Result, error) {
					b.t.Error("the tool ran")
					return agents.Result{}, nil
				})
				ended <- err
			}()
			q := s.question(id)
			var text events.Question
			if v.event != "after_turn" {
				go func() {
					prompted <- session.Prompt(b.t.Context(), agents.Input{Text: id + " text"}, func(context.Context, string, string) error {
						b.t.Error("the prompt was submitted")
						return nil
					})
				}()
				text = s.about(id + " text")
			}
			began := time.Now()
			if err := v.say(b.t.Context(), session); err != nil {
				b.t.Fatal(err)
			}
			s.gone(q, v.reason, began)
			if r := refusedBy(<-ended); r == nil || r.Code != events.CodeEnded || r.EndReason != v.reason || !strings.Contains(r.Message, "did not run") {
				b.t.Errorf("the call ended with %#v", r)
			}
			if text.ID != "" {
				s.gone(text, v.reason, began)
				if r := refusedBy(<-prompted); r == nil || r.Code != events.CodeEnded || r.Text != id+" text" || r.Input != "prompt" {
					b.t.Errorf("the prompt ended with %#v", r)
				}
			}
		},
	}
}

func TestBlackboxLives(t *testing.T) {
	var all []scene
	for _, v := range enders() {
		all = append(all, byHook(v), byClient(v))
	}
	perform(t, "", append(all,
		scene{
			name:  "B76 the end of a turn closes that turn's question only",
			hooks: []hook{{id: "b76", match: "tool_name: b76", sh: `say '{"action":"ask"}'`}},
			live: func(b *box) {
				s := b.screen()
				at := said{"session_id": "b76"}
				b.report("before_turn", at.with(said{"turn_id": "t1"}))
				one := b.toolCall(at.with(said{"turn_id": "t1"}).with(tool("b76", `{"n":1}`)))
				q1 := s.question("b76")
				b.report("before_turn", at.with(said{"turn_id": "t2"}))
				two := b.toolCall(at.with(said{"turn_id": "t2"}).with(tool("b76", `{"n":2}`)))
				q2 := s.question("b76")
				b.report("after_turn", at.with(said{"turn_id": "t1"}))
				s.wantEnd(q1, events.EndTurnEnded)
				one.wantRefused(events.CodeEnded)
				s.says(q2, events.AnswerContinue)
				two.wantRan(`{"n":2}`)
			},
		},
		scene{
			name: "B71 B69 an interrupt ends a call whose hook still runs",
			hooks: []hook{
				{id: "b71", match: "tool_name: b71", sh: `: > "$DIR/b71.started"; exec sleep 30`, more: ", timeout_seconds: 60"},
				{id: "b71then", match: "tool_name: b71", sh: ""},
			},
			live: func(b *box) {
				c := b.toolCall(said{"session_id": "b71"}.with(tool("b71", `{}`)))
				must(b.t, "running hook", func() error {
					if !exists(b.dir + "/b71.started") {
						return errNotYet
					}
					return nil
				})
				began := time.Now()
				b.report("user_interrupt", said{"session_id": "b71"})
				says(b.t, c.wantRefused(events.CodeEnded).Reason, "did not run")
				if took := time.Since(began); took > 10*time.Second {
					b.t.Errorf("it took %v", took)
				}
				b.wantRuns("b71then", 0)
			},
		},
		scene{
			name: "B59 B69 B71 B62 commit is innermost: what ends between verdict and commit does not run",
			live: func(b *box) {
				d := b.door("b59", "b59")
				args := []byte(`{"n":1}`)
				for _, verb := range []string{events.VerbInterrupt, events.VerbBuildChanged} {
					p := events.Propose{Operation: freshID(), Secret: strings.Repeat("y", 32), Kind: events.KindToolCall, Tool: &events.Tool{Name: "b59", Kind: "other"}, Args: args}
					v := d.verdict(p)
					if !v.Allow {
						b.t.Fatalf("the verdict is %+v", v)
					}
					if r := d.do(verb, events.SessionSignal{}); r != nil {
						b.t.Fatalf("%s: %v", verb, r)
					}
					if r := d.do(events.VerbCommit, events.Commit{Operation: p.Operation, Secret: p.Secret, Digest: v.Version.Digest}); r == nil {
						b.t.Errorf("after %s the call could still be committed", verb)
					}
				}
			},
			log: func(t *testing.T, e evidence) {
				for _, op := range e.calls("b59") {
					if n := len(of(facts[events.OperationDelivered](e), op)); n > 0 {
						t.Errorf("%s was delivered", op)
					}
				}
			},
		},
		scene{
			name:  "B59 B58 the Go client commits right before the tool, and the tool gets what was committed",
			hooks: []hook{{id: "b59go", match: "tool_name: b59go", sh: `say '{"action":"modify","args_override":{"path":"changed"}}'`}},
			live: func(b *box) {
				s := b.screen()
				session := b.client(agents.SessionOptions{Native: "b59go"})
				type args struct {
					Path string `json:"path"`
				}
				ran := 0
				state := func(want string) {
					must(b.t, "line "+want, func() error {
						for _, l := range s.Inbox().Lines() {
							if l.Tool.Name == "b59go" && string(l.State) == want {
								return nil
							}
						}
						return errNotYet
					})
				}
				_, err := agents.Do(b.t.Context(), session, agents.Call{Tool: "b59go", Kind: "filesystem.write"}, args{"a"}, func(_ context.Context, a args) (agents.Result, error) {
					ran++
					state("delivered")
					if a.Path != "changed" {
						b.t.Errorf("the tool got %+v", a)
					}
					return agents.Result{Text: "done"}, nil
				})
				if err != nil || ran != 1 {
					b.t.Errorf("it ran %d times: %v", ran, err)
				}
				state("finished")
			},
			log: func(t *testing.T, e evidence) {
				op := e.call(t, "b59go")
				c, f := of(facts[events.OperationCommitted](e), op), of(facts[events.OperationFinished](e), op)
				if len(c) != 1 || len(f) != 1 || f[0].Event.Ran != c[0].Event.Version.Digest || f[0].Event.Outcome != events.OutcomeOK {
					t.Errorf("committed %+v, finished %+v", c, f)
				}
			},
		},
		scene{
			name:  "B54 B55 B1 six ways in: main agent, sub-agent, workflow node and its sub-agent",
			hooks: []hook{{id: "b54", match: "tool_name: b54", sh: `say '{"action":"ask"}'`}},
			live: func(b *box) {
				s := b.screen()
				for _, path := range []string{"main", "main > reviewer#1", "flow > build#2", "flow > build#2 > checker#1"} {
					c := b.toolCall(said{"session_id": "b54", "path": path}.with(tool("b54", `{"n":1}`)))
					q := s.question("b54")
					if q.Path != path {
						b.t.Errorf("the question's path is %q, want %q", q.Path, path)
					}
					s.says(q, events.AnswerContinue)
					c.wantRan(`{"n":1}`)
				}
				session := b.client(agents.SessionOptions{Native: "b54flow", Parent: b.client(agents.SessionOptions{Native: "b54root"})})
				ended := make(chan error, 1)
				go func() {
					_, err := agents.Do(b.t.Context(), session, agents.Call{Tool: "b54", Kind: "other", Path: "flow > build#2 > checker#1"}, map[string]int{}, func(context.Context, map[string]int) (agents.Result, error) {
						b.t.Error("the node's sub-agent ran its tool")
						return agents.Result{}, nil
					})
					ended <- err
				}()
				q := s.question("b54")
				if q.Path != "flow > build#2 > checker#1" || q.Session != session.Token() {
					b.t.Errorf("the question is %+v", q)
				}
				s.says(q, events.AnswerCancel)
				if r := refusedBy(<-ended); r == nil || r.Code != events.CodeDeclined {
					b.t.Errorf("it ended %#v", r)
				}
			},
		},
		scene{
			name: "F12 what was committed and is never reported ends as unknown, in history too, and does not run again",
			live: func(b *box) {
				s := b.screen()
				at := said{"session_id": "f12", "turn_id": "t1"}
				b.report("before_turn", at)
				b.toolCall(at.with(tool("f12", `{"n":1}`))).wantRan(`{"n":1}`)
				b.report("after_turn", at)
				b.report("session_end", said{"session_id": "f12"})
				d := b.door("f12nats", "")
				p := events.Propose{Operation: freshID(), Secret: strings.Repeat("z", 32), Kind: events.KindToolCall, Tool: &events.Tool{Name: "f12nats", Kind: "other"}, Args: []byte(`{"n":1}`)}
				v := d.verdict(p)
				if r := d.do(events.VerbCommit, events.Commit{Operation: p.Operation, Secret: p.Secret, Digest: v.Version.Digest}); r != nil {
					b.t.Fatalf("commit: %v", r)
				}
				if r := d.do(events.VerbSessionClose, events.SessionSignal{}); r != nil {
					b.t.Fatalf("session_close: %v", r)
				}
				for _, name := range []string{"f12", "f12nats"} {
					must(b.t, "unknown outcome of "+name+" in the history", func() error {
						for _, l := range s.Inbox().Lines() {
							if l.Tool.Name == name && l.Outcome == events.OutcomeUnknown {
								return nil
							}
						}
						return errNotYet
					})
				}
				if r := b.again(p.Operation, p.Secret, payload("f12nats", "f12nats", `{"n":1}`)); r.Exit != 2 {
					b.t.Errorf("the same operation once more hears %+v, want a deny", r)
				}
			},
			log: func(t *testing.T, e evidence) {
				for _, name := range []string{"f12", "f12nats"} {
					op := e.call(t, name)
					if f := of(facts[events.OperationFinished](e), op); len(f) != 1 || f[0].Event.Outcome != events.OutcomeUnknown {
						t.Errorf("%s finished %+v, want unknown", name, f)
					}
				}
			},
		},
		scene{
			name: "F12 a report that comes makes it known",
			live: func(b *box) {
				at := said{"session_id": "f12known", "turn_id": "t1"}
				b.report("before_turn", at)
				b.toolCall(at.with(tool("f12known", `{"n":1}`))).wantRan(`{"n":1}`)
				b.report("after_tool_call", at.with(tool("f12known", `{"n":1}`)).with(said{"result": said{"text": "done", "error": "", "failed": false, "duration_ms": 3}}))
				b.report("after_turn", at)
			},
			log: func(t *testing.T, e evidence) {
				if f := of(facts[events.OperationFinished](e), e.call(t, "f12known")); len(f) != 1 || f[0].Event.Outcome != events.OutcomeOK {
					t.Errorf("it finished %+v, want ok", f)
				}
			},
		},
		scene{
			name:  "B80 B71 a cancelled context withdraws the Go client's call",
			hooks: []hook{{id: "b80", match: "tool_name: b80", sh: `say '{"action":"ask"}'`}},
			live: func(b *box) {
				s := b.screen()
				session := b.client(agents.SessionOptions{Native: "b80"})
				ctx, cancel := context.WithCancel(b.t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := agents.Do(ctx, session, agents.Call{Tool: "b80", Kind: "other"}, map[string]int{}, func(context.Context, map[string]int) (agents.Result, error) {
						b.t.Error("it ran")
						return agents.Result{}, nil
					})
					ended <- err
				}()
				q := s.question("b80")
				began := time.Now()
				cancel()
				s.gone(q, events.EndCallerCancelled, began)
				if err := <-ended; !errors.Is(err, context.Canceled) {
					b.t.Errorf("it ended with %v", err)
				}
			},
		},
		scene{
			name: "B58 B59 F12 the right to run is confirmed to one process, once",
			live: func(b *box) {
				d, other := b.door("b58", ""), b.door("b58", "")
				p := events.Propose{Operation: freshID(), Secret: strings.Repeat("r", 32), Kind: events.KindToolCall, Tool: &events.Tool{Name: "b58", Kind: "other"}, Args: []byte(`{"n":1}`)}
				v := d.verdict(p)
				commit := events.Commit{Operation: p.Operation, Secret: p.Secret, Digest: v.Version.Digest}
				if r := d.do(events.VerbCommit, commit); r != nil {
					b.t.Fatalf("commit: %v", r)
				}
				if r := other.do(events.VerbCommit, commit); r == nil {
					b.t.Error("the commit of another process was confirmed too")
				}
				if v := other.verdict(p); v.Allow {
					b.t.Errorf("the same operation once more is allowed: %+v", v)
				}
				if r := d.do(events.VerbFinish, events.Finish{Operation: p.Operation, Secret: p.Secret, Outcome: events.OutcomeOK, Ran: v.Version.Digest}); r != nil {
					b.t.Errorf("finish: %v", r)
				}
				if r := d.do(events.VerbCommit, commit); r == nil {
					b.t.Error("what has finished was committed again")
				}
			},
		},
		scene{
			name:  "B76 B75 calls and injections that name no turn end with the session's turn",
			hooks: []hook{askInput("b76none"), {id: "b76none-tool", match: "tool_name: b76none", sh: `say '{"action":"ask"}'`}},
			live: func(b *box) {
				s := b.screen()
				at := said{"session_id": "b76none", "profile": "b76none"}
				b.report("before_turn", at.with(said{"turn_id": "t1"}))
				c := b.toolCall(at.with(tool("b76none", `{}`)))
				q := s.question("b76none")
				i := b.input(at, "injection", "b76none")
				text := s.about("b76none")
				b.report("after_turn", at.with(said{"turn_id": "t1"}))
				s.wantEnd(q, events.EndTurnEnded)
				c.wantRefused(events.CodeEnded)
				if end := s.end(text); end.Result != events.ResultWithdrawn {
					b.t.Errorf("the injection's question ended %+v", end)
				}
				i.wantReturned(events.CodeEnded, "injection", "b76none")
			},
		},
		scene{
			name:  "B71 B55 an interrupt reaches the sub-agents of the session",
			hooks: []hook{{id: "b71sub", match: "tool_name: b71sub", sh: `say '{"action":"ask"}'`}},
			live: func(b *box) {
				s := b.screen()
				c := b.toolCall(said{"session_id": "b71child", "parent_session_id": "b71root", "path": "main > sub#1"}.with(tool("b71sub", `{}`)))
				q := s.question("b71sub")
				b.report("user_interrupt", said{"session_id": "b71root"})
				s.wantEnd(q, events.EndInterrupted)
				c.wantRefused(events.CodeEnded)
			},
		},
	)...)
}
