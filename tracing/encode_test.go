package tracing

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

// protobufLine writes a request as OTLP JSON with protobuf's own encoder: what
// our writer is held to. Ids go the way back that [decodeLine] tells of.
func protobufLine(d *tracepb.TracesData) ([]byte, error) {
	d = proto.CloneOf(d)
	if err := eachID(d, func(id []byte, _ int) ([]byte, error) {
		return base64.StdEncoding.DecodeString(hex.EncodeToString(id))
	}); err != nil {
		return nil, err
	}
	b, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(d)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer // protojson varies its spaces on purpose
	err = json.Compact(&line, b)
	return line.Bytes(), err
}

// checkLine holds a line to OTLP: protobuf knows every field of it, and writes
// what it has read as the same bytes.
func checkLine(t interface{ Fatalf(string, ...any) }, line []byte) *tracepb.TracesData {
	var strict tracepb.TracesData
	if err := protojson.Unmarshal(line, &strict); err != nil {
		t.Fatalf("not OTLP JSON: %v\n%s", err, line)
	}
	d, err := decodeLine(line)
	if err != nil {
		t.Fatalf("%v\n%s", err, line)
	}
	again, err := protobufLine(d)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !bytes.Equal(line, again) {
		t.Fatalf("protobuf writes other bytes:\n%s\nours:\n%s", again, line)
	}
	return d
}

// TestLinesAreOTLP: every line of whole logs.
func TestLinesAreOTLP(t *testing.T) {
	w := newWriter(1)
	recheckedCall(w)
	for _, records := range [][]Record{w.records, syntheticLog(19, 300)} {
		for line := range bytes.Lines(lines(t, records)) {
			checkLine(t, bytes.TrimSuffix(line, []byte("\n")))
		}
	}
}

// TestAnySpanIsOTLP: whatever a span can hold, every field of it arrives.
func TestAnySpanIsOTLP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.SliceOfN(rapid.Custom(anySpan), 1, 3).Draw(t, "spans")
		o := Options{StoreID: anyText(t), Version: anyText(t)}
		d := checkLine(t, appendLine(nil, lineHead(o), spans))
		got := spansIn(d)
		if len(got) != len(spans) {
			t.Fatalf("%d spans, want %d", len(got), len(spans))
		}
		for i, s := range spans {
			if want := asProtobuf(s); !proto.Equal(got[i].Span, want) {
				t.Fatalf("span %v\nwant %v", got[i].Span, want)
			}
		}
	})
}

// anyText is a text as it comes from outside, clipped.
func anyText(t *rapid.T) string {
	return clip(rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("\x00\x01\b\t\n\f\r\x1f \"\\/<>&\x7f\u2028\ufffdé猫"))),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text"))
}

func anyAttrs(t *rapid.T) attrs {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) attr {
		const key = "fermata.key"
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return number(key, rapid.Int64().Draw(t, "number"))
		case 1:
			return seconds(key, events.Micros(rapid.Int64Min(0).Draw(t, "micros")))
		case 2:
			return truth(key, rapid.Bool().Draw(t, "truth"))
		}
		return text(key, anyText(t))
	}), 1, 4).Draw(t, "attributes")
}

func anySpan(t *rapid.T) *span {
	s := &span{
		name: "x" + anyText(t), flags: rapid.SampledFrom([]uint32{flagsLocal, flagsRemote}).Draw(t, "flags"),
		start: rapid.Uint64().Draw(t, "start"), end: rapid.Uint64().Draw(t, "end"),
		attrs: anyAttrs(t), dropped: rapid.Uint32().Draw(t, "dropped"), failed: rapid.Bool().Draw(t, "failed"),
	}
	id := func(b []byte) { copy(b, rapid.SliceOfN(rapid.Byte(), len(b), len(b)).Draw(t, "id")) }
	id(s.trace[:])
	id(s.id[:])
	if rapid.Bool().Draw(t, "child") {
		id(s.parent[:])
	}
	for range rapid.IntRange(0, 3).Draw(t, "notes") {
		n := note{at: rapid.Uint64Range(0, 2).Draw(t, "at"), name: "x" + anyText(t)}
		if rapid.Bool().Draw(t, "said") {
			n.attrs = anyAttrs(t)
		}
		s.notes = append(s.notes, n)
	}
	for range rapid.IntRange(0, 3).Draw(t, "links") {
		l := link{kind: "authorised_by"}
		id(l.span[:])
		s.links = append(s.links, l)
	}
	return s
}

// asProtobuf is the same span in the types of OTLP.
func asProtobuf(s *span) *tracepb.Span {
	p := &tracepb.Span{
		TraceId: s.trace[:], SpanId: s.id[:], Flags: s.flags, Name: s.name, Kind: tracepb.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: s.start, EndTimeUnixNano: s.end, Attributes: s.attrs.asProtobuf(), DroppedEventsCount: s.dropped,
	}
	if s.parent.IsValid() {
		p.ParentSpanId = s.parent[:]
	}
	if s.failed {
		p.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR}
	}
	for _, n := range s.notes {
		p.Events = append(p.Events, &tracepb.Span_Event{TimeUnixNano: n.at, Name: n.name, Attributes: n.attrs.asProtobuf()})
	}
	for _, l := range s.links {
		p.Links = append(p.Links, &tracepb.Span_Link{
			TraceId: s.trace[:], SpanId: l.span[:], Attributes: attrs{text("fermata.link.kind", l.kind)}.asProtobuf(),
			Flags: uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK) | 1,
		})
	}
	return p
}

func (a attrs) asProtobuf() (all []*commonpb.KeyValue) {
	for _, kv := range a {
		p := &commonpb.KeyValue{Key: kv.key, Value: &commonpb.AnyValue{}}
		switch kv.kind {
		case isNumber:
			p.Value.Value = &commonpb.AnyValue_IntValue{IntValue: kv.number}
		case isSeconds:
			p.Value.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: float64(kv.number) / 1e6}
		case isTruth:
			p.Value.Value = &commonpb.AnyValue_BoolValue{BoolValue: kv.number == 1}
		default:
			p = otlpText(kv.key, kv.text)
		}
		all = append(all, p)
	}
	return all
}
