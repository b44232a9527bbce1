package tracing

import (
	"fmt"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// Story tells one operation in short English lines, from its messages in the
// order of the log: one line with all that happened, then one line for each
// wait. You is the principal who reads it and is called "you". The result is
// empty when the messages do not begin an operation.
//
//	✓ you continued after 3.1 s → delivered → ran, 22 bytes, same digest
//	wait.hook_confirmation  3.1 s  answered/continue
func Story(messages []events.Message, you string) []string {
	t := teller{you: you, sign: "●", asked: map[events.ID]asked{}}
	for _, m := range messages {
		for _, e := range m.Events {
			t.event(e, m.At)
		}
	}
	if !t.began {
		return nil
	}
	if len(t.steps) == 0 && t.sign == "●" {
		t.step("not ended yet")
	}
	if len(t.asked) == 0 && t.sign == "✓" {
		t.sign = "·"
		t.steps = append([]string{"nobody was asked"}, t.steps...)
	}
	return append([]string{t.sign + " " + strings.Join(t.steps, " → ")}, t.waits...)
}

// teller collects a story. The sign is the operation's end; steps make the
// first line.
type teller struct {
	you       string
	began     bool
	sign      string
	steps     []string
	waits     []string
	asked     map[events.ID]asked
	committed events.Version
	lastHook  string
}

type asked struct {
	events.Request
	at events.Micros
}

func (t *teller) event(e events.Event, at events.Micros) {
	switch e := e.(type) {
	case events.OperationProposed:
		t.began = true
		t.steps = nil
	case events.HookRan:
		t.lastHook = e.Hook.ID
	case events.RecheckStarted:
		t.step(fmt.Sprintf("changed by %s, checked again", t.cause(e.Cause)))
	case events.Request:
		t.asked[e.ID] = asked{e, at}
	case events.Response:
		q := t.asked[e.ID]
		t.step(fmt.Sprintf("%s %s after %s", t.who(e.Principal), said(e.Answer), spell(q.at, at)))
		t.wait(q, at, events.ResultAnswered, e.Answer.EndReason())
	case events.Withdrawn:
		q := t.asked[e.ID]
		t.step(unanswered(e, spell(q.at, at)))
		t.wait(q, at, e.Result, e.Reason)
	case events.OperationCommitted:
		t.sign, t.committed = "✓", e.Version
	case events.OperationDelivered:
		if t.sign == "✓" {
			t.step("delivered")
		}
	case events.OperationFinished:
		t.step(t.ran(e))
	case events.OperationRefused:
		t.refuse(e)
	case events.OperationAborted:
		t.sign = "–"
		t.step("ended (" + string(e.Reason) + "), did not run")
	}
}

func (t *teller) step(s string) { t.steps = append(t.steps, s) }

func (t *teller) wait(q asked, at events.Micros, result events.Result, reason events.EndReason) {
	t.waits = append(t.waits, fmt.Sprintf("wait.%s  %s  %s/%s", q.Gate, spell(q.at, at), result, reason))
}

func (t *teller) who(principal string) string {
	switch principal {
	case t.you:
		return "you"
	case "":
		return "somebody"
	}
	return principal
}

func (t *teller) cause(c events.Cause) string {
	if c == events.CauseHook && t.lastHook != "" {
		return t.lastHook
	}
	return string(c)
}

func (t *teller) refuse(e events.OperationRefused) {
	t.sign = "✕"
	switch e.Code {
	case events.CodeDeclined:
		t.step("did not run")
	case events.CodeTimedOut:
		t.sign = "⌛"
		t.step("did not run")
	case events.CodeBlocked:
		t.step("refused by " + t.lastHook + ", did not run")
	default:
		t.step("refused (" + string(e.Code) + "), did not run")
	}
}

func (t *teller) ran(e events.OperationFinished) string {
	did := "ran"
	switch e.Outcome {
	case events.OutcomeNotRun:
		return "did not run"
	case events.OutcomeUnknown:
		return "nobody told whether it ran"
	case events.OutcomeFailed:
		did = "ran and failed"
	}
	switch e.Ran {
	case "":
		return did
	case t.committed.Digest:
		return fmt.Sprintf("%s, %d bytes, same digest", did, t.committed.Bytes)
	}
	return did + ", but with other arguments than were checked"
}

func said(a events.Answer) string {
	switch a {
	case events.AnswerContinue:
		return "continued"
	case events.AnswerCancel, events.AnswerClientCancels:
		return "cancelled"
	case events.AnswerModifyEditor:
		return "edited"
	case events.AnswerOnce:
		return "allowed it once"
	}
	return "allowed it always"
}

func unanswered(e events.Withdrawn, after string) string {
	switch e.Result {
	case events.ResultTimedOut:
		return "no answer in " + after
	case events.ResultUnavailable:
		return "nobody to ask"
	case events.ResultFailed:
		return "the question failed (" + string(e.Reason) + ")"
	}
	return "question withdrawn after " + after
}

// spell writes a length of time: 3.1 s, 5:00, 1:02:03.
func spell(from, to events.Micros) string {
	tenths := (max(to-from, 0) + 50_000) / 100_000
	s := tenths / 10
	switch {
	case s < 60:
		return fmt.Sprintf("%d.%d s", s, tenths%10)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
