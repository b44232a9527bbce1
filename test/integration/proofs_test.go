package integration_test

import (
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// proof is what a story shows about behaviours; its name begins with their
// numbers. It is checked against what the story left behind.
type proof struct {
	name  string
	check func(t *testing.T, e evidence, work string)
}

// proofs of the stories in testdata/script, by name.
var proofs = map[string][]proof{
	"three-processes": {
		{"B2 B6 F1 each call had a question of its own with one answer", func(t *testing.T, e evidence, _ string) {
			wantEnd(t, e, "continue", ending{events.ResultAnswered, events.EndContinue})
			wantEnd(t, e, "cancel", ending{events.ResultAnswered, events.EndCancel})
			wantQuestions(t, e, "free", 0)
		}},
		{"B5 B4 an answer to a settled question changed nothing and is recorded", func(t *testing.T, e evidence, _ string) {
			late := of(facts[events.AnswerRejected](e), e.call(t, "cancel"))
			if len(late) != 1 || late[0].Event.Code != events.RejectAlreadyAnswered {
				t.Errorf("rejected answers: %+v, want one already_answered", late)
			}
		}},
		{"B58 B64 F7 what ran is the committed version byte for byte", func(t *testing.T, e evidence, work string) {
			wantRan(t, e, "continue", work, "ran.continue")
			wantRan(t, e, "free", work, "ran.free")
			wantNotRun(t, e, "cancel", work, "ran.cancel", events.CodeDeclined)
		}},
	},
	"asker-killed": {
		{"B11 B20 exactly one withdrawal, with agent_gone", func(t *testing.T, e evidence, work string) {
			wantEnd(t, e, "write", ending{events.ResultWithdrawn, events.EndAgentGone})
			aborted := of(facts[events.OperationAborted](e), e.call(t, "write"))
			if len(aborted) != 1 || aborted[0].Event.Reason != events.EndAgentGone {
				t.Errorf("aborted: %+v", aborted)
			}
		}},
		{"B80 the late answer is recorded as late and nothing was committed", func(t *testing.T, e evidence, _ string) {
			late := of(facts[events.AnswerRejected](e), e.call(t, "write"))
			if len(late) != 1 || late[0].Event.Code != events.RejectWithdrawn {
				t.Errorf("rejected answers: %+v, want one withdrawn", late)
			}
			if n := len(facts[events.OperationCommitted](e)); n != 0 {
				t.Errorf("%d commits", n)
			}
		}},
	},
	"core-killed": {
		{"F3 each call was asked about once and answered once", func(t *testing.T, e evidence, work string) {
			wantEnd(t, e, "first", ending{events.ResultAnswered, events.EndContinue})
			wantEnd(t, e, "second", ending{events.ResultAnswered, events.EndCancel})
		}},
		{"F3 B58 nothing ran twice", func(t *testing.T, e evidence, work string) {
			wantRan(t, e, "first", work, "ran.first")
			wantNotRun(t, e, "second", work, "ran.second", events.CodeDeclined)
		}},
	},
	"claimer-killed": {
		{"F2 the claim of the killed frontend ended before the answer", func(t *testing.T, e evidence, work string) {
			op := e.call(t, "write")
			claims, freed := of(facts[events.Claimed](e), op), of(facts[events.Released](e), op)
			if len(claims) != 2 || len(freed) != 1 || freed[0].Event.Frontend != claims[0].Event.Frontend ||
				freed[0].Event.Reason != events.ReleasedLapsed {
				t.Errorf("claims %+v, released %+v", claims, freed)
			}
			wantEnd(t, e, "write", ending{events.ResultAnswered, events.EndContinue})
			wantRan(t, e, "write", work, "ran")
		}},
	},
	"frontend-late": {
		{"B7 F2 a question that waits outlived the absence of frontends", func(t *testing.T, e evidence, work string) {
			wantEnd(t, e, "wait", ending{events.ResultAnswered, events.EndContinue})
			wantRan(t, e, "wait", work, "ran.wait")
		}},
		{"B30 without it nobody to ask is a refusal at once", func(t *testing.T, e evidence, work string) {
			wantEnd(t, e, "reject", ending{events.ResultUnavailable, events.EndNoFrontend})
			wantNotRun(t, e, "reject", work, "ran.reject", events.CodeUnavailable)
		}},
	},
	"plain": {
		{"F1 F8 B6 each question had the one answer that was typed for it", func(t *testing.T, e evidence, work string) {
			for call, want := range map[string]events.Answer{"first": events.AnswerCancel, "second": events.AnswerContinue, "third": events.AnswerContinue} {
				op := e.call(t, call)
				if r := of(facts[events.Response](e), op); len(r) != 1 || r[0].Event.Answer != want || r[0].Event.HasText != (call == "first") {
					t.Errorf("%s: %+v", call, r)
				}
			}
			wantNotRun(t, e, "first", work, "ran.first", events.CodeDeclined)
			wantRan(t, e, "second", work, "ran.second")
			wantRan(t, e, "third", work, "ran.third")
		}},
		{"F9 nothing that was typed for another question was sent", func(t *testing.T, e evidence, _ string) {
			if late := facts[events.AnswerRejected](e); len(late) != 0 {
				t.Errorf("rejected answers: %+v", late)
			}
		}},
	},
	"recheck": {
		{"B42 B45 B46 the repeated question names what changed since the yes", func(t *testing.T, e evidence, _ string) {
			asked := wantQuestions(t, e, "change", 2)
			if q := asked[1].Event; q.Attempt != 1 || q.Previous != 0 || len(q.Changed) != 1 || q.Changed[0] != "path" {
				t.Errorf("second question: %+v", q)
			}
		}},
		{"B48 B53 after three rechecks the call is rejected", func(t *testing.T, e evidence, work string) {
			wantQuestions(t, e, "limit", 4)
			if n := len(of(facts[events.RecheckStarted](e), e.call(t, "limit"))); n != 3 {
				t.Errorf("%d rechecks, want 3", n)
			}
			wantNotRun(t, e, "limit", work, "ran.limit", events.CodeRecheckLimit)
		}},
		{"B49 B50 a return to an earlier version is rejected and its run is named", func(t *testing.T, e evidence, work string) {
			wantNotRun(t, e, "cycle", work, "ran.cycle", events.CodeRecheckCycle)
			op := e.call(t, "cycle")
			ran, refused := of(facts[events.HookRan](e), op), of(facts[events.OperationRefused](e), op)
			if last := ran[len(ran)-1].Event; last.Hook.ID != "flip" || last.Run != refused[0].Event.Run {
				t.Errorf("refused because of run %s, the last was %+v", refused[0].Event.Run, last)
			}
		}},
		{"B44 B38 what changes before the question starts no recheck", func(t *testing.T, e evidence, work string) {
			for _, tool := range []string{"before", "both"} {
				if q := wantQuestions(t, e, tool, 1)[0].Event; q.Version.N != 1 || q.Attempt != 0 {
					t.Errorf("%s was asked about %+v", tool, q)
				}
				wantRan(t, e, tool, work, "ran."+tool)
			}
		}},
		{"B43 equal values are no change", func(t *testing.T, e evidence, work string) {
			wantQuestions(t, e, "same", 1)
			if n := len(of(facts[events.ArgumentsChanged](e), e.call(t, "same"))); n != 0 {
				t.Errorf("%d changes", n)
			}
			wantRan(t, e, "same", work, "ran.same")
		}},
		{"B51 each recheck ran every matching hook again", func(t *testing.T, e evidence, _ string) {
			runs := map[string]int{}
			for _, f := range of(facts[events.HookRan](e), e.call(t, "limit")) {
				runs[f.Event.Hook.ID]++
			}
			if runs["ask"] != 4 || runs["count"] != 4 {
				t.Errorf("runs %v, want four of each", runs)
			}
		}},
	},
	"trust": {
		{"F14 B58 a project's hooks decide while they are trusted as they are", func(t *testing.T, e evidence, work string) {
			wantRan(t, e, "before", work, "ran.before")
			wantNotRun(t, e, "blocked", work, "ran.blocked", events.CodeBlocked)
			wantNotRun(t, e, "changed", work, "ran.changed", events.CodeNotTrusted)
			wantNotRun(t, e, "agreed", work, "ran.agreed", events.CodeBlocked)
			wantRan(t, e, "after", work, "ran.after")
		}},
	},
	"icode": {
		{"B58 B82 scripts written for iCode let through and refuse unchanged", func(t *testing.T, e evidence, work string) {
			wantRan(t, e, "bash", work, "ran.allow")
			wantNotRun(t, e, "Bash", work, "ran.block", events.CodeBlocked)
			wantNotRun(t, e, "BASH", work, "ran.guest", events.CodeBlocked)
		}},
	},
	"gemini": {
		{"B58 a real agent ran what was agreed to and only that", func(t *testing.T, e evidence, work string) {
			ops := e.calls("write_file")
			if len(ops) != 3 {
				t.Fatalf("%d calls, want 3", len(ops))
			}
			committed := facts[events.OperationCommitted](e)
			if len(committed) != 1 || committed[0].Message.Operation != ops[0] {
				t.Errorf("committed: %+v, want the first call", committed)
			}
		}},
		{"B82 B83 B84 a real model reads that it did not run and what to do", func(t *testing.T, e evidence, work string) {
			chats, _ := readFile(t, work, "chats")
			for _, words := range []string{
				"The tool call did not run. The user was asked and said no",
				"Do not call it again unless the user asks for it.",
				"not this one",
				"The user was asked and did not answer in time",
				"Ask the user before you call it again",
			} {
				if !strings.Contains(string(chats), words) {
					t.Errorf("the model was not told %q", words)
				}
			}
		}},
		{"B8 B9 a hook's own timeout ended its question", func(t *testing.T, e evidence, _ string) {
			withdrawn := facts[events.Withdrawn](e)
			if len(withdrawn) != 1 || withdrawn[0].Event.Result != events.ResultTimedOut || withdrawn[0].Message.Operation != e.calls("write_file")[2] {
				t.Errorf("withdrawn: %+v, want the third call's question, timed out", withdrawn)
			}
		}},
	},
}

// wantQuestions checks how often a person was asked about the call of a tool.
func wantQuestions(t *testing.T, e evidence, tool string, n int) []fact[events.Request] {
	t.Helper()
	asked := of(facts[events.Request](e), e.call(t, tool))
	if len(asked) != n {
		t.Fatalf("%s: asked %d times, want %d", tool, len(asked), n)
	}
	return asked
}

// wantEnd checks that a call was asked about once, and how that ended.
func wantEnd(t *testing.T, e evidence, tool string, want ending) {
	t.Helper()
	q := wantQuestions(t, e, tool, 1)[0].Event.ID
	if got := e.endings()[q]; len(got) != 1 || got[0] != want {
		t.Errorf("%s: ended %v, want %v", tool, got, want)
	}
}

// wantRan checks that what a tool ran is what was committed, byte for byte.
func wantRan(t *testing.T, e evidence, tool, work, file string) {
	t.Helper()
	ran, ok := readFile(t, work, file)
	committed := of(facts[events.OperationCommitted](e), e.call(t, tool))
	if !ok || len(committed) != 1 || committed[0].Event.Version.Digest != events.DigestOf(ran) {
		t.Errorf("%s ran %q (%v), committed %+v", tool, ran, ok, committed)
	}
	if n := len(of(facts[events.OperationDelivered](e), e.call(t, tool))); n != 1 {
		t.Errorf("%s: %d receipts, want one", tool, n)
	}
}

// wantNotRun checks that a call was refused with a code and did nothing.
func wantNotRun(t *testing.T, e evidence, tool, work, file string, code events.Code) {
	t.Helper()
	if _, ok := readFile(t, work, file); ok {
		t.Errorf("%s ran", tool)
	}
	op := e.call(t, tool)
	refused := of(facts[events.OperationRefused](e), op)
	if len(refused) != 1 || refused[0].Event.Code != code {
		t.Errorf("%s: refused %+v, want %s", tool, refused, code)
	}
	if n := len(of(facts[events.OperationCommitted](e), op)); n != 0 {
		t.Errorf("%s was committed", tool)
	}
}
