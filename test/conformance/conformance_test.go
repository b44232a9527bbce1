package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// atOnce is how many frontends are checked beside each other: nearly all of the time
// is waiting.
const atOnce = 8

// checked checks frontends, each with a core of its own.
func checked(t *testing.T, list [][]string) []result {
	t.Helper()
	results := make([]result, len(list))
	free := make(chan struct{}, atOnce)
	var tasks sync.WaitGroup
	for i, argv := range list {
		tasks.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			argv[0] = filepath.Join(built, argv[0])
			r, err := check(t.Context(), filepath.Join(built, "core"), "", argv)
			results[i] = result{r, err}
		})
	}
	tasks.Wait()
	return results
}

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
				wantWhole(t, r.report)
			} else if got := r.failures(); !slices.Equal(got, []int{n}) {
				t.Errorf("found %v, want only %d", got, n)
			}
		})
	}
}

func wantWhole(t *testing.T, r *report) {
	t.Helper()
	for n := 1; n <= musts; n++ {
		if !r.passed[n] || r.broken[n] != "" {
			t.Errorf("F%d: %s%s", n, r.broken[n], r.unseen[n])
		}
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
