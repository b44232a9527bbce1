package main

import (
	"bufio"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// BenchmarkStart measures a call against a socket that answers at once, and the
// two floors beside it, interleaved. The budget is ≤ 3.5 × /bin/true and
// ≤ 1.3 × a Go program that reads its stdin and exits; run it on a quiet
// machine with -benchtime 300x.
func BenchmarkStart(b *testing.B) {
	h := newHome(b)
	l := h.listen()
	go answerAtOnce(l, wire(b, events.HookLine{Accepted: true})+wire(b, events.HookLine{}))
	programs := []func() *exec.Cmd{
		func() *exec.Cmd { return exec.Command("/bin/true") },
		func() *exec.Cmd { return exec.Command(filepath.Join(built, "floor")) },
		func() *exec.Cmd { return h.command(payload, "generic", "before_tool_call") },
	}
	times := make([][]time.Duration, len(programs))
	for b.Loop() {
		for i, program := range programs {
			cmd := program()
			cmd.Stdin = strings.NewReader(payload)
			began := time.Now()
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
			times[i] = append(times[i], time.Since(began))
		}
	}
	median := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Microseconds())
	}
	hook := median(times[2])
	b.ReportMetric(hook/median(times[0]), "×/bin/true")
	b.ReportMetric(hook/median(times[1]), "×go-floor")
	b.ReportMetric(hook, "µs/call")
	b.ReportMetric(0, "ns/op")
}

// answerAtOnce is a core that allows every call as soon as it has read it.
func answerAtOnce(l net.Listener, lines string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			in := bufio.NewReader(c)
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			if _, err := c.Write([]byte(lines)); err != nil {
				return
			}
			_, _ = in.ReadString('\n')
		}()
	}
}
