package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

const (
	globalRules = `version: 1
hooks:
  - id: ask-before-write
    event: before_tool_call
    match: {tool_kind: filesystem.write}
    execution: {mode: blocking}
    run: {type: verdict, action: ask, reason: This writes a file.}
`
	projectRules = `version: 1
hooks:
  - id: no-clean
    event: before_tool_call
    match: {tool_kind: shell}
    execution: {mode: blocking}
    run: {type: script, path: no-clean.sh}
`
	noClean = "#!/bin/sh\ngrep -q clean && echo '{\"action\": \"block\", \"reason\": \"Nothing is cleaned here.\"}' > \"$FERMATA_HOOK_RESULT\"\nexit 0\n"
)

// project makes a home with global rules, and a project with rules of its own.
func project(t *testing.T) (config, dir string) {
	t.Helper()
	h := home(t)
	config, dir = filepath.Join(h, "config"), filepath.Join(h, "src")
	write(t, config+"/hooks.yaml", globalRules)
	write(t, dir+"/.fermata/hooks.yaml", projectRules)
	write(t, dir+"/.fermata/no-clean.sh", noClean)
	return config, dir
}

// objects reads one JSON object a line.
func objects(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, o)
	}
	return all
}

func TestHooksListTellsWhatHoldsAndWhere(t *testing.T) {
	config, dir := project(t)
	r := call(t, "", "hooks", "list", "--dir", dir)
	for _, want := range []string{
		".fermata/hooks.yaml  not trusted, not loaded", ":3  no-clean  before_tool_call  blocking  runs no-clean.sh",
		"~/config/hooks.yaml  always on", ":3  ask-before-write  before_tool_call  blocking  asks",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	all := objects(t, call(t, "", "hooks", "list", "--dir", dir, "--json").out)
	if len(all) != 2 {
		t.Fatalf("%v", all)
	}
	for key, want := range map[string]any{
		"scope": "project", "id": "no-clean", "event": "before_tool_call", "mode": "blocking", "run": "script", "does": "no-clean.sh",
		"file": dir + "/.fermata/hooks.yaml", "line": 3.0, "trust": "none", "enabled": true,
	} {
		if all[0][key] != want {
			t.Errorf("%s is %v, want %v", key, all[0][key], want)
		}
	}
	write(t, config+"/hooks.yaml", "version: 1\nhooks:\n  - id: x\n    colour: red\n")
	if r := call(t, "", "hooks", "list", "--dir", dir); r.exit != 0 || !strings.Contains(r.out, "The file cannot be used: ") || !strings.Contains(r.out, "hooks.yaml:4:13: hooks[0].colour") {
		t.Errorf("a broken file: %+v", r)
	}
	if r := call(t, "", "hooks", "list", "--dir", t.TempDir(), "--json"); len(objects(t, r.out)) != 1 || !strings.Contains(r.out, "colour") {
		t.Errorf("a broken file as JSON: %+v", r)
	}
	if err := os.Remove(config + "/hooks.yaml"); err != nil {
		t.Fatal(err)
	}
	if r := call(t, "", "hooks", "list", "--dir", t.TempDir()); !strings.Contains(r.out, "every call goes on") {
		t.Errorf("no file: %+v", r)
	}
}

func TestHooksCheckExits(t *testing.T) {
	config, dir := project(t)
	elsewhere := t.TempDir()
	for name, step := range map[string]struct {
		rules  string
		args   []string
		exit   int
		code   string
		silent bool
	}{
		"clean":                  {globalRules, []string{"--dir", elsewhere, "--strict"}, exitOK, "", true},
		"a warning":              {strings.Replace(globalRules, "    match: {tool_kind: filesystem.write}\n", "", 1), []string{"--dir", elsewhere}, exitOK, "no_filter", false},
		"a warning, as an error": {strings.Replace(globalRules, "    match: {tool_kind: filesystem.write}\n", "", 1), []string{"--dir", elsewhere, "--strict"}, exitFault, "no_filter", false},
		"a mistake":              {strings.Replace(globalRules, "blocking", "blokcing", 1), []string{"--dir", elsewhere}, exitFault, "config_invalid", false},
		"not trusted":            {globalRules, []string{"--dir", dir}, exitOK, "not_trusted", false},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, config+"/hooks.yaml", step.rules)
			for _, lang := range []string{"en", "zh-Hans"} {
				r := call(t, "", append([]string{"hooks", "check", "--language", lang}, step.args...)...)
				if r.exit != step.exit || r.problems != "" || !strings.Contains(r.out, step.code) {
					t.Errorf("%+v", r)
				}
			}
			found := objects(t, call(t, "", append([]string{"hooks", "check", "--json"}, step.args...)...).out)
			if step.silent != (len(found) == 0) || !step.silent && found[0]["code"] != step.code {
				t.Errorf("%v", found)
			}
		})
	}
}

func TestF14HooksInitWritesOnceAndNeverOver(t *testing.T) {
	h := home(t)
	file := h + "/config/hooks.yaml"
	if r := call(t, "", "hooks", "init", "--pack", "git,files"); r.exit != 0 || !strings.Contains(r.out, "~/config/hooks.yaml (git, files)") {
		t.Fatalf("%+v", r)
	}
	begun, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if r := call(t, "", "hooks", "check", "--strict", "--dir", t.TempDir()); r.exit != 0 {
		t.Errorf("what init wrote is not clean: %+v", r)
	}
	for _, other := range []string{"hooks.yaml", "hooks.yml", "hooks.json"} {
		if err := os.Rename(file, h+"/config/"+other); err != nil {
			t.Fatal(err)
		}
		file = h + "/config/" + other
		if r := call(t, "", "hooks", "init"); r.exit != exitFault || !strings.Contains(r.problems, other+" is there already") {
			t.Errorf("%+v", r)
		}
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, begun) {
			t.Errorf("%s was touched", other)
		}
	}
	dir := t.TempDir()
	if r := call(t, "", "hooks", "init", "--dir", dir); r.exit != 0 || !strings.Contains(r.out, "hooks trust") {
		t.Errorf("%+v", r)
	}
	if r := call(t, "", "hooks", "list", "--dir", dir); !strings.Contains(r.out, ".fermata/hooks.yaml  not trusted") {
		t.Errorf("%+v", r)
	}
}

