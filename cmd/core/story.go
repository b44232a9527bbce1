package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// story tells one operation in short lines, from its messages in the order of
// the log: one line with all that happened, then one for each wait. You is the
// principal who reads it. The result is empty when the messages do not begin an
// operation.
//
//	✓ you continued after 3.1 s → delivered → ran, 22 bytes, same digest
//	wait.hook_confirmation  3.1 s  answered/continue
func (c cli) story(messages []events.Message, you string) []string {
	t := teller{w: c.w, you: you, sign: "●", asked: map[events.ID]asked{}}
	for _, m := range messages {
		for _, e := range m.Events {
			t.event(e, m.At)
		}
	}
	if !t.began {
		return nil
	}
	if len(t.steps) == 0 && t.sign == "●" {
		t.step(words.StoryOpen)
	}
	if len(t.asked) == 0 && t.sign == "✓" {
		t.sign = "·"
		t.steps = append([]string{c.w.Say(words.NoQuestion)}, t.steps...)
	}
	return append([]string{t.sign + " " + strings.Join(t.steps, " → ")}, t.waits...)
}

// teller collects a story. The sign is the operation's end; steps make the
// first line.
type teller struct {
	w         words.Words
	you       string
	began     bool
	sign      string
	steps     []string
	waits     []string
	asked     map[events.ID]asked
	committed events.Version
	lastHook  string

	unreported bool // the last step says that nobody told whether it ran
}

type asked struct {
	events.Request
	at events.Micros
}

func (t *teller) event(e events.Event, at events.Micros) {
	switch e := e.(type) {
	case events.OperationProposed:
		t.began, t.steps = true, nil
	case events.HookRan:
		if e.AtGate() { // else it only watched
			t.lastHook = e.Hook.ID
		}
	case events.RecheckStarted:
		t.step(words.StoryRecheck, t.cause(e.Cause))
	case events.Request:
		t.asked[e.ID] = asked{e, at}
	case events.Response:
		q := t.asked[e.ID]
		t.step(words.After, t.decided(e), t.took(q, at))
		t.wait(q, at, events.ResultAnswered, e.Answer.EndReason())
	case events.Withdrawn:
		q := t.asked[e.ID]
		t.step(words.StoryUnanswered, t.w.End(string(e.Reason)), t.took(q, at))
		t.wait(q, at, e.Result, e.Reason)
	case events.OperationCommitted:
		t.sign, t.committed = "✓", e.Version
	case events.OperationDelivered:
		if t.sign == "✓" {
			t.step(words.Delivered)
		}
	case events.OperationFinished:
		t.finish(e)
	case events.OperationRefused:
		t.refuse(e)
	case events.OperationAborted:
		t.sign = "–"
		t.step(words.Ended, t.w.End(string(e.Reason)))
		t.notRun()
	}
}

func (t *teller) step(k words.Key, args ...any) { t.steps = append(t.steps, t.w.Say(k, args...)) }

func (t *teller) notRun() {
	t.steps = append(t.steps, t.w.Outcome(string(events.OutcomeNotRun)))
}

func (t *teller) took(q asked, at events.Micros) string {
	return card.Took(time.Duration(at-q.at)*time.Microsecond, t.w)
}

// wait is the line of the span, in the words that a trace has.
func (t *teller) wait(q asked, at events.Micros, result events.Result, reason events.EndReason) {
	t.waits = append(t.waits, fmt.Sprintf("wait.%s  %s  %s/%s", q.Gate, t.took(q, at), result, reason))
}

func (t *teller) decided(e events.Response) string {
	did := t.w.Answer(string(e.Answer))
	switch e.Principal {
	case t.you:
		return t.w.Say(words.YouDecided, did)
	case "":
		return t.w.Say(words.Decided, t.w.Say(words.Somebody), did)
	}
	return t.w.Say(words.Decided, e.Principal, did)
}

func (t *teller) refuse(e events.OperationRefused) {
	t.sign = "✕"
	switch e.Code {
	case events.CodeDeclined: // its question has been told
	case events.CodeTimedOut:
		t.sign = "⌛"
	case events.CodeBlocked:
		t.step(words.StoryBlocked, t.lastHook)
	default:
		t.steps = append(t.steps, t.w.Coded(t.w.Code(string(e.Code)), string(e.Code)))
	}
	t.notRun()
}

// finish tells what became of a commit. A report that comes after all takes the
// place of the word that none came.
func (t *teller) finish(e events.OperationFinished) {
	if t.unreported {
		t.steps = t.steps[:len(t.steps)-1]
	}
	t.unreported = e.Outcome == events.OutcomeUnknown
	t.steps = append(t.steps, t.ran(e))
}

// cause is what changed the arguments.
func (t *teller) cause(c events.Cause) string {
	if c == events.CauseHook && t.lastHook != "" {
		return t.lastHook
	}
	return t.w.Cause(string(c))
}

func (t *teller) ran(e events.OperationFinished) string {
	did := t.w.Outcome(string(e.Outcome))
	if e.Outcome == events.OutcomeNotRun || e.Outcome == events.OutcomeUnknown || e.Ran == "" {
		return did
	}
	if e.Ran != t.committed.Digest {
		return t.w.Say(words.OtherDigest, did)
	}
	return t.w.Say(words.SameDigest, t.w.Say(words.RanBytes, did, card.Count(t.committed.Bytes)))
}
