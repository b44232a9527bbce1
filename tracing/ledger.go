package tracing

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-hitl/fermata/events"
)

// ledger is the verifier's fold: what the log says of each thing that ended.
type ledger struct {
	o         VerifyOptions
	ops       map[events.ID]*opFacts
	questions map[events.ID]*questionFacts
	want      map[trace.SpanID]want
	findings  []Finding
}

// want is the span that something in the log must have. Result is set for
// questions only, outcome for operations, version for questions and commits;
// yes counts the answers that authorise a commit.
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
	version events.Digest
	yes     int
}

type opFacts struct {
	origin  Origin
	began   events.Micros
	runs    map[events.ID]events.Micros // started, not ended
	asked   []*questionFacts
	outcome string // "" while it is open
}

type questionFacts struct {
	request events.Request
	asked   events.Micros
	ends    int
	yes     bool
}

func newLedger(o VerifyOptions) *ledger {
	return &ledger{
		o: o, ops: map[events.ID]*opFacts{}, questions: map[events.ID]*questionFacts{}, want: map[trace.SpanID]want{},
	}
}

func (l *ledger) record(r Record) error {
	m, err := read(r, events.DecodeMessage)
	if m == nil || err != nil {
		return err
	}
	for _, e := range m.Events {
		if p, ok := e.(events.OperationProposed); ok {
			l.propose(m, p)
			continue
		}
		if op, ok := l.ops[m.Operation]; ok {
			l.event(op, e, m)
		}
	}
	return nil
}

func (l *ledger) propose(m *events.Message, _ events.OperationProposed) {
	if _, ok := l.ops[m.Operation]; ok {
		l.find("S1", string(m.Operation), "proposed twice")
		return
	}
	l.ops[m.Operation] = &opFacts{
		began: m.At, runs: map[events.ID]events.Micros{},
		origin: Origin{
			StoreID: l.o.StoreID, Session: m.Session, Operation: m.Operation,
			Turn: m.Turn, Traceparent: m.Traceparent,
		},
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
	case events.HookStarted:
		op.runs[e.Run] = m.At
	case events.HookRan:
		l.ranHook(op, e, m)
	case events.OperationCommitted:
		if op.outcome == "" {
			l.expect(op, KindCommit, op.origin.Operation, want{
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
		l.expect(op, KindWait, id, want{
			what: "question", start: q.asked, end: m.At, seq: m.Seq,
			result: result, reason: reason, version: q.request.Version.Digest,
		})
	}
}

func (l *ledger) ranHook(op *opFacts, e events.HookRan, m *events.Message) {
	started, ok := op.runs[e.Run]
	if !ok {
		return
	}
	delete(op.runs, e.Run)
	start, end := runInterval(started, m.At, e.Micros)
	l.expect(op, KindHookRun, e.Run, want{what: "hook run", start: start, end: end, seq: m.Seq})
}

// finish ends an operation, once; what comes later of it has no span.
func (l *ledger) finish(op *opFacts, outcome string, m *events.Message) {
	if op.outcome != "" {
		return
	}
	for run, started := range op.runs {
		l.expect(op, KindHookRun, run, want{what: "hook run", start: started, end: m.At, seq: m.Seq})
	}
	clear(op.runs)
	op.outcome = outcome
	l.expect(op, KindOperation, op.origin.Operation, want{
		what: "operation", start: op.began, end: m.At, seq: m.Seq, outcome: outcome,
	})
	for _, q := range op.asked {
		if q.ends == 0 {
			l.find("S2", string(q.request.ID), "its operation has ended and it has not")
		}
	}
}

func (l *ledger) expect(op *opFacts, kind SpanKind, object events.ID, w want) {
	w.object, w.trace = string(object), op.origin.Trace()
	w.parent = op.origin.Span(KindOperation, op.origin.Operation)
	if kind == KindOperation {
		w.parent = op.origin.Parent()
	}
	l.want[op.origin.Span(kind, object)] = w
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
