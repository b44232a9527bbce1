package tracing

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

var update = flag.Bool("update", false, "write testdata/golden.jsonl again")

const agentParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// recheckedCall is a call that was asked about twice, because a later hook
// changed it after the first yes, and then ran.
func recheckedCall(w *writer) events.ID {
	op, q1, q2, first, second := w.id(), w.id(), w.id(), w.id(), w.id()
	run := []events.ID{w.id(), w.id(), w.id(), w.id()}
	asPerson := func(m *events.Message) { m.Principal = "uid:1000" }
	w.put(op, 0, func(m *events.Message) { m.Turn, m.Traceparent, m.Principal = "12", agentParent, "uid:1000" },
		proposal(), events.HookStarted{Run: run[0], Hook: askHook})
	w.put(op, 40*time.Millisecond, nil,
		events.HookRan{Run: run[0], Hook: askHook, Effect: events.EffectAsk, Outcome: events.RunOK, Script: version(7).Digest, Micros: 31_000},
		events.Request{
			Gate: events.GateHook, ID: q1, Hook: askHook, Run: run[0], Version: version(0), Previous: -1,
			Deadline: w.now + 300_040_000, DeadlineFrom: "config", Offered: 2,
		})
	w.put(op, 1500*time.Millisecond, asPerson,
		events.Presented{Gate: events.GateHook, ID: q1, Frontend: first, Kind: events.FrontendTUI, Digest: version(0).Digest, At: w.now + 20_000},
		events.Claimed{Gate: events.GateHook, ID: q1, Frontend: first, Kind: events.FrontendTUI, Name: "tui on pts/3", Principal: "uid:1000"})
	w.put(op, time.Second, asPerson, events.AnswerRejected{ID: q1, Frontend: second, Code: events.RejectNotClaimer, Answer: events.AnswerCancel})
	w.put(op, time.Second, asPerson,
		events.Released{Gate: events.GateHook, ID: q1, Frontend: first, Reason: events.ReleasedTakenOver},
		events.Claimed{Gate: events.GateHook, ID: q1, Frontend: second, Kind: events.FrontendACP, Principal: "uid:1000"})
	w.put(op, 600*time.Millisecond, asPerson,
		events.Response{
			Gate: events.GateHook, ID: q1, Frontend: second, Kind: events.FrontendACP, Principal: "uid:1000",
			Answer: events.AnswerContinue, Digest: version(0).Digest, Claim: w.seq,
		},
		events.HookStarted{Run: run[1], Hook: addHook})
	w.put(op, 25*time.Millisecond, nil,
		events.HookRan{Run: run[1], Hook: addHook, Effect: events.EffectModify, Outcome: events.RunOK, Micros: 20_000},
		events.ArgumentsChanged{To: version(1), Cause: events.CauseHook, Hook: "add-region", Names: []string{"command"}},
		events.RecheckStarted{Attempt: 1, Cause: events.CauseHook, Config: proposal().Config},
		events.HookStarted{Run: run[2], Hook: askHook, Version: 1, Attempt: 1})
	w.put(op, 35*time.Millisecond, nil,
		events.HookRan{Run: run[2], Hook: askHook, Effect: events.EffectAsk, Outcome: events.RunOK, Script: version(7).Digest, Micros: 30_000},
		events.Request{
			Gate: events.GateHook, ID: q2, Hook: askHook, Run: run[2], Version: version(1), Attempt: 1,
			Changed: []string{"command"}, Offered: 1,
		})
	w.put(op, 9800*time.Millisecond, asPerson,
		events.Claimed{Gate: events.GateHook, ID: q2, Frontend: first, Kind: events.FrontendTUI, Principal: "uid:1000"},
		events.Response{
			Gate: events.GateHook, ID: q2, Frontend: first, Kind: events.FrontendTUI, Principal: "uid:1000",
			Answer: events.AnswerContinue, Digest: version(1).Digest,
		},
		events.HookStarted{Run: run[3], Hook: addHook, Version: 1, Attempt: 1})
	w.put(op, 22*time.Millisecond, nil,
		events.HookRan{Run: run[3], Hook: addHook, Effect: events.EffectError, Outcome: events.RunFailed, FailedOpen: true, Exit: 1, Micros: 20_000},
		events.OperationChecked{Version: version(1), Config: proposal().Config},
		events.OperationCommitted{Version: version(1)})
	w.put(op, 2*time.Millisecond, nil, events.OperationDelivered{})
	w.put(op, 3*time.Second, nil, events.OperationFinished{Outcome: events.OutcomeOK, Ran: version(1).Digest})
	return op
}

// watchedCall is a call whose hooks stood in line, that others watched, and
// after which a hook ran; then one of the session's own.
func watchedCall(w *writer) {
	op := w.id()
	inTurn := func(m *events.Message) { m.Turn = "12" }
	gate, async := started(w.id(), "", ""), started(w.id(), "", events.ModeAsync)
	after, turn := started(w.id(), events.AfterToolCall, ""), started(w.id(), events.AfterTurn, events.ModeFireAndForget)
	w.put(op, 0, inTurn, proposal(), gate)
	w.put(op, 50*time.Millisecond, inTurn, ran(gate, events.RunOK, 20*time.Millisecond, 30*time.Millisecond),
		events.OperationCommitted{Version: version(0)}, async)
	w.put(op, time.Second, inTurn, ran(async, events.RunTimedOut, time.Second, 0))
	w.put(op, time.Second, inTurn, after)
	w.put(op, time.Second, inTurn, ran(after, events.RunOK, time.Second, 0))
	w.put("", time.Second, inTurn, turn)
	w.put("", time.Second, inTurn, ran(turn, events.RunDetached, 0, 0))
}

// endedQuestion is an operation whose first question ends as given.
func endedQuestion(w *writer, gate events.Gate, end func(events.ID) []events.Event) (op, question events.ID) {
	op, question = w.id(), w.id()
	run := w.id()
	p := proposal()
	p.Kind, p.Tool = events.KindUserPrompt, events.Tool{}
	w.put(op, 0, nil, p, events.HookStarted{Run: run, Hook: askHook})
	w.put(op, 10*time.Millisecond, nil,
		events.HookRan{Run: run, Hook: askHook, Effect: events.EffectAsk, Outcome: events.RunOK},
		events.Request{Gate: gate, ID: question, Hook: askHook, Run: run, Version: version(0), Previous: -1, Deadline: w.now + 5_010_000})
	w.put(op, 5*time.Second, nil, end(question)...)
	return op, question
}

// TestGolden pins every byte of the spans of schema 1. A change here is a
// change of the schema.
func TestGolden(t *testing.T) {
	w := newWriter(1)
	recheckedCall(w)
	endedQuestion(w, events.GateHook, func(q events.ID) []events.Event {
		return []events.Event{
			events.Withdrawn{Gate: events.GateHook, ID: q, Result: events.ResultTimedOut, Reason: events.EndDeadline},
			events.OperationRefused{Code: events.CodeTimedOut, Question: q},
		}
	})
	watchedCall(w)
	got := lines(t, w.records)
	const path = "testdata/golden.jsonl"
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("spans changed (-want +got):\n%s", cmp.Diff(string(want), string(got)))
	}
	if report := verify(t, w.records, ReadFile(path)); len(report.Findings) > 0 {
		t.Errorf("findings in the golden spans: %v", report.Findings)
	}
}
