package hooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// lint says what is found in the files of a ground, a line each.
func (g *ground) lint() []string {
	var out []string
	for _, f := range Lint(g.store().Inspect(g.project), []string{"PATH=/usr/bin:/bin"}) {
		if !strings.HasPrefix(f.File, g.root) || f.Message.Error() == "" || f.Line < 0 {
			g.t.Errorf("%+v", f)
		}
		file, _ := filepath.Rel(g.root, f.File)
		out = append(out, strings.Join([]string{string(f.Severity), string(f.Code), file, f.Hook}, " "))
	}
	return out
}

func TestLint(t *testing.T) {
	const event, blocking, filter = "event: before_tool_call", "execution: {mode: blocking}", "match: {tool_kind: shell}"
	for _, tc := range []struct {
		name  string
		lines []string
		icode []string // what is found where iCode looks
		own   []string // and in Fermata's own place
	}{
		{"good", []string{event, "execution: {mode: blocking, on_error: block}", filter, "run: {type: shell, shell: 'true'}"}, nil, nil},
		{"fails open by default", []string{event, blocking, filter, "run: {type: shell, shell: 'true'}"}, []string{"warning fails_open"}, nil},
		{
			"fails open by wish",
			[]string{event, "execution: {mode: blocking, on_error: ignore}", filter, "run: {type: shell, shell: 'true'}"},
			[]string{"warning fails_open"},
			[]string{"warning fails_open"},
		},
		{"a prompt's hook fails open", []string{"event: user_prompt_submit", blocking, "run: {type: shell, shell: 'true'}"}, []string{"warning fails_open"}, nil},
		{"a rule cannot fail", []string{event, blocking, filter, "run: {type: verdict, action: ask}"}, nil, nil},
		{"a rule with a regex can", []string{event, blocking, "match: {args: {a: {regex: a}}}", "run: {type: verdict, action: ask}"}, []string{"warning fails_open"}, nil},
		{"what only watches cannot fail open", []string{event, "execution: {mode: async}", filter, "run: {type: shell, shell: 'true'}"}, nil, nil},
		{"no mode", []string{event, filter, "run: {type: shell, shell: 'true'}"}, []string{"warning never_blocks"}, []string{"error config_invalid"}},
		{"no filter", []string{event, blocking, "run: {type: verdict, action: ask}"}, []string{"warning no_filter"}, []string{"warning no_filter"}},
		{
			"no program",
			[]string{event, "execution: {mode: blocking, on_error: block}", filter, "run: {type: command, argv: [not-there]}"},
			[]string{"error cannot_start"},
			[]string{"error cannot_start"},
		},
		{"no script", []string{"event: after_turn", "run: {type: script, path: x.py}"}, []string{"error cannot_start"}, []string{"error cannot_start"}},
		{"no runtime", []string{"event: after_turn", "run: {type: script, path: there.ps1}"}, []string{"error cannot_start"}, []string{"error cannot_start"}},
		{"no directory", []string{"event: after_turn", "run: {type: shell, shell: 'true', cwd: '${workspace_cwd}/x'}"}, []string{"error cannot_start"}, []string{"error cannot_start"}},
		{"a directory", []string{"event: after_turn", "run: {type: shell, shell: 'true', cwd: '${workspace_cwd}/.fermata'}"}, nil, nil},
		{"off", []string{event, blocking, "enabled: false", "run: {type: command, argv: [not-there]}"}, nil, nil},
		{
			"bad regex",
			[]string{event, blocking, "match: {args: {a: {regex: '('}}}", "run: {type: verdict, action: ask}"},
			[]string{"error bad_regex"},
			[]string{"error bad_regex"},
		},
		{"broken", []string{event, "retries: 1"}, []string{"error config_invalid"}, []string{"error config_invalid"}},
		{
			"matches nothing",
			[]string{"event: before_turn", filter, "run: {type: shell, shell: 'true'}"},
			[]string{"warning matches_nothing"},
			[]string{"warning matches_nothing"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for dir, want := range map[string][]string{".chrys/hooks": tc.icode, "fermata": tc.own} {
				g := newGround(t)
				file := g.write(filepath.Join(g.root, dir, "hooks.yaml"), one(append([]string{"id: a"}, tc.lines...)...))
				g.write(filepath.Join(filepath.Dir(file), "there.ps1"), "")
				var got []string
				for _, line := range g.lint() {
					words := strings.Fields(line)
					if got = append(got, words[0]+" "+words[1]); words[len(words)-1] != "a" && tc.name != "broken" {
						t.Errorf("it does not name the hook: %s", line)
					}
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("%s: %s", dir, d)
				}
			}
		})
	}
}

