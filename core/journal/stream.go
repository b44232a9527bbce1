package journal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-hitl/fermata/events"
)

// A log's stream is named after its segment: FERMATA_0001.
const (
	streamPrefix = "FERMATA_"
	firstStream  = streamPrefix + "0001"
)

func segmentNumber(stream string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(stream, streamPrefix))
	if err != nil {
		return 0
	}
	return n
}

// wanted is how the log's stream must be configured: history is never dropped,
// deleted, rolled up or expired, and every read comes from the leader. There is
// no limit per subject: an end must always fit.
func (j *Journal) wanted() jetstream.StreamConfig {
	storage := jetstream.FileStorage
	if j.opts.Memory {
		storage = jetstream.MemoryStorage
	}
	return jetstream.StreamConfig{
		Name:               firstStream,
		Subjects:           []string{events.StreamSubjects},
		Retention:          jetstream.LimitsPolicy,
		Discard:            jetstream.DiscardNew,
		Storage:            storage,
		Replicas:           j.opts.Replicas,
		MaxBytes:           j.opts.MaxBytes,
		MaxMsgs:            -1,
		MaxMsgsPerSubject:  -1,
		MaxMsgSize:         -1,
		MaxConsumers:       -1,
		Duplicates:         10 * time.Second,
		DenyDelete:         true,
		DenyPurge:          true,
		AllowAtomicPublish: true,
	}
}

// setting is one line of a stream's configuration. Its name is the server's own.
type setting struct {
	name  string
	value any
}

// settings lists what must be as [Journal.wanted] says. Not in it: the name,
// which is checked on its own, and limits that may be larger than wanted.
func settings(c jetstream.StreamConfig) []setting {
	return []setting{
		{"subjects", c.Subjects},
		{"retention", c.Retention},
		{"discard", c.Discard},
		{"discard_new_per_subject", c.DiscardNewPerSubject},
		{"storage", c.Storage},
		{"max_msgs", c.MaxMsgs},
		{"max_age", c.MaxAge},
		{"max_msgs_per_subject", c.MaxMsgsPerSubject},
		{"max_msg_size", c.MaxMsgSize},
		{"no_ack", c.NoAck},
		{"duplicate_window", c.Duplicates},
		{"mirror", c.Mirror != nil},
		{"sources", len(c.Sources)},
		{"subject_transform", c.SubjectTransform != nil},
		{"republish", c.RePublish != nil},
		{"sealed", c.Sealed},
		{"deny_delete", c.DenyDelete},
		{"deny_purge", c.DenyPurge},
		{"allow_rollup_hdrs", c.AllowRollup},
		{"allow_direct", c.AllowDirect},
		{"mirror_direct", c.MirrorDirect},
		{"allow_msg_ttl", c.AllowMsgTTL},
		{"subject_delete_marker_ttl", c.SubjectDeleteMarkerTTL},
		{"allow_msg_schedules", c.AllowMsgSchedules},
		{"allow_msg_counter", c.AllowMsgCounter},
		{"allow_atomic", c.AllowAtomicPublish},
		{"allow_batched", c.AllowBatchPublish},
		{"persist_mode", c.PersistMode},
	}
}

// configDigest is what the genesis says of the configuration.
func configDigest(c jetstream.StreamConfig) events.Digest {
	var b strings.Builder
	for _, s := range settings(c) {
		fmt.Fprintf(&b, "%s=%v\n", s.name, s.value)
	}
	return events.DigestOf([]byte(b.String()))
}

// Drift says in what a stream differs from what the log needs.
type Drift struct {
	Stream string
	Names  []string // of the settings, as the server spells them
	Detail string   // each with its value and the one that it must have
}

// Error lists the differences.
func (d *Drift) Error() string {
	return fmt.Sprintf("stream %s is not configured as the log must be (%s): somebody changed it; correct it, or move it away to begin a new log",
		d.Stream, d.Detail)
}

// drift compares a stream with what is wanted, nil when nothing is weaker.
func drift(got, want jetstream.StreamConfig) error {
	d := &Drift{Stream: got.Name}
	var detail []string
	differs := func(name string, got, want any) {
		d.Names = append(d.Names, name)
		detail = append(detail, fmt.Sprintf("%s is %v, must be %v", name, got, want))
	}
	if n := segmentNumber(got.Name); n < 1 || got.Name != fmt.Sprintf("%s%04d", streamPrefix, n) {
		differs("name", got.Name, streamPrefix+"NNNN")
	}
	w := settings(want)
	for i, g := range settings(got) {
		if !reflect.DeepEqual(g.value, w[i].value) {
			differs(g.name, g.value, w[i].value)
		}
	}
	if got.Replicas < want.Replicas {
		differs("num_replicas", got.Replicas, want.Replicas)
	}
	if got.MaxBytes <= 0 {
		differs("max_bytes", got.MaxBytes, "set")
	}
	if len(d.Names) == 0 {
		return nil
	}
	d.Detail = strings.Join(detail, "; ")
	return d
}

// findOrCreate finds the stream that holds the log's subjects, creates the first
// one, or raises the limit of one that allows less than is wanted.
func (j *Journal) findOrCreate(ctx context.Context) (*jetstream.StreamInfo, error) {
	want := j.wanted()
	var name string
	err := patiently(ctx, func(ctx context.Context) (err error) {
		name, err = j.js.StreamNameBySubject(ctx, events.StreamSubjects)
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err := j.js.CreateStream(ctx, want)
		if err == nil {
			return j.opened(s.CachedInfo(), want)
		}
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another core was faster
			return nil, fmt.Errorf("create %s: %w", want.Name, err)
		}
		name = want.Name
	} else if err != nil {
		return nil, fmt.Errorf("find the stream of %s: %w", events.StreamSubjects, err)
	}
	var s jetstream.Stream
	err = patiently(ctx, func(ctx context.Context) (err error) {
		s, err = j.js.Stream(ctx, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	info := s.CachedInfo()
	if grown := info.Config; grown.MaxBytes > 0 && grown.MaxBytes < want.MaxBytes {
		grown.MaxBytes = want.MaxBytes
		if s, err = j.js.UpdateStream(ctx, grown); err != nil {
			return nil, fmt.Errorf("raise the limit of %s to %d bytes: %w", name, want.MaxBytes, err)
		}
		info = s.CachedInfo()
	}
	return j.opened(info, want)
}

// oneAnswer is how long a question about the stream waits for its answer: a cluster
// that is busy or electing may lose one.
const oneAnswer = 5 * time.Second

// patiently asks a question that changes nothing, again when no answer has come,
// until ctx ends.
func patiently(ctx context.Context, question func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, oneAnswer)
		err := question(once)
		unanswered := once.Err() != nil
		cancel()
		if err == nil || !unanswered || ctx.Err() != nil {
			return err
		}
	}
}

// opened takes a stream as the log when its configuration holds.
func (j *Journal) opened(s *jetstream.StreamInfo, want jetstream.StreamConfig) (*jetstream.StreamInfo, error) {
	if err := drift(s.Config, want); err != nil {
		return nil, err
	}
	j.stream = s.Config.Name
	return s, nil
}
