package hooks

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// readICode reads a text as a file where iCode looks.
func readICode(t *testing.T, text string) contents {
	t.Helper()
	c, err := readAs(true, "hooks.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// findings lists what is warned of.
func findings(warnings []ConfigError) string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.Path+" "+string(w.Finding))
	}
	return strings.Join(out, ", ")
}

func TestICodeDefaults(t *testing.T) {
	const run = "run: {type: shell, shell: a}"
	for _, tc := range []struct {
		name     string
		lines    []string
		mode     Mode
		onError  OnError
		warnings string
	}{
		{"no mode on a gated event", []string{"event: before_tool_call"}, FireAndForget, OnErrorWarn, "hooks[0].execution.mode never_blocks"},
		{"no mode on a prompt", []string{"event: user_prompt_submit", "execution: {timeout_seconds: 5}"}, FireAndForget, OnErrorWarn, "hooks[0].execution.mode never_blocks"},
		{"no mode on an observed event", []string{"event: after_turn"}, FireAndForget, OnErrorWarn, ""},
		{"blocking fails open", []string{"event: before_tool_call", "execution: {mode: blocking}"}, Blocking, OnErrorWarn, ""},
		{"blocking and on_error", []string{"event: before_tool_call", "execution: {mode: blocking, on_error: block}"}, Blocking, OnErrorBlock, ""},
		{"async", []string{"event: before_tool_call", "execution: {mode: async}"}, Async, OnErrorWarn, ""},
		{"blocking and durable", []string{"event: after_turn", "execution: {mode: blocking, delivery: durable}"}, Blocking, OnErrorWarn, "hooks[0].execution.delivery blocking_durable"},
		{
			"a regex that is none blocks all the same",
			[]string{"event: before_tool_call", "execution: {mode: blocking}", "match: {args: {command: {regex: '('}}}"},
			Blocking, OnErrorBlock, "hooks[0].match.args.command.regex bad_regex",
		},
		{
			"unless it is written down",
			[]string{"event: before_tool_call", "execution: {mode: blocking, on_error: warn}", "match: {args: {command: {regex: '('}}}"},
			Blocking, OnErrorWarn, "hooks[0].match.args.command.regex bad_regex",
		},
		{"an old prefix", []string{"event: before_tool_call", "execution: {mode: blocking}", "match: {tool_kind: chrys.shell}"}, Blocking, OnErrorWarn, ""},
		{
			"a kind that no tool has",
			[]string{"event: before_tool_call", "execution: {mode: blocking}", "match: {tool_kind: trash}"},
			Blocking, OnErrorWarn, "hooks[0].match.tool_kind matches_nothing",
		},
		{"a tool where there is none", []string{"event: before_turn", "match: {tool_name: x}"}, FireAndForget, OnErrorWarn, "hooks[0].match.tool_name matches_nothing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := readICode(t, one(append([]string{"id: a", run}, tc.lines...)...))
			if h := c.hooks[0]; h.Mode != tc.mode || h.OnError != tc.onError {
				t.Errorf("mode %s, on_error %s", h.Mode, h.OnError)
			}
			if got := findings(c.warnings); got != tc.warnings {
				t.Errorf("warnings %q, want %q", got, tc.warnings)
			}
			for _, w := range c.warnings {
				if w.Hook != "a" || w.Line < 3 {
					t.Errorf("%+v", w)
				}
			}
		})
	}
}

// What another reader of the same file would take for something else is an
// error, and never another rule.
func TestICodeTraps(t *testing.T) {
	seconds := func(s string) string {
		return one("id: a", "event: after_turn", "run: {type: shell, shell: a}", "execution: {timeout_seconds: "+s+"}")
	}
	for _, tc := range []struct{ name, text, want string }{
		{"duplicate key", "hooks: []\nhooks: []\n", "the key stands here twice"},
		{"duplicate key in a hook", one("id: a", "event: after_turn", "id: b"), "the key stands here twice"},
		{"empty hooks", "settings: null\nhooks:\n", "has no entries"},
		{"enabled as text", one("id: a", "event: after_turn", "run: {type: shell, shell: a}", "enabled: 'yes'"), "must be true or false"},
		{"sixty to the minute", seconds("1:30"), "plain decimal notation"},
		{"octal", seconds("0o10"), "plain decimal notation"},
		{"old octal", seconds("010"), "plain decimal notation"},
		{"a number in quotes", seconds("'1e3'"), "plain decimal notation"},
		{"a number for a text", one("id: 1e3", "event: after_turn", "run: {type: shell, shell: a}"), "must be a string"},
		{"a date for a text", one("id: a", "event: after_turn", "run: {type: shell, shell: a}", "description: 2024-01-01"), "must be a string"},
		{"unknown key", "hook: []\n", "unknown key"},
		{"duplicate id", "hooks:\n- {id: a, event: after_turn, run: {type: shell, shell: x}}\n- {id: a, event: after_turn, run: {type: shell, shell: x}}\n", "already used"},
		{"detached and blocking", one("id: a", "event: after_turn", "run: {type: shell, shell: a}", "execution: {mode: blocking, detach: true}"), "fire_and_forget only"},
	} {
		for _, icode := range []bool{true, false} {
			if _, err := readAs(icode, "hooks.yaml", []byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
			}
		}
	}
	if _, err := readAs(true, "hooks.json", []byte(`{"hooks": [], "hooks": []}`)); err == nil {
		t.Error("a duplicate key in JSON was read")
	}
	for word, want := range map[string]bool{"yes": true, "on": true, "Yes": true, "no": false, "off": false, "true": true} {
		c := readICode(t, one("id: a", "event: after_turn", "run: {type: shell, shell: a}", "enabled: "+word))
		if c.hooks[0].Enabled != want {
			t.Errorf("enabled: %s is %v", word, c.hooks[0].Enabled)
		}
	}
	if c := readICode(t, "settings: null\nhooks: []\n"); c.settings != (given{}) {
		t.Errorf("settings: null gives %+v", c.settings)
	}
	// A tab behind a colon is read; PyYAML refuses it, so no file relies on it.
	if c := readICode(t, "version:\t1\n"); len(c.hooks) != 0 {
		t.Error(c)
	}
	// The name tells JSON from YAML, never the content.
	if _, err := readAs(true, "hooks.json", []byte("hooks: []\n")); err == nil {
		t.Error("YAML was read as JSON")
	}
	if _, err := readAs(true, "hooks.yml", []byte(`{"hooks": []}`)); err != nil {
		t.Error("JSON is YAML too:", err)
	}
}

