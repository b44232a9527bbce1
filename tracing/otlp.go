package tracing

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// encodeLine writes one export request as OTLP JSON on one line, without the
// line's end. The same request always gives the same bytes.
//
// OTLP JSON is protobuf's JSON except that enums are numbers and ids are
// hexadecimal instead of base64. Hexadecimal digits are base64 digits too: ids
// whose bytes are what their hexadecimal text decodes to as base64 come out as
// that text.
func encodeLine(d *tracepb.TracesData) ([]byte, error) {
	d = proto.Clone(d).(*tracepb.TracesData)
	if err := eachID(d, func(id []byte, _ int) ([]byte, error) {
		return base64.StdEncoding.DecodeString(hex.EncodeToString(id))
	}); err != nil {
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	b, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	var line bytes.Buffer // protojson varies its spaces on purpose
	if err := json.Compact(&line, b); err != nil {
		return nil, fmt.Errorf("encode spans: %w", err)
	}
	return line.Bytes(), nil
}

// decodeLine reads a line of OTLP JSON. Fields that it does not know are
// ignored, ids of a wrong length are not.
func decodeLine(line []byte) (*tracepb.TracesData, error) {
	var d tracepb.TracesData
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(line, &d); err != nil {
		return nil, fmt.Errorf("not OTLP JSON: %w", err)
	}
	err := eachID(&d, func(id []byte, size int) ([]byte, error) {
		b, err := hex.DecodeString(base64.StdEncoding.EncodeToString(id))
		if err == nil && len(b) != size {
			err = fmt.Errorf("%d bytes", len(b))
		}
		if err != nil {
			return nil, fmt.Errorf("an id is not %d bytes in hexadecimal: %w", size, err)
		}
		return b, nil
	})
	if err != nil {
		return nil, fmt.Errorf("not OTLP JSON: %w", err)
	}
	return &d, nil
}

// eachID replaces every id of the request; size is what OTLP wants. A parent's
// id may be absent.
func eachID(d *tracepb.TracesData, replace func(id []byte, size int) ([]byte, error)) error {
	const traceSize, spanSize = 16, 8
	var failed error
	set := func(id *[]byte, size int) {
		b, err := replace(*id, size)
		if err != nil && failed == nil {
			failed = err
		}
		*id = b
	}
	for _, s := range spansIn(d) {
		set(&s.TraceId, traceSize)
		set(&s.SpanId, spanSize)
		if len(s.ParentSpanId) > 0 {
			set(&s.ParentSpanId, spanSize)
		}
		for _, l := range s.Links {
			set(&l.TraceId, traceSize)
			set(&l.SpanId, spanSize)
		}
	}
	return failed
}
