package tracing

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/fermata-hitl/fermata/events"
)

// rules are the rules that were broken, each once.
func rules(r Report) []string {
	var broken []string
	for _, f := range r.Findings {
		broken = append(broken, f.Rule)
	}
	slices.Sort(broken)
	return slices.Compact(broken)
}

func TestVerifyFindsChangedSpans(t *testing.T) {
	w := newWriter(1)
	recheckedCall(w)
	wait := func(spans []Span) Span { return find(t, spans, "wait.hook_confirmation") }
	set := func(s Span, key, value string) {
		for _, kv := range s.Attributes {
			if kv.Key == key {
				kv.Value = otlpText(key, value).Value
			}
		}
	}
	for name, c := range map[string]struct {
		change func([]Span) []Span
		want   []string
	}{
		"nothing":        {func(s []Span) []Span { return s }, nil},
		"copy":           {func(s []Span) []Span { return append(s, s...) }, nil},
		"missing":        {func(s []Span) []Span { return s[1:] }, []string{"S3"}},
		"missing wait":   {func(s []Span) []Span { return slices.DeleteFunc(s, func(s Span) bool { return s.Seq() == 6 }) }, []string{"S3"}},
		"another id":     {func(s []Span) []Span { s[0].SpanId[0]++; return s }, []string{"S3"}},
		"other copy":     {otherCopy, []string{"S4"}},
		"other resource": {otherResource, []string{"S4"}},
		"start":          {func(s []Span) []Span { wait(s).StartTimeUnixNano++; return s }, []string{"S5"}},
		"end":            {func(s []Span) []Span { wait(s).EndTimeUnixNano--; return s }, []string{"S5"}},
		"trace":          {func(s []Span) []Span { wait(s).TraceId[0]++; return s }, []string{"S5"}},
		"result":         {func(s []Span) []Span { set(wait(s), "fermata.wait.result", "timed_out"); return s }, []string{"S5"}},
		"end reason":     {func(s []Span) []Span { set(wait(s), "fermata.wait.end_reason", "cancel"); return s }, []string{"S5"}},
		"version":        {func(s []Span) []Span { set(wait(s), "fermata.version.commit", "x"); return s }, []string{"S5"}},
		"outcome": {func(s []Span) []Span {
			set(find(t, s, "fermata.operation"), "fermata.operation.outcome", "refused")
			return s
		}, []string{"S5"}},
		"schema": {func(s []Span) []Span { set(wait(s), "fermata.schema", "99"); return s }, []string{"S6"}},
		"value": {func(s []Span) []Span {
			s[0].Attributes = append(s[0].Attributes, otlpText("fermata.reason.text", "x"))
			return s
		}, []string{"S6"}},
		"parent":    {func(s []Span) []Span { wait(s).ParentSpanId[0]++; return s }, []string{"S7"}},
		"orphan":    {func(s []Span) []Span { wait(s).ParentSpanId = nil; return s }, []string{"S7"}},
		"no answer": {func(s []Span) []Span { find(t, s, "commit").Links = nil; return s }, []string{"S7"}},
		"other answer": {func(s []Span) []Span {
			find(t, s, "commit").Links[0].SpanId[0]++
			return s
		}, []string{"S7"}},
		"foreign spans": {func(s []Span) []Span {
			return append(s, Span{Span: proto.CloneOf(find(t, project(t, syntheticLog(99, 1)), "fermata.operation").Span)})
		}, []string{"S3"}},
		"another store's": {func(s []Span) []Span {
			foreign := Span{Span: proto.CloneOf(s[0].Span)}
			set(foreign, "fermata.store.id", "another")
			return append(s, foreign)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			report := verify(t, w.records, each(c.change(project(t, w.records))))
			if diff := cmp.Diff(c.want, rules(report)); diff != "" {
				t.Errorf("rules (-want +got):\n%s%v", diff, report.Findings)
			}
		})
	}
}

func otlpText(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func otherCopy(spans []Span) []Span {
	second := Span{Resource: spans[0].Resource, Span: proto.CloneOf(spans[0].Span)}
	second.Name = "renamed"
	return append(spans, second)
}

func otherResource(spans []Span) []Span {
	return append(spans, Span{Resource: &resourcepb.Resource{}, Span: spans[0].Span})
}

func TestVerifyFindsABadLog(t *testing.T) {
	const q = events.ID("01m3250v00zx5e77vbph7vg000")
	request := events.Request{Gate: events.GateHook, ID: q, Version: version(0), Previous: -1, Deadline: 1_790_000_001_000_000}
	cancel := events.Response{Gate: events.GateHook, ID: q, Answer: events.AnswerCancel}
	timeout := events.Withdrawn{Gate: events.GateHook, ID: q, Result: events.ResultTimedOut, Reason: events.EndDeadline}
	refused := events.OperationRefused{Code: events.CodeDeclined}
	for name, c := range map[string]struct {
		events []events.Event
		want   []string
	}{
		"good":            {[]events.Event{request, cancel, refused}, nil},
		"open":            {[]events.Event{request}, []string{"S2"}}, // long over its deadline
		"asked twice":     {[]events.Event{request, request, cancel, refused}, []string{"S1"}},
		"ended twice":     {[]events.Event{request, cancel, timeout, refused}, []string{"S1"}},
		"never asked":     {[]events.Event{cancel, refused}, []string{"S1"}},
		"proposed twice":  {[]events.Event{request, proposal(), cancel, refused}, []string{"S1"}},
		"ended with none": {[]events.Event{request, refused}, []string{"S2"}},
		"wrong pair": {[]events.Event{request, events.Withdrawn{
			Gate: events.GateHook, ID: q, Result: events.ResultWithdrawn, Reason: events.EndDeadline,
		}, refused}, []string{"S6"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(1)
			w.put(w.id(), 0, nil, append([]events.Event{proposal()}, c.events...)...)
			o := options(nil)
			report, err := Verify(VerifyOptions{StoreID: o.StoreID, Key: o.Key, Now: w.now + events.Micros(time.Hour.Microseconds())},
				from(w.records, 1), each(project(t, w.records)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, rules(report)); diff != "" {
				t.Errorf("rules (-want +got):\n%s%v", diff, report.Findings)
			}
		})
	}
}

func TestVerifyThrough(t *testing.T) {
	records := syntheticLog(18, 50)
	half := records[len(records)/2].Seq
	o := options(nil)
	early := slices.DeleteFunc(project(t, records), func(s Span) bool { return s.Seq() > half })
	for through, want := range map[uint64][]string{half: nil, 0: {"S3"}} {
		report, err := Verify(VerifyOptions{StoreID: o.StoreID, Key: o.Key, Through: through}, from(records, 1), each(early))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, rules(report)); diff != "" {
			t.Errorf("through %d: rules (-want +got):\n%s", through, diff)
		}
	}
}

func TestVerifyCannotRead(t *testing.T) {
	errUnread := errors.New("unread")
	badLog := func(yield func(Record, error) bool) { yield(Record{}, errUnread) }
	badSpans := func(yield func(Span, error) bool) { yield(Span{}, errUnread) }
	if _, err := Verify(VerifyOptions{}, badLog, each(nil)); !errors.Is(err, errUnread) || !strings.Contains(err.Error(), "log") {
		t.Errorf("error %v", err)
	}
	if _, err := Verify(VerifyOptions{}, from(nil, 1), badSpans); !errors.Is(err, errUnread) {
		t.Errorf("error %v", err)
	}
}
