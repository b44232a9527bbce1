package hooks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
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

// A reader that a busy machine kept from its turn leaves in the pipe what the
// process wrote. A child that writes on must not hold the core.
func TestOutputThatWasNotReadInTime(t *testing.T) {
	const wrote = 50_000
	for limit, most := range map[int]int{largestPipe: wrote, 2 * readSize: 2 * readSize} {
		o, err := newOutput(keptHead)
		if err != nil {
			t.Fatal(err)
		}
		defer o.close()
		if _, err := o.write.WriteString(strings.Repeat("x", wrote)); err != nil {
			t.Fatal(err)
		}
		o.takeRest(limit) // the writer is still there, and nothing more comes
		if o.kept.total != most || o.kept.text() != strings.Repeat("x", most) {
			t.Errorf("%d of at most %d bytes are taken", o.kept.total, limit)
		}
	}
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

// A verdict that comes after the process has ended is none, and finds no file
// to be written to.
func TestB35VerdictThatComesLate(t *testing.T) {
	r := newRoom(t)
	end, out := pipe(t), pipe(t)
	late := fmt.Sprintf(`(: <%s; printf '{"action":"ask"}' >"$CHRYS_HOOK_RESULT"; echo $? >%s) 2>/dev/null & exit 0`, end, out)
	if got := r.run(r.shell(late)); got.Effect != events.EffectAllow || got.Outcome != events.RunOK {
		t.Errorf("%+v", got)
	}
	if !r.empty() {
		t.Error("the files are still there")
	}
	release(t, end)
	if status := take(t, out); status == "0" {
		t.Error("the late verdict was written somewhere")
	}
}

func TestProcessThatTakesItsFilesAway(t *testing.T) {
	r := newRoom(t)
	for _, text := range []string{
		`rm "$CHRYS_HOOK_PAYLOAD_FILE" "$CHRYS_HOOK_RESULT"`,
		`rm -r "${CHRYS_HOOK_RESULT%/*}"`,
		`cd "${CHRYS_HOOK_RESULT%/*}"; mkdir -p a/b; : >a/b/c; chmod 500 a/b`,
	} {
		if got := r.run(r.shell(text)); got.Effect != events.EffectAllow || got.Outcome != events.RunOK {
			t.Errorf("%s: %+v", text, got)
		}
		refused(t, r.run(r.shell(text, "require_result: true")), events.CodeHookBadVerdict, "it gave no result")
	}
	// What cannot be read is no opinion that would allow, and is removed too.
	refused(t, r.run(r.shell(`d="${CHRYS_HOOK_RESULT%/*}"; rm -r "$d"; : >"$d"`)), events.CodeHookBadVerdict, "not readable")
	closed := r.run(r.shell(`chmod 000 "${CHRYS_HOOK_RESULT%/*}"`))
	if reads := os.Getuid() == 0; reads != (closed.Effect == events.EffectAllow) { // the superuser can enter
		t.Errorf("%+v", closed)
	}
}

func TestHAND04ManyAtOnce(t *testing.T) {
	r := newRoom(t)
	results := make([]Result, 64)
	var group sync.WaitGroup
	for i := range results {
		h := r.shell(fmt.Sprintf(`cat >/dev/null; head -c 100000 /dev/zero; printf '{"action":"ask","reason":"%d"}' >"$CHRYS_HOOK_RESULT"`, i), "timeout_seconds: 60")
		group.Go(func() { results[i] = r.run(h) })
	}
	group.Wait()
	for i, got := range results {
		if got.Effect != events.EffectAsk || got.Reason != strconv.Itoa(i) || len(got.Stdout) != 100_000 {
			t.Errorf("%d: %s %q, %d bytes", i, got.Effect, got.Reason, len(got.Stdout))
		}
	}
}

func TestWorkingDirectoriesOfAnyName(t *testing.T) {
	for _, name := range []string{
		"a b  c", "$(touch owned)`touch owned`", `"quoted' \back`, "; touch owned #", "工作目录 é", "line\nbreak", "*?[x]", "-rf", "${session_id}", "%s%n",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			r.cwd = filepath.Join(r.cwd, name)
			if err := os.Mkdir(r.cwd, 0o700); err != nil {
				t.Fatal(err)
			}
			h := r.hook("run: {type: shell, shell: 'pwd -P; printf %s \"$WHERE\"', env: {WHERE: '${workspace_cwd}'}, cwd: '${workspace_cwd}'}", "execution: {mode: blocking}")
			got := r.run(h)
			cwd, err := filepath.EvalSymlinks(r.cwd)
			if want := cwd + "\n" + r.cwd; err != nil || got.Stdout != want {
				t.Errorf("%q, want %q: %+v, %v", got.Stdout, want, got.Reason, err)
			}
			if left, err := os.ReadDir(r.cwd); err != nil || len(left) > 0 {
				t.Error("something ran:", left, err)
			}
		})
	}
}

func TestArgumentsUpToTheLimits(t *testing.T) {
	r := newRoom(t)
	word := strings.Repeat("x", maxArgument)
	arguments := func(n int) Hook {
		h := r.hook("run: {type: shell, shell: 'true'}", "execution: {mode: blocking}")
		h.Run = Run{Type: RunCommand, Argv: []string{"/bin/sh", "-c", `echo $# ${#1}`, "sh"}, ResultFrom: FromFile}
		for range n {
			h.Run.Args = append(h.Run.Args, word)
		}
		return h
	}
	if got := r.run(arguments(16)); got.Stdout != "16 32768\n" {
		t.Errorf("16 of 32 KiB: %.200s %+v", got.Stdout, got.Reason)
	}
	many := r.run(arguments(400)) // more than any system takes
	refused(t, many, events.CodeHookFailed, "longer than this system allows")
	if many.Outcome != events.RunFailed {
		t.Errorf("%+v", many.Outcome)
	}

	h := r.hook("run: {type: shell, shell: 'echo ${#LONG}', env: {LONG: '${workspace_cwd}"+word[:maxArgument-16]+"'}}", "execution: {mode: blocking}")
	in := r.input()
	in.Payload.Cwd = word[:16]
	run := NewRunner(RunnerOptions{TempDir: r.tmp, Environ: r.environ})
	if got := run(t.Context(), h, in); got.Stdout != "32768\n" {
		t.Errorf("a variable of 32 KiB: %q %+v", got.Stdout, got.Reason)
	}
	in.Payload.Cwd = word[:17]
	refused(t, run(t.Context(), h, in), events.CodeHookFailed, "its variable LONG is longer than 32 KiB")
}
