package core

import (
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// standings are the states of the table, each reached by commands.
var standings = []struct {
	name  string
	reach func(*story)
}{
	{"none", func(*story) {}},
	{"hook", func(st *story) { st.must(propose1(`{"a":1}`, next(run(1), 0, 1))) }},
	{"asking", func(st *story) {
		st.must(propose1(`{"a":1}`, next(run(1), 0, 1)), askDone(run(1), q1, next(run(2), 0, 1)))
	}},
	{"claimed by another", func(st *story) {
		st.must(propose1(`{"a":1}`, next(run(1), 0, 1)), askDone(run(1), q1, next(run(2), 0, 1)))
		st.must(TakeClaim{Question: q1, Frontend: web, Principal: bob})
	}},
	{"hook after yes", func(st *story) {
		st.must(propose1(`{"a":1}`, next(run(1), 0, 1)), askDone(run(1), q1, next(run(2), 0, 1)))
		st.must(yes(st.s, next(run(2), 0, 1)))
	}},
	{"committed", func(st *story) { st.must(propose1(`{"a":1}`, next(""))) }},
	{"delivered", func(st *story) { st.must(propose1(`{"a":1}`, next("")), Receipt{}) }},
	{"finished", func(st *story) {
		st.must(propose1(`{"a":1}`, next("")), Receipt{}, Finish{Outcome: events.OutcomeOK})
	}},
	{"declined", func(st *story) {
		st.must(propose1(`{"a":1}`, next(run(1), 0, 1)), askDone(run(1), q1, next(run(2), 0, 1)))
		st.must(no(st.s))
	}},
	{"timed out", func(st *story) {
		st.must(propose1(`{"a":1}`, next(run(1), 0, 1)), askDone(run(1), q1, next(run(2), 0, 1)))
		st.must(EndQuestion{Question: q1, Reason: events.EndDeadline})
	}},
	{"aborted in a hook", func(st *story) {
		st.must(propose1(`{"a":1}`, next(run(1), 0, 1)), Withdraw{Reason: events.EndInterrupted})
	}},
	{"aborted after commit", func(st *story) {
		st.must(propose1(`{"a":1}`, next("")), Withdraw{Reason: events.EndAgentGone})
	}},
}

// TestEveryStateAndCommand holds the table of the package's documentation,
// row by row: for each standing above what each command leads to. A dash means
// that nothing happens.
func TestEveryStateAndCommand(t *testing.T) {
	n := next(run(3), 0, 1)
	stranger := propose1(`{"a":1}`, n)
	stranger.Op.Secret = events.DigestOf([]byte("another secret"))
	answered := func(a events.Answer) Answer {
		return Answer{
			Question: q1, Frontend: tui, Kind: events.FrontendTUI, Principal: ana, Human: true,
			Digest: events.DigestOf([]byte(`{"a":1}`)), Answer: a, Next: n,
		}
	}
	rows := []struct {
		name    string
		command Command
		want    []string // one for each standing
	}{
		//                    none, hook, asking, claimed, after yes, committed, delivered, finished, declined, timed out, aborted, aborted late
		{"propose", propose1(`{"a":1}`, n), []string{"Proposed,HookStarted", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"}},
		{"propose by another", stranger, []string{
			"Proposed,HookStarted", "!not_yours", "!not_yours", "!not_yours", "!not_yours", "!already_committed",
			"!already_committed", "!already_committed", "!not_yours", "!not_yours", "!not_yours", "!already_committed",
		}},
		{"run 1 done", allowDone(run(1), n), []string{"-", "HookRan,HookStarted", "-", "-", "-", "-", "-", "-", "-", "-", "HookRan", "-"}},
		{"run 2 done", allowDone(run(2), n), []string{"-", "-", "-", "-", "HookRan,Checked,Committed", "-", "-", "-", "-", "-", "-", "-"}},
		{"abandon", Abandon{Next: n}, []string{"-", "HookRan,HookStarted", "-", "-", "HookRan,HookStarted", "-", "-", "-", "-", "-", "HookRan", "-"}},
		{"present", Present{Question: q1, Frontend: tui}, []string{
			"!unknown_question", "!unknown_question", "Presented", "Presented", "-", "!unknown_question",
			"!unknown_question", "!unknown_question", "-", "-", "!unknown_question", "!unknown_question",
		}},
		{"claim", TakeClaim{Question: q1, Frontend: tui, Principal: ana}, []string{
			"!unknown_question", "!unknown_question", "Claimed", "!not_claimer", "!already_answered", "!unknown_question",
			"!unknown_question", "!unknown_question", "!already_answered", "!withdrawn", "!unknown_question", "!unknown_question",
		}},
		{"release", Release{Question: q1, Frontend: web, Reason: events.ReleasedBack}, []string{
			"!unknown_question", "!unknown_question", "-", "Released", "-", "!unknown_question",
			"!unknown_question", "!unknown_question", "-", "-", "!unknown_question", "!unknown_question",
		}},
		{"yes", answered(events.AnswerContinue), []string{
			"!unknown_question", "AnswerRejected !unknown_question", "Claimed,Response,HookStarted", "AnswerRejected !not_claimer", "-", "AnswerRejected !unknown_question",
			"AnswerRejected !unknown_question", "AnswerRejected !unknown_question", "AnswerRejected !already_answered", "AnswerRejected !withdrawn", "AnswerRejected !unknown_question", "AnswerRejected !unknown_question",
		}},
		{"no", answered(events.AnswerCancel), []string{
			"!unknown_question", "AnswerRejected !unknown_question", "Claimed,Response,Refused", "AnswerRejected !not_claimer", "AnswerRejected !already_answered", "AnswerRejected !unknown_question",
			"AnswerRejected !unknown_question", "AnswerRejected !unknown_question", "-", "AnswerRejected !withdrawn", "AnswerRejected !unknown_question", "AnswerRejected !unknown_question",
		}},
		{"end question", EndQuestion{Question: q1, Reason: events.EndDeadline}, []string{"-", "-", "Withdrawn,Refused", "Withdrawn,Refused", "-", "-", "-", "-", "-", "-", "-", "-"}},
		{"withdraw", Withdraw{Reason: events.EndTurnEnded}, []string{"-", "Aborted", "Withdrawn,Aborted", "Withdrawn,Aborted", "Aborted", "Aborted", "-", "-", "-", "-", "-", "-"}},
		{"receipt", Receipt{}, []string{
			"!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "Delivered", "-", "-", "Delivered", "Delivered", "Delivered", "Delivered !withdrawn",
		}},
		{"commit", Commit{Digest: events.DigestOf([]byte(`{"a":1}`))}, []string{
			"!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "Delivered", "-", "!not_allowed", "!not_allowed", "!not_allowed", "!withdrawn", "!withdrawn",
		}},
		{"commit something else", Commit{Digest: events.DigestOf([]byte(`{"a":2}`))}, []string{
			"!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "Refused !stale_version", "!stale_version", "!not_allowed",
			"!not_allowed", "!not_allowed", "!withdrawn", "!withdrawn",
		}},
		{"record a start", Record{Events: []events.Event{events.HookStarted{Run: run(7), Hook: hook(4), Event: events.AfterToolCall}}}, []string{
			"fault", "HookStarted", "HookStarted", "HookStarted", "HookStarted", "HookStarted", "HookStarted", "HookStarted", "HookStarted", "HookStarted", "HookStarted", "HookStarted",
		}},
		{"record an end without a start", Record{Events: []events.Event{events.HookRan{Run: run(7), Hook: hook(4), Mode: events.ModeAsync}}}, []string{
			"fault", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-",
		}},
		{"finish", Finish{Outcome: events.OutcomeOK}, []string{
			"!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "Finished", "Finished", "-", "!not_allowed", "!not_allowed", "!not_allowed", "Finished",
		}},
		{"finish unknown", Finish{Outcome: events.OutcomeUnknown}, []string{
			"!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "!not_allowed", "Finished", "Finished", "-", "!not_allowed", "!not_allowed", "!not_allowed", "-",
		}},
	}
	for _, row := range rows {
		if len(row.want) != len(standings) {
			t.Fatalf("row %q has %d columns, want %d", row.name, len(row.want), len(standings))
		}
		for i, standing := range standings {
			t.Run(row.name+" when "+standing.name, func(t *testing.T) {
				st := newStory(t)
				standing.reach(st)
				if row.want[i] == "fault" {
					if _, err := Decide(st.s, row.command); err == nil {
						t.Fatal("decided")
					}
					return
				}
				st.want(strings.Trim(row.want[i], "-"), row.command)
				if strings.Contains(row.want[i], "!") || row.want[i] == "-" {
					return
				}
				if again := st.do(row.command); strings.Contains(again, "Committed") || strings.Contains(again, "Response") {
					t.Fatalf("repeated: %s", again)
				}
			})
		}
	}
}

// TestFaultsOfTheCaller: commands that no honest shell sends decide nothing.
func TestFaultsOfTheCaller(t *testing.T) {
	otherPlan := Next{Plan: Plan{Config: confB}, Run: run(9)}
	cases := []struct {
		name     string
		standing int
		command  Command
		want     string
	}{
		{"no command", 0, nil, "unknown command"},
		{"no arguments", 0, Propose{}, "arguments are missing"},
		{"plan of another configuration", 0, propose1(`{}`, otherPlan), "configuration"},
		{"plan of another configuration after a hook", 1, allowDone(run(1), otherPlan), "configuration"},
		{"no run id", 1, allowDone(run(1), next("", 0, 1)), "no run id"},
		{"no run id to start again", 1, Abandon{Next: next("", 0, 1)}, "no run id"},
		{"ask without question", 1, HookDone{Run: run(1), Effect: events.EffectAsk}, "needs a question id"},
		{"ask at an unknown gate", 1, HookDone{Run: run(1), Effect: events.EffectAsk, Ask: &Ask{Question: q1, Gate: "oracle"}}, "known gate"},
		{"unknown effect", 1, HookDone{Run: run(1), Effect: "shrug"}, `effect "shrug"`},
		{"no effect", 1, HookDone{Run: run(1)}, `effect ""`},
		{"ask that a gated event cannot ask", 1, HookDone{Run: run(1), Effect: events.EffectAskNotApplied}, "not possible"},
		{"cut off run", 1, HookDone{Run: run(1), Effect: events.EffectError, Outcome: events.RunAbandoned}, "abandon it"},
		{"withdraw with a deadline", 1, Withdraw{Reason: events.EndDeadline}, "no reason to withdraw"},
		{"withdraw without reason", 1, Withdraw{}, "no reason to withdraw"},
		{"end question with a yes", 2, EndQuestion{Question: q1, Reason: events.EndContinue}, "no end that the core makes"},
		{"ask that repeats a block", 1, HookDone{Run: run(1), Effect: events.EffectAsk, Ask: &Ask{
			Question: q1, Gate: events.GateHook, Repeat: &Repeat{Code: events.CodeBlocked, Question: q2},
		}}, "no answer that counts again"},
		{"propose with an end that is none", 0, Propose{End: events.EndDeadline}, "no reason to withdraw"},
		{"no ids for the watchers", 1, allowDone(run(1), Next{Plan: Plan{Config: confA, Watch: []WatchHook{watch(5)}}}), "1 watchers"},
		{"record of nothing", 1, Record{Events: []events.Event{events.OperationDelivered{}}}, "no hook's run"},
		{"record of a run at the gate", 1, Record{Events: []events.Event{events.HookStarted{Run: run(9), Hook: hook(1)}}}, "would decide"},
		{"record of its end", 1, Record{Events: []events.Event{events.HookRan{Run: run(1), Hook: hook(0)}}}, "would decide"},
		{"yes without a run id", 2, Answer{
			Question: q1, Frontend: tui, Principal: ana, Human: true, Digest: events.DigestOf([]byte(`{"a":1}`)),
			Answer: events.AnswerContinue, Next: next("", 0, 1),
		}, "no run id"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			st := newStory(t)
			standings[c.standing].reach(st)
			d, err := Decide(st.s, c.command)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if len(d.Events)+len(d.Bodies) > 0 {
				t.Errorf("decided %s all the same", types(d.Events))
			}
		})
	}
}
