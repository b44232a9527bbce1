package tracing

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// FuzzReadFile: no input breaks the reader, and what it reads can be written
// and read again as the same spans. The corpus in testdata/fuzz has a line of
// each kind of span, and lines with wrong ids, nulls, deep and odd values.
func FuzzReadFile(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "traces.jsonl")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for s, err := range ReadFile(path) {
			if err != nil {
				return
			}
			again(t, s)
		}
	})
}

func again(t *testing.T, s Span) {
	t.Helper()
	line, err := protobufLine(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: s.Resource, ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{s.Span}}},
	}}})
	if err != nil {
		t.Fatalf("write what was read: %v", err)
	}
	for copied, err := range Read(bytes.NewReader(append(line, '\n'))) {
		if err != nil {
			t.Fatalf("read what was written: %v\n%s", err, line)
		}
		if !proto.Equal(copied.Span, s.Span) {
			t.Fatalf("changed on the way: %v, was %v", copied.Span, s.Span)
		}
	}
}

func TestReadStops(t *testing.T) {
	whole := lines(t, syntheticLog(17, 1))
	one := whole[:bytes.IndexByte(whole, '\n')+1]
	count := func(b []byte) (n int, err error) {
		for _, err := range Read(bytes.NewReader(b)) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	n, err := count(one)
	if n == 0 || err != nil {
		t.Fatalf("%d spans, %v", n, err)
	}
	if torn, err := count(append(bytes.Clone(one), one[:20]...)); torn != n || err != nil {
		t.Errorf("with a torn line: %d spans, %v", torn, err)
	}
	if got, err := count(append(bytes.Clone(one), "no json\n"...)); got != n || err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("with a bad line: %d spans, %v", got, err)
	}
	if _, err := count(bytes.Repeat([]byte(" "), lineLimit+4097)); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("with a long line: %v", err)
	}
	for _, err := range ReadFile(filepath.Join(t.TempDir(), "none")) {
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without a file: %v", err)
		}
	}
}
