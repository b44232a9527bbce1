package core

import (
	"fmt"
	"slices"

	"github.com/fermata-hitl/fermata/events"
)

// answersOf lists what a person may say at a gate. A gate that core does not
// know has no answers.
func answersOf(g events.Gate) []events.Answer {
	switch g {
	case events.GateHook:
		return []events.Answer{events.AnswerContinue, events.AnswerCancel, events.AnswerClientCancels}
	case events.GateApproval:
		return []events.Answer{
			events.AnswerOnce, events.AnswerAlways, events.AnswerAlwaysTool, events.AnswerAlwaysServer,
			events.AnswerCancel, events.AnswerClientCancels,
		}
	}
	return nil
}

func knownGate(g events.Gate) bool { return answersOf(g) != nil }

// present records a drawing of the open question. One that comes too late, or
// once too often, says nothing that anybody needs.
func present(s State, c Present) (Decision, error) {
	if s.isUnknown(c.Question) {
		return Decision{}, s.Closed(c.Question)
	}
	if !s.isOpen(c.Question) || s.Outsiders >= maxPresented {
		return Decision{}, nil
	}
	return Decision{Events: []events.Event{events.Presented{
		Gate: s.Question.Gate, ID: c.Question, Frontend: c.Frontend, Kind: c.Kind, Digest: c.Digest, At: c.At,
	}}}, nil
}

func takeClaim(s State, c TakeClaim) (Decision, error) {
	if r := s.Closed(c.Question); r != nil {
		return Decision{}, r
	}
	held := s.Question.Claim()
	switch {
	case held.heldBy(c.Frontend, c.Principal):
		return Decision{}, nil
	case held.Seq != 0 && held.Principal != c.Principal:
		return Decision{}, notClaimer(held)
	case !s.takesClaim(c.Frontend, c.Principal):
		return Decision{}, &events.Refused{
			Code: events.RejectTooMany,
			Hint: "this question has been claimed too often; it can still be answered with a claim in the answer",
		}
	}
	d := draft{s: s}
	d.claim(c)
	return d.Decision, nil
}

// takesClaim reports whether the bounds allow one more claim of the open question.
func (s *State) takesClaim(frontend events.ID, principal string) bool {
	all, theirs, own := s.Question.Claims.times(frontend, principal)
	if own > 0 && s.Outsiders >= maxRepeated {
		return false
	}
	return own < maxFrontendClaims && theirs < maxPrincipalClaims && all < maxClaims && s.Outsiders < maxOutsiders
}

// claim gives the right to answer to c's frontend. Whoever held it must be the
// same principal.
func (d *draft) claim(c TakeClaim) {
	q := d.s.Question
	if q.Claim().Seq != 0 {
		d.add(events.Released{Gate: q.Gate, ID: q.ID, Frontend: q.Claim().Frontend, Reason: events.ReleasedTakenOver})
	}
	d.add(events.Claimed{
		Gate: q.Gate, ID: q.ID, Frontend: c.Frontend, Kind: c.Kind, Name: c.Name, Principal: c.Principal,
	})
}

// release gives a claim back. Only the claim's own frontend loses it, so a
// late release cannot take the claim of a successor.
func release(s State, c Release) (Decision, error) {
	if s.isUnknown(c.Question) {
		return Decision{}, s.Closed(c.Question)
	}
	if !s.isOpen(c.Question) || s.Question.Claim().Seq == 0 || s.Question.Claim().Frontend != c.Frontend {
		return Decision{}, nil
	}
	return Decision{Events: []events.Event{events.Released{
		Gate: s.Question.Gate, ID: c.Question, Frontend: c.Frontend, Reason: c.Reason,
	}}}, nil
}

// answer accepts the one answer of a question. It ends the question whatever
// bounds have been reached, so claiming with it is always possible.
func answer(s State, c Answer) (Decision, error) {
	if s.isAccepted(c) {
		return Decision{}, nil
	}
	if r := judge(s, c); r != nil {
		return rejected(s, c, r), r
	}
	d := draft{s: s}
	token := s.Question.Claim().Seq
	if !s.Question.Claim().heldBy(c.Frontend, c.Principal) {
		d.claim(TakeClaim{Frontend: c.Frontend, Kind: c.Kind, Name: c.Name, Principal: c.Principal})
		token = 0
	}
	d.body(events.TextBody(c.Question), []byte(c.Text))
	d.add(events.Response{
		Gate: s.Question.Gate, ID: c.Question, Frontend: c.Frontend, Kind: c.Kind, Principal: c.Principal,
		Answer: c.Answer, Digest: c.Digest, Claim: token, HasText: c.Text != "",
	})
	if c.Answer.EndReason() != events.EndContinue {
		d.refuse(events.CodeDeclined, c.Question, "")
		return d.Decision, nil
	}
	return d.end(d.goOn(c.Next, origin{question: c.Question}))
}

