package hooks

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fermata-hitl/fermata/events"
)

// read reads one file's text as the global file of a directory /h.
func read(name, text string) ([]Hook, Settings, []ConfigError, error) {
	c, err := readFile(origin{scope: events.ScopeGlobal, file: "/h/" + name, home: "/h"}, []byte(text))
	return c.hooks, c.settings.over(DefaultSettings()), c.warnings, err
}

// one is a file with one hook, whose lines begin at line 3.
func one(lines ...string) string {
	return "version: 1\nhooks:\n  - " + strings.Join(lines, "\n    ") + "\n"
}

func TestConfigDefaults(t *testing.T) {
	hooks, settings, warnings, err := read("hooks.yaml", `
hooks:
  - id: " guard "
    event: before_tool_call
    run: {type: script, path: check.py}
    execution: {mode: blocking}
  - id: watch
    event: after_turn
    run: {type: command, argv: [notify, turn]}
  - id: rule
    event: before_tool_call
    enabled: no
    description: a rule
    run: {type: verdict, action: ask, reason: look}
    execution: {mode: blocking, timeout_seconds: 2.5, on_error: warn, require_result: true,
      confirmation: {timeout_seconds: 0, when_nobody: wait}}
    match: {tool_kind: chrys.shell, args: {command: {regex: 'rm\b'}, path: {}}}
`)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	never := time.Duration(0)
	want := []Hook{{
		Ref:   events.Hook{ID: "guard", Scope: events.ScopeGlobal, File: "/h/hooks.yaml", Line: 3},
		Event: events.BeforeToolCall, Enabled: true, Mode: Blocking, Timeout: 30 * time.Second,
		OnError: OnErrorBlock, Delivery: BestEffort,
		Run: Run{Type: RunScript, Path: "check.py", Env: map[string]string{}, ResultFrom: FromFile},
	}, {
		Ref:   events.Hook{ID: "watch", Scope: events.ScopeGlobal, File: "/h/hooks.yaml", Line: 7},
		Event: "after_turn", Enabled: true, Mode: FireAndForget, Timeout: 30 * time.Second,
		OnError: OnErrorWarn, Delivery: BestEffort,
		Run: Run{Type: RunCommand, Argv: []string{"notify", "turn"}, Env: map[string]string{}, ResultFrom: FromFile},
	}, {
		Ref:   events.Hook{ID: "rule", Scope: events.ScopeGlobal, File: "/h/hooks.yaml", Line: 10},
		Event: events.BeforeToolCall, Description: "a rule", Mode: Blocking, Timeout: 2500 * time.Millisecond,
		OnError: OnErrorWarn, Delivery: BestEffort, RequireResult: true,
		Run:          Run{Type: RunVerdict, Action: "ask", Reason: "look"},
		Confirmation: Confirmation{Timeout: &never, WhenNobody: events.NobodyWait},
	}}
	if d := cmp.Diff(want, hooks, cmpopts.IgnoreUnexported(Hook{})); d != "" {
		t.Error(d)
	}
	if m := hooks[2].match; m.toolKind != "shell" || len(m.args) != 2 {
		t.Errorf("match = %+v", m)
	}
	if d := cmp.Diff(DefaultSettings(), settings); d != "" {
		t.Error(d)
	}
}

func TestConfigKnowsEveryEventAndAgent(t *testing.T) {
	for _, e := range append(events.ObservedEvents(), events.BeforeToolCall, events.UserPromptSubmit) {
		for _, mode := range []Mode{Blocking, Async, FireAndForget} {
			_, _, _, err := read("hooks.yaml", one("id: a", "event: "+string(e), "run: {type: shell, shell: 'true'}",
				"execution: {mode: "+string(mode)+"}"))
			if err != nil {
				t.Error(e, mode, err)
			}
		}
	}
	for _, a := range events.Agents() {
		if _, _, _, err := read("hooks.yaml", rule("match: {agent: "+string(a)+"}")); err != nil {
			t.Error(a, err)
		}
	}
}

