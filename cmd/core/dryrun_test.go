package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// rules is a hooks file with these entries.
func rules(entries ...string) string {
	if len(entries) == 0 {
		return "version: 1\nhooks: []\n"
	}
	text := "version: 1\nhooks:\n"
	for _, e := range entries {
		text += "  - {event: before_tool_call, execution: {mode: blocking}, " + e + "}\n"
	}
	return text
}

const (
	asks    = "id: asks, run: {type: verdict, action: ask, reason: Why now?}"
	blocks  = "id: blocks, run: {type: verdict, action: block, reason: Not here.}"
	allows  = "id: allows, run: {type: verdict, action: allow}"
	changes = `id: changes, run: {type: shell, shell: 'echo ''{"action":"modify","args_override":{"b":2}}'' > "$FERMATA_HOOK_RESULT"'}`
	fails   = "id: fails, run: {type: shell, shell: 'exit 7'}"
	others  = "id: others, match: {tool_kind: mcp}, run: {type: verdict, action: block}"
	args    = "id: args, match: {args: {a: {equals: '2'}}}, run: {type: verdict, action: block}"
	off     = "id: off, enabled: false, run: {type: verdict, action: block}"
)

// seen is what a dry run said of a hook: id, why it did not run, or its verdict.
func seen(f forecast) []string {
	var all []string
	for _, h := range f.Hooks {
		all = append(all, strings.Join([]string{h.Hook, h.Why + h.Verdict, string(h.Code) + h.NotApplied}, " "))
	}
	return all
}

