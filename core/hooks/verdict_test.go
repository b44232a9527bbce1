package hooks

import (
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// guard is a blocking hook on a tool call, as a file would give it.
var guard = Hook{
	Ref:   events.Hook{ID: "guard", Scope: events.ScopeGlobal, File: "/h/hooks.yaml", Line: 3},
	Event: events.BeforeToolCall, Enabled: true, Mode: Blocking, OnError: OnErrorBlock,
}

// verdictOn is what a run of h does that wrote the given verdict.
func verdictOn(h Hook, written, args string) Result {
	v, _, err := decodeVerdict([]byte(written))
	if err != nil {
		return Failure(h, events.CodeHookBadVerdict, err.Error())
	}
	return v.apply(h, []byte(args))
}

// texts is a verdict with both texts for the model.
const texts = `{"action":"allow","system_reminder":"a","extra_context":"b"}`

func TestVerdicts(t *testing.T) {
	prompt := guard
	prompt.Event = events.UserPromptSubmit
	observed := guard
	observed.Event = "after_tool_call"
	failing := guard
	failing.Event = events.ToolError
	session := guard
	session.Event = events.SessionStart
	async := guard
	async.Mode = Async
	asyncPrompt, asyncAfter := prompt, observed
	asyncPrompt.Mode, asyncAfter.Mode = FireAndForget, Async
	for _, tc := range []struct {
		name, written string
		hook          Hook
		effect        events.Effect
		code          events.Code
		reason        string
		override      string
		notApplied    string
		reminder      string
		context       string
	}{
		{name: "nothing written", effect: events.EffectAllow},
		{name: "an empty object", written: " {} \n", effect: events.EffectAllow},
		{name: "allow", written: `{"action":"allow"}`, effect: events.EffectAllow},
		{name: "a reason alone is no opinion", written: `{"reason":"fine"}`, effect: events.EffectAllow},
		{name: "unknown keys beside a known one", written: `{"action":"allow","score":1,"x":{"y":null}}`, effect: events.EffectAllow},
		{name: "block", written: `{"action":"block","reason":"no"}`, effect: events.EffectBlock, code: events.CodeBlocked, reason: "no"},
		{name: "B36 upper case", written: `{"action":"BLOCK"}`, effect: events.EffectBlock, code: events.CodeBlocked},
		{name: "B36 mixed case", written: `{"action":"AsK","reason":"look"}`, effect: events.EffectAsk, reason: "look"},
		{name: "B23 ask on a tool call", written: `{"action":"ask","reason":"look"}`, effect: events.EffectAsk, reason: "look"},
		{name: "B23 ask on a prompt", written: `{"action":"ask"}`, hook: prompt, effect: events.EffectAsk},
		{name: "B24 ask on another event", written: `{"action":"ask"}`, hook: observed, effect: events.EffectAskNotApplied, notApplied: "event"},
		{name: "B26 ask from a hook that does not block", written: `{"action":"ask"}`, hook: async, effect: events.EffectAskNotApplied, notApplied: "nonblocking"},
		{name: "B25 block from a hook that does not block", written: `{"action":"block"}`, hook: async, effect: events.EffectAllow},
		{name: "block on another event", written: `{"action":"block"}`, hook: observed, effect: events.EffectAllow},
		{name: "modify", written: `{"action":"modify","args_override":{"a": 1}}`, effect: events.EffectModify, override: `{"a": 1}`},
		{name: "B38 ask with new arguments", written: `{"action":"ask","reason":"r","args_override":{"a":1.0}}`, effect: events.EffectAsk, reason: "r", override: `{"a":1.0}`},
		{name: "texts on a tool call", written: texts, effect: events.EffectAllow},
		{name: "texts on a prompt", written: texts, hook: prompt, effect: events.EffectAllow, reminder: "a"},
		{name: "B40 a reminder beside an ask", written: `{"action":"ask","reason":"look","system_reminder":"a"}`, hook: prompt, effect: events.EffectAsk, reason: "look", reminder: "a"},
		{name: "a reminder beside a block", written: `{"action":"block","system_reminder":"a"}`, hook: prompt, effect: events.EffectBlock, code: events.CodeBlocked},
		{name: "texts after a tool", written: texts, hook: observed, effect: events.EffectAllow, context: "b"},
		{name: "texts after a tool's error", written: texts, hook: failing, effect: events.EffectAllow, context: "b"},
		{name: "B24 context beside an ask", written: `{"action":"ask","extra_context":"b"}`, hook: observed, effect: events.EffectAskNotApplied, notApplied: "event", context: "b"},
		{name: "texts on a session's event", written: texts, hook: session, effect: events.EffectAllow},
		{name: "texts on a prompt that did not wait", written: texts, hook: asyncPrompt, effect: events.EffectAllow},
		{name: "texts after a tool that did not wait", written: texts, hook: asyncAfter, effect: events.EffectAllow},
		{name: "new arguments after a tool", written: `{"action":"modify","args_override":{"a":1}}`, hook: observed, effect: events.EffectAllow},
		{name: "an escaped key is the key", written: `{"\u0061ction":"block"}`, effect: events.EffectBlock, code: events.CodeBlocked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := tc.hook
			if h.Ref.ID == "" {
				h = guard
			}
			r := verdictOn(h, tc.written, `{"a":0}`)
			if r.Effect != tc.effect || r.Code != tc.code || r.Reason != tc.reason || string(r.Override) != tc.override ||
				r.NotApplied != tc.notApplied || r.Outcome != events.RunOK || r.FailedOpen || r.Reminder != tc.reminder || r.Context != tc.context {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestB37BadVerdictsNeverAllow(t *testing.T) {
	for _, tc := range []struct{ name, written, want string }{
		{"not JSON", `allow`, "byte 0"},
		{"cut off", `{"action":"allow"`, "byte 17"},
		{"only white space", "\n", "byte 1"},
		{"single quotes", `{'action':'allow'}`, "byte 1"},
		{"comment", `{"action":"allow"} // ok`, "byte 19"},
		{"second document", `{"action":"allow"}{"action":"allow"}`, "byte 18"},
		{"zero byte behind", "{\"action\":\"allow\"}\x00", "byte 18"},
		{"list", `[{"action":"allow"}]`, "not a JSON object"},
		{"string", `  "allow"`, "at byte 2"},
		{"null", `null`, "not a JSON object"},
		{"true", `true`, "not a JSON object"},
		{"byte order mark", "\ufeff{\"action\":\"allow\"}", "byte 0"},
		{"invalid UTF-8", "{\"action\":\"allow\",\"reason\":\"\xff\"}", "byte 28"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "byte 0"},
		{"lone surrogate", `{"action":"allow","reason":"\ud800"}`, "byte "},
		{"duplicate key", `{"action":"block","action":"allow"}`, "byte 18"},
		{"duplicate key by escape", `{"action":"block","\u0061ction":"allow"}`, "byte 18"},
		{"duplicate key inside", `{"action":"modify","args_override":{"a":1,"a":2}}`, "byte 42"},
		{"too deep", `{"action":"allow","x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, "byte "},
		{"case of a key", `{"Action":"block"}`, `key "Action" must be written "action"`},
		{"case of a key beside the right one", `{"action":"allow","ACTION":"block"}`, `key "ACTION" must be written "action"`},
		{"case by folding", `{"reaſon":"x","action":"allow"}`, `must be written "reason"`},
		{"case of another key", `{"action":"modify","Args_Override":{}}`, `must be written "args_override"`},
		{"no known key", `{"decision":"allow"}`, "none of the keys"},
		{"unknown action", `{"action":"deny"}`, `action "deny" is none of`},
		{"empty action", `{"action":""}`, "is none of"},
		{"action with a space", `{"action":"block "}`, "is none of"},
		{"action of null", `{"action":null}`, "action must be a string"},
		{"action of true", `{"action":true}`, "action must be a string"},
		{"action of a list", `{"action":["block"]}`, "action must be a string"},
		{"reason of a number", `{"action":"block","reason":5}`, "reason must be a string"},
		{"override of a list", `{"action":"modify","args_override":[1]}`, "args_override must be an object"},
		{"override of null", `{"action":"modify","args_override":null}`, "args_override must be an object"},
		{"reminder of null", `{"action":"allow","system_reminder":null}`, "system_reminder must be a string"},
		{"context of an object", `{"action":"allow","extra_context":{}}`, "extra_context must be a string"},
		{"modify without arguments", `{"action":"modify"}`, "needs args_override"},
		{"arguments without an action", `{"args_override":{"a":1}}`, "needs the action modify or ask"},
		{"arguments with allow", `{"action":"allow","args_override":{"a":1}}`, "needs the action modify or ask"},
		{"too large", `{"action":"allow","reason":"` + strings.Repeat("x", maxVerdict) + `"}`, "larger than 1 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := verdictOn(guard, tc.written, `{}`)
			if r.Effect != events.EffectBlock || r.Code != events.CodeHookBadVerdict || r.Outcome != events.RunBadVerdict {
				t.Fatalf("%+v", r)
			}
			if !strings.Contains(r.Reason, tc.want) || !strings.Contains(r.Reason, `hook "guard" (global file /h/hooks.yaml, line 3) failed: `) {
				t.Errorf("reason %q\nwants %q", r.Reason, tc.want)
			}
			open := guard
			open.OnError = OnErrorWarn
			if r := verdictOn(open, tc.written, `{}`); r.Effect != events.EffectError || !r.FailedOpen || r.Code != "" || r.Override != nil {
				t.Errorf("with on_error warn: %+v", r)
			}
		})
	}
}

func TestOverrideNeedsAnObject(t *testing.T) {
	for _, args := range []string{`"text"`, `[1]`, `null`, `5`, ``} {
		for _, written := range []string{`{"action":"modify","args_override":{"a":1}}`, `{"action":"ask","args_override":{}}`} {
			if r := verdictOn(guard, written, args); r.Code != events.CodeHookBadVerdict {
				t.Errorf("arguments %s: %+v", args, r)
			}
		}
	}
	prompt := guard
	prompt.Event = events.UserPromptSubmit
	if r := verdictOn(prompt, `{"action":"modify","args_override":{"a":1}}`, `{}`); r.Code != events.CodeHookBadVerdict {
		t.Errorf("a prompt has no arguments: %+v", r)
	}
}

func TestFailureDirections(t *testing.T) {
	for code, outcome := range map[events.Code]events.RunOutcome{
		events.CodeHookFailed: events.RunFailed, events.CodeHookTimedOut: events.RunTimedOut,
		events.CodeHookMissing: events.RunMissing, events.CodeHookBadVerdict: events.RunBadVerdict,
		events.CodeTooLarge: events.RunFailed,
	} {
		for _, on := range []OnError{OnErrorBlock, OnErrorWarn, OnErrorIgnore, ""} {
			h := guard
			h.OnError = on
			r := Failure(h, code, "cause")
			open := on == OnErrorWarn || on == OnErrorIgnore
			if r.Outcome != outcome || r.FailedOpen != open || (r.Effect == events.EffectBlock) == open || (r.Code == code) == open {
				t.Errorf("%s, on_error %q: %+v", code, on, r)
			}
		}
	}
	observed, watching := guard, guard
	observed.Event, watching.Mode = events.AfterToolCall, Async
	for _, h := range []Hook{observed, watching} {
		for _, code := range []events.Code{events.CodeHookFailed, events.CodeNotTrusted} {
			if r := Failure(h, code, "cause"); r.Effect != events.EffectError || r.FailedOpen || r.Code != "" || r.Outcome != events.RunFailed {
				t.Errorf("a hook that decides nothing refuses nothing and lets nothing on: %+v", r)
			}
		}
	}
}

func TestUntrustedScriptBlocksWhateverOnErrorSays(t *testing.T) {
	for _, event := range []events.HookEvent{events.BeforeToolCall, events.UserPromptSubmit} {
		for _, on := range []OnError{OnErrorBlock, OnErrorWarn, OnErrorIgnore, ""} {
			h := guard
			h.Event, h.OnError = event, on
			if r := Failure(h, events.CodeNotTrusted, "cause"); r.Effect != events.EffectBlock || r.Code != events.CodeNotTrusted || r.FailedOpen {
				t.Errorf("%s, on_error %q: %+v", event, on, r)
			}
		}
	}
}

func FuzzVerdict(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"action":"ask","reason":"r"}`, `{"action":"modify","args_override":{"a":{"b":[1.0,"\u2028"]}}}`,
		`{"ACTION":"block"}`, "\ufeff{}", `{"action":"block","action":"allow"}`, `{"action":"allow"} {}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, empty, err := decodeVerdict(data)
		if err != nil {
			return
		}
		canonical, cerr := core.Canonical(data)
		if empty {
			if len(data) > 0 && string(canonical) != "{}" {
				t.Fatalf("%q read as nothing", data)
			}
			return
		}
		if cerr != nil || canonical[0] != '{' {
			t.Fatalf("%q was accepted: %v", data, cerr)
		}
		r := v.apply(guard, []byte(`{"a":1}`))
		if r.Override != nil {
			if _, err := core.Merge([]byte(`{"a":1}`), r.Override); err != nil {
				t.Fatalf("%q gives new arguments that do not merge: %v", data, err)
			}
		}
		if r.Reminder != "" || r.Context != "" {
			t.Fatalf("%q gives a tool call a text: %+v", data, r)
		}
		if r.Effect == events.EffectAllow && v.action != "allow" && v.action != "" {
			t.Fatalf("%q allows by accident: %+v", data, v)
		}
	})
}
