package tracing

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// decodeLine reads a line of OTLP JSON. Fields that it does not know are
// ignored, ids of a wrong length are not.
//
// OTLP JSON is protobuf's JSON except that enums are numbers and ids are
// hexadecimal instead of base64. Hexadecimal digits are base64 digits too: an
// id is what its hexadecimal text was before protobuf decoded it as base64.
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
