package plain

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// reading is somebody who reads for a while before each line that they type.
type reading struct {
	lines []string
	pause time.Duration
	text  string
}

func (r *reading) Read(p []byte) (int, error) {
	if r.text == "" {
		if len(r.lines) == 0 {
			return 0, io.EOF
		}
		<-time.After(r.pause)
		r.text, r.lines = r.lines[0], r.lines[1:]
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

func typing(text string) *reading {
	return &reading{lines: strings.SplitAfter(text, "\n"), pause: time.Second}
}

func TestB6F8Prompt(t *testing.T) {
	q := push()
	for _, c := range []struct {
		name, in string
		want     events.Answer
		text     string
		err      error
		rest     string
	}{
		{name: "continue", in: "c\nnext", want: events.AnswerContinue, rest: "next"},
		{name: "cancel", in: "X\r\n", want: events.AnswerCancel},
		{name: "words", in: "w\nuse the staging db\n", want: events.AnswerCancel, text: "use the staging db"},
		{name: "asks again", in: "\nyes\ny\nc\n", want: events.AnswerContinue},
		{name: "end is no answer", in: "", err: ErrNoAnswer},
		{name: "a line that was cut off is no answer", in: "c", err: ErrNoAnswer},
		{name: "end instead of words", in: "w\n", err: ErrNoAnswer},
		{name: "no words are no words", in: "w\n \nc\n", want: events.AnswerContinue},
		{name: "what is no text is no words", in: "w\nred\x1b[31m\nw\n\xff\nx\n", want: events.AnswerCancel},
	} {
		inBubble(t, c.name, func(t *testing.T) {
			in, out := typing(c.in), &strings.Builder{}
			got, text, err := Prompt(t.Context(), in, out, words.In(words.English), q, q.Args)
			if got != c.want || text != c.text || !errors.Is(err, c.err) {
				t.Errorf("got %q, %q, %v", got, text, err)
			}
			if rest, _ := io.ReadAll(in); string(rest) != c.rest {
				t.Errorf("left %q for the next question", rest)
			}
			for _, want := range []string{"git push --force origin main", "ask-before-push", "hooks.yaml:6", "production branch"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not shown in\n%s", want, out)
				}
			}
		})
	}
	inBubble(t, "B103 a message of a sub-agent", func(t *testing.T) {
		q := input(events.KindInjection, `"first line\nsecond line"`)
		q.Path = "main > reviewer#1"
		out := &strings.Builder{}
		if _, _, err := Prompt(t.Context(), typing("x\n"), out, words.In(words.English), q, q.Args); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"added message · main > reviewer#1   claude", "message · rows: 2 · bytes: 22\n │ first line\n │ second line\n"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not shown in\n%s", want, out)
			}
		}
	})
	inBubble(t, "B103 a message that was changed", func(t *testing.T) {
		q := input(events.KindUserPrompt, `"now"`)
		q.Attempt, q.Previous, q.Version.N = 1, 0, 1
		q.Changed = []events.Change{{Old: []byte(`"then"`), New: []byte(`"now"`)}}
		out := &strings.Builder{}
		if _, _, err := Prompt(t.Context(), typing("c\n"), out, words.In(words.English), q, q.Args); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"message −", "then", "message +"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not shown in\n%s", want, out)
			}
		}
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		in, _ := io.Pipe()
		defer in.Close()
		if _, _, err := Prompt(ctx, in, io.Discard, words.Words{}, q, q.Args); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("other bytes", func(t *testing.T) {
		if _, _, err := Prompt(t.Context(), strings.NewReader("c\n"), io.Discard, words.Words{}, q, []byte(`{}`)); err == nil {
			t.Error("asked about bytes that will not run")
		}
	})
}

func TestB125PromptSpeaksTheLanguageThatItIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, out := push(), &strings.Builder{}
		if _, _, err := Prompt(t.Context(), typing("c\n"), out, words.In(words.Chinese), q, q.Args); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "c 继续 · x 取消") || !strings.Contains(out.String(), "提问者") {
			t.Errorf("it said\n%s", out)
		}
	})
}

// TestF9B104WhatWasTypedAheadAnswersNothing: lines that lie ready when the question
// comes were meant for something else.
func TestF9B104WhatWasTypedAheadAnswersNothing(t *testing.T) {
	for name, in := range map[string]io.Reader{
		"lies ready":    strings.NewReader("c\nc\nw\nx\n"),
		"comes at once": &reading{lines: []string{"c\n"}, pause: grace - time.Millisecond},
	} {
		inBubble(t, name, func(t *testing.T) {
			q, out := push(), &strings.Builder{}
			got, text, err := Prompt(t.Context(), in, out, words.In(words.English), q, q.Args)
			if got != "" || text != "" || !errors.Is(err, ErrNoAnswer) {
				t.Errorf("got %q, %q, %v", got, text, err)
			}
			if !strings.Contains(out.String(), "had only just appeared") {
				t.Errorf("not told:\n%s", out)
			}
		})
	}
	inBubble(t, "the next line counts", func(t *testing.T) {
		q := push()
		in := io.MultiReader(strings.NewReader("x\n"), typing("c\n"))
		if got, _, err := Prompt(t.Context(), in, io.Discard, words.In(words.English), q, q.Args); got != events.AnswerContinue {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func inBubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
