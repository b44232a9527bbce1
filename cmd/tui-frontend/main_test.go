package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

func TestB125TUISpeaksTheLanguageThatWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"CONFIG", "STATE", "RUNTIME"} {
		t.Setenv("FERMATA_"+name+"_DIR", dir)
	}
	t.Setenv("LC_ALL", "C")
	check := func(chinese bool, args ...string) {
		t.Helper()
		err := run(t.Context(), args)
		if err == nil {
			t.Fatalf("%v: no error without a terminal", args)
		}
		if han := strings.ContainsFunc(err.Error(), func(r rune) bool { return unicode.Is(unicode.Han, r) }); han != chinese {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, wrong := range [][]string{nil, {"--nothing"}, {"--scope"}, {"more"}} {
		check(false, wrong...)
		check(true, append([]string{"--language=zh-Hans"}, wrong...)...)
	}
	check(false, "--language", "de")
	check(true, "--scope", "all", "--language", "zh-Hans")
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("language: zh-Hans\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(true)
	check(false, "-language", "en")
}

// TestSpeaksByTheNameThatWasTyped: `fermata` starts this program under its own name.
func TestSpeaksByTheNameThatWasTyped(t *testing.T) {
	program := filepath.Join(t.TempDir(), "tui-frontend")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Stderr = t.Output()
	if err := build.Run(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tui-frontend", "fermata", "/usr/bin/fermata"} {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Args = []string{name, "--nothing"}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.HasPrefix(string(out), filepath.Base(name)+": ") {
			t.Errorf("as %s it said %q, %v", name, out, err)
		}
	}
}
