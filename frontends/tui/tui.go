// Package tui shows waiting questions in a terminal and carries a person's
// answers. [Run] is the whole program; [Model] is what Bubble Tea runs and what
// tests drive without a terminal. [Prompt] asks one question in lines of text,
// where there is no terminal.
//
// Three things must hold on every screen. What is shown is made from the bytes
// that will run. The buttons are always in the window, and the last byte of
// every value can be reached by keys. No key that was typed before the question
// could be read answers it; see grace.go.
package tui

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Client carries what the person does to the core. Its errors are
// *events.Refused when the core said no.
type Client interface {
	Claim(ctx context.Context, question events.ID) (claim uint64, err error)
	Release(ctx context.Context, question events.ID, claim uint64) error
	Answer(ctx context.Context, r events.Respond) (events.Ack, error)
	Drawn(ctx context.Context, question events.ID, digest events.Digest) error
	Args(ctx context.Context, question events.ID, version int) ([]byte, error)
	// Input says that a person typed. It must not block.
	Input()
}

// Inbox is what is known of the questions. Its methods return at once, with
// values that nobody changes.
type Inbox interface {
	// Questions are the open questions, the oldest first.
	Questions() []events.Question
	// Ended tells how a question ended that was open before.
	Ended(question events.ID) (events.End, bool)
	// Lines are the operations of late, in any order.
	Lines() []events.Line
	Sessions() []events.SessionHead
	Attached() bool
}

// Options are what a screen needs. Client, Inbox and Changed must be set.
type Options struct {
	Client Client
	Inbox  Inbox
	// Changed calls changed whenever the inbox may have changed, until the
	// context ends. A call may stand for many changes.
	Changed func(ctx context.Context, changed func())
	// Self is the id of this frontend, Principal who sits here: they tell
	// one's own claims from those of others.
	Self      events.ID
	Principal func() string
	Words     words.Words
	// Home is the person's directory, which paths show as ~; "" if unknown.
	Home string
	Now  func() time.Time // nil is time.Now
	// Once ends the program when a question that was on the screen has ended
	// and no other waits: for one question in the foreground.
	Once bool
}

// Run shows the screen until the person quits or the context ends.
func Run(ctx context.Context, o Options, opts ...tea.ProgramOption) error {
	ctx, cancel := context.WithCancel(ctx)
	m := New(ctx, o)
	p := tea.NewProgram(m, append(opts, tea.WithContext(ctx))...)
	watch := make(chan struct{})
	go func() {
		defer close(watch)
		forward(ctx, o.Changed, func() { p.Send(changedMsg{}) })
	}()
	_, err := p.Run()
	cancel()
	<-watch
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// forward passes changes on, as many in one as come while the screen is busy:
// the source of changes never waits for the screen.
func forward(ctx context.Context, source func(context.Context, func()), send func()) {
	pending := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		source(ctx, func() {
			select {
			case pending <- struct{}{}:
			default:
			}
		})
	}()
	for {
		select {
		case <-pending:
			send()
		case <-ctx.Done():
			<-done
			return
		}
	}
}
