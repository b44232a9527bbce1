package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
)

// seeAll goes down until every part of a set has been in sight.
func (tm *terminal) seeAll() {
	for range 20 {
		tm.press("pgdown")
	}
}

// TestF9WhatNobodyHasSeenIsNotLetGoOn: of a set, only what was in sight is reported as
// drawn, and Continue waits for the rest; Cancel does not.
func TestF9WhatNobodyHasSeenIsNotLetGoOn(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		askSet(tm)
		tm.settle()
		var q events.Question
		for _, p := range tm.m.dialog.parts {
			if !p.seen {
				q = p.lead()
			}
		}
		if tm.m.dialog.unseen() == 0 || slices.Contains(tm.desk.drawn, q.Version.Digest) {
			t.Fatalf("%d parts unseen, but the last is reported as drawn", tm.m.dialog.unseen())
		}
		if !strings.Contains(tm.text(), "not seen yet") {
			t.Errorf("not said:\n%s", tm.text())
		}
		tm.press("c")
		if len(tm.desk.answers) != 0 {
			t.Fatal("what nobody has seen went on")
		}
		tm.seeAll()
		if !slices.Contains(tm.desk.drawn, q.Version.Digest) || strings.Contains(tm.text(), "not seen yet") {
			t.Errorf("not seen after all:\n%s", tm.text())
		}
		tm.press("c")
		if got := answered(tm); got != "q1 q1b q2 q3" {
			t.Errorf("answered %s", got)
		}
	})
	bubble(t, 80, 24, func(tm *terminal) {
		askSet(tm)
		tm.settle()
		tm.press("x")
		if got := answered(tm); got != "q1 q1b q2 q3" {
			t.Errorf("a no waited to be seen: %s", got)
		}
	})
}

// showing says that a question is on the screen.
func (tm *terminal) showing(id events.ID) bool {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	return tm.m.dialog != nil && tm.m.dialog.has(id)
}

func TestB106EqualQuestionsAreOneCard(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		askEqual(tm, 3)
		if len(tm.m.dialog.parts) != 1 {
			t.Fatalf("%d parts", len(tm.m.dialog.parts))
		}
		tm.settle()
		if !strings.Contains(tm.text(), "Bash × 3") {
			t.Errorf("not counted:\n%s", tm.text())
		}
		if len(tm.desk.drawn) != 3 {
			t.Errorf("%d of 3 were reported as drawn", len(tm.desk.drawn))
		}
		tm.press("c")
		if got := answered(tm); got != "e0 e1 e2" {
			t.Errorf("answered %s", got)
		}
		if tm.m.dialog != nil || !strings.Contains(tm.text(), "3 continued") {
			t.Errorf("not told:\n%s", tm.text())
		}
	})
}

func TestB106AnEqualQuestionThatComesLaterIsNotAnsweredWithTheOthers(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		askEqual(tm, 2)
		tm.settle()
		late := push()
		late.ID = "late"
		tm.ask(late)
		tm.press("c", "c")
		if got := answered(tm); got != "e0 e1" {
			t.Errorf("answered %s", got)
		}
	})
}

func TestB106EqualQuestionsThatComeOneByOneAreOneCard(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		for _, id := range []events.ID{"p0", "p1", "p2"} {
			q := push()
			q.ID = id
			tm.ask(q)
			tm.wait(300 * time.Millisecond)
			tm.press("c") // each comes before the grace of the last is over
		}
		if got := answered(tm); got != "" {
			t.Fatalf("answered %s by keys that came too early", got)
		}
		tm.settle()
		if !strings.Contains(tm.text(), "Bash × 3") {
			t.Errorf("not counted:\n%s", tm.text())
		}
		tm.press("c")
		if got := answered(tm); got != "p0 p1 p2" {
			t.Errorf("answered %s", got)
		}
		if len(tm.desk.drawn) < 3 {
			t.Errorf("%d of 3 were reported as drawn", len(tm.desk.drawn))
		}
	})
}

