package notify

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/fermata-hitl/fermata/events"
)

// multiplexer is a tmux server of the test's own.
type multiplexer struct {
	t    *testing.T
	pane events.Pane
	env  []string
}

func tmux(t *testing.T) *multiplexer {
	t.Helper()
	dir, err := os.MkdirTemp("", "tmux") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	m := &multiplexer{t: t, env: append(os.Environ(), "TMUX_TMPDIR="+dir, "TERM=xterm-256color", "TMUX=", "LC_ALL=C.UTF-8")}
	t.Cleanup(func() {
		_ = m.command("kill-server").Run()
		os.RemoveAll(dir)
	})
	m.do("-f", "/dev/null", "new-session", "-d", "-s", "work", "-x", "80", "-y", "24", "sleep 600")
	at := strings.Fields(m.do("display-message", "-p", "-t", "work", "#{pane_id} #{socket_path}"))
	m.pane = events.Pane{Multiplexer: "tmux", Server: at[1], ID: at[0]}
	if _, ok := events.ParsePane(m.pane.String()); !ok {
		t.Fatalf("no pane: %s", m.pane)
	}
	return m
}

func (m *multiplexer) command(args ...string) *exec.Cmd {
	c := exec.Command("tmux", append([]string{"-L", "fermata-test"}, args...)...)
	c.Env = m.env
	return c
}

func (m *multiplexer) do(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// attach attaches a person's terminal to a session.
func (m *multiplexer) attach(session string) (leave func()) {
	m.t.Helper()
	before := m.do("list-clients")
	c := m.command("attach-session", "-t", session)
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		m.t.Fatal(err)
	}
	go func() {
		b := make([]byte, 4096)
		for {
			if _, err := f.Read(b); err != nil {
				return
			}
		}
	}()
	eventually(m.t, "the client did not attach", func() bool { return m.do("list-clients") != before })
	leave = func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = f.Close()
	}
	m.t.Cleanup(leave)
	return leave
}

// screen is a program in the place of a frontend: it writes down how it was called
// and on which terminal, and stays until told to go.
func screen(t *testing.T) (program, dir string) {
	t.Helper()
	dir = t.TempDir()
	program = filepath.Join(dir, "a screen")
	text := `#!/bin/sh
cd "$(dirname "$0")"
printf '%s\n' "$@" > args.new; stty size > size; mv args.new args
until [ -e go ]; do sleep 0.02; done
`
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return program, dir
}

// unopened must not be called: nothing was opened.
func unopened(t *testing.T) func() {
	return func() { t.Error("it says that a screen is open") }
}

