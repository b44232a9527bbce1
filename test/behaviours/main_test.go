package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNumbers(t *testing.T) {
	for name, want := range map[string]string{
		"TestB42RecheckAfterContinue":         "B42",
		"TestRecheck/B42_a_later_hook":        "B42",
		"TestRecheck/B45–B47_changes_shown":   "B45 B46 B47",
		"TestRecheck/B45-B46":                 "B45 B46",
		"TestB45toB47Changes":                 "B45 B46 B47",
		"TestRecheck/B45_B46_changes":         "B45 B46",
		"TestB3F1FirstClaimWins/F2,U3_others": "B3 F1 F2 U3",
		"FuzzB37Verdict":                      "B37",
		"TestFindsB42":                        "",
		"TestRecheck/after_B42":               "",
		"TestUTF8":                            "",
		"Test":                                "",
	} {
		var got []string
		for _, n := range numbers(name) {
			got = append(got, n.String())
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestParseDocs(t *testing.T) {
	for name, text := range map[string]string{
		"a gap":          "| B1 | x | covered |\n| B3 | x | covered |",
		"a number twice": "| B1 | x | covered |\n| B1 | x | covered |",
		"no reason":      "| B1 | x | later: |",
		"another word":   "| B1 | x | done |",
		"no state":       "| B1 | x |  |",
		"nothing":        "# Behaviours",
	} {
		if got, err := parseDocs(text); err == nil {
			t.Errorf("%s: read as %v", name, got)
		}
	}
}

// TestTheListIsComplete counts the project's own list.
func TestTheListIsComplete(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "behaviours.md"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := parseDocs(string(text))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, b := range all {
		got[b.number.letter]++
	}
	if d := cmp.Diff(map[string]int{"B": 125, "U": 18, "F": 14}, got); d != "" {
		t.Errorf("rows by letter (-want +got):\n%s", d)
	}
}

func TestReport(t *testing.T) {
	docs := filepath.Join(t.TempDir(), "behaviours.md")
	list := "| B1 | one | covered |\n| B2 | two | covered |\n| U1 | three | later: approval |\n"
	if err := os.WriteFile(docs, []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		events []string // action and test
		prints string
		err    string // part of it, "" for none
	}{
		{"all covered", []string{"pass TestB1", "pass TestX/B2_x"}, "3 behaviours: 2 covered, 1 later\n2 passed, 0 failed", ""},
		{"a hole", []string{"pass TestB1"}, "", "B2 is said to be covered, and no test of it passed"},
		{"a failed test covers nothing", []string{"pass TestB1", "output TestB2", "fail TestB2"}, "said by TestB2", "B2 is said"},
		{"a failure elsewhere", []string{"pass TestB1", "pass TestB2", "fail TestX"}, "", "failed: p TestX"},
		{"a skipped test covers nothing", []string{"pass TestB1", "skip TestB2"}, "", "B2 is said"},
		{"an unknown number", []string{"pass TestB1", "pass TestB2", "pass TestB9"}, "", "B9 is in no row"},
		{"later, but tested", []string{"pass TestB1", "pass TestB2", "pass TestU1"}, "U1 is said to come later, and has tests", ""},
		{"nothing ran", nil, "", "no test ran"},
		{"a failed build", []string{"build-output ", "build-fail ", "pass TestB1", "pass TestB2"}, "said by", "failed: p"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var in, out bytes.Buffer
			for _, e := range test.events {
				action, name, _ := strings.Cut(e, " ")
				fmt.Fprintf(&in, `{"Action":%q,"Package":"p","Test":%q,"Output":"said by %s\n"}`+"\n", action, name, name)
			}
			err := run(docs, true, &in, &out)
			if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if !strings.Contains(out.String(), test.prints) {
				t.Errorf("printed %q, want %q in it", out.String(), test.prints)
			}
		})
	}
	t.Run("no list", func(t *testing.T) {
		if err := run(filepath.Join(t.TempDir(), "none"), false, strings.NewReader(""), &bytes.Buffer{}); err == nil {
			t.Error("a missing list is no error")
		}
	})
}
