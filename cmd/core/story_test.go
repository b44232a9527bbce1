package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// told makes messages, each five seconds after the one before.
func told(groups ...[]events.Event) []events.Message {
	var all []events.Message
	for i, es := range groups {
		all = append(all, events.Message{At: events.Micros(i) * 5_000_000, Events: es})
	}
	return all
}

func TestF11StoryInBothLanguages(t *testing.T) {
	q := engine.NewID(time.Now())
	version := events.Version{N: 2, Digest: events.DigestOf([]byte(`{}`)), Bytes: 22}
	begin := []events.Event{
		events.OperationProposed{},
		events.HookRan{Hook: events.Hook{ID: "ask-first"}, Effect: events.EffectAsk},
		events.HookRan{Hook: events.Hook{ID: "watcher"}, Mode: events.ModeAsync},
		events.Request{Gate: events.GateHook, ID: q},
	}
	answer := func(a events.Answer, who string, then ...events.Event) []events.Event {
		return append([]events.Event{events.Response{Gate: events.GateHook, ID: q, Principal: who, Answer: a}}, then...)
	}
	end := func(reason events.EndReason, then events.Event) []events.Event {
		return []events.Event{events.Withdrawn{Gate: events.GateHook, ID: q, Result: events.ResultOf(reason), Reason: reason}, then}
	}
	committed := events.OperationCommitted{Version: version}
	ran := events.OperationFinished{Outcome: events.OutcomeOK, Ran: version.Digest}
	other := events.OperationFinished{Outcome: events.OutcomeFailed, Ran: events.DigestOf([]byte(`[]`))}
	for name, c := range map[string]struct {
		log    [][]events.Event
		en, zh string
		wait   string // in English
	}{
		"continued": {
			[][]events.Event{begin, answer(events.AnswerContinue, "uid:1000", committed, events.OperationDelivered{}, ran)},
			"✓ you continued after 5.0 s → delivered → ran, 22 bytes, same digest",
			"✓ 5.0 秒后由你选择了继续 → 已送达 → 已运行，22 字节，摘要一致", "answered/continue",
		},
		"other arguments": {
			[][]events.Event{begin, answer(events.AnswerOnce, "uid:7", committed, events.OperationDelivered{}, other)},
			"✓ uid:7 allowed it once after 5.0 s → delivered → ran, failed, not what was allowed",
			"✓ 5.0 秒后由 uid:7 允许了一次 → 已送达 → 运行失败，与获准的内容不符", "answered/continue",
		},
		"nobody reported": {
			[][]events.Event{begin, answer(events.AnswerContinue, "", committed, events.OperationFinished{Outcome: events.OutcomeUnknown})},
			"✓ somebody continued after 5.0 s → outcome unknown", "✓ 5.0 秒后由 某人 选择了继续 → 结果不明", "answered/continue",
		},
		"nobody saw what ran": {
			[][]events.Event{begin, answer(events.AnswerModifyEditor, "uid:1000", committed, events.OperationFinished{Outcome: events.OutcomeOK})},
			"✓ you edited it after 5.0 s → ran", "✓ 5.0 秒后由你作了编辑 → 已运行", "answered/continue",
		},
		"F12 reported late": {
			[][]events.Event{begin, answer(events.AnswerContinue, "uid:1000", committed, events.OperationFinished{Outcome: events.OutcomeUnknown}), {ran}},
			"✓ you continued after 5.0 s → ran, 22 bytes, same digest", "✓ 5.0 秒后由你选择了继续 → 已运行，22 字节，摘要一致", "answered/continue",
		},
		"declined": {
			[][]events.Event{begin, answer(events.AnswerCancel, "uid:1000", events.OperationRefused{Code: events.CodeDeclined})},
			"✕ you cancelled after 5.0 s → did not run", "✕ 5.0 秒后由你选择了取消 → 未运行", "answered/cancel",
		},
		"timed out": {
			[][]events.Event{begin, end(events.EndDeadline, events.OperationRefused{Code: events.CodeTimedOut})},
			"⌛ no answer in time after 5.0 s → did not run", "⌛ 等待 5.0 秒后未按时回答 → 未运行", "timed_out/deadline",
		},
		"nobody": {
			[][]events.Event{begin, end(events.EndNoFrontend, events.OperationRefused{Code: events.CodeUnavailable})},
			"✕ nobody to ask after 5.0 s → nobody to ask (unavailable) → did not run",
			"✕ 等待 5.0 秒后无人可问 → 无人可问（unavailable） → 未运行", "unavailable/no_frontend",
		},
		"withdrawn": {
			[][]events.Event{begin, end(events.EndTurnEnded, events.OperationAborted{Reason: events.EndTurnEnded})},
			"– the turn ended after 5.0 s → ended: the turn ended → did not run",
			"– 等待 5.0 秒后本轮已结束 → 已结束：本轮已结束 → 未运行", "withdrawn/turn_ended",
		},
		"blocked": {
			[][]events.Event{{events.OperationProposed{}, events.HookRan{Hook: events.Hook{ID: "no-push"}}, events.OperationRefused{Code: events.CodeBlocked}}},
			"✕ refused by no-push → did not run", "✕ 被 no-push 拒绝 → 未运行", "",
		},
		"unasked": {
			[][]events.Event{{events.OperationProposed{}, committed, events.OperationDelivered{}}},
			"· no question → delivered", "· 未询问 → 已送达", "",
		},
		"rechecked": {
			[][]events.Event{{events.OperationProposed{}, events.HookRan{Hook: events.Hook{ID: "add-region"}}, events.RecheckStarted{Cause: events.CauseHook}}},
			"● changed by add-region, checked again", "● 被 add-region 改动，重新检查", "",
		},
		"begun":   {[][]events.Event{{events.OperationProposed{}}}, "● not ended yet", "● 尚未结束", ""},
		"nothing": {nil, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for lang, line := range map[words.Language]string{words.English: c.en, words.Chinese: c.zh} {
				story := cli{w: words.In(lang)}.story(told(c.log...), "uid:1000")
				var want []string
				if line != "" {
					want = append(want, line)
				}
				if c.wait != "" {
					took := map[words.Language]string{words.English: "5.0 s", words.Chinese: "5.0 秒"}[lang]
					want = append(want, "wait.hook_confirmation  "+took+"  "+c.wait)
				}
				if diff := cmp.Diff(want, story); diff != "" {
					t.Errorf("%s (-want +got):\n%s", lang, diff)
				}
			}
		})
	}
}
