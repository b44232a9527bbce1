package hooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// guarded is a file with one rule and a match.
func guarded(match string) string {
	return one("id: a", "event: before_tool_call", "execution: {mode: blocking}", "match: "+match, "run: {type: verdict, action: block}")
}

// A rule that could never hold is an error in a file of Fermata's own, or a
// warning where it may be meant; a file of iCode's loads with the warning.
func TestRulesThatNeverHold(t *testing.T) {
	const here = "hooks[0].match."
	for _, tc := range []struct {
		match   string
		isError bool
		path    string // "" when nothing is found
		message string
	}{
		{`{args: {command: {regex: "\bgit"}}}`, true, "args.command.regex", "holds a control character (U+0008); in YAML, write a regex in single quotes"},
		{`{args: {command: {contains: "a\fb"}}}`, true, "args.command.contains", "holds a control character (U+000C); in YAML, write a regex in single quotes"},
		{`{args: {command: {equals: "a\r\n"}}}`, true, "args.command.equals", "holds a control character (U+000D); in YAML, write a regex in single quotes"},
		{`{args: {"comm\and": {equals: a}}}`, true, "args.comm\and", "holds a control character (U+0007)"},
		{`{tool_name: "\bBash"}`, true, "tool_name", "holds a control character (U+0008)"},
		{`{tool_name: "Bash\n"}`, true, "tool_name", "holds a control character (U+000A)"},
		{`{cwd: "/a\tb"}`, true, "cwd", "holds a control character (U+0009)"},
		{`{profile: "a\x7f"}`, true, "profile", "holds a control character (U+007F)"},
		{`{profiles: [a, "b\N"]}`, true, "profiles[1]", "holds a control character (U+0085)"},
		{`{args: {command: {regex: '\bgit\t', contains: "a\tb\n", equals: "\n"}}}`, false, "", ""},
		{`{cwd: ~/src/**}`, true, "cwd", "~ is not expanded; write the whole path"},
		{`{cwd: src/**}`, false, "cwd", "matches no whole path; begin it with / or **/"},
		{`{cwd: '${workspace_cwd}/a'}`, false, "cwd", "matches no whole path; begin it with / or **/"},
		{`{cwd: '?src'}`, false, "cwd", "matches no whole path; begin it with / or **/"},
		{`{cwd: /src/}`, false, "cwd", "ends with /, which no working directory does"},
		{`{cwd: /}`, false, "", ""},
		{`{cwd: '**/src'}`, false, "", ""},
		{`{cwd: '{/a,/b}/**'}`, false, "", ""},
		{
			`{tool_kind: shell, args: {cmd: {contains: rm}}}`, false, "args.cmd",
			`only some agents name it "cmd"; Fermata always adds "command" to a call of kind shell, so write that`,
		},
		{
			`{tool_kind: chrys.filesystem.write, args: {content: {}, file_path: {}}}`, false, "args.file_path",
			`only some agents name it "file_path"; Fermata always adds "path" to a call of kind filesystem.write, so write that`,
		},
		{`{tool_kind: filesystem.read, args: {filename: {}, path: {}}}`, false, "", ""},
		{`{tool_kind: shell, args: {timeout: {}}}`, false, "", ""},
		{`{tool_kind: mcp, args: {file: {}}}`, false, "", ""},
		{`{args: {file: {}}}`, false, "", ""},
	} {
		t.Run(tc.match, func(t *testing.T) {
			c := readICode(t, guarded(tc.match))
			own, err := readAs(false, "hooks.yaml", []byte(guarded(tc.match)))
			if tc.isError {
				if err == nil || !strings.HasSuffix(err.Error(), here+tc.path+": "+tc.message) {
					t.Errorf("error %v, want %s: %s", err, tc.path, tc.message)
				}
			} else if err != nil || !cmp.Equal(told(own.warnings), told(c.warnings)) {
				t.Errorf("%v, %q and for iCode %q", err, told(own.warnings), told(c.warnings))
			}
			var want []string
			if tc.path != "" {
				want = []string{here + tc.path + ": " + tc.message}
			}
			if d := cmp.Diff(want, told(c.warnings)); d != "" {
				t.Error(d)
			}
		})
	}
}

func told(warnings []ConfigError) []string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.about().Error())
	}
	return out
}

// JSON has no single quotes.
func TestControlCharacterInJSON(t *testing.T) {
	text := `{"hooks": [{"id": "a", "event": "before_tool_call", "run": {"type": "verdict", "action": "block"},
		"execution": {"mode": "blocking"}, "match": {"args": {"command": {"regex": "\brm"}}}}]}`
	const want = "holds a control character (U+0008); in JSON, write each backslash of a regex twice"
	if _, err := readAs(false, "hooks.json", []byte(text)); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Error(err)
	}
	if _, err := readAs(false, "hooks.json", []byte(strings.Replace(text, `\b`, `\\b`, 1))); err != nil {
		t.Error(err)
	}
}

