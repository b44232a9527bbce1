package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// toCall is how long a question waits until a frontend would call its person.
const toCall = 4500 * time.Millisecond

// callers are programs that show a desktop's message. Stand-ins of them come first in
// the program's PATH.
var callers = []string{"notify-send", "osascript", "terminal-notifier"}

// message is a terminal's sequence for a desktop's message: OSC 9 (but not 9;4, which
// is progress), 99 and 777.
var message = regexp.MustCompile(`\x1b\](?:9;(?:[^4]|4[^;])|99;|777;notify;)`)

// standIns makes programs that only note that they were called.
func (s *stage) standIns() error {
	bin := filepath.Join(s.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	script := "#!/bin/sh\necho \"${0##*/} $*\" >> '" + s.dir + "/called'\n"
	for _, name := range callers {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// called is how the program has called its person so far, "" when it has not.
func (s *stage) called() (string, error) {
	text, err := os.ReadFile(s.dir + "/called")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return string(text) + message.FindString(s.program.out.since(0)), nil
}

// notCalled: F14. Another frontend has rung for the first question, so that the program
// must not call its person to it.
func (c *scenes) notCalled(ctx context.Context, q question) error {
	if err := pause(ctx, time.Until(q.at.Add(toCall))); err != nil {
		return err
	}
	how, err := c.called()
	if err != nil {
		return err
	}
	yours, rang := c.rings()[q.id]
	switch {
	case how != "" && !yours:
		c.fail(14, "it called its person to question %d, for which another frontend had rung: %q", q.number, how)
	case rang && !yours:
		c.pass(14)
	default:
		c.skip(14, "it asked for no ring, and called nobody")
	}
	return nil
}

// neverRang: F14, for the rest of the run.
func (c *scenes) neverRang() error {
	how, err := c.called()
	if err != nil || how == "" {
		return err
	}
	for _, yours := range c.rings() {
		if yours {
			return nil // which question a call was about cannot be seen
		}
	}
	c.fail(14, "it called its person, and never was told that the ring is its own: %q", how)
	return nil
}

// rings are the questions for which the program asked for the ring, and whether it was
// told yes.
func (c *scenes) rings() map[events.ID]bool {
	asked, yours := map[string]events.ID{}, map[events.ID]bool{}
	for _, f := range c.relay.so() {
		var (
			ring  events.Ring
			reply events.RingReply
		)
		if isVerb(events.VerbRing)(f) && decode(f, &ring) == nil {
			asked[f.reply()] = ring.Question
			yours[ring.Question] = yours[ring.Question] || false
		} else if f.fromCore && f.payload != nil {
			if id, ok := asked[f.subject()]; ok && decode(f, &reply) == nil {
				yours[id] = yours[id] || reply.Yours
			}
		}
	}
	return yours
}

// pane is one that a shell would read as commands, however it is quoted.
func (s *stage) pane() string {
	touch := "touch " + s.dir + "/shell"
	return events.Pane{Multiplexer: "tmux", ID: "%0", Server: fmt.Sprintf(`/x$(%s)";%s;"';%s;'`, touch, touch, touch)}.String()
}

// noShell: F16. Every question's session stood in such a pane.
func (c *scenes) noShell() {
	told := false
	for _, f := range c.relay.so() {
		told = told || f.fromCore && strings.Contains(string(f.payload), c.dir+"/shell")
	}
	_, err := os.Stat(c.dir + "/shell")
	switch {
	case err == nil:
		c.fail(16, "a shell has read what a session's pane names")
	case !errors.Is(err, os.ErrNotExist):
		c.skip(16, err.Error())
	case !told:
		c.skip(16, "it was told of no pane")
	default:
		c.pass(16)
	}
}
