package tracing

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Span is one finished span, with the resource that it was written under.
type Span struct {
	Resource *resourcepb.Resource
	*tracepb.Span
}

// Text is the value of an attribute that is a text, "" when it is absent or
// something else.
func (s Span) Text(key string) string { return valueOf(s.Attributes, key).GetStringValue() }

// Number is the value of an attribute that is a whole number, 0 when it is
// absent or something else.
func (s Span) Number(key string) int64 { return valueOf(s.Attributes, key).GetIntValue() }

// Seq is the sequence of the message that ended the span, 0 when the span does
// not say.
func (s Span) Seq() uint64 { return uint64(max(s.Number("fermata.audit.seq"), 0)) }

func valueOf(a []*commonpb.KeyValue, key string) *commonpb.AnyValue {
	for _, kv := range a {
		if kv.GetKey() == key {
			return kv.GetValue()
		}
	}
	return nil
}

// lineLimit is the longest line that is read, in bytes.
const lineLimit = 16 << 20

// ReadFile reads the spans of a file of OTLP JSON lines: a [FileSink]'s, or
// what a collector's file exporter wrote. It stops at the first error.
func ReadFile(path string) iter.Seq2[Span, error] {
	return func(yield func(Span, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(Span{}, fmt.Errorf("read spans: %w", err))
			return
		}
		defer f.Close()
		for s, err := range Read(f) {
			if err != nil {
				err = fmt.Errorf("read spans of %s: %w", path, err)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// Read reads spans as [ReadFile] does. A last line without an end is still
// being written, or was torn: it is passed over.
func Read(r io.Reader) iter.Seq2[Span, error] {
	return func(yield func(Span, error) bool) {
		lines := bufio.NewReader(r)
		for n := 1; ; n++ {
			line, err := readLine(lines)
			if errors.Is(err, io.EOF) {
				return
			}
			var d *tracepb.TracesData
			if err == nil {
				d, err = decodeLine(line)
			}
			if err != nil {
				yield(Span{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			for _, s := range spansIn(d) {
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}

// readLine returns a line without its end, io.EOF when no whole one is left.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return line[:len(line)-1], nil
		case len(line) > lineLimit:
			return nil, fmt.Errorf("longer than %d bytes", lineLimit)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func spansIn(d *tracepb.TracesData) []Span {
	var spans []Span
	for _, r := range d.GetResourceSpans() {
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				spans = append(spans, Span{Resource: r.GetResource(), Span: s})
			}
		}
	}
	return spans
}
