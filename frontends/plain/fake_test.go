package plain

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// desk is a core and its clients in memory.
type desk struct {
	mu        sync.Mutex
	questions []events.Question
	ended     map[events.ID]events.End
	lines     []events.Line
	args      map[int][]byte // of earlier versions
	away      bool
	behind    bool // a session has to be listed again
	answers   []events.Respond
	drawn     []events.Digest
	hold      chan struct{} // when set, answers wait for it
	refuse    error
	changed   map[int]func()
}

func newDesk() *desk {
	return &desk{ended: map[events.ID]events.End{}, args: map[int][]byte{}, changed: map[int]func(){}}
}

func (d *desk) change(f func()) {
	d.mu.Lock()
	f()
	tell := d.changed
	d.mu.Unlock()
	for _, changed := range tell {
		changed()
	}
}

func (d *desk) ask(list ...events.Question) {
	d.change(func() { d.questions = append(d.questions, list...) })
}

func (d *desk) end(id events.ID, end events.End) {
	d.change(func() {
		d.questions = slices.DeleteFunc(d.questions, func(q events.Question) bool { return q.ID == id })
		end.Question = id
		d.ended[id] = end
	})
}

func (d *desk) withdraw(id events.ID, why events.EndReason) {
	d.end(id, events.End{Result: events.ResultOf(why), Reason: why})
}

func (d *desk) sent() []events.Respond {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.answers)
}

func (d *desk) Answer(ctx context.Context, r events.Respond) (events.Ack, error) {
	d.mu.Lock()
	d.answers = append(d.answers, r)
	hold, refuse := d.hold, d.refuse
	i := slices.IndexFunc(d.questions, func(q events.Question) bool { return q.ID == r.Question })
	d.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return events.Ack{}, ctx.Err()
		}
	}
	if refuse == nil && i < 0 {
		refuse = &events.Refused{Code: events.RejectAlreadyAnswered, Who: "uid:1000", Answer: events.AnswerCancel}
	}
	if refuse != nil {
		return events.Ack{}, refuse
	}
	d.end(r.Question, events.End{Result: events.ResultAnswered, Reason: r.Answer.EndReason(), Who: "uid:1000", Answer: r.Answer})
	return events.Ack{Seq: 1}, nil
}

func (d *desk) Drawn(_ context.Context, _ events.ID, digest events.Digest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drawn = append(d.drawn, digest)
	return nil
}

func (d *desk) Args(_ context.Context, id events.ID, version int) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.questions {
		if q.ID == id && q.Version.N == version {
			return q.Args, nil
		}
	}
	if args := d.args[version]; args != nil {
		return args, nil
	}
	return nil, &events.Refused{Code: events.RejectUnknownQuestion}
}

func (d *desk) Input() {}

func (d *desk) Questions() []events.Question {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.questions)
}

func (d *desk) Ended(id events.ID) (events.End, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	end, ok := d.ended[id]
	return end, ok
}

func (d *desk) Lines() []events.Line {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func (d *desk) Complete() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.away && !d.behind
}

func (d *desk) Attached() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.away
}

// person sits at one frontend of lines.
type person struct {
	t    *testing.T
	desk *desk
	in   *io.PipeWriter
	out  output
	done chan error
	read int // of out
}

// output is what was written; it can be made to stand still, and to fail.
type output struct {
	mu    sync.Mutex
	text  strings.Builder
	err   error
	still chan struct{} // while it is open, nothing is taken
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	still := o.still
	o.mu.Unlock()
	if still != nil {
		<-still
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// bubble runs f under fake time with a person at a desk.
func bubble(t *testing.T, f func(*person), change ...func(*Options)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := sit(t, newDesk(), change...)
		f(p)
		_ = p.leave() // f has looked, where it matters
	})
}

// sit starts a frontend. It must be left before its bubble ends.
func sit(t *testing.T, d *desk, change ...func(*Options)) *person {
	t.Helper()
	in, typing := io.Pipe()
	p := &person{t: t, desk: d, in: typing, done: make(chan error, 1)}
	d.mu.Lock()
	me := len(d.changed)
	d.changed[me] = func() {}
	d.mu.Unlock()
	o := Options{
		Client: d, Inbox: d, Self: "01j0000000000000000000self", Principal: func() string { return "uid:1000" },
		Words: words.In(words.English), Home: "/home/ana", In: in, Out: &p.out,
		Changed: func(ctx context.Context, changed func()) {
			d.mu.Lock()
			d.changed[me] = changed
			d.mu.Unlock()
			<-ctx.Done()
		},
	}
	for _, c := range change {
		c(&o)
	}
	go func() { p.done <- Run(t.Context(), o) }()
	synctest.Wait()
	return p
}

// leave ends the input and gives how the frontend ended.
func (p *person) leave() error {
	p.t.Helper()
	_ = p.in.Close()
	select {
	case err := <-p.done:
		p.done <- err
		return err
	case <-time.After(time.Hour): // of fake time
		p.t.Fatal("the frontend does not end with its input")
		return nil
	}
}

// types sends lines, each with its line feed, and waits until nothing moves.
func (p *person) types(lines ...string) {
	for _, l := range lines {
		_, _ = io.WriteString(p.in, l+"\n") // fails only once the frontend has ended
	}
	synctest.Wait()
}

// asks brings questions before the person and lets the grace pass.
func (p *person) asks(list ...events.Question) {
	p.desk.ask(list...)
	p.waits()
}

func (p *person) waits() {
	synctest.Wait()
	<-time.After(grace)
	synctest.Wait()
}

// hears is what was written since it was last called.
func (p *person) hears() string {
	synctest.Wait()
	all := p.out.String()
	text := all[p.read:]
	p.read = len(all)
	return text
}

func (p *person) wantHeard(parts ...string) {
	p.t.Helper()
	text := p.hears()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			p.t.Errorf("%q is not in\n%s", part, text)
		}
	}
}

func (p *person) wantAnswers(want ...events.Answer) {
	p.t.Helper()
	synctest.Wait()
	var got []events.Answer
	for _, r := range p.desk.sent() {
		got = append(got, r.Answer)
		if !r.Human {
			p.t.Errorf("an answer without a person: %+v", r)
		}
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("answers %v, want %v", got, want)
	}
}

func question(id, tool, args string) events.Question {
	return events.Question{
		ID: events.ID(id), Gate: events.GateHook, Operation: events.ID("op-" + id), Project: "proj", Session: "sess",
		Agent: "claude", ProjectPath: "/home/ana/src/myproj", Cwd: "/home/ana/src/myproj", Kind: events.KindToolCall,
		Path: "main", Tool: events.Tool{Name: tool, Kind: "shell"},
		Hook: events.Hook{
			ID: "ask-before-push", Scope: events.ScopeProject, File: "/home/ana/src/myproj/.fermata/hooks.yaml", Line: 6,
		},
		Reason:  "This changes the production branch.",
		Version: events.Version{Digest: events.DigestOf([]byte(args)), Bytes: len(args)},
		Args:    []byte(args), Previous: -1, AskedAt: events.At(time.Now()), ReceivedBy: 1, Seq: 10,
	}
}

func push() events.Question {
	return question("q1", "Bash", `{"command":"git push --force origin main","cwd":"~/src/myproj"}`)
}

func remove() events.Question { return question("q2", "shell", `{"command":"rm -r build"}`) }

// input makes a question about an input, whose arguments are one JSON string.
func input(k events.Kind, text string) events.Question {
	q := question("q6", "", text)
	q.Kind, q.Tool, q.Hook.ID, q.Reason = k, events.Tool{}, "ask-about-keys", "There may be a key in this."
	return q
}
