package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-hitl/fermata/events"
)

// How much of the stream is under way to a scan at once.
const (
	scanMessages = 2000
	scanBytes    = 16 << 20
)

// forgetScan is when the server forgets a scan that nobody ended.
const forgetScan = 30 * time.Second

// Scan gives the whole log in order, from the message behind after up to the
// last one at the time of the call. A hole, or a log that ends before after, is
// [ErrMissing]. An error is the last thing it yields; without one it was
// complete.
func (j *Journal) Scan(ctx context.Context, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		s, err := j.from(ctx, after)
		if err != nil {
			yield(Record{}, err)
			return
		}
		if s.after < s.last {
			j.deliver(ctx, s, yield)
		}
	}
}

// Follow gives the whole log in order from the message behind after, and then
// what comes, until ctx ends or the caller stops. It yields an error last, the
// reason why it ended, unless the caller stopped.
func (j *Journal) Follow(ctx context.Context, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		s, err := j.from(ctx, after)
		if err != nil {
			yield(Record{}, err)
			return
		}
		s.last = 0
		j.deliver(ctx, s, yield)
	}
}

// span is what a scan has still to give: everything behind after, up to last,
// or without an end when last is 0. Up to sure, messages are known to be as
// durable as acknowledged ones.
type span struct{ after, last, sure uint64 }

func (j *Journal) from(ctx context.Context, after uint64) (span, error) {
	state, err := j.state(ctx)
	switch {
	case err != nil:
		return span{}, err
	case state.LastSeq < after:
		return span{}, fmt.Errorf("%w: it ends at %d, before %d", ErrMissing, state.LastSeq, after)
	case after == 0 && state.FirstSeq > 0:
		after = state.FirstSeq - 1 // a later segment does not begin at 1
	}
	s := span{after: after, last: state.LastSeq}
	return s, j.await(ctx, &s, state.LastSeq)
}

// await makes sure that a message which the server shows may be acted on. It
// shows those of a batch before it has synced them, but answers a read only
// between batches, so one read vouches for all that was shown before it.
func (j *Journal) await(ctx context.Context, s *span, seq uint64) error {
	if j.group == nil || seq <= s.sure || seq <= j.usage.newest() {
		return nil
	}
	if _, err := j.read(ctx, events.GenesisSubject, 1); err != nil && !errors.Is(err, errNone) {
		return err
	}
	s.sure = seq
	return nil
}

// deliver gives the span to yield, with a new consumer whenever one breaks off.
func (j *Journal) deliver(ctx context.Context, s span, yield func(Record, error) bool) {
	wait := shortestPause
	for {
		before := s.after
		err := j.consume(ctx, &s, yield)
		if err == nil {
			return
		}
		if s.after > before {
			wait = shortestPause
		}
		if errors.Is(err, ErrMissing) {
			yield(Record{}, err)
			return
		}
		if j.nc.IsClosed() || !pause(ctx, wait) {
			yield(Record{}, fmt.Errorf("read the log behind message %d: %w: %w", s.after, ErrUnavailable, errors.Join(ctx.Err(), err)))
			return
		}
		wait = min(2*wait, longestPause)
	}
}

// consume gives as much of the span as one consumer delivers, and moves s along.
// It returns nil when the span is done or the caller has stopped.
func (j *Journal) consume(ctx context.Context, s *span, yield func(Record, error) bool) error {
	c, err := j.js.CreateConsumer(ctx, j.stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: s.after + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: forgetScan,
	})
	if err != nil {
		return err
	}
	defer j.forget(ctx, c)
	it, err := c.Messages(jetstream.PullMaxMessagesWithBytesLimit(scanMessages, scanBytes))
	if err != nil {
		return err
	}
	defer it.Stop()
	for n := uint64(1); ; n++ {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		r, delivery, err := scanned(m)
		switch {
		case err != nil:
			return err
		case delivery != n:
			return fmt.Errorf("delivery %d went missing", n)
		case r.Seq != s.after+1:
			return fmt.Errorf("%w: %d follows %d", ErrMissing, r.Seq, s.after)
		}
		if err := j.await(ctx, s, r.Seq); err != nil {
			return err
		}
		s.after = r.Seq
		if !yield(r, nil) || s.after == s.last {
			return nil
		}
	}
}

// scanned is a delivered message, and the how-manyth delivery of its consumer.
func scanned(m jetstream.Msg) (Record, uint64, error) {
	meta, err := m.Metadata()
	if err != nil {
		return Record{}, 0, err
	}
	return Record{Seq: meta.Sequence.Stream, Subject: m.Subject(), At: meta.Timestamp.UTC(), Data: m.Data()},
		meta.Sequence.Consumer, nil
}

// forget ends a consumer at the server. It would also do so by itself.
func (j *Journal) forget(ctx context.Context, c jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := j.js.DeleteConsumer(ctx, j.stream, c.CachedInfo().Name); err != nil {
		j.log.Debug("end of a scan", "err", err)
	}
}
