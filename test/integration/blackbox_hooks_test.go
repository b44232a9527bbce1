package integration_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

func TestBlackboxHooks(t *testing.T) {
	play(t, "",
		behaviour{
			name:  "B23 B27 B66 a script may ask, and reads what is compared",
			rules: []rule{{id: "b23", tool: "b23", sh: `say '{"action":"ask","reason":"Why not."}'`}},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b23", `{ "z":1.00, "a":"\u00e9\u0041", "path":"x" }`)
				q := s.question("b23")
				if q.Hook.ID != "b23" || q.Hook.Scope != events.ScopeGlobal || q.Reason != "Why not." {
					b.t.Errorf("the question is %+v", q)
				}
				g := b.seen("b23")[0]
				if g.Available == nil || !*g.Available {
					b.t.Error("confirmation_available is not true")
				}
				if events.ID(g.Operation) != q.Operation || g.Attempt != 0 {
					b.t.Errorf("the script was given %+v", g)
				}
				if string(g.Tool.Args) != string(q.Args) || events.DigestOf(g.Tool.Args) != q.Version.Digest {
					b.t.Errorf("the script read %s, the person %s with digest %s", g.Tool.Args, q.Args, q.Version.Digest)
				}
				s.says(q, events.AnswerContinue)
				c.wantRan(`{"a":"éA","path":"x","z":1.00}`)
			},
		},
		behaviour{
			name: "B31 continue goes on with the next hook, in order",
			rules: []rule{
				{id: "b31a", tool: "b31", sh: `echo a >> "$DIR/order"`},
				ask("b31"),
				{id: "b31b", tool: "b31", sh: `echo b >> "$DIR/order"`},
				{id: "b31c", tool: "b31", sh: `echo c >> "$DIR/order"; say '{"action":"allow"}'`},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b31", `{}`)
				q := s.question("b31")
				if got := b.file("order"); got != "a\n" {
					b.t.Errorf("before the answer ran %q, want a", got)
				}
				s.says(q, events.AnswerContinue)
				c.wantRan(`{}`)
				if got := b.file("order"); got != "a\nb\nc\n" {
					b.t.Errorf("order %q, want a b c", got)
				}
			},
		},
		behaviour{
			name: "B33 cancel refuses and no further hook starts",
			rules: []rule{
				{id: "b33a", tool: "b33", sh: ""}, ask("b33"), {id: "b33b", tool: "b33", sh: ""},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b33", `{}`)
				s.says(s.question("b33"), events.AnswerCancel)
				c.wantRefused(events.CodeDeclined)
			},
			check: func(_ *testing.T, b *box, e evidence) {
				b.wantRuns("b33a", 1)
				b.wantRuns("b33b", 0)
				if n := len(of(facts[events.HookStarted](e), e.call(b.t, "b33"))); n != 2 {
					b.t.Errorf("%d hooks started, want 2", n)
				}
			},
		},
		behaviour{
			name: "B34 a later hook blocks after a continue",
			rules: []rule{
				ask("b34"), {id: "b34b", tool: "b34", sh: `say '{"action":"block","reason":"Not on a Friday."}'`}, {id: "b34c", tool: "b34", sh: ""},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b34", `{}`)
				s.says(s.question("b34"), events.AnswerContinue)
				if v := c.wantRefused(events.CodeBlocked); !strings.Contains(v.Reason, "Not on a Friday.") {
					b.t.Errorf("the reason is %q", v.Reason)
				}
				b.wantRuns("b34c", 0)
			},
		},
		behaviour{
			name:  "B34 a later hook asks again",
			rules: []rule{{id: "b34x", tool: "b34again", run: "{type: verdict, action: ask, reason: First.}"}, {id: "b34y", tool: "b34again", run: "{type: verdict, action: ask, reason: Second.}"}},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b34again", `{}`)
				one := s.question("b34again")
				s.says(one, events.AnswerContinue)
				two := s.question("b34again")
				if one.ID == two.ID || one.Reason != "First." || two.Reason != "Second." || two.Hook.ID != "b34y" || two.Attempt != 0 {
					b.t.Errorf("questions %+v and %+v", one, two)
				}
				s.says(two, events.AnswerCancel)
				c.wantRefused(events.CodeDeclined)
			},
		},
		behaviour{
			name: "B35 what a failed hook wrote is void",
			rules: []rule{
				{id: "b35exit", tool: "b35exit", sh: `say '{"action":"ask"}'; exit 3`},
				{id: "b35allow", tool: "b35allow", sh: `say '{"action":"allow"}'; exit 1`},
				{id: "b35kill", tool: "b35kill", sh: `say '{"action":"ask"}'; kill -9 $$`},
				{id: "b35slow", tool: "b35slow", sh: `say '{"action":"allow"}'; sleep 30`, more: ", timeout_seconds: 0.3"},
				{id: "b35gone", tool: "b35gone", run: "{type: command, argv: [/nowhere/there-is-none]}"},
				{id: "b35script", tool: "b35script", run: "{type: script, path: there-is-none.sh}"},
				{id: "b35warn", tool: "b35warn", sh: `say '{"action":"ask"}'; exit 1`, more: ", on_error: warn"},
				{id: "b35ignore", tool: "b35ignore", sh: `say '{"action":"block","reason":"no"}'; exit 1`, more: ", on_error: ignore"},
			},
			live: func(b *box) {
				s := b.screen()
				for tool, code := range map[string]events.Code{
					"b35exit": events.CodeHookFailed, "b35allow": events.CodeHookFailed, "b35kill": events.CodeHookFailed,
					"b35slow": events.CodeHookTimedOut, "b35gone": events.CodeHookMissing, "b35script": events.CodeHookMissing,
				} {
					v := b.call(tool, `{}`).wantRefused(code)
					if !strings.Contains(v.Reason, tool) || !strings.Contains(v.Reason, "global") || !strings.Contains(v.Reason, "hooks.yaml") {
						b.t.Errorf("%s: the reason is %q, want hook, scope and file", tool, v.Reason)
					}
				}
				b.call("b35warn", `{}`).wantRan(`{}`)
				b.call("b35ignore", `{}`).wantRan(`{}`)
				for _, q := range s.Inbox().Questions() {
					if strings.HasPrefix(q.Tool.Name, "b35") {
						b.t.Errorf("a failed hook asked: %+v", q)
					}
				}
			},
			log: func(t *testing.T, e evidence) {
				for _, tool := range []string{"b35warn", "b35ignore"} {
					ran := of(facts[events.HookRan](e), e.call(t, tool))
					if len(ran) != 1 || !ran[0].Event.FailedOpen || ran[0].Event.Outcome != events.RunFailed {
						t.Errorf("%s is recorded as %+v, want failed_open", tool, ran)
					}
				}
				for _, f := range facts[events.Request](e) {
					if strings.HasPrefix(f.Event.Hook.ID, "b35") {
						t.Errorf("asked: %+v", f.Event)
					}
				}
			},
		},
		behaviour{
			name: "B36 the action is read in any case",
			rules: []rule{
				{id: "b36ask", tool: "b36ask", sh: `say '{"action":"ASK"}'`},
				{id: "b36block", tool: "b36block", sh: `say '{"action":"Block"}'`},
				{id: "b36allow", tool: "b36allow", sh: `say '{"action":"aLLoW"}'`},
				{id: "b36modify", tool: "b36modify", sh: `say '{"action":"MODIFY","args_override":{"n":2}}'`},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b36ask", `{}`)
				s.says(s.question("b36ask"), events.AnswerContinue)
				c.wantRan(`{}`)
				b.call("b36block", `{}`).wantRefused(events.CodeBlocked)
				b.call("b36allow", `{}`).wantRan(`{}`)
				b.call("b36modify", `{"n":1}`).wantRan(`{"n":2}`)
			},
		},
		behaviour{
			name: "B38 an ask with changed arguments is about the result",
			rules: []rule{
				{id: "b38", tool: "b38", sh: `say '{"action":"ask","args_override":{"path":"b","extra":[1]}}'`},
				{id: "b38after", tool: "b38", sh: ""},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b38", `{"path":"a","keep":1.50}`)
				q := s.question("b38")
				const want = `{"extra":[1],"keep":1.50,"path":"b"}`
				if string(q.Args) != want || q.Version.N != 1 || q.Attempt != 0 || q.Previous != -1 ||
					len(q.Changed) != 2 || q.Changed[0].Name != "extra" || q.Changed[1].Name != "path" {
					b.t.Errorf("the question is about %s, version %+v, attempt %d, changes %v", q.Args, q.Version, q.Attempt, q.Changed)
				}
				before, err := s.Args(b.t.Context(), q.ID, 0)
				if err != nil || string(before) != `{"keep":1.50,"path":"a"}` {
					b.t.Errorf("B63 version 0 is %s, %v", before, err)
				}
				s.says(q, events.AnswerContinue)
				c.wantRan(want)
				if g := b.seen("b38after"); len(g) != 1 || string(g[0].Tool.Args) != want {
					b.t.Errorf("the next hook was given %+v", g)
				}
			},
		},
		behaviour{
			name: "F14 a rule that needs no program",
			rules: []rule{
				{id: "f14allow", tool: "f14allow", run: "{type: verdict, action: allow}"},
				{id: "f14block", tool: "f14block", run: "{type: verdict, action: block, reason: Never here.}"},
				{id: "f14ask", tool: "f14ask", run: "{type: verdict, action: ask, reason: A rule.}"},
			},
			live: func(b *box) {
				s := b.screen()
				b.call("f14allow", `{}`).wantRan(`{}`)
				if v := b.call("f14block", `{}`).wantRefused(events.CodeBlocked); !strings.Contains(v.Reason, "Never here.") {
					b.t.Errorf("the reason is %q", v.Reason)
				}
				c := b.call("f14ask", `{}`)
				if q := s.question("f14ask"); q.Reason != "A rule." {
					b.t.Errorf("the question's reason is %q", q.Reason)
				} else {
					s.says(q, events.AnswerContinue)
				}
				c.wantRan(`{}`)
			},
		},
	)
}

