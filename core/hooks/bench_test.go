package hooks

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// BenchmarkHook takes turns between the bare start of a program and the same
// program as a hook: what Fermata adds to it is the difference, and both are
// measured under the same load.
func BenchmarkHook(b *testing.B) {
	h := guard
	h.Run = Run{Type: RunCommand, Argv: []string{"/bin/true"}, ResultFrom: FromFile}
	h.Timeout = defaultTimeout
	in := (&room{cwd: b.TempDir()}).input()
	run := NewRunner(RunnerOptions{TempDir: b.TempDir(), Environ: os.Environ()})
	var bare, hook time.Duration
	for b.Loop() {
		started := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if r := run(b.Context(), h, in); r.Effect != events.EffectAllow {
			b.Fatal(r.Reason)
		}
		bare, hook = bare+between.Sub(started), hook+time.Since(between)
	}
	perRun(b, bare, "bare-µs")
	perRun(b, hook, "hook-µs")
	perRun(b, hook-bare, "added-µs")
	b.ReportMetric(float64(hook)/float64(bare), "ratio")
	b.ReportMetric(0, "ns/op")
}

// perRun reports a duration that all runs took together.
func perRun(b *testing.B, total time.Duration, unit string) {
	b.ReportMetric(float64(total)/float64(time.Microsecond)/float64(b.N), unit)
}

// BenchmarkExchange is what the files of a run cost where the system keeps its
// temporary files. In memory it is a tenth of that on a disk.
func BenchmarkExchange(b *testing.B) {
	payload, dir := (&room{cwd: "/w"}).input().Payload.Encode(), b.TempDir()
	for b.Loop() {
		x, err := newExchange(dir, payload)
		if err != nil {
			b.Fatal(err)
		}
		x.remove()
	}
}

// BenchmarkVerdictRule is what a rule without a program costs, beside the bare
// start of a program: finding the one that matches among twenty, and carrying
// it out.
func BenchmarkVerdictRule(b *testing.B) {
	const rules = 20
	var text strings.Builder
	text.WriteString("hooks:\n")
	for i := range rules {
		word := "shutdown"
		if i == rules-1 {
			word = "rm"
		}
		fmt.Fprintf(&text, "- {id: rule%d, event: before_tool_call, run: {type: verdict, action: ask}, execution: {mode: blocking}, "+
			"match: {tool_kind: shell, args: {command: {regex: '\\b%s\\b'}}}}\n", i, word)
	}
	set, err := newSet("/h/hooks.yaml", "/h", []byte(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	run := NewRunner(RunnerOptions{})
	in := Input{Payload: Payload{Event: events.BeforeToolCall, Args: shellCall.Args}}
	const starts = 50
	started := time.Now()
	for range starts {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
	bare := time.Since(started) / starts
	var planning, deciding time.Duration
	for b.Loop() {
		started := time.Now()
		plan := set.Plan(shellCall)
		between := time.Now()
		if r := run(b.Context(), set.Hook(plan[0].Index), in); r.Effect != events.EffectAsk {
			b.Fatal(r)
		}
		planning, deciding = planning+between.Sub(started), deciding+time.Since(between)
	}
	perRun(b, planning/rules, "plan-µs/rule")
	perRun(b, deciding, "verdict-µs")
	perRun(b, bare*time.Duration(b.N), "bare-µs")
	b.ReportMetric(float64(planning/rules+deciding)/float64(b.N)/float64(bare), "ratio")
	b.ReportMetric(0, "ns/op")
}
