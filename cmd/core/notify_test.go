package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/fermata-hitl/fermata/cmd/internal/place"
	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

// record is a log that may be read while it is written.
type record struct {
	mu sync.Mutex
	bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Buffer.Write(b)
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.String()
}

// served runs a core of the test's home in this process, with a rule that asks
// before each write.
func served(t *testing.T, set func(*place.Config)) (h *house, log *record, stop func()) {
	t.Helper()
	write(t, filepath.Join(os.Getenv("FERMATA_CONFIG_DIR"), "hooks.yaml"), globalRules)
	dirs, err := place.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	config := place.Default()
	config.Mode = place.ModeProcess
	config.Notify.Desktop = place.NotifyOff
	set(&config)
	log = &record{}
	h, err = cli{name: "core"}.open(t.Context(), dirs, config, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	eventually(t, "the core is not up", func() bool { return call(t, "", "status").exit == 0 })
	return h, log, stop
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 800 {
		if ok() {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatal(what)
}

// proposed is an agent's call that the rule asks about.
func proposed(t *testing.T, h *house, pane string) core.Proposal {
	t.Helper()
	p := core.Proposal{
		Operation: engine.NewID(time.Now()), Secret: "a secret of this call", Agent: "generic", Native: "one", Cwd: os.Getenv("HOME"), Path: events.MainPath,
		Kind: events.KindToolCall, Tool: events.Tool{Name: "write_file", Kind: "filesystem.write"}, Args: []byte(`{"path":"secret.txt"}`), Pane: pane,
	}
	if err := h.engine.Propose(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// answering attaches a frontend that can be asked.
func answering(t *testing.T, h *house) *frontends.Client {
	t.Helper()
	return attached(t, h, true)
}

func attached(t *testing.T, h *house, capable bool) *frontends.Client {
	t.Helper()
	client, err := frontends.New(frontends.Options{
		Dial: func(ctx context.Context) (net.Conn, error) { return dial(ctx, h.dirs) },
		ID:   engine.NewID(time.Now()), Kind: events.FrontendCLI, Capable: capable,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(background(context.WithoutCancel(t.Context()), func(ctx context.Context) { _ = client.Run(ctx) }))
	eventually(t, "it did not attach", client.Inbox().Attached)
	return client
}

func question(t *testing.T, c *frontends.Client) events.Question {
	t.Helper()
	eventually(t, "nothing was asked", func() bool { return len(c.Inbox().Questions()) > 0 })
	return c.Inbox().Questions()[0]
}

func text(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

func TestF2NotifyCommandOfACore(t *testing.T) {
	dir := home(t)
	heard := dir + "/heard"
	h, log, stop := served(t, func(c *place.Config) {
		c.Notify.Command = `echo "$FERMATA_EVENT $FERMATA_QUESTION $FERMATA_TOOL $FERMATA_AGENT $FERMATA_END" >> ` + heard
	})
	if s, _, err := (cli{name: "core"}).askStatus(t.Context()); err != nil || s.Frontends != 0 {
		t.Errorf("the core's own frontend counts: %+v, %v", s, err)
	}
	client := answering(t, h)
	proposed(t, h, "")
	q := question(t, client)
	eventually(t, "nobody was called", func() bool { return text(heard) != "" })
	if age := time.Since(q.AskedAt.Time()); age < 3*time.Second {
		t.Errorf("called after %s", age)
	}
	if r := call(t, "", "answer", string(q.ID), "continue"); r.exit != 0 {
		t.Errorf("%+v", r)
	}
	want := "asked " + string(q.ID) + " write_file generic \nended " + string(q.ID) + " write_file generic continue\n"
	eventually(t, "the end was not told", func() bool { return text(heard) == want })
	stop()
	if strings.Contains(log.text(), "level=WARN") {
		t.Error(log.text())
	}
}

func TestNothingCallsWhereNothingIsToBeDone(t *testing.T) {
	home(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	h, log, stop := served(t, func(c *place.Config) { c.Notify.Desktop = place.NotifyAuto })
	if h.calling != nil || h.engine.Frontends() != 0 {
		t.Errorf("%+v, %d frontends", h.calling, h.engine.Frontends())
	}
	stop()
	if strings.Count(log.text(), "no notifications of the desktop") != 1 {
		t.Error(log.text())
	}
}

func TestABusThatIsDeadHoldsUpNoCore(t *testing.T) {
	dir := home(t)
	l, err := net.Listen("unix", filepath.Join(dir, "bus")) // it never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+dir+"/bus")
	before := time.Now()
	h, _, stop := served(t, func(c *place.Config) { c.Notify.Desktop = place.NotifyAuto })
	if took := time.Since(before); took > 3*time.Second {
		t.Errorf("the start took %s", took)
	}
	client := answering(t, h)
	proposed(t, h, "")
	question(t, client)
	<-time.After(4 * time.Second) // a notification is under way
	before = time.Now()
	stop()
	if took := time.Since(before); took > 2*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

// looked is a person's tmux, and a screen for popups in PATH that stays until told
// to go.
func looked(t *testing.T, dir string) (pane string, attach func()) {
	t.Helper()
	tmp, err := os.MkdirTemp("", "tmux") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	socket := tmp + "/s"
	tmux := func(args ...string) *exec.Cmd {
		c := exec.Command("tmux", append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		c.Env = append(os.Environ(), "TERM=xterm-256color", "TMUX=")
		return c
	}
	t.Cleanup(func() {
		_ = tmux("kill-server").Run()
		os.RemoveAll(tmp)
	})
	if out, err := tmux("new-session", "-d", "-x", "80", "-y", "24", "sleep 600").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := tmux("display-message", "-p", "#{pane_id}").Output()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/bin/tui-frontend", "#!/bin/sh\ncd "+dir+"\necho \"$@\" > args.new; mv args.new args; until [ -e go ]; do sleep 0.02; done\n")
	t.Setenv("PATH", dir+"/bin:"+os.Getenv("PATH"))
	return events.Pane{Multiplexer: "tmux", Server: socket, ID: strings.TrimSpace(string(out))}.String(), func() {
		c := tmux("attach-session")
		f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			b := make([]byte, 4096)
			for {
				if _, err := f.Read(b); err != nil {
					return
				}
			}
		}()
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait()
			_ = f.Close()
		})
		eventually(t, "the client did not attach", func() bool {
			out, err := tmux("list-clients").Output()
			return err == nil && len(out) > 0
		})
	}
}

func TestB85PopupsCountWhereTheAgentStandsInAPane(t *testing.T) {
	dir := home(t)
	pane, attach := looked(t, dir)
	attach()
	h, log, _ := served(t, func(c *place.Config) { c.Notify.Popup = place.NotifyAuto })
	bare := proposed(t, h, "")
	if v, err := h.engine.Await(t.Context(), bare.Operation, bare.Secret); err != nil || v.Code != events.CodeUnavailable {
		t.Fatalf("without a pane: %+v, %v", v, err)
	}
	p := proposed(t, h, pane)
	eventually(t, "no screen was opened: "+log.text(), func() bool { return text(dir+"/args") != "" })
	args := strings.Fields(text(dir + "/args"))
	if len(args) != 4 || args[0] != "--socket" || args[1] != h.dirs.NATSSocket() || args[2] != "--question" {
		t.Fatalf("called with %q", args)
	}
	<-time.After(200 * time.Millisecond) // no person is quicker
	write(t, dir+"/go", "")              // put aside: whoever saw it may come back to it
	<-time.After(engine.ReceiveWithin + time.Second)
	if r := call(t, "", "answer", args[3], "cancel"); r.exit != 0 {
		t.Errorf("it is not open any more: %+v\n%s", r, log.text())
	}
	if v, err := h.engine.Await(t.Context(), p.Operation, p.Secret); err != nil || v.Code != events.CodeDeclined {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestB19AQuestionOverWhichNothingOpensEnds(t *testing.T) {
	dir := home(t)
	pane, _ := looked(t, dir) // nobody is attached
	h, log, _ := served(t, func(c *place.Config) { c.Notify.Popup = place.NotifyAuto })
	for _, p := range []core.Proposal{proposed(t, h, pane), proposed(t, h, pane)} {
		v, err := h.engine.Await(t.Context(), p.Operation, p.Secret)
		if err != nil || v.Code != events.CodeUnavailable {
			t.Errorf("%+v, %v", v, err)
		}
	}
	if text(dir+"/args") != "" || strings.Count(log.text(), "nobody is attached") != 1 {
		t.Errorf("%s", log.text())
	}
}

func TestB85OneFrontendHoldsEveryQuestion(t *testing.T) {
	pane, _ := looked(t, home(t)) // nobody is attached: nothing opens
	h, log, _ := served(t, func(c *place.Config) { c.Notify.Popup = place.NotifyAuto })
	watching := attached(t, h, false)
	const many = 3
	for range many {
		proposed(t, h, pane)
	}
	open := func() int { return len(watching.Inbox().Questions()) }
	eventually(t, "nothing was asked", func() bool { return open() == many })
	hold := func() (release []func()) {
		for _, q := range watching.Inbox().Questions() {
			release = append(release, background(context.WithoutCancel(t.Context()), func(ctx context.Context) { h.calling.hold(ctx, q) }))
		}
		return release
	}
	held := func() int {
		h.calling.holding.mu.Lock()
		defer h.calling.holding.mu.Unlock()
		return len(h.calling.holding.held)
	}
	release := hold()
	eventually(t, "they are not held", func() bool { return held() == many })
	if n := h.calling.own.Load(); n != 2 { // the one that offers, and the one that holds
		t.Errorf("%d frontends hold %d questions", n, many)
	}
	release[0]()
	<-time.After(engine.ReceiveWithin + time.Second)
	if open() != many { // also the first: whoever had it may come back
		t.Errorf("%d are open", open())
	}
	for _, r := range release[1:] {
		r()
	}
	if n := h.calling.own.Load(); n != 1 || strings.Contains(log.text(), "not kept open") {
		t.Errorf("%d frontends hold nothing\n%s", n, log.text())
	}

	for { // the core is full
		f := engine.Frontend{ID: engine.NewID(time.Now()), Principal: h.owner()}
		if h.engine.Hello(f, events.DoorAll, events.Hello{Kind: events.FrontendCLI}).Refused != nil {
			break
		}
	}
	release = hold()
	eventually(t, "they are not held", func() bool { return held() == many })
	if n := strings.Count(log.text(), "not kept open"); n != 1 || h.calling.own.Load() != 1 {
		t.Errorf("%d frontends, said %d times", h.calling.own.Load(), n)
	}
	for _, r := range release {
		r()
	}
}

func TestScreenProgramIsNoneOfTheWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/tui-frontend", "#!/bin/sh\n")
	t.Chdir(dir)
	t.Setenv("PATH", ".")
	if p, err := screenProgram(); !errors.Is(err, exec.ErrDot) {
		t.Errorf("%s, %v", p, err)
	}
	t.Setenv("PATH", dir)
	if p, err := screenProgram(); err != nil || p != dir+"/tui-frontend" {
		t.Errorf("%s, %v", p, err)
	}
}
