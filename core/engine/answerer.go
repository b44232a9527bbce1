package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// chunk is the most data of one reply, bytes.
const chunk = 256 << 10

// maxText bounds a person's words to the model, bytes.
const maxText = 16 << 10

// Sync lists a session's open questions in the order of their ids, page by
// page. Feed is read first: every message up to it is contained in the list.
func (e *Engine) Sync(p Place, c events.Sync) events.SyncReply {
	ses, refused := e.sessionAt(p)
	if refused != nil {
		return events.SyncReply{Refused: refused}
	}
	reply := events.SyncReply{Epoch: e.o.Epoch, Feed: ses.feed.Load()}
	var ids []events.ID
	e.mu.Lock()
	for id, op := range e.questions {
		if op.place.Value() == p && id > c.Cursor {
			ids = append(ids, id)
		}
	}
	e.mu.Unlock()
	slices.Sort(ids)
	room := chunk
	for _, id := range ids {
		q, ok := e.question(id)
		if !ok {
			continue
		}
		size := q.trim(room)
		if room -= size; room < 0 && len(reply.Questions) > 0 {
			break
		}
		reply.Questions = append(reply.Questions, q.Question)
		reply.Next = id
	}
	if len(ids) == 0 || reply.Next == ids[len(ids)-1] {
		reply.Next = ""
	}
	return reply
}

// Show gives a chunk of one version of a question's arguments, of an ended
// question too.
func (e *Engine) Show(_ context.Context, p Place, c events.Show) events.ShowReply {
	s, refused := e.stateOf(p, c.Question)
	if refused != nil {
		return events.ShowReply{Refused: refused}
	}
	body := s.Body(events.ArgsBody(c.Version))
	if body == nil || c.Offset < 0 || c.Offset > int64(len(body)) {
		return events.ShowReply{Refused: refuse(events.RejectMalformed, "no such version or offset")}
	}
	rest := body[c.Offset:]
	return events.ShowReply{Data: rest[:min(len(rest), chunk)], Total: int64(len(body))}
}

// Received notes that questions are in a capable frontend's list.
func (e *Engine) Received(f Frontend, p Place, c events.Received) events.Ack {
	if len(c.Questions) > 256 {
		return events.Ack{Refused: refuse(events.RejectTooMany, "at most 256 questions at once")}
	}
	fe, refused := e.attached(f)
	if refused != nil {
		return events.Ack{Refused: refused}
	}
	e.mu.Lock()
	shows := e.shows(&fe, p)
	e.mu.Unlock()
	if !shows {
		return events.Ack{}
	}
	for _, id := range c.Questions {
		op, ok := e.openQuestion(p, id)
		if !ok {
			continue
		}
		op.mu.Lock()
		if !slices.Contains(op.received, f.ID) {
			op.received = append(op.received, f.ID)
		}
		op.mu.Unlock()
		e.arm(op)
	}
	return events.Ack{}
}

// Presented notes that a question was drawn. It is written with the next event
// of the question, or alone after a second.
func (e *Engine) Presented(_ context.Context, f Frontend, p Place, c events.Drawn) events.Ack {
	fe, refused := e.attached(f)
	if refused != nil {
		return events.Ack{Refused: refused}
	}
	op, ok := e.openQuestion(p, c.Question)
	if !ok {
		return events.Ack{Refused: e.ending(p, c.Question)}
	}
	op.mu.Lock()
	if !slices.ContainsFunc(op.drawn, func(d core.Present) bool { return d.Frontend == f.ID && d.Question == c.Question }) &&
		len(op.drawn) < 64 {
		op.drawn = append(op.drawn, core.Present{
			At: e.at(), Question: c.Question, Frontend: f.ID, Kind: fe.kind, Digest: c.Digest,
		})
		if op.due.drawn == 0 {
			op.due.drawn = e.in(DrawnWithin)
		}
	}
	op.mu.Unlock()
	e.arm(op)
	return events.Ack{}
}

