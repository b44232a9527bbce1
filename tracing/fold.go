package tracing

import (
	"bytes"
	"container/list"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-hitl/fermata/events"
)

// fold holds the open operations, and of each what its spans will need. An
// operation leaves with its end: its span, and those of all that ended with it.
type fold struct {
	o     Options
	open  map[events.ID]*list.Element
	order *list.List // of *operation, in the order in which they began
	head  []byte     // of every line
	line  []byte     // where the next line is made
}

// operation is the fold of one operation's messages.
type operation struct {
	first     uint64 // sequence of its first message
	began     events.Micros
	origin    Origin
	trace     trace.TraceID // of all its spans
	root      trace.SpanID  // its own span
	asker     string        // principal of the proposal
	proposed  events.OperationProposed
	config    events.Digest
	runs      map[events.ID]run
	questions map[events.ID]*question // the open ones
	lastRan   events.HookRan
	hooked    bool // a hook ran to its end
	yes       []events.Request
	notes     timeline
	spoken    spoken
}

// spoken is the version that was last committed to: most spans of an operation
// speak of the same one.
type spoken struct {
	of         events.Digest
	commitment string
}

// run is a hook's process that has not ended.
type run struct {
	events.HookStarted
	at events.Micros
}

// moment is the message that is being folded, as far as its spans show it.
type moment struct {
	at   events.Micros
	seq  uint64
	leaf events.Digest
}

func newFold(o Options) *fold {
	return &fold{o: o, open: map[events.ID]*list.Element{}, order: list.New(), head: lineHead(o)}
}

// low is the first message of the oldest open operation, the one behind seq
// when none is open.
func (f *fold) low(seq uint64) uint64 {
	if oldest := f.order.Front(); oldest != nil {
		return oldest.Value.(*operation).first
	}
	return seq + 1
}

// record folds one message and returns the line of the spans that it ended, nil
// when it ended none.
func (f *fold) record(r Record) ([]byte, error) {
	m, err := read(r, events.DecodeEnvelope) // no span says what a body holds
	if m == nil || err != nil {
		return nil, err
	}
	now := moment{at: m.At, seq: r.Seq, leaf: Leaf(r.Seq, r.Subject, m.Hash)}
	var spans []*span
	for _, e := range m.Events {
		if p, ok := e.(events.OperationProposed); ok {
			f.begin(m, p)
			continue
		}
		el, ok := f.open[m.Operation]
		if !ok {
			continue // a record that trails an ended operation
		}
		ended, over := f.event(el.Value.(*operation), e, now)
		spans = append(spans, ended...)
		if over {
			f.order.Remove(el)
			delete(f.open, m.Operation)
		}
	}
	if len(spans) == 0 {
		return nil, nil
	}
	f.line = appendLine(f.line[:0], f.head, spans)
	return bytes.Clone(f.line), nil
}

func (f *fold) begin(m *events.Message, p events.OperationProposed) {
	if _, ok := f.open[m.Operation]; ok {
		return // proposed once only; S1 of the verifier reports a second one
	}
	op := &operation{
		first: m.Seq, began: m.At, asker: m.Principal, proposed: p, config: p.Config,
		origin: Origin{
			StoreID: f.o.StoreID, Session: m.Session, Operation: m.Operation,
			Turn: m.Turn, Traceparent: m.Traceparent,
		},
		runs: map[events.ID]run{}, questions: map[events.ID]*question{},
	}
	op.trace, op.root = op.origin.Trace(), op.origin.Span(KindOperation, m.Operation)
	f.open[m.Operation] = f.order.PushBack(op)
}

// event folds one event of an open operation. over says that the operation
// has ended.
func (f *fold) event(op *operation, e events.Event, now moment) (ended []*span, over bool) {
	switch e := e.(type) {
	case events.HookStarted:
		op.runs[e.Run] = run{HookStarted: e, at: now.at}
	case events.HookRan:
		if r, ok := op.runs[e.Run]; ok {
			delete(op.runs, e.Run)
			op.lastRan, op.hooked = e, true
			ended = append(ended, f.hookSpan(op, r, e, now))
		}
	case events.ArgumentsChanged:
		op.notes.add(now.at, "fermata.operation.arguments_changed", attrs{
			text("fermata.cause", string(e.Cause)),
			number("fermata.version.seq", int64(e.To.N)),
			text("fermata.version.commit", op.commitment(f.o.Key, e.To.Digest)),
		})
	case events.RecheckStarted:
		op.config = e.Config
		op.notes.add(now.at, "fermata.operation.recheck_started", attrs{
			text("fermata.cause", string(e.Cause)),
			number("fermata.recheck.attempt", int64(e.Attempt)),
		})
	case events.Request, events.Presented, events.Claimed, events.Released, events.AnswerRejected:
		f.step(op, e, now)
	case events.Response:
		ended = f.endWait(op, e.ID, events.ResultAnswered, e.Answer.EndReason(), &e, now)
	case events.Withdrawn:
		ended = f.endWait(op, e.ID, e.Result, e.Reason, nil, now)
	case events.OperationCommitted:
		ended = append(f.abandon(op, now), f.commitSpan(op, e, now), f.operationSpan(op, e, now))
		over = true
	case events.OperationRefused:
		op.noteBound(e.Code, now)
		ended = append(f.abandon(op, now), f.operationSpan(op, e, now))
		over = true
	case events.OperationAborted:
		ended = append(f.abandon(op, now), f.operationSpan(op, e, now))
		over = true
	case events.OperationProposed, events.OperationChecked, events.OperationDelivered, events.OperationFinished,
		events.Genesis, events.SessionOpened, events.SessionClosed, events.TurnStarted, events.TurnEnded,
		events.Interrupted, events.BuildChanged:
		// these end no span and tell none of them anything
	}
	return ended, over
}

// commitment is what the spans say instead of a version's digest.
func (op *operation) commitment(k Key, d events.Digest) string {
	if op.spoken.commitment == "" || op.spoken.of != d {
		op.spoken = spoken{d, k.Version(d)}
	}
	return op.spoken.commitment
}

// abandon closes the runs that an operation leaves behind when it ends: their
// processes are being stopped, and nothing that they still say has an effect.
func (f *fold) abandon(op *operation, now moment) []*span {
	var spans []*span
	for _, r := range slices.SortedFunc(maps.Values(op.runs), func(a, b run) int {
		return strings.Compare(string(a.Run), string(b.Run))
	}) {
		spans = append(spans, f.hookSpan(op, r, events.HookRan{
			Run: r.Run, Hook: r.Hook, Effect: events.EffectError, Outcome: events.RunAbandoned,
		}, now))
	}
	return spans
}

// noteBound marks an operation whose arguments would not come to rest.
func (op *operation) noteBound(code events.Code, now moment) {
	switch code {
	case events.CodeRecheckCycle:
		op.notes.add(now.at, "fermata.operation.cycle_detected", nil)
	case events.CodeRecheckLimit:
		op.notes.add(now.at, "fermata.operation.recheck_limit", nil)
	}
}
