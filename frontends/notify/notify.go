// Package notify calls a person to a question that nobody takes: with a notification
// of the desktop, with a command of theirs, with a screen that opens over the agent's
// own pane. It says the tool's and the agent's name and nothing of what is asked, and
// it answers nothing.
//
// A question is called for once, whatever is attached: the core gives that right to
// the first frontend that asks for it. What was said is taken back when the question
// ends. Nothing here may hold up a core: whatever is slow or gone is given up, and
// said once in the log.
package notify

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Times of a notifier.
const (
	settled = 300 * time.Millisecond // a question that ends sooner opens nothing
	showing = 5 * time.Second        // for a desktop to show something
	closing = 300 * time.Millisecond // and to take it back
)

// maxCalls is how many questions are followed at a time. The others are when one of
// those has ended.
const maxCalls = 256

// Client is what a notifier needs of a [frontends.Client].
type Client interface {
	Updates(ctx context.Context) iter.Seq2[frontends.Update, error]
	Ring(ctx context.Context, question events.ID) (yours bool, err error)
}

// Inbox is what a notifier needs of a [frontends.Inbox].
type Inbox interface {
	Questions() []events.Question
	Question(id events.ID) (events.Question, bool)
	Ended(id events.ID) (events.End, bool)
	Sessions() []events.SessionHead
}

// Desktop shows notifications.
type Desktop interface {
	// Show shows one until it is closed, and names it.
	Show(ctx context.Context, title, body string) (id uint32, err error)
	// Close takes it back.
	Close(ctx context.Context, id uint32) error
}

// Options say how a person is called. Client and Inbox are required.
type Options struct {
	Client  Client
	Inbox   Inbox
	Desktop Desktop // nil = none
	Command string  // for /bin/sh; "" = none
	// Popup opens a screen for one question over a pane, calls opened when it is
	// there, and returns when it has closed, with an error when it was never there.
	// nil = none.
	Popup func(ctx context.Context, at events.Pane, question events.ID, opened func()) error
	// Hold keeps a question open until ctx ends: a person has it before them, had
	// it and put it aside, or has it next. Required with Popup.
	Hold  func(ctx context.Context, q events.Question)
	Words words.Words
	Now   func() time.Time // default time.Now
	Log   *slog.Logger     // default: nowhere
}

// notifier calls a person.
type notifier struct {
	o        Options
	popup    chan struct{} // has the place of the one popup
	commands chan struct{} // has the places of the commands
	desktop  trouble
	command  trouble
	screen   trouble
}

// Run calls until ctx ends, which is no error, or until the client has ended. It
// returns when nothing of it runs any more.
func Run(ctx context.Context, o Options) error { return newNotifier(o).run(ctx) }

func newNotifier(o Options) *notifier {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &notifier{
		o: o, popup: make(chan struct{}, 1), commands: make(chan struct{}, maxCommands),
		desktop: trouble{log: o.Log, what: "no notification could be shown on the desktop"},
		command: trouble{log: o.Log, what: "notify.command did not work"},
		screen:  trouble{log: o.Log, what: "no screen could be opened over the agent's pane"},
	}
}

func (n *notifier) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	r := round{n: n, ctx: ctx, calls: map[events.ID]context.CancelFunc{}}
	defer r.running.Wait()
	defer cancel()
	for u, err := range n.o.Client.Updates(ctx) {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		r.see(u)
	}
	return nil
}

// round is one run of a notifier: the questions that it follows.
type round struct {
	n       *notifier
	ctx     context.Context //nolint:containedctx // the run itself
	calls   map[events.ID]context.CancelFunc
	running sync.WaitGroup
}

// see looks at what an update is about; the inbox has the truth.
func (r *round) see(u frontends.Update) {
	full := len(r.calls) >= maxCalls
	switch u.Kind {
	case frontends.KindAsked, frontends.KindEnded:
		if q, open := r.n.o.Inbox.Question(u.Question); open {
			r.begin(q)
		}
		r.drop(u.Question)
	case frontends.KindResynced:
		r.beginAll()
		r.dropAll()
	case frontends.KindSession: // its questions may have gone with it
		r.dropAll()
	}
	if full && len(r.calls) < maxCalls { // some had no place until now
		r.beginAll()
	}
}

