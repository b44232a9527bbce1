package tracing

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/fermata-hitl/fermata/events"
)

// request frames the spans of one message. The resource says which store and
// which core's version, and nothing of the process that exports.
func (f *fold) request(spans []*tracepb.Span) *tracepb.TracesData {
	resource := attrs{text("service.name", "fermata"), text("service.instance.id", f.o.StoreID)}
	if f.o.Version != "" {
		resource = append(resource, text("service.version", f.o.Version))
	}
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: resource.sorted()},
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: "fermata"},
			Spans: spans,
		}},
	}}}
}

// span begins one of an operation's spans, under the operation's own. An end
// before its start, from a clock that was set back, is the start.
func (f *fold) span(op *operation, kind SpanKind, object events.ID, name string, start, end events.Micros) *tracepb.Span {
	traceID, spanID := op.origin.Trace(), op.origin.Span(kind, object)
	s := &tracepb.Span{
		TraceId: traceID[:], SpanId: spanID[:],
		Name: clip(name), Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanos(start), EndTimeUnixNano: nanos(max(start, end)),
		Flags: flagsLocal,
	}
	if kind != KindOperation {
		parent := op.origin.Span(KindOperation, op.origin.Operation)
		s.ParentSpanId = parent[:]
	}
	return s
}

// The flags of a span: sampled, and that it is known whether the parent is in
// another process.
const (
	flagsLocal  = 0x01 | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	flagsRemote = flagsLocal | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
)

// finish adds what every span says, and puts its attributes in order.
func (f *fold) finish(op *operation, s *tracepb.Span) *tracepb.Span {
	a := append(attrs(s.Attributes),
		text("fermata.schema", Schema),
		text("fermata.store.id", f.o.StoreID),
		text("session.id", string(op.origin.Session)),
		text("fermata.operation.id", string(op.origin.Operation)),
		text("fermata.operation.kind", string(op.proposed.Kind)),
	)
	if op.proposed.Kind == events.KindToolCall {
		a = append(a, text("gen_ai.tool.name", op.proposed.Tool.Name))
		if op.proposed.Tool.CallID != "" {
			a = append(a, text("gen_ai.tool.call.id", op.proposed.Tool.CallID))
		}
	}
	s.Attributes = a.sorted()
	return s
}

func (f *fold) hookSpan(op *operation, r run, e events.HookRan, now moment) *tracepb.Span {
	start, end := runInterval(r.at, now.at, e.Micros)
	s := f.span(op, KindHookRun, e.Run, "hook.run "+e.Hook.ID, start, end)
	a := append(hookAttributes(op, e.Hook, e.Script),
		text("fermata.hook.effect", string(e.Effect)),
		text("fermata.hook.outcome", string(e.Outcome)),
	)
	if e.FailedOpen {
		a = append(a, truth("fermata.hook.failed_open", true))
	}
	if r.Attempt > 0 {
		a = append(a, number("fermata.recheck.attempt", int64(r.Attempt)))
	}
	s.Attributes = append(a, proof(now)...)
	switch e.Outcome {
	case events.RunOK, events.RunAbandoned:
	default:
		fail(s, string(e.Outcome))
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

func (f *fold) commitSpan(op *operation, e events.OperationCommitted, now moment) *tracepb.Span {
	s := f.span(op, KindCommit, op.origin.Operation, "commit", now.at, now.at)
	s.Attributes = append(attrs{
		number("fermata.version.seq", int64(e.Version.N)),
		text("fermata.version.commit", f.o.Key.Version(e.Version.Digest)),
	}, proof(now)...)
	for _, q := range op.yes {
		if q.Version.Digest == e.Version.Digest {
			s.Links = append(s.Links, f.link(op, q.ID, "authorised_by"))
		}
	}
	return f.finish(op, s)
}

// operationSpan ends an operation; end is its commit, refusal or abort.
func (f *fold) operationSpan(op *operation, end events.Event, now moment) *tracepb.Span {
	s := f.span(op, KindOperation, op.origin.Operation, "fermata.operation", op.began, now.at)
	if parent := op.origin.Parent(); parent.IsValid() {
		s.ParentSpanId, s.Flags = parent[:], flagsRemote
	}
	outcome, by := op.decision(end)
	a := attrs{
		text("fermata.agent.name", string(op.proposed.Agent)),
		text("fermata.operation.outcome", outcome),
		text("fermata.operation.decided_by", by),
		text("fermata.config.digest", sha256Text(op.config)),
	}
	switch e := end.(type) {
	case events.OperationRefused:
		a = append(a, text("fermata.operation.code", string(e.Code)))
		if faulty(e.Code) {
			fail(s, string(e.Code))
		}
	case events.OperationAborted:
		a = append(a, text("fermata.operation.end_reason", string(e.Reason)))
	}
	s.Attributes = append(a, proof(now)...)
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

func hookAttributes(op *operation, h events.Hook, script events.Digest) attrs {
	if h.ID == "" {
		return nil // a question that no hook asked
	}
	event := events.UserPromptSubmit
	if op.proposed.Kind == events.KindToolCall {
		event = events.BeforeToolCall
	}
	a := attrs{
		text("fermata.hook.name", h.ID),
		text("fermata.hook.source", string(h.Scope)),
		text("fermata.hook.event", string(event)),
	}
	if script != "" {
		a = append(a, text("fermata.hook.digest", sha256Text(script)))
	}
	return a
}

func (f *fold) link(op *operation, question events.ID, kind string) *tracepb.Span_Link {
	traceID, spanID := op.origin.Trace(), op.origin.Span(KindWait, question)
	return &tracepb.Span_Link{
		TraceId: traceID[:], SpanId: spanID[:], Flags: flagsLocal,
		Attributes: attrs{text("fermata.link.kind", kind)},
	}
}

// proof leads from a span to the message that ended it.
func proof(now moment) attrs {
	return attrs{number("fermata.audit.seq", int64(now.seq)), text("fermata.audit.leaf", string(now.leaf))}
}

func fail(s *tracepb.Span, errorType string) {
	s.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
	s.Attributes = append(s.Attributes, text("error.type", errorType))
}

// into gives the events to the span, in order of time and inside its interval.
func (t *timeline) into(s *tracepb.Span) {
	for _, e := range t.entries {
		e.TimeUnixNano = min(max(e.TimeUnixNano, s.StartTimeUnixNano), s.EndTimeUnixNano)
	}
	slices.SortStableFunc(t.entries, func(a, b *tracepb.Span_Event) int {
		return cmp.Compare(a.TimeUnixNano, b.TimeUnixNano)
	})
	s.Events, s.DroppedEventsCount = t.entries, t.dropped
}

// attrs are a span's attributes.
type attrs []*commonpb.KeyValue

func (a attrs) sorted() []*commonpb.KeyValue {
	slices.SortFunc(a, func(x, y *commonpb.KeyValue) int { return strings.Compare(x.Key, y.Key) })
	return a
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{
		Value: &commonpb.AnyValue_StringValue{StringValue: clip(value)},
	}}
}

func number(key string, value int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}}
}

func float(key string, value float64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: value}}}
}

func truth(key string, value bool) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: value}}}
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
