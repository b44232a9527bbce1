package notify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// open opens a screen for the question over the agent's pane, once. One is open at a
// time: a person reads one question after the other. The next ones are held until it
// is their turn; one that could not be opened is left to end by itself.
func (n *notifier) open(ctx, asked context.Context, q events.Question) {
	if !sleep(asked, n.left(q, settled)) {
		return
	}
	at, ok := n.pane(q.Session)
	if !ok {
		return
	}
	var holding sync.WaitGroup
	held, release := context.WithCancel(ctx)
	defer holding.Wait()
	defer release()
	hold := sync.OnceFunc(func() { holding.Go(func() { n.o.Hold(held, q) }) })
	if !n.turn(asked, hold) {
		return
	}
	if now, open := n.o.Inbox.Question(q.ID); !open || now.ClaimedBy != nil {
		<-n.popup
		return
	}
	err := n.o.Popup(ctx, at, q.ID, hold)
	<-n.popup
	if n.screen.saw(ctx, err); err == nil {
		<-asked.Done() // put aside, it stays open
	}
}

// queued is how long a question waits for its turn before it is held: where a screen
// does not open, that is soon known.
const queued = time.Second

// turn waits for the place of the one popup.
func (n *notifier) turn(asked context.Context, hold func()) bool {
	t := time.NewTimer(queued)
	defer t.Stop()
	for {
		select {
		case n.popup <- struct{}{}:
			return true
		case <-asked.Done():
			return false
		case <-t.C:
			hold()
		}
	}
}

// pane is where the agent of a session stands, or that of a parent.
func (n *notifier) pane(session events.Token) (events.Pane, bool) {
	heads := map[events.Token]events.SessionHead{}
	for _, h := range n.o.Inbox.Sessions() {
		heads[h.Session] = h
	}
	for {
		head, listed := heads[session]
		if at, ok := events.ParsePane(head.Pane); ok || !listed {
			return at, ok
		}
		delete(heads, session) // each at most once, whatever the list says
		session = head.Parent
	}
}

// Popups opens screens in terminal multiplexers.
type Popups struct {
	// Screen is the program that shows a question, an absolute path, and its
	// arguments; "--question" and the id are put behind them.
	Screen []string
	// Environ is the environment of tmux and zellij.
	Environ []string
	// Dir is a directory that is this user's alone, for the files by which screens
	// tell that they are there.
	Dir string
}

// quick is how long a multiplexer may take for what needs no person.
const quick = 5 * time.Second

var (
	errOtherPopup  = errors.New("tmux shows another popup there")
	errNobodyThere = errors.New("nobody is attached to it")
	errNeverThere  = fmt.Errorf("its screen did not start within %s", quick)
)

// Open shows one question over a pane, calls opened when its screen has started
// there, and returns when the screen has closed. Nothing that came from an agent is
// read by a shell.
func (p Popups) Open(ctx context.Context, at events.Pane, question events.ID, opened func()) error {
	show := p.inTmux
	if at.Multiplexer == "zellij" {
		show = p.inZellij
	}
	start, err := show(ctx, at)
	if err != nil {
		return err
	}
	s, err := newSign(p.Dir)
	if err != nil {
		return err
	}
	defer s.remove()
	return p.follow(ctx, s, append(start, s.around(append(slices.Clone(p.Screen), "--question", string(question)))...), opened)
}