// file is the text of a file in the box, "" when there is none.
func (b *box) file(name string) string {
	data, err := os.ReadFile(b.dir + "/" + name)
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return string(data)
}

// badVerdicts are results that are a failure of the hook, as shell scripts.
var badVerdicts = map[string]string{
	"unknown action":     `say '{"action":"allowed"}'`,
	"empty action":       `say '{"action":""}'`,
	"action with space":  `say '{"action":"allow "}'`,
	"no string":          `say '{"action":true}'`,
	"null action":        `say '{"action":null}'`,
	"list":               `say '["allow"]'`,
	"bare word":          `say 'allow'`,
	"string":             `say '"allow"'`,
	"null":               `say 'null'`,
	"cut off":            `say '{"action":"allow"'`,
	"two documents":      `say '{"action":"allow"}{"action":"block"}'`,
	"two actions":        `say '{"action":"block","action":"allow"}'`,
	"two nested":         `say '{"action":"modify","args_override":{"a":1,"a":2}}'`,
	"other case":         `say '{"Action":"allow"}'`,
	"both cases":         `say '{"action":"allow","ACTION":"block"}'`,
	"reason no string":   `say '{"action":"allow","reason":7}'`,
	"override no object": `say '{"action":"modify","args_override":[1]}'`,
	"override a string":  `say '{"action":"ask","args_override":"{}"}'`,
	"no known key":       `say '{"decision":"allow"}'`,
	"byte order mark":    `printf '\357\273\277{"action":"allow"}' > "$FERMATA_HOOK_RESULT"`,
	"no UTF-8":           `printf '{"action":"allow","reason":"\377"}' > "$FERMATA_HOOK_RESULT"`,
	"too long":           `{ printf '{"action":"allow","reason":"'; head -c 1100000 /dev/zero | tr '\0' x; printf '"}'; } > "$FERMATA_HOOK_RESULT"`,
	"trailing comma":     `say '{"action":"allow",}'`,
	"comment":            `say '{"action":"allow"} // fine'`,
	"a lone surrogate":   `say '{"action":"modify","args_override":{"a":"\ud800"}}'`,
	"on stdout":          `echo '{"action":"allow"}'`,
	"python":             `say "{'action': 'allow'}"`,
}