// rule is a file with one blocking shell hook and further lines, which begin at
// line 7.
func rule(lines ...string) string {
	return one(append([]string{
		"id: a", "event: before_tool_call", "run: {type: shell, shell: 'true'}",
		"execution: {mode: blocking}",
	}, lines...)...)
}

func TestConfigSettings(t *testing.T) {
	_, got, _, err := read("hooks.yaml", "settings: {max_parallel_hooks: 2, shutdown_grace_seconds: 0.5, outbox_retry_age_seconds: 1e1, outbox_max_retries: 0}\n")
	want := Settings{ShutdownGrace: 500 * time.Millisecond, MaxParallel: 2, OutboxRetryAge: 10 * time.Second}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(err, d)
	}
	if _, got, _, err = read("hooks.yaml", "settings:\nhooks: []\n"); err != nil || got != DefaultSettings() {
		t.Error("an empty settings key:", got, err)
	}
}

func TestConfigErrors(t *testing.T) {
	const verdict = "run: {type: verdict, action: ask}"
	for _, tc := range []struct{ name, text, want string }{
		{"empty file", "", "1:1: the file is empty"},
		{"only a comment", "# none\n", "1:1: the file is empty"},
		{"not an object", "- a\n", "1:1: must be an object, not a list"},
		{"a word", "hooks\n", "1:1: must be an object, not a string"},
		{"unknown top key", "version: 1\nhook: []\n", "2:7: hook: unknown key; known here: version, settings, hooks"},
		{"other version", "version: 2\n", "1:10: version: this core reads version 1 only"},
		{"version as text", "version: \"1\"\n", `1:10: version: must be a number in plain decimal notation, not a string "1"`},
		{"empty hooks", "version: 1\nhooks:\n", "2:7: hooks: has no entries"},
		{"hooks no list", "hooks: {a: 1}\n", "1:8: hooks: must be a list, not an object"},
		{"hook no object", "hooks: [a]\n", "1:9: hooks[0]: must be an object, not a string"},
		{"syntax", "hooks: [\n", "2:1: not readable as YAML"},
		{"second document", "version: 1\n---\nversion: 1\n", "2:1: a second document begins here"},
		{"bad UTF-8", "version: 1\nhooks: [\"\xff\"]\n", "2:10: invalid UTF-8"},
		{"control character", "version: 1\n# \x01\n", "2:3: a control character"},
		{"duplicate key", "version: 1\nversion: 1\n", "2:1: version: the key stands here twice"},
		{"key no string", "1: a\n", "1:1: a key must be a string, not a number"},
		{"merge key", "<<: {version: 1}\n", "1:1: a key must be a string"},
		{"unknown hook key", rule("retries: 1"), "7:14: hooks[0].retries: unknown key"},
		{"no id", one("event: after_turn", "run: {type: shell, shell: a}"), "3:5: hooks[0].id: is required"},
		{"blank id", one("id: ' '", "event: after_turn"), "3:9: hooks[0].id: must have 1 to 512 printable characters"},
		{"unprintable id", one(`id: "a\tb"`, "event: after_turn"), "3:9: hooks[0].id: must have 1 to 512"},
		{"long id", one("id: " + strings.Repeat("é", 513)), "3:9: hooks[0].id: must have 1 to 512"},
		{"id no string", one("id: 5"), "3:9: hooks[0].id: must be a string (in quotes if need be), not a number"},
		{"no event", one("id: a"), "3:5: hooks[0].event: is required"},
		{"unknown event", one("id: a", "event: before_tool"), "4:12: hooks[0].event: must be one of before_tool_call, "},
		{"no run", one("id: a", "event: after_turn"), "3:5: hooks[0].run: is required"},
		{
			"duplicate id", "hooks:\n- {id: a, event: after_turn, run: {type: shell, shell: x}}\n- {id: ' a', event: after_turn, run: {type: shell, shell: x}}\n",
			`3:3: hooks[1]: the id "a" is already used in line 2`,
		},
		{"no mode on a gated event", one("id: a", "event: before_tool_call", verdict), "3:5: hooks[0].execution.mode: must be written"},
		{"unknown mode", one("id: a", "event: before_tool_call", verdict, "execution: {mode: sync}"), "6:23: hooks[0].execution.mode: must be one of blocking, async, fire_and_forget"},
		{"zero timeout", one("id: a", "event: after_turn", "execution: {timeout_seconds: 0}"), "5:34: hooks[0].execution.timeout_seconds: must be more than 0"},
		{"negative timeout", one("id: a", "event: after_turn", "execution: {timeout_seconds: -1}"), "5:34: hooks[0].execution.timeout_seconds: must not be negative"},
		{"NaN", one("id: a", "event: after_turn", "execution: {timeout_seconds: .nan}"), "must be a finite number"},
		{"infinite", one("id: a", "event: after_turn", "execution: {timeout_seconds: .inf}"), "must be a finite number"},
		{"too large for a float", one("id: a", "event: after_turn", "execution: {timeout_seconds: 1e400}"), "must be a finite number"},
		{"too large", one("id: a", "event: after_turn", "execution: {timeout_seconds: 1e10}"), "must be at most 1000000000 seconds"},
		{"octal", one("id: a", "event: after_turn", "execution: {timeout_seconds: 010}"), "plain decimal notation"},
		{"hexadecimal", one("id: a", "event: after_turn", "execution: {timeout_seconds: 0x10}"), "plain decimal notation"},
		{"underscore", one("id: a", "event: after_turn", "execution: {timeout_seconds: 1_000}"), "plain decimal notation"},
		{"B9 confirmation negative", one("id: a", "event: after_turn", "execution: {confirmation: {timeout_seconds: -1}}"), "hooks[0].execution.confirmation.timeout_seconds: must not be negative"},
		{"B9 confirmation infinite", one("id: a", "event: after_turn", "execution: {confirmation: {timeout_seconds: -.inf}}"), "hooks[0].execution.confirmation.timeout_seconds: must be a finite"},
		{"B9 confirmation NaN", one("id: a", "event: after_turn", "execution: {confirmation: {timeout_seconds: .NaN}}"), "hooks[0].execution.confirmation.timeout_seconds: must be a finite"},
		{"when_nobody", one("id: a", "event: after_turn", "execution: {confirmation: {when_nobody: ask}}"), "must be one of reject, wait"},
		{"on_error", one("id: a", "event: after_turn", "execution: {on_error: allow}"), "must be one of block, warn, ignore"},
		{"detach", one("id: a", "event: after_turn", "execution: {mode: async, detach: true}"), "5:38: hooks[0].execution.detach: works with mode fire_and_forget only"},
		{"flag as text", one("id: a", "event: after_turn", "enabled: 'true'"), "5:14: hooks[0].enabled: must be true or false, not a string"},
		{"flag as number", one("id: a", "event: after_turn", "enabled: 1"), "must be true or false, not a number"},
		{"no parallel hooks", "settings: {max_parallel_hooks: 0}\n", "1:32: settings.max_parallel_hooks: must be a whole number, at least 1"},
		{"half a hook", "settings: {max_parallel_hooks: 1.5}\n", "must be a whole number"},
		{"no type", one("id: a", "event: after_turn", "run: {path: a}"), "5:10: hooks[0].run.type: is required"},
		{"unknown type", one("id: a", "event: after_turn", "run: {type: python}"), "must be one of verdict, script, command, shell"},
		{"key of another type", one("id: a", "event: after_turn", "run: {type: shell, shell: a, path: b}"), "5:40: hooks[0].run.path: unknown key"},
		{"no path", one("id: a", "event: after_turn", "run: {type: script}"), "hooks[0].run.path: is required"},
		{"empty argv", one("id: a", "event: after_turn", "run: {type: command, argv: []}"), "hooks[0].run.argv: must begin with the program"},
		{"argv of a number", one("id: a", "event: after_turn", "run: {type: command, argv: [a, 1]}"), "hooks[0].run.argv[1]: must be a string"},
		{"long argument", one("id: a", "event: after_turn", "run: {type: command, argv: [a, "+strings.Repeat("x", maxArgument+1)+"]}"), "hooks[0].run.argv[1]: is longer than 32 KiB"},
		{"zero byte", one("id: a", "event: after_turn", `run: {type: shell, shell: "a\0b"}`), "hooks[0].run.shell: contains a zero byte"},
		{"own variable", one("id: a", "event: after_turn", "run: {type: shell, shell: a, env: {CHRYS_HOOK_RESULT: /tmp/x}}"), "hooks[0].run.env.CHRYS_HOOK_RESULT: is set by Fermata"},
		{"variable of a number", one("id: a", "event: after_turn", "run: {type: shell, shell: a, env: {A: 1}}"), "hooks[0].run.env.A: must be a string"},
		{"bad name of a variable", one("id: a", "event: after_turn", "run: {type: shell, shell: a, env: {A=B: x}}"), "is no name for a variable"},
		{"F14 action", one("id: a", "event: before_tool_call", "run: {type: verdict, action: modify}", "execution: {mode: blocking}"), "hooks[0].run.action: must be one of allow, block, ask"},
		{"F14 no action", one("id: a", "event: before_tool_call", "run: {type: verdict}", "execution: {mode: blocking}"), "hooks[0].run.action: is required"},
		{"F14 not blocking", one("id: a", "event: before_tool_call", verdict, "execution: {mode: async}"), "hooks[0].run: a verdict decides only"},
		{"F14 not gated", one("id: a", "event: after_turn", verdict, "execution: {mode: blocking}"), "hooks[0].run: a verdict decides only"},
		{"match no object", rule("match: shell"), "7:12: hooks[0].match: must be an object"},
		{"match null", rule("match:"), "hooks[0].match: must be an object, not nothing"},
		{"unknown agent", rule("match: {agent: clod}"), "hooks[0].match.agent: must be one of claude, "},
		{"empty tool", rule("match: {tool_name: ''}"), "hooks[0].match.tool_name: must not be empty"},
		{"bad glob", rule("match: {cwd: '/a/[b'}"), "hooks[0].match.cwd: is no valid pattern"},
		{"condition of a number", rule("match: {args: {n: {equals: 10}}}"), "7:32: hooks[0].match.args.n.equals: must be a string"},
		{"condition no object", rule("match: {args: {n: a}}"), "hooks[0].match.args.n: must be an object"},
		{"unknown condition", rule("match: {args: {n: {matches: a}}}"), "hooks[0].match.args.n.matches: unknown key; known here: equals, contains, regex"},
		{"list in profiles", rule("match: {profiles: [[a]]}"), "hooks[0].match.profiles[0]: must be a string (in quotes if need be), not a list"},
		{"foreign tag", rule("description: !secret a"), "hooks[0].description: must be a string"},
		{"alias of itself", "hooks: &h [*h]\n", "1:12: hooks[0]: must be an object, not a list"},
		{"unknown alias", "hooks: *h\n", "1:8: not readable as YAML"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hooks, _, _, err := read("hooks.yaml", tc.text)
			var ce *ConfigError
			if !errors.As(err, &ce) {
				t.Fatalf("read %d hooks, error %v", len(hooks), err)
			}
			if !strings.HasPrefix(err.Error(), "/h/hooks.yaml:") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q\nwants %q", err, tc.want)
			}
			if ce.Line < 1 || ce.Column < 1 {
				t.Errorf("no place: %+v", ce)
			}
		})
	}
}

