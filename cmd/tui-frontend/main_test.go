package main

import (
	"os"
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
