package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
)

// errNone says that the leader has no such message.
var errNone = errors.New("no such message")

// readWait bounds one question to the leader; readTries how often it is asked
// again while the log has no leader or is out of reach.
const (
	readWait  = 2 * time.Second
	readTries = 5
)

// stored is a record with the id that it was written under.
type stored struct {
	Record
	id string
}

// next asks the stream's leader, once, for the first message of a subject at or
// after a sequence.
func (j *Journal) next(ctx context.Context, subject string, from uint64) (stored, error) {
	req, err := json.Marshal(struct {
		Seq  uint64 `json:"seq"`
		Next string `json:"next_by_subj"`
	}{from, subject})
	if err != nil {
		return stored{}, err
	}
	b, err := j.ask(ctx, "STREAM.MSG.GET", req)
	if err != nil {
		return stored{}, err
	}
	return decodeStored(b)
}

// ask puts one question about the stream to its leader.
func (j *Journal) ask(ctx context.Context, what string, req []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	reply, err := j.nc.RequestWithContext(ctx, "$JS.API."+what+"."+j.stream, req)
	if err != nil {
		return nil, err
	}
	return reply.Data, nil
}

func decodeStored(b []byte) (stored, error) {
	var got struct {
		Error   *apiError `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(b, &got); err != nil {
		return stored{}, fmt.Errorf("read from the log: %w", err)
	}
	if got.Error != nil {
		if got.Error.ErrCode == codeNone {
			return stored{}, errNone
		}
		return stored{}, got.Error
	}
	if got.Message == nil {
		return stored{}, errors.New("read from the log: an answer without a message")
	}
	m := got.Message
	s := stored{Record: Record{Seq: m.Seq, Subject: m.Subject, At: m.Time, Data: m.Data}}
	if len(m.Header) > 0 {
		h, err := nats.DecodeHeadersMsg(m.Header)
		if err != nil {
			return stored{}, fmt.Errorf("read the headers of message %d: %w", m.Seq, err)
		}
		s.id = h.Get(headerID)
	}
	return s, nil
}

// read is next, asked again when the log is out of reach for a moment.
func (j *Journal) read(ctx context.Context, subject string, from uint64) (r Record, err error) {
	err = j.insist(ctx, func() error {
		s, err := j.next(ctx, subject, from)
		r = s.Record
		return err
	})
	return r, err
}

// insist repeats a question until the log answers it.
func (j *Journal) insist(ctx context.Context, question func() error) error {
	wait := shortestPause
	for try := 1; ; try++ {
		err := question()
		if err == nil || errors.Is(err, errNone) {
			return err
		}
		if try == readTries || j.nc.IsClosed() || !pause(ctx, wait) {
			return fmt.Errorf("read the log: %w: %w", ErrUnavailable, err)
		}
		wait = min(4*wait, longestPause)
	}
}

// Read gives all messages of one subject, in order, as the stream's leader has
// them. An error is the last thing it yields; without one it was complete.
func (j *Journal) Read(ctx context.Context, subject string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for from := uint64(1); ; {
			r, err := j.read(ctx, subject, from)
			if errors.Is(err, errNone) {
				return
			}
			if !yield(r, err) || err != nil {
				return
			}
			from = r.Seq + 1
		}
	}
}