func TestConfigBombs(t *testing.T) {
	var aliases strings.Builder
	aliases.WriteString("hooks:\n- {id: h, event: after_turn, run: {type: shell, shell: a, env: &e {B: c}}}\n")
	for i := range 3 {
		fmt.Fprintf(&aliases, "- {id: h%d, event: after_turn, run: {type: shell, shell: a, env: *e}}\n", i)
	}
	if hooks, _, _, err := read("hooks.yaml", aliases.String()); err != nil || len(hooks) != 4 || hooks[3].Run.Env["B"] != "c" {
		t.Error("plain aliases:", err)
	}
	var many strings.Builder
	many.WriteString("hooks:\n- {id: h, event: after_turn, run: {type: shell, shell: a, env: &e {")
	for i := range 20000 {
		fmt.Fprintf(&many, "A%d: b, ", i)
	}
	many.WriteString("}}}\n")
	for i := range 200 {
		fmt.Fprintf(&many, "- {id: h%d, event: after_turn, run: {type: shell, shell: a, env: *e}}\n", i)
	}
	for name, text := range map[string]string{
		"aliases":     many.String(),
		"deep lists":  "hooks: " + strings.Repeat("[", 500_000),
		"deep blocks": strings.Repeat("- ", 500_000),
		"size":        "# " + strings.Repeat("x", maxFile) + "\n",
	} {
		if _, _, _, err := read("hooks.yaml", text); err == nil {
			t.Errorf("%s: read without error", name)
		}
	}
	if _, _, _, err := read("hooks.json", strings.Repeat("[", 500_000)); err == nil {
		t.Error("deep JSON: read without error")
	}
}

