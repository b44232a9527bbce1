package hooks

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// BenchmarkProcess compares a hook's process with the bare start of the same
// program, in one run.
func BenchmarkProcess(b *testing.B) {
	h := guard
	h.Run = Run{Type: RunCommand, Argv: []string{"/bin/true"}, ResultFrom: FromFile}
	h.Timeout = defaultTimeout
	in := (&room{cwd: b.TempDir()}).input()
	run := NewRunner(RunnerOptions{TempDir: b.TempDir(), Environ: []string{"PATH=/usr/bin:/bin"}})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hook", func(b *testing.B) {
		for b.Loop() {
			if r := run(b.Context(), h, in); r.Effect != events.EffectAllow {
				b.Fatal(r.Reason)
			}
		}
	})
}

// BenchmarkRule is what a rule without a program costs: finding it among
// others, and carrying it out.
func BenchmarkRule(b *testing.B) {
	var text strings.Builder
	text.WriteString("hooks:\n")
	for range 19 {
		text.WriteString("- {id: n" + strings.Repeat("x", text.Len()%500) + ", event: before_tool_call, run: {type: verdict, action: block}, " +
			"execution: {mode: blocking}, match: {tool_kind: shell, args: {command: {regex: '\\bshutdown\\b'}}}}\n")
	}
	text.WriteString("- {id: ask, event: before_tool_call, run: {type: verdict, action: ask}, execution: {mode: blocking}, " +
		"match: {tool_kind: shell, args: {command: {regex: '\\brm\\b'}}}}\n")
	set, err := newSet("/h/hooks.yaml", "/h", []byte(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	run := NewRunner(RunnerOptions{})
	in := Input{Payload: Payload{Event: events.BeforeToolCall, Args: shellCall.Args}}
	b.Run("plan of 20", func(b *testing.B) {
		for b.Loop() {
			if len(set.Plan(shellCall)) != 1 {
				b.Fatal("not in the plan")
			}
		}
	})
	b.Run("verdict", func(b *testing.B) {
		for b.Loop() {
			if r := run(b.Context(), set.Hook(19), in); r.Effect != events.EffectAsk {
				b.Fatal(r)
			}
		}
	})
}