func TestHooksTrustShowsAsksAndBinds(t *testing.T) {
	_, dir := project(t)
	trust := func() string {
		t.Helper()
		return objects(t, call(t, "", "hooks", "list", "--dir", dir, "--json").out)[0]["trust"].(string)
	}
	if r := call(t, "y\n", "hooks", "trust", "--dir", dir); r.exit != exitFault || !strings.Contains(r.problems, "--yes") || trust() != "none" {
		t.Errorf("without a terminal: %+v", r)
	}
	r := call(t, "", "hooks", "trust", "--dir", dir, "--yes")
	for _, want := range []string{".fermata/hooks.yaml", ".fermata/no-clean.sh", "no-clean  before_tool_call  blocking", "Trusted, as long as"} {
		if r.exit != 0 || !strings.Contains(r.out, want) {
			t.Errorf("%q is not in %+v", want, r)
		}
	}
	if trust() != "trusted" {
		t.Errorf("it is %s", trust())
	}
	if r := call(t, "", "hooks", "trust", "--dir", dir); r.exit != 0 || !strings.Contains(r.out, "trusted already") {
		t.Errorf("again: %+v", r)
	}
	write(t, dir+"/.fermata/no-clean.sh", noClean+"# changed\n")
	if r := call(t, "", "hooks", "check", "--dir", dir); r.exit != exitFault || !strings.Contains(r.out, "changed_since_trust") {
		t.Errorf("a changed script: %+v", r)
	}
	if r := call(t, "", "hooks", "trust", "--dir", dir); r.exit != exitFault || !strings.Contains(r.out, ".fermata/no-clean.sh has changed") {
		t.Errorf("what changed is not shown: %+v", r)
	}
	write(t, dir+"/.fermata/hooks.yaml", strings.Replace(projectRules, "{type: script, path: no-clean.sh}", "{type: command, argv: [.fermata/no-clean.sh]}", 1))
	if r := call(t, "", "hooks", "trust", "--dir", dir); !strings.Contains(r.out, "(not_pinned)") {
		t.Errorf("a program that trust does not cover is not named: %+v", r)
	}
	if r := call(t, "", "hooks", "untrust", "--dir", dir); r.exit != 0 || trust() != "none" {
		t.Errorf("%s after %+v", trust(), r)
	}
	if r := call(t, "", "hooks", "trust", "--dir", t.TempDir(), "--yes"); r.exit != exitFault {
		t.Errorf("nothing to trust: %+v", r)
	}
	write(t, dir+"/.fermata/hooks.yaml", "version: 2\n")
	if r := call(t, "", "hooks", "trust", "--dir", dir, "--yes"); r.exit != exitFault || trust() != "none" {
		t.Errorf("a broken file: %+v", r)
	}
}

func TestHooksTrustOnATerminal(t *testing.T) {
	for said, want := range map[string]struct {
		exit  int
		trust string
	}{"y\n": {0, "trusted"}, "YES\n": {0, "trusted"}, "\n": {exitRefused, "none"}, "n\n": {exitRefused, "none"}, "yolo\n": {exitRefused, "none"}} {
		_, dir := project(t)
		terminal, screen, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := terminal.WriteString(said); err != nil {
			t.Fatal(err)
		}
		var out, problems bytes.Buffer
		exit := run(t.Context(), "fermata", []string{"hooks", "trust", "--dir", dir}, screen, &out, &problems)
		_, _ = terminal.Close(), screen.Close()
		list := call(t, "", "hooks", "list", "--dir", dir, "--json")
		if exit != want.exit || !strings.Contains(out.String(), "[y/N]") || objects(t, list.out)[0]["trust"] != want.trust {
			t.Errorf("%q: exit %d, %s%s%s", said, exit, out.String(), problems.String(), list.out)
		}
	}
}

// interruption is a screen on which something happens when a text comes.
type interruption struct {
	bytes.Buffer
	at string
	do func()
}

// Write implements io.Writer.
func (i *interruption) Write(b []byte) (int, error) {
	n, err := i.Buffer.Write(b)
	if i.do != nil && strings.Contains(i.String(), i.at) {
		i.do()
		i.do = nil
	}
	return n, err
}

func TestHooksTrustIsAboutTheBytesThatWereShown(t *testing.T) {
	_, dir := project(t)
	terminal, screen, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	defer terminal.Close()
	out := &interruption{at: "[y/N]", do: func() {
		write(t, dir+"/.fermata/no-clean.sh", noClean+"# changed\n")
		if _, err := terminal.WriteString("y\n"); err != nil {
			t.Error(err)
		}
	}}
	var problems bytes.Buffer
	if exit := run(t.Context(), "fermata", []string{"hooks", "trust", "--dir", dir}, screen, out, &problems); exit != exitFault || !strings.Contains(problems.String(), "look again") {
		t.Errorf("exit %d: %s%s", exit, out.String(), problems.String())
	}
	if list := call(t, "", "hooks", "list", "--dir", dir, "--json"); objects(t, list.out)[0]["trust"] != "none" {
		t.Errorf("trusted all the same: %s", list.out)
	}
}