func TestBlackboxB37ABrokenVerdictNeverAllows(t *testing.T) {
	t.Parallel()
	var rules []rule
	names := map[string]string{}
	for name, sh := range badVerdicts {
		id := "bad-" + strings.ReplaceAll(strings.ToLower(name), " ", "-")
		names[id] = name
		rules = append(rules, rule{id: id, tool: id, sh: sh})
	}
	rules = append(rules,
		rule{id: "silent", tool: "silent", sh: ""},
		rule{id: "empty", tool: "empty", sh: `say '{}'`},
		rule{id: "extra", tool: "extra", sh: `say '{"action":"allow","comment":1}'`},
		rule{id: "required", tool: "required", sh: "", more: ", require_result: true"},
	)
	b := newBox(t, "", rules...)
	s := b.screen()
	for id, name := range names {
		t.Run("B37 "+name, func(t *testing.T) {
			v := b.in(t).call(id, `{"n":1}`).wantRefused(events.CodeHookBadVerdict)
			if !strings.Contains(v.Reason, id) {
				t.Errorf("the reason is %q, want the hook's name", v.Reason)
			}
		})
	}
	t.Run("B37 what is no opinion, and what is", func(t *testing.T) {
		b := b.in(t)
		for _, tool := range []string{"silent", "empty", "extra"} {
			b.call(tool, `{}`).wantRan(`{}`)
		}
		if v := b.call("required", `{}`).verdict(); v.ran || v.exit != 2 {
			t.Errorf("a result that is required and absent: %+v", v)
		}
	})
	if n := len(s.Inbox().Questions()); n > 0 {
		t.Errorf("%d questions", n)
	}
}

