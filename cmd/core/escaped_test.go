package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// A repository's author names its directories and files, and an agent its session: what
// stands in these names must not reach the terminal.
func TestB39NamesMoveNoCursor(t *testing.T) {
	const evil = "\x1b]0;owned\a\u202e"
	_, plain := project(t)
	dir := filepath.Join(filepath.Dir(plain), evil)
	if err := os.Rename(plain, dir); err != nil {
		t.Fatal(err)
	}
	printed := map[string]string{}
	run := func(args ...string) {
		r := call(t, "", args...)
		printed[strings.Join(args[:2], " ")] = r.out + r.problems
	}
	run("hooks", "trust", "--yes", "--dir", dir)
	run("hooks", "untrust", "--dir", dir)
	run("demo", "--answer", evil)
	run("hooks", "run", "--dir", filepath.Join(dir, "none"), "before_tool_call")
	broken := filepath.Join(dir, "broken")
	write(t, broken+"/.fermata/hooks.yaml", "version: 1\nhooks:\n  - "+strings.ReplaceAll(evil, "\x1b]0;owned\a", `"\e]0;owned\a`)+"\": 1\n")
	run("hooks", "check", "--dir", broken)
	printed["hooks list, broken"] = call(t, "", "hooks", "list", "--dir", broken).out
	var out bytes.Buffer
	cli{}.printSessions(&out, []events.SessionHead{{Agent: evil, Native: evil, ProjectPath: dir}}, time.Now())
	printed["sessions"] = out.String()
	for command, text := range printed {
		if strings.ContainsAny(text, "\x1b\a\u202e") || !strings.Contains(text, "owned") {
			t.Errorf("%s printed %q", command, text)
		}
	}
}
