package tracing

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"

	"github.com/fermata-hitl/fermata/events"
)

// span is a finished span on its way to a line. OTLP has more fields; a field
// that is not here is one that no span of ours has.
type span struct {
	trace   trace.TraceID
	id      trace.SpanID
	parent  trace.SpanID // zero for none
	flags   uint32
	name    string
	start   uint64 // nanoseconds since 1970
	end     uint64
	attrs   attrs
	notes   []note
	dropped uint32 // notes that found no place
	links   []link
	failed  bool
}

// note is an event of a span, at nanoseconds since 1970.
type note struct {
	at    uint64
	name  string
	attrs attrs
}

// link leads to a wait of the same trace.
type link struct {
	span trace.SpanID
	kind string
}

// span begins one of an operation's spans, under the operation's own. An end
// before its start, from a clock that was set back, is the start.
func (f *fold) span(op *operation, kind SpanKind, object events.ID, name string, start, end events.Micros) *span {
	s := &span{
		trace: op.trace, id: op.origin.Span(kind, object),
		name: clip(name), start: nanos(start), end: nanos(max(start, end)),
		flags: flagsLocal, attrs: make(attrs, 0, attrsHint),
	}
	if kind != KindOperation {
		s.parent = op.root
	}
	return s
}

// attrsHint is how many attributes the richest of usual spans has.
const attrsHint = 32

// The flags of a span: sampled (0x001), and that it is known (0x100) whether
// the parent is in another process (0x200).
const (
	flagsLocal  = 0x001 | 0x100
	flagsRemote = flagsLocal | 0x200
)

// add gives a span attributes.
func (s *span) add(a ...attr) { s.attrs = append(s.attrs, a...) }

// addProof leads from a span to the message that ended it.
func (s *span) addProof(now moment) {
	s.add(number("fermata.audit.seq", int64(now.seq)), text("fermata.audit.leaf", string(now.leaf)))
}

// addHook says which hook a span is about, nothing for a question that no hook
// asked.
func (s *span) addHook(op *operation, h events.Hook, script events.Digest) {
	if h.ID == "" {
		return
	}
	event := events.UserPromptSubmit
	if op.proposed.Kind == events.KindToolCall {
		event = events.BeforeToolCall
	}
	s.add(
		text("fermata.hook.name", h.ID),
		text("fermata.hook.source", string(h.Scope)),
		text("fermata.hook.event", string(event)),
	)
	if script != "" {
		s.add(text("fermata.hook.digest", sha256Text(script)))
	}
}

func (s *span) fail(errorType string) {
	s.failed = true
	s.add(text("error.type", errorType))
}

// finish adds what every span says, and puts its attributes in order.
func (f *fold) finish(op *operation, s *span) *span {
	s.add(
		text("fermata.schema", Schema),
		text("fermata.store.id", f.o.StoreID),
		text("session.id", string(op.origin.Session)),
		text("fermata.operation.id", string(op.origin.Operation)),
		text("fermata.operation.kind", string(op.proposed.Kind)),
	)
	if op.proposed.Kind == events.KindToolCall {
		s.add(text("gen_ai.tool.name", op.proposed.Tool.Name))
		if op.proposed.Tool.CallID != "" {
			s.add(text("gen_ai.tool.call.id", op.proposed.Tool.CallID))
		}
	}
	s.attrs.sort()
	return s
}

func (f *fold) hookSpan(op *operation, r run, e events.HookRan, now moment) *span {
	start, end := runInterval(r.at, now.at, e.Micros)
	s := f.span(op, KindHookRun, e.Run, "hook.run "+e.Hook.ID, start, end)
	s.addHook(op, e.Hook, e.Script)
	s.add(text("fermata.hook.effect", string(e.Effect)), text("fermata.hook.outcome", string(e.Outcome)))
	if e.FailedOpen {
		s.add(truth("fermata.hook.failed_open", true))
	}
	if r.Attempt > 0 {
		s.add(number("fermata.recheck.attempt", int64(r.Attempt)))
	}
	s.addProof(now)
	switch e.Outcome {
	case events.RunOK, events.RunAbandoned:
	default:
		s.fail(string(e.Outcome))
	}
	return f.finish(op, s)
}

// runInterval is when a hook's process lived: it ended when the log says, and
// its own clock says for how long, never longer than the log allows. So a run
// ends where the wait that it asked for begins.
func runInterval(started, ran events.Micros, micros int64) (start, end events.Micros) {
	end = max(started, ran)
	if micros > 0 {
		return max(started, end-events.Micros(micros)), end
	}
	return started, end
}

