package card

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// rebuilt makes one text of the other and of what a diff says, and fails where the
// diff says what is not so.
func rebuilt(o, n []string, lines []DiffLine) (before, now []string, err error) {
	i, j := 0, 0 // lines of old and new that are dealt with
	skip := func(to int) {
		for ; i+1 < to; i, j = i+1, j+1 {
			before, now = append(before, n[j]), append(now, o[i])
		}
	}
	for _, l := range lines {
		text := l.Text
		if l.Sign == '@' {
			text = ""
		}
		switch {
		case l.Sign == '@' && l.Old > 0 && l.New > 0:
			if l.Old != i+1 || l.New != j+1 {
				return nil, nil, fmt.Errorf("left out from %d and %d, not %d and %d", l.Old, l.New, i+1, j+1)
			}
			continue
		case l.Old > 0:
			skip(l.Old)
		default:
			skip(i + 1 + l.New - (j + 1))
		}
		if l.Old > 0 {
			if l.Old != i+1 || o[i] != text {
				return nil, nil, fmt.Errorf("line %d of the old text is not %q", l.Old, text)
			}
			before = append(before, text)
			i++
		}
		if l.New > 0 {
			if l.New != j+1 || n[j] != text {
				return nil, nil, fmt.Errorf("line %d of the new text is not %q", l.New, text)
			}
			now = append(now, text)
			j++
		}
		if l.Old == 0 && l.New == 0 {
			return nil, nil, errors.New("a line of neither text")
		}
	}
	skip(len(o) + 1)
	return before, now, nil
}

func checkDiff(o, n string) error {
	o, n = Escape(o), Escape(n)
	lines := diff(o, n, english())
	if (o == n) != (lines == nil) {
		return fmt.Errorf("%q and %q: %v", o, n, lines)
	}
	a, b := splitLines(o), splitLines(n)
	before, now, err := rebuilt(a, b, lines)
	if err != nil || !slices.Equal(before, a) || !slices.Equal(now, b) {
		return fmt.Errorf("%q and %q: %v became %q and %q: %w", o, n, lines, before, now, err)
	}
	return nil
}

func TestB47TheDiffSaysBothTexts(t *testing.T) {
	line := rapid.SampledFrom([]string{"a", "b", "c", "", "\r", "x\u202e", "\n", "\n\n"})
	rapid.Check(t, func(r *rapid.T) {
		text := func(name string, least int) string {
			return strings.Join(rapid.SliceOfN(line, least, 40).Draw(r, name), rapid.SampledFrom([]string{"\n", ""}).Draw(r, "between"))
		}
		same := text("same", 0)
		if err := checkDiff(same+text("old", 0)+same, same+text("new", 0)+same); err != nil {
			r.Fatal(err)
		}
	})
}

func FuzzDiff(f *testing.F) {
	for _, s := range [][2]string{
		{"", "a"},
		{"a\nb\n", "a\nc"},
		{"a\n", "a\n\nb"},
		{"\n", ""},
		{"\r\n\xff", "\n"},
		{"@\n-\n+\n", " \n"},
		{strings.Repeat("a\n", 300), strings.Repeat("b\na\n", 200)},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, o, n string) {
		begun := time.Now()
		if err := checkDiff(o, n); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Fatalf("%d and %d bytes took %v", len(o), len(n), took)
		}
	})
}

// FuzzPatch holds that what is taken for a patch shows every line of it.
func FuzzPatch(f *testing.F) {
	for _, s := range []string{
		"--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n", "@@ -1,2 +0,0 @@\n-a\n-b\n\\ No newline at end of file", "*** Begin Patch\n*** Add File: x\n+a\n*** End Patch\n",
		"diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ f\n a\n\n-b\n+c\n", "@@ -1,99999999 +1 @@\n a", "*** Begin Patch",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		lines := patchLines(Escape(s))
		if lines == nil {
			return
		}
		var b strings.Builder
		for i, l := range lines {
			if i > 0 {
				b.WriteByte('\n')
			}
			if l.Sign != '*' {
				b.WriteByte(l.Sign)
			}
			b.WriteString(l.Text)
		}
		// An empty line stands for an unchanged one that is empty.
		normal := func(text string) string {
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			for i := range lines {
				if lines[i] == " " {
					lines[i] = ""
				}
			}
			return strings.Join(lines, "\n")
		}
		if got, want := normal(b.String()+"\n"), normal(Escape(s)); got != want {
			t.Fatalf("%q shows %q", s, b.String())
		}
	})
}

func TestB47OnlyWhatIsNearAChangeIsShown(t *testing.T) {
	var o []string
	for i := range 40 {
		o = append(o, fmt.Sprint("line ", i+1))
	}
	n := slices.Clone(o)
	n[9], n[29] = "new", "new"
	n = slices.Insert(n, 20, "more")
	var b strings.Builder
	for _, l := range diff(strings.Join(o, "\n"), strings.Join(n, "\n"), english()) {
		fmt.Fprintf(&b, "%d %d %c%s\n", l.Old, l.New, l.Sign, l.Text)
	}
	want := `1 1 @unchanged lines: 6
7 7  line 7
8 8  line 8
9 9  line 9
10 0 -line 10
0 10 +new
11 11  line 11
12 12  line 12
13 13  line 13
14 14 @unchanged lines: 4
18 18  line 18
19 19  line 19
20 20  line 20
0 21 +more
21 22  line 21
22 23  line 22
23 24  line 23
24 25 @unchanged lines: 3
27 28  line 27
28 29  line 28
29 30  line 29
30 0 -line 30
0 31 +new
31 32  line 31
32 33  line 32
33 34  line 33
34 35 @unchanged lines: 7
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestB47OneLineIsNotLeftOut(t *testing.T) {
	gap := strings.Repeat("\nsame", 2*context+1)
	for _, l := range diff("a"+gap+"\nb", "c"+gap+"\nd", english()) {
		if l.Sign == '@' {
			t.Errorf("%+v", l)
		}
	}
}

// TestTheDiffTakesBoundedTime gives it what is hardest: many short lines, of which
// none, all, or every other is the same.
func TestTheDiffTakesBoundedTime(t *testing.T) {
	lines := func(n, kinds int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, i*7919%kinds)
		}
		return b.String()
	}
	for name, c := range map[string][2]string{
		"nothing alike":     {lines(19_000, 1<<20), strings.Repeat("x\n", 19_000)},
		"much alike":        {lines(19_000, 50), lines(19_000, 51)},
		"two kinds":         {lines(19_000, 2), lines(19_000, 3)},
		"empty lines":       {strings.Repeat("\n", 19_000), strings.Repeat("\n\n", 9_000)},
		"every other added": {lines(13_000, 1<<20), strings.ReplaceAll(lines(13_000, 1<<20), "\n", "\n+\n")},
	} {
		if !withinBounds(c[0], c[1]) {
			t.Errorf("%s: too large for the test", name)
		}
		begun := time.Now()
		if err := checkDiff(c[0], c[1]); err != nil {
			t.Errorf("%s: %.200s", name, err)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("%s: %v", name, took)
		} else {
			t.Logf("%s: %v", name, took)
		}
	}
}
