package card

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

func TestB102Fields(t *testing.T) {
	for _, c := range []struct {
		name, args string
		want       []Field
	}{
		{"object, in its order", `{"b":"x\ny","a":3,"z":null,"t":true}`, []Field{
			{Name: "b", Text: "x\ny", Raw: "x\ny", Bytes: 3},
			{Name: "a", Text: "3", Raw: "3", Bytes: 1, JSON: true},
			{Name: "z", Text: "null", Raw: "null", Bytes: 4, JSON: true},
			{Name: "t", Text: "true", Raw: "true", Bytes: 4, JSON: true},
		}},
		{"a number keeps its token", `{"n":1.0e+2}`, []Field{{Name: "n", Text: "1.0e+2", Raw: "1.0e+2", Bytes: 6, JSON: true}}},
		{"a short object stays in a line", `{"o":{"k":[1,2]}}`, []Field{
			{Name: "o", Text: `{"k":[1,2]}`, Raw: `{"k":[1,2]}`, Bytes: 11, JSON: true},
		}},
		{"a message", `"hello\tthere"`, []Field{{Text: "hello\tthere", Raw: "hello\tthere", Bytes: 11}}},
		{"no arguments", `{}`, nil},
		{"names are escaped", "{\"\u202ename\":\"\"}", []Field{{Name: "⟨U+202E⟩name"}}},
		{"no JSON is shown whole", "{\"a\":\x1b", []Field{{Text: "{\"a\":⟨U+001B⟩", Raw: "{\"a\":\x1b", Bytes: 6, JSON: true, Bad: true}}},
		{"half a character", `["\ud800"]`, []Field{{Text: `["\ud800"]`, Raw: `["\ud800"]`, Bytes: 10, JSON: true}}},
		{"half a character in a string", `{"a":"\ud800"}`, []Field{{Name: "a", Text: `"\ud800"`, Raw: `"\ud800"`, Bytes: 8, JSON: true}}},
		{"a replacement character", `{"a":"` + "\ufffd" + `"}`, []Field{{Name: "a", Text: "\ufffd", Raw: "\ufffd", Bytes: 3}}},
		{"two values", `{} {}`, []Field{{Text: "{} {}", Raw: "{} {}", Bytes: 5, JSON: true, Bad: true}}},
		{"none", ``, []Field{{JSON: true, Bad: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Fields([]byte(c.args))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestB102ALongObjectIsLaidOutAndNothingElse(t *testing.T) {
	raw := `{"edits":[{"new":"a long enough text","old":"another long enough text"},{"new":"x","old":"y"}]}`
	f := Fields([]byte(raw))[0]
	if !strings.Contains(f.Text, "\n    \"new\": \"x\"") || f.Raw != raw[len(`{"edits":`):len(raw)-1] {
		t.Errorf("%q", f.Text)
	}
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	if got := Fields([]byte(deep))[0].Text; got != deep {
		t.Errorf("deep brackets outgrew themselves: %d bytes", len(got))
	}
}

func TestB39Reason(t *testing.T) {
	q := events.Question{Hook: events.Hook{ID: "ask-\u202efirst", Scope: events.ScopeGlobal, File: "/h/hooks.yaml", Line: 14}}
	q.Kind = events.KindToolCall
	c := New(q, []byte(`{}`), "", words.In(words.English))
	if c.Quoted || c.Reason != "The hook ask-⟨U+202E⟩first asks before this goes on." {
		t.Errorf("default sentence: %q", c.Reason)
	}
	q.Reason = "safe\x1b[8m"
	if c = New(q, []byte(`{}`), "", words.In(words.English)); !c.Quoted || c.Reason != "safe⟨U+001B⟩[8m" {
		t.Errorf("reason: %q", c.Reason)
	}
	if c.Origin != "global hooks.yaml:14" || c.Genuine {
		t.Errorf("origin %q, genuine %v", c.Origin, c.Genuine)
	}
	q.Version.Digest = events.DigestOf([]byte(`{}`))
	if c = New(q, []byte(`{}`), "", words.In(words.English)); !c.Genuine || c.Digest != q.Version.Digest {
		t.Error("the same bytes are not genuine")
	}
}

func TestB103AMessageIsOneBoxUnderItsName(t *testing.T) {
	for _, c := range []struct {
		kind        events.Kind
		lang        words.Language
		args        string
		title, name string
		text        string
	}{
		{events.KindUserPrompt, words.English, `"hi\n{\"a\":1}"`, "your message", "message", "hi\n{\"a\":1}"},
		{events.KindInjection, words.English, `"hi"`, "added message", "message", "hi"},
		{events.KindRetryNote, words.English, `"hi"`, "retry note", "message", "hi"},
		{events.KindUserPrompt, words.Chinese, `"你好"`, "你的消息", "消息", "你好"},
		{events.KindToolCall, words.English, `"hi"`, "Bash", "value", "hi"},
	} {
		t.Run("B103 "+string(c.kind), func(t *testing.T) {
			q := events.Question{Kind: c.kind}
			if c.kind == events.KindToolCall {
				q.Tool.Name = "Bash"
			}
			got := New(q, []byte(c.args), "", words.In(c.lang))
			want := []Field{{Name: c.name, Text: c.text, Raw: c.text, Bytes: len(c.text)}}
			if diff := cmp.Diff(want, got.Fields); diff != "" || got.Title != c.title {
				t.Errorf("title %q, -want +got:\n%s", got.Title, diff)
			}
		})
	}
}

func TestB109WhoInTheAgentWantsIt(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "main": "", "main > sub#1": "main > sub#1", "main > a\u202eb\nc": "main > a⟨U+202E⟩b⏎c",
	} {
		if got := New(events.Question{Kind: events.KindToolCall, Path: path}, []byte(`{}`), "", words.In(words.English)).Path; got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(strconv.Quote(s)) }

func only(compared []comparison) []Change {
	var changes []Change
	for _, c := range compared {
		changes = append(changes, c.Change)
	}
	return changes
}

func TestB46Changes(t *testing.T) {
	sent, complete := compareSent([]events.Change{
		{Name: "added", New: raw("x")},
		{Name: "removed", Old: raw("y")},
		{Name: "number", Old: json.RawMessage("1"), New: json.RawMessage("2")},
		{Name: "type", Old: json.RawMessage("1"), New: raw("1")},
	})
	got := only(sent)
	want := []Change{
		{Name: "added", Added: true, New: Cut{Middle: "x"}},
		{Name: "removed", Removed: true, Old: Cut{Middle: "y"}},
		{Name: "number", Old: Cut{Middle: "1"}, New: Cut{Middle: "2"}},
		{Name: "type", Old: Cut{Middle: "1"}, New: Cut{Middle: `"1"`}},
	}
	if diff := cmp.Diff(want, got); diff != "" || !complete {
		t.Errorf("complete %v, -want +got:\n%s", complete, diff)
	}
	if _, complete := compareSent([]events.Change{{Name: "large"}}); complete {
		t.Error("a change that did not travel counts as complete")
	}
	compared := only(compareVersions([]string{"a", "b", "c"}, []byte(`{"a":"1","b":"2"}`), []byte(`{"a":"9","c":"3"}`)))
	if diff := cmp.Diff([]Change{
		{Name: "a", Old: Cut{Middle: "1"}, New: Cut{Middle: "9"}},
		{Name: "b", Removed: true, Old: Cut{Middle: "2"}},
		{Name: "c", Added: true, New: Cut{Middle: "3"}},
	}, compared); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if whole := compareVersions([]string{""}, []byte(`"old"`), []byte(`"new"`)); whole[0].New.Middle != "new" {
		t.Errorf("%+v", whole)
	}
}

func TestB46ATextThatLooksTheSameIsSeenToDiffer(t *testing.T) {
	for _, c := range []struct{ name, before, now, old, new string }{
		{"composed another way", "caf\u00e9", "cafe\u0301", "⟨U+00E9⟩", "e⟨U+0301⟩"},
		{"a Latin word in Cyrillic", "scope", "ѕсоре", "scope", "⟨U+0455⟩⟨U+0441⟩⟨U+043E⟩⟨U+0440⟩⟨U+0435⟩"},
		{"a ligature", "\ufb01le", "file", "⟨U+FB01⟩", "fi"},
		{"another word in Cyrillic", "сахар", "роса", "сахар", "роса"},
		{"an accent more", "cafe", "café", "e", "é"},
		{"the same written another way", "", "", "", ""},
		{"a string of an object", `{"k":"a long value, so that it would be laid out in lines"}`, "", "", ""},
	} {
		t.Run("B46 "+c.name, func(t *testing.T) {
			if c.before == "" {
				if got := compare("x", json.RawMessage(`"\u0061"`), raw("a")); got.Old.Middle != `\u0061` || got.New.Middle != "a" {
					t.Errorf("%+v", got)
				}
				return
			}
			if c.now == "" {
				got := compare("x", raw(c.before), json.RawMessage(c.before))
				if got.Old.Middle == got.New.Middle || !strings.HasPrefix(got.old, `"{`) {
					t.Errorf("%+v", got)
				}
				return
			}
			if got := compare("x", raw(c.before), raw(c.now)); got.Old.Middle != c.old || got.New.Middle != c.new {
				t.Errorf("%q, now %q", got.Old.Middle, got.New.Middle)
			}
		})
	}
}

func TestB47CutAroundTheChange(t *testing.T) {
	long := strings.Repeat("a long text without a change, ", 3000)
	c := compare("x", raw(long+"path: a"+long), raw(long+"path: b"+long))
	if c.Old.Middle != "a" || c.New.Middle != "b" {
		t.Fatalf("old %q, new %q", c.Old.Middle, c.New.Middle)
	}
	if !strings.HasSuffix(c.New.Lead, "path: ") || len(c.New.Lead) != lead || len(c.New.Trail) != lead {
		t.Errorf("around it: %q, %q", c.New.Lead, c.New.Trail)
	}
	if total := c.New.Before + len(c.New.Lead+c.New.Middle+c.New.Trail) + c.New.After; total != 2*len(long)+7 {
		t.Errorf("%d bytes are accounted for, not %d", total, 2*len(long)+7)
	}
}

func TestB47NothingIsLostAndNoCharacterIsCut(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"a", "b ", "\n", "é", "e\u0301", "中", "👩‍👩‍👧", "\u202e", "\r\n", "⟨", "pа", strings.Repeat("k", 60)})
	rapid.Check(t, func(r *rapid.T) {
		text := func(name string) string { return strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(r, name), "") }
		head, tail := text("head"), text("tail")
		o, n := Escape(head+text("old")+tail), Escape(head+text("new")+tail)
		before, now := cutAround(o, n)
		for _, x := range []struct {
			whole string
			cut   Cut
		}{{o, before}, {n, now}} {
			shown := x.cut.Lead + x.cut.Middle + x.cut.Trail
			if !strings.Contains(x.whole, shown) {
				r.Fatalf("%q shows what is not there: %q", x.whole, shown)
			}
			if got := x.cut.Before + len(Unescape(shown)) + x.cut.After; got != len(Unescape(x.whole)) {
				r.Fatalf("%q: %d bytes accounted for, not %d (%+v)", x.whole, got, len(Unescape(x.whole)), x.cut)
			}
		}
		if before.Lead != now.Lead || before.Trail != now.Trail {
			r.Fatalf("what did not change differs: %+v, %+v", before, now)
		}
	})
}

func TestFormat(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 80113: "80,113", 1234567: "1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0:00", 4 * time.Second: "0:04", 70 * time.Second: "1:10", time.Hour + 4*time.Second: "1:00:04",
	} {
		if got := Clock(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
	if Took(3100*time.Millisecond, words.In(words.English)) != "3.1 s" || Took(2*time.Minute, words.In(words.English)) != "2:00" {
		t.Error("how long a person took")
	}
}

func TestB101Origin(t *testing.T) {
	for _, c := range []struct {
		name          string
		scope         events.Scope
		file          string
		project, home string
		want          string
	}{
		{"in the project", events.ScopeProject, "/home/ana/p/.fermata/hooks.yaml", "/home/ana/p", "/home/ana", "project .fermata/hooks.yaml:1204"},
		{"below home", events.ScopeProject, "/home/ana/q/hooks.yaml", "/home/ana/p", "/home/ana", "project ~/q/hooks.yaml:1204"},
		{"beside home", events.ScopeProject, "/home/anabel/hooks.yaml", "/home/ana/p", "/home/ana", "project /home/anabel/hooks.yaml:1204"},
		{"home unknown", events.ScopeProject, "/home/ana/q/hooks.yaml", "/home/ana/p", "", "project /home/ana/q/hooks.yaml:1204"},
		{"global", events.ScopeGlobal, "/home/ana/.config/fermata/hooks.yaml", "/home/ana", "/home/ana", "global hooks.yaml:1204"},
		{"escaped", events.ScopeProject, "/home/ana/\u202eq.yaml", "/p", "/home/ana", "project ~/⟨U+202E⟩q.yaml:1204"},
		{"no file", events.ScopeGlobal, "", "", "", "global :1204"},
	} {
		h := events.Hook{Scope: c.scope, File: c.file, Line: 1204}
		if got := Origin(h, c.project, c.home, words.In(words.English)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