func TestConfigJSON(t *testing.T) {
	hooks, _, _, err := read("hooks.json", "\ufeff{\n\t\"hooks\": [\n\t\t{\"id\": \"\\ud83d\\ude00\", \"event\": \"before_tool_call\",\n"+
		"\t\t \"run\": {\"type\": \"verdict\", \"action\": \"block\"}, \"execution\": {\"mode\": \"blocking\", \"timeout_seconds\": 1e1}}]}")
	if err != nil || hooks[0].Ref.ID != "😀" || hooks[0].Ref.Line != 3 || hooks[0].Timeout != 10*time.Second {
		t.Errorf("%v %+v", err, hooks)
	}
	for _, tc := range []struct{ text, want string }{
		{"{\n  \"version\": 1,\n  \"é\": 1}", "3:8: é: unknown key"},
		{"{\"version\": 1,\n \"version\": 1}", "2:2: version: the key stands here twice"},
		{"{\n\"hooks\": [}", "2:11: not readable as JSON"},
		{"", "1:1: not readable as JSON"},
		{"{} {}", "1:4: not readable as JSON"},
		{"# yaml\nhooks: []", "1:1: not readable as JSON"},
		{"{\"hooks\": null}", "1:11: hooks: has no entries"},
		{"{\"settings\": {\"max_parallel_hooks\": true}}", "settings.max_parallel_hooks: must be a number"},
	} {
		if _, _, _, err := read("hooks.json", tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %s", tc.text, err, tc.want)
		}
	}
}

// A misspelt kind would be a rule that never holds, and what it guards would run.
func TestF14MisspeltKindIsAnError(t *testing.T) {
	_, _, _, err := read("hooks.yaml", rule("match: {tool_kind: shel}"))
	if err == nil || !strings.Contains(err.Error(), `"shel" is no kind of tool`) {
		t.Fatal(err)
	}
}

func TestConfigWarnings(t *testing.T) {
	_, _, warnings, err := read("hooks.yaml", rule("match: {args: {a: {regex: '('}}}")+
		"  - {id: b, event: after_turn, run: {type: shell, shell: a}, match: {tool_name: x}}\n"+
		"  - {id: c, event: after_turn, run: {type: shell, shell: a}, execution: {mode: blocking, delivery: durable}}\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.Path)
	}
	want := []string{"hooks[0].match.args.a.regex", "hooks[1].match.tool_name", "hooks[2].execution.delivery"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d, warnings)
	}
}
