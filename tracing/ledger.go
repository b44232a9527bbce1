package tracing

import (
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-hitl/fermata/events"
)

// ledger is the verifier's fold: what the log says of each thing that ended.
type ledger struct {
	o         VerifyOptions
	ops       map[events.ID]*opFacts
	questions map[events.ID]*questionFacts
	runs      map[events.ID]runFacts // started, not ended
	want      map[trace.SpanID]want
	findings  []Finding
}

// want is the span that something in the log must have. Result is set for
// questions only, outcome for operations, ran and mode for runs, version for
// questions and commits; yes counts the answers that authorise a commit.
type want struct {
	what    string
	object  string
	trace   trace.TraceID
	parent  trace.SpanID
	start   events.Micros
	end     events.Micros
	seq     uint64
	result  events.Result
	reason  events.EndReason
	outcome string
	ran     events.RunOutcome
	mode    events.HookMode
	version events.Digest
	yes     int
}

type opFacts struct {
	origin  Origin
	began   events.Micros
	asked   []*questionFacts
	outcome string // "" while it is open
	ended   uint64 // sequence of the message with its end
}

// runFacts are of a run of the operation op, or of one that begins when there
// is none: then origin is that of its own message.
type runFacts struct {
	events.HookStarted
	origin Origin
	op     *opFacts
	at     events.Micros
}

type questionFacts struct {
	request events.Request
	asked   events.Micros
	ends    int
	yes     bool
}

func newLedger(o VerifyOptions) *ledger {
	return &ledger{
		o: o, ops: map[events.ID]*opFacts{}, questions: map[events.ID]*questionFacts{},
		runs: map[events.ID]runFacts{}, want: map[trace.SpanID]want{},
	}
}

func (l *ledger) record(r Record) error {
	m, err := read(r, events.DecodeMessage)
	if m == nil || err != nil {
		return err
	}
	for _, e := range m.Events {
		switch e := e.(type) {
		case events.OperationProposed:
			l.propose(m)
		case events.HookStarted:
			l.startHook(e, m)
		case events.HookRan:
			l.ranHook(e, m)
		default:
			if op, ok := l.ops[m.Operation]; ok {
				l.event(op, e, m)
			}
		}
	}
	return nil
}

func (l *ledger) propose(m *events.Message) {
	if _, ok := l.ops[m.Operation]; ok {
		l.find("S1", string(m.Operation), "proposed twice")
		return
	}
	l.ops[m.Operation] = &opFacts{
		began: m.At, origin: originOf(l.o.StoreID, m),
	}
}

func (l *ledger) event(op *opFacts, e events.Event, m *events.Message) {
	switch e := e.(type) {
	case events.Request:
		l.ask(op, e, m)
	case events.Response:
		l.settle(op, e.ID, events.ResultAnswered, e.Answer.EndReason(), m)
	case events.Withdrawn:
		l.settle(op, e.ID, e.Result, e.Reason, m)
	case events.OperationCommitted:
		if op.outcome == "" {
			l.expect(op.origin, KindCommit, op.origin.Operation, want{
				what: "commit", start: m.At, end: m.At, seq: m.Seq, version: e.Version.Digest, yes: op.yesTo(e.Version.Digest),
			})
		}
		l.finish(op, "committed", m)
	case events.OperationRefused:
		l.finish(op, "refused", m)
	case events.OperationAborted:
		l.finish(op, "aborted", m)
	}
}

func (l *ledger) ask(op *opFacts, e events.Request, m *events.Message) {
	if _, ok := l.questions[e.ID]; ok {
		l.find("S1", string(e.ID), "asked twice")
		return
	}
	q := &questionFacts{request: e, asked: m.At}
	l.questions[e.ID] = q
	op.asked = append(op.asked, q)
}

func (l *ledger) settle(op *opFacts, id events.ID, result events.Result, reason events.EndReason, m *events.Message) {
	q, ok := l.questions[id]
	if !ok {
		l.find("S1", string(id), "ended without being asked")
		return
	}
	if q.ends++; q.ends > 1 {
		l.find("S1", string(id), "ended twice")
		return
	}
	if events.ResultOf(reason) != result {
		l.find("S6", string(id), "end reason "+string(reason)+" does not belong to result "+string(result))
	}
	q.yes = reason == events.EndContinue
	if op.outcome == "" {
		l.expect(op.origin, KindWait, id, want{
			what: "question", start: q.asked, end: m.At, seq: m.Seq,
			result: result, reason: reason, version: q.request.Version.Digest,
		})
	}
}

