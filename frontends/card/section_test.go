package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func english() words.Words { return words.In(words.English) }

// call is a question about a tool call.
func call(tool string) events.Question {
	q := events.Question{Kind: events.KindToolCall, Previous: -1, Hook: events.Hook{ID: "h", File: "/h/hooks.yaml", Line: 6}}
	q.Tool.Name = tool
	return q
}

// drawn writes sections as a plain screen would, for comparison.
func drawn(c Card) string {
	var b strings.Builder
	for _, s := range c.Sections {
		fmt.Fprintf(&b, "%s:", s.Name)
		if s.Stats != "" {
			fmt.Fprintf(&b, " %s", s.Stats)
		}
		if s.Note != "" {
			fmt.Fprintf(&b, " (%s)", s.Note)
		}
		switch s.Kind {
		case SectionValue:
			fmt.Fprintf(&b, " %q", s.Field.Text)
		case SectionChange:
			fmt.Fprintf(&b, " %s %q, now %q", c.Was, s.Change.Old.Shown(english()), s.Change.New.Shown(english()))
		case SectionDiff:
		}
		b.WriteByte('\n')
		for _, l := range s.Lines {
			fmt.Fprintf(&b, "  %3d %3d %c%s\n", l.Old, l.New, l.Sign, l.Text)
		}
	}
	return b.String()
}

