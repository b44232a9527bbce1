package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// typedAhead is what a person writes to somebody else while a question comes.
const typedAhead = "1 yes, fix the cache\n"

// rhythm is twelve keys a second.
const rhythm = time.Second / 12

// types types a text in its rhythm, and calls before ahead of each key.
func (p *pane) typesAhead(text string, before func(at int)) {
	p.t.Helper()
	beat := time.NewTicker(rhythm)
	defer beat.Stop()
	for at, char := range []rune(text) {
		before(at)
		p.types(char)
		<-beat.C
	}
}

// TestHAND10TypeAhead types into a real screen as somebody does who does not look
// at it: nothing that was typed before a question could be read answers it.
func TestHAND10TypeAhead(t *testing.T) {
	t.Parallel()
	const lanes = 4 // positions are taken in turns by screens of their own
	for lane := range lanes {
		t.Run(fmt.Sprintf("F9 the question opens at key %d of the sentence, and at every fourth behind it", lane), func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "", ask("ahead"))
			p, s := b.tmux(80, 24), b.screen()
			p.rests()
			for at := lane; at <= len(typedAhead); at += lanes {
				opensAt(b, p, s, at)
			}
		})
	}
	t.Run("F9 questions at every key while the filter is written: its text stays, none is answered", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "", ask("ahead"))
		p, s := b.tmux(80, 24), b.screen()
		p.rests()
		p.press("/")
		open := b.askedWhile(p, s, strings.TrimSpace(typedAhead))
		p.shows("the filter's text", func(text string) bool { return strings.Contains(text, strings.TrimSpace(typedAhead)) })
		nothingWasSaid(t, s, open)
		p.press("Enter", "Enter") // the second is one more than the filter takes
		p.shows("the end of the filter", func(text string) bool { return !strings.Contains(text, english.Say(words.Keep)) })
		nothingWasSaid(t, s, open)
	})
	t.Run("F9 questions at every key while words to the model are written: they stay, none is answered", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "", ask("first"), ask("ahead"))
		p, s := b.tmux(80, 24), b.screen()
		p.rests()
		b.call("first", `{}`)
		first := s.question("first")
		p.asks("first-ask")
		p.does("the line for words", func(text string) bool { return strings.Contains(text, english.Say(words.Send)) }, "w")
		open := b.askedWhile(p, s, strings.TrimSpace(typedAhead))
		p.shows("the words", func(text string) bool {
			return strings.Contains(text, strings.TrimSpace(typedAhead)) && strings.Contains(text, "first-ask")
		})
		nothingWasSaid(t, s, append(open, first))
	})
	t.Run("F9 single keys within the grace and behind it", singleKeys)
	t.Run("F9 the next question is not answered by a second key 400 ms later", swappedBetweenKeys)
}

// opensAt is one round: a question opens ahead of one key of the sentence.
func opensAt(b *box, p *pane, s *screen, position int) {
	t := b.t
	t.Helper()
	var q events.Question
	opens := func(at int) {
		if at == position {
			b.wish(wish{tool: "ahead", args: fmt.Sprintf(`{"n":%d}`, at), turn: fmt.Sprint(at)})
			q = s.question("ahead")
		}
	}
	p.typesAhead(typedAhead, opens)
	opens(len(typedAhead))
	nothingWasSaid(t, s, []events.Question{q})
	p.shows("the question, in front or behind a page that the keys have opened", func(text string) bool {
		return strings.Contains(text, "ahead")
	})
	s.takesOver(q)
	p.leaves()
}

// leaves goes back to the list, whatever the keys before have opened.
func (p *pane) leaves() {
	p.t.Helper()
	listed := func(text string) bool { return strings.Contains(text, "/ "+english.Say(words.Filter)) }
	p.shows("a screen without a question", func(text string) bool { return !strings.Contains(text, " "+english.Say(words.Cancel)) })
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	p.shows("the list", func(text string) bool {
		if listed(text) {
			return true
		}
		select {
		case <-again.C: // a row's details, the pane, the list
			p.press("Escape")
		default:
		}
		return false
	})
}