func (r *round) beginAll() {
	for _, q := range r.n.o.Inbox.Questions() {
		r.begin(q)
	}
}

func (r *round) begin(q events.Question) {
	if r.calls[q.ID] != nil || len(r.calls) >= maxCalls {
		return
	}
	asked, over := context.WithCancel(r.ctx)
	r.calls[q.ID] = over
	if r.n.o.Popup != nil {
		r.running.Go(func() { r.n.open(r.ctx, asked, q) })
	}
	if r.n.o.Desktop != nil || r.n.o.Command != "" {
		r.running.Go(func() { r.n.call(r.ctx, asked, q) })
	}
}

func (r *round) dropAll() {
	for id := range r.calls {
		r.drop(id)
	}
}

// drop lets go of a question that is not open any more.
func (r *round) drop(id events.ID) {
	over, known := r.calls[id]
	if _, open := r.n.o.Inbox.Question(id); known && !open {
		over()
		delete(r.calls, id)
	}
}

// call waits until it is time, asks for the right to call, and calls. Asked ends
// with the question, ctx with the notifier.
func (n *notifier) call(ctx, asked context.Context, q events.Question) {
	if !n.ring(asked, q) {
		return
	}
	var both sync.WaitGroup
	if n.o.Desktop != nil {
		both.Go(func() { n.notify(ctx, asked, q) })
	}
	if n.o.Command != "" {
		both.Go(func() { n.report(ctx, asked, q) })
	}
	both.Wait()
}

// ring reports whether this notifier is the one that calls. A question that somebody
// holds is looked at again: it may be put aside.
func (n *notifier) ring(asked context.Context, q events.Question) bool {
	for left := n.left(q, events.RingAfter); sleep(asked, left); left = events.RingAfter {
		now, open := n.o.Inbox.Question(q.ID)
		if !open {
			return false
		}
		if now.ClaimedBy == nil {
			yours, err := n.o.Client.Ring(asked, q.ID)
			return err == nil && yours
		}
	}
	return false
}

// left is how much of a wait since the asking is left; clocks that disagree make it
// no longer.
func (n *notifier) left(q events.Question, wait time.Duration) time.Duration {
	return min(wait, max(0, wait-n.o.Now().Sub(q.AskedAt.Time())))
}

// notify shows the question on the desktop for as long as it is open.
func (n *notifier) notify(ctx, asked context.Context, q events.Question) {
	late, done := grace(ctx)
	defer done()
	timed, cancel := context.WithTimeout(late, showing)
	defer cancel()
	id, err := n.o.Desktop.Show(timed, n.o.Words.Say(words.NoticeTitle, name(q.Tool.Name), name(string(q.Agent))), n.o.Words.Say(words.NoticeBody))
	if n.desktop.saw(ctx, err); err != nil {
		return
	}
	<-asked.Done()
	timed, cancel = context.WithTimeout(late, closing)
	defer cancel()
	n.desktop.saw(ctx, n.o.Desktop.Close(timed, id))
}

// grace goes on for a moment when the notifier has ended: nobody else would take back
// what is shown.
func grace(ctx context.Context) (late context.Context, done func()) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(closing, cancel) })
	return late, func() { stop(); cancel() }
}

// sleep waits, and reports whether ctx still goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}

// trouble is said once in the log, when it begins.
type trouble struct {
	log  *slog.Logger
	what string

	mu sync.Mutex
	on bool
}

// saw notes how something went. What was cut short by the end of ctx says nothing.
func (t *trouble) saw(ctx context.Context, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && ctx.Err() == nil && !t.on {
		t.log.WarnContext(ctx, t.what, "why", err)
	}
	t.on = err != nil
}
