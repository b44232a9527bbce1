package agents_test

import (
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/core/agents"
)

func TestKindNameIsAddedAndTakenAway(t *testing.T) {
	cases := []struct {
		name, kind, original, added string
		checked, own                string // own "" = an error
	}{
		{
			"added", "filesystem.write", `{"file_path":"a","content":"x"}`, `{"file_path":"a","content":"x","path":"a"}`,
			`{"content":"x","file_path":"a","path":"a"}`, `{"content":"x","file_path":"a"}`,
		},
		{
			"the hook wrote the kind's name", "filesystem.write", `{"file_path":"a"}`, `{"file_path":"a","path":"a"}`,
			`{"file_path":"a","path":"b"}`, `{"file_path":"b"}`,
		},
		{
			"the hook wrote the agent's name", "filesystem.write", `{"file_path":"a"}`, `{"file_path":"a","path":"a"}`,
			`{"file_path":"b","path":"a"}`, `{"file_path":"b"}`,
		},
		{
			"both alike", "filesystem.read", `{"absolute_path":"a"}`, `{"absolute_path":"a","path":"a"}`,
			`{"absolute_path":"b","path":"b"}`, `{"absolute_path":"b"}`,
		},
		{
			"both unlike", "filesystem.read", `{"absolute_path":"a"}`, `{"absolute_path":"a","path":"a"}`,
			`{"absolute_path":"b","path":"c"}`, "",
		},
		{
			"escapes are no difference", "filesystem.read", `{"file_path":"\u00e9\/"}`, `{"file_path":"\u00e9\/","path":"\u00e9\/"}`,
			`{"file_path":"é/","path":"b"}`, `{"file_path":"b"}`,
		},
		{
			"already there", "filesystem.write", `{"file_path":"a","path":"a"}`, `{"file_path":"a","path":"a"}`,
			`{"file_path":"a","path":"q"}`, `{"file_path":"a","path":"q"}`,
		},
		{"no such name", "filesystem.write", `{"content":"a"}`, `{"content":"a"}`, `{"content":"b"}`, `{"content":"b"}`},
		{"other kind", "search", `{"file_path":"a"}`, `{"file_path":"a"}`, `{"file_path":"a"}`, `{"file_path":"a"}`},
		{"shell", "shell", `{"cmd":"ls"}`, `{"cmd":"ls","command":"ls"}`, `{"cmd":"ls","command":"id"}`, `{"cmd":"id"}`},
		{"lost", "shell", `{"cmd":"ls"}`, `{"cmd":"ls","command":"ls"}`, `{"command":"id"}`, ""},
		{"no object", "shell", `[1]`, `[1]`, `[1]`, `[1]`},
		{"twice", "shell", `{"cmd":"a","cmd":"b"}`, `{"cmd":"a","cmd":"b"}`, `{"cmd":"b"}`, `{"cmd":"b"}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, err := agents.AddKindName([]byte(c.original), c.kind); err != nil || string(got) != c.added {
				t.Errorf("added: %s, %v, want %s", got, err, c.added)
			}
			got, err := agents.OwnNames([]byte(c.checked), []byte(c.original), c.kind)
			if c.own == "" {
				if err == nil {
					t.Errorf("got %s, want an error", got)
				}
			} else if err != nil || string(got) != c.own {
				t.Errorf("own names: %s, %v, want %s", got, err, c.own)
			}
		})
	}
}

func TestReadObject(t *testing.T) {
	for in, word := range map[string]string{
		"": "nothing", " \n": "nothing", "[]": "expected", "null": "expected", `"x"`: "expected", "\ufeff{}": "expected",
		`{"a":1`: "not a JSON object", `{"a":1,}`: "not a JSON object", `{"a":01}`: "not a JSON object", `{1:2}`: "not a JSON object",
		`{"a":1}{}`: "follows", `{} x`: "follows", "{\"a\":\"\xff\"}": "UTF-8", `{"a":1,"a":2}`: "twice", `{"a":1,"\u0061":2}`: "twice",
		`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`: "not a JSON object",
	} {
		if o, err := agents.ReadObject([]byte(in)); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%.40q: %v, %v; want an error that says %q", in, o, err, word)
		}
	}
	o, err := agents.ReadObject([]byte(` {"a":"x","A":"y","n":1.0,"half":"\ud800","whole":"\ud83d\ude00","r":"\ufffd","z":null} `))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "x", "A": "y", "whole": "😀", "r": "\ufffd", "z": "", "absent": ""} {
		if got, err := o.Text(name); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"n", "half"} {
		if got, err := o.Text(name); err == nil {
			t.Errorf("%s: %q, want an error", name, got)
		}
	}
	if _, err := o.Need("z"); err == nil {
		t.Error("Need took a null")
	}
}

// A rule looks at one name of an argument; the tool may take another.
func TestB61NamesThatContradictEachOther(t *testing.T) {
	for _, args := range []string{
		`{"file_path":"/etc/passwd","path":"/tmp/ok"}`,
		`{"absolute_path":"/etc/passwd","file_path":"/tmp/ok"}`,
		`{"path":"/tmp/ok","notebook_path":"/etc/passwd"}`,
	} {
		if got, err := agents.AddKindName([]byte(args), "filesystem.write"); err == nil {
			t.Errorf("%s became %s", args, got)
		}
	}
}