func TestB102SectionsSayTheDeedFirst(t *testing.T) {
	for _, c := range []struct{ name, args, stats, want string }{
		{
			"what the model says stands behind what it does",
			`{"command":"touch M","description":"List files","timeout":3}`, "",
			`command: "touch M"
timeout: "3"
description: (in the model's own words) "List files"
`,
		},
		{
			"an edit",
			`{"description":"safe","file_path":"a.go","new_string":"one\n2\nthree\n","old_string":"one\ntwo\nthree\n"}`, "+1 −1",
			`file_path: "a.go"
new_string: +1 −1
    1   1  one
    2   0 -two
    0   2 +2
    3   3  three
description: (in the model's own words) "safe"
new_string: "one\n2\nthree\n"
old_string: "one\ntwo\nthree\n"
`,
		},
		{
			"several edits",
			`{"edits":[{"newText":"b","oldText":"a"},{"newText":"","oldText":"x\ny","path":"c` + "\u202e" + `.go"}],"path":"f"}`, "+1 −3",
			`path: "f"
edits: +1 −3
    0   0 @edit 1 of 2
    1   0 -a
    0   1 +b
    0   0 @edit 2 of 2: c⟨U+202E⟩.go
    1   0 -x
    2   0 -y
edits: "[\n  {\n    \"newText\": \"b\",\n    \"oldText\": \"a\"\n  },\n  {\n    \"newText\": \"\",\n    \"oldText\": \"x\\ny\",\n    \"path\": \"c⟨U+202E⟩.go\"\n  }\n]"
`,
		},
		{
			"only the end differs",
			`{"new_str":"a\n","old_str":"a"}`, "",
			`new_str:
    1   1  a
    0   2 @now ends with a line break
new_str: "a\n"
old_str: "a"
`,
		},
		{
			"nothing differs",
			`{"newString":"a","oldString":"a"}`, "",
			`newString:
    0   0 @both texts are the same
newString: "a"
oldString: "a"
`,
		},
		{
			"a patch",
			`{"patch":"--- a/x\n+++ b/x\n@@ -4,2 +4,2 @@ func\n same\n--- old\n++++ new\n"}`, "+1 −1",
			`patch: +1 −1
    0   0 *--- a/x
    0   0 *+++ b/x
    0   0 *@@ -4,2 +4,2 @@ func
    4   4  same
    5   0 --- old
    0   5 ++++ new
patch: "--- a/x\n+++ b/x\n@@ -4,2 +4,2 @@ func\n same\n--- old\n++++ new\n"
`,
		},
		{
			"a patch with names",
			`{"input":"*** Begin Patch\n*** Update File: x.py\n@@ def f():\n-a\n+b\n*** End Patch"}`, "+1 −1",
			`input: +1 −1
    0   0 **** Begin Patch
    0   0 **** Update File: x.py
    0   0 *@@ def f():
    0   0 -a
    0   0 +b
    0   0 **** End Patch
input: "*** Begin Patch\n*** Update File: x.py\n@@ def f():\n-a\n+b\n*** End Patch"
`,
		},
	} {
		t.Run("B102 "+c.name, func(t *testing.T) {
			got := New(call("T"), []byte(c.args), "", english())
			if diff := cmp.Diff(c.want, drawn(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.Stats != c.stats || Stats([]byte(c.args)) != c.stats {
				t.Errorf("stats %q and %q, want %q", got.Stats, Stats([]byte(c.args)), c.stats)
			}
		})
	}
}

func TestB102WhatIsNoEditIsAValue(t *testing.T) {
	for _, args := range []string{
		`{"new_string":"a"}`,
		`{"old_string":3,"new_string":"a"}`,
		`{"edits":[{"newText":"b","oldText":"a"},{"insert":"x"}]}`,
		`{"edits":[]}`,
		`{"edits":"none"}`,
		`{"patch":"not a patch"}`,
		`{"patch":"@@ -1,2 +1 @@\n-a\n"}`,              // a line is missing
		`{"patch":"@@ -1 +1 @@\n-a\n+b\n+c\n"}`,        // one is too many
		`{"patch":"@@ -1 +1 @@\n-a\n+b\nrm -rf /\n+"}`, // and one hides behind a stranger
		`{"patch":"@@ -1 +1,2 @@\n-a\n-b\n+c\n+d\n"}`,  // too many of one kind
		`{"patch":"@@ --1 +1 @@\n-a\n+b\n"}`,
		`{"patch":"@@ -x +1 @@\n-a\n+b\n"}`,
		`{"patch":"@@ -99999999999999999999 +1 @@\n-a\n+b\n"}`,
		`{"patch":"@@ -1 +1 @@\n-a\n+b\nunchanged lines: 40\n"}`, // and one speaks as we do
		`{"input":"*** Begin Patch\nx"}`,
		`{"input":"*** Begin Patch\n*** unchanged lines: 40\n+x"}`,
		`{"input":"plain words"}`,
		`["old_string","new_string"]`,
		`"old_string"`,
	} {
		for _, s := range New(call("T"), []byte(args), "", english()).Sections {
			if s.Kind != SectionValue {
				t.Errorf("%s: %+v", args, s)
			}
		}
		if got := Stats([]byte(args)); got != "" {
			t.Errorf("%s: %q", args, got)
		}
	}
}

func TestF7WhatStandsBehindABlankIsAnnounced(t *testing.T) {
	const lines, spaces = "empty lines in a row: %s, and more behind them", "spaces in a row: %s, and more behind them"
	for _, c := range []struct{ name, text, want string }{
		{"hidden below", "echo a" + strings.Repeat("\n", 400) + "touch M", fmt.Sprintf(lines, "399")},
		{"hidden below Windows lines", "echo a" + strings.Repeat(" \r\n", 400) + "touch M", fmt.Sprintf(lines, "399")},
		{"pushed down from the start", strings.Repeat("\n", 12) + "touch M", fmt.Sprintf(lines, "12")},
		{"hidden far right", "ls" + strings.Repeat(" ", 5_000) + "; touch M", fmt.Sprintf(spaces, "5,000")},
		{"both", "a" + strings.Repeat("\n", 20) + strings.Repeat("\t", 130) + "b", fmt.Sprintf(lines, "19") + " · " + fmt.Sprintf(spaces, "130")},
		{"nothing behind", "ls" + strings.Repeat("\n", 400), ""},
		{"ordinary", "func a() {\n\n\n\treturn\n}\n" + strings.Repeat(" ", 80) + "// far", ""},
	} {
		args, _ := json.Marshal(map[string]string{"command": c.text})
		if got := New(call("Bash"), args, "", english()).Sections[0].Note; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	args, _ := json.Marshal(map[string]string{"description": "a" + strings.Repeat("\n", 13) + "b"})
	if got := New(call("Bash"), args, "", english()).Sections[0].Note; got != "in the model's own words · "+fmt.Sprintf(lines, "12") {
		t.Errorf("%q", got)
	}
}

func TestB102AnEditThatIsTooLargeIsTwoValues(t *testing.T) {
	long := strings.Repeat("x", maxDiffBytes)
	args, _ := json.Marshal(map[string]string{"old_string": long, "new_string": long + "y"})
	c := New(call("T"), args, "", english())
	if len(c.Sections) != 3 || c.Sections[0].Kind != SectionDiff || c.Sections[0].Lines != nil || c.Stats != "" ||
		c.Sections[0].Note != "too large to compare line by line: both texts follow, whole" {
		t.Fatalf("%d sections, %q, %q", len(c.Sections), c.Sections[0].Note, c.Stats)
	}
	if c.Sections[1].Field.Raw != long+"y" || c.Sections[2].Field.Raw != long {
		t.Error("the texts do not follow")
	}
	args, _ = json.Marshal(map[string]any{"oldText": "a", "newText": "b", "edits": []map[string]string{{"oldText": long, "newText": "b"}}})
	if got := Stats(args); got != "" {
		t.Errorf("%q of one edit stands for two", got)
	}
}

func TestB46B45WhatAHookChanged(t *testing.T) {
	q := call("Bash")
	q.Changed = []events.Change{
		{Name: "command", Old: raw("terraform apply"), New: json.RawMessage(`"terraform apply\n-var region=eu"`)},
		{Name: "cwd", Old: raw("/x")},
		{Name: "env", New: json.RawMessage(`{}`)},
	}
	q.ChangedBy = []events.Hook{{ID: "add-region", Scope: events.ScopeGlobal, File: "/h/hooks.yaml", Line: 14}, {ID: "b\u202e", Line: 2}}
	args := []byte(`{"command":"terraform apply\n-var region=eu","env":{}}`)
	for _, c := range []struct {
		name     string
		previous int
		first    bool
		since    int
		was      string
		sentence string
	}{
		{"B45 asked again", 2, false, 2, "was", "a hook changed command, cwd, env after you continued"},
		{"B46 in a first question", -1, true, 0, "asked for", "a hook changed command, cwd, env before it asked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q.Previous = c.previous
			got := New(q, args, "", english())
			want := `command: +1 ` + c.was + ` "terraform apply", now "terraform apply\n-var region=eu"
    1   1  terraform apply
    0   2 +-var region=eu
cwd: ` + c.was + ` "/x", now ""
env: ` + c.was + ` "", now "{}"
command: "terraform apply\n-var region=eu"
env: "{}"
`
			if diff := cmp.Diff(want, drawn(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got.First != c.first || got.Since != c.since || got.Was != c.was || got.ChangedIn != c.sentence || got.Missing || len(got.Changes) != 3 {
				t.Errorf("%+v", got)
			}
			by := []string{"add-region (global hooks.yaml:14)", "b⟨U+202E⟩ ( :2)"}
			if diff := cmp.Diff(by, got.ChangedBy); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := New(call("Bash"), args, "", english()); got.First || got.Since != -1 || got.Was != "" || got.ChangedIn != "" || got.Changes != nil {
		t.Errorf("nothing changed: %+v", got)
	}
}

func TestB46ChangesThatDidNotTravel(t *testing.T) {
	q := call("Bash")
	q.Previous, q.Changed = 1, []events.Change{{Name: "a"}, {Name: ""}}
	before, args := []byte(`{"a":"x"}`), []byte(`{"a":"y"}`)
	got := New(q, args, "", english())
	if !got.Missing || got.Since != 1 || len(got.Changes) != 0 || len(got.Sections) != 1 {
		t.Fatalf("%+v", got)
	}
	got = NewSince(q, before, args, "", english())
	if got.Missing || len(got.Changes) != 2 || len(got.Sections) != 3 || got.Sections[0].Change.Old.Middle != "x" || got.Sections[1].Name != "value" {
		t.Errorf("%+v", got.Sections)
	}
}

func TestB39WhoseWordsTheReasonIs(t *testing.T) {
	q := call("Bash")
	if c := New(q, []byte(`{}`), "", english()); c.Quoted || c.ReasonLabel != "reason" {
		t.Errorf("our own sentence is quoted: %+v", c)
	}
	q.Reason = "“safe”"
	if c := New(q, []byte(`{}`), "", english()); !c.Quoted || c.Reason != q.Reason {
		t.Errorf("the hook's words are not quoted: %+v", c)
	}
	for args, claimed := range map[string]bool{
		`{"description":"x"}`: true, `{"reason":"x"}`: true, `{"explanation":"x"}`: true, `{"justification":"x"}`: true,
		`{"reason":3}`: false, `{"command":"x"}`: false, `"reason"`: false,
	} {
		if got := Fields([]byte(args))[0].Claimed; got != claimed {
			t.Errorf("%s: %v", args, got)
		}
	}
}

func TestB117Short(t *testing.T) {
	f := func(s string) Field { return newField("x", raw(s)) }
	long := strings.Repeat("a", 40) + strings.Repeat("b", 79_000) + strings.Repeat("c", 40)
	if text, left := Short(f(long), 80, english()); left != 79_000 ||
		text != strings.Repeat("a", 40)+" ⋯ 79,000 bytes ⋯ "+strings.Repeat("c", 40) {
		t.Errorf("%d left: %q", left, text)
	}
	if text, left := Short(f("short"), 5, english()); text != "short" || left != 0 {
		t.Errorf("%q, %d", text, left)
	}
	if text, left := Short(f("abc"), -1, words.In(words.Chinese)); text != " ⋯ 3 字节 ⋯ " || left != 3 {
		t.Errorf("%q, %d", text, left)
	}
	pieces := rapid.SampledFrom([]string{"a", "中", "e\u0301", "👩‍👩‍👧", "\u202e", "\r\n", "⟨U+", " ⋯ 3 bytes ⋯ ", "\xff"})
	rapid.Check(t, func(r *rapid.T) {
		whole := strings.Join(rapid.SliceOfN(pieces, 0, 40).Draw(r, "text"), "")
		field := Field{Text: Escape(whole), Raw: whole, Bytes: len(whole)}
		limit := rapid.IntRange(-1, 80).Draw(r, "limit")
		text, left := Short(field, limit, english())
		if left == 0 {
			if text != field.Text {
				r.Fatalf("%q became %q", field.Text, text)
			}
			return
		}
		head, tail, ok := strings.Cut(text, LeftOut(left, english()))
		if !ok || len(head)+len(tail) > max(limit, 0) || !strings.HasPrefix(field.Text, head) || !strings.HasSuffix(field.Text, tail) {
			r.Fatalf("%q in %d bytes: %q", field.Text, limit, text)
		}
		if got := len(Unescape(head)) + left + len(Unescape(tail)); got != len(whole) {
			r.Fatalf("%q: %d bytes accounted for, not %d", text, got, len(whole))
		}
		if strings.Count(text, " ⋯ ") > 2+strings.Count(field.Text, " ⋯ ") {
			r.Fatalf("more is left out than there is: %q", text)
		}
	})
}

func TestAbout(t *testing.T) {
	for args, want := range map[string]string{
		`{"cwd":"/x","command":"ls\nrm"}`:    "ls …",
		`{"command":"a\tb` + "\u202e" + `"}`: "a⇥b⟨U+202E⟩",
		`{}`:                                 "",
		`"hello"`:                            "hello",
	} {
		if got := About([]byte(args)); got != want {
			t.Errorf("%s: %q", args, got)
		}
	}
}

// everything checks that each argument stands in the sections once, with all of its
// bytes.
func everything(args []byte, c Card) error {
	var values []Field
	for _, s := range c.Sections {
		if s.Kind == SectionValue {
			values = append(values, s.Field)
		}
	}
	if len(values) != len(c.Fields) {
		return fmt.Errorf("%d values for %d arguments", len(values), len(c.Fields))
	}
	for _, f := range c.Fields {
		found := false
		for _, v := range values {
			found = found || v == f
		}
		if !found {
			return fmt.Errorf("%q is in no section", f.Name)
		}
		shown := Unescape(f.Text)
		if f.JSON && !f.Bad {
			var b bytes.Buffer
			if json.Compact(&b, []byte(shown)) != nil {
				return fmt.Errorf("%q is not what is there", shown)
			}
			var want bytes.Buffer
			_ = json.Compact(&want, []byte(f.Raw))
			if shown = b.String(); shown != want.String() {
				return fmt.Errorf("%q shows %q", f.Raw, shown)
			}
			continue
		}
		if shown != f.Raw || f.Bytes != len(f.Raw) {
			return fmt.Errorf("%q shows %q", f.Raw, shown)
		}
		if f.Bad && f.Raw != string(args) {
			return fmt.Errorf("%q stands for %q", f.Raw, args)
		}
	}
	return nil
}

func FuzzCard(f *testing.F) {
	for _, s := range []string{
		`{"command":"x","description":"y"}`, `{"new_string":"a\nb","old_string":"a"}`, `{"edits":[{"newText":"b","oldText":"a"}]}`,
		`{"patch":"@@ -1 +1 @@\n-a\n+b\n"}`, `{"input":"*** Begin Patch\n+x"}`, `"\ud800"`, "\"\xff\"", `{"a":1,"a":2}`, `[1,{"b":null}]`, `{`, ``, `{"":""}`,
	} {
		f.Add([]byte(s), []byte(`{"command":"w"}`), "command")
	}
	f.Fuzz(func(t *testing.T, args, before []byte, name string) {
		q := call("T")
		q.Changed, q.ChangedBy = []events.Change{{Name: name}}, []events.Hook{{ID: name}}
		begun := time.Now()
		c := NewSince(q, before, args, "", english())
		if took := time.Since(begun); took > 5*time.Second {
			t.Fatalf("%d bytes took %v", len(args), took)
		}
		if err := everything(args, c); err != nil {
			t.Fatal(err)
		}
		Stats(args)
		About(args)
		for _, s := range c.Sections {
			for _, l := range s.Lines {
				if strings.ContainsAny(l.Text, "\n\x1b") {
					t.Fatalf("%q is more than a line", l.Text)
				}
			}
		}
	})
}
