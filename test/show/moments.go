package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
	"github.com/fermata-hitl/fermata/test/show/terminal"
)

// capture is one moment of the screen that is worth keeping. Title begins with
// the behaviours that it shows.
type capture struct {
	name, title string
	light       bool
	colours     bool // the text tells which colours are used
	ready       func(text string) bool
	on          *terminal.Terminal
}

// text is what is kept of a picture.
func (c capture) text(p terminal.Picture) string {
	text := mask(p.Text())
	if c.colours {
		text += "colours: " + cmp.Or(strings.Join(coloursOf(p), ", "), "none") + "\n"
	}
	return text
}

// size is how many columns and rows a terminal has.
type size struct{ columns, rows int }

// parseSize reads 80x24.
func parseSize(text string) (s size, err error) {
	if n, _ := fmt.Sscanf(text, "%dx%d", &s.columns, &s.rows); n != 2 || s.columns < 20 || s.rows < 10 || s.String() != text {
		return s, fmt.Errorf("%q is no size: write columns x rows, such as 80x24", text)
	}
	return s, nil
}

func (s size) String() string { return fmt.Sprintf("%dx%d", s.columns, s.rows) }

// patience bounds every wait for a screen.
const patience = 20 * time.Second

// sizes are the terminals whose captures are kept.
func sizes() []string { return []string{"80x24", "200x60", "40x20"} }

// narrow is the width of the moment at which the window has been made smaller.
const narrow = 40

// show is one run through the moments on one size of terminal. Keep is called
// at each of them, with what must be on the screen then.
type show struct {
	ctx   context.Context //nolint:containedctx // one run's life
	stage *stage
	size  size
	keep  func(capture) error
	open  []events.Question
	words words.Words
	on    *terminal.Terminal
}

// run opens a stage and goes through all moments.
func run(ctx context.Context, programs string, s size, keep func(capture) error) error {
	stage, err := openStage(ctx, programs)
	if err != nil {
		return err
	}
	defer stage.close()
	if err := stage.history(ctx); err != nil {
		return err
	}
	open, err := stage.questions(ctx)
	if err != nil {
		return err
	}
	return (&show{ctx: ctx, stage: stage, size: s, keep: keep, open: open}).all()
}

// screen is one start of the program: its looks, and what is done with it.
type screen struct {
	language words.Language
	env      []string
	light    bool
	play     func(*show) error
}

func (s *show) all() error {
	for _, one := range []screen{
		{language: "en", play: (*show).main},
		{language: "en", light: true, play: func(s *show) error {
			return s.coloured(capture{name: "light", title: "B108 asked again on a light background", light: true})
		}},
		{language: "en", env: []string{"NO_COLOR=1"}, play: func(s *show) error {
			return s.coloured(capture{name: "no-color", title: "B108 asked again without colours"})
		}},
		{language: "zh-Hans", play: func(s *show) error {
			if err := s.turned(capture{name: "zh-hans", title: "B125 a question in Simplified Chinese"}, "n", "ask-before-push"); err != nil {
				return err
			}
			return s.press("\x1b", capture{name: "zh-hans-list", title: "B125 the list in Simplified Chinese", ready: s.listed})
		}},
	} {
		if err := s.start(one); err != nil {
			return err
		}
	}
	return nil
}

func (s *show) start(one screen) (err error) {
	cmd := s.stage.command(s.ctx, "tui-frontend", "--language", string(one.language))
	cmd.Env = append(cmd.Env, one.env...)
	if s.on, err = terminal.Open(terminal.Options{Columns: s.size.columns, Rows: s.size.rows, Light: one.light}, cmd); err != nil {
		return err
	}
	defer s.on.Close()
	s.words = words.In(one.language)
	return one.play(s)
}

// live reports whether the question on the screen takes answers by now.
func (s *show) live(text string) bool {
	return strings.Contains(text, "c "+s.words.Say(words.Continue))
}

// claimed reports whether the screen says that another one is answering.
func (s *show) claimed(text string) bool {
	return has(text, s.words.Say(words.TakesItOver))
}

// asks is live, with these texts.
func (s *show) asks(about ...string) func(string) bool {
	return func(text string) bool { return s.live(text) && has(text, about...) }
}

func (s *show) listed(text string) bool {
	return strings.Contains(text, s.words.Say(words.Earlier)) && has(text, "git push", "go test")
}

