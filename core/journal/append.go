package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/events"
)

// Entry is a message to be written. It takes the place right after the message
// Expected of its own subject; there is no way to expect anything of another
// subject, or of several.
type Entry struct {
	Subject  string    // one literal subject of the log
	Expected uint64    // sequence of the subject's last message, 0 = none yet
	ID       events.ID // of the event; a retry of the same entry has the same one
	Types    string    // the event types, for [events.HeaderType]
	Data     []byte
}

// Headers of an entry.
const (
	headerID       = "Nats-Msg-Id"
	headerExpected = "Nats-Expected-Last-Subject-Sequence"
)

// Limits of an entry's size: whichever is smaller, largestEntry, or the server's
// own limit less the room that headers and subject may take.
const (
	largestEntry = 4 << 20
	headerRoom   = 64 << 10
)

// ackWait is how long one attempt waits for its acknowledgement before it is in
// doubt. The attempts go on as long as the context lives.
const ackWait = time.Second

// The first and the longest wait between two attempts.
const (
	shortestPause = time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// MaxEntry is how many bytes of Data an entry may have.
func (j *Journal) MaxEntry() int {
	return min(largestEntry, int(j.nc.MaxPayload())-headerRoom)
}

// Append writes an entry and returns its sequence once the log has acknowledged
// it. When another message has the place, the error is a [*Lost]. In doubt it
// asks the log until it knows, as long as ctx lives; [ErrUnavailable] means that
// ctx ended first and that nobody knows. [ErrFull] and [ErrTooLarge] are sure:
// the entry is not in the log.
func (j *Journal) Append(ctx context.Context, e Entry) (uint64, error) {
	if err := j.check(e); err != nil {
		return 0, err
	}
	attempt := j.first // may go in company; every later one goes alone
	sure := true       // no earlier attempt can still come through
	for wait := shortestPause; ; wait = min(2*wait, longestPause) {
		seq, err := attempt(ctx, e)
		attempt = j.publish
		if err == nil {
			j.usage.wrote(seq, e)
			return seq, nil
		}
		first, readErr := j.next(ctx, e.Subject, e.Expected+1)
		switch {
		case readErr == nil && first.id == string(e.ID):
			j.usage.wrote(first.Seq, e)
			return first.Seq, nil
		case readErr == nil:
			return 0, &Lost{first.Record}
		case errors.Is(readErr, errNone) && sure && errors.Is(err, ErrFull):
			return 0, fmt.Errorf("append to %s: %w", e.Subject, err)
		}
		var refusal *apiError
		sure = sure && errors.As(err, &refusal)
		if j.nc.IsClosed() || !pause(ctx, wait) {
			return 0, fmt.Errorf("append to %s: %w: %w", e.Subject, ErrUnavailable, err)
		}
	}
}

func (j *Journal) check(e Entry) error {
	if _, err := events.ParseLogSubject(e.Subject); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	if _, err := events.ParseID(string(e.ID)); err != nil {
		return fmt.Errorf("append to %s: %w", e.Subject, err)
	}
	if limit := j.MaxEntry(); len(e.Data) > limit {
		return fmt.Errorf("append to %s: %w: %d bytes, at most %d", e.Subject, ErrTooLarge, len(e.Data), limit)
	}
	return nil
}

func (e Entry) message() *nats.Msg {
	return &nats.Msg{Subject: e.Subject, Data: e.Data, Header: nats.Header{
		headerID:          {string(e.ID)},
		headerExpected:    {strconv.FormatUint(e.Expected, 10)},
		events.HeaderType: {e.Types},
	}}
}

// pubAck is the answer to a published message.
type pubAck struct {
	Stream    string    `json:"stream"`
	Seq       uint64    `json:"seq"`
	Duplicate bool      `json:"duplicate"`
	Count     int       `json:"count"` // of a batch's messages, Seq is the last one's
	Error     *apiError `json:"error"`
}

// publish makes one attempt. Only a nil error is news: the entry has the
// returned sequence. An *apiError refuses this attempt, and only this one.
func (j *Journal) publish(ctx context.Context, e Entry) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, ackWait)
	defer cancel()
	return j.acked(ctx, e.message(), 0)
}

// acked sends a message and awaits its acknowledgement, or that of the batch of
// so many messages that it commits.
func (j *Journal) acked(ctx context.Context, msg *nats.Msg, batch int) (uint64, error) {
	reply, err := j.nc.RequestMsgWithContext(ctx, msg)
	if err != nil {
		return 0, err
	}
	var ack pubAck
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return 0, fmt.Errorf("read the acknowledgement: %w", err)
	}
	switch {
	case ack.Error != nil:
		return 0, ack.Error
	case ack.Stream != j.stream || ack.Seq == 0:
		return 0, fmt.Errorf("acknowledged by stream %q, not by %s", ack.Stream, j.stream)
	case ack.Duplicate: // stored, and reading says where; a new entry must not reuse an id
		return 0, fmt.Errorf("the id of this entry is that of message %d", ack.Seq)
	case ack.Count != batch:
		return 0, fmt.Errorf("acknowledged %d messages of a batch of %d", ack.Count, batch)
	}
	return ack.Seq, nil
}

// apiError is the server's refusal.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

// Codes of refusals.
const (
	codeResources = 10002 // the account's limit
	codeNone      = 10037 // no such message
	codeStorage   = 10047 // the server's limit
	codeStore     = 10077 // the stream could not store; the description says why
)

// Error is the server's own text and code.
func (e *apiError) Error() string {
	return fmt.Sprintf("%s (%d/%d)", e.Description, e.Code, e.ErrCode)
}

// Is tells which refusals mean [ErrFull].
func (e *apiError) Is(target error) bool {
	if target != ErrFull {
		return false
	}
	return e.ErrCode == codeResources || e.ErrCode == codeStorage ||
		e.ErrCode == codeStore && strings.Contains(e.Description, "maximum bytes exceeded")
}

// pause waits, false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