func (f *fold) commitSpan(op *operation, e events.OperationCommitted, now moment) *span {
	s := f.span(op, KindCommit, op.origin.Operation, "commit", now.at, now.at)
	s.add(
		number("fermata.version.seq", int64(e.Version.N)),
		text("fermata.version.commit", op.commitment(f.o.Key, e.Version.Digest)),
	)
	s.addProof(now)
	for _, q := range op.yes {
		if q.Version.Digest == e.Version.Digest {
			s.links = append(s.links, link{op.origin.Span(KindWait, q.ID), "authorised_by"})
		}
	}
	return f.finish(op, s)
}

// operationSpan ends an operation; end is its commit, refusal or abort.
func (f *fold) operationSpan(op *operation, end events.Event, now moment) *span {
	s := f.span(op, KindOperation, op.origin.Operation, "fermata.operation", op.began, now.at)
	if parent := op.origin.Parent(); parent.IsValid() {
		s.parent, s.flags = parent, flagsRemote
	}
	outcome, by := op.decision(end)
	s.add(
		text("fermata.agent.name", string(op.proposed.Agent)),
		text("fermata.operation.outcome", outcome),
		text("fermata.operation.decided_by", by),
		text("fermata.config.digest", sha256Text(op.config)),
	)
	switch e := end.(type) {
	case events.OperationRefused:
		s.add(text("fermata.operation.code", string(e.Code)))
		s.failed = faulty(e.Code)
	case events.OperationAborted:
		s.add(text("fermata.operation.end_reason", string(e.Reason)))
	}
	s.addProof(now)
	op.notes.into(s)
	return f.finish(op, s)
}

// decision says what became of an operation and who decided it. A person
// decided a commit only if they said yes to the version that was committed.
func (op *operation) decision(end events.Event) (outcome, by string) {
	switch e := end.(type) {
	case events.OperationCommitted:
		saidYes := func(q events.Request) bool { return q.Version.Digest == e.Version.Digest }
		switch {
		case slices.ContainsFunc(op.yes, saidYes):
			return "committed", "human"
		case op.hooked:
			return "committed", "hook"
		}
		return "committed", "system"
	case events.OperationRefused:
		return "refused", refusedBy(e.Code)
	}
	return "aborted", "system"
}

func refusedBy(c events.Code) string {
	switch c {
	case events.CodeDeclined:
		return "human"
	case events.CodeTimedOut:
		return "timeout"
	case events.CodeBlocked, events.CodeHookFailed, events.CodeHookTimedOut, events.CodeHookMissing,
		events.CodeHookBadVerdict, events.CodeRecheckLimit, events.CodeRecheckCycle:
		return "hook"
	}
	return "system"
}

// faulty: refused because something did not work or nobody answered, not
// because a person or a rule said no.
func faulty(c events.Code) bool {
	switch c {
	case events.CodeTimedOut, events.CodeUnavailable, events.CodeHookFailed, events.CodeHookTimedOut,
		events.CodeHookMissing, events.CodeHookBadVerdict, events.CodeHooksConfigInvalid,
		events.CodeLogUnavailable, events.CodeCoreUnreachable:
		return true
	}
	return false
}

// into gives the notes to the span, in order of time and inside its interval.
func (t *timeline) into(s *span) {
	for i := range t.entries {
		t.entries[i].at = min(max(t.entries[i].at, s.start), s.end)
	}
	slices.SortStableFunc(t.entries, func(a, b note) int { return cmp.Compare(a.at, b.at) })
	s.notes, s.dropped = t.entries, t.dropped
}

// attrs are a span's attributes.
type attrs []attr

// attr is one attribute. Its value is the text or the number, as kind says. The
// key is one of this program's own, which JSON takes as they are.
type attr struct {
	key    string
	text   string
	number int64
	kind   valueKind
}

type valueKind uint8

const (
	isText valueKind = iota
	isNumber
	isSeconds // a number with a fraction; number is in microseconds
	isTruth   // number is 0 or 1
)

func (a attrs) sort() {
	slices.SortFunc(a, func(x, y attr) int { return strings.Compare(x.key, y.key) })
}

func text(key, value string) attr { return attr{key: key, text: clip(value)} }

func number(key string, value int64) attr { return attr{key: key, number: value, kind: isNumber} }

func seconds(key string, m events.Micros) attr {
	return attr{key: key, number: int64(m), kind: isSeconds}
}

func truth(key string, value bool) attr {
	a := attr{key: key, kind: isTruth}
	if value {
		a.number = 1
	}
	return a
}

func sha256Text(d events.Digest) string {
	if d == "" {
		return ""
	}
	return "sha256:" + string(d)
}

// textLimit bounds a text that an agent or a configuration chose, in bytes.
const textLimit = 1024

// clip makes a text fit for OTLP: valid UTF-8 of bounded length.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= textLimit {
		return s
	}
	cut := textLimit
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func nanos(m events.Micros) uint64 { return uint64(max(m, 0)) * 1000 }
