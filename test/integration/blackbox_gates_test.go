package integration_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// HAND-11 and HAND-12: what comes after a no, and that everyone passes the gate.

// repeated calls a tool ten times more after its first refusal, in the same turn.
func (b *box) repeated(at said, name string, code events.Code) {
	b.t.Helper()
	for n := range 10 {
		args := `{"n":1,"path":"a"}`
		if n%2 == 1 {
			args = `{ "path" : "\u0061" , "n":1 }` // the same, written otherwise
		}
		says(b.t, b.toolCall(at.with(tool(name, args))).wantRefused(code).Reason, "did not run")
	}
}

func TestHAND11AfterANo(t *testing.T) {
	const words = "use the staging db"
	watch := func(id string) hook {
		return hook{id: id + "-after", event: "after_tool_call", match: "profile: " + id, mode: "async", sh: ""}
	}
	var texts sync.Map // by the name of the refusal
	perform(t, "settings: {max_parallel_hooks: 8}\n",
		scene{
			name:  "B83 B87 F8 declined: identical calls get the same no, others are asked about",
			hooks: []hook{{id: "c11d", match: "tool_name: c11d", sh: `say '{"action":"ask"}'`}, watch("c11d")},
			live: func(b *box) {
				s := b.screen()
				at := said{"session_id": "c11d", "profile": "c11d", "turn_id": "t1"}
				b.report("before_turn", at)
				c := b.toolCall(at.with(tool("c11d", `{"path":"a","n":1}`)))
				q := s.question("c11d")
				no := reply(q, events.AnswerCancel)
				no.Text = words
				if _, err := s.Answer(b.t.Context(), no); err != nil {
					b.t.Fatal(err)
				}
				v := c.wantRefused(events.CodeDeclined)
				says(b.t, v.Reason, "did not run", "unless the user asks")
				before, _, found := strings.Cut(v.Reason, words)
				if !found || !strings.Contains(strings.ToLower(before), "user") {
					b.t.Errorf("the model reads %q, want the user's words in it, marked as theirs", v.Reason)
				}
				texts.Store("declined", strings.ReplaceAll(v.Reason, words, ""))
				b.repeated(at, "c11d", events.CodeDeclined)
				for _, open := range s.Inbox().Questions() {
					if open.Tool.Name == "c11d" {
						b.t.Errorf("an identical call asked: %+v", open)
					}
				}
				for _, v := range b.awaitTold("c11d-after", 11) {
					if v.Result["hook_confirmation"] != "declined" {
						b.t.Errorf("B87 a watching hook read %v", v.Result)
					}
				}
				changed := b.toolCall(at.with(tool("c11d", `{"path":"b","n":1}`)))
				s.says(s.question("c11d"), events.AnswerContinue)
				changed.wantRan(`{"n":1,"path":"b"}`)
				elsewhere := b.toolCall(at.with(said{"session_id": "c11d-other"}).with(tool("c11d", `{"path":"a","n":1}`)))
				s.says(s.question("c11d"), events.AnswerContinue)
				elsewhere.wantRan(`{"n":1,"path":"a"}`)
				b.input(at, "prompt", "go ahead").wantSubmitted("go ahead", "")
				again := b.toolCall(at.with(tool("c11d", `{"path":"a","n":1}`)))
				q = s.question("c11d")
				s.says(q, events.AnswerContinue)
				again.wantRan(`{"n":1,"path":"a"}`)
			},
			log: func(t *testing.T, e evidence) {
				ops := e.calls("c11d")
				asked, repeats := 0, 0
				for _, op := range ops {
					asked += len(of(facts[events.Request](e), op))
					for _, r := range of(facts[events.HookRan](e), op) {
						if r.Event.NotApplied == events.NotAppliedRepeat {
							repeats++
						}
					}
				}
				if len(ops) != 14 || asked != 4 || repeats != 10 {
					t.Errorf("%d calls, %d questions, %d answered from memory; want 14, 4, 10", len(ops), asked, repeats)
				}
			},
		},
		scene{
			name:  "B84 B87 timed_out: identical calls get the same no until the next turn",
			hooks: []hook{{id: "c11t", match: "tool_name: c11t", sh: `say '{"action":"ask"}'`, more: ", confirmation: {timeout_seconds: 0.3}"}, watch("c11t")},
			live: func(b *box) {
				b.screen()
				at := said{"session_id": "c11t", "profile": "c11t", "turn_id": "t1"}
				b.report("before_turn", at)
				v := b.toolCall(at.with(tool("c11t", `{"path":"a","n":1}`))).wantRefused(events.CodeTimedOut)
				says(b.t, v.Reason, "did not run", "ask the user")
				texts.Store("timed_out", v.Reason)
				b.repeated(at, "c11t", events.CodeTimedOut)
				for _, v := range b.awaitTold("c11t-after", 11) {
					if v.Result["hook_confirmation"] != "timed_out" {
						b.t.Errorf("B87 a watching hook read %v", v.Result)
					}
				}
				b.report("after_turn", at)
				next := at.with(said{"turn_id": "t2"})
				b.report("before_turn", next)
				b.toolCall(next.with(tool("c11t", `{"path":"a","n":1}`))).wantRefused(events.CodeTimedOut)
			},
			log: func(t *testing.T, e evidence) {
				asked := 0
				for _, op := range e.calls("c11t") {
					asked += len(of(facts[events.Request](e), op))
				}
				if asked != 2 {
					t.Errorf("%d questions, want one in each turn", asked)
				}
			},
		},
		scene{
			name:  "B82 a rule's no is judged anew each time",
			hooks: []hook{{id: "c11b", match: "tool_name: c11b", sh: `say '{"action":"block","reason":"Not here."}'`}},
			live: func(b *box) {
				at := said{"session_id": "c11b", "profile": "c11b", "turn_id": "t1"}
				b.report("before_turn", at)
				v := b.toolCall(at.with(tool("c11b", `{"path":"a","n":1}`))).wantRefused(events.CodeBlocked)
				says(b.t, v.Reason, "did not run", "Not here.")
				texts.Store("blocked", v.Reason)
				b.repeated(at, "c11b", events.CodeBlocked)
				b.wantRuns("c11b", 11)
			},
		},
	)
	t.Run("B85 B87 unavailable is judged anew each time", func(t *testing.T) {
		b := newBox(t, "")
		b.setHooks(b.dirs.Config, "", hook{id: "c11u", match: "tool_name: c11u", sh: `say '{"action":"ask"}'`}, watch("c11u"))
		at := said{"session_id": "c11u", "profile": "c11u", "turn_id": "t1"}
		b.report("before_turn", at)
		v := b.toolCall(at.with(tool("c11u", `{"path":"a","n":1}`))).wantRefused(events.CodeUnavailable)
		says(t, v.Reason, "did not run", "refused again")
		texts.Store("unavailable", v.Reason)
		b.repeated(at, "c11u", events.CodeUnavailable)
		for _, v := range b.awaitTold("c11u-after", 11) {
			if v.Result["hook_confirmation"] != "unavailable" {
				t.Errorf("B87 a watching hook read %v", v.Result)
			}
		}
		s := b.screen() // somebody comes: the same call in the same turn is asked about
		c := b.toolCall(at.with(tool("c11u", `{"path":"a","n":1}`)))
		s.says(s.question("c11u"), events.AnswerContinue)
		c.wantRan(`{"n":1,"path":"a"}`)
	})
	t.Run("B83 B84 B85 B82 four texts that can be told apart", func(t *testing.T) {
		seen := map[string]any{}
		for name, text := range texts.Range {
			text, _, _ := strings.Cut(text.(string), "(hook ") // what names the hook differs anyway
			if other, twice := seen[text]; twice {
				t.Errorf("%s and %s both say %q", name, other, text)
			}
			seen[text] = name
		}
		if len(seen) != 4 {
			t.Errorf("%d texts, want 4: %v", len(seen), seen)
		}
	})
}

