package tracing

import (
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// question is an open question: one wait. Presented and claimed are the first
// drawing and the last claim, 0 for none.
type question struct {
	events.Request
	asked     events.Micros
	script    events.Digest // of the hook that asked
	presented events.Micros
	claimed   events.Micros
	claimSeq  uint64
	frontend  events.ID
	kind      events.FrontendKind
	notes     timeline
}

// step folds an event that a question survives.
func (f *fold) step(op *operation, e events.Event, now moment) {
	if r, ok := e.(events.Request); ok {
		q := &question{Request: r, asked: now.at}
		if op.lastRan.Run == r.Run {
			q.script = op.lastRan.Script
		}
		op.questions[r.ID] = q
		q.notes.add(now.at, "fermata.question.asked", nil)
		return
	}
	q, ok := op.questions[questionOf(e)]
	if !ok {
		return // a late answer, a late drawing: the wait is over
	}
	switch e := e.(type) {
	case events.Presented:
		if q.presented == 0 || e.At < q.presented {
			q.presented = max(e.At, q.asked)
		}
		q.notes.add(e.At, "fermata.question.presented", attrs{
			text("fermata.frontend.id", string(e.Frontend)),
			text("fermata.frontend.kind", string(e.Kind)),
			text("fermata.version.shown_commit", op.commitment(f.o.Key, e.Digest)),
		})
	case events.Claimed:
		q.claimed, q.claimSeq, q.frontend, q.kind = now.at, now.seq, e.Frontend, e.Kind
		q.notes.add(now.at, "fermata.question.claimed", attrs{
			text("fermata.frontend.id", string(e.Frontend)),
			text("fermata.frontend.kind", string(e.Kind)),
		})
	case events.Released:
		q.notes.add(now.at, "fermata.question.claim_lost", attrs{
			text("fermata.frontend.id", string(e.Frontend)),
			text("fermata.release.reason", string(e.Reason)),
		})
	case events.AnswerRejected:
		q.notes.add(now.at, "fermata.question.answer_rejected", attrs{
			text("fermata.frontend.id", string(e.Frontend)),
			text("fermata.reject.code", string(e.Code)),
			number("fermata.reject.count", int64(max(e.Count, 1))),
		})
	}
}

func questionOf(e events.Event) events.ID {
	switch e := e.(type) {
	case events.Presented:
		return e.ID
	case events.Claimed:
		return e.ID
	case events.Released:
		return e.ID
	case events.AnswerRejected:
		return e.ID
	}
	return ""
}

// endWait ends an open question: the one place where a wait span is made. A
// second end finds no open question and makes none.
func (f *fold) endWait(
	op *operation, id events.ID, result events.Result, reason events.EndReason, answer *events.Response, now moment,
) []*span {
	q, ok := op.questions[id]
	if !ok {
		return nil
	}
	delete(op.questions, id)
	q.notes.end(now.at, "fermata.question."+string(result), attrs{text("fermata.wait.end_reason", string(reason))})

	s := op.span(KindWait, id, "wait."+string(q.Gate), q.asked, now.at)
	f.addWait(s, op, q, result, reason, now)
	if answer != nil {
		f.addAnswer(s, op, q, answer, now)
	}
	q.notes.into(s)
	if failedWait(result) {
		s.fail(string(reason))
	}
	if before, ok := op.answeredYes(q.Previous); ok {
		s.links = append(s.links, link{op.origin.Span(KindWait, before.ID), "reask_of"})
	}
	if reason == events.EndContinue {
		op.yes = append(op.yes, q.Request)
	}
	return []*span{op.finish(s)}
}

// failedWait: a person's no is a wait that did its work; a question that
// nobody answered is not. A withdrawal is neither.
func failedWait(r events.Result) bool {
	return r == events.ResultTimedOut || r == events.ResultUnavailable || r == events.ResultFailed
}

// answeredYes finds the last question that was answered with yes about a
// version, false for version -1.
func (op *operation) answeredYes(version int) (events.Request, bool) {
	for _, v := range slices.Backward(op.yes) {
		if v.Version.N == version {
			return v, true
		}
	}
	return events.Request{}, false
}

// addWait says what was asked, how it ended and how long each part took.
func (f *fold) addWait(s *span, op *operation, q *question, result events.Result, reason events.EndReason, now moment) {
	s.add(
		text("fermata.question.id", string(q.ID)),
		text("fermata.wait.category", string(q.Gate)),
		text("fermata.wait.result", string(result)),
		text("fermata.wait.end_reason", string(reason)),
		number("fermata.version.seq", int64(q.Version.N)),
		text("fermata.version.commit", op.commitment(f.o.Key, q.Version.Digest)),
		number("fermata.version.bytes", int64(q.Version.Bytes)),
		number("fermata.frontends.offered", int64(q.Offered)),
	)
	s.addHook(op.scope, q.Hook, "", q.script)
	s.addProof(now)
	if q.Deadline != 0 {
		s.add(seconds("fermata.wait.timeout_s", max(q.Deadline-q.asked, 0)))
	}
	if q.Attempt > 0 {
		s.add(number("fermata.recheck.attempt", int64(q.Attempt)))
	}
	if q.presented != 0 {
		s.add(number("fermata.wait.delivery_ms", millis(q.asked, q.presented)))
	}
	if q.claimed != 0 {
		s.add(text("fermata.frontend.id", string(q.frontend)), text("fermata.frontend.kind", string(q.kind)))
	}
	if q.claimed != 0 && q.presented != 0 {
		s.add(number("fermata.wait.claim_ms", millis(q.presented, q.claimed)))
	}
}

// addAnswer says who answered. A claim in the message of its answer says
// nothing about thinking: then the time is all in claim_ms.
func (f *fold) addAnswer(s *span, op *operation, q *question, r *events.Response, now moment) {
	s.add(
		text("fermata.actor.class", "human"), // the core refuses an answer that is not a person's
		text("fermata.actor.ref", f.o.Key.Actor(r.Principal)),
		text("fermata.actor.assurance", assurance(r.Principal)),
	)
	if op.asker != "" && op.asker != "core" { // else who asked is not known, and nothing is claimed
		s.add(truth("fermata.actor.is_requester", r.Principal == op.asker))
	}
	if q.claimed != 0 && q.claimSeq != now.seq {
		s.add(number("fermata.wait.think_ms", millis(q.claimed, now.at)))
	}
	if q.Gate == events.GateApproval {
		s.add(text("fermata.approval.outcome", string(r.Answer)))
	}
}

// assurance is how sure we are of a principal: the operating system's word for
// a user, or none.
func assurance(principal string) string {
	if strings.HasPrefix(principal, "uid:") {
		return "os_user"
	}
	return "none"
}

func millis(from, to events.Micros) int64 { return int64(max(to-from, 0)) / 1000 }

// timelineLimit bounds the events of one span.
const timelineLimit = 128

// timeline is the notes of a span that is still open. Its first entry and its
// end are kept; between them the oldest goes first.
type timeline struct {
	entries []note
	dropped uint32
}

func (t *timeline) add(at events.Micros, name string, a attrs) {
	if len(t.entries) == timelineLimit-1 {
		t.entries = append(t.entries[:1], t.entries[2:]...)
		t.dropped++
	}
	t.end(at, name, a)
}

func (t *timeline) end(at events.Micros, name string, a attrs) {
	a.sort()
	t.entries = append(t.entries, note{at: nanos(at), name: clip(name), attrs: a})
}
