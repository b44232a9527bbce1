package main

import (
	"os"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/frontends/words"
)

func wantNoEnglish(t *testing.T, name string, r ran) {
	t.Helper()
	said := r.out + r.problems
	if found := english.FindString(typed.ReplaceAllString(said, "")); found != "" || !han(said) {
		t.Errorf("%s: %q in\n%s", name, found, said)
	}
}

// What other rooms find wrong in a person's files is told in their language.
func TestB125MistakesInHooksAreToldInChinese(t *testing.T) {
	const hook = "hooks:\n  - id: a\n    event: before_tool_call\n    run: {type: shell, shell: 'true'}\n    execution: {mode: blocking}\n"
	config, dir := project(t)
	for name, rules := range map[string]string{
		"empty":           "",
		"no text":         "\xff",
		"a list":          "- a\n",
		"no version":      "version: 2\n",
		"unknown key":     "hook: []\n",
		"no choice":       "hooks: [{id: a, event: x}]\n",
		"no mode":         "hooks: [{id: a, event: before_tool_call}]\n",
		"a number":        "hooks: [{id: 5}]\n",
		"no filter":       hook,
		"matches nothing": hook + "    match: {tool_kind: nothing}\n",
		"bad regex":       hook + "    match: {args: {command: {regex: '(a'}}}\n",
		"cannot start":    "hooks: [{id: a, event: after_turn, run: {type: script, path: gone.py}}]\n",
		"durable":         strings.Replace(hook, "blocking}", "blocking, delivery: durable}", 1),
		"the same id":     strings.Replace(hook, "id: a", "id: no-clean", 1),
	} {
		write(t, config+"/hooks.yaml", rules)
		r := call(t, "", "hooks", "check", "--language", "zh-Hans", "--dir", dir)
		wantNoEnglish(t, name, r)
		if found := objects(t, call(t, "", "hooks", "check", "--language", "zh-Hans", "--json", "--dir", dir).out); han(found[0]["message"].(string)) {
			t.Errorf("%s: what programs read is not English: %v", name, found)
		}
	}
	write(t, config+"/hooks.yaml", "version: 2\n")
	wantNoEnglish(t, "list", call(t, "", "hooks", "list", "--language", "zh-Hans", "--dir", dir))
}

func TestB125LostTrustIsToldInChinese(t *testing.T) {
	_, dir := project(t)
	if r := call(t, "", "hooks", "trust", "--yes", "--dir", dir); r.exit != exitOK {
		t.Fatalf("%+v", r)
	}
	write(t, dir+"/.fermata/no-clean.sh", "exit 0\n")
	const payload = `{"tool": {"name": "Bash", "kind": "shell", "args": {"command": "ls"}}, "cwd": "DIR"}`
	for _, args := range [][]string{{"list"}, {"check"}, {"run", "before_tool_call"}} {
		in := ""
		if args[0] == "run" {
			in = strings.Replace(payload, "DIR", dir, 1)
		} else {
			args = append(args, "--dir", dir)
		}
		wantNoEnglish(t, args[0], call(t, in, append([]string{"hooks", "--language", "zh-Hans"}, args...)...))
	}
	if err := os.Remove(dir + "/.fermata/no-clean.sh"); err != nil {
		t.Fatal(err)
	}
	wantNoEnglish(t, "gone", call(t, "", "hooks", "list", "--language", "zh-Hans", "--dir", dir))
}

func TestB125MistakesInTheConfigurationAreToldInChinese(t *testing.T) {
	config, _ := project(t)
	for _, text := range []string{
		"mode: fast\n", "mode: 1\n", "colour: red\n", "mode: power\nmode: power\n", "confirmation: 5\n", "- a\n",
		"confirmation: {timeout_seconds: -1}\n", "hooks: {icode_paths: 1}\n", "mode: [power]\n", "mode: power\n---\nmode: power\n",
	} {
		write(t, config+"/config.yaml", text)
		wantNoEnglish(t, text, call(t, "", "hooks", "list", "--language", "zh-Hans"))
	}
	write(t, config+"/config.yaml", "")
	wantNoEnglish(t, "a flag", call(t, "", "serve", "--language", "zh-Hans", "--mode", "fast"))
}

// A core speaks English over its socket; what it found wrong is found here again.
func TestB125BrokenRulesOfACoreAreToldInChinese(t *testing.T) {
	config, _ := project(t)
	write(t, config+"/hooks.yaml", "version: 2\n")
	c := cli{name: "fermata", w: words.In(words.Chinese)}
	place := config + "/hooks.yaml:1:10: "
	if got := c.resaid(place + "version: this core reads version 1 only"); got != place+"version：此核心只能读取版本 1" {
		t.Error(got)
	}
	if got := c.resaid("what only that core knows"); got != "what only that core knows" {
		t.Error(got)
	}
}
