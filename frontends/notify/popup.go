package notify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// maxParents bounds the way from a session to its root.
const maxParents = 16

// open opens a screen for the question over the agent's pane, once. One is open at a
// time: a person reads one question after the other. The next ones are held until it
// is their turn; one that could not be opened is left to end by itself.
func (n *Notifier) open(ctx, asked context.Context, q events.Question) {
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
func (n *Notifier) turn(asked context.Context, hold func()) bool {
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
func (n *Notifier) pane(session events.Token) (events.Pane, bool) {
	heads := map[events.Token]events.SessionHead{}
	for _, h := range n.o.Inbox.Sessions() {
		heads[h.Session] = h
	}
	for range maxParents {
		if at, ok := events.ParsePane(heads[session].Pane); ok {
			return at, true
		}
		session = heads[session].Parent
	}
	return events.Pane{}, false
}

// Popups opens screens in terminal multiplexers.
type Popups struct {
	// Screen is the program that shows a question, an absolute path, and its
	// arguments; "--question" and the id are put behind them.
	Screen []string
	// Environ is the environment of tmux and zellij.
	Environ []string
}

// quick is how long a multiplexer may take for what needs no person.
const quick = 5 * time.Second

// glimpse is how long a screen is open at least. Where there is a popup already, tmux
// opens none and says nothing.
const glimpse = 50 * time.Millisecond

var errOtherPopup = errors.New("tmux shows another popup there")

// ErrNobodyThere is why nothing was opened: nobody looks at the multiplexer.
var ErrNobodyThere = errors.New("nobody is attached to it")

// Open shows one question over a pane, calls opened when its screen is there, and
// returns when it has closed; in zellij, at once. Nothing that came from an agent is
// read by a shell.
func (p Popups) Open(ctx context.Context, at events.Pane, question events.ID, opened func()) error {
	screen := append(append([]string{}, p.Screen...), "--question", string(question))
	if at.Multiplexer == "zellij" {
		err := p.zellij(ctx, at, screen)
		if err == nil {
			opened()
		}
		return err
	}
	return p.tmux(ctx, at, screen, opened)
}

func (p Popups) tmux(ctx context.Context, at events.Pane, screen []string, opened func()) error {
	if err := ownSocket(at.Server); err != nil {
		return err
	}
	seen, err := p.ask(ctx, "tmux", "-S", at.Server,
		"list-panes", "-a", "-F", "pane #{pane_id} #{session_id}", ";",
		"list-clients", "-F", "client #{client_activity} #{session_id} #{client_control_mode} #{client_name}")
	if err != nil {
		return err
	}
	client, err := looking(seen, at.ID)
	if err != nil {
		return err
	}
	closed := make(chan error, 1)
	go func() {
		_, err := p.run(ctx, "tmux", append([]string{
			"-S", at.Server, "display-popup", "-c", client, "-t", at.ID, "-E", "-w", "90%", "-h", "80%",
		}, screen...)...)
		closed <- err
	}()
	select {
	case err := <-closed:
		return cmp.Or(err, errOtherPopup)
	case <-time.After(glimpse):
		opened()
		return <-closed
	}
}

// looking is the client of tmux over which to open: of those that show the session
// of the pane, else of all, the one that was used last.
func looking(seen, pane string) (client string, err error) {
	sessions := map[string]bool{}
	best, near := int64(-1), false
	for line := range strings.Lines(seen) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
		switch {
		case f[0] == "pane" && len(f) == 3 && f[1] == pane:
			sessions[f[2]] = true
		case f[0] == "client" && len(f) == 5 && f[3] != "1": // a control client has no screen
			used, err := strconv.ParseInt(f[1], 10, 64)
			here := sessions[f[2]]
			if err == nil && (here && !near || here == near && used > best) {
				client, best, near = f[4], used, here
			}
		}
	}
	switch {
	case len(sessions) == 0:
		return "", fmt.Errorf("tmux has no pane %s", pane)
	case client == "":
		return "", ErrNobodyThere
	}
	return client, nil
}

func (p Popups) zellij(ctx context.Context, at events.Pane, screen []string) error {
	seen, err := p.ask(ctx, "zellij", "--session", at.Server, "action", "list-clients")
	if err != nil {
		return err
	}
	if strings.Count(strings.TrimSpace(seen), "\n") == 0 { // a head alone
		return ErrNobodyThere
	}
	_, err = p.ask(ctx, "zellij", append([]string{"--session", at.Server, "run", "--floating", "--close-on-exit", "--"}, screen...)...)
	return err
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
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = p.Environ, "/", &out, &said
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err != nil && ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && said.Len() > 0:
		return "", fmt.Errorf("%s: %s", program, strings.TrimSpace(said.String()))
	}
	return out.String(), err
}
