package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/agents/gemini"
	"github.com/fermata-hitl/fermata/events"
)

func call(tool, input, more string) events.HookCall {
	return events.HookCall{Agent: "gemini", Event: "BeforeTool", Stdin: `{"session_id":"u-1","transcript_path":"/t","cwd":"/w",` +
		`"hook_event_name":"BeforeTool","timestamp":"2026-11-30T00:00:00Z","tool_name":"` + tool + `","tool_input":` + input + more + `}`}
}

func TestTranslate(t *testing.T) {
	got, err := gemini.Adapter{}.Translate(call("write_file", `{"file_path":"/w/a","content":"x"}`, `,"new_key":{"in":"next version"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := core.Proposal{
		Agent: "gemini", Native: "u-1", Cwd: "/w", Path: "main", Kind: events.KindToolCall,
		Tool: events.Tool{Name: "write_file", Kind: "filesystem.write"},
		Args: []byte(`{"file_path":"/w/a","content":"x","path":"/w/a"}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKinds(t *testing.T) {
	for tool, kind := range map[string]string{
		"run_shell_command": "shell", "read_file": "filesystem.read", "replace": "filesystem.write", "web_fetch": "web_fetch",
		"google_web_search": "web_search", "glob": "search", "never_heard_of": "other",
	} {
		p, err := gemini.Adapter{}.Translate(call(tool, `{}`, ``))
		if err != nil || p.Tool.Kind != kind || p.Tool.Name != tool {
			t.Errorf("%s: %+v, %v", tool, p.Tool, err)
		}
	}
	p, err := gemini.Adapter{}.Translate(call("read_file", `{}`, `,"mcp_context":{"server_name":"s"}`))
	if err != nil || p.Tool.Kind != "mcp" {
		t.Errorf("a server's read_file: %+v, %v", p.Tool, err)
	}
}

func TestBadPayloads(t *testing.T) {
	for stdin, word := range map[string]string{
		"": "nothing", "{": "not a JSON object", `{"session_id":"s","hook_event_name":"BeforeTool"}`: `"tool_name" is missing`,
		`{"session_id":"s","tool_name":"x","tool_input":{}}`:                                       `"hook_event_name" is missing`,
		`{"session_id":"s","tool_name":"x","tool_input":{},"hook_event_name":"AfterTool"}`:         "agent-hook was started for BeforeTool",
		`{"session_id":"s","tool_name":"x","hook_event_name":"BeforeTool"}`:                        `"tool_input" is missing`,
		`{"session_id":"s","tool_name":"x","tool_name":"y","hook_event_name":"BeforeTool"}`:        "twice",
		`{"session_id":"s","tool_name":["x"],"hook_event_name":"BeforeTool","tool_input":{"a":1}}`: "must be a string",
	} {
		_, err := gemini.Adapter{}.Translate(events.HookCall{Agent: "gemini", Event: "BeforeTool", Stdin: stdin})
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want an error that says %q", stdin, err, word)
		}
	}
}

func about(event, more string) events.HookCall {
	return events.HookCall{Agent: "gemini", Event: event, Stdin: `{"session_id":"u-1","transcript_path":"/t","cwd":"/w",` +
		`"hook_event_name":"` + event + `","timestamp":"2026-11-30T00:00:00Z"` + more + `}`}
}

func TestB54B90PromptIsGated(t *testing.T) {
	call := about("BeforeAgent", `,"prompt":"say \u003cb> 日本"`)
	got, err := gemini.Adapter{}.Translate(call)
	want := core.Proposal{
		Agent: "gemini", Native: "u-1", Cwd: "/w", Path: "main", Kind: events.KindUserPrompt,
		Args: []byte(`"say \u003cb> 日本"`),
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	const back = "no\n\nThe message that was not sent:\nsay <b> 日本"
	for name, c := range map[string]struct {
		v    core.Verdict
		want events.HookLine
	}{
		"allowed":       {core.Verdict{Allow: true, Args: []byte(`"x"`)}, events.HookLine{}},
		"with a note":   {core.Verdict{Allow: true, Reminder: "a \"note\""}, events.HookLine{Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"a \"note\""}}`}},
		"refused":       {core.Verdict{Code: events.CodeBlocked, Message: "no"}, agents.Deny("gemini", "BeforeAgent", "blocked", back)},
		"B61 rewritten": {core.Verdict{Allow: true, Changed: true}, agents.Deny("gemini", "BeforeAgent", "", agents.NotChecked(events.CodeChangedAfterCheck, "gemini cannot submit a prompt that was changed")+back[2:])},
	} {
		if diff := cmp.Diff(c.want, gemini.Adapter{}.Reply(call, c.v)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, more := range []string{``, `,"prompt":null`, `,"prompt":["x"]`} {
		if _, err := (gemini.Adapter{}).Translate(about("BeforeAgent", more)); err == nil {
			t.Errorf("a prompt was read from %q", more)
		}
	}
}

func TestObserved(t *testing.T) {
	base := core.Observation{Agent: "gemini", Native: "u-1", Cwd: "/w", Path: "main"}
	for name, c := range map[string]struct {
		event, more string
		want        core.Signal
	}{
		"turn": {"AfterAgent", `,"prompt":"x","prompt_response":"y"`, "after_turn"}, "start": {"SessionStart", `,"source":"startup"`, "session_start"},
		"resumed": {"SessionStart", `,"source":"resume"`, "session_restored"}, "end": {"SessionEnd", `,"reason":"exit"`, "session_end"},
		"B72 another": {"SessionEnd", `,"reason":"clear"`, "session_changed"}, "compact": {"PreCompress", `,"trigger":"auto"`, "pre_compact"},
		"dialog": {"Notification", `,"notification_type":"ToolPermission"`, "approval_requested"},
	} {
		want := base
		want.Signal = c.want
		got, err := gemini.Adapter{}.Observe(about(c.event, c.more))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	tool := `,"tool_name":"write_file","tool_input":{"file_path":"a"},"tool_response":`
	base.Tool, base.Args = events.Tool{Name: "write_file", Kind: "filesystem.write"}, []byte(`{"file_path":"a","path":"a"}`)
	for response, want := range map[string]core.ToolResult{
		`{"llmContent":"done <b>","returnDisplay":"x"}`:                   {Text: "done <b>"},
		`{"llmContent":[{"text":"a"}]}`:                                   {Text: `[{"text":"a"}]`},
		`{"llmContent":"no","error":{"message":"denied","type":"EPERM"}}`: {Text: "no", Error: "denied", Failed: true},
		`{"error":"broken"}`:                                              {Error: "broken", Failed: true},
	} {
		w := base
		w.Signal, w.Result = "after_tool_call", &want
		if want.Failed {
			w.Signal = "tool_error"
		}
		got, err := gemini.Adapter{}.Observe(about("AfterTool", tool+response))
		if diff := cmp.Diff(w, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", response, err, diff)
		}
	}
	for _, call := range []events.HookCall{
		about("AfterTool", ""), about("AfterTool", tool+"7"), about("Notification", `,"notification_type":"Weather"`), about("AfterLunch", ""),
	} {
		if w, err := (gemini.Adapter{}).Observe(call); err == nil {
			t.Errorf("%s was observed as %+v", call.Stdin, w)
		}
	}
	heard := gemini.Adapter{}.Heard(about("AfterTool", ""), core.Heard{Context: "look"})
	if want := `{"hookSpecificOutput":{"hookEventName":"AfterTool","additionalContext":"look"}}`; heard.Stdout != want || heard.Exit != 0 {
		t.Errorf("%+v", heard)
	}
	if got := (gemini.Adapter{}).Heard(about("AfterTool", ""), core.Heard{}); got != (events.HookLine{}) {
		t.Errorf("%+v", got)
	}
}

func TestReply(t *testing.T) {
	write := call("write_file", `{"file_path":"a","content":"x"}`, ``)
	for name, c := range map[string]struct {
		v    core.Verdict
		call events.HookCall
		want events.HookLine
	}{
		"allow unchanged is silence": {core.Verdict{Allow: true, Args: []byte(`{"content":"x","file_path":"a","path":"a"}`)}, write, events.HookLine{}},
		"changed is whole, in Gemini's names": {
			core.Verdict{Allow: true, Changed: true, Args: []byte(`{"content":"<y>","file_path":"a","path":"b"}`)},
			write,
			events.HookLine{Stdout: `{"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"content":"<y>","file_path":"b"}}}`},
		},
		"refused": {
			core.Verdict{Code: events.CodeDeclined, Message: "The call did not run."},
			write,
			events.HookLine{Exit: 2, Stdout: `{"decision":"deny","reason":"The call did not run."}`, Stderr: "The call did not run.\n"},
		},
	} {
		if diff := cmp.Diff(c.want, gemini.Adapter{}.Reply(c.call, c.v)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, args := range map[string]string{
		"two values for one argument": `{"file_path":"b","path":"c"}`, "no object": `[1]`, "lost": `{"path":"c"}`,
	} {
		l := gemini.Adapter{}.Reply(write, core.Verdict{Allow: true, Changed: true, Args: []byte(args)})
		if l.Exit != 2 || !strings.Contains(l.Stderr, "changed_after_check") || !strings.Contains(l.Stdout, `"deny"`) {
			t.Errorf("%s: %+v, want a deny", name, l)
		}
	}
}

func FuzzGemini(f *testing.F) {
	f.Add(call("write_file", `{"file_path":"a"}`, ``).Stdin, `{"file_path":"a","path":"b"}`)
	f.Add(call("run_shell_command", `{"command":"ls"}`, `,"mcp_context":null`).Stdin, `{"command":"id"}`)
	f.Add(`{}`, `[]`)
	f.Fuzz(func(t *testing.T, stdin, args string) {
		c := events.HookCall{Agent: "gemini", Event: "BeforeTool", Stdin: stdin}
		if _, err := (gemini.Adapter{}).Translate(c); err != nil {
			return
		}
		if !json.Valid([]byte(args)) {
			return // the core hands over canonical JSON only
		}
		_, _ = gemini.Adapter{}.Observe(events.HookCall{Agent: "gemini", Event: "AfterTool", Stdin: stdin})
		l := gemini.Adapter{}.Reply(c, core.Verdict{Allow: true, Changed: true, Args: []byte(args)})
		if l.Exit != 0 && l.Exit != 2 || !json.Valid([]byte(l.Stdout)) || l.Exit == 2 && l.Stderr == "" {
			t.Fatalf("%q: %+v", stdin, l)
		}
	})
}
