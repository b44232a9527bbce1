package integration_test

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

func TestBlackboxRefusals(t *testing.T) {
	play(t, "",
		behaviour{
			name:  "B82 B83 B68 F8 declined, with the person's own words",
			rules: []rule{ask("b83")},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b83", `{}`)
				r := reply(s.question("b83"), events.AnswerCancel)
				const words = "use the \"staging\" db,\nnot <prod> – it's é\u202e!"
				r.Text = words
				if _, err := s.Answer(b.t.Context(), r); err != nil {
					b.t.Fatal(err)
				}
				v := c.wantRefused(events.CodeDeclined)
				says(b.t, v.Reason, "did not run", "unless the user asks", "user")
				if !strings.Contains(v.Reason, words) {
					b.t.Errorf("the model reads %q, want %q in it unchanged", v.Reason, words)
				}
			},
			log: func(t *testing.T, e evidence) {
				if r := of(facts[events.Response](e), e.call(t, "b83")); len(r) != 1 || !r[0].Event.HasText {
					t.Errorf("responses %+v, want one with text", r)
				}
			},
		},
		behaviour{
			name:  "B82 B84 no answer in time",
			rules: []rule{{id: "b84", tool: "b84", run: "{type: verdict, action: ask}", more: ", confirmation: {timeout_seconds: 0.2}"}},
			live: func(b *box) {
				b.screen()
				says(b.t, b.call("b84", `{}`).wantRefused(events.CodeTimedOut).Reason, "did not run", "ask the user")
			},
		},

		behaviour{
			name:  "B82 blocked by a rule",
			rules: []rule{{id: "b82", tool: "b82", run: "{type: verdict, action: block, reason: Not here.}"}},
			live: func(b *box) {
				says(b.t, b.call("b82", `{}`).wantRefused(events.CodeBlocked).Reason, "did not run", "Not here.")
			},
		},
		behaviour{
			name:  "B89 B94 a refused call has its line, and the session goes on",
			rules: []rule{ask("b89"), {id: "b94block", tool: "b94block", run: "{type: verdict, action: block}"}},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b89", `{}`)
				q := s.question("b89")
				s.says(q, events.AnswerCancel)
				c.wantRefused(events.CodeDeclined)
				must(b.t, "line of the refused call", func() error {
					for _, l := range s.Inbox().Lines() {
						if l.Operation == q.Operation && l.State == "refused" && l.Code == events.CodeDeclined && l.Who == principal() && l.Tool.Name == "b89" {
							return nil
						}
					}
					return errNotYet
				})
				b.wish(wish{tool: "b94block", session: "s-b89", args: `{}`}).wantRefused(events.CodeBlocked)
				b.wish(wish{tool: "b94free", session: "s-b89", args: `{"n":1}`}).wantRan(`{"n":1}`)
				c = b.wish(wish{tool: "b89", session: "s-b89", args: `{"other":1}`})
				s.says(s.question("b89"), events.AnswerContinue)
				c.wantRan(`{"other":1}`)
			},
		},
		behaviour{
			name:  "B93 the gated agent hook ends with 2 on every refusal",
			rules: []rule{{id: "b93", tool: "write_file", run: "{type: verdict, action: block, reason: Not here.}"}},
			live: func(b *box) {
				r := b.run(`{"session_id":"g","cwd":"/","hook_event_name":"BeforeTool","tool_name":"write_file","tool_input":{"file_path":"3"}}`,
					"agent-hook", "gemini", "BeforeTool")
				if r.Exit != 2 || !strings.Contains(r.Stderr, "did not run") || !strings.Contains(r.Stderr, "Not here.") {
					b.t.Errorf("%+v", r)
				}
			},
		},
		behaviour{
			name:  "F8 a question says which hook, rule and file asked",
			rules: []rule{{id: "f8", tool: "f8", run: "{type: verdict, action: ask, reason: Because.}"}},
			live: func(b *box) {
				s := b.screen()
				c := b.call("f8", `{"a":1}`)
				q := s.question("f8")
				lines := strings.Split(b.file("config/hooks.yaml"), "\n")
				if q.Hook.Line < 1 || !strings.Contains(lines[q.Hook.Line-1], "f8") || q.Hook.File != b.dirs.Config+"/hooks.yaml" || q.Reason != "Because." {
					b.t.Errorf("the question names %+v, reason %q", q.Hook, q.Reason)
				}
				if q.Cwd != b.dir || q.Agent != "generic" || q.Path != "main" || q.Tool.Kind != "filesystem.write" {
					b.t.Errorf("its context is %+v", q)
				}
				r := b.run("", "core", "answer", string(q.ID), "cancel", "--text", "do it by hand")
				if r.Exit != 0 {
					b.t.Errorf("core answer --text: %+v", r)
				}
				says(b.t, c.wantRefused(events.CodeDeclined).Reason, "do it by hand")
			},
		},
		behaviour{
			name:  "B95 B96 B97 B98 the spans of one call",
			rules: []rule{{id: "b95first", tool: "b95", sh: ""}, {id: "b95", tool: "b95", sh: `say '{"action":"ask"}'`}, {id: "b95last", tool: "b95", sh: ""}},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b95", `{}`)
				q := s.question("b95")
				b.since(q.AskedAt, 300*time.Millisecond)
				s.says(q, events.AnswerContinue)
				c.wantRan(`{}`)
				all := b.spans(q.Operation)
				waits, runs := named(all, "wait."), named(all, "hook.run")
				if len(waits) != 1 || len(runs) != 3 || len(named(all, "commit")) != 1 {
					b.t.Fatalf("%d waits, %d runs in %d spans", len(waits), len(runs), len(all))
				}
				w := waits[0]
				for key, want := range map[string]string{
					"fermata.question.id": string(q.ID), "fermata.wait.category": "hook_confirmation", "fermata.wait.result": "answered",
					"fermata.wait.end_reason": "continue", "fermata.hook.name": "b95", "fermata.frontend.id": string(s.id),
				} {
					if w.Text(key) != want {
						b.t.Errorf("%s is %q, want %q", key, w.Text(key), want)
					}
				}
				if took := time.Duration(w.EndTimeUnixNano - w.StartTimeUnixNano); took < 300*time.Millisecond || took > 20*time.Second {
					b.t.Errorf("the wait took %v", took)
				}
				for _, r := range runs {
					before, after := r.EndTimeUnixNano <= w.StartTimeUnixNano, r.StartTimeUnixNano >= w.EndTimeUnixNano
					if last := r.Text("fermata.hook.name") == "b95last"; last && !after || !last && !before {
						b.t.Errorf("the run of %s and the wait overlap", r.Text("fermata.hook.name"))
					}
					if r.Text("fermata.hook.name") == "b95" && r.Text("fermata.hook.effect") != "ask" {
						b.t.Errorf("the asking run has effect %q", r.Text("fermata.hook.effect"))
					}
				}
			},
		},
	)
}