func TestBlackboxNobody(t *testing.T) {
	t.Parallel()
	b := newBox(t, "",
		rule{id: "asks", tool: "asks", sh: `say '{"action":"ask"}'`},
		rule{id: "then", tool: "asks", sh: ""},
		rule{id: "free", tool: "free", sh: ""},
	)
	t.Run("B29 B30 B85 B93 asking nobody refuses at once", func(t *testing.T) {
		b := b.in(t)
		began := time.Now()
		v := b.call("asks", `{}`).wantRefused(events.CodeUnavailable)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		says(t, v.Reason, "did not run", "would be refused again")
		b.wantRuns("asks", 1)
		b.wantRuns("then", 0)
		b.wantAvailable("asks", false)
	})
	t.Run("B94 the session goes on", func(t *testing.T) {
		b.in(t).wish(wish{tool: "free", session: "s-asks", args: `{}`}).wantRan(`{}`)
	})
	t.Run("B27 B29 a frontend that cannot show questions is nobody", func(t *testing.T) {
		b := b.in(t)
		b.attach(false, "a logger")
		b.call("asks", `{}`).wantRefused(events.CodeUnavailable)
		b.wantAvailable("asks", false)
		if r := b.run("", "core", "questions"); r.Exit != 0 {
			t.Errorf("core questions: %+v", r)
		}
		b.call("asks", `{}`).wantRefused(events.CodeUnavailable)
	})
	t.Run("B27 B29 a headless run that somebody watches from elsewhere is asked", func(t *testing.T) {
		b := b.in(t)
		watch := b.start("", "core", "questions", "--watch", "--json")
		must(t, "attached watcher", func() error {
			if s, err := b.status(); err != nil || s.Frontends == 0 {
				return still(watch)
			}
			return nil
		})
		c := b.call("asks", `{}`)
		var q cliQuestion
		must(t, "line of the watcher", func() error {
			for _, q = range b.lines(watch.stdout.String()) {
				if q.Event == "open" {
					return nil
				}
			}
			return errNotYet
		})
		b.wantAvailable("asks", true)
		if r := b.run("", "core", "answer", string(q.Question), "continue"); r.Exit != 0 {
			t.Errorf("core answer: %+v", r)
		}
		c.wantRan(`{}`)
		must(t, "close on the watcher", func() error {
			for _, l := range b.lines(watch.stdout.String()) {
				if l.Event == "closed" && l.Question == q.Question {
					return nil
				}
			}
			return errNotYet
		})
		watch.signal(os.Interrupt)
		watch.wait()
	})
	t.Run("B19 B29 when the watcher has gone nobody is there", func(t *testing.T) {
		b := b.in(t)
		must(t, "no frontend", func() error {
			if s, err := b.status(); err != nil || s.Frontends > 0 {
				return errNotYet
			}
			return nil
		})
		b.call("asks", `{}`).wantRefused(events.CodeUnavailable)
	})
	b.stopCore()
	e := b.evidence(t)
	t.Run("B30 B95 B96 each ask of nobody is one question that ended", func(t *testing.T) {
		n := 0
		for _, f := range facts[events.Withdrawn](e) {
			if f.Event.Reason == events.EndNoFrontend && f.Event.Result == events.ResultUnavailable {
				n++
			}
		}
		if n != 4 {
			t.Errorf("%d questions ended with no_frontend, want 4", n)
		}
		e.checkSpans(t)
	})
}

