package engine

import (
	"slices"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// maxUnreported bounds, where Options say nothing, what a session remembers of calls
// whose end its agent never tells. What it forgets beyond that is looked up in the
// log when it matters; see [sweep].
const maxUnreported = 10_000

// delivered is a tool call that its agent was told to run. Its fields are exported
// because a snapshot holds it.
type delivered struct {
	Operation events.ID
	Turn      string
	Path      string
	CallID    string
	Tool      string
	Digest    events.Digest
	// Over says that its turn or session is over: its outcome is unknown. Told
	// says that its own subject has it. A report may still come.
	Over, Told bool
}

// noteDelivered remembers a call that may run now.
func (e *Engine) noteDelivered(op *operation, s core.State) {
	if s.Proposed.Kind != events.KindToolCall {
		return // what is submitted has no outcome of its own
	}
	p, d := op.place.Value(), deliveredBy(s)
	ses, refused := e.sessionAt(p)
	if refused != nil || ses.over() { // it ended while the receipt was on its way
		e.carryOut(endings{lost: []lostCall{{p, d.Operation}}})
		return
	}
	ses.deliver(d, e.o.Unreported)
}

func deliveredBy(s core.State) delivered {
	return delivered{
		Operation: s.ID, Turn: s.Turn, Path: s.Proposed.Path, CallID: s.Proposed.Tool.CallID, Tool: s.Proposed.Tool.Name,
		Digest: s.Ending().Committed.Digest,
	}
}

// deliver notes a call. Where there is no room the oldest is forgotten.
func (s *session) deliver(d delivered, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.unreported) >= most {
		if !s.unreported[0].Over {
			s.forgotten++
		}
		s.unreported = s.unreported[1:]
	}
	s.unreported = append(s.unreported, d)
}

// noteReported forgets a call whose end is in the log. One that was only given up
// is kept for a while: its report may still come.
func (e *Engine) noteReported(p Place, id events.ID) {
	if ses, refused := e.sessionAt(p); refused == nil {
		ses.reported(id)
	}
}

func (s *session) reported(id events.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, d := range slices.Backward(s.unreported) {
		switch {
		case d.Operation != id:
		case d.Over && !d.Told:
			s.unreported[i].Told = true
			return
		default:
			s.unreported = slices.Delete(s.unreported, i, i+1)
			return
		}
	}
}

// abandonCalls marks the calls that nobody reported and that r reaches, and returns
// those that were not given up before. What was given up earlier is forgotten. UpTo
// is how far the log is known to be applied.
func (s *session) abandonCalls(r reach, upTo uint64) (lost []lostCall) {
	if !r.calls {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.forgotten > 0 {
		s.owesSweep(r, upTo)
	}
	s.unreported = slices.DeleteFunc(s.unreported, func(d delivered) bool { return d.Over && d.Told })
	for i, d := range s.unreported {
		if d.Over || r.ends(events.KindToolCall, d.Path, d.Turn) == "" {
			continue
		}
		s.unreported[i].Over = true
		lost = append(lost, lostCall{s.place, d.Operation})
	}
	return lost
}

// untold lists the calls whose unknown outcome their own subject does not have.
func (s *session) untold() (lost []lostCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.unreported {
		if d.Over && !d.Told {
			lost = append(lost, lostCall{s.place, d.Operation})
		}
	}
	return lost
}

// find is the call that a tool's end is about: the one with its id, else with the
// agent's own id of the call, else the only one with that tool and arguments.
func (s *session) find(id events.ID, tool events.Tool, ran events.Digest) (events.ID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var same []events.ID
	for _, d := range slices.Backward(s.unreported) {
		switch {
		case id != "":
			if d.Operation == id {
				return id, true
			}
		case tool.CallID != "" && d.CallID != "":
			if d.CallID == tool.CallID {
				return d.Operation, true
			}
		case d.Tool == tool.Name && ran != "" && d.Digest == ran:
			same = append(same, d.Operation)
		}
	}
	if len(same) != 1 {
		return "", false
	}
	return same[0], true
}
