package generic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents/generic"
	"github.com/fermata-hitl/fermata/events"
)

const (
	event  = "before_tool_call"
	prompt = "user_prompt_submit"
)

func translate(stdin string) (core.Proposal, error) {
	return generic.Adapter{}.Translate(events.HookCall{Agent: "generic", Event: event, Stdin: stdin})
}

const tool = `"tool":{"name":"Bash","kind":"shell","call_id":"c1","args":{"n":1.0, "a":"\u00e9"}}`

func TestTranslate(t *testing.T) {
	long := strings.Repeat("日本 /\\.*>", 20000)
	quoted, _ := json.Marshal(long)
	got, err := translate(`{"session_id":` + string(quoted) + `,"agent":"claude","profile":"p","cwd":"/w","turn_id":"t1",` +
		`"path":"main > reviewer#1","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",` + tool + `}`)
	if err != nil {
		t.Fatal(err)
	}
	want := core.Proposal{
		Agent: "claude", Native: long, Cwd: "/w", Profile: "p", Turn: "t1", Path: "main > reviewer#1",
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Kind:        events.KindToolCall,
		Tool:        events.Tool{Name: "Bash", Kind: "shell", CallID: "c1"}, Args: []byte(`{"n":1.0, "a":"\u00e9"}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	short, err := translate(`{"session_id":"s","agent":"generic","cwd":"/","tool":{"name":"x","kind":"other","args":null}}`)
	if err != nil || short.Path != "main" || string(short.Args) != "null" {
		t.Errorf("%+v, %v", short, err)
	}
}

func TestStrict(t *testing.T) {
	base := `{"session_id":"s","agent":"generic","cwd":"/w",` + tool + `}`
	if _, err := translate(base); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, word string }{
		"unknown key":       {`"cwd"`, `"x":1,"cwd"`, `unknown key "x"`},
		"case":              {`"cwd"`, `"Cwd"`, `unknown key "Cwd"`},
		"twice":             {`"cwd"`, `"cwd":"/x","cwd"`, "twice"},
		"no session":        {`"session_id":"s",`, ``, `"session_id" is missing`},
		"empty session":     {`"s"`, `""`, `"session_id" is missing`},
		"number session":    {`"s"`, `7`, "must be a string"},
		"half a character":  {`"s"`, `"\ud800"`, "surrogate"},
		"unknown agent":     {`"generic"`, `"mybot"`, `it is "generic"`},
		"relative cwd":      {`"/w"`, `"w"`, "absolute"},
		"bad traceparent":   {`"cwd"`, `"traceparent":"00-0-0-0","cwd"`, "traceparent"},
		"zero traceparent":  {`"cwd"`, `"traceparent":"00-00000000000000000000000000000000-b7ad6b7169203331-01","cwd"`, "traceparent"},
		"tool is no object": {`{"name"`, `[{"name"`, "stdin"},
		"no tool name":      {`"name":"Bash",`, ``, `"name" is missing`},
		"unknown kind":      {`"shell"`, `"Shell"`, `"kind" must be one of`},
		"unknown tool key":  {`"kind"`, `"allow":true,"kind"`, "unknown key"},
		"no args":           {`"args"`, `"call_id2"`, "unknown key"},
		"behind it":         {`}}}`, `}}} {}`, "follows"},
	} {
		stdin := strings.Replace(base, c.old, c.new, 1)
		if _, err := translate(stdin); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.word)
		}
	}
	if _, err := (generic.Adapter{}).Translate(events.HookCall{Event: "user_prompt_submit", Stdin: base}); err == nil {
		t.Error("a tool call was translated as an input")
	}
}

func TestB54B91InputsAreTranslated(t *testing.T) {
	const text = `"\u003cb> 日本\/\n"`
	for word, kind := range map[string]events.Kind{
		"": events.KindUserPrompt, `"kind":"prompt",`: events.KindUserPrompt,
		`"kind":"injection",`: events.KindInjection, `"kind":"retry_note",`: events.KindRetryNote,
	} {
		got, err := generic.Adapter{}.Translate(events.HookCall{Agent: "generic", Event: prompt, Stdin: `{"session_id":"s",` +
			`"agent":"generic","cwd":"/w","turn_id":"t","parent_session_id":"root","input":{` + word + `"text":` + text + `}}`})
		want := core.Proposal{
			Agent: "generic", Native: "s", Parent: "root", Cwd: "/w", Turn: "t", Path: "main",
			Kind: kind, Args: []byte(text),
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", word, err, diff)
		}
	}
	for input, word := range map[string]string{
		`{"text":"x","kind":"Prompt"}`: "must be prompt", `{"text":7}`: "must be a string", `{"kind":"prompt"}`: "must be a string",
		`{"text":null}`: "must be a string", `"x"`: `"input"`, `{"text":"x","more":1}`: "unknown key", `{"text":"x","text":"y"}`: "twice",
	} {
		_, err := generic.Adapter{}.Translate(events.HookCall{Event: prompt, Stdin: `{"session_id":"s","agent":"generic","cwd":"/w","input":` + input + `}`})
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want an error that says %q", input, err, word)
		}
	}
}

func TestObservedEvents(t *testing.T) {
	const id = "01jq0000000000000000000000"
	base := `{"session_id":"s","agent":"generic","cwd":"/w","profile":"p","turn_id":"t","path":"main > a#1","parent_session_id":"root"`
	w := core.Observation{Agent: "generic", Native: "s", Parent: "root", Cwd: "/w", Profile: "p", Turn: "t", Path: "main > a#1"}
	for event, more := range map[string]string{
		"session_start": "", "after_turn": "", "user_interrupt": "", "sub_agent_end": "", "build_changed": "", "session_changed": "",
		"message_withdrawn": `,"operation":"` + id + `"`, "pre_compact": "",
	} {
		want := w
		want.Signal = core.Signal(event)
		if more != "" {
			want.Operation = id
		}
		got, err := generic.Adapter{}.Observe(events.HookCall{Event: event, Stdin: base + more + `}`})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", event, err, diff)
		}
	}
	got, err := generic.Adapter{}.Observe(events.HookCall{Event: "tool_error", Stdin: base + `,` + tool + `,"result":{"error":"gone","failed":true}}`})
	w.Signal, w.Tool, w.Args = "tool_error", events.Tool{Name: "Bash", Kind: "shell", CallID: "c1"}, []byte(`{"n":1.0, "a":"\u00e9"}`)
	w.Result = &core.ToolResult{Error: "gone", Failed: true}
	if diff := cmp.Diff(w, got); err != nil || diff != "" {
		t.Errorf("tool_error: %v (-want +got):\n%s", err, diff)
	}
	for event, c := range map[string]struct{ more, word string }{
		"message_withdrawn": {"", `"operation" is missing`}, "session_end": {`,` + tool, "unknown key"},
		"after_tool_call": {"", `"tool"`}, "before_turn": {`,"operation":"x"`, "id"},
	} {
		if _, err := (generic.Adapter{}).Observe(events.HookCall{Event: event, Stdin: base + c.more + `}`}); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v, want an error that says %q", event, err, c.word)
		}
	}
	for _, bad := range []string{`{"duration_ms":-1}`, `{"duration_ms":1e13}`, `{"failed":"yes"}`, `{"x":1}`, `[]`} {
		if _, err := (generic.Adapter{}).Observe(events.HookCall{Event: "after_tool_call", Stdin: base + `,` + tool + `,"result":` + bad + `}`}); err == nil {
			t.Errorf("the result %s was read", bad)
		}
	}
}

func TestReply(t *testing.T) {
	call := events.HookCall{Agent: "generic", Event: event}
	args := `{"a":"<b>","n":1.0,"z":12345678901234567890}`
	got := generic.Adapter{}.Reply(call, core.Verdict{Operation: "01j", Allow: true, Code: events.CodeChecked, Args: []byte(args), Changed: true})
	if want := (events.HookLine{Stdout: `{"decision":"allow","code":"checked","operation":"01j","args":` + args + `}`}); got != want {
		t.Errorf("got %+v", got)
	}
	in := events.HookCall{Agent: "generic", Event: prompt, Stdin: `{"input":{"text":"\u003cb>"}}`}
	got = generic.Adapter{}.Reply(in, core.Verdict{Operation: "01j", Allow: true, Args: []byte(`"<b>"`), Reminder: "mind\nthis"})
	if want := (events.HookLine{Stdout: `{"decision":"allow","code":"checked","operation":"01j","text":"<b>","system_reminder":"mind\nthis"}`}); got != want {
		t.Errorf("got %+v", got)
	}
	got = generic.Adapter{}.Reply(in, core.Verdict{Code: events.CodeBlocked, Message: "no"})
	if want := (events.HookLine{Exit: 2, Stdout: `{"decision":"deny","code":"blocked","refused":"prompt","reason":"no","text":"\u003cb>"}`, Stderr: "no\n"}); got != want {
		t.Errorf("got %+v", got)
	}
	got = generic.Adapter{}.Reply(call, core.Verdict{Code: events.CodeTimedOut})
	if got.Exit != 2 || got.Stderr == "" || !strings.HasPrefix(got.Stdout, `{"decision":"deny","code":"timed_out","reason":"`) {
		t.Errorf("got %+v", got)
	}
}

