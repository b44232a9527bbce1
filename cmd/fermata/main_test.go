package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDispatch(t *testing.T) {
	tests := []struct {
		words   []string
		program string
		args    []string
	}{
		{nil, "tui-frontend", nil},
		{[]string{"tui"}, "tui-frontend", []string{}},
		{[]string{"tui", "--scope", "all"}, "tui-frontend", []string{"--scope", "all"}},
		{[]string{"--plain", "--session", "s1"}, "tui-frontend", []string{"--plain", "--session", "s1"}},
		{[]string{"--project=.", "serve"}, "tui-frontend", []string{"--project=.", "serve"}},
		{[]string{"--plainly"}, "core", []string{"--plainly"}},
		{[]string{"--language", "zh-Hans"}, "tui-frontend", []string{"--language", "zh-Hans"}},
		{[]string{"--language=en", "--plain"}, "tui-frontend", []string{"--language=en", "--plain"}},
		{[]string{"--language", "en", "status"}, "core", []string{"--language", "en", "status"}},
		{[]string{"--language", "en", "--help"}, "core", []string{"--language", "en", "--help"}},
		{[]string{"acp", "--", "gemini", "acp"}, "acp-frontend", []string{"--", "gemini", "acp"}},
		{[]string{"status", "--json"}, "core", []string{"status", "--json"}},
		{[]string{"--help"}, "core", []string{"--help"}},
		{[]string{"serve", "tui"}, "core", []string{"serve", "tui"}},
		{[]string{""}, "core", []string{""}},
		{[]string{"TUI"}, "core", []string{"TUI"}},
	}
	for _, test := range tests {
		program, args := dispatch(test.words)
		if d := cmp.Diff(test.args, args); program != test.program || d != "" {
			t.Errorf("fermata %q runs %s, want %s (-want +got):\n%s", test.words, program, test.program, d)
		}
	}
}

// TestPrograms runs the built program among stand-ins that print their own
// place, name, arguments and process id.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	beside, inPath, linked := filepath.Join(dir, "bin"), filepath.Join(dir, "path"), filepath.Join(dir, "linked")
	for _, d := range []string{beside, inPath, linked} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fermata := filepath.Join(beside, "fermata")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", fermata, ".")
	build.Stderr = t.Output()
	if err := build.Run(); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho \"$0\" \"$@\" $$\ncat\nexit 7\n"
	for path, content := range map[string]string{
		filepath.Join(beside, "core"):         script,
		filepath.Join(inPath, "core"):         script, // must lose against the one beside
		filepath.Join(inPath, "acp-frontend"): script,
		filepath.Join(beside, "tui-frontend"): "not a program",
	} {
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(fermata, filepath.Join(linked, "fermata")); err != nil {
		t.Fatal(err)
	}

	run := func(program, path string, words ...string) (status int, pid int, stdout, stderr string) {
		cmd := exec.CommandContext(t.Context(), program, words...)
		cmd.Env = []string{"PATH=" + path}
		cmd.Stdin = strings.NewReader("stdin")
		cmd.WaitDelay = time.Minute
		var out, complaints bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if exit := (*exec.ExitError)(nil); !errors.As(cmd.Run(), &exit) {
			t.Fatalf("fermata %q did not end with a status", words)
		}
		return cmd.ProcessState.ExitCode(), cmd.Process.Pid, out.String(), complaints.String()
	}
	system := inPath + ":/usr/bin:/bin"

	t.Run("beside before PATH, as the same process", func(t *testing.T) {
		status, pid, stdout, _ := run(fermata, system, "status", "two words")
		want := filepath.Join(beside, "core") + " status two words " + strconv.Itoa(pid) + "\nstdin"
		if status != 7 || stdout != want {
			t.Errorf("status %d, stdout %q, want 7, %q", status, stdout, want)
		}
	})
	t.Run("beside what the link points to", func(t *testing.T) {
		_, _, stdout, _ := run(filepath.Join(linked, "fermata"), system, "status")
		if !strings.HasPrefix(stdout, filepath.Join(beside, "core")+" ") {
			t.Errorf("ran %q", stdout)
		}
	})
	t.Run("in PATH when not beside", func(t *testing.T) {
		status, _, stdout, _ := run(fermata, system, "acp", "--", "agent")
		if status != 7 || !strings.HasPrefix(stdout, filepath.Join(inPath, "acp-frontend")+" -- agent ") {
			t.Errorf("status %d, stdout %q", status, stdout)
		}
	})
	t.Run("under the name that was typed", func(t *testing.T) {
		speaker, dir := "/bin/sh", t.TempDir() // a shell that misses a script says so by its own name
		program, err := os.ReadFile(fermata)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "fermata"), program, 0o755); err != nil {
			t.Fatal(err)
		}
		for word, name := range map[string]string{"tui": "fermata: ", "acp": "acp-frontend: "} {
			if err := os.Symlink(speaker, filepath.Join(dir, word+"-frontend")); err != nil {
				t.Fatal(err)
			}
			if _, _, _, stderr := run(filepath.Join(dir, "fermata"), system, word, "no-such-script"); !strings.HasPrefix(stderr, name) {
				t.Errorf("fermata %s said %q", word, stderr)
			}
		}
	})
	t.Run("missing", func(t *testing.T) {
		status, _, _, stderr := run(fermata, dir, "acp")
		if status != exitNotFound || !strings.Contains(stderr, "acp-frontend is missing: it belongs beside "+fermata) {
			t.Errorf("status %d, stderr %q", status, stderr)
		}
	})
	t.Run("B125 missing, in Chinese", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), fermata, "acp")
		cmd.Env = []string{"PATH=" + dir, "LANG=zh_CN.UTF-8"}
		out, _ := cmd.CombinedOutput()
		if !strings.HasPrefix(string(out), "fermata: 缺少 acp-frontend：") {
			t.Errorf("it said %q", out)
		}
	})
	t.Run("not a program", func(t *testing.T) {
		status, _, _, stderr := run(fermata, system)
		if status != exitCannotRun || !strings.Contains(stderr, "cannot run "+filepath.Join(beside, "tui-frontend")) {
			t.Errorf("status %d, stderr %q", status, stderr)
		}
	})
}
