package core

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestB38Merge(t *testing.T) {
	for _, c := range []struct{ args, override, want string }{
		{`{}`, `{}`, `{}`},
		{`{"a":1}`, `{}`, `{"a":1}`},
		{`{}`, `{"a":1}`, `{"a":1}`},
		{`{"a":1,"c":3}`, `{"b":2,"c":4}`, `{"a":1,"b":2,"c":4}`},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"x":3}}`, `{"a":{"x":3}}`}, // the top level only
		{`{"a":1}`, `{"a":null}`, `{"a":null}`},                   // null is a value
		{` { "b" : 1.0 , "a" : 2 } `, `{"\u0062":1}`, `{"a":2,"b":1}`},
		{"{\"\ue000\":1}", "{\"\U0001f600\":2}", "{\"\U0001f600\":2,\"\ue000\":1}"},
	} {
		got, err := Merge([]byte(c.args), []byte(c.override))
		if err != nil || string(got) != c.want {
			t.Errorf("%s + %s = %s (%v), want %s", c.args, c.override, got, err, c.want)
		}
	}
	for _, c := range []struct{ args, override, want string }{
		{`[1]`, `{}`, "arguments to change: no canonical JSON, byte 0: not an object"},
		{`{}`, ` "a"`, "args_override: no canonical JSON, byte 1: not an object"},
		{`{"a":1,"a":2}`, `{}`, "arguments to change: no canonical JSON, byte 7: this name occurs twice in its object"},
		{`{}`, `{`, "args_override: no canonical JSON, byte 1: ends where a name in quotes should stand"},
	} {
		if got, err := Merge([]byte(c.args), []byte(c.override)); err == nil || err.Error() != c.want || got != nil {
			t.Errorf("%s + %s = %s (%v), want %s", c.args, c.override, got, err, c.want)
		}
	}
}

func TestB46ChangedNames(t *testing.T) {
	for _, c := range []struct {
		old, new string
		want     []string
	}{
		{`{"a":1}`, `{"a":1}`, nil},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, nil}, // canonically equal
		{`{"a":1}`, `{"a":1.0}`, []string{"a"}}, // tokens are kept, so they count
		{`{"b":1,"c":[1],"gone":0}`, `{"a":0,"b":2,"c":[1]}`, []string{"a", "b", "gone"}},
		{`{}`, `{"":1}`, []string{""}},
		{`[1]`, `[1]`, nil},
		{`[1]`, `[2]`, []string{""}},
		{`{}`, `null`, []string{""}},
		{``, `{}`, []string{""}},
		{"{\"\ue000\":1}", "{\"\U0001f600\":2}", []string{"\U0001f600", "\ue000"}},
	} {
		if diff := cmp.Diff(c.want, ChangedNames([]byte(c.old), []byte(c.new))); diff != "" {
			t.Errorf("%s → %s:\n%s", c.old, c.new, diff)
		}
	}
}

// FuzzMerge holds Merge and ChangedNames against maps of encoding/json.
func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"a":1,"c":3}`), []byte(`{"b":2,"c":4}`))
	f.Add([]byte(`{"a":{"x":1}}`), []byte(`{"\u0061":{"x":1}}`))
	f.Add([]byte(`{}`), []byte(`[]`))
	f.Add([]byte("{\"\ue000\":1}"), []byte("{\"\U0001f600\":2}"))
	f.Fuzz(func(t *testing.T, args, override []byte) {
		a, err1 := Canonical(args)
		o, err2 := Canonical(override)
		objects := err1 == nil && err2 == nil && a[0] == '{' && o[0] == '{'
		got, err := Merge(args, override)
		if (err == nil) != objects {
			t.Fatalf("%q + %q: %v", args, override, err)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "byte") {
				t.Fatalf("%v does not say where", err)
			}
			return
		}
		if form, err := Canonical(got); err != nil || string(form) != string(got) {
			t.Fatalf("%q is not canonical (%v)", got, err)
		}
		before, over := members(t, a), members(t, o)
		want := maps.Clone(before)
		maps.Copy(want, over)
		if diff := cmp.Diff(want, members(t, got)); diff != "" {
			t.Fatal(diff)
		}
		var changed []string
		for name, value := range over {
			if before[name] != value {
				changed = append(changed, name)
			}
		}
		slices.SortFunc(changed, func(a, b string) int { return compareUTF16([]byte(a), []byte(b)) })
		if diff := cmp.Diff(changed, ChangedNames(args, got)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func members(t *testing.T, object []byte) map[string]string {
	t.Helper()
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(object, &raw); err != nil {
		t.Fatalf("%q: %v", object, err)
	}
	m := make(map[string]string, len(raw))
	for name, value := range raw {
		m[name] = string(value)
	}
	return m
}
