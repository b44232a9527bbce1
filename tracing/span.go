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

// span begins one of the spans of a scope. An end before its start, from a
// clock that was set back, is the start.
func (sc scope) span(kind SpanKind, object events.ID, name string, start, end events.Micros) *span {
	return &span{
		trace: sc.trace, id: sc.origin.Span(kind, object), parent: sc.above, flags: sc.flags,
		name: clip(name), start: nanos(start), end: nanos(max(start, end)), attrs: make(attrs, 0, attrsHint),
	}
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
// asked. Event is "" at a gate.
func (s *span) addHook(sc scope, h events.Hook, event events.HookEvent, script events.Digest) {
	if h.ID == "" {
		return
	}
	s.add(text("fermata.hook.name", h.ID), text("fermata.hook.source", string(h.Scope)))
	if event == "" {
		event = sc.gate()
	}
	if event != "" {
		s.add(text("fermata.hook.event", string(event)))
	}
	if script != "" {
		s.add(text("fermata.hook.digest", sha256Text(script)))
	}
}

// gate is the event of hooks that an operation stands before, "" when it is not
// known.
func (sc scope) gate() events.HookEvent {
	switch sc.kind {
	case "":
		return ""
	case events.KindToolCall:
		return events.BeforeToolCall
	}
	return events.UserPromptSubmit
}

func (s *span) fail(errorType string) {
	s.failed = true
	s.add(text("error.type", errorType))
}

// finish adds what every span says, and puts its attributes in order.
func (sc scope) finish(s *span) *span {
	s.add(
		text("fermata.schema", Schema),
		text("fermata.store.id", sc.origin.StoreID),
		text("session.id", string(sc.origin.Session)),
	)
	if sc.origin.Operation != "" {
		s.add(text("fermata.operation.id", string(sc.origin.Operation)))
	}
	if sc.kind != "" {
		s.add(text("fermata.operation.kind", string(sc.kind)))
	}
	if sc.tool.Name != "" {
		s.add(text("gen_ai.tool.name", sc.tool.Name))
	}
	if sc.tool.CallID != "" {
		s.add(text("gen_ai.tool.call.id", sc.tool.CallID))
	}
	s.attrs.sort()
	return s
}

func (f *fold) commitSpan(op *operation, e events.OperationCommitted, now moment) *span {
	s := op.span(KindCommit, op.origin.Operation, "commit", now.at, now.at)
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
	return op.finish(s)
}

// operationSpan ends an operation; end is its commit, refusal or abort.
func (f *fold) operationSpan(op *operation, end events.Event, now moment) *span {
	op.ended = now.seq
	s := op.span(KindOperation, op.origin.Operation, "fermata.operation", op.began, now.at)
	if s.parent = op.origin.Parent(); s.parent.IsValid() {
		s.flags = flagsRemote
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
	return op.finish(s)
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
