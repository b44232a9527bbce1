// Package journal is the log on JetStream: append with an expectation, read,
// follow, and a snapshot beside it. It is the only package that knows streams.
//
//	j, err := journal.Open(ctx, nc, journal.Options{Core: token, Now: time.Now, NewID: …})
//	seq, err := j.Append(ctx, journal.Entry{Subject: …, Expected: last, ID: id, Types: …, Data: …})
//	for r, err := range j.Read(ctx, subject) { … }
//
// Append is one algorithm for one server and for a replicated stream. An entry
// names one literal subject and the sequence of that subject's last message, so
// of any number of writers exactly one takes the next place. Everything but a
// plain acknowledgement is doubt, and doubt is settled by reading from the
// stream's leader who took the place: a lost acknowledgement is never a lost or
// a doubled entry.
package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-hitl/fermata/events"
)

// Errors of the log. Each is wrapped with what happened.
var (
	// ErrUnavailable says that the log did not answer in time. After an Append
	// the entry may be in the log or not: read the subject again.
	ErrUnavailable = errors.New("the log is not available")
	// ErrFull says that the entry is not in the log, because the log has
	// reached its limit.
	ErrFull = errors.New("the log is full")
	// ErrTooLarge says that the entry is not in the log, because it is larger
	// than [Journal.MaxEntry].
	ErrTooLarge = errors.New("the entry is too large for the log")
	// ErrMissing says that the log does not hold what it must hold: a hole, or
	// an end before a sequence that was seen already.
	ErrMissing = errors.New("the log has lost messages")
)

// Lost says that another message took the place that an entry was meant for.
type Lost struct {
	Record Record // the first message of the subject after the expected one
}

// Error names the place.
func (l *Lost) Error() string {
	return fmt.Sprintf("message %d was written to %s first", l.Record.Seq, l.Record.Subject)
}

// Record is a message as it lies in the log.
type Record struct {
	Seq     uint64
	Subject string
	At      time.Time // when the server stored it; order is Seq, never At
	Data    []byte
}

// Options says which log to open. Core, Now and NewID are required.
type Options struct {
	Core       events.Token     // who writes the genesis of a new log
	Replicas   int              // 0 = 1
	MaxBytes   int64            // 0 = 1 GiB; a log that allows more keeps its limit
	Own        bool             // the log is this core's alone: one that another core began is refused
	SyncAlways bool             // how the server was started: entries then share syncs
	Now        func() time.Time // stamps the genesis, ages Usage
	NewID      func() events.ID // ids of the genesis and of batches; may be called concurrently
	Log        *slog.Logger     // nil = silent
	Memory     bool             // tests: the stream is kept in memory
}

const defaultMaxBytes = 1 << 30

// Journal is an open log. Its methods may be called concurrently.
type Journal struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	opts   Options
	log    *slog.Logger
	stream string
	usage  usage
	group  *group // nil when entries share no syncs
}

// Open finds the log by its subjects, or begins one. A stream that is configured
// in any weaker way is refused with a [*Drift] that names each difference.
func Open(ctx context.Context, nc *nats.Conn, o Options) (*Journal, error) {
	if o.Now == nil || o.NewID == nil {
		return nil, errors.New("open the log: options Now and NewID are required")
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	j := &Journal{nc: nc, js: js, opts: o, log: o.Log}
	if j.log == nil {
		j.log = slog.New(slog.DiscardHandler)
	}
	s, err := j.findOrCreate(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	if o.SyncAlways && s.Config.Replicas == 1 {
		j.group = &group{least: leastBatch, abreast: abreast, commit: j.commitBatch}
	}
	if err := j.begin(ctx, s); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return j, nil
}

// Segment is the name of the stream that this log is.
func (j *Journal) Segment() string { return j.stream }

// begin writes the genesis of a log that has none. Of several cores that open a
// new log at once, one writes it.
func (j *Journal) begin(ctx context.Context, s *jetstream.StreamInfo) error {
	r, err := j.read(ctx, events.GenesisSubject, 1)
	switch {
	case err == nil:
		return j.checkGenesis(r)
	case !errors.Is(err, errNone):
		return err
	case s.State.LastSeq > 0:
		return fmt.Errorf("%w: %s holds messages and no genesis", ErrMissing, j.stream)
	}
	m := events.Message{
		ID: j.opts.NewID(), At: events.At(j.opts.Now()), Principal: "core",
		Events: []events.Event{events.Genesis{
			Segment: segmentNumber(j.stream), Core: j.opts.Core, Config: configDigest(s.Config),
		}},
	}
	data, _, err := events.EncodeMessage(m)
	if err != nil {
		return err
	}
	_, err = j.Append(ctx, Entry{Subject: events.GenesisSubject, ID: m.ID, Types: m.TypeHeader(), Data: data})
	if lost, ok := errors.AsType[*Lost](err); ok {
		return j.checkGenesis(lost.Record)
	}
	return err
}

func (j *Journal) checkGenesis(r Record) error {
	m, err := events.DecodeMessage(r.Data)
	if err != nil {
		return fmt.Errorf("the genesis of the log cannot be read: %w", err)
	}
	if len(m.Events) != 1 || m.Events[0].EventType() != (events.Genesis{}).EventType() {
		return errors.New("the log does not begin with a genesis: it is not Fermata's, or was tampered with")
	}
	if began, ok := m.Events[0].(events.Genesis); ok && j.opts.Own && began.Core != j.opts.Core {
		return fmt.Errorf("the log was begun by core %s, and this is core %s: its keys were lost or exchanged; restore them, or move the state directory away", began.Core, j.opts.Core)
	}
	return nil
}
