package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// TestHAND05OutlivesItsScreens: a question in a real terminal is there for a
// screen that comes late, for the one after a screen that was killed, and for
// both when the core was.
func TestHAND05OutlivesItsScreens(t *testing.T) {
	t.Parallel()
	t.Run("B7 F2 (i) a screen that comes later shows it within a second", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "confirmation: {when_nobody: wait}\n", ask("late"))
		c := b.call("late", `{"command":"touch M"}`)
		q := b.listed("late")
		b.since(events.At(q.AskedAt), 5*time.Second)
		p := b.tmux(80, 24)
		must(t, "attachment of the screen", func() error {
			if now, err := b.status(); err != nil || now.Frontends == 0 {
				return errNotYet
			}
			return nil
		})
		attached := time.Now()
		p.shows("the question", func(text string) bool { return strings.Contains(text, "late-ask") })
		inTime(t, "the question", time.Since(attached), time.Second)
		p.asks("late-ask")
		p.answers("late-ask", "c")
		c.wantRan(`{"command":"touch M"}`)
	})
	t.Run("F2 B22 (ii) after kill -9 of a screen that had begun to answer the next one has it", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "", ask("killed"))
		w := b.watch()
		first := b.tmux(80, 24)
		first.rests()
		c := b.call("killed", `{"n":1}`)
		q := w.opens("killed")
		first.asks("killed-ask")
		first.press("Tab") // to look at it is to begin
		w.line("claimed", func(l cliQuestion) bool { return l.Question == q.Question })
		first.kill()
		killed := time.Now()
		second := b.tmux(80, 24)
		second.shows("the same question", func(text string) bool {
			return second.live(text) && strings.Contains(text, "killed-ask") && !strings.Contains(text, english.Say(words.TakesItOver))
		})
		inTime(t, "the free question", time.Since(killed), 20*time.Second)
		second.answers("killed-ask", "c")
		c.wantRan(`{"n":1}`)
		if end := w.closes(q.Question); end.Answer != events.AnswerContinue {
			t.Errorf("it ended with %+v", end)
		}
		b.answeredOnce(t, "killed")
	})
	t.Run("F3 B58 (iii) after kill -9 of the core the screen that stayed answers it", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "", ask("survives"))
		p := b.tmux(80, 24)
		p.rests()
		c := b.call("survives", `{"n":1}`)
		p.asks("survives-ask")
		before := b.listed("survives").Question
		b.killCore()
		p.shows("loss of the core", func(text string) bool { return strings.Contains(text, english.Say(words.Detached)) })
		b.startCore()
		if again := b.listed("survives").Question; again != before {
			t.Errorf("question %s became %s", before, again)
		}
		p.shows("the question again", func(text string) bool {
			return p.live(text) && strings.Contains(text, "survives-ask") && !strings.Contains(text, english.Say(words.Detached))
		})
		p.answers("survives-ask", "c")
		c.wantRan(`{"n":1}`)
		b.answeredOnce(t, "survives")
	})
	t.Run("F3 (iii) the same on the command line", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, "", ask("survives"))
		w := b.watch()
		c := b.call("survives", `{"n":1}`)
		q := w.opens("survives")
		b.killCore()
		b.startCore()
		must(t, "the same question", func() error {
			if r := b.gives(q.Question, events.AnswerContinue); r.Exit != 0 {
				return errNotYet
			}
			return nil
		})
		c.wantRan(`{"n":1}`)
		if end := w.closes(q.Question); end.Answer != events.AnswerContinue {
			t.Errorf("it ended with %+v", end)
		}
		b.answeredOnce(t, "survives")
	})
}

// listedQuestion is a line of `core questions --json`, with its time.
type listedQuestion struct {
	cliQuestion
	AskedAt time.Time `json:"asked_at"`
}

// listed waits until `core questions` lists a question of a tool. It makes no
// frontend of itself that could be asked.
func (b *box) listed(tool string) (q listedQuestion) {
	b.t.Helper()
	must(b.t, "question about "+tool, func() error {
		for line := range strings.Lines(b.run("", "core", "questions", "--json").Stdout) {
			if err := json.Unmarshal([]byte(line), &q); err != nil {
				return err
			}
			if q.Tool.Name == tool {
				return nil
			}
		}
		return errNotYet
	})
	return q
}

// answeredOnce stops the core, and holds the log to one answer to one question
// of a tool, and one run.
func (b *box) answeredOnce(t *testing.T, tool string) {
	t.Helper()
	b.stopCore()
	e := b.evidence(t)
	op := e.call(t, tool)
	if questions, answers := of(facts[events.Request](e), op), of(facts[events.Response](e), op); len(questions) != 1 || len(answers) != 1 {
		t.Errorf("%d questions with %d answers, want one of each", len(questions), len(answers))
	}
	e.checkRuns(t)
	e.checkSpans(t)
}

// raceRounds of TestHAND06TwoAnswers. Each costs the grace of a question, which
// no screen can be hurried through.
const raceRounds = 12

