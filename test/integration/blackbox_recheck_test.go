package integration_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

func TestBlackboxRecheck(t *testing.T) {
	play(t, "",
		behaviour{
			name: "B42 B45 B46 B51 B56 B63 a later change after a continue asks again, old to new",
			rules: []rule{
				{id: "b42ask", tool: "b42", sh: `say '{"action":"ask","reason":"Really."}'`},
				{id: "b42set", tool: "b42", sh: `say '{"action":"modify","args_override":{"path":"b","added":true}}'`},
				{id: "b42last", tool: "b42", sh: ""},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b42", `{"same":1,"path":"a"}`)
				one := s.question("b42")
				if one.Attempt != 0 || one.Previous != -1 || len(one.Changed) > 0 || string(one.Args) != `{"path":"a","same":1}` {
					b.t.Errorf("the first question is %+v", one)
				}
				b.wantRuns("b42set", 0)
				s.says(one, events.AnswerContinue)
				two := s.question("b42")
				want := []events.Change{{Name: "added", New: []byte(`true`)}, {Name: "path", Old: []byte(`"a"`), New: []byte(`"b"`)}}
				if two.ID == one.ID || two.Operation != one.Operation || two.Attempt != 1 || two.Previous != one.Version.N {
					b.t.Errorf("the second question is %+v", two)
				}
				if d := cmp.Diff(want, two.Changed); d != "" {
					b.t.Errorf("changes (- want, + got):\n%s", d)
				}
				for _, q := range b.questions() {
					if q.Question == two.ID && (q.Attempt != 1 || !strings.Contains(string(q.Changed), `"old":"a"`) || !strings.Contains(string(q.Changed), `"new":"b"`)) {
						b.t.Errorf("`core questions` shows the repeat as %+v", q)
					}
				}
				old, err := s.Args(b.t.Context(), two.ID, one.Version.N)
				if err != nil || string(old) != string(one.Args) {
					b.t.Errorf("version %d is now %s, %v", one.Version.N, old, err)
				}
				stale := reply(two, events.AnswerContinue)
				stale.Digest = one.Version.Digest
				s.no(stale, events.RejectStaleVersion)
				b.wantRuns("b42last", 0)
				s.says(two, events.AnswerContinue)
				c.wantRan(`{"added":true,"path":"b","same":1}`)
				b.wantRuns("b42ask", 2)
				b.wantRuns("b42set", 2)
				b.wantRuns("b42last", 1)
				if g := b.seen("b42ask"); g[0].Attempt != 0 || g[1].Attempt != 1 {
					b.t.Errorf("attempts in the payloads %+v", g)
				}
			},
			log: func(t *testing.T, e evidence) {
				op := e.call(t, "b42")
				var names []string
				for _, f := range of(facts[events.HookRan](e), op) {
					names = append(names, f.Event.Hook.ID)
				}
				if want := []string{"b42ask", "b42set", "b42ask", "b42set", "b42last"}; !slices.Equal(names, want) {
					t.Errorf("runs in the log %v, want %v", names, want)
				}
				if r := of(facts[events.RecheckStarted](e), op); len(r) != 1 || r[0].Event.Cause != events.CauseHook {
					t.Errorf("rechecks %+v", r)
				}
			},
		},
		behaviour{
			name: "B43 equal values are no change",
			rules: []rule{
				ask("b43"),
				{id: "b43same", tool: "b43", sh: `say '{ "action" : "modify", "args_override" : { "text":"\u00e9\u0041\/", "list" : [ 1, {"b":2 , "a":1} ] } }'`},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b43", `{"text":"éA/","list":[1,{"a":1,"b":2}],"n":1.0}`)
				s.says(s.question("b43"), events.AnswerContinue)
				c.wantRan(`{"list":[1,{"a":1,"b":2}],"n":1.0,"text":"éA/"}`)
				b.wantRuns("b43same", 1)
			},
			log: func(t *testing.T, e evidence) {
				op := e.call(t, "b43")
				if n := len(of(facts[events.RecheckStarted](e), op)) + len(of(facts[events.ArgumentsChanged](e), op)); n > 0 {
					t.Errorf("%d changes and rechecks, want none", n)
				}
			},
		},
		behaviour{
			name: "B44 B38 a change before the ask starts no recheck",
			rules: []rule{
				{id: "b44set", tool: "b44", sh: `say '{"action":"modify","args_override":{"path":"b"}}'`}, ask("b44"), {id: "b44last", tool: "b44", sh: ""},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b44", `{"path":"a"}`)
				q := s.question("b44")
				if string(q.Args) != `{"path":"b"}` || q.Attempt != 0 || q.Previous != -1 {
					b.t.Errorf("the question is %+v", q)
				}
				if len(q.Changed) != 1 || string(q.Changed[0].Old) != `"a"` || len(q.ChangedBy) != 1 || q.ChangedBy[0].ID != "b44set" {
					b.t.Errorf("changed %+v by %+v", q.Changed, q.ChangedBy)
				}
				s.says(q, events.AnswerContinue)
				c.wantRan(`{"path":"b"}`)
				b.wantRuns("b44set", 1)
				b.wantRuns("b44last", 1)
			},
		},
		behaviour{
			name: "B48 B50 B86 after three rechecks the call is refused",
			rules: []rule{
				{id: "b48ask", tool: "b48", sh: `say '{"action":"ask"}'`},
				{id: "b48more", tool: "b48", sh: `say "{\"action\":\"modify\",\"args_override\":{\"n\":1$(attempt)}}"`},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b48", `{"n":1}`)
				for i := range 4 {
					q := s.question("b48")
					if q.Attempt != i {
						b.t.Errorf("question %d has attempt %d", i, q.Attempt)
					}
					s.says(q, events.AnswerContinue)
				}
				says(b.t, c.wantRefused(events.CodeRecheckLimit).Reason, "did not run", "kept changing")
				b.wantRuns("b48ask", 4)
				b.wantRuns("b48more", 4)
			},
			log: func(t *testing.T, e evidence) { wantCause(t, e, "b48", "b48more", events.CodeRecheckLimit, 3) },
		},
		behaviour{
			name: "B49 B50 B86 arguments that return are refused at once",
			rules: []rule{
				{id: "b49ask", tool: "b49", sh: `say '{"action":"ask"}'`},
				{id: "b49flip", tool: "b49", sh: `case "$IN" in *'"path":"a"'*) say '{"action":"modify","args_override":{"path":"b"}}';; *) say '{"action":"modify","args_override":{"path":"a"}}';; esac`},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b49", `{"path":"a"}`)
				s.says(s.question("b49"), events.AnswerContinue)
				s.says(s.question("b49"), events.AnswerContinue)
				says(b.t, c.wantRefused(events.CodeRecheckCycle).Reason, "did not run", "kept changing")
				b.wantRuns("b49flip", 2)
			},
			log: func(t *testing.T, e evidence) { wantCause(t, e, "b49", "b49flip", events.CodeRecheckCycle, 1) },
		},
		behaviour{
			name: "B52 a recheck in which nobody asks passes silently",
			rules: []rule{
				{id: "b52ask", tool: "b52", sh: `[ "$(attempt)" = 0 ] && say '{"action":"ask"}' || say '{"action":"allow"}'`},
				{id: "b52set", tool: "b52", sh: `say '{"action":"modify","args_override":{"path":"b"}}'`},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b52", `{"path":"a"}`)
				s.says(s.question("b52"), events.AnswerContinue)
				c.wantRan(`{"path":"b"}`)
				b.wantRuns("b52ask", 2)
				b.wantRuns("b52set", 2)
			},
			log: func(t *testing.T, e evidence) {
				op := e.call(t, "b52")
				if n, m := len(of(facts[events.Request](e), op)), len(of(facts[events.RecheckStarted](e), op)); n != 1 || m != 1 {
					t.Errorf("%d questions and %d rechecks, want one each", n, m)
				}
			},
		},
		behaviour{
			name: "B42 a change of a later hook after a no of its own is none",
			rules: []rule{
				{id: "b42n", tool: "b42no", run: "{type: verdict, action: ask}"},
				{id: "b42nset", tool: "b42no", sh: `say '{"action":"modify","args_override":{"path":"b"}}'`},
			},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b42no", `{"path":"a"}`)
				s.says(s.question("b42no"), events.AnswerContinue)
				s.says(s.question("b42no"), events.AnswerCancel)
				c.wantRefused(events.CodeDeclined)
				b.wantRuns("b42nset", 1)
			},
			log: func(t *testing.T, e evidence) {
				// B89: start and result of a refused call, with its final arguments
				op := e.call(t, "b42no")
				changed := of(facts[events.ArgumentsChanged](e), op)
				refused := of(facts[events.OperationRefused](e), op)
				if len(changed) != 1 || len(refused) != 1 || refused[0].Event.Code != events.CodeDeclined {
					t.Fatalf("B89 changes %+v, refusals %+v", changed, refused)
				}
				if args, ok := changed[0].Message.Body(events.ArgsBody(changed[0].Event.To.N)); !ok || string(args) != `{"path":"b"}` {
					t.Errorf("B89 the final arguments are %s", args)
				}
			},
		},
	)
}