// follow runs the program that opens a screen, until the screen has closed. That the
// program goes on, or has ended well, says nothing of the screen: where there is a
// popup already, tmux opens none and is content.
func (p Popups) follow(ctx context.Context, s *sign, start []string, opened func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ran := make(chan error, 1)
	go func() {
		_, err := p.run(ctx, start[0], start[1:]...)
		ran <- err
	}()
	late := time.AfterFunc(quick, func() { cancel(errNeverThere) })
	defer late.Stop()
	tell := sync.OnceFunc(func() { late.Stop(); opened() })
	for {
		select {
		case err := <-ran:
			if ran = nil; err != nil {
				return err
			}
			if there, _ := s.seen(); !there && start[0] == "tmux" { // it stays as long as its popup
				return errOtherPopup
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(glance):
		}
		there, gone := s.seen()
		if there {
			tell()
		}
		if gone {
			return s.verdict()
		}
	}
}

// inTmux is the command that opens a screen over a pane of tmux.
func (p Popups) inTmux(ctx context.Context, at events.Pane) ([]string, error) {
	if err := ownSocket(at.Server); err != nil {
		return nil, err
	}
	seen, err := p.ask(ctx, "tmux", "-S", at.Server,
		"list-panes", "-a", "-F", "pane #{pane_id} #{session_id}", ";",
		"list-clients", "-F", "client #{client_activity} #{session_id} #{client_control_mode} #{client_name}")
	if err != nil {
		return nil, err
	}
	client, err := looking(seen, at.ID)
	if err != nil {
		return nil, err
	}
	return []string{"tmux", "-S", at.Server, "display-popup", "-c", client, "-t", at.ID, "-E", "-w", "90%", "-h", "80%"}, nil
}

// looking is the client of tmux over which to open: of those that show the session
// of the pane, else of all, the one that was used last.
func looking(seen, pane string) (client string, err error) {
	sessions := map[string]bool{}
	for line := range strings.SplitSeq(seen, "\n") {
		if f := strings.Split(line, " "); len(f) == 3 && f[0] == "pane" && f[1] == pane {
			sessions[f[2]] = true
		}
	}
	last, near := int64(0), false
	for line := range strings.SplitSeq(seen, "\n") {
		f := strings.SplitN(line, " ", 5)
		if len(f) < 5 || f[0] != "client" || f[3] == "1" || f[4] == "" { // a control client has no screen
			continue
		}
		used, err := strconv.ParseInt(f[1], 10, 64)
		here := sessions[f[2]]
		if err == nil && (client == "" || here && !near || here == near && used > last) {
			client, last, near = f[4], used, here
		}
	}
	switch {
	case len(sessions) == 0:
		return "", fmt.Errorf("tmux has no pane %s", pane)
	case client == "":
		return "", errNobodyThere
	}
	return client, nil
}

// inZellij is the command that opens a screen in a session of zellij.
func (p Popups) inZellij(ctx context.Context, at events.Pane) ([]string, error) {
	seen, err := p.ask(ctx, "zellij", "--session", at.Server, "action", "list-clients")
	if err != nil {
		return nil, err
	}
	if strings.Count(strings.TrimSpace(seen), "\n") == 0 { // a head alone
		return nil, errNobodyThere
	}
	return []string{"zellij", "--session", at.Server, "run", "--floating", "--close-on-exit", "--"}, nil
}

// ownSocket makes sure that a socket is one of this user: an agent named it.
func ownSocket(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if info.Mode().Type() != fs.ModeSocket || !ok || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s is no socket of this user", path)
	}
	return nil
}

// ask runs what needs no person.
func (p Popups) ask(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, quick, fmt.Errorf("%s did not answer within %s", program, quick))
	defer cancel()
	return p.run(ctx, program, args...)
}

// run runs a program until it ends; its words on stderr are the error.
func (p Popups) run(ctx context.Context, program string, args ...string) (string, error) {
	var out, said limited
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.Environ, "/", &out, &said
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err != nil && ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && len(said) > 0:
		return "", fmt.Errorf("%s: %s", program, strings.TrimSpace(string(said)))
	}
	return string(out), err
}

// maxSaid bounds what is kept of a program's words, bytes: a list of panes fits.
const maxSaid = 256 << 10

// limited keeps the beginning of what is written to it.
type limited []byte

// Write implements [io.Writer].
func (l *limited) Write(b []byte) (int, error) {
	*l = append(*l, b[:min(len(b), maxSaid-len(*l))]...)
	return len(b), nil
}