// Claim gives a frontend the right to answer.
func (e *Engine) Claim(_ context.Context, f Frontend, p Place, c events.ClaimCommand) events.ClaimReply {
	fe, refused := e.attached(f)
	if refused != nil {
		return events.ClaimReply{Refused: refused}
	}
	op, ok := e.openQuestion(p, c.Question)
	if !ok {
		return events.ClaimReply{Refused: e.ending(p, c.Question)}
	}
	s, err := e.decide(op, f.Principal, func(core.State) core.Command {
		return core.TakeClaim{
			At: e.at(), Question: c.Question, Frontend: f.ID, Kind: fe.kind, Name: fe.name, Principal: f.Principal,
		}
	})
	if err != nil {
		return events.ClaimReply{Refused: typed(err)}
	}
	op.mu.Lock()
	op.due.lease = e.in(ClaimLease)
	op.mu.Unlock()
	e.arm(op)
	return events.ClaimReply{Claim: s.Question.Claim().Seq, LeaseMS: ClaimLease.Milliseconds()}
}

// Release gives the right back.
func (e *Engine) Release(_ context.Context, f Frontend, p Place, c events.ReleaseCommand) events.Ack {
	op, ok := e.openQuestion(p, c.Question)
	if !ok {
		return events.Ack{Refused: e.ending(p, c.Question)}
	}
	s, err := e.decide(op, f.Principal, func(s core.State) core.Command {
		if s.Question.Claim().Seq != c.Claim {
			return nil
		}
		return core.Release{At: e.at(), Question: c.Question, Frontend: f.ID, Reason: events.ReleasedBack}
	})
	if err != nil {
		return events.Ack{Refused: typed(err)}
	}
	return events.Ack{Seq: s.Seq}
}

// Respond answers a question. A late or wrong answer changes nothing, is
// recorded, and gets a typed no.
func (e *Engine) Respond(_ context.Context, f Frontend, p Place, c events.Respond) events.Ack {
	fe, refused := e.attached(f)
	if refused != nil {
		return events.Ack{Refused: refused}
	}
	if len(c.Text) > maxText {
		return events.Ack{Refused: refuse(events.RejectMalformed, fmt.Sprintf("the text to the model has more than %d bytes", maxText))}
	}
	op, ok := e.openQuestion(p, c.Question)
	if !ok {
		if op, ok = e.known(p, c.Question); !ok {
			return events.Ack{Refused: refuse(events.RejectUnknownQuestion, "")}
		}
	}
	s, err := e.decide(op, f.Principal, func(s core.State) core.Command {
		return e.answer(op, f, fe, c, s)
	})
	if err != nil {
		op.mu.Lock()
		op.rejected++
		op.mu.Unlock()
		return events.Ack{Refused: typed(err)}
	}
	for _, q := range s.Settled {
		if q.ID == c.Question {
			return events.Ack{Seq: q.Seq}
		}
	}
	return events.Ack{Seq: s.Seq}
}

func (e *Engine) answer(op *operation, f Frontend, fe frontend, c events.Respond, s core.State) core.Command {
	a := core.Answer{
		At: e.at(), Question: c.Question, Frontend: f.ID, Kind: fe.kind, Name: fe.name, Principal: f.Principal,
		Digest: c.Digest, Claim: c.Claim, Answer: c.Answer, Text: c.Text, Human: c.Human,
	}
	op.mu.Lock()
	a.Repeats = op.rejected
	op.mu.Unlock()
	if c.Answer == events.AnswerContinue && s.Phase == core.PhaseAsking {
		a.Next = e.next(op, s, s.Args())
	}
	return a
}

// typed makes every error of decide a reply.
func typed(err error) *events.Refused {
	var r *events.Refused
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, ErrStopped):
		return refuse(events.RejectLogUnavailable, ErrStopped.Error())
	}
	return refuse(events.RejectInternal, err.Error())
}

