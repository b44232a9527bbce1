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
	v := view{events.Question{
		ID: q.ID, Gate: q.Gate, Operation: s.ID, Project: p.Project, Session: p.Session, Agent: s.Proposed.Agent,
		ProjectPath: e.projectPath(p), Cwd: s.Proposed.Cwd, Kind: s.Proposed.Kind, Path: s.Proposed.Path, Tool: s.Proposed.Tool,
		Hook: s.Run.Hook, Reason: string(s.Body(events.ReasonBody(q.ID))), Version: s.Current(), Args: s.Args(),
		Attempt: s.Attempt, Previous: s.Yes, AskedAt: q.AskedAt, Deadline: q.Deadline, DeadlineFrom: q.DeadlineFrom,
		Changed: changes(s), Seq: s.Seq,
	}}
	if len(v.Changed) > 0 {
		v.ChangedBy = s.ChangedBy(base(s))
	}
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

// base is the version that a question compares with: what a person last said yes to,
// else what was proposed.
func base(s core.State) int { return max(0, s.Yes) }

// changes lists old and new values of what differs from the base.
func changes(s core.State) []events.Change {
	names := s.Question.Changed
	if s.Yes < 0 && s.Current().N > 0 { // the log has no names for a first question
		names = core.ChangedNames(s.Body(events.ArgsBody(0)), s.Args())
	}
	if len(names) == 0 {
		return nil
	}
	before, after := fields(s.Body(events.ArgsBody(base(s)))), fields(s.Args())
	list := make([]events.Change, 0, len(names))
	for _, name := range names {
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
	for _, h := range v.ChangedBy {
		size += 128 + len(h.ID) + len(h.File)
	}
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
// their ends whole, of the operation and of each hook's run one line.
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
		}
	}
	live.Line, live.Runs = e.recall(op.place.Value(), m, s)
	if live.Asked != nil || live.Claimed != nil || live.Released != "" || live.Ended != nil || live.Line != nil || len(live.Runs) > 0 {
		e.publish(op.place.Value(), live)
	}
}

func endOf(q core.Settled) events.End {
	return events.End{
		Question: q.ID, Result: q.Result, Reason: q.Reason, Who: q.Who, Kind: q.Kind, Answer: q.Answer, At: q.At,
	}
}