func TestLintOfAProject(t *testing.T) {
	g := newGround(t)
	g.write(filepath.Join(g.home, "hooks.yaml"), named("same"))
	g.write(".fermata/hooks.yaml", one("id: same", "event: after_turn", "run: {type: script, path: check.sh}")+
		"  - {id: command, event: after_turn, run: {type: command, argv: [./run.sh]}}\n"+
		"  - {id: absolute, event: after_turn, run: {type: script, path: "+g.at("tool.sh")+"}}\n"+
		"  - {id: elsewhere, event: after_turn, run: {type: command, argv: [/bin/true]}}\n"+
		"  - {id: from_path, event: after_turn, run: {type: command, argv: ['true']}}\n")
	for _, script := range []string{".fermata/check.sh", "run.sh", "tool.sh"} {
		g.ok(os.Chmod(g.write(script, "#!/bin/sh\n"), 0o700))
	}
	const rules, global = "p/.fermata/hooks.yaml", "fermata/hooks.yaml"
	both := []string{"warning not_pinned " + rules + " command", "warning not_pinned " + rules + " absolute", "warning same_id " + global + " same", "warning no_filter " + global + " same"}
	if d := cmp.Diff(append([]string{"warning not_trusted " + rules + " "}, both...), g.lint(), anyOrder); d != "" {
		t.Error("never trusted:", d)
	}
	g.trust()
	if d := cmp.Diff(both, g.lint(), anyOrder); d != "" {
		t.Error("trusted:", d)
	}
	g.write(".fermata/check.sh", "exit 1\n")
	if d := cmp.Diff(append([]string{"error changed_since_trust " + rules + " "}, both...), g.lint(), anyOrder); d != "" {
		t.Error("changed:", d)
	}
	g.ok(os.RemoveAll(g.at(".fermata")))
	want := []string{"error changed_since_trust " + rules + " ", "error changed_since_trust " + rules + " ", "warning no_filter " + global + " same"}
	if d := cmp.Diff(want, g.lint(), anyOrder); d != "" {
		t.Error("gone:", d)
	}
}

var anyOrder = cmp.Transformer("sorted", func(lines []string) map[string]int {
	count := map[string]int{}
	for _, l := range lines {
		count[l]++
	}
	return count
})

func TestInspectTellsWhatAPersonWouldTrust(t *testing.T) {
	g := newGround(t)
	text := scripted("own", "check.sh")
	file := g.write(".fermata/hooks.yaml", text)
	g.write(".chrys/hooks/hooks.yml", "hooks:\n")
	g.write(filepath.Join(g.home, "hooks.yaml"), scripted("global", "global.sh"))
	r := g.store().Inspect(g.project)
	if r.Dir != g.project || len(r.Files) != 3 {
		t.Fatalf("%+v", r)
	}
	own, icode, global := r.Files[0], r.Files[1], r.Files[2]
	if own.Path != file || own.Dir != filepath.Dir(file) || own.ICode || own.Trust != TrustNone || own.Err != nil || own.Digest != events.DigestOf([]byte(text)) || own.Hooks[0].Ref.ID != "own" {
		t.Errorf("%+v", own)
	}
	if d := cmp.Diff([]ScriptReport{{Path: g.at(".fermata/check.sh")}}, own.Scripts); d != "" {
		t.Error("a script that is not there:", d)
	}
	if !icode.ICode || icode.Trust != TrustNone || icode.Err == nil || len(icode.Hooks) != 0 {
		t.Errorf("%+v", icode)
	}
	if global.Trust != TrustAlways || global.Scope != events.ScopeGlobal || len(global.Scripts) != 0 || global.Hooks[0].Ref.Index != 1 {
		t.Errorf("%+v", global)
	}
	script := g.write(".fermata/check.sh", "exit 0\n")
	digest, err := digestRegular(script)
	if r := g.store().Inspect(g.project); err != nil || r.Files[0].Scripts[0].Digest != digest {
		t.Error(err, r.Files[0].Scripts)
	}
	if r := g.store().Inspect("/nowhere"); len(r.Files) != 1 {
		t.Errorf("%+v", r)
	}
}
