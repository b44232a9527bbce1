// Package tui shows waiting questions in a terminal and carries a person's
// answers. [Run] is the whole program; [Model] is what Bubble Tea runs and what
// tests drive without a terminal.
//
// Three things must hold on every screen. What is shown is made from the bytes
// that will run. The buttons are always in the window, and the last byte of
// every value can be reached by keys. No key that was typed before the question
// could be read answers it; see grace.go.
package tui

import (
	"context"
	"errors"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Client carries what the person does to the core. Its errors are
// *events.Refused when the core said no.
type Client interface {
	Claim(ctx context.Context, question events.ID) (claim uint64, err error)
	Release(ctx context.Context, question events.ID, claim uint64) error
	// AnswerAll carries one answer for each question, with a result for each in
	// the same order.
	AnswerAll(ctx context.Context, list []events.Respond) []frontends.Result
	Drawn(ctx context.Context, question events.ID, digest events.Digest) error
	Args(ctx context.Context, question events.ID, version int) ([]byte, error)
	// Ring asks to be the one screen that calls the person to a question.
	Ring(ctx context.Context, question events.ID) (yours bool, err error)
	// Output reads what a run of a hook wrote.
	Output(ctx context.Context, run events.RunLine) (events.RunReply, error)
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
	// Lines are the operations of late, in the order in which they were first
	// heard of.
	Lines() []events.Line
	// Runs are the hooks' runs of late, in the same order.
	Runs() []events.RunLine
	Sessions() []events.SessionHead
	Attached() bool
	// Complete says that a core is there and every open question is known.
	Complete() bool
}

// Options are what a screen needs. Client, Inbox, Changed and Principal must be set.
type Options struct {
	Client Client
	Inbox  Inbox
	// Changed calls changed whenever the inbox may have changed, until the
	// context ends. A call may stand for many changes.
	Changed func(ctx context.Context, changed func())
	// Self is the id of this frontend, Principal who sits here: they tell
	// one's own claims and answers from those of others.
	Self      events.ID
	Principal func() string
	Words     words.Words
	// Home is the person's directory, which paths show as ~; "" if unknown.
	Home string
	Now  func() time.Time // nil is time.Now
	// Getenv tells what the terminal is; nil is os.Getenv.
	Getenv func(name string) string
	// Once ends the program when a question that was on the screen has ended
	// and no other waits: for one question in the foreground.
	Once bool
	// Question, where it is set, is the only one that is shown: the program ends
	// with it, or when the person turns away.
	Question events.ID
}

func (o Options) filled() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Question != "" {
		o.Inbox = only{o.Inbox, o.Question}
	}
	return o
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

// restBetween is how long the screen rests between two changes that it follows:
// where thousands come, most are taken together.
const restBetween = 50 * time.Millisecond

// forward passes changes on, as many in one as come while the screen is busy or
// rests: the source of changes never waits for the screen.
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
			rest(ctx)
		case <-ctx.Done():
			<-done
			return
		}
	}
}

func rest(ctx context.Context) {
	select {
	case <-time.After(restBetween):
	case <-ctx.Done():
	}
}