// judge says why an answer cannot be accepted, nil when it can.
func judge(s State, c Answer) *events.Refused {
	if r := s.Closed(c.Question); r != nil {
		return r
	}
	held := s.Question.Claim()
	mine := held.heldBy(c.Frontend, c.Principal)
	switch {
	case c.Claim != 0 && (!mine || c.Claim != held.Seq):
		return notClaimer(held)
	case c.Claim == 0 && held.Seq != 0 && held.Principal != c.Principal:
		return notClaimer(held)
	case c.Digest != s.Current().Digest:
		return &events.Refused{Code: events.RejectStaleVersion, Hint: "the question is about other arguments than those that were shown; show it again"}
	case !c.Human:
		return &events.Refused{Code: events.RejectNotAllowed, Hint: "only a person may answer; set human when one did"}
	case !slices.Contains(answersOf(s.Question.Gate), c.Answer):
		return &events.Refused{Code: events.RejectNotAllowed, Hint: fmt.Sprintf("%s takes one of %q", s.Question.Gate, answersOf(s.Question.Gate))}
	}
	return nil
}

// The first loggedRejections of a question's rejected answers are recorded one
// by one, then one at every power of two, with the count.
const loggedRejections = 10

// rejected records an answer that changed nothing, as far as the bounds allow.
// Of what the sender wrote it keeps known words only.
func rejected(s State, c Answer, r *events.Refused) Decision {
	_, err := events.ParseID(string(c.Question))
	if s.Phase == PhaseNone || err != nil || s.Outsiders >= maxRepeated {
		return Decision{}
	}
	e := events.AnswerRejected{ID: c.Question, Frontend: c.Frontend, Code: r.Code}
	if slices.Contains(answersOf(events.GateHook), c.Answer) || slices.Contains(answersOf(events.GateApproval), c.Answer) {
		e.Answer = c.Answer
	}
	if c.Repeats >= loggedRejections {
		if c.Repeats&(c.Repeats-1) != 0 {
			return Decision{}
		}
		e.Count = c.Repeats + 1 - loggedRejections
	}
	return Decision{Events: []events.Event{e}}
}

// endQuestion ends the open question by the core's own doing. A question that
// has ended already stays as it is: the other end won.
func endQuestion(s State, c EndQuestion) (Decision, error) {
	result := events.ResultOf(c.Reason)
	code, ok := codeOfEnd(c.Reason)
	if !ok {
		return Decision{}, fmt.Errorf("end question: %q is no end that the core makes", c.Reason)
	}
	if !s.isOpen(c.Question) {
		return Decision{}, nil
	}
	d := draft{s: s}
	d.add(events.Withdrawn{Gate: s.Question.Gate, ID: c.Question, Result: result, Reason: c.Reason})
	d.refuse(code, c.Question, "")
	return d.Decision, nil
}

func codeOfEnd(r events.EndReason) (events.Code, bool) {
	switch r {
	case events.EndDeadline:
		return events.CodeTimedOut, true
	case events.EndNoFrontend, events.EndUnclaimed:
		return events.CodeUnavailable, true
	case events.EndStoreError:
		return events.CodeLogUnavailable, true
	case events.EndInternal:
		return events.CodeEnded, true
	}
	return "", false
}

func (c Claim) heldBy(frontend events.ID, principal string) bool {
	return c.Seq != 0 && c.Frontend == frontend && c.Principal == principal
}

func notClaimer(held Claim) *events.Refused {
	r := &events.Refused{Code: events.RejectNotClaimer, Who: held.Principal, When: held.Since}
	if held.Seq == 0 {
		r.Hint = "the claim has ended; claim the question again"
	} else {
		r.Hint = "somebody is answering; wait until the claim is given back"
	}
	return r
}

func (s *State) isOpen(question events.ID) bool { return s.Question.Open && s.Question.ID == question }

func (s *State) isUnknown(question events.ID) bool {
	return !s.isOpen(question) && s.settled(question) == nil
}

func (s *State) settled(question events.ID) *Settled {
	for i := range s.Settled {
		if s.Settled[i].ID == question {
			return &s.Settled[i]
		}
	}
	return nil
}

// Closed says why a question takes no answer any more, nil when it is open.
func (s *State) Closed(question events.ID) *events.Refused {
	if s.isOpen(question) {
		return nil
	}
	end := s.settled(question)
	switch {
	case end == nil:
		return &events.Refused{Code: events.RejectUnknownQuestion, Hint: "this operation has no such question"}
	case end.Result == events.ResultAnswered:
		return &events.Refused{Code: events.RejectAlreadyAnswered, Who: end.Who, Answer: end.Answer, When: end.At}
	}
	return &events.Refused{Code: events.RejectWithdrawn, EndReason: end.Reason, When: end.At}
}

// isAccepted reports whether c repeats, word for word, the answer that its
// frontend has given and that was accepted.
func (s *State) isAccepted(c Answer) bool {
	end := s.settled(c.Question)
	return end != nil && end.Result == events.ResultAnswered &&
		end.Frontend == c.Frontend && end.Who == c.Principal &&
		end.Answer == c.Answer && end.Digest == c.Digest &&
		string(s.Body(events.TextBody(c.Question))) == c.Text
}
