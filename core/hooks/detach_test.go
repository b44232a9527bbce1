package hooks

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// pipe makes a named pipe through which a script and the test wait for each
// other: opening one end returns when the other is opened.
func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// take reads what a script writes into a pipe.
func take(t *testing.T, pipe string) string {
	t.Helper()
	var text []byte
	soon(t, "a script writes into its pipe", func() (err error) { text, err = os.ReadFile(pipe); return err })
	return strings.TrimSpace(string(text))
}

// release lets a script go on that reads from a pipe.
func release(t *testing.T, pipe string) {
	t.Helper()
	soon(t, "a script reads its pipe", func() error { return os.WriteFile(pipe, nil, 0) })
}

// patience is how long a busy machine may take for what takes no time.
const patience = 30 * time.Second

// soon fails the test unless do returns in time and without error.
func soon(t *testing.T, what string, do func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("it never happened:", what)
	}
}

// await fails the test unless something becomes true soon.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it never happened:", what)
		}
	}
}

func (r *room) directories() int {
	r.t.Helper()
	left, err := os.ReadDir(r.tmp)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(left)
}

func (r *room) empty() bool { return r.directories() == 0 }

func (r *room) sweep() {
	r.t.Helper()
	if err := Sweep(r.tmp); err != nil {
		r.t.Fatal(err)
	}
}

// detached is a hook that does not end with its core.
func (r *room) detached(text string) Hook {
	r.t.Helper()
	return r.hook("run: {type: shell, shell: "+strconv.Quote(text)+"}",
		"execution: {mode: fire_and_forget, detach: true, timeout_seconds: 0.01}")
}

func TestDetachedRunIsNotWaitedFor(t *testing.T) {
	r := newRoom(t)
	begin, end, out := pipe(t), pipe(t), pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	got := r.runWith(ctx, r.detached(fmt.Sprintf(
		`echo $(ps -o sid= -p $$) $$ >%s; echo talk; : <%s; { cat; cat "$CHRYS_HOOK_PAYLOAD_FILE"; } >%s`, begin, end, out)))
	if got.Effect != events.EffectAllow || got.Outcome != events.RunDetached || got.Reason != "" || got.Duration > patience {
		t.Fatalf("%+v", got)
	}
	cancel() // nor does it end with whoever started it, nor at its limit
	if session, pid, _ := strings.Cut(take(t, begin), " "); session != pid {
		t.Errorf("its session is %s, its process %s", session, pid)
	}
	r.sweep()
	if r.empty() {
		t.Fatal("the files of a process that lives are removed")
	}
	release(t, end)
	in := r.input()
	in.Payload.ConfirmationAvailable = false // nobody is asked for it
	if want := string(in.Payload.Encode()); take(t, out) != want+want {
		t.Error("it has not its payload at stdin and in its file")
	}
	await(t, "its files are removed when it ends", r.empty)
}

// What a detached process starts in its turn may still read the files.
func TestDetachedRunLeavesAChild(t *testing.T) {
	r := newRoom(t)
	begin, end := pipe(t), pipe(t)
	r.run(r.detached(fmt.Sprintf("(echo $$ >%s; exec <%s) & exit 0", begin, end)))
	leader, err := strconv.Atoi(take(t, begin))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the process is waited for", func() bool { return syscall.Kill(leader, 0) != nil })
	r.sweep()
	if r.empty() {
		t.Fatal("the child's files are removed")
	}
	release(t, end)
	await(t, "the files go with the child", func() bool { r.sweep(); return r.empty() })
}

func TestDetachedRunThatCannotStart(t *testing.T) {
	r := newRoom(t)
	h := r.detached("true")
	h.Run = Run{Type: RunCommand, Argv: []string{"no-such-program-here"}}
	if got := r.run(h); got.Outcome != events.RunMissing || got.Effect != events.EffectError || got.FailedOpen {
		t.Errorf("%+v", got)
	}
	r.write("tool", "\x00\x01 neither script nor binary", 0o700)
	h.Run = Run{Type: RunCommand, Argv: []string{r.home + "/tool"}}
	if got := r.run(h); got.Outcome != events.RunFailed || !strings.Contains(got.Reason, "could not be started") {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := r.runWith(ctx, r.detached("true")); got.Outcome != events.RunAbandoned {
		t.Errorf("%+v", got)
	}
}

const coreOfTheTest = "FERMATA_TEST_KILLED_CORE"

// TestSweepAfterTheCoreWasKilled runs itself as a core with one hook that it
// attends and one that is detached, and kills that core.
func TestSweepAfterTheCoreWasKilled(t *testing.T) {
	if dirs := strings.Fields(os.Getenv(coreOfTheTest)); len(dirs) == 4 {
		r := &room{t: t, home: dirs[0], tmp: dirs[0], cwd: dirs[0], environ: os.Environ()}
		r.run(r.detached(fmt.Sprintf("echo $$ >%s; exec <%s", dirs[1], dirs[2])))
		r.run(r.shell(fmt.Sprintf("echo $$ >%s; exec sleep 60", dirs[3])))
		t.Fatal("nobody killed this core")
	}
	r := newRoom(t)
	begin, end, attended := pipe(t), pipe(t), pipe(t)
	core := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	core.Env = append(os.Environ(), coreOfTheTest+"="+strings.Join([]string{r.tmp, begin, end, attended}, " "))
	if err := core.Start(); err != nil {
		t.Fatal(err)
	}
	take(t, begin)
	orphan := take(t, attended)
	r.sweep()
	if n := r.directories(); n != 2 {
		t.Errorf("a sweep beside a live core leaves %d of 2 directories", n)
	}
	if err := core.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = core.Wait()
	r.sweep()
	if n := r.directories(); n != 1 {
		t.Errorf("after the core's death %d directories are left, not that of the detached run alone", n)
	}
	endProcess(t, orphan)
	release(t, end)
	await(t, "the last directory can be removed", func() bool { r.sweep(); return r.empty() })
}

func TestSweepTouchesNothingElse(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	outside := filepath.Join(t.TempDir(), "outside")
	for _, path := range []string{outside, dir + "/other", dir + "/fermata-hook-new", dir + "/fermata-hook-old", dir + "/fermata-hook-pipe"} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.WriteFile(dir+"/fermata-hook-file", nil, 0o600),
		os.Symlink(outside, dir+"/fermata-hook-link"),
		os.Symlink(outside, dir+"/fermata-hook-old/link"),
		syscall.Mkfifo(dir+"/fermata-hook-pipe/"+payloadName, 0o600),
		os.Chtimes(dir+"/fermata-hook-old", old, old),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(dir); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		outside: true, dir + "/other": true, dir + "/fermata-hook-new": true, dir + "/fermata-hook-file": true,
		dir + "/fermata-hook-link": true, dir + "/fermata-hook-old": false, dir + "/fermata-hook-pipe": false,
	} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := Sweep(dir + "/none"); err == nil {
		t.Error("a directory that is not there is swept")
	}
}