func TestHooksRunForetells(t *testing.T) {
	h := home(t)
	const short = `{"tool": {"name": "Bash", "kind": "shell", "args": {"a": 1}}}`
	for name, c := range map[string]struct {
		rules, payload string
		exit           int
		want           forecast
		hooks          []string
		says           string
	}{
		"nothing": {rules: rules(), payload: short, want: forecast{Would: "allow", Code: "checked"}, says: "no hook is about this event"},
		"allow": {
			rules: rules(allows), payload: short, want: forecast{Would: "allow", Code: "checked"},
			hooks: []string{"allows allow "}, says: "It would go on. (allow)",
		},
		"block": {
			rules: rules(allows, blocks, asks), payload: short, exit: exitRefused,
			want:  forecast{Would: "block", By: "blocks", Code: "blocked", Reason: "Not here."},
			hooks: []string{"allows allow ", "blocks block blocked", "asks not_reached "}, says: "blocks would refuse it: Not here. (blocked)",
		},
		"ask": {
			rules: rules(asks, allows), payload: short, exit: exitRefused,
			want:  forecast{Would: "ask", AfterYes: "allow", By: "asks", Reason: "Why now?"},
			hooks: []string{"asks ask ", "allows allow "}, says: "“Why now?”",
		},
		"ask, then block": {
			rules: rules(asks, blocks), payload: short, exit: exitRefused,
			want:  forecast{Would: "ask", AfterYes: "block", By: "asks", Reason: "Why now?"},
			hooks: []string{"asks ask ", "blocks block blocked"}, says: "a later hook would refuse it",
		},
		"ask twice": {
			rules: rules(asks, strings.Replace(asks, "id: asks", "id: again", 1)), payload: short, exit: exitRefused,
			want:  forecast{Would: "ask", AfterYes: "ask", By: "asks", Reason: "Why now?"},
			hooks: []string{"asks ask ", "again ask "}, says: "would ask again",
		},
		"changes": {
			rules: rules(changes, allows), payload: short,
			want:  forecast{Would: "allow", Code: "checked", Args: json.RawMessage(`{"a":1,"b":2}`)},
			hooks: []string{"changes modify ", "allows allow "}, says: "changes the arguments",
		},
		"changes behind a question": {
			rules: rules(asks, changes), payload: short, exit: exitRefused,
			want:  forecast{Would: "ask", AfterYes: "allow", By: "asks", Reason: "Why now?", Args: json.RawMessage(`{"a":1,"b":2}`)},
			hooks: []string{"asks ask ", "changes modify recheck"}, says: "would be checked again from the first hook",
		},
		"fails": {
			rules: rules(fails), payload: short, exit: exitRefused, want: forecast{Would: "block", By: "fails", Code: "hook_failed"},
			hooks: []string{"fails block hook_failed"}, says: "a hook failed (hook_failed)",
		},
		"not about it": {
			rules: rules(others, args, off), payload: short, want: forecast{Would: "allow", Code: "checked"},
			hooks: []string{"others other_call ", "args other_args ", "off off "}, says: "other arguments  args.",
		},
		"no canonical form": {
			rules: rules(allows), payload: `{"tool": {"name": "Bash", "kind": "shell", "args": {"a": 1, "a": 2}}}`, exit: exitRefused,
			want: forecast{Would: "block", Code: "no_canonical_form"}, says: "(no_canonical_form)",
		},
		"no canonical form, and no rule is about it": {
			rules: rules(others), payload: `{"tool": {"name": "Bash", "kind": "shell", "args": {"a": 1, "a": 2}}}`,
			want: forecast{Would: "allow", Code: "checked"}, says: "It would go on. (allow)",
		},
		"below the directory": {
			rules: rules(allows), payload: `{"cwd": "web-shop", "tool": {"name": "x", "kind": "mcp", "args": {}}}`,
			want:  forecast{Would: "allow", Code: "checked"},
			hooks: []string{"allows allow "}, says: "x (mcp)  ~/web-shop",
		},
		"a broken file": {
			rules: "version: 9\n", payload: short, exit: exitRefused,
			want: forecast{Would: "block", Code: "hooks_config_invalid"}, says: "hooks.yaml has a mistake",
		},
		"a whole payload": {
			rules:   rules(blocks),
			payload: `{"schema": 1, "event": "before_tool_call", "timestamp": "2026-11-30T12:00:00Z", "session_id": "s", "profile": "p", "cwd": "/", "tool": {"name": "x", "kind": "mcp", "call_id": "c", "args": {}}, "confirmation_available": true, "new": []}`,
			exit:    exitRefused, want: forecast{Would: "block", By: "blocks", Code: "blocked", Reason: "Not here."},
			hooks: []string{"blocks block blocked"}, says: "x (mcp)  /",
		},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, h+"/config/hooks.yaml", c.rules)
			r := call(t, c.payload, "hooks", "run", "before_tool_call", "--dir", h, "--json")
			var got forecast
			if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.exit != c.exit || r.problems != "" {
				t.Fatalf("%v: %+v", err, r)
			}
			if diff := cmp.Diff(c.hooks, seen(got)); diff != "" {
				t.Errorf("hooks (-want +got):\n%s", diff)
			}
			want := []string{string(c.want.Would), string(c.want.AfterYes), c.want.By, string(c.want.Code)}
			if diff := cmp.Diff(want, []string{string(got.Would), string(got.AfterYes), got.By, string(got.Code)}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.want.Reason != "" && c.want.Reason != got.Reason || c.want.Args != nil && string(c.want.Args) != string(got.Args) {
				t.Errorf("%+v", got)
			}
			if r := call(t, c.payload, "hooks", "run", "before_tool_call", "--dir", h); r.exit != c.exit || !strings.Contains(r.out, c.says) {
				t.Errorf("%q is not in %+v", c.says, r)
			}
			if r := call(t, c.payload, "hooks", "run", "before_tool_call", "--dir", h, "--language", "zh-Hans"); !han(r.out) {
				t.Errorf("%+v", r)
			}
		})
	}
	if _, err := os.Stat(h + "/state"); err == nil {
		t.Error("a dry run left something in the state directory")
	}
}

// TestHooksRunWatches also covers events whose hooks only watch, and prompts.
func TestHooksRunOfOtherEvents(t *testing.T) {
	h := home(t)
	write(t, h+"/config/hooks.yaml", `version: 1
hooks:
  - id: read
    event: after_tool_call
    execution: {mode: blocking}
    run: {type: shell, shell: 'grep -q "\"failed\":true" && echo "{\"extra_context\": \"it failed\"}" > "$FERMATA_HOOK_RESULT"'}
  - id: prompt
    event: user_prompt_submit
    execution: {mode: blocking}
    run: {type: shell, shell: 'grep -q "delete all" && echo "{\"action\": \"ask\"}" > "$FERMATA_HOOK_RESULT"; exit 0'}
  - id: watch
    event: user_prompt_submit
    execution: {mode: async}
    run: {type: shell, shell: 'echo "{\"action\": \"block\"}" > "$FERMATA_HOOK_RESULT"; pwd > watched'}
`)
	for name, c := range map[string]struct {
		event, payload string
		exit           int
		says           []string
	}{
		"a tool's end":                 {"after_tool_call", `{"tool": {"name": "Bash"}, "result": {"failed": true, "text": "no"}}`, 0, []string{"“it failed”", "only watch"}},
		"a prompt":                     {"user_prompt_submit", `{"text": "good morning"}`, 0, []string{"✓  watch", "ran", "(allow)"}},
		"a prompt that is asked about": {"user_prompt_submit", `{"text": "delete all"}`, exitRefused, []string{"?  prompt", "(ask)"}},
		"another event":                {"session_start", `{}`, 0, []string{"no hook is about this event"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := call(t, c.payload, "hooks", "run", c.event, "--dir", h)
			if r.exit != c.exit {
				t.Errorf("%+v", r)
			}
			for _, want := range c.says {
				if !strings.Contains(r.out, want) {
					t.Errorf("%q is not in %+v", want, r)
				}
			}
		})
	}
	if at, err := os.ReadFile(h + "/watched"); err != nil || strings.TrimSpace(string(at)) != h {
		t.Errorf("the watching hook did not run in the directory: %q, %v", at, err)
	}
}

