package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// built is where the programs are.
var built string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fermata-conformance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	build := exec.Command("go", "build", "-o", dir+"/", "./cmd/core", "./cmd/tui-frontend", "./test/conformance/broken", "./docs/examples/frontend")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the programs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// result is what the conformance program said of a frontend.
type result struct {
	*report
	err error
}

// checked checks frontends side by side, each with a core of its own: nearly all of
// the time is waiting.
func checked(t *testing.T, list [][]string) []result {
	t.Helper()
	results := make([]result, len(list))
	var tasks sync.WaitGroup
	for i, argv := range list {
		tasks.Go(func() {
			argv[0] = filepath.Join(built, argv[0])
			r, err := check(t.Context(), filepath.Join(built, "core"), "", argv)
			results[i] = result{r, err}
		})
	}
	tasks.Wait()
	return results
}

// never is what a frontend does not do, so that nothing can be seen of it: it claims
// with its answers, and calls nobody.
var never = map[string][]int{"tui-frontend --plain": {10, 14, 17}, "frontend": {10, 14, 17}}

// TestConformance holds our own frontends to every MUST, and finds each broken one
// by its number and by no other.
func TestConformance(t *testing.T) {
	t.Parallel()
	whole := []string{"tui-frontend --plain", "frontend", "broken none"}
	var list [][]string
	for _, command := range whole {
		list = append(list, strings.Fields(command))
	}
	for n := 1; n <= musts; n++ {
		list = append(list, []string{"broken", fmt.Sprintf("F%d", n)})
	}
	for i, r := range checked(t, list) {
		n := i - len(whole) + 1
		name := fmt.Sprintf("a frontend that breaks F%d is found", n)
		if n < 1 {
			name = "F1 F7 F9 " + whole[i] + " keeps every MUST"
		}
		t.Run(name, func(t *testing.T) {
			if r.err != nil {
				t.Fatal(r.err)
			}
			r.print(t.Output())
			if n < 1 {
				wantWhole(t, r.report, never[whole[i]]...)
			} else if got := r.failures(); !slices.Equal(got, []int{n}) {
				t.Errorf("found %v, want only %d", got, n)
			}
		})
	}
}

func wantWhole(t *testing.T, r *report, unseen ...int) {
	t.Helper()
	for n := 1; n <= musts; n++ {
		if r.passed[n] == slices.Contains(unseen, n) || r.broken[n] != "" {
			t.Errorf("F%d: passed %v %s%s", n, r.passed[n], r.broken[n], r.unseen[n])
		}
		if !r.passed[n] && r.unseen[n] == "" {
			t.Errorf("F%d was not seen, and nothing says why", n)
		}
	}
}

// TestConformanceByDriver checks a frontend that takes nothing from its stdin: a
// driver does what its person does.
func TestConformanceByDriver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe, driver, program := filepath.Join(dir, "pipe"), filepath.Join(dir, "driver"), filepath.Join(dir, "program")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, script := range map[string]string{
		program: "exec '" + filepath.Join(built, "broken") + "' none <>'" + pipe + "'",
		driver: "[ ${#3} -eq 26 ] || exit 1\n" +
			"case $1 in enter) set -- yes \"$2\" ;; esac\n" +
			"echo \"$1 $2\" > '" + pipe + "'",
	} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r, err := check(t.Context(), filepath.Join(built, "core"), driver, []string{program})
	if err != nil {
		t.Fatal(err)
	}
	r.print(t.Output())
	wantWhole(t, r, 3, 15) // what it shows is not looked at
}

func TestConformanceTellsWhyADriverFailed(t *testing.T) {
	t.Parallel()
	driver := filepath.Join(t.TempDir(), "driver")
	if err := os.WriteFile(driver, []byte("#!/bin/sh\necho no such button\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := check(t.Context(), filepath.Join(built, "core"), driver, []string{filepath.Join(built, "broken"), "none"})
	if err == nil || !strings.Contains(err.Error(), "no such button") {
		t.Error(err)
	}
}

func TestConformanceNeedsAFrontend(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{nil, {"/no/such/program"}, {"/bin/true"}} {
		if _, err := check(t.Context(), filepath.Join(built, "core"), "", argv); err == nil {
			t.Errorf("%q: no error", argv)
		} else if len(argv) == 1 && argv[0] == "/bin/true" && !strings.Contains(err.Error(), "no hello") {
			t.Error(err)
		}
	}
}

func TestF14ATerminalsMessageIsFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"\x1b]9;write\a": true, "\x1bPtmux;\x1b\x1b]9;write\a\x1b\\": true, "\x1b]777;notify;fermata;write\a": true, "\x1b]99;;write\x1b\\": true,
		"\x1b]9;42 files\a": true, "\x1b]9;4;1;50\a": false, "\x1b]0;(3) fermata\a": false, "]9;write": false, "\a": false,
	} {
		if got := message.MatchString(text); got != want {
			t.Errorf("%q is a desktop's message: %v, want %v", text, got, want)
		}
	}
}