// startHook notes a run. One that is not waited for, or not at the gate, needs
// no open operation.
func (l *ledger) startHook(e events.HookStarted, m *events.Message) {
	if r, ok := l.runs[e.Run]; ok {
		l.endHook(r, abandonedRun, m)
	}
	r := runFacts{HookStarted: e, at: m.At, origin: originOf(l.o.StoreID, m)}
	alone := !e.AtGate()
	if op, ok := l.ops[m.Operation]; ok && (op.outcome == "" || alone && op.ended == m.Seq) {
		r.op, r.origin = op, op.origin
	} else if !alone {
		return
	}
	l.runs[e.Run] = r
}

// abandonedRun is the end of a run that nobody has seen.
var abandonedRun = events.HookRan{Outcome: events.RunAbandoned}

func (l *ledger) ranHook(e events.HookRan, m *events.Message) {
	if r, ok := l.runs[e.Run]; ok {
		l.endHook(r, e, m)
	}
}

// endHook wants the span of a run and, when it stood in line, that of its wait:
// the one begins where the other ends, or later.
func (l *ledger) endHook(r runFacts, e events.HookRan, m *events.Message) {
	delete(l.runs, r.Run)
	name := r.Run
	if r.Start > 1 {
		name += events.ID(fmt.Sprintf("/%d", r.Start))
	}
	w := want{what: "hook run", start: r.at, end: max(r.at, m.At), seq: m.Seq, ran: e.Outcome, mode: r.Mode}
	if e.Waited > 0 {
		w.start = min(w.end, r.at+events.Micros(e.Waited))
		l.expect(r.origin, KindSlot, name, want{what: "wait for a place", start: r.at, end: w.start, seq: m.Seq, mode: r.Mode})
	}
	switch {
	case e.Outcome == events.RunDetached:
		w.start = w.end
	case e.Micros > 0:
		w.start = max(w.start, w.end-events.Micros(e.Micros))
	}
	l.expect(r.origin, KindHookRun, name, w)
}

// finish ends an operation, once; what comes later of it has no span.
func (l *ledger) finish(op *opFacts, outcome string, m *events.Message) {
	if op.outcome != "" {
		return
	}
	for _, r := range l.runs {
		if r.op == op && r.AtGate() {
			l.endHook(r, abandonedRun, m)
		}
	}
	op.outcome, op.ended = outcome, m.Seq
	l.expect(op.origin, KindOperation, op.origin.Operation, want{
		what: "operation", start: op.began, end: m.At, seq: m.Seq, outcome: outcome,
	})
	for _, q := range op.asked {
		if q.ends == 0 {
			l.find("S2", string(q.request.ID), "its operation has ended and it has not")
		}
	}
}

func (l *ledger) expect(o Origin, kind SpanKind, object events.ID, w want) {
	w.object, w.trace, w.parent = string(object), o.Trace(), o.above()
	if kind == KindOperation {
		w.parent = o.Parent()
	}
	id := o.Span(kind, object)
	if before, ok := l.want[id]; ok {
		l.find("S1", w.object, "the "+before.what+" ended twice")
	}
	l.want[id] = w
}

// overdue finds the questions that are open although their deadline is over,
// five seconds being allowed for the core to end them.
func (l *ledger) overdue() {
	const grace = 5_000_000
	for _, op := range l.ops {
		for _, q := range op.asked {
			deadline := q.request.Deadline
			if q.ends == 0 && op.outcome == "" && deadline != 0 && l.o.Now > deadline+grace {
				l.find("S2", string(q.request.ID), "its deadline is over and it has not ended")
			}
		}
	}
}

func (op *opFacts) yesTo(version events.Digest) int {
	n := 0
	for _, q := range op.asked {
		if q.yes && q.request.Version.Digest == version {
			n++
		}
	}
	return n
}
