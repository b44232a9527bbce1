package tracing

import (
	"bytes"
	"container/list"

	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-hitl/fermata/events"
)

// fold holds the open operations and what their spans will need, and the runs
// that stand for themselves (runs.go). An operation's span is made at its end;
// it stays until the runs that outlive it have ended too.
type fold struct {
	o     Options
	open  map[events.ID]*list.Element // operations
	late  map[events.ID]*list.Element // runs that belong to no open operation
	order *list.List                  // of opening, in the order in which they began
	head  []byte                      // of every line
	line  []byte                      // where the next line is made
}

// opening is what a projection must begin with to have it whole.
type opening interface {
	firstSeq() uint64 // of its first message
}

// scope says where spans belong and what they are about.
type scope struct {
	origin Origin
	trace  trace.TraceID
	above  trace.SpanID // their parent, zero for none
	flags  uint32
	kind   events.Kind // "" when the operation's beginning is not at hand
	tool   events.Tool
}

// operation is the fold of one operation's messages.
type operation struct {
	scope
	first     uint64 // sequence of its first message
	ended     uint64 // sequence of the message that ended it, 0 while it is open
	began     events.Micros
	asker     string // principal of the proposal
	proposed  events.OperationProposed
	config    events.Digest
	runs      map[events.ID]*run
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

// moment is the message that is being folded, as far as its spans show it.
type moment struct {
	at   events.Micros
	seq  uint64
	leaf events.Digest
}

func newFold(o Options) *fold {
	return &fold{
		o: o, open: map[events.ID]*list.Element{}, late: map[events.ID]*list.Element{}, order: list.New(), head: lineHead(o),
	}
}

// low is the first message of the oldest thing that is open, the one behind seq
// when nothing is.
func (f *fold) low(seq uint64) uint64 {
	if oldest := f.order.Front(); oldest != nil {
		return oldest.Value.(opening).firstSeq()
	}
	return seq + 1
}

func (op *operation) firstSeq() uint64 { return op.first }

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
		spans = append(spans, f.take(m, e, now)...)
	}
	f.leave(m.Operation)
	if len(spans) == 0 {
		return nil, nil
	}
	f.line = appendLine(f.line[:0], f.head, spans)
	return bytes.Clone(f.line), nil
}

// take folds one event of a message and returns the spans that it ended.
func (f *fold) take(m *events.Message, e events.Event, now moment) []*span {
	op := f.operation(m.Operation)
	switch e := e.(type) {
	case events.OperationProposed:
		f.begin(m, e)
		return nil
	case events.HookStarted:
		return f.startRun(op, m, e, now)
	case events.HookRan:
		return f.endRun(op, e, now)
	}
	if op == nil || op.ended != 0 {
		return nil // a record that trails an ended operation, or is about none
	}
	return f.event(op, e, now)
}

// operation is the one with an id, nil when it is not in the fold.
func (f *fold) operation(id events.ID) *operation {
	if el, ok := f.open[id]; ok {
		return el.Value.(*operation)
	}
	return nil
}

// leave lets an operation go that has ended and whose runs have.
func (f *fold) leave(id events.ID) {
	el, ok := f.open[id]
	if !ok {
		return
	}
	if op := el.Value.(*operation); op.ended != 0 && len(op.runs) == 0 {
		f.order.Remove(el)
		delete(f.open, id)
	}
}

func (f *fold) begin(m *events.Message, p events.OperationProposed) {
	if _, ok := f.open[m.Operation]; ok {
		return // proposed once only; S1 of the verifier reports a second one
	}
	op := &operation{
		scope: f.scopeOf(m), first: m.Seq, began: m.At, asker: m.Principal, proposed: p, config: p.Config,
		runs: map[events.ID]*run{}, questions: map[events.ID]*question{},
	}
	op.kind, op.tool = p.Kind, p.Tool
	f.open[m.Operation] = f.order.PushBack(op)
}

// scopeOf is where spans of a message belong, by the message alone.
func (f *fold) scopeOf(m *events.Message) scope {
	o := originOf(f.o.StoreID, m)
	s := scope{origin: o, trace: o.Trace(), above: o.above(), flags: flagsLocal}
	if o.Operation == "" && s.above.IsValid() {
		s.flags = flagsRemote
	}
	return s
}

// event folds one event of an open operation that is not about a run.
func (f *fold) event(op *operation, e events.Event, now moment) (ended []*span) {
	switch e := e.(type) {
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
	case events.OperationRefused:
		op.noteBound(e.Code, now)
		ended = append(f.abandon(op, now), f.operationSpan(op, e, now))
	case events.OperationAborted:
		ended = append(f.abandon(op, now), f.operationSpan(op, e, now))
	case events.OperationProposed, events.HookStarted, events.HookRan:
		// these have been taken
	case events.OperationChecked, events.OperationDelivered, events.OperationFinished, events.Genesis,
		events.SessionOpened, events.SessionClosed, events.TurnStarted, events.TurnEnded, events.Interrupted,
		events.BuildChanged:
		// these end no span and tell none of them anything
	}
	return ended
}

// commitment is what the spans say instead of a version's digest.
func (op *operation) commitment(k Key, d events.Digest) string {
	if op.spoken.commitment == "" || op.spoken.of != d {
		op.spoken = spoken{d, k.Version(d)}
	}
	return op.spoken.commitment
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