// TestBlackboxClose ends a core that has questions open, as `core stop` does.
func TestBlackboxClose(t *testing.T) {
	t.Parallel()
	b := newBox(t, "", ask("open"),
		rule{id: "slow", tool: "slow", sh: `echo $$ > "$DIR/slow.pid"; sleep 300`, more: ", timeout_seconds: 600"})
	s := b.screen()
	var calls []*call
	for _, n := range []string{"1", "2", "3", "4"} {
		calls = append(calls, b.wish(wish{tool: "open", session: "s" + n, args: `{"n":` + n + `}`}))
	}
	var asked []events.Question
	for range calls {
		asked = append(asked, s.question("open"))
	}
	slow := b.call("slow", `{}`)
	must(t, "running hook", func() error {
		if len(b.file("slow.pid")) == 0 {
			return errNotYet
		}
		return nil
	})
	// what cannot be written at the end must not keep the end from coming
	if err := os.MkdirAll(b.dirs.State+"/snapshot/in/the/way", 0o700); err != nil {
		t.Fatal(err)
	}

	t.Run("B17 B18 B21 B77 B78 every call is refused, whoever else closes", func(t *testing.T) {
		b := b.in(t)
		first := b.start("", "core", "stop")
		first.signal(syscall.SIGKILL) // cancelled, at whatever point that is
		var both sync.WaitGroup
		for range 2 {
			stop := b.start("", "core", "stop")
			both.Go(func() { <-stop.ended })
		}
		both.Wait()
		for _, c := range append(calls, slow) {
			c.b = b
			v := c.wantRefused(events.CodeEnded)
			says(t, v.Reason, "did not run")
		}
		must(t, "end of the core", func() error {
			if b.core.running() {
				return errNotYet
			}
			return nil
		})
		for _, q := range asked {
			if end, known := s.Inbox().Ended(q.ID); known && end.Reason != events.EndShutdown {
				t.Errorf("a question ended %+v", end)
			}
		}
		if pid := strings.TrimSpace(b.file("slow.pid")); exists("/proc/" + pid + "/status") {
			must(t, "end of the hook's process", func() error {
				if status, err := os.ReadFile("/proc/" + pid + "/status"); err == nil && !strings.Contains(string(status), "State:\tZ") {
					return errNotYet
				}
				return nil
			})
		}
	})
	t.Run("B19 B21 afterwards nobody is there, and a new core may begin", func(t *testing.T) {
		b := b.in(t)
		b.call("free", `{}`).wantRefused(events.CodeCoreUnreachable)
		if r := b.run("", "core", "stop"); r.Exit != 1 {
			t.Errorf("core stop without a core: %+v", r)
		}
		b.core = b.startCore()
		if st, err := b.status(); err != nil || st.Open != 0 {
			t.Errorf("the new core: %+v, %v", st, err)
		}
		b.call("free", `{}`).wantRan(`{}`)
		b.stopCore()
	})
	e := b.evidence(t)
	t.Run("B11 B17 B18 B99 each question was withdrawn once", func(t *testing.T) {
		for _, q := range asked {
			if ends := e.endings()[q.ID]; len(ends) != 1 || ends[0].reason != events.EndShutdown {
				t.Errorf("question %s ended %v", q.ID, ends)
			}
		}
		e.checkSpans(t)
		e.checkRuns(t)
	})
}

// TestBlackboxB19AskingWhileClosing brings calls before a core that is closing:
// each hears a no, none hangs.
func TestBlackboxB19AskingWhileClosing(t *testing.T) {
	t.Parallel()
	b := newBox(t, "", ask("open"))
	s := b.screen()
	calls := []*call{b.call("open", `{"n":0}`)}
	s.question("open")
	stop := b.start("", "core", "stop")
	for range 6 {
		calls = append(calls, b.wish(wish{tool: "open", session: "late", args: `{"n":1}`}))
	}
	stop.wait()
	for _, c := range calls {
		c.wantRefused(events.CodeEnded, events.CodeUnavailable, events.CodeCoreUnreachable)
	}
}