func FuzzGeneric(f *testing.F) {
	f.Add(`{"session_id":"s","agent":"generic","cwd":"/w",` + tool + `}`)
	f.Add(`{"session_id":"s","agent":"generic","cwd":"/w","tool":{"name":"x","kind":"other","args":[[[1]]]}}`)
	f.Add(``)
	f.Add(`{"tool":{}}`)
	f.Fuzz(func(t *testing.T, stdin string) {
		p, err := translate(stdin)
		if err != nil {
			return
		}
		if p.Native == "" || p.Tool.Name == "" || p.Tool.Kind == "" || p.Cwd[0] != '/' || p.Path == "" || !json.Valid(p.Args) {
			t.Fatalf("translated %q to %+v", stdin, p)
		}
	})
}

// FuzzInputs checks that a deny of an input is JSON whatever came, and carries
// back what could be read.
func FuzzInputs(f *testing.F) {
	f.Add(prompt, `{"session_id":"s","agent":"generic","cwd":"/w","input":{"text":"a\ud83d\ude00","kind":"injection"}}`)
	f.Add("after_tool_call", `{"session_id":"s","agent":"generic","cwd":"/w",`+tool+`,"result":{"duration_ms":1e400}}`)
	f.Add("message_withdrawn", `{"operation":""}`)
	f.Fuzz(func(t *testing.T, event, stdin string) {
		call := events.HookCall{Agent: "generic", Event: event, Stdin: stdin}
		if w, err := (generic.Adapter{}).Observe(call); err == nil && (w.Native == "" || w.Cwd[0] != '/' || w.Path == "") {
			t.Fatalf("observed %q as %+v", stdin, w)
		}
		call.Event = prompt
		p, err := generic.Adapter{}.Translate(call)
		var said struct{ Text, Refused *string }
		line := generic.Adapter{}.Deny(call, events.CodeDeclined, "no")
		if e := json.Unmarshal([]byte(line.Stdout), &said); e != nil || line.Exit != 2 {
			t.Fatalf("%+v: %v", line, e)
		}
		if err == nil && (said.Text == nil || said.Refused == nil || !strings.Contains(line.Stdout, string(p.Args))) {
			t.Fatalf("%q was not carried back: %+v", stdin, line)
		}
	})
}
