package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// awkward is a text in which something would be lost by nearly every way of
// carrying it.
const awkward = "  <b>a & b</b> \"q\" \\n 'x' $HOME `id`\r\n\ttab \u00e9 e\u0301 \u202e\u200b \U0001F600 \x7f end \n\n"

// askInput is the hook that asks about every input of a profile.
func askInput(id string) hook {
	return hook{id: id, event: "user_prompt_submit", match: "profile: " + id, sh: `say '{"action":"ask","reason":"May it go?"}'`}
}

func blockInput(id string) hook {
	return hook{id: id, event: "user_prompt_submit", match: "profile: " + id, run: "{type: verdict, action: block, reason: Not this.}"}
}

// inputKinds are what agents call the inputs, and what the log does.
func inputKinds() map[string]events.Kind {
	return map[string]events.Kind{"prompt": events.KindUserPrompt, "injection": events.KindInjection, "retry_note": events.KindRetryNote}
}

func TestBlackboxInputs(t *testing.T) {
	perform(t, "",
		scene{
			name:  "B16 B23 B54 B91 an input is asked about while it is still being sent, and goes byte for byte",
			hooks: []hook{askInput("b16")},
			live: func(b *box) {
				s := b.screen()
				for word, kind := range inputKinds() {
					text := "b16" + word + awkward
					c := b.input(said{"session_id": "b16-" + word, "profile": "b16"}, word, text)
					q := s.about(text)
					if !c.running() {
						b.t.Fatalf("%s: its agent did not wait", word)
					}
					if q.Kind != kind || q.Gate != events.GateHook || q.Hook.ID != "b16" || q.Reason != "May it go?" || q.Path != "main" {
						b.t.Errorf("the question about a %s is %+v", word, q)
					}
					if events.DigestOf(q.Args) != q.Version.Digest {
						b.t.Errorf("the digest is not of what is shown: %s", q.Args)
					}
					s.says(q, events.AnswerContinue)
					c.wantSubmitted(text, "")
				}
				inputs := map[string]bool{}
				for _, v := range b.awaitTold("b16", 3) {
					inputs[v.Input] = true
					if v.Text != "b16"+v.Input+awkward || v.Event != "user_prompt_submit" || v.Available == nil || !*v.Available {
						b.t.Errorf("the script was given %+v", v)
					}
					if v.Injected == nil || *v.Injected != (v.Input == "injection") {
						b.t.Errorf("injected of a %s is %v", v.Input, v.Injected)
					}
				}
				if len(inputs) != 3 {
					b.t.Errorf("the kinds are %v", inputs)
				}
			},
			log: func(t *testing.T, e evidence) {
				var kinds []events.Kind
				for _, f := range facts[events.OperationProposed](e) {
					if f.Event.Profile == "b16" {
						kinds = append(kinds, f.Event.Kind)
					}
				}
				slices.Sort(kinds)
				if !slices.Equal(kinds, []events.Kind{events.KindInjection, events.KindRetryNote, events.KindUserPrompt}) {
					t.Errorf("the log has the kinds %v", kinds)
				}
			},
		},
		scene{
			name:  "B90 B91 B92 a cancelled input comes back byte for byte, with its kind",
			hooks: []hook{askInput("b90")},
			live: func(b *box) {
				s := b.screen()
				for word := range inputKinds() {
					text := "b90" + word + awkward
					c := b.input(said{"session_id": "b90-" + word, "profile": "b90"}, word, text)
					s.says(s.about(text), events.AnswerCancel)
					c.wantReturned(events.CodeDeclined, word, text)
				}
			},
		},
		scene{
			name:  "B90 B91 a blocked input comes back the same way",
			hooks: []hook{blockInput("b90block")},
			live: func(b *box) {
				for word := range inputKinds() {
					v := b.input(said{"session_id": "b90block", "profile": "b90block"}, word, awkward).wantReturned(events.CodeBlocked, word, awkward)
					says(b.t, v.Reason, "Not this.")
				}
			},
		},
		scene{
			name:  "B90 B91 B92 the Go client gives a refused input back apart from an error",
			hooks: []hook{askInput("b92")},
			live: func(b *box) {
				s := b.screen()
				session := b.client(agents.SessionOptions{Native: "b92", Profile: "b92"})
				for word, kind := range inputKinds() {
					ended := make(chan error, 1)
					go func() {
						ended <- session.Prompt(b.t.Context(), agents.Input{Kind: kind, Text: "b92" + word + awkward}, func(context.Context, string, string) error {
							b.t.Errorf("a refused %s was submitted", word)
							return nil
						})
					}()
					s.says(s.about("b92"+word+awkward), events.AnswerCancel)
					err := <-ended
					if r := refusedBy(err); r == nil || r.Input != word || r.Text != "b92"+word+awkward || r.Code != events.CodeDeclined {
						b.t.Errorf("%s: the client says %#v, want a refusal with kind and text", word, err)
					}
				}
				broken := errors.New("the model is gone")
				ended := make(chan error, 1)
				go func() {
					ended <- session.Prompt(b.t.Context(), agents.Input{Text: "b92 broken"}, func(context.Context, string, string) error { return broken })
				}()
				s.says(s.about("b92 broken"), events.AnswerContinue)
				if err := <-ended; refusedBy(err) != nil || !errors.Is(err, broken) {
					b.t.Errorf("the submit failed, and the client says %#v", err)
				}
			},
		},
		scene{
			name:  "B91 B92 the NATS door says what was refused",
			hooks: []hook{askInput("b92nats")},
			live: func(b *box) {
				s := b.screen()
				text, heard := "b92nats"+awkward, make(chan events.OperationVerdict, 1)
				d := b.door("b92nats", "b92nats")
				go func() {
					heard <- d.verdict(events.Propose{Operation: freshID(), Kind: events.KindRetryNote, Text: &text})
				}()
				s.says(s.about(text), events.AnswerCancel)
				if v := <-heard; v.Allow || v.Input != "retry_note" || v.Text == nil || *v.Text != text || v.Code != events.CodeDeclined {
					b.t.Errorf("the verdict is %+v", v)
				}
			},
		},
		scene{
			name: "B92 what cannot be read is an error and no refused prompt",
			live: func(b *box) {
				for _, stdin := range []string{
					`{"session_id":"b92","agent":"generic","cwd":"/","input":"text"}`,
					`{"session_id":"b92","agent":"generic","cwd":"/","input":{"kind":"prompt"}}`,
					`{"session_id":"b92","agent":"generic","cwd":"/","input":{"text":"x","kind":"remark"}}`,
					`{"session_id":"b92","agent":"generic","cwd":"/"}`,
					`not JSON`,
				} {
					r := b.run(stdin, "agent-hook", "generic", "user_prompt_submit")
					var v heard
					if err := json.Unmarshal([]byte(r.Stdout), &v); err != nil || r.Exit != 2 || v.Decision != "deny" || v.Refused != nil || v.Text != nil || v.Code == events.CodeDeclined || v.Code == events.CodeBlocked {
						b.t.Errorf("%s: %+v, want a deny that is no refused input", stdin, r)
					}
				}
			},
		},
		scene{
			name: "B40 a reminder of a hook that asks is kept on continue only",
			hooks: []hook{
				{id: "b40first", event: "user_prompt_submit", match: "profile: b40", sh: `say '{"system_reminder":"FIRST"}'`},
				{id: "b40", event: "user_prompt_submit", match: "profile: b40", sh: `say '{"action":"ask","system_reminder":"ASKED"}'`},
				{id: "b40last", event: "user_prompt_submit", match: "profile: b40", sh: `say '{"action":"allow","system_reminder":"LAST"}'`},
			},
			live: func(b *box) {
				s := b.screen()
				yes := b.input(said{"session_id": "b40", "profile": "b40"}, "prompt", "b40 yes")
				q := s.about("b40 yes")
				if strings.Contains(q.Reason, "ASKED") || len(q.Changed) > 0 {
					b.t.Errorf("the question is %+v", q)
				}
				s.says(q, events.AnswerContinue)
				v := yes.heard()
				first, asked, last := strings.Index(v.Reminder, "FIRST"), strings.Index(v.Reminder, "ASKED"), strings.Index(v.Reminder, "LAST")
				if first < 0 || asked < first || last < asked || *v.Text != "b40 yes" {
					b.t.Errorf("after continue the agent reads %s, want the three reminders in order", v.raw)
				}
				no := b.input(said{"session_id": "b40", "profile": "b40"}, "prompt", "b40 no")
				s.says(s.about("b40 no"), events.AnswerCancel)
				if v := no.wantReturned(events.CodeDeclined, "prompt", "b40 no"); strings.Contains(v.raw+v.stderr, "ASKED") || v.Reminder != "" {
					b.t.Errorf("after cancel the agent reads %s", v.raw)
				}
				b.awaitTold("b40last", 1)
			},
		},
		scene{
			name:  "B94 after a refusal of each sort the next prompt goes, and so does the refused one",
			hooks: []hook{{id: "b94", event: "user_prompt_submit", match: "profile: b94", sh: `case $IN in *declined*) say '{"action":"ask"}';; *blocked*) say '{"action":"block","reason":"No."}';; esac`}},
			live: func(b *box) {
				at := said{"session_id": "b94", "profile": "b94"}
				s := b.screen()
				c := b.input(at, "prompt", "b94 declined")
				s.says(s.about("b94 declined"), events.AnswerCancel)
				c.wantReturned(events.CodeDeclined, "prompt", "b94 declined")
				b.input(at, "prompt", "b94 one").wantSubmitted("b94 one", "")
				b.input(at, "prompt", "b94 blocked").wantReturned(events.CodeBlocked, "prompt", "b94 blocked")
				b.input(at, "prompt", "b94 two").wantSubmitted("b94 two", "")
				c = b.input(at, "prompt", "b94 declined")
				s.says(s.about("b94 declined"), events.AnswerContinue)
				c.wantSubmitted("b94 declined", "")
			},
		},
		scene{
			name:  "B81 a refused injection refuses only that message",
			hooks: []hook{askInput("b81"), {id: "b81tool", match: "profile: b81, tool_name: b81", run: "{type: verdict, action: ask}"}},
			live: func(b *box) {
				s := b.screen()
				at := said{"session_id": "b81", "profile": "b81", "turn_id": "t1"}
				b.report("before_turn", at)
				call := b.toolCall(at.with(tool("b81", `{"n":1}`)))
				q := s.question("b81")
				no := b.input(at, "injection", "b81 no")
				other := b.input(at, "injection", "b81 other")
				s.says(s.about("b81 no"), events.AnswerCancel)
				no.wantReturned(events.CodeDeclined, "injection", "b81 no")
				asked := s.about("b81 other")
				if _, open := s.Inbox().Question(q.ID); !open || !call.running() || !other.running() {
					b.t.Error("more than the refused message has ended")
				}
				s.says(q, events.AnswerContinue)
				call.wantRan(`{"n":1}`)
				s.says(asked, events.AnswerContinue)
				other.wantSubmitted("b81 other", "")
				b.toolCall(at.with(tool("b81free", `{"n":2}`))).wantRan(`{"n":2}`)
			},
		},
		scene{
			name:  "B70 B77 B80 withdrawing a queued injection ends it and its question",
			hooks: []hook{askInput("b70")},
			live: func(b *box) {
				s := b.screen()
				at := said{"session_id": "b70", "profile": "b70", "turn_id": "t1"}
				stays := b.input(at, "injection", "b70 stays")
				kept := s.about("b70 stays")
				c := b.input(at, "injection", "b70 gone")
				q := s.about("b70 gone")
				b.report("message_withdrawn", at.with(said{"operation": q.Operation}))
				s.wantEnd(q, events.EndMessageWithdrawn)
				c.wantReturned(events.CodeEnded, "injection", "b70 gone")
				if r := s.no(reply(q, events.AnswerContinue), events.RejectWithdrawn); r.EndReason != events.EndMessageWithdrawn {
					b.t.Errorf("a late answer is told %+v", r)
				}
				if _, open := s.Inbox().Question(kept.ID); !open || !stays.running() {
					b.t.Error("the other message went too")
				}
				s.says(kept, events.AnswerContinue)
				stays.wantSubmitted("b70 stays", "")
			},
		},
		scene{
			name:  "B70 the Go client takes a queued message back",
			hooks: []hook{askInput("b70go")},
			live: func(b *box) {
				s := b.screen()
				session := b.client(agents.SessionOptions{Native: "b70go", Profile: "b70go"})
				ctx, cancel := context.WithCancelCause(b.t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- session.Prompt(ctx, agents.Input{Kind: events.KindInjection, Text: "b70go"}, func(context.Context, string, string) error {
						b.t.Error("it was submitted")
						return nil
					})
				}()
				q := s.about("b70go")
				cancel(agents.ErrMessageWithdrawn)
				s.wantEnd(q, events.EndMessageWithdrawn)
				if err := <-ended; err == nil {
					b.t.Error("the prompt ended without an error")
				}
			},
		},
		scene{
			name:  "B75 B77 an injection's question ends with the run that it was for, and only that",
			hooks: []hook{askInput("b75")},
			live: func(b *box) {
				s := b.screen()
				at := said{"session_id": "b75", "profile": "b75"}
				b.report("before_turn", at.with(said{"turn_id": "t1"}))
				c := b.input(at.with(said{"turn_id": "t1"}), "injection", "b75 for t1")
				q := s.about("b75 for t1")
				elsewhere := b.input(said{"session_id": "b75other", "profile": "b75", "turn_id": "t1"}, "injection", "b75 elsewhere")
				kept := s.about("b75 elsewhere")
				b.report("after_turn", at.with(said{"turn_id": "t1"}))
				if end := s.end(q); end.Result != events.ResultWithdrawn || end.Reason != events.EndRunEnded && end.Reason != events.EndTurnEnded {
					b.t.Errorf("it ended %+v, want the run's end", end)
				}
				c.wantReturned(events.CodeEnded, "injection", "b75 for t1")
				s.says(kept, events.AnswerContinue)
				elsewhere.wantSubmitted("b75 elsewhere", "")
			},
		},
		scene{
			name:  "B60 B61 an input commits where it is submitted, and only what was checked",
			hooks: []hook{askInput("b60")},
			live: func(b *box) {
				s := b.screen()
				d := b.door("b60", "b60")
				text := "b60 text"
				p := events.Propose{Operation: freshID(), Secret: strings.Repeat("x", 32), Kind: events.KindUserPrompt, Text: &text}
				early := make(chan *events.Refused, 1)
				verdict := make(chan events.OperationVerdict, 1)
				go func() { verdict <- d.verdict(p) }()
				q := s.about(text)
				go func() {
					early <- d.do(events.VerbCommit, events.Commit{Operation: p.Operation, Secret: p.Secret, Digest: q.Version.Digest})
				}()
				if r := <-early; r == nil {
					b.t.Error("a commit while the question is open was taken")
				}
				s.says(q, events.AnswerContinue)
				v := <-verdict
				if !v.Allow || v.Text == nil || *v.Text != text || v.Version.Digest != q.Version.Digest {
					b.t.Fatalf("the verdict is %+v", v)
				}
				other, err := json.Marshal("b60 other")
				if err != nil {
					b.t.Fatal(err)
				}
				if r := d.do(events.VerbCommit, events.Commit{Operation: p.Operation, Secret: p.Secret, Digest: events.DigestOf(other)}); r == nil {
					b.t.Error("another text was committed")
				}
				if r := d.do(events.VerbCommit, events.Commit{Operation: p.Operation, Secret: p.Secret, Digest: v.Version.Digest}); r == nil {
					b.t.Error("it was committed after it had ended")
				}
			},
			log: func(t *testing.T, e evidence) {
				for _, f := range facts[events.OperationProposed](e) {
					if f.Event.Profile != "b60" {
						continue
					}
					op := f.Message.Operation
					if r := of(facts[events.OperationRefused](e), op); len(r) != 1 || r[0].Event.Code != events.CodeChangedAfterCheck {
						t.Errorf("it was refused %+v, want changed_after_check", r)
					}
					if n := len(of(facts[events.OperationDelivered](e), op)); n > 0 {
						t.Errorf("it was delivered %d times", n)
					}
				}
			},
		},
		scene{
			name: "B60 B69 a text is in the log as committed before it is submitted",
			live: func(b *box) {
				s := b.screen()
				session := b.client(agents.SessionOptions{Native: "b69", Profile: "b69"})
				err := session.Prompt(b.t.Context(), agents.Input{Text: "b69"}, func(_ context.Context, text, _ string) error {
					must(b.t, "line of an input that is being submitted", func() error {
						for _, l := range s.Inbox().Lines() {
							if l.Session == session.Token() && l.State == "delivered" {
								return nil
							}
						}
						return errNotYet
					})
					if text != "b69" {
						b.t.Errorf("it is submitted as %q", text)
					}
					return session.Interrupt(b.t.Context()) // what is committed is not pending any more
				})
				if err != nil {
					b.t.Errorf("the prompt: %v", err)
				}
			},
			log: func(t *testing.T, e evidence) {
				for _, f := range facts[events.OperationProposed](e) {
					if f.Event.Profile != "b69" {
						continue
					}
					op := f.Message.Operation
					if a := of(facts[events.OperationAborted](e), op); len(a) > 0 {
						t.Errorf("it was aborted: %+v", a)
					}
					if f := of(facts[events.OperationFinished](e), op); len(f) != 1 || f[0].Event.Outcome != events.OutcomeOK {
						t.Errorf("it finished %+v", f)
					}
				}
			},
		},
		scene{
			name:  "B70 only an input's own session takes it back, and a tool call is no message",
			hooks: []hook{askInput("b70own"), {id: "b70tool", match: "tool_name: b70tool", sh: `say '{"action":"ask"}'`}},
			live: func(b *box) {
				s := b.screen()
				at := said{"session_id": "b70own", "profile": "b70own"}
				c := b.toolCall(at.with(tool("b70tool", `{}`)))
				q := s.question("b70tool")
				i := b.input(at, "injection", "b70own")
				text := s.about("b70own")
				b.report("message_withdrawn", at.with(said{"operation": q.Operation}))
				b.report("message_withdrawn", said{"session_id": "b70else", "operation": text.Operation})
				b.report("message_withdrawn", at.with(said{"operation": freshID()}))
				s.says(q, events.AnswerContinue)
				c.wantRan(`{}`)
				s.says(text, events.AnswerContinue)
				i.wantSubmitted("b70own", "")
			},
		},
		scene{
			name:  "B79 B12 B80 an interrupt and a yes have one winner, and what was not accepted is not submitted",
			hooks: []hook{askInput("b79")},
			live: func(b *box) {
				s := b.screen()
				session := b.client(agents.SessionOptions{Native: "b79", Profile: "b79"})
				for n := range 10 {
					text := fmt.Sprintf("b79 %d", n)
					submitted := false
					ended := make(chan error, 1)
					go func() {
						ended <- session.Prompt(b.t.Context(), agents.Input{Text: text}, func(context.Context, string, string) error {
							submitted = true
							return nil
						})
					}()
					q := s.about(text)
					var both sync.WaitGroup
					both.Go(func() {
						if err := session.Interrupt(b.t.Context()); err != nil {
							b.t.Errorf("interrupt: %v", err)
						}
					})
					_, err := s.Answer(b.t.Context(), reply(q, events.AnswerContinue))
					both.Wait()
					result := <-ended
					if end := s.end(q); (err == nil) != (end.Result == events.ResultAnswered) || err != nil && end.Reason != events.EndInterrupted {
						b.t.Errorf("the answer: %v; the end: %+v", err, end)
					}
					if submitted != (result == nil) || submitted && err != nil {
						b.t.Errorf("submitted %v; the prompt: %v; the answer: %v", submitted, result, err)
					}
				}
			},
		},
		scene{
			name:  "B16 B23 the command line lists an input's question and answers it",
			hooks: []hook{askInput("b16cli")},
			live: func(b *box) {
				s := b.screen()
				c := b.input(said{"session_id": "b16cli", "profile": "b16cli"}, "injection", "b16cli \u202e text")
				q := s.about("b16cli \u202e text")
				for _, l := range b.questions() {
					var text string
					if l.Question == q.ID && (json.Unmarshal(l.Args, &text) != nil || text != "b16cli \u202e text" || l.Hook != "b16cli") {
						b.t.Errorf("core questions says %+v", l)
					}
				}
				if r := b.run("", "core", "answer", string(q.ID), "cancel", "--text", "rather not"); r.Exit != 0 {
					b.t.Errorf("core answer: %+v", r)
				}
				says(b.t, c.wantReturned(events.CodeDeclined, "injection", "b16cli \u202e text").Reason, "rather not")
			},
		},
	)
}
