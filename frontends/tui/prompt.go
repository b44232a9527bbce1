package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// ErrNoAnswer is returned by [Prompt] when the input ends before an answer.
// It is no answer: whoever asked must not go on.
var ErrNoAnswer = errors.New("the input ended without an answer; nothing was answered")

// Prompt asks one question in lines of text, for an input that is no terminal:
// every argument whole, escaped like on the screen, then a line with c, x or w.
// An empty line and anything else ask again; there is no default. text are the
// words to the model. When ctx ends first its error is returned; the read from
// in that was begun ends only with in.
func Prompt(
	ctx context.Context, in io.Reader, out io.Writer, w words.Words, q events.Question, args []byte,
) (answer events.Answer, text string, err error) {
	p := prompt{w, in, out}
	c := card.New(q, args, "", p.w)
	if !c.Genuine {
		return "", "", errors.New(p.w.Say(words.WrongBytes))
	}
	if q.Gate != events.GateHook {
		return "", "", errors.New(p.w.Say(words.UnknownGate, card.Line(string(q.Gate))))
	}
	p.show(q, c)
	for {
		choice, err := p.ask(ctx, p.w.Say(words.PromptChoice))
		if err != nil {
			return "", "", err
		}
		switch strings.ToLower(strings.TrimSpace(choice)) {
		case "c":
			return events.AnswerContinue, "", nil
		case "x":
			return events.AnswerCancel, "", nil
		case "w":
			text, err := p.ask(ctx, p.w.Say(words.PromptWords))
			if err != nil {
				return "", "", err
			}
			return events.AnswerCancel, text, nil
		}
		p.say(p.w.Say(words.PromptUnknown))
	}
}

type prompt struct {
	w   words.Words
	in  io.Reader
	out io.Writer
}

func (p *prompt) ask(ctx context.Context, text string) (string, error) {
	fmt.Fprint(p.out, " ", text)
	type line struct {
		text string
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := readLine(p.in)
		got <- line{text, err}
	}()
	select {
	case l := <-got:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// readLine reads one line and not a byte beyond it: the rest belongs to the
// next question. A last line without a line feed is no line, since the one who
// wrote it was cut off.
func readLine(in io.Reader) (string, error) {
	var text []byte
	for b := make([]byte, 1); ; {
		n, err := in.Read(b)
		switch {
		case n == 1 && b[0] == '\n':
			return strings.TrimSuffix(string(text), "\r"), nil
		case n == 1 && len(text) == maxWords:
			return "", errors.New("the line is longer than 16 KiB; nothing was answered")
		case n == 1:
			text = append(text, b[0])
		}
		if errors.Is(err, io.EOF) {
			return "", ErrNoAnswer
		}
		if err != nil {
			return "", fmt.Errorf("read the answer: %w", err)
		}
	}
}

func (p *prompt) say(s string) { fmt.Fprintln(p.out, " "+s) }

// show prints the whole card.
func (p *prompt) show(q events.Question, c card.Card) {
	about := c.Title
	if c.Path != "" {
		about += " · " + c.Path
	}
	p.say(about + "   " + c.Session)
	if q.Previous >= 0 {
		changes, _ := card.Changes(q.Changed)
		p.say(p.w.Say(words.AskedAgain, q.Attempt))
		for _, ch := range changes {
			name := ch.Name
			if name == "" {
				name = card.Whole(q.Kind, p.w)
			}
			p.value(name+" −", ch.Old.Lead+ch.Old.Middle+ch.Old.Trail)
			p.value(name+" +", ch.New.Lead+ch.New.Middle+ch.New.Trail)
		}
	}
	for _, f := range c.Fields {
		p.value(f.Name, f.Text)
		for _, m := range card.Marks(f.Text) {
			p.say("  " + p.w.Say(words.Marked, m.Count, m.Text))
		}
	}
	p.value(p.w.Say(words.AskedBy), c.Hook+"   "+c.Origin)
	p.value(p.w.Say(words.Reason), c.Reason)
}

// value prints a name and a text, each line of the text behind a bar.
func (p *prompt) value(name, text string) {
	label := pad(name, max(10, cells(name)))
	lines, ended := strings.CutSuffix(text, "\n")
	for l := range strings.SplitSeq(lines, "\n") {
		p.say(label + " │ " + l)
		label = pad("", cells(label))
	}
	if ended {
		p.say(label + "   ⏎ " + p.w.Say(words.EndsWithBreak))
	}
}