func has(text string, all ...string) bool {
	for _, part := range all {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// press types keys and keeps the moment that follows; without a name it is only
// waited for.
func (s *show) press(keys string, c capture) error {
	if err := s.on.Press(keys); err != nil {
		return err
	}
	c.on = s.on
	if c.name == "" {
		p, err := s.on.Await(c.title, patience, c.ready)
		if err != nil {
			err = fmt.Errorf("%w; the screen:\n%s", err, p.Text())
		}
		return err
	}
	return s.keep(c)
}

// then is press without a moment to keep.
func (s *show) then(keys, what string, ready func(string) bool) error {
	return s.press(keys, capture{title: what, ready: ready})
}

// turn goes to the question of a hook, with n or N, from wherever the screen is:
// each session tells its questions by itself, so that the first on the screen may
// be any. What a question is about is no mark of it, since the line at the bottom
// says that of the next one.
func (s *show) turn(key, hook string) error {
	p, err := s.on.Await("a question", patience, s.live)
	for range len(s.open) + 1 {
		if err != nil || s.asks(hook)(p.Text()) {
			return err
		}
		shown := mask(p.Text())
		if err = s.on.Press(key); err == nil {
			p, err = s.on.Await("another question than this", patience, func(text string) bool { return s.live(text) && mask(text) != shown })
		}
	}
	return fmt.Errorf("the question of %s is not among those that %s turns to", hook, key)
}

// turned keeps the question of a hook.
func (s *show) turned(c capture, key, hook string) error {
	if err := s.turn(key, hook); err != nil {
		return err
	}
	c.ready = s.asks(hook)
	return s.press("", c)
}

// coloured keeps the question that has most colours, and names them.
func (s *show) coloured(c capture) error {
	c.colours = true
	return s.turned(c, "N", "ask-before-apply") // the newest is right before the oldest
}

// main goes through the moments of the usual screen. A question takes keys only
// when it has been read for a while, so each step waits for the one before.
func (s *show) main() error {
	closed := func(text string) bool { return s.live(text) && !has(text, s.words.Say(words.Close)) }
	for _, step := range []func() error{
		func() error {
			return s.turned(capture{name: "dialog", title: "B101 B102 B105 a question"}, "n", "ask-before-push")
		},
		s.somebodyElse,
		func() error {
			return s.press("?", capture{name: "details", title: "B101 what else is known of it", ready: func(text string) bool {
				return has(text, s.words.Say(words.Close))
			}})
		},
		func() error { return s.then("\x1b", "end of the details", closed) },
		s.narrower,
		func() error {
			return s.turned(capture{name: "edit", title: "B102 B106 an edit"}, "n", "ask-before-write")
		},
		func() error { return s.turn("n", "ask-before-script") },
		func() error {
			return s.press("\x1b[F", capture{name: "long", title: "B104 the end of a value of 80,000 characters", ready: s.asks(";touch M")})
		},
		func() error {
			return s.turned(capture{name: "equal", title: "B106 two equal calls at once"}, "n", "ask-before-delete")
		},
		func() error { return s.turn("n", "ask-before-apply") },
		func() error {
			return s.then("c", "what comes after an answer", func(text string) bool {
				return s.live(text) && (has(text, "region=") || !has(text, "ask-before-apply"))
			})
		},
		func() error {
			return s.coloured(capture{name: "again", title: "B108 asked again after a change"})
		},
		func() error {
			return s.press("\x1b", capture{name: "list", title: "B106 B109 everything that waits", ready: s.listed})
		},
		func() error {
			return s.press("h", capture{name: "hooks", title: "B110 B111 the runs of hooks", ready: func(text string) bool {
				return has(text, "notify-team", "redline-scan")
			}})
		},
		func() error { return s.then("\x1b", "the list", s.listed) },
		func() error {
			return s.press("?", capture{name: "help", title: "B125 the keys", ready: func(text string) bool { return !s.listed(text) }})
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// somebodyElse keeps the moment at which the person in the editor has begun to
// answer.
func (s *show) somebodyElse() error {
	id := s.open[0].ID
	claim, err := s.stage.editor.Claim(s.ctx, id)
	if err != nil {
		return err
	}
	err = s.press("", capture{name: "somebody-else", title: "B106 somebody else is answering", ready: func(text string) bool {
		return s.claimed(text)
	}})
	if err != nil {
		return err
	}
	if err := s.stage.editor.Release(s.ctx, id, claim); err != nil {
		return err
	}
	return s.then("", "the end of the other claim", func(text string) bool {
		return s.live(text) && !s.claimed(text)
	})
}

// narrower keeps the moment at which the window has been made narrow.
func (s *show) narrower() error {
	if s.size.columns == narrow {
		return nil
	}
	drawn := func(columns int) func(string) bool {
		return func(text string) bool {
			return s.live(text) && has(text, "\n "+strings.Repeat("─", columns-2)+"\n")
		}
	}
	whole := s.size
	s.size.columns = narrow
	if err := s.on.Resize(s.size.columns, s.size.rows); err != nil {
		return err
	}
	err := s.press("", capture{name: "narrow", title: "B104 the window at 40 columns", ready: drawn(narrow)})
	s.size = whole
	if err != nil {
		return err
	}
	if err := s.on.Resize(s.size.columns, s.size.rows); err != nil {
		return err
	}
	return s.then("", "the whole window again", drawn(s.size.columns))
}

// quiet is how long nothing must be drawn for a frame to be taken as whole.
const quiet = 150 * time.Millisecond

// take waits for the moment and takes its picture.
func (c capture) take() (terminal.Picture, error) {
	if _, err := c.on.Await(c.name, patience, c.ready); err != nil {
		return c.on.Picture(), err
	}
	c.on.Rest(quiet)
	p, err := c.on.Await(c.name, patience, c.ready)
	return p, err
}
