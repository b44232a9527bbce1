package events_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fermata-hitl/fermata/events"
)

func TestAbout(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{`{"content":"x","command":"ls -l"}`, "ls -l"},
		{`{"command":"echo a\ntouch M"}`, "echo a …"},
		{`{"command":"\n\nrm -r x\n"}`, "rm -r x"},
		{`{"b":1,"note":"hello"}`, "hello"},
		{`{"b":[1,2]}`, "[1,2]"},
		{`{}`, ""},
		{`{"Description":"List files","script":"rm -r x"}`, "rm -r x"},
		{`{"description":"only words"}`, ""},
		{`"a prompt\nof two lines"`, "a prompt …"},
		{`{"command":5,"path":"/a"}`, "/a"},
		{`no json`, "no json"},
	} {
		if got := events.About([]byte(c.args)); got != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
}

func FuzzAbout(f *testing.F) {
	f.Add([]byte(`{"command":"ls"}`))
	long, _ := json.Marshal(map[string]string{"command": strings.Repeat("é", 500)})
	f.Add(long)
	f.Add([]byte(`{"a":`))
	f.Fuzz(func(t *testing.T, args []byte) {
		got := events.About(args)
		if len(got) > 250 || strings.Contains(got, "\n") {
			t.Errorf("%q is no line", got)
		}
		if utf8.Valid(args) && !utf8.ValidString(got) {
			t.Errorf("%q was cut inside a character", got)
		}
	})
}

func TestPane(t *testing.T) {
	for _, s := range []string{"tmux:%3:/tmp/tmux-1000/default", "zellij:7:brave-horse"} {
		p, ok := events.ParsePane(s)
		if !ok || p.String() != s {
			t.Errorf("%q: %v, %v", s, p, ok)
		}
	}
	for _, s := range []string{
		"", "tmux", "tmux:%:/s", "tmux:3:/s", "tmux:%3:relative", "tmux:%3:", "tmux:%3;x:/s", "tmux:%3:/s\x1b",
		"zellij::a", "zellij:x:a", "zellij:1:-a", "zellij:1:a/b", "screen:1:a", "tmux:%3:/" + strings.Repeat("s", 600),
	} {
		if p, ok := events.ParsePane(s); ok {
			t.Errorf("%q was read as %v", s, p)
		}
	}
}

func FuzzParsePane(f *testing.F) {
	f.Add("tmux:%3:/tmp/tmux-1000/default")
	f.Add("zellij:7:brave-horse")
	f.Fuzz(func(t *testing.T, s string) {
		if p, ok := events.ParsePane(s); ok && p.String() != s {
			t.Errorf("%q came back as %q", s, p.String())
		}
	})
}
