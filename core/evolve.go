package core

import (
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// evolve is the fold of one event. It accepts whatever the log says and changes
// nothing that an older State still points to: lists are copied before they grow.
// Times and sequences come from the state itself, where [Apply] has put those of
// the message. The State is one that nobody else has, and not a copy made here: it
// is large, and copies would be most of what a decision costs.
func (s *State) evolve(e events.Event) {
	switch e := e.(type) {
	case events.OperationProposed:
		s.Phase = PhaseHook
		e.Kind = word(e.Kind, events.KindToolCall, events.KindUserPrompt, events.KindInjection, events.KindRetryNote)
		e.Agent = word(e.Agent, events.Agents()...)
		e.Tool.Kind = word(e.Tool.Kind, events.ToolKinds()...)
		s.Proposed = Proposed{
			Kind: e.Kind, Agent: e.Agent, Path: e.Path, Tool: e.Tool, Cwd: e.Cwd, Profile: e.Profile,
			Secret: sumOf(e.Secret), AgentDeadline: e.AgentDeadline,
		}
		s.Config, s.Leased = e.Config, e.Leased
		s.Versions = appended(s.Versions, Version{Version: e.Version})
		s.Yes, s.YesHook = -1, -1
	case events.HookStarted:
		s.started(e)
	case events.HookRan:
		s.ran(e)
	case events.ArgumentsChanged:
		v := Version{Version: e.To}
		if e.Cause == events.CauseHook {
			by := s.Run.Hook // its run has just ended
			v.By = &by
		}
		s.Versions = appended(s.Versions, v)
	case events.RecheckStarted:
		s.Attempt, s.Config, s.Cursor = e.Attempt, e.Config, 0
		s.dropReminders()
	case events.OperationChecked: // the commit beside it says the same
	case events.OperationCommitted:
		s.Phase = PhaseCommitted
		c := s.toEnd()
		c.Committed, c.CommittedAt = e.Version, s.At
	case events.OperationDelivered:
		s.Delivered = true
		s.toEnd().Taker = e.By
	case events.OperationRefused:
		s.Phase = PhaseEnded
		c := s.toEnd()
		c.Code, c.CodeRun, c.Question = e.Code, e.Run, e.Question
	case events.OperationAborted:
		s.Phase = PhaseEnded
		c := s.toEnd()
		c.Code, c.EndReason = events.CodeEnded, e.Reason
	case events.OperationFinished:
		s.Phase = PhaseEnded
		c := s.toEnd()
		c.Outcome, c.Ran = e.Outcome, e.Ran
	case events.Request:
		s.request(e)
	case events.Presented:
		s.Outsiders++
	case events.Claimed:
		s.Outsiders++
		if s.isOpen(e.ID) {
			s.Question.Claims = s.Question.Claims.held(Claim{
				Frontend: e.Frontend, Kind: e.Kind, Name: e.Name, Principal: e.Principal, Since: s.At, Seq: s.Seq,
			})
		}
	case events.Released:
		s.Outsiders++
		if s.isOpen(e.ID) && s.Question.Claim().Frontend == e.Frontend {
			s.Question.Claims = s.Question.Claims.let()
		}
	case events.Response:
		s.respond(e)
	case events.Withdrawn:
		s.settle(Settled{ID: e.ID, Result: e.Result, Reason: e.Reason})
		s.toEnd().EndReason = e.Reason
	case events.AnswerRejected:
		s.Outsiders++
		if e.ID == s.Question.ID {
			s.Question.Rejected = rejections(s.Question.Rejected, e.Count)
		}
	case events.Genesis, events.SessionOpened, events.SessionClosed, events.TurnStarted, events.TurnEnded,
		events.Interrupted, events.BuildChanged: // of a session, not of an operation
	}
}

func (s *State) started(e events.HookStarted) {
	e.Hook.Scope = word(e.Hook.Scope, events.ScopeProject, events.ScopeGlobal)
	if !e.AtGate() {
		end := s.toEnd()
		end.Watch = appended(end.Watch, e)
		return
	}
	s.Phase = PhaseHook
	s.Run = Run{Run: e.Run, Hook: e.Hook, Version: e.Version, Attempt: e.Attempt, Available: e.Available}
	s.RunOpen = true
}

func (s *State) ran(e events.HookRan) {
	if !e.AtGate() {
		if i := s.watched(e.Run); i >= 0 {
			end := s.toEnd()
			end.Watch = slices.Concat(end.Watch[:i], end.Watch[i+1:])
		}
		return
	}
	s.RunOpen = s.RunOpen && e.Run != s.Run.Run
	s.Cursor = e.Hook.Index + 1
}

// dropReminders forgets what hooks said of the prompt in a pass that does not
// count: the next one says it anew.
func (s *State) dropReminders() {
	if slices.ContainsFunc(s.Bodies, Body.isReminder) {
		s.Bodies = slices.DeleteFunc(slices.Clone(s.Bodies), Body.isReminder)
	}
}

func (b Body) isReminder() bool { return strings.HasPrefix(b.Key, events.ReminderBody("")) }

// request opens the question. Of the event only what the state does not hold
// already is kept: 100,000 questions may be open.
func (s *State) request(e events.Request) {
	s.Phase = PhaseAsking
	s.Question = Question{
		Gate: e.Gate, ID: e.ID, Changed: e.Changed, Deadline: e.Deadline,
		DeadlineFrom: word(e.DeadlineFrom, "hook", "config", "agent"),
		WhenNobody:   word(e.WhenNobody, events.NobodyReject, events.NobodyWait),
		AskedAt:      s.At, Open: true,
	}
}

func (s *State) respond(e events.Response) {
	end := e.Answer.EndReason()
	if end == events.EndContinue {
		s.Phase = PhaseHook
		s.Yes = s.Current().N
		if i := s.Run.Hook.Index; s.YesHook < 0 || i < s.YesHook {
			s.YesHook = i
		}
	} else {
		s.toEnd().EndReason = end
	}
	s.settle(Settled{
		ID: e.ID, Result: events.ResultAnswered, Reason: end, Answer: e.Answer, Digest: e.Digest,
		Frontend: e.Frontend, Kind: e.Kind, Who: e.Principal,
	})
}

func (s *State) settle(end Settled) {
	end.Run, end.At, end.Seq = s.Run, s.At, s.Seq
	s.Settled = appended(s.Settled, end)
	if s.Question.ID == end.ID {
		s.Question.Open, s.Question.Claims = false, nil
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
		s.Bodies = appended(s.Bodies, Body{Key: key, Data: data})
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