// Find tells where a question or an operation is, of ended ones too.
func (e *Engine) Find(_ context.Context, c events.Find) events.FindReply {
	var at string
	var open bool
	e.mu.Lock()
	switch {
	case c.Question != "":
		if op, ok := e.questions[c.Question]; ok {
			at, open = op.subject(), true
		} else {
			at = e.ended.questions[c.Question]
		}
	case c.Operation != "":
		if op, ok := e.ops[c.Operation]; ok {
			at, open = op.subject(), true
		} else {
			at = e.ended.operations[c.Operation]
		}
	}
	e.mu.Unlock()
	if at == "" {
		var err error
		if at, err = e.search(c); err != nil {
			return events.FindReply{Refused: typed(e.appendFailed(err))}
		}
	}
	if at == "" {
		return events.FindReply{Refused: refuse(events.RejectUnknownQuestion, "nothing in this core's log has that id")}
	}
	subject, err := events.ParseLogSubject(at)
	if err != nil {
		return events.FindReply{Refused: refuse(events.RejectInternal, err.Error())}
	}
	r := events.FindReply{
		Project: subject.Project, Session: subject.Session, Operation: subject.Operation, Question: c.Question, State: "ended",
	}
	s, err := e.fold(at)
	if err != nil {
		return events.FindReply{Refused: typed(e.appendFailed(err))}
	}
	switch {
	case c.Question == "" && s.Phase == core.PhaseCommitted:
		r.State = "committed"
	case open && (c.Question == "" || s.Question.Open && s.Question.ID == c.Question):
		r.State = "open"
	}
	for _, q := range s.Settled {
		if q.ID == c.Question {
			end := endOf(q)
			r.End = &end
		}
	}
	return r
}

// readBack waits for the turn to read much of the log, and returns what ends it. One
// reads at a time: whoever makes up ids must not keep the disk busy for everybody.
func (e *Engine) readBack(ctx context.Context) (done func(), _ error) {
	select {
	case e.searching <- struct{}{}:
		return func() { <-e.searching }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-e.ctx.Done():
		return nil, ErrStopped
	}
}

// search reads the log back for an id that memory has forgotten, "" when it is
// not there.
func (e *Engine) search(c events.Find) (subject string, _ error) {
	done, err := e.readBack(e.ctx)
	if err != nil {
		return "", err
	}
	defer done()
	for r, err := range e.o.Log.Scan(e.ctx, 0) {
		if err != nil {
			return "", err
		}
		if p, err := events.ParseLogSubject(r.Subject); err == nil && c.Operation != "" && p.Operation == c.Operation {
			return r.Subject, nil
		}
		if c.Question == "" {
			continue
		}
		m, err := events.DecodeMessage(r.Data)
		if err != nil {
			continue
		}
		for _, ev := range m.Events {
			if q, ok := ev.(events.Request); ok && q.ID == c.Question {
				return r.Subject, nil
			}
		}
	}
	return "", nil
}

func (e *Engine) openQuestion(p Place, id events.ID) (*operation, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	op, ok := e.questions[id]
	return op, ok && op.place.Value() == p
}

// known finds the operation of an ended question: in memory, or folded from
// the log.
func (e *Engine) known(p Place, id events.ID) (*operation, bool) {
	f := e.Find(e.ctx, events.Find{Question: id})
	if f.Refused != nil || (Place{f.Project, f.Session}) != p {
		return nil, false
	}
	if op, ok := e.lookup(f.Operation); ok {
		return op, true
	}
	s, err := e.fold(events.OperationSubject(p.Project, p.Session, f.Operation))
	if err != nil {
		return nil, false
	}
	return newOperation(p, f.Operation, s), true
}

// stateOf is the state behind a question, open or ended.
func (e *Engine) stateOf(p Place, id events.ID) (core.State, *events.Refused) {
	if op, ok := e.openQuestion(p, id); ok {
		return op.snapshot(), nil
	}
	if op, ok := e.known(p, id); ok {
		return op.snapshot(), nil
	}
	return core.State{}, refuse(events.RejectUnknownQuestion, "")
}

// ending is the typed no for a question that is not open.
func (e *Engine) ending(p Place, id events.ID) *events.Refused {
	op, ok := e.known(p, id)
	if !ok {
		return refuse(events.RejectUnknownQuestion, "")
	}
	s := op.snapshot()
	if no := s.Closed(id); no != nil {
		return no
	}
	return refuse(events.RejectUnknownQuestion, "")
}
