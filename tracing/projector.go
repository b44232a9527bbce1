package tracing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

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
// as one OTLP export request in JSON on one line, without the line's end. Low is
// as in [Batch], after this message.
type Ended struct {
	Seq  uint64
	Low  uint64
	Line []byte
}

// How far the projection may fall behind the log: nobody waits for it, and the
// calls that people wait for want the same processors and the same disk.
const (
	// batchLimit bounds how many messages' spans wait for the sink: the
	// projection's memory is that of the open operations and of two batches.
	batchLimit = 256
	// batchPause is for how long spans pile up before the sink is woken again.
	batchPause = 50 * time.Millisecond
)

// Projector turns a log into spans. It holds no state of a run and may be used
// for several.
type Projector struct {
	o     Options
	pause time.Duration // batchPause
}

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
	return &Projector{o: o, pause: batchPause}, nil
}

// Run projects the log into the sink until the log ends, fails, or the sink
// does. The log must begin at the sink's start (for a [FileSink], the message
// [FileSink.Start]) and be in order. The sink gets the first spans at once and
// then all that have piled up since, at most twenty times in a second unless
// more pile up than are kept. What was read when the log ends, or when ctx ends
// it, is in the sink when Run returns, without a pause.
func (p *Projector) Run(ctx context.Context, log iter.Seq2[Record, error]) error {
	if p.o.Sink == nil {
		return errors.New("tracing: no sink to write spans to")
	}
	ready := make(chan Ended, batchLimit)
	hurry := make(chan struct{}, 1) // a value: ready is full; closed: the log has ended
	written := make(chan error, 1)
	go func() { written <- p.write(ctx, ready, hurry) }()
	end := func() error {
		close(hurry)
		close(ready)
		return <-written
	}

	for e, err := range p.Project(log) {
		if err != nil {
			return errors.Join(err, end())
		}
		if len(ready) == cap(ready) {
			select {
			case hurry <- struct{}{}:
			default: // it has been told
			}
		}
		select {
		case ready <- e:
		case err := <-written: // the sink has failed; the log goes on without it
			return err
		}
	}
	return end()
}

// write gives the sink all that is ready, pauses, and so on.
func (p *Projector) write(ctx context.Context, ready <-chan Ended, hurry <-chan struct{}) error {
	for e := range ready {
		b := Batch{Ended: []Ended{e}, Low: e.Low}
		for range len(ready) {
			next := <-ready
			b.Ended, b.Low = append(b.Ended, next), next.Low
		}
		if err := p.o.Sink.Write(ctx, b); err != nil {
			return fmt.Errorf("write spans up to message %d: %w", b.Ended[len(b.Ended)-1].Seq, err)
		}
		p.rest(ctx, hurry)
	}
	return nil
}

// rest lets spans pile up for a pause, less when the log is in a hurry or ctx
// ends.
func (p *Projector) rest(ctx context.Context, hurry <-chan struct{}) {
	t := time.NewTimer(p.pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-hurry:
	case <-ctx.Done():
	}
}

// Project is the pure part: the spans that each message ends, in the order of
// the log. It stops at the first message that it cannot read, also at one that
// only a newer core knows: it must not guess. Messages of operations whose
// beginning is not in log are passed over, but for runs that outlive operations.
func (p *Projector) Project(log iter.Seq2[Record, error]) iter.Seq2[Ended, error] {
	return func(yield func(Ended, error) bool) {
		f := newFold(p.o)
		var last uint64
		for r, err := range log {
			var line []byte
			if err == nil && r.Seq <= last {
				err = fmt.Errorf("message %d came after message %d; the log must be in order", r.Seq, last)
			}
			if err == nil {
				line, err = f.record(r)
			}
			if err != nil {
				yield(Ended{}, fmt.Errorf("project the log behind message %d: %w", last, err))
				return
			}
			last = r.Seq
			if line == nil {
				continue
			}
			if !yield(Ended{Seq: r.Seq, Low: f.low(r.Seq), Line: line}, nil) {
				return
			}
		}
	}
}

// read takes a record apart, nil when it is about no session.
func read(r Record, decode func([]byte) (events.Message, error)) (*events.Message, error) {
	subject, err := events.ParseLogSubject(r.Subject)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", r.Seq, err)
	}
	if subject.Session == "" {
		return nil, nil
	}
	m, err := decode(r.Data)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w", r.Seq, err)
	}
	if m.Operation != subject.Operation || m.Session != subject.Session {
		return nil, fmt.Errorf("message %d says operation %q but stands on the subject of %s; the log was changed behind the core's back",
			r.Seq, m.Operation, subject.Operation)
	}
	m.Seq = r.Seq
	return &m, nil
}