// askedWhile opens a question ahead of every key of a text.
func (b *box) askedWhile(p *pane, s *screen, text string) (open []events.Question) {
	b.t.Helper()
	p.typesAhead(text, func(at int) {
		b.wish(wish{tool: "ahead", args: fmt.Sprintf(`{"n":%d}`, at), turn: fmt.Sprint(at)})
	})
	for range len(text) {
		open = append(open, s.question("ahead"))
	}
	return open
}

// nothingWasSaid holds questions to be open still, and unanswered.
func nothingWasSaid(t testing.TB, s *screen, all []events.Question) {
	t.Helper()
	for _, q := range all {
		if _, open := s.Inbox().Question(q.ID); !open {
			end, _ := s.Inbox().Ended(q.ID)
			t.Fatalf("question %s (%s) was ended by keys that were meant for something else: %+v", q.ID, q.Args, end)
		}
	}
}

// singleKeys presses each key alone: as soon as the question is drawn, and when
// its buttons count. Nothing is chosen beforehand, so that none of them answers.
func singleKeys(t *testing.T) {
	t.Parallel()
	b := newBox(t, "", ask("single"))
	p, s := b.tmux(80, 24), b.screen()
	p.rests()
	for n, key := range []string{"y", "a", "Space", "Enter", "c", "x"} {
		b.wish(wish{tool: "single", args: fmt.Sprintf(`{"n":%d}`, n), turn: fmt.Sprint(n)})
		q := s.question("single")
		p.shows("the question", func(text string) bool { return strings.Contains(text, "single-ask") })
		p.press(key)
		p.asks("single-ask")
		if key != "c" && key != "x" {
			p.press(key)
			p.press("Tab") // when this has been seen to be taken, so was the key before it
			p.shows("the claim", func(string) bool {
				now, _ := s.Inbox().Question(q.ID)
				return now.ClaimedBy != nil
			})
		}
		nothingWasSaid(t, s, []events.Question{q})
		s.takesOver(q)
		p.shows("its end", func(text string) bool { return !strings.Contains(text, "single-ask") })
	}
	b.wish(wish{tool: "single", args: `{"n":"Esc"}`, turn: "esc"})
	q := s.question("single")
	p.asks("single-ask")
	p.does("the list", func(text string) bool { return !strings.Contains(text, english.Say(words.Cancel)) }, "Escape")
	nothingWasSaid(t, s, []events.Question{q})
}

// takesOver answers with no, as the same person at another screen.
func (s *screen) takesOver(q events.Question) {
	s.b.t.Helper()
	claim, err := s.Claim(s.b.t.Context(), q.ID)
	if err != nil {
		s.b.t.Fatal(err)
	}
	r := reply(q, events.AnswerCancel)
	r.Claim = claim
	if _, err := s.Answer(s.b.t.Context(), r); err != nil {
		s.b.t.Fatal(err)
	}
	s.end(q)
}

// swappedBetweenKeys: the first key answers, the next question takes its place,
// and a second key comes 400 ms behind the first. Then the question on the screen
// goes by itself between two keys.
func swappedBetweenKeys(t *testing.T) {
	t.Parallel()
	b := newBox(t, "", ask("one"), ask("two"), ask("three"))
	p, s := b.tmux(80, 24), b.screen()
	p.rests()
	beat := time.NewTicker(400 * time.Millisecond)
	defer beat.Stop()
	one := b.call("one", `{}`)
	p.asks("one-ask")
	b.call("two", `{}`)
	two := s.question("two")
	b.call("three", `{}`)
	three := s.question("three")
	<-beat.C
	p.press("c")
	<-beat.C
	p.press("c")
	one.wantRan(`{}`)
	p.asks("two-ask")
	nothingWasSaid(t, s, []events.Question{two, three})
	s.says(two, events.AnswerCancel)
	p.shows("the third question", func(text string) bool { return strings.Contains(text, "three-ask") })
	p.press("c")
	<-beat.C
	p.press("c")
	p.asks("three-ask")
	nothingWasSaid(t, s, []events.Question{three})
}