// TestF9NothingJoinsAnAnswerThatIsOnItsWay: a slow frame begins the grace anew while
// the answer waits for its claim; what comes then was not on the card.
func TestF9NothingJoinsAnAnswerThatIsOnItsWay(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		hold := make(chan struct{})
		tm.desk.hold = hold
		tm.ask(push())
		tm.settle()
		tm.press("down", "c")
		tm.look(func(m *Model) { m.dialog.grace.begin(m.now) })
		late := push()
		late.ID = "late"
		tm.ask(late)
		close(hold)
		synctest.Wait()
		if got := answered(tm); got != "q1" {
			t.Errorf("answered %s", got)
		}
	})
}

// answered names the questions that were answered, in order.
func answered(tm *terminal) string {
	var all []string
	for _, r := range tm.desk.answers {
		all = append(all, string(r.Question))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestF8ASetShowsEverythingOfEverything goes through four questions by keys alone,
// in every window.
func TestF8ASetShowsEverythingOfEverything(t *testing.T) {
	for _, size := range sizes {
		bubble(t, size.width, size.height, func(tm *terminal) {
			askSet(tm)
			tm.settle()
			want := []string{
				"git push", "1 of 3", "terraform apply", "region=eu-west-1", "(not there before)",
				"2 of 3", "3 of 3", "touch M", "src/pay.ts", "60",
			}
			seen := map[string]bool{}
			for range 60 {
				checkFits(t, tm.m)
				text := tm.text()
				if !strings.Contains(text, " Continue × 4") || !strings.Contains(text, "x Cancel × 4") {
					t.Fatalf("%s: no buttons:\n%s", size.name, text)
				}
				for _, w := range want {
					seen[w] = seen[w] || strings.Contains(text, w)
				}
				tm.press("pgdown")
			}
			for _, w := range want {
				if !seen[w] {
					t.Errorf("%s: %q was never in sight", size.name, w)
				}
			}
		})
	}
}

func TestB4ASetIsAnsweredOneByOne(t *testing.T) {
	t.Run("each with its own digest and claim", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			askSet(tm)
			tm.settle()
			tm.press("down")
			if len(tm.desk.claims) != 4 {
				t.Fatalf("%d of 4 were claimed", len(tm.desk.claims))
			}
			tm.press("x")
			digests := map[events.ID]events.Digest{}
			for _, q := range []events.Question{push(), repeated(), longQuestion(300)} {
				digests[q.ID] = q.Version.Digest
			}
			digests["q1b"] = digests["q1"]
			for _, r := range tm.desk.answers {
				if r.Digest != digests[r.Question] || r.Claim == 0 || r.Answer != events.AnswerCancel || !r.Human {
					t.Errorf("answered %+v", r)
				}
			}
			if got := answered(tm); got != "q1 q1b q2 q3" {
				t.Errorf("answered %s", got)
			}
		})
	})
	t.Run("what was refused is told beside what was not", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			askSet(tm)
			tm.desk.refusals = map[events.ID]*events.Refused{
				"q3": {Code: events.RejectAlreadyAnswered, Who: "ana", Answer: events.AnswerCancel},
			}
			tm.settle()
			tm.seeAll()
			tm.press("c")
			if !strings.Contains(tm.text(), "3 continued · 1: already answered: ana cancelled") {
				t.Errorf("not told:\n%s", tm.text())
			}
			if d := tm.m.dialog; d == nil || d.set() || d.lead().ID != "q3" {
				t.Fatalf("what is still open is not what is left:\n%s", tm.text())
			}
			tm.press("c")
			if got := len(tm.desk.answers); got != 4 {
				t.Errorf("what is left took a key at once: %d answers", got)
			}
		})
	})
	t.Run("one that is not what was asked about blocks the whole set", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			bad := push()
			bad.ID, bad.Args = "bad", []byte(`{"command":"ls"}`)
			tm.ask(longQuestion(100))
			tm.desk.change(func() { tm.desk.questions = append(tm.desk.questions, bad) })
			tm.settle()
			tm.m.openSet(tm.desk.Questions())
			tm.send(changedMsg{})
			tm.settle()
			tm.press("c", "x")
			if len(tm.desk.answers) != 0 || !strings.Contains(tm.text(), "not those that were asked about") {
				t.Errorf("answered %v:\n%s", tm.desk.answers, tm.text())
			}
		})
	})
}

