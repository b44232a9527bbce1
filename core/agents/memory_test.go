package agents_test

import (
	"context"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/agents"
	"github.com/fermata-hitl/fermata/core/agents/generic"
	"github.com/fermata-hitl/fermata/events"
)

// waiting is a desk at which everybody waits.
type waiting struct {
	agents.Desk
	arrived chan struct{}
}

func (waiting) Propose(context.Context, core.Proposal) error { return nil }

func (w waiting) Notify(events.ID, string, func(core.Verdict, error)) func() bool {
	w.arrived <- struct{}{}
	return func() bool { return true }
}

func (waiting) Receipt(context.Context, events.ID, string, events.ID) error { return nil }
func (waiting) Gone(events.ID, string, events.EndReason)                    {}

// A call that waits at its connection may cost 12 KB in all; this much is the
// socket's share, the rest the engine's.
func TestWaitingConnectionIsSmall(t *testing.T) {
	const conns = 400
	dir, err := os.MkdirTemp("/tmp", "mem")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	desk := waiting{arrived: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- agents.NewSocket(agents.SocketOptions{
			Listener: l, Desk: desk, Adapters: map[events.Agent]agents.Adapter{"generic": generic.Adapter{}},
		}).Run(ctx)
	}()
	line := []byte(call("generic", "before_tool_call", strings.Replace(stdin, `"ls"`, `"`+strings.Repeat("x", 512)+`"`, 1)))
	before := inUse()
	for range conns {
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0) // outside the heap that is measured
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: dir + "/s"}); err != nil {
			t.Fatal(err)
		}
		if _, err := syscall.Write(fd, line); err != nil {
			t.Fatal(err)
		}
		<-desk.arrived
	}
	each := (inUse() - before) / conns
	t.Logf("%d bytes for each connection", each)
	if each > waitingBudget {
		t.Errorf("%d bytes for each connection, want at most %d", each, waitingBudget)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func inUse() uint64 {
	for range 3 {
		runtime.GC() // also shrinks the stacks that reading has left large
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
