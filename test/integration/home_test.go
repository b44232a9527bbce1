package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// askAboutWrites is the rule of most tests: every write to a file is left to a
// person.
const askAboutWrites = `version: 1
hooks:
  - id: ask-before-write
    event: before_tool_call
    match: {tool_kind: filesystem.write}
    execution: {mode: blocking}
    run: {type: verdict, action: ask, reason: This writes a file.}
`

// home is one core's directories, and the processes that use them. No core is
// started by itself in it: FERMATA_AUTOSTART is 0 unless a test says otherwise.
type home struct {
	t    testing.TB
	dir  string // short, because of the sockets' paths
	dirs dirs
	env  []string
}

// dirs are the three directories of a core.
type dirs struct{ Config, State, Runtime string }

func (d dirs) agentSocket() string { return d.Runtime + "/agent.sock" }

func (d dirs) natsSocket() string { return d.Runtime + "/nats.sock" }

// newHome makes a home with these rules. Its log survives kill -9, not a power
// cut.
func newHome(t testing.TB, rules string) *home {
	t.Helper()
	h := emptyHome(t)
	h.write("hooks.yaml", rules)
	h.write("config.yaml", "mode: process\n")
	return h
}

func emptyHome(t testing.TB) *home {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "fi")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	h := &home{t: t, dir: dir, dirs: dirs{dir + "/config", dir + "/state", dir + "/run"}}
	h.env = []string{
		"HOME=" + dir, "PATH=" + built + ":" + os.Getenv("PATH"), "FERMATA_AUTOSTART=0",
		"FERMATA_RUNTIME_DIR=" + h.dirs.Runtime, "FERMATA_STATE_DIR=" + h.dirs.State, "FERMATA_CONFIG_DIR=" + h.dirs.Config,
	}
	t.Cleanup(func() {
		h.killCore()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return h
}

// write makes a file of the configuration.
func (h *home) write(name, text string) {
	h.t.Helper()
	if err := os.MkdirAll(h.dirs.Config, 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dirs.Config, name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// process is a program under test.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdout safeBuffer
	stderr safeBuffer
	ended  chan struct{}
}

// result is how a program ended.
type result struct {
	Exit           int
	Stdout, Stderr string
}

// start starts one of the real programs, or one that is on PATH.
func (h *home) start(stdin, program string, args ...string) *process {
	h.t.Helper()
	return h.launch(h.command(stdin, program, args...))
}

func (h *home) command(stdin, program string, args ...string) *exec.Cmd {
	if real := filepath.Join(built, program); !strings.Contains(program, "/") && exists(real) {
		program = real
	}
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir, cmd.Stdin = h.env, h.dir, strings.NewReader(stdin)
	return cmd
}

func (h *home) launch(cmd *exec.Cmd) *process {
	h.t.Helper()
	return h.launchTo(cmd, nil)
}

// launchTo starts a program whose stdout goes to out; nil = it is kept.
func (h *home) launchTo(cmd *exec.Cmd, out io.Writer) *process {
	h.t.Helper()
	p := &process{t: h.t, cmd: cmd, ended: make(chan struct{})}
	if out == nil {
		out = &p.stdout
	}
	cmd.Stdout, cmd.Stderr = out, &p.stderr
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() { // the one who waits; everybody else asks p.ended
		defer close(p.ended)
		_ = cmd.Wait()
	}()
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
	})
	return p
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// run runs a program to its end.
func (h *home) run(stdin, program string, args ...string) result {
	h.t.Helper()
	return h.start(stdin, program, args...).wait()
}

// wait waits for the end. A process that does not end fails the test.
func (p *process) wait() result {
	p.t.Helper()
	must(p.t, "end of "+p.String(), func() error {
		if p.running() {
			return errNotYet
		}
		return nil
	})
	return result{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

func (p *process) String() string { return strings.Join(p.cmd.Args, " ") }

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s: %v", p, err)
	}
}

// still says, for a look of await, that what is waited for cannot come any more
// once the process has ended.
func still(p *process) error {
	if !p.running() {
		return fmt.Errorf("%s has ended with %v: %s%s", p, p.cmd.ProcessState, p.stdout.String(), p.stderr.String())
	}
	return errNotYet
}

// startCore starts a core by hand and waits until it answers.
func (h *home) startCore(args ...string) *process {
	h.t.Helper()
	return h.launchCore(h.command("", "core", append([]string{"serve"}, args...)...))
}

func (h *home) launchCore(cmd *exec.Cmd) *process {
	h.t.Helper()
	p := h.launch(cmd)
	must(h.t, "answer of the core", func() error {
		if s, err := h.status(); err == nil && s.PID != 0 {
			return nil
		}
		return still(p)
	})
	return p
}

// status is what `core status --json` says.
type status struct {
	PID       int `json:"pid"`
	Sessions  int `json:"sessions"`
	Open      int `json:"open"`
	Frontends int `json:"frontends"`
}

var errDown = errors.New("no core is up")

func (h *home) status() (status, error) {
	h.t.Helper()
	r := h.run("", "core", "status", "--json")
	if r.Exit != 0 {
		return status{}, errDown
	}
	var s status
	return s, json.Unmarshal([]byte(r.Stdout), &s)
}

// killCore ends the core that answers, whoever started it, with SIGKILL, and
// tells which it was; 0 when none did.
func (h *home) killCore() int {
	h.t.Helper()
	s, err := h.status()
	if err != nil || syscall.Kill(s.PID, syscall.SIGKILL) != nil {
		return 0
	}
	if err := await("end of the killed core", func() error {
		if now, err := h.status(); err == nil && now.PID == s.PID {
			return errNotYet
		}
		return nil
	}); err != nil {
		h.t.Error(err)
	}
	return s.PID
}

// stopCore ends the core in order: every waiting call is refused.
func (h *home) stopCore() {
	h.t.Helper()
	if r := h.run("", "core", "stop"); r.Exit != 0 {
		h.t.Fatalf("core stop: %+v", r)
	}
}

// termCore ends a core as the system does: nothing is withdrawn.
func (h *home) termCore(p *process) {
	h.t.Helper()
	p.signal(syscall.SIGTERM)
	if r := p.wait(); r.Exit != 0 {
		h.t.Fatalf("the core ended with %+v", r)
	}
}

// safeBuffer may be read while a process writes to it.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

// String is what has been written.
func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
