package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
)

const (
	maxCommands = 4 // at a time
	commandFor  = 10 * time.Second
	maxName     = 80 // bytes of a name that is shown or handed on
)

// report runs the person's command when a question is called for, and again when it
// has ended. What the command hears stands in its environment, never in its text.
func (n *notifier) report(ctx, asked context.Context, q events.Question) {
	if !n.place(asked) {
		return
	}
	env := []string{
		"FERMATA_EVENT=asked", "FERMATA_QUESTION=" + string(q.ID), "FERMATA_TOOL=" + name(q.Tool.Name), "FERMATA_AGENT=" + name(string(q.Agent)),
	}
	n.execute(ctx, env)
	if <-asked.Done(); !n.place(ctx) {
		return // it is not the question that has ended
	}
	env[0] = "FERMATA_EVENT=ended"
	end, _ := n.o.Inbox.Ended(q.ID)
	n.execute(ctx, append(env, "FERMATA_END="+string(end.Reason)))
}

// place takes one of the places for commands, unless ctx ends first.
func (n *notifier) place(ctx context.Context) bool {
	select {
	case n.commands <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil {
		<-n.commands
		return false
	}
	return true
}

// execute runs the command in a process group of its own, and gives the place back. The
// end of the notifier leaves it a moment: perhaps it takes something back.
func (n *notifier) execute(ctx context.Context, env []string) {
	defer func() { <-n.commands }()
	late := fmt.Errorf("it took longer than %s and was ended", commandFor)
	beyond, done := grace(ctx)
	defer done()
	timed, cancel := context.WithTimeoutCause(beyond, commandFor, late)
	defer cancel()
	cmd := exec.CommandContext(timed, "/bin/sh", "-c", n.o.Command)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	if err != nil && errors.Is(context.Cause(timed), late) {
		err = late
	}
	n.command.saw(ctx, err)
}

// name is what an agent calls something, made harmless and short.
func name(s string) string {
	s = card.Line(s)
	if len(s) <= maxName {
		return s
	}
	cut := maxName - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