// TestHAND06TwoAnswersInATerminal presses a key in a real terminal while another
// frontend gives the opposite answer: both are in the core's sockets before it
// can read either.
func TestHAND06TwoAnswersInATerminal(t *testing.T) {
	t.Parallel()
	b := newBox(t, "", ask("race"))
	p, s, w := b.tmux(80, 24), b.screen(), b.watch()
	p.rests()
	keys := map[events.Answer]string{events.AnswerContinue: "c", events.AnswerCancel: "x"}
	byKey := 0
	for round := range raceRounds {
		mine, other := events.AnswerContinue, events.AnswerCancel
		if round%2 == 1 {
			mine, other = other, mine
		}
		args := fmt.Sprintf(`{"n":%d}`, round)
		c := b.wish(wish{tool: "race", args: args, turn: fmt.Sprint(round)})
		q := s.question("race")
		p.asks("race-ask")
		freeze(t, b.core)
		replied := make(chan error, 1)
		press := func() {
			p.does("that it is being sent", func(text string) bool { return strings.Contains(text, english.Say(words.Sending)) }, keys[mine])
		}
		answer := func() {
			go func() {
				_, err := s.Answer(t.Context(), reply(q, other))
				replied <- err
			}()
		}
		if round/2%2 == 0 {
			press()
			answer()
		} else {
			answer()
			press()
		}
		b.core.signal(syscall.SIGCONT)
		err := <-replied
		end := w.closes(q.ID)
		won := mine
		if err == nil {
			won = other
		} else {
			byKey++
			refusedWith(t, err, events.RejectAlreadyAnswered, mine)
		}
		if end.Answer != won || end.Result != events.ResultAnswered {
			t.Errorf("round %d: the end is %+v, the winner said %s", round, end, won)
		}
		if r := b.late(q.ID, events.RejectAlreadyAnswered); r.Answer != won || r.Who == "" || r.When == 0 {
			t.Errorf("round %d: core answer is told %+v", round, r)
		}
		if won == events.AnswerContinue {
			c.wantRan(args)
		} else {
			c.wantRefused(events.CodeDeclined)
		}
		p.rests()
	}
	t.Logf("the key was faster in %d rounds of %d", byKey, raceRounds)
	b.stopCore()
	t.Run("B12 B5 F1 one answer each in the log", func(t *testing.T) {
		e := b.in(t).evidence(t)
		if n := len(facts[events.Response](e)); n != raceRounds {
			t.Errorf("%d answers to %d questions", n, raceRounds)
		}
		e.checkRuns(t)
		e.checkSpans(t)
	})
}

// refusedWith holds an answer's error to a code and to what had been answered.
func refusedWith(t *testing.T, err error, code events.Reject, won events.Answer) {
	t.Helper()
	var r *events.Refused
	if !errors.As(err, &r) || r.Code != code || r.Answer != won || r.Who == "" {
		t.Errorf("the other answer is told %v, want %s by somebody who said %s", err, code, won)
	}
}

// TestHAND07OperationEndsFirst: what ends a session's calls takes their question
// off a real terminal and the command line, and a late yes runs nothing.
func TestHAND07OperationEndsFirst(t *testing.T) {
	t.Parallel()
	for _, v := range enders() {
		t.Run(v.number+" B69 B80 "+v.event+" closes it in a terminal and on the command line", func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "", ask("ends"))
			p, w := b.tmux(80, 24), b.watch()
			p.rests()
			at := said{"session_id": "s", "turn_id": "t1"}
			b.report("before_turn", at)
			c := b.toolCall(at.with(tool("ends", `{"command":"touch M"}`)))
			q := w.opens("ends")
			p.asks("ends-ask")
			began := time.Now()
			b.report(v.event, at)
			end := w.closes(q.Question)
			if end.Reason != v.reason {
				t.Errorf("it ended with %+v, want %s", end, v.reason)
			}
			inTime(t, "the end", end.At.Time().Sub(began), 500*time.Millisecond+time.Second) // agent-hook's own start is not the core's
			p.rests()
			p.press("c") // too late: there is nothing to answer on the screen
			if r := b.late(q.Question, events.RejectWithdrawn); r.EndReason != v.reason {
				t.Errorf("core answer is told %+v", r)
			}
			c.wantRefused(events.CodeEnded)
			if left := b.questions(); len(left) > 0 {
				t.Errorf("%+v are open", left)
			}
			b.replayed(t)
		})
	}
}

// replayed starts another core on the same log: nothing in it is open.
func (b *box) replayed(t *testing.T) {
	t.Helper()
	b.killCore()
	b.startCore()
	if left := b.questions(); len(left) > 0 {
		t.Errorf("after a new start %+v are open", left)
	}
	b.stopCore()
	e := b.evidence(t)
	if n := len(facts[events.OperationCommitted](e)); n > 0 {
		t.Errorf("%d calls may run", n)
	}
	e.checkSpans(t)
}
