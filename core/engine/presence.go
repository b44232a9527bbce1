package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// maxFrontends bounds what attached frontends can cost.
const maxFrontends = 1000

// frontend is an attached frontend, a value under the engine's lock.
type frontend struct {
	id        events.ID
	principal string
	kind      events.FrontendKind
	name      string
	capable   bool
	panes     bool // capable only where the agent stands in a pane
	scope     string
	lapse     *time.Timer
}

// covers reports whether a scope contains a session or one of its parents.
func (e *Engine) covers(scope string, p Place) bool {
	if scope == events.DoorAll || scope == string(p.Project) {
		return true
	}
	for s := p.Session; s != ""; {
		if scope == string(s) {
			return true
		}
		ses, ok := e.sessions[s]
		if !ok {
			return false
		}
		s = ses.opened.Parent
	}
	return false
}

// Hello attaches a frontend to a scope, or changes what it is. Sessions that
// open later are covered too.
func (e *Engine) Hello(f Frontend, scope string, h events.Hello) events.HelloReply {
	switch h.Kind {
	case events.FrontendTUI, events.FrontendACP, events.FrontendWeb, events.FrontendCLI:
	default:
		return events.HelloReply{Refused: refuse(events.RejectMalformed, fmt.Sprintf("unknown kind of frontend %.20q", h.Kind))}
	}
	if len(h.Name) > 128 {
		return events.HelloReply{Refused: refuse(events.RejectMalformed, "the name has more than 128 bytes")}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	fe, known := e.frontends[f.ID]
	if !known {
		if len(e.frontends) >= maxFrontends {
			return events.HelloReply{Refused: refuse(events.RejectTooMany, "too many frontends are attached")}
		}
		fe = &frontend{id: f.ID}
		e.frontends[f.ID] = fe
		fe.lapse = time.AfterFunc(FrontendLease, func() { e.detach(f.ID, events.ReleasedLapsed) })
	}
	fe.lapse.Reset(FrontendLease)
	fe.principal, fe.kind, fe.name, fe.scope = f.Principal, h.Kind, h.Name, scope
	fe.capable, fe.panes = h.Capable, h.Panes
	return events.HelloReply{
		Core: e.o.Core, Epoch: e.o.Epoch, LeaseMS: FrontendLease.Milliseconds(), Alone: e.o.Alone, Principal: f.Principal, Sessions: e.heads(scope),
	}
}

// Renew keeps a frontend's lease, and its claims if a person has been at it.
func (e *Engine) Renew(f Frontend, scope string, r events.Renew) events.RenewReply {
	e.mu.Lock()
	fe, ok := e.frontends[f.ID]
	if !ok {
		e.mu.Unlock()
		return events.RenewReply{Epoch: e.o.Epoch, Refused: refuse(events.RejectNotAttached, "say hello first")}
	}
	fe.lapse.Reset(FrontendLease)
	reply := events.RenewReply{Epoch: e.o.Epoch, Sessions: e.heads(scope)}
	var asking []*operation
	if r.Input {
		asking = e.asking()
	}
	e.mu.Unlock()
	for _, op := range asking {
		op.mu.Lock()
		if op.state.Question.Claim().Frontend == f.ID && op.due.lease != 0 {
			op.due.lease = e.in(ClaimLease)
		}
		op.mu.Unlock()
	}
	return reply
}

// Bye detaches a frontend.
func (e *Engine) Bye(f Frontend) { e.detach(f.ID, events.ReleasedBack) }

// detach removes a frontend: its claims are free, and questions that nobody
// else has in a list wait only so long.
func (e *Engine) detach(id events.ID, why events.ReleaseReason) {
	e.mu.Lock()
	fe, ok := e.frontends[id]
	if !ok {
		e.mu.Unlock()
		return
	}
	fe.lapse.Stop()
	delete(e.frontends, id)
	open := e.asking()
	e.mu.Unlock()
	for _, op := range open {
		op.mu.Lock()
		if i := slices.Index(op.received, id); i >= 0 {
			op.received = slices.Delete(op.received, i, i+1)
			if len(op.received) == 0 && op.state.Question.WhenNobody != events.NobodyWait {
				op.due.nobody = e.in(NobodyGrace)
			}
		}
		claimed := op.state.Question.Open && op.state.Question.Claim().Seq != 0 && op.state.Question.Claim().Frontend == id
		op.mu.Unlock()
		if claimed {
			e.release(op, id, why)
		}
		e.arm(op)
	}
}

func (e *Engine) release(op *operation, id events.ID, why events.ReleaseReason) {
	_, err := e.decide(op, "core", func(s core.State) core.Command {
		return core.Release{At: e.at(), Question: s.Question.ID, Frontend: id, Reason: why}
	})
	if err != nil && !e.stopped() {
		e.o.Logger.Error("could not release a claim", "error", err)
	}
}

// attached returns what a frontend said of itself.
func (e *Engine) attached(f Frontend) (frontend, *events.Refused) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fe, ok := e.frontends[f.ID]
	if !ok || fe.principal != f.Principal {
		return frontend{}, refuse(events.RejectNotAttached, "say hello first")
	}
	return *fe, nil
}

// capable counts the frontends that could show a question of a session now.
func (e *Engine) capable(p Place) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, fe := range e.frontends {
		if e.covers(fe.scope, p) && e.shows(fe, p) {
			n++
		}
	}
	return n
}

// shows reports whether a frontend could show a question of a session that it
// covers. e.mu is held.
func (e *Engine) shows(fe *frontend, p Place) bool {
	return fe.capable && (!fe.panes || e.inPane(p.Session))
}

// asking lists the operations with an open question. e.mu is held.
func (e *Engine) asking() []*operation {
	list := make([]*operation, 0, len(e.questions))
	for _, op := range e.questions {
		list = append(list, op)
	}
	return list
}

// Frontends counts the attached frontends.
func (e *Engine) Frontends() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.frontends)
}