// wantCause holds a refusal to the run whose change led to it.
func wantCause(t *testing.T, e evidence, tool, hook string, code events.Code, rechecks int) {
	t.Helper()
	op := e.call(t, tool)
	if n := len(of(facts[events.RecheckStarted](e), op)); n != rechecks {
		t.Errorf("%d rechecks, want %d", n, rechecks)
	}
	refused := of(facts[events.OperationRefused](e), op)
	if len(refused) != 1 || refused[0].Event.Code != code {
		t.Fatalf("refusals %+v, want one %s", refused, code)
	}
	ran := of(facts[events.HookRan](e), op)
	last := ran[len(ran)-1].Event
	if last.Hook.ID != hook || refused[0].Event.Run != last.Run {
		t.Errorf("the refusal names run %s; the last was %s of %s", refused[0].Event.Run, last.Run, last.Hook.ID)
	}
	if n := len(of(facts[events.OperationCommitted](e), op)); n > 0 {
		t.Errorf("%d commits", n)
	}
}

func TestBlackboxCommit(t *testing.T) {
	play(t, "",
		behaviour{
			name:  "B56 B57 B58 B64 what was checked is what may run",
			rules: []rule{{id: "b58set", tool: "b58", sh: `say '{"action":"modify","args_override":{"b":"\u0041","num":1.50}}'`}, ask("b58")},
			live: func(b *box) {
				s := b.screen()
				c := b.call("b58", `{"z":[1.0,1e3],"b":"x"}`)
				q := s.question("b58")
				s.says(q, events.AnswerContinue)
				v := c.verdict()
				if !v.ran || string(v.Args) != string(q.Args) || events.DigestOf(v.Args) != q.Version.Digest {
					b.t.Errorf("asked about %s, allowed %s", q.Args, v.Args)
				}
				b.call("b58none", `{"z":1,"a":2}`).wantRan(`{"a":2,"z":1}`)
			},
			log: func(t *testing.T, e evidence) {
				for tool, args := range map[string]string{"b58": `{"b":"A","num":1.50,"z":[1.0,1e3]}`, "b58none": `{"a":2,"z":1}`} {
					op := e.call(t, tool)
					checked, committed := of(facts[events.OperationChecked](e), op), of(facts[events.OperationCommitted](e), op)
					if len(checked) != 1 || len(committed) != 1 {
						t.Fatalf("%s: %d checks, %d commits", tool, len(checked), len(committed))
					}
					if v := committed[0].Event.Version; v != checked[0].Event.Version || v.Digest != events.DigestOf([]byte(args)) {
						t.Errorf("%s: checked %+v, committed %+v", tool, checked[0].Event.Version, v)
					}
					if n := len(of(facts[events.OperationDelivered](e), op)); n != 1 {
						t.Errorf("%s: %d receipts", tool, n)
					}
				}
			},
		},
		behaviour{
			name:  "B65 arguments without a canonical form are refused where a hook would check them",
			rules: []rule{{id: "b65", tool: "b65", sh: ""}},
			live: func(b *box) {
				deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
				for _, args := range []string{`{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`, `{"a":"\ud800"}`, `{"a":` + deep + `}`, "{\"a\":\"\xff\"}"} {
					v := b.call("b65", args).wantRefused(events.CodeNoCanonicalForm)
					says(b.t, v.Reason, "did not run")
				}
				b.wantRuns("b65", 0)
			},
		},
		behaviour{
			name: "B65 and run as before elsewhere",
			live: func(b *box) {
				b.call("b65free", `{"a":1,"a":2}`).wantRan(`{"a":1,"a":2}`)
			},
		},
		behaviour{
			name:  "B58 C4 the right to run is the asker's alone",
			rules: []rule{ask("b58twice")},
			live: func(b *box) {
				s := b.screen()
				in := payload("s-b58twice", "b58twice", `{}`)
				first := b.propose(b.t, in)
				q := s.question("b58twice")
				if line := b.again(first.Operation, "another secret of some length", in); line.Exit != 2 || line.Accepted {
					b.t.Errorf("a stranger's secret: %+v, want a deny", line)
				}
				s.says(q, events.AnswerContinue)
				if line, args := first.verdict(); line.Exit != 0 || string(args) != `{}` {
					b.t.Errorf("the asker heard %+v", line)
				}
				if line := b.again(first.Operation, "another secret of some length", in); line.Exit != 2 || line.Accepted {
					b.t.Errorf("a stranger's secret after the commit: %+v, want a deny", line)
				}
				// the asker itself may come back: it is the same operation, and the same word
				if line := b.again(first.Operation, string(first.Operation), in); line.Exit == 0 && !strings.Contains(line.Stdout, `"args":{}`) {
					b.t.Errorf("the asker came back and heard %+v", line)
				}
			},
			log: func(t *testing.T, e evidence) {
				op := e.call(t, "b58twice")
				if n, m := len(of(facts[events.OperationCommitted](e), op)), len(of(facts[events.OperationDelivered](e), op)); n != 1 || m != 1 {
					t.Errorf("%d commits and %d receipts, want one each", n, m)
				}
			},
		},
	)
}
