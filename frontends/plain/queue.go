package plain

import (
	"slices"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// maxFollowed bounds how many operations are followed to their end.
const maxFollowed = 1000

// look takes in what the inbox knows now, and says what a person must hear.
func (s *screen) look() {
	complete := s.o.Inbox.Complete()
	s.connection(s.o.Inbox.Attached())
	list := s.o.Inbox.Questions()
	s.drop(list)
	for _, q := range list {
		if s.o.Only == "" || q.ID == s.o.Only {
			s.take(q)
		}
	}
	s.follow()
	if s.o.Only != "" && complete && s.open[s.o.Only] == nil && s.sending == 0 {
		s.quit = true
		if s.last == 0 {
			end, _ := s.o.Inbox.Ended(s.o.Only)
			s.page.row(s.teller().Ended(end))
		}
		return
	}
	s.next()
	s.count()
	if complete && !s.greeted {
		s.greeted = true
		if len(list) == 0 {
			s.say(words.NothingWaits)
		}
	}
}

// connection says that no core is in reach, and that one is again.
func (s *screen) connection(attached bool) {
	switch {
	case !attached && s.attached:
		s.say(words.Detached)
	case attached && !s.attached && s.began:
		s.say(words.PlainAttached)
	}
	s.attached, s.began = attached, s.began || attached
}

// take keeps an open question as it is now.
func (s *screen) take(q events.Question) {
	a := s.open[q.ID]
	if a == nil {
		s.last++
		a = &asked{number: s.last}
		s.open[q.ID] = a
	}
	a.question = q
	if c := q.ClaimedBy; c != nil && c.Frontend != s.o.Self && a.shown && a.answerer != c.Frontend {
		a.answerer = c.Frontend
		s.about(a.number, s.teller().Claimed(c))
	}
}

// drop forgets the questions that are no longer open. Of those that the person has
// seen, it says how they ended.
func (s *screen) drop(list []events.Question) {
	still := map[events.ID]bool{}
	for _, q := range list {
		still[q.ID] = true
	}
	for _, a := range s.queue() {
		id := a.question.ID
		if still[id] {
			continue
		}
		delete(s.open, id)
		if s.current == a {
			s.current = nil
		}
		if a.shown && !a.sending {
			end, _ := s.o.Inbox.Ended(id)
			s.about(a.number, s.teller().Ended(end))
		}
	}
}

// follow tells what became of the operations that the person let go on.
func (s *screen) follow() {
	if len(s.answered) == 0 {
		return
	}
	for _, l := range s.o.Inbox.Lines() {
		n, ours := s.answered[l.Operation]
		if !ours || l.State == events.LineCommitted || l.State == events.LineDelivered {
			continue
		}
		delete(s.answered, l.Operation)
		if l.State == events.LineFinished {
			s.about(n, s.teller().Ran(l))
		} else {
			s.about(n, s.teller().Verdict(l))
		}
	}
}

// next shows the question that has waited longest, when none is being read.
func (s *screen) next() {
	if s.current != nil {
		return
	}
	for _, a := range s.queue() {
		if !a.later && !a.sending {
			s.show(a)
			return
		}
	}
}

// count says how many wait, when there are more than before and one is being read.
func (s *screen) count() {
	now := len(s.open)
	if now > s.waiting && now > 1 {
		s.say(words.WaitingCount, now)
	}
	s.waiting = now
}

// hear does what a line says.
func (s *screen) hear(l typed) {
	s.o.Client.Input()
	switch {
	case l.lost:
		s.say(words.PlainLost)
		return
	case l.long:
		s.say(words.PlainTooLong, card.Count(maxWords))
		return
	}
	c, problem := parse(l.text)
	switch problem {
	case "":
		s.do(l, c)
	case words.PlainTooLong:
		s.say(problem, card.Count(maxWords))
	case words.PlainWhich, words.PlainNoWords:
		n := s.last
		if s.current != nil {
			n = s.current.number
		}
		s.say(problem, max(n, 1))
	default:
		s.say(problem)
	}
}

func (s *screen) do(l typed, c command) {
	switch c.verb {
	case doNothing:
	case doList:
		s.list()
	case doHistory:
		s.history()
	case doHelp:
		s.say(words.PlainHelp)
	case doQuit:
		s.quit = true
	case doAnswer, doLater, doExplain, doShow:
		s.toOne(l, c)
	}
}

// toOne does what is about one question.
func (s *screen) toOne(l typed, c command) {
	all := s.queue()
	i := slices.IndexFunc(all, func(a *asked) bool { return a.number == c.number })
	if i < 0 {
		s.say(words.PlainNoQuestion, c.number)
		return
	}
	a := all[i]
	switch c.verb {
	case doAnswer:
		s.answer(l, c, a)
	case doLater:
		s.putAside(a)
	case doExplain:
		s.explain(a)
	case doShow:
		s.show(a)
	case doNothing, doList, doHistory, doHelp, doQuit:
	}
}

func (s *screen) putAside(a *asked) {
	a.later = true
	s.say(words.PlainAside, a.number)
	if s.current == a {
		s.current = nil
	}
	if s.quit = s.o.Only != ""; !s.quit {
		s.next()
	}
}

// answer carries an answer, if the question stood before the person's eyes long
// enough when the line came.
func (s *screen) answer(l typed, c command, a *asked) {
	switch {
	case a.sending:
		s.about(a.number, s.w.Say(words.Sending))
		return
	case !a.shown:
		s.say(words.PlainNotShown, a.number)
		s.show(a)
		return
	case tooSoon(l.at, a.drawn):
		s.say(words.PlainTooSoon, a.number)
		return
	}
	a.sending = true
	s.sending++
	q, digest := a.question, a.digest
	if c.answer == events.AnswerContinue {
		if len(s.answered) == maxFollowed {
			clear(s.answered)
		}
		s.answered[q.Operation] = a.number
	}
	s.beside(func() func() {
		_, err := s.o.Client.Answer(s.ctx, events.Respond{Question: q.ID, Digest: digest, Answer: c.answer, Text: c.text, Human: true})
		return func() { s.replied(a, c, err) }
	})
}

// replied tells what the core said to an answer.
func (s *screen) replied(a *asked, c command, err error) {
	a.sending = false
	s.sending--
	if s.current == a {
		s.current = nil
	}
	if err != nil {
		delete(s.answered, a.question.Operation)
		s.about(a.number, s.teller().Refusal(err))
		if s.open[a.question.ID] == a {
			s.show(a)
		}
	} else {
		delete(s.open, a.question.ID)
		s.about(a.number, s.teller().Decided(s.o.Principal(), c.answer, 0))
	}
	s.look()
}
