package core

import (
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// Evolve is the fold: the state after one event. It accepts whatever the log
// says and changes nothing that an older State still points to: lists are
// copied before they grow. Times and sequences come from the state itself,
// where [Apply] has put those of the message.
func Evolve(s State, e events.Event) State {
	s.evolve(e)
	return s
}

// evolve is Evolve on a State that nobody else has. A State is large: most of
// what a decision costs would be copies of it.
func (s *State) evolve(e events.Event) {
	switch e := e.(type) {
	case events.OperationProposed:
		s.Phase = PhaseHook
		e.Kind = word(e.Kind, events.KindToolCall, events.KindUserPrompt, events.KindInjection, events.KindRetryNote)
		e.Agent = word(e.Agent, events.Agents()...)
		e.Tool.Kind = word(e.Tool.Kind, events.ToolKinds()...)
		s.Proposed = e
		s.Config = e.Config
		s.Versions = appended(s.Versions, e.Version)
		s.Yes, s.YesHook = -1, -1
	case events.HookStarted:
		s.Phase = PhaseHook
		e.Hook.Scope = word(e.Hook.Scope, events.ScopeProject, events.ScopeGlobal)
		s.Run, s.RunOpen = e, true
	case events.HookRan:
		s.RunOpen = s.RunOpen && e.Run != s.Run.Run
		s.Cursor = e.Hook.Index + 1
	case events.ArgumentsChanged:
		s.Versions = appended(s.Versions, e.To)
	case events.RecheckStarted:
		s.Attempt, s.Config, s.Cursor = e.Attempt, e.Config, 0
	case events.OperationChecked: // the commit beside it says the same
	case events.OperationCommitted:
		s.Phase, s.Committed = PhaseCommitted, e.Version
	case events.OperationDelivered:
		s.Delivered = true
	case events.OperationRefused:
		s.Phase, s.Code, s.CodeRun = PhaseEnded, e.Code, e.Run
	case events.OperationAborted:
		s.Phase, s.Code, s.EndReason = PhaseEnded, events.CodeEnded, e.Reason
	case events.OperationFinished:
		s.Phase, s.Outcome, s.Ran = PhaseEnded, e.Outcome, e.Ran
	case events.Request:
		s.request(e)
	case events.Presented:
		s.Outsiders++
	case events.Claimed:
		s.Outsiders++
		if s.isOpen(e.ID) {
			s.Question.Claims++
			s.Question.Claim = Claim{
				Frontend: e.Frontend, Kind: e.Kind, Name: e.Name, Principal: e.Principal, Since: s.At, Seq: s.Seq,
			}
		}
	case events.Released:
		s.Outsiders++
		if s.isOpen(e.ID) && s.Question.Claim.Frontend == e.Frontend {
			s.Question.Claim = Claim{}
		}
	case events.Response:
		s.respond(e)
	case events.Withdrawn:
		s.settle(Settled{ID: e.ID, Result: e.Result, Reason: e.Reason})
		s.EndReason = e.Reason
	case events.AnswerRejected:
		s.Outsiders++
		if e.ID == s.Question.ID {
			s.Question.Rejected = rejections(s.Question.Rejected, e.Count)
		}
	case events.Genesis, events.SessionOpened, events.SessionClosed, events.TurnStarted, events.TurnEnded,
		events.Interrupted, events.BuildChanged: // of a session, not of an operation
	}
}

// request opens the question. What the state already holds under the
// same value is shared, not kept twice: 100,000 questions may be open.
func (s *State) request(e events.Request) {
	if e.Run == s.Run.Run && e.Hook == s.Run.Hook {
		e.Run, e.Hook = s.Run.Run, s.Run.Hook
	}
	if e.Version == s.Current() {
		e.Version = s.Current()
	}
	e.DeadlineFrom = word(e.DeadlineFrom, "hook", "config", "agent")
	e.WhenNobody = word(e.WhenNobody, events.NobodyReject, events.NobodyWait)
	s.Phase = PhaseAsking
	s.Question = Question{Request: e, AskedAt: s.At, AskedSeq: s.Seq, Open: true}
}

func (s *State) respond(e events.Response) {
	end := endOf(e.Answer)
	if end == events.EndContinue {
		s.Phase = PhaseHook
		s.Yes = s.Question.Version.N
		if i := s.Question.Hook.Index; s.YesHook < 0 || i < s.YesHook {
			s.YesHook = i
		}
	} else {
		s.EndReason = end
	}
	s.settle(Settled{
		ID: e.ID, Result: events.ResultAnswered, Reason: end, Answer: e.Answer, Digest: e.Digest,
		Frontend: e.Frontend, Kind: e.Kind, Who: e.Principal,
	})
}

func (s *State) settle(end Settled) {
	end.At, end.Seq = s.At, s.Seq
	s.Settled = appended(s.Settled, end)
	if s.Question.ID == end.ID {
		s.Question.Open, s.Question.Claim = false, Claim{}
	}
}

// rejections counts what the log says of rejected answers: one each, then a
// total of those behind the first ten.
func rejections(before, count int) int {
	if count > 0 {
		return max(before, loggedRejections+count)
	}
	return before + 1
}

// keepBody adds content to the state. What hooks wrote to stderr is for the
// reader of the log, not for a decision.
func (s *State) keepBody(key string, data []byte) {
	if !strings.HasPrefix(key, events.StderrBody("")) {
		s.Bodies = appended(s.Bodies, events.Body{Key: key, Data: data})
	}
}

// word gives a word of a closed table as the one copy that the program has, and
// any other word as it is. Of what is read from the log each message has its
// own.
func word[W ~string](w W, table ...W) W {
	if i := slices.Index(table, w); i >= 0 {
		return table[i]
	}
	return w
}

// appended is append that never writes into list's own memory, and makes no
// room for more.
func appended[E any](list []E, e E) []E {
	grown := make([]E, len(list)+1)
	copy(grown, list)
	grown[len(list)] = e
	return grown
}
