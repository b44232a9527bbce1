package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// byMessage lists what each message of an operation says.
func (r *rig) byMessage(op events.ID) (list []string) {
	r.t.Helper()
	for _, m := range r.messages() {
		if m.Operation == op {
			list = append(list, types(m.Events))
		}
	}
	return list
}

// verdictRules are rules without a program, each named after what it does.
func verdictRules(actions ...string) string {
	var b strings.Builder
	b.WriteString("hooks:\n")
	for i, a := range actions {
		fmt.Fprintf(&b, "  - id: %s-%d\n    event: before_tool_call\n    execution: {mode: blocking}\n    run: {type: verdict, action: %s}\n", a, i, a)
	}
	return b.String()
}

// decideByRule lets the rig's hooks say what their names say.
func (r *rig) decideByRule(actions ...string) {
	r.ruleByName()
	for i, a := range actions {
		r.hook[fmt.Sprintf("%s-%d", a, i)] = r.hook[a]
	}
}

func TestB31RulesWithoutAProgramTakeOneAppend(t *testing.T) {
	const pass = "HookStarted HookRan "
	for name, c := range map[string]struct {
		actions []string
		want    []string // one for each message
	}{
		"nobody asks": {
			[]string{"allow", "allow", "allow"},
			[]string{"OperationProposed " + pass + pass + pass + "OperationChecked OperationCommitted", "OperationDelivered"},
		},
		"one asks, behind others and in front of others": {
			[]string{"allow", "ask", "allow"},
			[]string{
				"OperationProposed " + pass + pass + "Request",
				"Claimed Response " + pass + "OperationChecked OperationCommitted", "OperationDelivered",
			},
		},
		"a second question is a message of its own": {
			[]string{"ask", "ask"},
			[]string{
				"OperationProposed " + pass + "Request", "Claimed Response HookStarted", "HookRan Request",
				"Claimed Response OperationChecked OperationCommitted", "OperationDelivered",
			},
		},
		"a block ends it": {
			[]string{"allow", "block", "allow"},
			[]string{"OperationProposed " + pass + pass + "OperationRefused", "OperationDelivered"},
		},
	} {
		t.Run("B31 B34 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRuled(t, engine.Options{}, verdictRules(c.actions...))
				r.decideByRule(c.actions...)
				s := r.attach("uid:1")
				keep(t, s)
				call := r.propose(`{"path":"a"}`)
				for range strings.Count(strings.Join(c.want, " "), "Request") {
					if ack := s.answer(s.question(), events.AnswerContinue); ack.Refused != nil {
						t.Fatal(ack.Refused)
					}
				}
				if v := call.verdict(); v.Allow == slices.Contains(c.actions, "block") {
					t.Errorf("%+v", v)
				}
				if got := r.byMessage(call.p.Operation); !slices.Equal(got, c.want) {
					t.Errorf("messages:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			})
		})
	}
}

// TestB31ManyRulesGoOn: more rules than one message takes an operation through are
// carried out all the same, each once.
func TestB31ManyRulesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		actions := slices.Repeat([]string{"allow"}, 150)
		r := newRuled(t, engine.Options{}, verdictRules(actions...))
		r.decideByRule(actions...)
		call := r.propose(`{"path":"a"}`)
		if v := call.verdict(); !v.Allow {
			t.Fatalf("%+v", v)
		}
		if n := len(of[events.HookRan](r, call.p.Operation)); n != len(actions) {
			t.Errorf("%d runs of %d rules", n, len(actions))
		}
		if n := len(r.byMessage(call.p.Operation)); n > 5 {
			t.Errorf("%d messages", n)
		}
	})
}
