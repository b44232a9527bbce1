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

const event = "before_tool_call"

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
		Kind:        events.KindToolCall, Event: events.BeforeToolCall,
		Tool: events.Tool{Name: "Bash", Kind: "shell", CallID: "c1"}, Args: []byte(`{"n":1.0, "a":"\u00e9"}`),
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
		t.Error("user_prompt_submit was translated")
	}
}

func TestReply(t *testing.T) {
	call := events.HookCall{Agent: "generic", Event: event}
	args := `{"a":"<b>","n":1.0,"z":12345678901234567890}`
	got := generic.Adapter{}.Reply(call, core.Verdict{Allow: true, Code: events.CodeChecked, Args: []byte(args), Changed: true})
	if want := (events.HookLine{Stdout: `{"decision":"allow","code":"checked","args":` + args + `}`}); got != want {
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
