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
			timeout: rapid.SampledFrom([]float64{0, 0.001, 1.5, 1e9}).Draw(t, "timeout"),
		}
		line := c.line()
		got, err := agents.DecodeCall(line[:len(line)-1])
		if err != nil {
			t.Fatal(err)
		}
		want := events.HookCall{
			V: 1, Operation: events.ID(id), Secret: secret, Agent: c.agent, Event: c.event, Stdin: string(c.stdin),
			PID: 7, PPID: 8, Cwd: c.cwd, Timeout: c.timeout,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
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
