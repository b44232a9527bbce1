package natsd_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-hitl/fermata/core/natsd"
)

// runtimeDir is short enough for a socket.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "natsd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, o natsd.Options) *natsd.Server {
	t.Helper()
	s, err := natsd.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A second core on either directory is refused before it touches anything.
func TestSecondServerIsRefused(t *testing.T) {
	state, runtime := t.TempDir(), runtimeDir(t)
	first := start(t, natsd.Options{StateDir: state, RuntimeDir: runtime})
	l, err := first.ListenAgents()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o   natsd.Options
		dir string
	}{
		"both":    {natsd.Options{StateDir: state, RuntimeDir: runtime}, state},
		"state":   {natsd.Options{StateDir: state, RuntimeDir: runtimeDir(t)}, state},
		"runtime": {natsd.Options{StateDir: t.TempDir(), RuntimeDir: runtime}, runtime},
	} {
		begin := time.Now()
		_, err := natsd.Start(c.o)
		var inUse *natsd.InUse
		if !errors.As(err, &inUse) || inUse.Dir != c.dir || inUse.PID != os.Getpid() {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("%s: refused after %s", name, took)
		}
	}
	if c, err := net.Dial("unix", l.Addr().String()); err != nil {
		t.Errorf("the first core's socket is gone: %v", err)
	} else {
		_ = c.Close()
	}
	first.Close()
	first.Close()
	start(t, natsd.Options{StateDir: state, RuntimeDir: runtime})
}

func TestDirectoriesOfOthersAreRefused(t *testing.T) {
	base := t.TempDir()
	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{open, file, link, "relative", ""} {
		if s, err := natsd.Start(natsd.Options{StateDir: t.TempDir(), RuntimeDir: dir}); err == nil {
			s.Close()
			t.Errorf("%q was accepted", dir)
		}
	}
	loose := filepath.Join(base, "loose")
	if err := os.Mkdir(loose, 0o750); err != nil {
		t.Fatal(err)
	}
	start(t, natsd.Options{StateDir: t.TempDir(), RuntimeDir: loose})
	if info, err := os.Stat(loose); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
}

// dialer reaches a Unix socket whatever address it is asked for.
type dialer string

func (d dialer) Dial(string, string) (net.Conn, error) { return net.Dial("unix", string(d)) }

func TestRunServesTheSocket(t *testing.T) {
	runtime := runtimeDir(t)
	path := filepath.Join(runtime, "nats.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close() // as a killed core leaves it

	s := start(t, natsd.Options{StateDir: t.TempDir(), RuntimeDir: runtime})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var nc *nats.Conn
	gone := make(chan struct{})
	for nc == nil { // the socket comes when Run has begun
		nc, err = nats.Connect("nats://127.0.0.1", nats.SetCustomDialer(dialer(path)), nats.Name("fe."+alice),
			nats.CustomInboxPrefix("_IB."+alice), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(gone) }))
		absent := errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
		if err != nil && !absent && !errors.Is(err, nats.ErrNoServers) {
			t.Fatal(err)
		}
	}
	defer nc.Close()
	p, ok := s.Principal("fe." + alice)
	if !ok || p.UID != os.Geteuid() || p.PID != os.Getpid() || p.Start == 0 {
		t.Errorf("principal %+v %v", p, ok)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v %v", info, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	<-gone
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stayed: %v", err)
	}
}

func TestSocketPaths(t *testing.T) {
	deep := filepath.Join(runtimeDir(t), strings.Repeat("d", 100))
	s := start(t, natsd.Options{StateDir: t.TempDir(), RuntimeDir: deep})
	if _, err := s.ListenAgents(); err == nil || !strings.Contains(err.Error(), "shorter runtime directory") {
		t.Errorf("a long path: %v", err)
	}
	runtime := runtimeDir(t)
	if err := os.WriteFile(filepath.Join(runtime, "agent.sock"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = start(t, natsd.Options{StateDir: t.TempDir(), RuntimeDir: runtime})
	if _, err := s.ListenAgents(); err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("a file at the socket's path: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(runtime, "agent.sock")); err != nil || string(b) != "mine" {
		t.Errorf("the file was touched: %q %v", b, err)
	}
}

func newStream(t *testing.T, s *natsd.Server) {
	t.Helper()
	nc, err := s.Core()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{"kept"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "kept", []byte("x")); err != nil {
		t.Fatal(err)
	}
}

// A log that the server cannot read must not be replaced by an empty one.
func TestDamagedLogStopsTheStart(t *testing.T) {
	o := natsd.Options{StateDir: t.TempDir(), RuntimeDir: runtimeDir(t)}
	s := start(t, o)
	newStream(t, s)
	s.Close()
	meta := filepath.Join(o.StateDir, "log", "jetstream", "CORE", "streams", "KEPT", "meta.inf")
	whole, err := os.ReadFile(meta)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"changed": func() error { return os.WriteFile(meta, whole[:len(whole)/2], 0o600) },
		"removed": func() error { return os.Remove(meta) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if s, err := natsd.Start(o); err == nil {
			s.Close()
			t.Errorf("%s: started", name)
		} else if !strings.Contains(err.Error(), "KEPT") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(meta, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, o)
}

func TestMemoryServerLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := start(t, natsd.Options{Memory: true})
	newStream(t, s)
	if err := s.Run(t.Context()); err == nil {
		t.Error("a server in memory listened")
	}
	s.Close()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left %v %v", left, err)
	}
}

// Nobody gets in without a ticket, and the doors' account has no JetStream.
func TestF4AccountsAreApart(t *testing.T) {
	bubble(t, func(h *house) {
		js, err := jetstream.New(h.doors())
		if err != nil {
			h.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(h.ctx, time.Second)
		defer cancel()
		if _, err := js.AccountInfo(ctx); err == nil {
			h.Error("the doors' account has JetStream")
		}
		nc, err := h.Core(nats.Token("guess"), nats.MaxReconnects(0))
		if err == nil {
			nc.Close()
			h.Error("a guessed token got in")
		}
	})
}