func isThere(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

func TestPopupOpensOverThePaneUntilItsScreenCloses(t *testing.T) {
	m := tmux(t)
	program, dir := screen(t)
	p := Popups{Screen: []string{program, "--socket", "/a b; touch " + dir + "/pwned"}, Environ: []string{"PATH=" + os.Getenv("PATH")}}
	if err := p.Open(t.Context(), m.pane, "q1", unopened(t)); !errors.Is(err, errNobodyThere) {
		t.Fatalf("without a client: %v", err)
	}
	m.do("new-session", "-d", "-s", "other", "sleep 600")
	m.attach("work")
	m.attach("other") // used last, but it shows another session
	closed, there := make(chan error, 1), make(chan bool)
	go func() { closed <- p.Open(t.Context(), m.pane, "q1", func() { close(there) }) }()
	<-there
	eventually(t, "no screen was opened", isThere(dir+"/args"))
	args, err := os.ReadFile(dir + "/args")
	if want := "--socket\n/a b; touch " + dir + "/pwned\n--question\nq1\n"; err != nil || string(args) != want {
		t.Errorf("called with %q, want %q", args, want)
	}
	if size, err := os.ReadFile(dir + "/size"); err != nil || string(size) != "17 70\n" { // 90 % of 80, 80 % of 24, less the border
		t.Errorf("%q, %v", size, err)
	}
	select {
	case err := <-closed:
		t.Fatalf("returned while the screen is open: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if isThere(dir + "/pwned")() {
		t.Error("a shell read the arguments")
	}
}

func TestPopupEndsWithTheNotifier(t *testing.T) {
	m := tmux(t)
	program, dir := screen(t)
	m.attach("work")
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error, 1)
	go func() {
		closed <- Popups{Screen: []string{program}, Environ: m.env, Dir: t.TempDir()}.Open(ctx, m.pane, "q1", func() {})
	}()
	eventually(t, "no screen was opened", isThere(dir+"/args"))
	cancel()
	select {
	case err := <-closed:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(2 * time.Second):
		t.Error("the notifier is held up by an open screen")
	}
	if out := m.do("list-sessions"); !strings.Contains(out, "work") {
		t.Errorf("the person's sessions: %s", out)
	}
}

func TestPopupDoesNotPassForOneThatIsThere(t *testing.T) {
	m := tmux(t)
	program, dir := screen(t)
	m.attach("work")
	p := Popups{Screen: []string{program}, Environ: m.env, Dir: t.TempDir()}
	closed := make(chan error, 1)
	go func() { closed <- p.Open(t.Context(), m.pane, "q1", func() {}) }()
	eventually(t, "no screen was opened", isThere(dir+"/args"))
	if err := p.Open(t.Context(), m.pane, "q2", unopened(t)); err == nil || !strings.Contains(err.Error(), "another popup") {
		t.Errorf("a second popup: %v", err)
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestPopupRefusesWhatIsNotTheUsersOwn(t *testing.T) {
	m := tmux(t)
	m.attach("work")
	p := Popups{Screen: []string{"/bin/false"}, Environ: m.env, Dir: t.TempDir()}
	gone := m.pane
	gone.ID = "%99"
	if err := p.Open(t.Context(), gone, "q1", unopened(t)); err == nil || !strings.Contains(err.Error(), "no pane %99") {
		t.Errorf("a pane that is gone: %v", err)
	}
	gone.Server = "/etc/passwd"
	if err := p.Open(t.Context(), gone, "q1", unopened(t)); err == nil || !strings.Contains(err.Error(), "no socket of this user") {
		t.Errorf("a file: %v", err)
	}
	gone.Server = filepath.Join(t.TempDir(), "none")
	if err := p.Open(t.Context(), gone, "q1", unopened(t)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}

func TestAMultiplexerThatHangsIsLeft(t *testing.T) {
	dir, err := os.MkdirTemp("", "tmux")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	before := time.Now()
	err = Popups{Environ: os.Environ(), Dir: t.TempDir()}.Open(ctx, events.Pane{Multiplexer: "tmux", Server: dir + "/s", ID: "%1"}, "q", unopened(t))
	if took := time.Since(before); err == nil || took > 3*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}

func TestZellijIsAskedWhoLooksFirst(t *testing.T) {
	dir := t.TempDir()
	script := `#!/bin/sh
printf '%s|' "$@" >> ` + dir + `/calls; echo >> ` + dir + `/calls
case "$*" in
*list-clients) cat ` + dir + `/clients;;
*) shift 6; "$@" >/dev/null 2>&1 & echo 3;;
esac
`
	if err := os.WriteFile(dir+"/zellij", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	at := events.Pane{Multiplexer: "zellij", Server: "my session", ID: "3"}
	program, there := screen(t)
	p := Popups{Screen: []string{program, "--socket", "/s"}, Environ: os.Environ(), Dir: t.TempDir()}
	calls := func() string { b, _ := os.ReadFile(dir + "/calls"); return string(b) }
	clients := func(list string) {
		_ = os.Remove(dir + "/calls")
		if err := os.WriteFile(dir+"/clients", []byte("CLIENT_ID ZELLIJ_PANE_ID RUNNING_COMMAND\n"+list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const listed = "--session|my session|action|list-clients|\n"
	clients("")
	if err := p.Open(t.Context(), at, "q1", unopened(t)); !errors.Is(err, errNobodyThere) || calls() != listed {
		t.Errorf("%v, called\n%s", err, calls())
	}
	clients("1 terminal_3 sh\n")
	closed, opened := make(chan error, 1), make(chan bool)
	go func() { closed <- p.Open(t.Context(), at, "q1", func() { close(opened) }) }()
	<-opened
	eventually(t, "no screen was opened", isThere(there+"/args"))
	run, isRun := strings.CutPrefix(calls(), listed+"--session|my session|run|--floating|--close-on-exit|--|/bin/sh|-c|"+aloud+"|")
	if !isRun || !strings.HasSuffix(run, "/there|"+program+"|--socket|/s|--question|q1|\n") {
		t.Errorf("called\n%s", calls())
	}
	<-time.After(4 * glance)
	if len(closed) > 0 {
		t.Errorf("it returned while the screen is open: %v", <-closed)
	}
	if err := os.WriteFile(there+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	p.Screen = []string{"/bin/false"}
	if err := p.Open(t.Context(), at, "q1", func() {}); err == nil || !strings.Contains(err.Error(), "failed") {
		t.Errorf("a screen that failed: %v", err)
	}
	if left, err := os.ReadDir(p.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// standIn is a program in the place of tmux, with a socket of the user's own.
func standIn(t *testing.T, display string) (p Popups, at events.Pane) {
	t.Helper()
	dir, err := os.MkdirTemp("", "tmux")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	script := `#!/bin/sh
case "$*" in
*display-popup*) ` + display + `;;
*) printf 'pane %%1 $0\nclient 9 $0 0 /dev/a\n';;
esac
`
	if err := os.WriteFile(dir+"/tmux", []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return Popups{Screen: []string{"/bin/true"}, Environ: os.Environ(), Dir: t.TempDir()}, events.Pane{Multiplexer: "tmux", Server: dir + "/s", ID: "%1"}
}

func TestOnlyItsScreenProvesAPopup(t *testing.T) {
	t.Run("tmux is slow to say that another one is there", func(t *testing.T) {
		p, at := standIn(t, "sleep 1")
		if err := p.Open(t.Context(), at, "q1", unopened(t)); !errors.Is(err, errOtherPopup) {
			t.Error(err)
		}
	})
	t.Run("tmux says nothing at all", func(t *testing.T) {
		p, at := standIn(t, "exec sleep 600")
		before := time.Now()
		if err := p.Open(t.Context(), at, "q1", unopened(t)); !errors.Is(err, errNeverThere) || time.Since(before) > 2*quick {
			t.Errorf("%v after %s", err, time.Since(before))
		}
	})
	t.Run("tmux says it without end", func(t *testing.T) {
		p, at := standIn(t, "exec yes")
		if err := p.Open(t.Context(), at, "q1", unopened(t)); !errors.Is(err, errNeverThere) {
			t.Error(err)
		}
	})
	t.Run("a screen that is quick", func(t *testing.T) {
		p, at := standIn(t, `shift 12; "$@"`)
		shown := 0
		if err := p.Open(t.Context(), at, "q1", func() { shown++ }); err != nil || shown != 1 {
			t.Errorf("%v, shown %d times", err, shown)
		}
	})
	t.Run("a screen that cannot start", func(t *testing.T) {
		p, at := standIn(t, `shift 12; "$@" 2>/dev/null; :`)
		p.Screen = []string{"/no/such/screen"}
		if err := p.Open(t.Context(), at, "q1", func() {}); err == nil {
			t.Error("it counts as shown")
		}
	})
}

func TestWordsOfAProgramAreBounded(t *testing.T) {
	var l limited
	for range 10 {
		if n, err := l.Write(make([]byte, maxSaid/3)); n != maxSaid/3 || err != nil {
			t.Fatal(n, err) // else the program would end
		}
	}
	if len(l) != maxSaid {
		t.Errorf("%d bytes are kept", len(l))
	}
}

func TestPopupPrefersWhoLooksAtTheSession(t *testing.T) {
	const panes = "pane %1 $0\npane %2 $1\npane %1 $2\n"
	for name, c := range map[string]struct{ clients, pane, want string }{
		"the session before the newest": {"client 9 $1 0 /dev/b\nclient 5 $0 0 /dev/a\nclient 8 $1 0 /dev/c\n", "%1", "/dev/a"},
		"the newest of the session":     {"client 5 $0 0 /dev/a\nclient 7 $2 0 /dev/with space\nclient 6 $0 0 /dev/c\n", "%1", "/dev/with space"},
		"the newest elsewhere":          {"client 5 $1 0 /dev/a\nclient 7 $1 0 /dev/b\nclient 6 $1 0 /dev/c\n", "%1", "/dev/b"},
		"none that has no screen":       {"client 9 $0 1 /dev/a\nclient 5 $1 0 /dev/b\n", "%1", "/dev/b"},
		"nobody":                        {"client 9 $0 1 /dev/a\n", "%1", ""},
		"no such pane":                  {"client 9 $0 0 /dev/a\n", "%3", ""},
	} {
		got, err := looking(panes+c.clients, c.pane)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// FuzzLooking: of what tmux lists, one client that has a screen, near the pane if any
// is, and none such that was used later.
func FuzzLooking(f *testing.F) {
	f.Add("pane %1 $0\nclient 9 $0 0 /dev/a\n", "%1")
	f.Add("pane %1 $0\npane %2 $1\nclient 9 $1 0 /dev/b\nclient 5 $0 0 /dev/a\nclient 8 $0 1 /dev/c\n", "%1")
	f.Add("client 7 $0 0 a b \nclient 07 $0 0 \npane %1 $0 x\npane %1\n", "%1")
	f.Fuzz(func(t *testing.T, seen, pane string) {
		type client struct {
			used int64
			near bool
			name string
		}
		var sessions []string
		for line := range strings.SplitSeq(seen, "\n") {
			if session, ok := strings.CutPrefix(line, "pane "+pane+" "); ok && !strings.Contains(pane+session, " ") {
				sessions = append(sessions, session)
			}
		}
		var clients []client
		for line := range strings.SplitSeq(seen, "\n") {
			w := strings.SplitN(line, " ", 5)
			if used, err := strconv.ParseInt(w[min(1, len(w)-1)], 10, 64); err == nil && w[0] == "client" && len(w) == 5 && w[3] != "1" && w[4] != "" {
				clients = append(clients, client{used, slices.Contains(sessions, w[2]), w[4]})
			}
		}
		got, err := looking(seen, pane)
		if err != nil {
			if len(sessions) > 0 && len(clients) > 0 {
				t.Fatalf("none of %v: %v", clients, err)
			}
			return
		}
		if len(sessions) == 0 || got == "" {
			t.Fatalf("%q for a pane that is not there", got)
		}
		here := slices.IndexFunc(clients, func(c client) bool {
			return c.name == got && !slices.ContainsFunc(clients, func(o client) bool {
				return o.near && !c.near || o.near == c.near && o.used > c.used
			})
		})
		if here < 0 {
			t.Errorf("%q of %v", got, clients)
		}
	})
}
