package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/events"
)

// built is where the real binary, and the floor to measure it against, are.
var built string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "core" {
		os.Exit(fakeCore()) // started by an agent-hook under test
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ah")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	for name, pkg := range map[string]string{"agent-hook": ".", "floor": "./testdata/floor"} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), pkg)
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	return m.Run()
}

// home is a place of its own for one test.
type home struct {
	t   testing.TB
	dir string
	env []string
}

func newHome(t testing.TB) *home {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ah") // short, because of the socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &home{t: t, dir: dir}
	h.env = []string{
		"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "FERMATA_AUTOSTART=0",
		"FERMATA_RUNTIME_DIR=" + h.runtime(), "FERMATA_STATE_DIR=" + dir + "/state",
	}
	return h
}

func (h *home) runtime() string { return h.dir + "/run" }

func (h *home) listen() net.Listener {
	h.t.Helper()
	if err := os.MkdirAll(h.runtime(), 0o700); err != nil {
		h.t.Fatal(err)
	}
	l, err := net.Listen("unix", h.runtime()+"/agent.sock")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = l.Close() })
	return l
}

// command prepares an agent-hook.
func (h *home) command(stdin string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(built, "agent-hook"), args...)
	cmd.Env, cmd.Dir = h.env, h.dir
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

// result is how an agent-hook ended.
type result struct {
	Exit           int
	Stdout, Stderr string
}

// start begins an agent-hook; the function returned waits for its end.
func start(t testing.TB, cmd *exec.Cmd) func() result {
	t.Helper()
	var out, errs bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return func() result {
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
	}
}

func (h *home) run(stdin string, args ...string) result {
	h.t.Helper()
	return start(h.t, h.command(stdin, args...))()
}

// talk is the core's side of one connection.
type talk struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	call events.HookCall
}

// accept takes the next call off the socket.
func accept(t testing.TB, l net.Listener) *talk {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	k := &talk{t: t, conn: c, in: bufio.NewReaderSize(c, 1<<16)}
	line, err := k.in.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	if k.call, err = agents.DecodeCall(line[:len(line)-1]); err != nil {
		t.Fatalf("the core cannot read agent-hook's line: %v", err)
	}
	return k
}

func (k *talk) say(text string) {
	k.t.Helper()
	if _, err := k.conn.Write([]byte(text)); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) accepted() { k.t.Helper(); k.say(wire(k.t, events.HookLine{Accepted: true})) }

func (k *talk) verdict(l events.HookLine) { k.t.Helper(); k.say(wire(k.t, l)) }

// receipt waits for the receipt; false if the connection ended without one.
func (k *talk) receipt() bool {
	k.t.Helper()
	line, err := k.in.ReadBytes('\n')
	if err != nil {
		return false
	}
	var r events.HookReceipt
	if err := json.Unmarshal(line, &r); err != nil {
		k.t.Fatal(err)
	}
	if r.Receipt != k.call.Operation {
		k.t.Errorf("receipt for %q, want %q", r.Receipt, k.call.Operation)
	}
	return true
}

func wire(t testing.TB, l events.HookLine) string {
	t.Helper()
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

// checkDenied checks the one form that every fault on a gated event must have.
func checkDenied(t *testing.T, e agents.NativeEvent, r result, word string) {
	t.Helper()
	if r.Exit != 2 {
		t.Errorf("exit %d, want 2", r.Exit)
	}
	if !strings.Contains(r.Stderr, word) {
		t.Errorf("stderr %q does not say %q", r.Stderr, word)
	}
	code := events.Code("")
	for _, c := range []events.Code{events.CodeCoreUnreachable, events.CodeEnded, events.CodeTooLarge, events.CodeNeedsNewerCore} {
		if strings.Contains(r.Stderr, "("+string(c)+")") {
			code = c
		}
	}
	if want := e.DenyText(code, strings.TrimSuffix(r.Stderr, "\n")); r.Stdout != want {
		t.Errorf("stdout %q, want the native deny %q", r.Stdout, want)
	}
	if !json.Valid([]byte(r.Stdout)) {
		t.Errorf("stdout %q is no JSON", r.Stdout)
	}
}
