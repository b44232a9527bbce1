package engine_test

import (
	"testing"
	"testing/synctest"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

func TestU7Check(t *testing.T) {
	verdict := func(action string) string {
		return "  - {id: " + action + ", event: before_tool_call, execution: {mode: blocking}, run: {type: verdict, action: " + action + "}, match: {args: {path: {equals: " + action + "}}}}\n"
	}
	rules := "hooks:\n" + verdict("allow") + verdict("block") + verdict("ask") +
		"  - {id: program, event: before_tool_call, execution: {mode: blocking}, run: {type: command, argv: [x]}, match: {args: {path: {equals: run}}}}\n"
	synctest.Test(t, func(t *testing.T) {
		r := newRuled(t, engine.Options{}, rules)
		r.ruleByName()
		for args, want := range map[string]events.Would{
			`{"path":"allow"}`: "allow", `{"path":"block"}`: "block", `{"path":"ask"}`: "ask", `{"path":"run"}`: "run",
			`{"path":"x"}`: "allow", `{"path":"ask","path":"x"}`: "block",
		} {
			if f := r.eng.Check(t.Context(), r.proposal(args)); f.Would != want || f.Available {
				t.Errorf("%s: %+v, want %s", args, f, want)
			}
		}
		if n := len(r.eng.Sessions("all")); n != 0 {
			t.Errorf("%d sessions were opened by asking", n)
		}
		if len(r.events(r.proposal(`{}`).Operation)) != 0 || len(r.seen) != 0 {
			t.Error("something is recorded")
		}
		r.propose(`{"path":"x"}`).verdict()
		r.attach("uid:1")
		f := r.eng.Check(t.Context(), r.proposal(`{"path":"ask"}`))
		if !f.Available || len(f.Hooks) != 1 || f.Hooks[0].ID != "ask" {
			t.Errorf("%+v", f)
		}
		r.write("hooks: 3\n")
		if f := r.eng.Check(t.Context(), r.proposal(`{"path":"allow"}`)); f.Would != "block" {
			t.Errorf("%+v", f)
		}
	})
}