func TestB107APartThatEndsLeavesTheSet(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		askSet(tm)
		tm.settle()
		tm.desk.end("q1", events.EndTurnEnded)
		synctest.Wait()
		if d := tm.m.dialog; d == nil || len(d.parts) != 3 || d.has("q1") {
			t.Fatal("a set is not what is still open")
		}
		tm.press("pgdown") // equal ones are left: nothing moved, so keys count
		if len(tm.desk.claims) != 3 {
			t.Errorf("%d claims", len(tm.desk.claims))
		}
		tm.desk.end("q1b", events.EndTurnEnded)
		synctest.Wait()
		tm.press("c")
		if len(tm.desk.answers) != 0 {
			t.Fatal("what moved took a key at once")
		}
		if !strings.Contains(tm.text(), "the turn ended") {
			t.Errorf("the end is not told:\n%s", tm.text())
		}
		tm.settle()
		tm.press("c")
		if got := answered(tm); got != "q2 q3" {
			t.Errorf("answered %s", got)
		}
	})
}

func TestF1SomebodyAnswersAPartOfASet(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		askSet(tm)
		tm.settle()
		tm.desk.claimed("q2", &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Name: "root", Principal: "ana", Since: now(), Claim: 9})
		tm.wait(2 * time.Second)
		tm.press("c", "down")
		if len(tm.desk.answers)+len(tm.desk.claims) != 0 {
			t.Fatal("a set with a part that somebody else holds took a key")
		}
		if !strings.Contains(tm.text(), "being answered by ana in the editor") {
			t.Errorf("who answers is not told:\n%s", tm.text())
		}
		tm.desk.claimed("q2", nil)
		synctest.Wait()
		tm.press("c")
		if len(tm.desk.answers) != 0 {
			t.Fatal("freed buttons took a key at once")
		}
		tm.settle()
		tm.seeAll()
		tm.press("c")
		if len(tm.desk.answers) != 4 {
			t.Errorf("%d answers", len(tm.desk.answers))
		}
	})
}

// crowded is a core that takes no more claims.
type crowded struct{ *desk }

func (c crowded) Claim(_ context.Context, id events.ID) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims = append(c.claims, id)
	return 0, &events.Refused{Code: events.RejectTooMany}
}

func TestB3AQuestionWithTooManyClaimsStaysAnswerable(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.m.o.Client = crowded{tm.desk}
		tm.ask(push())
		tm.settle()
		tm.press("down", "up", "down")
		if len(tm.desk.claims) != 1 || strings.Contains(tm.text(), "too many") {
			t.Errorf("%d claims:\n%s", len(tm.desk.claims), tm.text())
		}
		tm.press("c")
		if got := one(t, tm); got.Claim != 0 || got.Answer != events.AnswerContinue {
			t.Errorf("answered %+v", got)
		}
	})
}

func TestF1ClaimsThatLapseAndAreTakenOver(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.settle()
		tm.press("down")
		if !strings.Contains(tm.text(), "yours to answer") {
			t.Fatalf("not held:\n%s", tm.text())
		}
		tm.desk.claimed("q1", nil)
		synctest.Wait()
		if strings.Contains(tm.text(), "yours to answer") {
			t.Errorf("a claim that lapsed is still shown:\n%s", tm.text())
		}
		tm.press("down")
		if len(tm.desk.claims) != 2 {
			t.Errorf("%d claims after a lapse", len(tm.desk.claims))
		}
		tm.desk.claimed("q1", &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Principal: "uid:1000", Since: now(), Claim: 9_999})
		synctest.Wait()
		if !strings.Contains(tm.text(), "any answer key takes over") {
			t.Errorf("taken over by the other screen, and not told:\n%s", tm.text())
		}
		tm.press("x")
		if got := one(t, tm); got.Claim != 503 {
			t.Errorf("F13: answered under claim %d", got.Claim)
		}
	})
}

func TestF13WordsUnderSomebodyElsesClaimAreNotLost(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.settle()
		tm.press("w", "n", "o")
		tm.desk.claimed("q1", &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Name: "root", Principal: "ana", Since: now(), Claim: 9_999})
		synctest.Wait()
		tm.press("enter")
		if len(tm.desk.answers) != 0 || !strings.Contains(tm.text(), "being answered by ana") || tm.m.dialog.input.value() != "no" {
			t.Errorf("answers %v:\n%s", tm.desk.answers, tm.text())
		}
	})
}