// wantAvailable holds the newest run of a rule to what it was told.
func (b *box) wantAvailable(id string, want bool) {
	b.t.Helper()
	all := b.seen(id)
	if len(all) == 0 || all[len(all)-1].Available == nil || *all[len(all)-1].Available != want {
		b.t.Errorf("%s was given %+v, want confirmation_available %v", id, all, want)
	}
}

// says holds a text to phrases.
func says(t *testing.T, text string, phrases ...string) {
	t.Helper()
	for _, p := range phrases {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(p)) {
			t.Errorf("%q does not say %q", text, p)
		}
	}
}

func TestBlackboxB7UnclaimedOrWaiting(t *testing.T) {
	t.Parallel()
	b := newBox(t, "", ask("b7"),
		rule{id: "waits", tool: "b7waits", run: "{type: verdict, action: ask}", more: ", confirmation: {when_nobody: wait}"})
	// a frontend that says it can show questions, and takes none into its list
	o := b.connect(t, "fe")
	if r := o.ask(events.LobbySubject(events.DoorAll, o.id, events.VerbHello), []byte(`{"kind":"web","capable":true,"name":"deaf"}`)); r != nil {
		t.Fatalf("hello: %v", r)
	}
	began := events.At(time.Now())
	waits := b.call("b7waits", `{}`)
	must(t, "question that waits", func() error {
		if len(b.questions()) == 0 {
			return errNotYet
		}
		return nil
	})
	c := b.call("b7", `{}`)
	keep := time.NewTicker(3 * time.Second)
	defer keep.Stop()
	must(t, "end of the question that nobody received", func() error {
		select {
		case <-keep.C:
			if r := o.ask(events.LobbySubject(events.DoorAll, o.id, events.VerbRenew), []byte(`{}`)); r != nil {
				return fmt.Errorf("renew: %w", r)
			}
		default:
		}
		if c.running() {
			return errNotYet
		}
		return nil
	})
	c.wantRefused(events.CodeUnavailable)
	if took := time.Since(began.Time()); took < 4*time.Second || took > 9*time.Second {
		t.Errorf("B7 it ended after %v, want about 5 s", took)
	}
	b.since(began, 6500*time.Millisecond)
	if !waits.running() {
		t.Error("B7 a question with when_nobody: wait has ended")
	}
	s := b.screen()
	q := s.question("b7waits")
	s.says(q, events.AnswerContinue)
	waits.wantRan(`{}`)
	for _, span := range named(b.spans(q.Operation), "wait.") {
		if span.Text("fermata.wait.end_reason") != "continue" {
			t.Errorf("the wait ended %s", span.Text("fermata.wait.end_reason"))
		}
	}
	b.stopCore()
	if end := b.evidence(t).endings(); len(end) != 2 {
		t.Errorf("questions ended %v, want two", end)
	}
}
