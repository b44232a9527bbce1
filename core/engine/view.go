package engine

import (
	"bytes"
	"encoding/json"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// view is a question as frontends see it.
type view struct{ events.Question }

// question makes the view of an open question.
func (e *Engine) question(id events.ID) (view, bool) {
	e.mu.Lock()
	op, ok := e.questions[id]
	e.mu.Unlock()
	if !ok {
		return view{}, false
	}
	op.mu.Lock()
	s, received := op.state, len(op.received)
	op.mu.Unlock()
	if !s.Question.Open || s.Question.ID != id {
		return view{}, false
	}
	v := e.viewOf(op.place.Value(), s)
	v.ReceivedBy = received
	return v, true
}

func (e *Engine) viewOf(p Place, s core.State) view {
	q := s.Question
	e.mu.Lock()
	var path string
	if ses, ok := e.sessions[p.Session]; ok {
		path = ses.opened.ProjectPath
	}
	e.mu.Unlock()
	v := view{events.Question{
		ID: q.ID, Gate: q.Gate, Operation: s.ID, Project: p.Project, Session: p.Session, Agent: s.Proposed.Agent,
		ProjectPath: path, Cwd: s.Proposed.Cwd, Kind: s.Proposed.Kind, Path: s.Proposed.Path, Tool: s.Proposed.Tool,
		Hook: s.Run.Hook, Reason: string(s.Body(events.ReasonBody(q.ID))), Version: s.Current(), Args: s.Args(),
		Attempt: s.Attempt, Previous: s.Yes, AskedAt: q.AskedAt, Deadline: q.Deadline, DeadlineFrom: q.DeadlineFrom,
		Changed: changes(s, q), Seq: s.Seq,
	}}
	if c := q.Claim(); c.Seq != 0 {
		v.ClaimedBy = claimOf(c)
	}
	return v
}

func claimOf(c core.Claim) *events.Claim {
	return &events.Claim{
		Frontend: c.Frontend, Kind: c.Kind, Name: c.Name, Principal: c.Principal, Since: c.Since, Claim: c.Seq,
	}
}

// changes lists old and new values of what differs from the last yes.
func changes(s core.State, q core.Question) []events.Change {
	if len(q.Changed) == 0 {
		return nil
	}
	before, after := fields(s.Body(events.ArgsBody(s.Yes))), fields(s.Args())
	list := make([]events.Change, 0, len(q.Changed))
	for _, name := range q.Changed {
		list = append(list, events.Change{Name: name, Old: before[name], New: after[name]})
	}
	return list
}

// fields splits arguments into their top-level values, byte for byte; a value
// that is no object stands under the empty name.
func fields(args []byte) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if bytes.HasPrefix(args, []byte("{")) && json.Unmarshal(args, &m) == nil {
		return m
	}
	return map[string]json.RawMessage{"": args}
}

// trim leaves out what does not fit into room bytes and returns the size of
// what is left; show brings the rest.
func (v *view) trim(room int) int {
	size := 2048 + len(v.Reason)
	if size+len(v.Args) > room {
		v.Args = nil
	}
	size += len(v.Args)
	for i, c := range v.Changed {
		if size+len(c.Old)+len(c.New) > room {
			v.Changed[i].Old, v.Changed[i].New = nil, nil
			continue
		}
		size += len(c.Old) + len(c.New)
	}
	return size
}

// tell publishes what a written message means for frontends: questions and
// their ends whole, of everything else one line.
func (e *Engine) tell(op *operation, m events.Message, s core.State) {
	live := events.Live{Seq: m.Seq}
	for _, ev := range m.Events {
		switch ev := ev.(type) {
		case events.Request:
			q := e.viewOf(op.place.Value(), s).Question
			live.Asked = &q
		case events.Claimed:
			live.Claimed = &events.LiveClaim{Question: ev.ID, By: events.Claim{
				Frontend: ev.Frontend, Kind: ev.Kind, Name: ev.Name, Principal: ev.Principal, Since: m.At, Claim: m.Seq,
			}}
		case events.Released:
			live.Released = ev.ID
		case events.Response, events.Withdrawn:
			end := endOf(s.Settled[len(s.Settled)-1])
			live.Ended = &end
		case events.OperationCommitted, events.OperationRefused, events.OperationAborted, events.OperationFinished, events.OperationDelivered:
			line := lineOf(op.place.Value(), s)
			live.Line = &line
		}
	}
	if live.Asked != nil || live.Claimed != nil || live.Released != "" || live.Ended != nil || live.Line != nil || len(live.Runs) > 0 {
		e.publish(op.place.Value(), live)
	}
}

func endOf(q core.Settled) events.End {
	return events.End{
		Question: q.ID, Result: q.Result, Reason: q.Reason, Who: q.Who, Kind: q.Kind, Answer: q.Answer, At: q.At,
	}
}

func lineOf(p Place, s core.State) events.Line {
	end := s.Ending()
	l := events.Line{
		Operation: s.ID, Project: p.Project, Session: p.Session, Agent: s.Proposed.Agent, Path: s.Proposed.Path,
		Tool: s.Proposed.Tool, Code: end.Code, Outcome: end.Outcome, Ran: end.Ran, Committed: end.Committed.Digest,
		Bytes: end.Committed.Bytes, At: s.At,
	}
	if n := len(s.Settled); n > 0 {
		l.Question, l.Who = s.Settled[n-1].ID, s.Settled[n-1].Who
	}
	switch {
	case end.Outcome != "":
		l.State = "finished"
	case s.Phase == core.PhaseCommitted && s.Delivered:
		l.State = "delivered"
	case s.Phase == core.PhaseCommitted:
		l.State = "committed"
	case end.Code != "":
		l.State = "refused"
	case s.Phase == core.PhaseEnded:
		l.State = "aborted"
	}
	return l
}
