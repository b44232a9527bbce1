// Package plain shows waiting questions as lines of text and carries a person's
// answers: for screen readers, serial lines, logs and programs that drive it. No
// colour, no cursor movement, no line is ever drawn twice. [Run] is the whole
// program; [Prompt] asks one question.
//
// A person types lines:
//
//	c 3          continue question 3
//	x 3          cancel it
//	w 3 WORDS    cancel it, with words to the model
//	l 3          later: it waits on, the next is shown
//	? 3          everything that is known about it
//	3            shows it whole, again
//	list  h  help  q
//
// Questions are numbered 1, 2, 3 … in the order in which they are heard of, and
// no number is used twice. Three things must hold. An answer names its question,
// so that it can never be taken for another one. Only a question that has been
// written whole, half a second before, can be answered. A line that is not
// understood, is too long or was cut off answers nothing.
package plain

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Client carries what the person does to the core. Its errors are
// *events.Refused when the core said no.
type Client interface {
	Answer(ctx context.Context, r events.Respond) (events.Ack, error)
	Drawn(ctx context.Context, question events.ID, digest events.Digest) error
	Args(ctx context.Context, question events.ID, version int) ([]byte, error)
	// Input says that a person typed. It must not block.
	Input()
}

// Inbox is what is known of the questions. Its methods return at once, with
// values that nobody changes.
type Inbox interface { //nolint:interfacebloat // one thing, looked at from as many sides
	// Questions are the open questions, the oldest first.
	Questions() []events.Question
	// Ended tells how a question ended that was open before.
	Ended(question events.ID) (events.End, bool)
	// Lines are the operations of late, in any order.
	Lines() []events.Line
	// Complete reports whether every open question is known.
	Complete() bool
	// Attached reports whether a core is in reach.
	Attached() bool
}

// Options are what the frontend needs. Client, Inbox, Changed, Self, Principal, In
// and Out must be set.
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
	In   io.Reader
	Out  io.Writer
	// Width is where rows are broken, in columns; 0 is 80.
	Width int
	Now   func() time.Time // nil is time.Now
	// Only is the one question to show, "" for all. The program ends with it.
	Only events.ID
}

// grace is how long a question must have been written before a line answers it.
const grace = 500 * time.Millisecond

// tooSoon reports whether a line came before a question, written whole at a time,
// could be read: it was meant for something else. [Run] and [Prompt] have this one
// rule.
func tooSoon(came, written time.Time) bool { return came.Sub(written) < grace }

// sendFor is how long answers that are on their way may take once the input has
// ended.
const sendFor = 15 * time.Second

// Run shows questions and takes lines until the person quits, In ends, or ctx
// does, which are no errors. An answer that was on its way by then is waited for.
// The read from In that was begun ends only with In. When Out cannot be written,
// the error is returned: what nobody can read must not be waited for.
func Run(ctx context.Context, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, cancel := context.WithCancel(ctx)
	s := newScreen(ctx, o)
	changed := make(chan struct{}, 1)
	s.tasks.Go(func() { o.Changed(ctx, func() { signal(changed) }) })
	lines := make(chan typed, maxTyped)
	go read(o.In, o.Now, lines)
	signal(changed)
	err := s.loop(changed, lines)
	cancel()
	s.tasks.Wait()
	return err
}

// screen is one run: what the person knows by now. Only loop touches it; what
// takes time runs beside it and comes back as a result.
type screen struct {
	ctx     context.Context //nolint:containedctx // of Run, whose one value this is
	o       Options
	w       words.Words
	page    page
	tasks   sync.WaitGroup
	results chan func()
	sending int // answers on their way

	last     int // number given last
	open     map[events.ID]*asked
	current  *asked            // what the person reads, nil when nothing
	waiting  int               // as last said
	answered map[events.ID]int // operations that the person let go on, and their number
	attached bool              // a core is in reach
	began    bool              // one was before
	greeted  bool              // what there is was said, even that it is nothing
	quit     bool
}

// asked is an open question.
type asked struct {
	question events.Question
	number   int
	loading  bool
	shown    bool // whole, on Out, and answerable
	drawn    time.Time
	digest   events.Digest // of what was shown
	later    bool
	sending  bool
	answerer events.ID // who was last said to be answering
}

func newScreen(ctx context.Context, o Options) *screen {
	return &screen{
		ctx: ctx, o: o, w: o.Words, page: page{w: o.Words, out: o.Out, width: o.Width},
		results: make(chan func()), open: map[events.ID]*asked{}, answered: map[events.ID]int{},
	}
}

func (s *screen) loop(changed <-chan struct{}, lines <-chan typed) error {
	for !s.quit {
		select {
		case <-s.ctx.Done():
			return nil
		case <-changed:
			s.look()
		case result := <-s.results:
			result()
		case l, more := <-lines:
			if !more {
				s.say(words.PlainInputEnded)
				return errors.Join(s.settle(), s.page.err)
			}
			if l.err != nil {
				return errors.Join(l.err, s.settle())
			}
			s.hear(l)
		}
		if s.page.err != nil {
			return s.page.err
		}
	}
	return errors.Join(s.settle(), s.page.err)
}

// settle waits for the answers that are on their way.
func (s *screen) settle() error {
	enough := time.NewTimer(sendFor)
	defer enough.Stop()
	for s.sending > 0 {
		select {
		case <-s.ctx.Done():
			return nil
		case <-enough.C:
			return errors.New(s.w.Say(words.PlainNotConfirmed))
		case result := <-s.results:
			result()
		}
	}
	return nil
}

// beside does work that takes time, and its result in the loop.
func (s *screen) beside(work func() (result func())) {
	s.tasks.Go(func() {
		result := work()
		select {
		case s.results <- result:
		case <-s.ctx.Done():
		}
	})
}

func (s *screen) say(k words.Key, args ...any) { s.page.row(s.w.Say(k, args...)) }

// about says something about a question, behind its number.
func (s *screen) about(number int, text string) {
	s.page.row(s.w.Because(itoa(number), text))
}

// signal wakes the one reader of a channel of capacity 1.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
