package hooks

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

func TestLingeringChildDoesNotHold(t *testing.T) {
	r := newRoom(t)
	got := r.run(r.shell("sleep 9 & echo $!; echo talk >&2; " + writeAsk))
	if got.Effect != events.EffectAsk || got.Duration > 3*time.Second || got.Stderr != "talk\n" {
		t.Errorf("%+v", got)
	}
	endProcess(t, got.Stdout)
}

// endProcess ends a process whose id a script printed.
func endProcess(t *testing.T, printed string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(printed))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error("a child that a finished hook left behind is its own affair:", err)
	}
}

func TestLimitEndsTheWholeGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		exit int
	}{
		"TERM is enough":         {"sleep 60 & echo $!; wait", 143},
		"TERM is ignored":        {"trap '' TERM; sleep 60 & echo $!; wait; wait; sleep 60", 137},
		"only the child ignores": {"(trap '' TERM; exec sleep 60) & echo $!; wait", 143},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			got := r.run(r.shell(tc.text, "timeout_seconds: 1"))
			refused(t, got, events.CodeHookTimedOut, "did not end within 1s")
			if got.Duration > 4*time.Second || got.Exit != tc.exit {
				t.Errorf("took %s, exit %d", got.Duration, got.Exit)
			}
			if child, err := strconv.Atoi(strings.TrimSpace(got.Stdout)); err != nil || alive(child) {
				t.Errorf("the child %q lives on: %v", got.Stdout, err)
			}
		})
	}
}

// alive reports whether a process still runs, after giving the kernel time to
// end it. A killed one whose new parent has not yet waited for it is a zombie,
// which does not run.
func alive(pid int) bool {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return false
		}
		state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if err != nil || strings.HasPrefix(strings.TrimSpace(string(state)), "Z") {
			return false
		}
	}
	return true
}

func TestCancelEndsTheRun(t *testing.T) {
	r := newRoom(t)
	ready := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	h := r.shell(writeAsk + "echo $$; : >" + ready + "; sleep 60")
	for _, on := range []OnError{OnErrorBlock, OnErrorWarn} {
		h.OnError = on
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan Result)
		go func() { done <- r.runWith(ctx, h) }()
		if _, err := os.ReadFile(ready); err != nil { // returns once the script has opened it
			t.Fatal(err)
		}
		cancel()
		got := <-done
		if got.Outcome != events.RunAbandoned || got.Effect != events.EffectBlock || got.Duration > 3*time.Second {
			t.Errorf("%+v", got)
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(got.Stdout)); err != nil || alive(pid) {
			t.Error("the script lives on:", got.Stdout, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.runWith(ctx, r.shell("true")); got.Outcome != events.RunAbandoned || got.Effect != events.EffectBlock {
		t.Errorf("cancelled before the start: %+v", got)
	}
}

func TestOutputFlood(t *testing.T) {
	r := newRoom(t)
	got := r.run(r.shell("echo begin; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end; echo begin >&2; head -c 3000000 /dev/zero >&2; echo end >&2"))
	if got.Effect != events.EffectAllow {
		t.Fatalf("%+v", got.Reason)
	}
	for name, text := range map[string]string{"stdout": got.Stdout, "stderr": got.Stderr} {
		if !strings.HasPrefix(text, "begin\n") || !strings.HasSuffix(text, "end\n") || !strings.Contains(text, " bytes left out]") {
			t.Errorf("%s: %.20q … %.20q", name, text, text[len(text)-20:])
		}
		if len(text) < 256<<10 || len(text) > 256<<10+64 {
			t.Errorf("%s: %d bytes are kept", name, len(text))
		}
	}
	endless := r.run(r.shell("yes", "timeout_seconds: 0.3"))
	refused(t, endless, events.CodeHookTimedOut, "did not end")
}

func TestFailureQuotesTheBeginningOfStderr(t *testing.T) {
	r := newRoom(t)
	got := r.run(r.shell(`head -c 500 /dev/zero | tr '\0' x >&2; printf '\377' >&2; exit 1`))
	refused(t, got, events.CodeHookFailed, "exit status 1: "+strings.Repeat("x", 200))
	if strings.Contains(got.Reason, strings.Repeat("x", 201)) || !strings.HasSuffix(got.Stderr, "x\uFFFD") {
		t.Errorf("%q %q", got.Reason, got.Stderr)
	}
}

func TestStdinNeedNotBeRead(t *testing.T) {
	r := newRoom(t)
	in := r.input()
	in.Payload.Args = []byte(`{"a":"` + strings.Repeat("x", 4<<20) + `"}`)
	run := NewRunner(RunnerOptions{TempDir: r.tmp, Environ: r.environ})
	for _, text := range []string{"true", "exec <&-; " + writeAsk, "head -c 1; " + writeAsk} {
		if got := run(t.Context(), r.shell(text), in); got.Outcome != events.RunOK || got.Exit != 0 {
			t.Errorf("%s: %+v", text, got.Reason)
		}
	}
}
