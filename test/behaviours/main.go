// Command behaviours joins the list of behaviours in docs/behaviours.md with a
// test run: what the list says is covered must have a test that passed.
//
//	go test -json ./... | go run ./test/behaviours -docs docs/behaviours.md
//
// A test covers the numbers with which its name, or a part of a subtest's name,
// begins: TestB42RecheckAfterContinue, t.Run("B45–B47 …"), t.Run("B45 B46 …"),
// TestB3F1…. It prints the output of failed tests, and exits with 1 on a
// failure, a hole, or a number that is not in the list.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	docs := flag.String("docs", "docs/behaviours.md", "the list of behaviours")
	list := flag.Bool("list", false, "print the tests of each number")
	flag.Parse()
	if err := run(*docs, *list, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "behaviours: %v\n", err)
		os.Exit(1)
	}
}

func run(docs string, list bool, in io.Reader, out io.Writer) error {
	text, err := os.ReadFile(docs)
	if err != nil {
		return err
	}
	behaviours, err := parseDocs(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", docs, err)
	}
	tests, err := readTests(in, out)
	if err != nil {
		return err
	}
	return report(behaviours, tests, list, out)
}

// number is a behaviour's, such as B42.
type number struct {
	letter string
	n      int
}

func (n number) String() string { return n.letter + strconv.Itoa(n.n) }

// behaviour is a row of the list.
type behaviour struct {
	number  number
	covered bool // else later
}

var row = regexp.MustCompile(`(?m)^\| ([BUF])(\d+) \| .+ \| (.*) \|$`)

// parseDocs reads the list and checks that each letter counts from 1 without a
// gap.
func parseDocs(text string) ([]behaviour, error) {
	var all []behaviour
	last := map[string]int{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		if n != last[m[1]]+1 {
			return nil, fmt.Errorf("%s%d follows %s%d", m[1], n, m[1], last[m[1]])
		}
		last[m[1]] = n
		later, isLater := strings.CutPrefix(m[3], "later: ")
		if m[3] != "covered" && (!isLater || strings.TrimSpace(later) == "") {
			return nil, fmt.Errorf("%s%d: state %q, want covered, or later: and what is missing", m[1], n, m[3])
		}
		all = append(all, behaviour{number{m[1], n}, !isLater})
	}
	if len(all) == 0 {
		return nil, errors.New("no row of a behaviour")
	}
	return all, nil
}

// outcome is what a run said of its tests.
type outcome struct {
	passed map[number][]string // the names of the tests that cover a number
	count  int                 // of passed tests
	failed []string            // packages that failed included
}

// readTests follows the output of go test -json and prints what failed tests
// and failed builds wrote.
func readTests(in io.Reader, out io.Writer) (outcome, error) {
	result := outcome{passed: map[number][]string{}}
	output := map[string]*strings.Builder{} // by package and test
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Package, ImportPath, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(out, lines.Text()) // what the go command itself says
			continue
		}
		name := e.Package + e.ImportPath + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			if output[name] == nil {
				output[name] = &strings.Builder{}
			}
			output[name].WriteString(e.Output)
		case "pass", "skip":
			delete(output, name)
			if e.Action == "pass" && e.Test != "" {
				result.count++
				for _, n := range numbers(e.Test) {
					result.passed[n] = append(result.passed[n], name)
				}
			}
		case "fail", "build-fail":
			result.failed = append(result.failed, strings.TrimSpace(name))
			if o := output[name]; o != nil {
				fmt.Fprint(out, o)
			}
		}
	}
	return result, lines.Err()
}

var (
	prefix = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)`)
	group  = regexp.MustCompile(`^[ _,]*([BUF])(\d+)(?:(?:–|-|to)[BUF]?(\d+))?`)
)

// numbers are those with which a part of a test's name begins.
func numbers(test string) []number {
	var all []number
	for i, part := range strings.Split(test, "/") {
		if i == 0 {
			part = prefix.ReplaceAllString(part, "")
		}
		for {
			m := group.FindStringSubmatch(part)
			if m == nil {
				break
			}
			part = part[len(m[0]):]
			first, _ := strconv.Atoi(m[2])
			last := first
			if m[3] != "" {
				last, _ = strconv.Atoi(m[3])
			}
			for n := first; n <= min(last, first+100); n++ {
				all = append(all, number{m[1], n})
			}
		}
	}
	return all
}

// report joins both and says what does not fit.
func report(behaviours []behaviour, tests outcome, list bool, out io.Writer) error {
	known, covered, later := map[number]bool{}, 0, 0
	var faults []string
	for _, b := range behaviours {
		known[b.number] = true
		names := tests.passed[b.number]
		if !b.covered {
			later++
		}
		switch {
		case b.covered && len(names) == 0:
			faults = append(faults, fmt.Sprintf("%s is said to be covered, and no test of it passed", b.number))
		case b.covered:
			covered++
		case len(names) > 0:
			fmt.Fprintf(out, "%s is said to come later, and has tests: %s\n", b.number, names[0])
		}
		if list {
			fmt.Fprintf(out, "%s\t%s\n", b.number, strings.Join(names, ", "))
		}
	}
	for _, n := range slices.SortedFunc(maps.Keys(tests.passed), func(a, b number) int { return a.n - b.n }) {
		if !known[n] {
			faults = append(faults, fmt.Sprintf("%s is in no row, but in a test: %s", n, tests.passed[n][0]))
		}
	}
	for _, name := range tests.failed {
		faults = append(faults, "failed: "+name)
	}
	if tests.count == 0 {
		faults = append(faults, "no test ran; pipe the output of go test -json in here")
	}
	fmt.Fprintf(out, "%d behaviours: %d covered, %d later\n", len(behaviours), covered, later)
	fmt.Fprintf(out, "%d passed, %d failed\n", tests.count, len(tests.failed))
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}
