package tracing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/fermata-hitl/fermata/events"
)

// Schema is the version of the spans' names and attributes. Whoever changes
// what a span says changes this.
const Schema = "1"

// Record is one message of the log as it is stored.
type Record struct {
	Seq     uint64
	Subject string
	Data    []byte
}

// Options say whose log is projected. StoreID names the log (the core's token)
// and goes into every id. Version is the core's own version. Key makes the
// commitments. Sink is needed by [Projector.Run] only.
type Options struct {
	StoreID string
	Version string
	Key     Key
	Sink    Sink
}

// Sink keeps finished spans. Write returns nil only when they are durable.
// After a restart the projector gives a sink again what it may have already:
// a sink must skip every [Ended] at or below the last sequence that it holds,
// so that nothing is lost and nothing stands there twice. Write is called by
// one goroutine at a time; after an error it is not called again.
type Sink interface {
	Write(ctx context.Context, b Batch) error
}

// Batch is a run of ended spans in the order of the log. A projection that
// starts again at sequence Low, with a sink that holds this batch, loses
// nothing: no operation that began before Low is still open.
type Batch struct {
	Ended []Ended
	Low   uint64
}

// Ended is what one message of the log ended: the spans, with their resource,
// as one OTLP export request. Low is as in [Batch], after this message.
type Ended struct {
	Seq   uint64
	Low   uint64
	Spans *tracepb.TracesData
}

// batchLimit bounds how many messages' spans wait for the sink: the
// projection's memory is that of the open operations and of two batches.
const batchLimit = 256

// Projector turns a log into spans. It holds no state of a run and may be used
// for several.
type Projector struct{ o Options }

// New checks the options. The key's secret needs [KeySize] bytes at least.
func New(o Options) (*Projector, error) {
	switch {
	case o.StoreID == "":
		return nil, errors.New("tracing: no store id; give the core's token")
	case o.Key.ID == "" || strings.ContainsAny(o.Key.ID, ": "):
		return nil, fmt.Errorf("tracing: key id %q; give a short name without colon and space", o.Key.ID)
	case len(o.Key.Secret) < KeySize:
		return nil, fmt.Errorf("tracing: key %s has %d bytes; give %d or more", o.Key.ID, len(o.Key.Secret), KeySize)
	}
	return &Projector{o: o}, nil
}

// Run projects the log into the sink until the log ends, fails, or the sink
// does. The log must begin at the sink's start (for a [FileSink], the message
// [FileSink.Start]) and be in order. Spans that are ready while the sink is
// busy are written together, so a slow disk costs fewer, larger writes. What
// was read when the log ends is in the sink when Run returns.
func (p *Projector) Run(ctx context.Context, log iter.Seq2[Record, error]) error {
	if p.o.Sink == nil {
		return errors.New("tracing: no sink to write spans to")
	}
	ready := make(chan Ended, batchLimit)
	written := make(chan error, 1)
	go func() { written <- p.write(ctx, ready) }()

	for e, err := range p.Project(log) {
		if err != nil {
			close(ready)
			return errors.Join(err, <-written)
		}
		select {
		case ready <- e:
		case err := <-written: // the sink has failed; the log goes on without it
			return err
		}
	}
	close(ready)
	return <-written
}

// write gives the sink all that is ready, again and again.
func (p *Projector) write(ctx context.Context, ready <-chan Ended) error {
	for e := range ready {
		b := Batch{Ended: []Ended{e}, Low: e.Low}
		for range len(ready) {
			next := <-ready
			b.Ended, b.Low = append(b.Ended, next), next.Low
		}
		if err := p.o.Sink.Write(ctx, b); err != nil {
			return fmt.Errorf("write spans up to message %d: %w", b.Ended[len(b.Ended)-1].Seq, err)
		}
	}
	return nil
}

// Project is the pure part: the spans that each message ends, in the order of
// the log. It stops at the first message that it cannot read, also at one that
// only a newer core knows: it must not guess. Messages of operations whose
// beginning is not in log are passed over.
func (p *Projector) Project(log iter.Seq2[Record, error]) iter.Seq2[Ended, error] {
	return func(yield func(Ended, error) bool) {
		f := newFold(p.o)
		var last uint64
		for r, err := range log {
			var spans []*tracepb.Span
			if err == nil && r.Seq <= last {
				err = fmt.Errorf("message %d came after message %d; the log must be in order", r.Seq, last)
			}
			if err == nil {
				spans, err = f.record(r)
			}
			if err != nil {
				yield(Ended{}, fmt.Errorf("project the log behind message %d: %w", last, err))
				return
			}
			last = r.Seq
			if len(spans) == 0 {
				continue
			}
			if !yield(Ended{Seq: r.Seq, Low: f.low(r.Seq), Spans: f.request(spans)}, nil) {
				return
			}
		}
	}
}

// read takes a record apart, nil when it is not about an operation.
func read(r Record) (*events.Message, error) {
	subject, err := events.ParseLogSubject(r.Subject)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", r.Seq, err)
	}
	if subject.Operation == "" {
		return nil, nil
	}
	m, err := events.DecodeMessage(r.Data)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", r.Seq, err)
	}
	if m.Operation != subject.Operation || m.Session != subject.Session {
		return nil, fmt.Errorf("message %d says operation %q but stands on the subject of %s; check the log with audit verify",
			r.Seq, m.Operation, subject.Operation)
	}
	m.Seq = r.Seq
	return &m, nil
}
