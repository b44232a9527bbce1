package tracing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

func messages(t *testing.T, w *writer) []events.Message {
	t.Helper()
	var all []events.Message
	for _, r := range w.records {
		m, err := events.DecodeMessage(r.Data)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func TestStory(t *testing.T) {
	answer := func(a events.Answer, who string, then ...events.Event) func(events.ID) []events.Event {
		return func(q events.ID) []events.Event {
			return append([]events.Event{events.Response{Gate: events.GateHook, ID: q, Principal: who, Answer: a}}, then...)
		}
	}
	end := func(reason events.EndReason, then events.Event) func(events.ID) []events.Event {
		return func(q events.ID) []events.Event {
			return []events.Event{events.Withdrawn{Gate: events.GateHook, ID: q, Result: events.ResultOf(reason), Reason: reason}, then}
		}
	}
	committed := events.OperationCommitted{Version: version(2)}
	ran := events.OperationFinished{Outcome: events.OutcomeOK, Ran: version(2).Digest}
	other := events.OperationFinished{Outcome: events.OutcomeFailed, Ran: version(3).Digest}
	unknown := events.OperationFinished{Outcome: events.OutcomeUnknown}
	notRun := events.OperationFinished{Outcome: events.OutcomeNotRun}
	unseen := events.OperationFinished{Outcome: events.OutcomeOK}
	const wait = "wait.hook_confirmation  5.0 s  "
	for name, c := range map[string]struct {
		end  func(events.ID) []events.Event
		want []string
	}{
		"F11 continued": {
			answer(events.AnswerContinue, "uid:1000", committed, events.OperationDelivered{}, ran),
			[]string{"✓ you continued after 5.0 s → delivered → ran, 22 bytes, same digest", wait + "answered/continue"},
		},
		"other arguments": {
			answer(events.AnswerOnce, "uid:7", committed, events.OperationDelivered{}, other),
			[]string{"✓ uid:7 allowed it once after 5.0 s → delivered → ran and failed, but with other arguments than were checked", wait + "answered/continue"},
		},
		"unknown": {
			answer(events.AnswerAlways, "", committed, unknown),
			[]string{"✓ somebody allowed it always after 5.0 s → nobody told whether it ran", wait + "answered/continue"},
		},
		"not run": {
			answer(events.AnswerModifyEditor, "uid:1000", committed, notRun),
			[]string{"✓ you edited after 5.0 s → did not run", wait + "answered/continue"},
		},
		"unseen": {
			answer(events.AnswerContinue, "uid:1000", committed, unseen),
			[]string{"✓ you continued after 5.0 s → ran", wait + "answered/continue"},
		},
		"declined": {
			answer(events.AnswerCancel, "uid:1000", events.OperationRefused{Code: events.CodeDeclined}),
			[]string{"✕ you cancelled after 5.0 s → did not run", wait + "answered/cancel"},
		},
		"timed out": {
			end(events.EndDeadline, events.OperationRefused{Code: events.CodeTimedOut}),
			[]string{"⌛ no answer in 5.0 s → did not run", wait + "timed_out/deadline"},
		},
		"nobody": {
			end(events.EndNoFrontend, events.OperationRefused{Code: events.CodeUnavailable}),
			[]string{"✕ nobody to ask → refused (unavailable), did not run", wait + "unavailable/no_frontend"},
		},
		"failed": {
			end(events.EndStoreError, events.OperationRefused{Code: events.CodeLogUnavailable}),
			[]string{"✕ the question failed (store_error) → refused (log_unavailable), did not run", wait + "failed/store_error"},
		},
		"withdrawn": {
			end(events.EndTurnEnded, events.OperationAborted{Reason: events.EndTurnEnded}),
			[]string{"– question withdrawn after 5.0 s → ended (turn_ended), did not run", wait + "withdrawn/turn_ended"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(1)
			endedQuestion(w, events.GateHook, c.end)
			if diff := cmp.Diff(c.want, Story(messages(t, w), "uid:1000")); diff != "" {
				t.Errorf("story (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStoryOfOthers(t *testing.T) {
	rechecked := func(w *writer) { recheckedCall(w) }
	blocked := func(w *writer) {
		w.put(w.id(), 0, nil, proposal(), events.HookRan{Hook: askHook, Effect: events.EffectBlock}, events.OperationRefused{Code: events.CodeBlocked})
	}
	unasked := func(w *writer) {
		w.put(w.id(), 0, nil, proposal(), events.OperationCommitted{Version: version(0)}, events.OperationDelivered{})
	}
	begun := func(w *writer) { w.put(w.id(), 0, nil, proposal()) }
	for name, c := range map[string]struct {
		log  func(*writer)
		want []string
	}{
		"rechecked": {rechecked, []string{
			"✓ you continued after 4.1 s → changed by add-region, checked again → you continued after 9.8 s → delivered → ran, 21 bytes, same digest",
			"wait.hook_confirmation  4.1 s  answered/continue",
			"wait.hook_confirmation  9.8 s  answered/continue",
		}},
		"blocked": {blocked, []string{"✕ refused by ask-before-push, did not run"}},
		"unasked": {unasked, []string{"· nobody was asked → delivered"}},
		"begun":   {begun, []string{"● not ended yet"}},
		"nothing": {func(*writer) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(1)
			c.log(w)
			if diff := cmp.Diff(c.want, Story(messages(t, w), "uid:1000")); diff != "" {
				t.Errorf("story (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSpell(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0.0 s": -time.Second, "3.1 s": 3149 * time.Millisecond, "59.9 s": 59949 * time.Millisecond,
		"1:00": 59950 * time.Millisecond, "5:00": 5 * time.Minute, "1:02:03": time.Hour + 123*time.Second,
	} {
		if got := spell(0, events.Micros(d.Microseconds())); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