func TestICodeConditionsOnLists(t *testing.T) {
	for condition, warned := range map[string]bool{
		`equals: "['a', 'b']"`:                   true,
		`equals: "{'k': 1}"`:                     true,
		`contains: "'a', 'b'"`:                   true,
		`equals: "[True, None]"`:                 true,
		`regex: "\\['a'"`:                        true,
		`regex: "'path': '/etc"`:                 true,
		`equals: '["a","b"]'`:                    false,
		`equals: True`:                           false,
		`regex: '["''](rm|mv)["'']'`:             false,
		`regex: '^(?P<q>[''"]).*(?P=q)$'`:        false,
		`regex: '\brm\b.*-r'`:                    false,
		`contains: "it's"`:                       false,
		`equals: "[1,2]"`:                        false,
		`contains: "awk '{print}' | tr -d '[]'"`: false,
	} {
		text := one("id: a", "event: before_tool_call", "run: {type: shell, shell: a}", "execution: {mode: blocking}", "match: {args: {x: {"+condition+"}}}")
		if strings.Contains(condition, "equals: True") {
			text = strings.Replace(text, "equals: True", "equals: 'True'", 1)
		}
		c := readICode(t, text)
		if got := findings(c.warnings) != ""; got != warned {
			t.Errorf("%s: %s", condition, findings(c.warnings))
		}
		own, err := readAs(false, "hooks.yaml", []byte(text))
		if err != nil || len(own.warnings) != 0 {
			t.Errorf("a file of Fermata's own: %s: %v %v", condition, err, own.warnings)
		}
	}
}

// In iCode's files the home is iCode's.
func TestICodeHome(t *testing.T) {
	g := newGround(t)
	for _, dir := range []string{g.home, g.o.ICodeGlobal, g.at(".fermata"), g.at(".chrys/hooks")} {
		g.write(filepath.Join(dir, "hooks.yaml"), named("a"))
	}
	g.trust()
	var homes []string
	for _, h := range g.set().Hooks {
		homes = append(homes, h.home)
	}
	if d := cmp.Diff([]string{g.home, g.chrys, g.home, g.chrys}, homes); d != "" {
		t.Error(d)
	}
}

func TestICodePathsOffAreNotRead(t *testing.T) {
	g := newGround(t)
	g.write(filepath.Join(g.o.ICodeGlobal, "hooks.yaml"), "hooks:\n")
	g.write(".chrys/hooks/hooks.yaml", named("project"))
	g.trustBesideABrokenFile()
	g.o.ICode = false
	if set := g.set(); ids(set) != "" || len(set.Notices) != 0 {
		t.Error(ids(set), set.Notices)
	}
	g.o.ICode, g.o.ICodeGlobal = true, ""
	if set := g.set(); ids(set) != "project" || set.Hooks[0].home != g.home {
		t.Error(ids(set))
	}
	g.write(".chrys/hooks/hooks.yaml", "hooks:\n")
	g.refused(".chrys/hooks/hooks.yaml changed")
	// Trusting another file of the project while they are off forgets nothing.
	g.o.ICode = false
	g.write(".fermata/hooks.yaml", named("own"))
	g.trust()
	g.o.ICode = true
	g.refused(".chrys/hooks/hooks.yaml changed")
}

// trustBesideABrokenFile says yes while the global file is broken, which is none of its business.
func (g *ground) trustBesideABrokenFile() {
	t := g.t
	t.Helper()
	r := g.trust()
	if len(r.Files) != 2 || r.Files[0].Trust != TrustTrusted || r.Files[0].Err != nil {
		t.Fatalf("%+v", r)
	}
	var bad *ConfigError
	if !errors.As(r.Files[1].Err, &bad) || r.Files[1].Scope != events.ScopeGlobal || !r.Files[1].ICode {
		t.Fatalf("%+v", r.Files[1])
	}
}
