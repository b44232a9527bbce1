package plain

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// ErrNoAnswer is returned by [Prompt] when the input ends before an answer.
// It is no answer: whoever asked must not go on.
var ErrNoAnswer = errors.New("the input ended without an answer; nothing was answered")

// Prompt asks one question in lines of text: every argument whole, escaped like on
// the screen, then a line with c, x or w. An empty line and anything else ask
// again; there is no default. text are the words to the model. Not a byte beyond
// the last line is read from in. When ctx ends first its error is returned; the
// read from in that was begun ends only with in.
func Prompt(
	ctx context.Context, in io.Reader, out io.Writer, w words.Words, q events.Question, args []byte,
) (answer events.Answer, text string, err error) {
	p := prompt{page: page{w: w, out: out}, in: in}
	c := card.New(q, args, "", w)
	if why := unanswerable(q, c, w); why != "" {
		return "", "", errors.New(why)
	}
	p.page.card("", q, c)
	for {
		choice, err := p.ask(ctx, words.PromptChoice)
		if err != nil {
			return "", "", err
		}
		switch strings.ToLower(strings.TrimSpace(choice)) {
		case "c":
			return events.AnswerContinue, "", nil
		case "x":
			return events.AnswerCancel, "", nil
		case "w":
			text, err := p.ask(ctx, words.PromptWords)
			if err != nil {
				return "", "", err
			}
			return events.AnswerCancel, text, nil
		}
		p.page.row(w.Say(words.PromptUnknown))
	}
}

// unanswerable tells why a question must not be answered here, "" when it may.
func unanswerable(q events.Question, c card.Card, w words.Words) string {
	switch {
	case !c.Genuine:
		return w.Say(words.WrongBytes)
	case q.Gate != events.GateHook:
		return w.Say(words.UnknownGate, card.Line(string(q.Gate)))
	}
	return ""
}

type prompt struct {
	page page
	in   io.Reader
}

func (p *prompt) ask(ctx context.Context, k words.Key) (string, error) {
	p.page.flush(" " + p.page.w.Say(k))
	if p.page.err != nil {
		return "", p.page.err
	}
	type line struct {
		text string
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := readLine(p.in, p.page.w)
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
// next question.
func readLine(in io.Reader, w words.Words) (string, error) {
	var text []byte
	for b := make([]byte, 1); ; {
		n, err := in.Read(b)
		switch {
		case n == 1 && b[0] == '\n':
			return strings.TrimSuffix(string(text), "\r"), nil
		case n == 1 && len(text) == maxWords:
			return "", errors.New(w.Say(words.PlainTooLong, card.Count(maxWords)))
		case n == 1:
			text = append(text, b[0])
		}
		if errors.Is(err, io.EOF) {
			return "", ErrNoAnswer
		}
		if err != nil {
			return "", err
		}
	}
}