// What the YAML reader says alone does not lead to the missing quotes.
func TestMissingQuotesInYAML(t *testing.T) {
	const quotes = "; if a text there holds a sign such as a colon, put it in quotes"
	for text, hint := range map[string]string{
		"hooks:\n- reason: Note: text\n":   quotes,
		"hooks:\n- {reason: Note: text}\n": quotes,
		"hooks:\n- description: @me\n":     quotes,
		"hooks:\n- {regex: \"\\s\"}\n":     "; write a regex in single quotes",
		"hooks: *unknown\n":                "",
		"hooks: [\n":                       "",
	} {
		_, err := readAs(false, "hooks.yaml", []byte(text))
		if err == nil {
			t.Fatal(text)
		}
		if !strings.Contains(err.Error(), "not readable as YAML: ") || !strings.HasSuffix(err.Error(), hint) || hint == "" && strings.Contains(err.Error(), "quotes") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A verdict on stdout is as good as none where iCode's files count on it, so
// whoever tries the hook is told.
func TestVerdictOnStdoutOfAnICodeHook(t *testing.T) {
	r := newRoom(t)
	for text, noted := range map[string]bool{
		`echo '{"action":"block"}'`:                                  true,
		`echo '{"action":"block"}'; echo '{}' >"$CHRYS_HOOK_RESULT"`: false,
		`echo '{"action":"block"}'; echo done`:                       false,
		`echo '{"reason":"no"}'`:                                     false,
		`echo '{}'`:                                                  false,
		`true`:                                                       false,
	} {
		h := r.shell(text)
		h.icode = true
		got := r.run(h)
		if got.Effect != events.EffectAllow || got.Outcome != events.RunOK || got.Note.Error() != "" != noted {
			t.Errorf("%s: %+v", text, got)
		}
		h.icode = false
		if got := r.run(h); (got.Effect == events.EffectBlock) != noted || got.Note.Error() != "" {
			t.Errorf("Fermata's own: %s: %+v", text, got)
		}
	}
	watching := r.hook("run: {type: shell, shell: 'echo ''{\"action\":\"block\"}'''}", "execution: {mode: async}")
	if got := r.run(watching); got.Outcome != events.RunOK || !strings.Contains(got.Stdout, "block") || got.Note.Error() != "" {
		t.Errorf("a hook that decides nothing: %+v", got)
	}
}

// Of two hooks files in a directory one is passed over.
func TestLintOfAFileThatIsNotRead(t *testing.T) {
	g := newGround(t)
	rule := named("a")
	g.write(filepath.Join(g.home, "hooks.yaml"), rule)
	before := g.lint()
	g.write(filepath.Join(g.home, "hooks.yml"), rule)
	g.write(filepath.Join(g.home, "hooks.json"), "{}")
	want := append([]string{"warning not_read fermata/hooks.yml ", "warning not_read fermata/hooks.json "}, before...)
	if d := cmp.Diff(want, g.lint()); d != "" {
		t.Error(d)
	}
	g.ok(os.Remove(filepath.Join(g.home, "hooks.json")))
	g.ok(os.Remove(filepath.Join(g.home, "hooks.yml")))
	g.ok(os.Symlink("hooks.yaml", filepath.Join(g.home, "hooks.yml")))
	if d := cmp.Diff(before, g.lint()); d != "" {
		t.Error("the same file under two names:", d)
	}
}

// What a script lacks is found before its first run.
func TestLintOfAScriptThatCannotStart(t *testing.T) {
	for _, tc := range []struct {
		script   string
		mode     os.FileMode
		own, far string // what is found in Fermata's own file and in one of iCode's
	}{
		{"#!/bin/sh\n", 0o700, "", ""},
		{"#! /usr/bin/env sh\n", 0o700, "", ""},
		{"#!/usr/bin/env -S sh -e\n", 0o700, "", ""},
		{"#!\n", 0o700, "", ""},
		{"no first line", 0o700, "", ""},
		{"#!/bin/sh\n", 0o600, "FILE is not executable; run chmod +x on it", ""},
		{"#!/no/such/thing -e\n", 0o700, "the interpreter /no/such/thing that the first line of FILE names is not there", "the interpreter /no/such/thing that the first line of FILE names is not there"},
		{"#!/usr/bin/env not-there\n", 0o700, "the interpreter not-there that the first line of FILE names is not there", "the interpreter not-there that the first line of FILE names is not there"},
		{"#!/bin/sh\r\ntrue\r\n", 0o700, "the first line of FILE ends with a carriage return; save it with Unix line ends", "the first line of FILE ends with a carriage return; save it with Unix line ends"},
	} {
		for dir, want := range map[string]string{"fermata": tc.own, ".chrys/hooks": tc.far} {
			g := newGround(t)
			file := g.write(filepath.Join(g.root, dir, "check"), tc.script)
			g.ok(os.Chmod(file, tc.mode))
			g.write(filepath.Join(g.root, dir, "hooks.yaml"), one("id: a", "event: after_turn", "run: {type: script, path: check}"))
			got := ""
			for _, f := range Lint(g.store().Inspect(g.project), os.Environ()) {
				if f.Code != FindingCannotStart || f.Severity != SeverityError {
					t.Errorf("%+v", f)
				}
				got += strings.TrimPrefix(f.Message.Error(), "its script ")
			}
			if want = strings.ReplaceAll(want, "FILE", file); got != want {
				t.Errorf("%s of %q: %q, want %q", dir, tc.script, got, want)
			}
		}
	}
}
