package plain

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// ErrNoAnswer is returned by [Prompt] when the input ends before an answer.
// It is no answer: whoever asked must not go on.
var ErrNoAnswer = errors.New("the input ended without an answer; nothing was answered")

// Prompt asks one question in lines of text: every argument whole, escaped like on
// the screen, then a line with c, x or w. An empty line and anything else ask
// again, and so does a line that came before the question could be read, as in [Run];
// there is no default. text are the words to the model. Not a byte beyond the last
// line is read from in. When ctx ends first its error is returned; the read from in
// that was begun ends only with in.
func Prompt(
	ctx context.Context, in io.Reader, out io.Writer, w words.Words, q events.Question, args []byte,
) (answer events.Answer, text string, err error) {
	p := prompt{page: page{w: w, out: out}, in: in}
	c := card.New(q, args, "", w)
	if why, _ := (card.Teller{Words: w}).Obstacle(q, c); why != "" {
		return "", "", errors.New(why)
	}
	p.page.card("", q, c)
	written := time.Now()
	for {
		choice, err := p.ask(ctx, words.PromptChoice)
		if err != nil {
			return "", "", err
		}
		if tooSoon(time.Now(), written) {
			p.page.row(w.Say(words.PromptTooSoon))
			continue
		}
		switch strings.ToLower(strings.TrimSpace(choice)) {
		case "c":
			return events.AnswerContinue, "", nil
		case "x":
			return events.AnswerCancel, "", nil
		case "w":
			text, err := p.words(ctx)
			if err != nil {
				return "", "", err
			}
			if text != "" {
				return events.AnswerCancel, text, nil
			}
		default:
			p.page.row(w.Say(words.PromptUnknown))
		}
	}
}

type prompt struct {
	page page
	in   io.Reader
}

// words asks for the words to the model, "" when they cannot be sent, of which the
// person has been told.
func (p *prompt) words(ctx context.Context) (string, error) {
	text, err := p.ask(ctx, words.PromptWords)
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	switch problem := unsendable(text); problem {
	case "":
		return text, nil
	case words.PlainNoWords:
		p.page.row(p.page.w.Say(words.PromptNoWords))
	default:
		p.page.row(p.page.w.Say(problem))
	}
	return "", nil
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
