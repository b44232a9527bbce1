package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/test/show/terminal"
)

var update = flag.Bool("update", false, "write the captures to docs/screens")

// kept is where the captures are.
const kept = "../../docs/screens"

// settles is how long a screen that is ready may take to be as it was.
const settles = 5 * time.Second

// TestScreens goes through every moment on real programs and compares what is on
// the screen with docs/screens, where times are masked.
func TestScreens(t *testing.T) {
	programs := t.TempDir()
	if err := build(t.Context(), programs); err != nil {
		t.Fatal(err)
	}
	for _, text := range sizes() {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s, err := parseSize(text)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			err = run(t.Context(), programs, s, func(c capture) error {
				seen[c.name+".txt"] = true
				return check(t, filepath.Join(kept, text, c.name+".txt"), c)
			})
			if err != nil {
				t.Fatal(err)
			}
			files, err := os.ReadDir(filepath.Join(kept, text))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if !seen[f.Name()] {
					t.Errorf("docs/screens/%s/%s is kept of no moment", text, f.Name())
				}
			}
		})
	}
}

// check compares a moment with what was kept of it. An error says that the
// moments behind it cannot come.
func check(t *testing.T, file string, c capture) (err error) {
	t.Run(c.title, func(t *testing.T) {
		var p terminal.Picture
		if *update {
			if p, err = c.take(); err == nil {
				err = write(file, c.text(p))
			} else {
				err = fmt.Errorf("%w; the screen:\n%s", err, p.Text())
			}
			return
		}
		var want []byte
		if want, err = os.ReadFile(file); err != nil {
			return
		}
		if p, err = c.on.Await(c.name, patience, c.ready); err == nil {
			p, err = c.on.AwaitPicture(c.name, settles, func(p terminal.Picture) bool { return c.text(p) == string(want) })
		}
		if errors.Is(err, terminal.ErrLate) && c.ready(p.Text()) {
			err = nil // only another look: what comes behind it can still be seen
			t.Errorf("%s (go test ./test/show -update keeps what is there now):\n%s", file, cmp.Diff(lines(string(want)), lines(c.text(p))))
		}
		if err != nil {
			err = fmt.Errorf("%w; the screen:\n%s", err, p.Text())
		}
	})
	return err
}

func lines(text string) []string { return strings.Split(text, "\n") }

// TestMaskKeepsColumns holds the mask to what it is for: two runs look the
// same, and what is lined up stays so.
func TestMaskKeepsColumns(t *testing.T) {
	for _, c := range []struct{ one, other, want string }{
		{" Bash          asked 0:04 ago", " Bash         asked 12:34 ago", " Bash          asked 0:00 ago"},
		{" ✓ ran   18 ms", " ✓ ran   1.7 s", " ✓ ran   0.0 s"},
		{" ✓ you continued after 3.1 s → ran", " ✓ you continued after 12.0 s → ran", " ✓ you continued after 0.0 s → ran"},
		{"你，2.4 秒", "你，124 毫秒", "你，0.0 秒"},
		{" id 01j0000000000000000000000a", " id 01jzzzzzzzzzzzzzzzzzzzzzzb", " id 00000000000000000000000000"},
		{"   20  ✓  ask-before-apply   12 ms", "   20  ✓  ask-before-apply", "   20  ✓  ask-before-apply"},
		{"   21  ✓  add-region   12 ms", "   21  ✓  add-region   1.1 s", "   21  ✓  add-region   0.0 s"},
		{" session pxgxi6vp74oypa4rvcymkftnbn", " session frojz3t2dngdz24semtcnrt3gx", " session 00000000000000000000000000"},
		{" .fermata/hooks.yaml:14", " .fermata/hooks.yaml:14", " .fermata/hooks.yaml:14"},
		{" 2026-11-30 23:39:13", " 2027-01-01 00:00:00", " 2026-01-31 09:30:00"},
	} {
		for _, line := range []string{c.one, c.other} {
			if got := mask(line); got != c.want {
				t.Errorf("mask(%q) = %q, want %q", line, got, c.want)
			}
		}
	}
}

func TestSizesAreRead(t *testing.T) {
	for _, wrong := range []string{"", "80", "80x", "x24", "80x24x", "080x24", "10x24", "80x5", "-80x24"} {
		if s, err := parseSize(wrong); err == nil {
			t.Errorf("%q was read as %v", wrong, s)
		}
	}
}