func TestF8AsideKeepsThePlace(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(longQuestion(20_000))
		tm.ask(push())
		tm.settle()
		tm.press("pgdown", "pgdown", "tab", "tab", "w", "n", "o", "esc")
		var place, focus int
		tm.look(func(m *Model) { place, focus = m.dialog.values[0].top, m.dialog.focus })
		tm.press("esc")
		if tm.showing("q2") {
			t.Fatal("Esc did not put the question aside")
		}
		if !tm.m.keptAside("q2") {
			t.Error("the list does not know that there are words")
		}
		tm.press("enter", "c")
		if !tm.showing("q2") {
			t.Fatalf("Enter does not come back:\n%s", tm.text())
		}
		if len(tm.desk.answers) != 0 {
			t.Fatal("coming back has no grace of its own")
		}
		tm.text()
		tm.look(func(m *Model) {
			if d := m.dialog; d.values[0].top != place || place == 0 || d.focus != focus || focus != 1 {
				t.Errorf("at row %d with the focus on %d, was at %d and %d", d.values[0].top, d.focus, place, focus)
			}
		})
		tm.settle()
		tm.press("w")
		if got := tm.m.dialog.input.value(); got != "no" {
			t.Errorf("the words are %q", got)
		}
	})
}

func TestF9AButtonThatWasPutAsideHasNoFocus(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.settle()
		tm.press("tab", "tab", "tab", "tab") // Continue
		tm.press("esc", "enter")
		tm.settle()
		tm.press("enter", "enter")
		if len(tm.desk.answers) != 0 {
			t.Error("Enter on the list and Enter again answered")
		}
	})
}

func TestF8AsideIsBounded(t *testing.T) {
	var a aside
	for i := range 3 * maxAside {
		q := events.Question{ID: events.ID(fmt.Sprint(i))}
		a.keep(&dialog{parts: []*part{{all: []events.Question{q}, card: &card.Card{}}}})
	}
	if n := len(a.list); n != maxAside || a.list[n-1].questions[0] != events.ID(fmt.Sprint(3*maxAside-1)) {
		t.Errorf("%d places, the last of %v", n, a.list[n-1].questions)
	}
}

func TestB107WordsOfAnAsideQuestionThatEndsAreKept(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.settle()
		tm.press("w", "n", "o", "esc", "esc")
		tm.desk.end("q1", events.EndTurnEnded)
		synctest.Wait()
		tm.ask(longQuestion(100))
		tm.settle()
		tm.press("w")
		if got := tm.m.dialog.input.value(); got != "" {
			t.Errorf("the words of another question are in this one: %q", got)
		}
		tm.press("esc", "esc")
		again := push()
		again.ID = "again"
		tm.ask(again)
		tm.settle()
		tm.press("w")
		if got := tm.m.dialog.input.value(); got != "no" {
			t.Errorf("the words are %q", got)
		}
	})
}

// TestB22AClaimOfAPartThatLeft comes when its question has left the set: refused or
// not, it is nobody's, and the rest can be answered.
func TestB22AClaimOfAPartThatLeft(t *testing.T) {
	for _, refused := range []bool{false, true} {
		bubble(t, 80, 24, func(tm *terminal) {
			askSet(tm)
			tm.settle()
			tm.desk.hold = make(chan struct{})
			if refused {
				tm.desk.refuse = &events.Refused{Code: events.RejectWithdrawn, EndReason: events.EndTurnEnded}
			}
			tm.press("pgdown")
			tm.desk.end("q3", events.EndTurnEnded)
			synctest.Wait()
			close(tm.desk.hold)
			tm.settle()
			tm.settle()
			if got := slices.Contains(tm.desk.released, "q3"); got == refused {
				t.Errorf("refused %v: given back %v", refused, got)
			}
			tm.desk.change(func() { tm.desk.hold, tm.desk.refuse = nil, nil })
			tm.press("c")
			if got := answered(tm); got != "q1 q1b q2" {
				t.Errorf("refused %v: answered %q", refused, got)
			}
		})
	}
}
