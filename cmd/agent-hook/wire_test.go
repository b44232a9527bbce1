package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// What agent-hook writes by hand is what events describes.
func TestLineIsAHookCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id, secret, err := identity(time.UnixMilli(rapid.Int64Range(0, 1<<47).Draw(t, "ms")))
		if err != nil {
			t.Fatal(err)
		}
		c := call{
			operation: id, secret: secret, agent: "generic", event: rapid.String().Draw(t, "event"),
			stdin: rapid.SliceOf(rapid.Byte()).Draw(t, "stdin"), pid: 7, ppid: 8, cwd: rapid.String().Draw(t, "cwd"),
			timeout: rapid.SampledFrom([]float64{0, 0.001, 1.5, 1e9}).Draw(t, "timeout"), pane: rapid.String().Draw(t, "pane"),
		}
		line := c.line()
		got, err := agents.DecodeCall(line[:len(line)-1])
		if err != nil {
			t.Fatal(err)
		}
		want := events.HookCall{
			V: 1, Operation: events.ID(id), Secret: secret, Agent: c.agent, Event: c.event, Stdin: string(c.stdin),
			PID: 7, PPID: 8, Cwd: c.cwd, Timeout: c.timeout, Pane: c.pane,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestPaneIsThatOfEvents: what the environment says is a pane that the core reads.
func TestPaneIsThatOfEvents(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want events.Pane
	}{
		{"none", map[string]string{"TERM": "xterm"}, events.Pane{}},
		{"tmux", map[string]string{"TMUX": "/tmp/tmux-1000/default,4711,0", "TMUX_PANE": "%3"}, events.Pane{Multiplexer: "tmux", Server: "/tmp/tmux-1000/default", ID: "%3"}},
		{"a comma in a socket's name", map[string]string{"TMUX": "/tmp/a,b,4711,0", "TMUX_PANE": "%12"}, events.Pane{Multiplexer: "tmux", Server: "/tmp/a,b", ID: "%12"}},
		{"zellij", map[string]string{"ZELLIJ_SESSION_NAME": "calm tree", "ZELLIJ_PANE_ID": "5"}, events.Pane{Multiplexer: "zellij", Server: "calm tree", ID: "5"}},
		{"tmux inside zellij", map[string]string{
			"ZELLIJ_SESSION_NAME": "s", "ZELLIJ_PANE_ID": "5", "TMUX": "/t,1,2", "TMUX_PANE": "%0",
		}, events.Pane{Multiplexer: "tmux", Server: "/t", ID: "%0"}},
		{"half of it", map[string]string{"TMUX_PANE": "%3", "ZELLIJ_PANE_ID": "5"}, events.Pane{}},
	} {
		said := pane(func(name string) string { return c.env[name] })
		got, ok := events.ParsePane(said)
		if got != c.want || ok == (c.want == events.Pane{}) || said != c.want.String() {
			t.Errorf("%s: %q is %+v, %v", c.name, said, got, ok)
		}
	}
}

func TestULIDIsThatOfEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, "ms"))
		entropy := [10]byte(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "entropy"))
		if got, want := ulid(uint64(at.UnixMilli()), entropy), string(events.NewID(at, entropy)); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

func TestReplyIsAHookLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := events.HookLine{
			Accepted: rapid.Bool().Draw(t, "accepted"), Exit: rapid.IntRange(0, 300).Draw(t, "exit"),
			Stdout: rapid.String().Draw(t, "stdout"), Stderr: rapid.String().Draw(t, "stderr"),
		}
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := parseReply(b)
		if want := (reply{l.Accepted, l.Exit, l.Stdout, l.Stderr}); !ok || r != want {
			t.Fatalf("%s was read as %+v, %v", b, r, ok)
		}
	})
}

// Whatever agent-hook understands, encoding/json understands the same way.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		`{"exit":0,"stdout":"","stderr":""}`, `{"accepted":true,"exit":0,"stdout":"","stderr":""}`,
		`{"exit":2,"stdout":"\u00e9\ud83d\ude00\/\b\f\n\r\t\"\\","stderr":"x"}`, `{"exit":0,"stdout":"\ud800","stderr":""}`,
		`{"exit":00,"stdout":"","stderr":""}`, `{"exit":0,"stdout":"`, "{\"exit\":0,\"stdout\":\"\xff\",\"stderr\":\"\"}", `{}`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok := parseReply(b)
		if !ok {
			return
		}
		var l events.HookLine
		if err := json.Unmarshal(b, &l); err != nil {
			t.Fatalf("%q was understood, but is no JSON: %v", b, err)
		}
		if want := (reply{l.Accepted, l.Exit, l.Stdout, l.Stderr}); r != want {
			t.Fatalf("%q was read as %+v, want %+v", b, r, want)
		}
	})
}
