package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	adapter "github.com/fermata-hitl/fermata/core/agents/generic"
	"github.com/fermata-hitl/fermata/events"
)

// fakeCore is `core serve` with a desk that allows everything: the test binary
// itself, started by an agent-hook under the name core. As the real one it
// ends when another holds the lock.
func fakeCore() int {
	state, runtime := os.Getenv("FERMATA_STATE_DIR"), os.Getenv("FERMATA_RUNTIME_DIR")
	cwd, _ := os.Getwd()
	sid, _, _ := syscall.RawSyscall(syscall.SYS_GETSID, 0, 0, 0)
	fmt.Printf("start pid=%d sid=%d cwd=%s secret=%q args=%v\n", os.Getpid(), sid, cwd, os.Getenv("AGENT_SECRET"), os.Args[1:])
	lock, err := os.OpenFile(state+"/lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil || syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Println("lost")
		return 1
	}
	l, err := net.Listen("unix", runtime+"/agent.sock")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Printf("serving pid=%d\n", os.Getpid())
	err = agents.NewSocket(agents.SocketOptions{
		Listener: l, Desk: &yes{args: map[events.ID][]byte{}},
		Adapters: map[events.Agent]agents.Adapter{"generic": adapter.Adapter{}},
	}).Run(context.Background())
	fmt.Println(err)
	return 0
}

// yes is a desk that allows every call as it is.
type yes struct {
	agents.Desk
	mu   sync.Mutex
	args map[events.ID][]byte
}

func (y *yes) Propose(_ context.Context, p core.Proposal) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.args[p.Operation] = p.Args
	return nil
}

func (y *yes) Notify(op events.ID, _ string, tell func(core.Verdict, error)) func() bool {
	y.mu.Lock()
	v := core.Verdict{Operation: op, Allow: true, Args: y.args[op]}
	y.mu.Unlock()
	tell(v, nil)
	return func() bool { return false }
}

func (y *yes) Receipt(context.Context, events.ID, string, events.ID) error { return nil }
func (y *yes) Gone(events.ID, string, events.EndReason)                    {}

// Many agent-hooks that find no core at the same moment end with one.
func TestAutostartEndsWithOneCore(t *testing.T) {
	h := newHome(t)
	h.env = append(h.env, "FERMATA_AUTOSTART=1", "AGENT_SECRET=hidden")
	h.env[2] = "FERMATA_X=1"
	bin := h.dir + "/bin"
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// beside agent-hook as it really lies, while it is started through a link
	for from, to := range map[string]string{self: "core", filepath.Join(built, "agent-hook"): "agent-hook"} {
		if err := os.Link(from, bin+"/"+to); err != nil {
			b, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(bin+"/"+to, b, 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(bin+"/agent-hook", h.dir+"/link"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopCores(t, h) })

	const stdin = `{"session_id":"s","agent":"generic","cwd":"/","tool":{"name":"bash","kind":"shell","args":{"command":"ls"}}}`
	var waits []func() result
	for range 12 {
		cmd := h.command(stdin, "generic", "before_tool_call")
		cmd.Path = h.dir + "/link"
		waits = append(waits, start(t, cmd))
	}
	for _, wait := range waits {
		r := wait()
		if r.Exit != 0 || r.Stderr != "" || !strings.HasSuffix(r.Stdout, `,"args":{"command":"ls"}}`) {
			t.Errorf("got %+v", r)
		}
	}
	log := coreLog(t, h)
	if n := strings.Count(log, "serving"); n != 1 {
		t.Errorf("%d cores serve, want 1; core.log:\n%s", n, log)
	}
	for line := range strings.Lines(log) {
		var pid, sid int
		if n, _ := fmt.Sscanf(line, "start pid=%d sid=%d", &pid, &sid); n == 2 {
			if pid != sid || !strings.Contains(line, `cwd=/ secret="" args=[serve]`) {
				t.Errorf("a core was not started on its own: %s", line)
			}
		}
	}
}

func coreLog(t *testing.T, h *home) string {
	t.Helper()
	b, err := os.ReadFile(h.dir + "/state/core.log")
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.ToValidUTF8(b, nil))
}

// stopCores ends what the test started, by process id.
func stopCores(t *testing.T, h *home) {
	for line := range strings.Lines(coreLog(t, h)) {
		if _, pid, ok := strings.Cut(strings.TrimSpace(line), "serving pid="); ok {
			if n, err := strconv.Atoi(pid); err == nil {
				_ = syscall.Kill(n, syscall.SIGKILL)
			}
		}
	}
}
