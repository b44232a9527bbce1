package integration_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// again proposes an operation that exists and returns the core's first word,
// or, when it was accepted, the verdict.
func (h *home) again(op events.ID, secret, stdin string) events.HookLine {
	h.t.Helper()
	a := h.dial(h.t)
	line, err := json.Marshal(events.HookCall{
		V: 1, Operation: op, Secret: secret, Agent: "generic", Event: string(events.BeforeToolCall),
		Stdin: stdin, PID: os.Getpid(), PPID: os.Getppid(), Cwd: "/",
	})
	if err != nil {
		h.t.Fatal(err)
	}
	a.say(string(line) + "\n")
	if first := a.hear(); !first.Accepted {
		return first
	}
	return a.hear()
}

func TestBlackboxRulesChange(t *testing.T) {
	t.Parallel()
	b := newBox(t, "", ask("x"))
	s := b.screen()
	t.Run("B61 rules that change while a question is open are the ones that count", func(t *testing.T) {
		b := b.in(t)
		b.setRules(ask("x"))
		c := b.call("x", `{"n":1}`)
		q := s.question("x")
		b.setRules(ask("x"), rule{id: "new", tool: "x", run: "{type: verdict, action: block, reason: New rule.}"})
		s.says(q, events.AnswerContinue)
		again := s.question("x")
		if again.Attempt != 1 {
			t.Errorf("the question under the new rules is %+v", again)
		}
		s.says(again, events.AnswerContinue)
		says(t, c.wantRefused(events.CodeBlocked).Reason, "did not run", "New rule.")
	})
	t.Run("B61 rules that cannot be read any more let nothing through", func(t *testing.T) {
		b := b.in(t)
		b.setRules(ask("x"))
		c := b.call("x", `{"n":2}`)
		q := s.question("x")
		b.write("hooks.yaml", "version: 1\nhooks:\n  - id: x\n    evnt: before_tool_call\n")
		s.says(q, events.AnswerContinue)
		v := c.wantRefused(events.CodeHooksConfigInvalid)
		if !strings.Contains(v.Reason, "hooks.yaml") {
			t.Errorf("the reason is %q, want the file", v.Reason)
		}
		v = b.call("free", `{}`).wantRefused(events.CodeHooksConfigInvalid)
		says(t, v.Reason, "did not run", "hooks.yaml", "evnt")
		b.setRules(ask("x"))
		b.call("free", `{}`).wantRan(`{}`)
	})
	t.Run("B62 an operation that ended does not run", func(t *testing.T) {
		b := b.in(t)
		a := b.propose(t, payload("s", "x", `{"n":3}`))
		q := s.question("x")
		_ = a.conn.Close()
		s.wantEnd(q, events.EndAgentGone)
		s.no(reply(q, events.AnswerContinue), events.RejectWithdrawn)
		if line := b.again(a.Operation, string(a.Operation), payload("s", "x", `{"n":3}`)); line.Exit != 2 {
			t.Errorf("it came back and heard %+v, want a deny", line)
		}
	})
	b.stopCore()
	e := b.evidence(t)
	e.checkSpans(t)
	e.checkRuns(t)
}

func TestBlackboxB57WithoutRules(t *testing.T) {
	t.Parallel()
	b := newBox(t, "")
	t.Run("B65 arguments without a canonical form run as before where there is no hook", func(t *testing.T) {
		b.in(t).call("twice", `{"a":1,"a":2}`).wantRan(`{"a":1,"a":2}`)
	})
	b.call("any", `{"b":1,"a":2}`).wantRan(`{"a":2,"b":1}`)
	b.stopCore()
	e := b.evidence(t)
	op := e.call(t, "any")
	if c, k := len(of(facts[events.OperationChecked](e), op)), len(of(facts[events.OperationCommitted](e), op)); c != 1 || k != 1 {
		t.Errorf("%d checks and %d commits, want one each", c, k)
	}
}