func TestHooksRunRefusesWhatItCannotUse(t *testing.T) {
	h := home(t)
	for name, payload := range map[string]string{
		"empty": "", "no JSON": "ls -l", "no object": "[1]", "two": "{} {}", "no tool": "{}", "no name": `{"tool": {"kind": "shell"}}`,
		"a wrong type": `{"tool": "Bash"}`, "another event": `{"event": "session_start", "tool": {"name": "x"}}`,
		"two meanings": `{"tool": {"name": "Write", "kind": "filesystem.write", "args": {"path": "a", "file_path": "b"}}}`,
		"too large":    `{"tool": {"name": "x"}, "text": "` + strings.Repeat("x", maxPayload) + `"}`,
	} {
		if r := call(t, payload, "hooks", "run", "before_tool_call", "--dir", h); r.exit != exitFault || r.out != "" || r.problems == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := call(t, `{}`, "hooks", "run", "user_prompt_submit"); r.exit != exitFault || !strings.Contains(r.problems, "text") {
		t.Errorf("a prompt without a text: %+v", r)
	}
}

func TestHooksRunUsesAProjectOnlyWhenToldOrTrusted(t *testing.T) {
	_, dir := project(t)
	payload := `{"cwd": "` + dir + `", "tool": {"name": "Bash", "kind": "shell", "args": {"command": "make clean"}}}`
	if r := call(t, payload, "hooks", "run", "before_tool_call", "--dir", dir); r.exit != exitRefused || !strings.Contains(r.out, "not trusted") {
		t.Errorf("told: %+v", r)
	}
	if r := call(t, payload, "hooks", "run", "before_tool_call"); r.exit != exitOK || strings.Contains(r.out, "no-clean") {
		t.Errorf("not trusted: %+v", r)
	}
	if r := call(t, "", "hooks", "trust", "--dir", dir, "--yes"); r.exit != 0 {
		t.Fatalf("%+v", r)
	}
	if r := call(t, payload, "hooks", "run", "before_tool_call"); r.exit != exitRefused || strings.Contains(r.out, "not trusted") || !strings.Contains(r.out, "Nothing is cleaned here.") {
		t.Errorf("trusted: %+v", r)
	}
	write(t, dir+"/.fermata/no-clean.sh", "#!/bin/sh\n")
	if r := call(t, payload, "hooks", "run", "before_tool_call"); r.exit != exitRefused || !strings.Contains(r.out, "(not_trusted)") {
		t.Errorf("changed: %+v", r)
	}
}

// TestICodeScriptsRunUnchanged runs five scripts that were written for iCode's
// fail-closed manner, as they are.
func TestICodeScriptsRunUnchanged(t *testing.T) {
	home(t)
	const icode = "../../test/testdata/icode"
	payload := func(name string) string {
		text, err := os.ReadFile(filepath.Join(icode, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	allow, block := payload("allow.json"), payload("block.json")
	tool := func(tool string) string {
		return `{"profile": "developer", "tool": ` + tool + `}`
	}
	for name, c := range map[string]struct {
		payload string
		exit    int
		says    string
	}{
		"allow":            {allow, exitOK, "It would go on. (allow)"},
		"block":            {block, exitRefused, "red-line-words would refuse it: The call contains 'rm -rf'. (blocked)"},
		"allow-list":       {tool(`{"name": "make_coffee", "kind": "other", "args": {}}`), exitRefused, "tool-allow-list would refuse it"},
		"profile":          {strings.Replace(allow, "developer", "guest", 1), exitRefused, "auth-profile would refuse it"},
		"reads as a guest": {`{"tool": {"name": "read_file", "kind": "filesystem.read", "args": {"path": "a"}}}`, exitOK, "(allow)"},
		"no token":         {tool(`{"name": "reviewer", "kind": "sub_agent", "args": {"task": "look"}}`), exitRefused, "delegation-token would refuse it"},
		"a token": {
			tool(`{"name": "reviewer", "kind": "sub_agent", "args": {"delegation_token": "0123456789abcdef0123456789abcdef"}}`), exitOK, "(allow)",
		},
		"protected":  {tool(`{"name": "write_file", "kind": "filesystem.write", "args": {"file_path": ".git/config"}}`), exitRefused, "protected-paths would refuse it"},
		"outside":    {tool(`{"name": "write_file", "kind": "filesystem.write", "args": {"path": "../up"}}`), exitRefused, "outside the working directory"},
		"inside":     {tool(`{"name": "write_file", "kind": "filesystem.write", "args": {"path": "src/a.go"}}`), exitOK, "(allow)"},
		"unreadable": {tool(`{"name": "write_file", "kind": "filesystem.write", "args": ["path"]}`), exitRefused, "the payload could not be checked"},
	} {
		t.Run(name, func(t *testing.T) {
			r := call(t, c.payload, "hooks", "run", "before_tool_call", "--dir", icode)
			if r.exit != c.exit || !strings.Contains(r.out, c.says) {
				t.Errorf("%+v", r)
			}
		})
	}
	if r := call(t, "", "hooks", "check", "--dir", icode); r.exit != exitOK || strings.Contains(r.out, "fails_open") || strings.Contains(r.out, "cannot_start") {
		t.Errorf("%+v", r)
	}
	list := objects(t, call(t, "", "hooks", "list", "--dir", icode, "--json").out)
	if len(list) != 5 {
		t.Errorf("%v", list)
	}
}

// FuzzDecodePayload: whatever is written, what is taken of it makes a payload
// that a hook can read.
func FuzzDecodePayload(f *testing.F) {
	for _, seed := range []string{
		`{"tool": {"name": "Bash", "kind": "shell", "args": {"command": "ls"}}}`, `{"text": "hello", "injected": true}`, `{}`, `null`, `[]`,
		`{"tool": {"name": "x", "args": "text"}, "result": {"text": "t", "duration_ms": 5}}`, `{"cwd": "sub", "confirmation_available": false}`,
	} {
		f.Add([]byte(seed), uint8(0))
	}
	all := append(events.ObservedEvents(), events.BeforeToolCall, events.UserPromptSubmit)
	f.Fuzz(func(t *testing.T, text []byte, event uint8) {
		p, err := cli{}.decodePayload(text, all[int(event)%len(all)], "/work")
		if err != nil {
			return
		}
		if !json.Valid(p.Encode()) || !filepath.IsAbs(p.Cwd) || p.agent == "" {
			t.Errorf("%s became %+v", text, p)
		}
	})
}

// TestHooksRunTellsOfAVerdictThatIsNotRead: where iCode looks, a verdict on stdout
// allows, and only a dry run can say so.
func TestHooksRunTellsOfAVerdictThatIsNotRead(t *testing.T) {
	h := home(t)
	const text = "version: 1\nhooks:\n  - {id: a, event: before_tool_call, execution: {mode: blocking}, run: {type: shell, shell: 'echo ''{\"action\":\"block\"}'''}}\n"
	const payload = `{"tool": {"name": "Bash", "kind": "shell", "args": {}}}`
	write(t, h+"/.chrys/hooks/hooks.yaml", text)
	for language, want := range map[string]string{"en": "it wrote its verdict to stdout, where nobody looks", "zh-Hans": "它把表态写到了标准输出"} {
		if r := call(t, payload, "hooks", "run", "before_tool_call", "--dir", h, "--language", language); r.exit != exitOK || !strings.Contains(r.out, want) {
			t.Errorf("%+v", r)
		}
	}
	var got forecast
	r := call(t, payload, "hooks", "run", "before_tool_call", "--dir", h, "--json")
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || !strings.Contains(got.Hooks[0].Note, "with result_from: stdout") {
		t.Errorf("%v %+v", err, r)
	}
	write(t, h+"/config/hooks.yaml", text)
	if r := call(t, payload, "hooks", "run", "before_tool_call", "--dir", h); r.exit != exitRefused || !strings.Contains(r.out, "(hook_bad_verdict)") {
		t.Errorf("Fermata's own: %+v", r)
	}
}