// callers are who calls in HAND-12: main first, the others below it.
func callers() []said {
	return []said{
		{"session_id": "c12", "path": "main"},
		{"session_id": "c12sub", "parent_session_id": "c12", "path": "main > sub#1", "profile": "allow-all"},
		{"session_id": "c12subsub", "parent_session_id": "c12sub", "path": "main > sub#1 > sub#1"},
		{"session_id": "c12back", "parent_session_id": "c12", "path": "main > background#1"},
		{"session_id": "c12flow", "parent_session_id": "c12", "path": "flow > node#1"},
	}
}

func TestHAND12EveryonePassesTheGate(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	b.setHooks(b.dirs.Config, "",
		hook{id: "c12deny", match: "tool_kind: web_fetch", sh: `say '{"action":"block","reason":"No web."}'`},
		hook{id: "c12ask", match: "tool_kind: filesystem.write", sh: `say '{"action":"ask"}'`},
	)
	all := b.screen()
	fetch := said{"tool": said{"name": "fetch", "kind": "web_fetch", "call_id": "c", "args": said{"url": "https://example.org"}}}
	t.Run("B54 B55 B1 a deny holds for every caller", func(t *testing.T) {
		b := b.in(t)
		for n, who := range callers() {
			says(t, b.toolCall(who.with(fetch)).wantRefused(events.CodeBlocked).Reason, "No web.")
			b.wantRuns("c12deny", n+1)
		}
	})
	var root events.Token
	must(t, "root session", func() error {
		for _, h := range all.Inbox().Sessions() {
			if h.Native == "c12" {
				root = h.Session
				return nil
			}
		}
		return errNotYet
	})
	s := b.attachTo(string(root))
	t.Run("B1 B55 B54 a question names its path and reaches the root session's screen", func(t *testing.T) {
		b := b.in(t)
		for n, who := range callers() {
			c := b.toolCall(who.with(tool("write", fmt.Sprintf(`{"n":%d}`, n))))
			s.b = b
			q := s.question("write")
			if q.Path != who["path"] {
				t.Errorf("the path is %q, want %q", q.Path, who["path"])
			}
			s.says(q, events.AnswerContinue)
			c.wantRan(fmt.Sprintf(`{"n":%d}`, n))
			b.wantRuns("c12ask", n+1)
		}
	})
	t.Run("B74 B77 B80 the root's end withdraws its children's questions", func(t *testing.T) {
		b := b.in(t)
		s.b = b
		var calls []*call
		for _, who := range callers() {
			calls = append(calls, b.toolCall(who.with(tool("write", `{"end":1}`))))
		}
		stays := b.toolCall(said{"session_id": "c12apart"}.with(tool("write", `{"end":1}`)))
		var qs []events.Question
		for range calls {
			qs = append(qs, s.question("write"))
		}
		b.report("session_end", said{"session_id": "c12"})
		for _, q := range qs {
			if end := s.end(q); end.Result != events.ResultWithdrawn || end.Reason != events.EndSessionClosed && end.Reason != events.EndRunEnded {
				t.Errorf("the question of %s ended %+v", q.Path, end)
			}
		}
		for _, c := range calls {
			c.wantRefused(events.CodeEnded)
		}
		if !stays.running() {
			t.Error("a session that is not below it ended too")
		}
		all.b = b
		q := all.where("the other session", func(q events.Question) bool { return q.Session != root && q.Path == "main" })
		all.says(q, events.AnswerContinue)
		stays.wantRan(`{"end":1}`)
	})
	t.Run("B74 a child's end leaves its parent's question alone", func(t *testing.T) {
		b := b.in(t)
		all.b = b
		parent := b.client(agents.SessionOptions{Native: "c12parent"})
		child := b.client(agents.SessionOptions{Native: "c12child", Parent: parent})
		up := b.toolCall(said{"session_id": "c12parent"}.with(tool("up", `{}`)))
		down := b.toolCall(said{"session_id": "c12child", "parent_session_id": "c12parent", "path": "main > sub#1"}.with(tool("down", `{}`)))
		q, qd := all.question("up"), all.question("down")
		if qd.Session != child.Token() || q.Session != parent.Token() {
			t.Errorf("questions of sessions %s and %s", q.Session, qd.Session)
		}
		if err := child.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.wantEnd(qd, events.EndSessionClosed)
		down.wantRefused(events.CodeEnded)
		all.says(q, events.AnswerContinue)
		up.wantRan(`{}`)
	})
	b.stopCore()
	e := b.evidence(t)
	e.checkSpans(t)
	e.checkRuns(t)
}
