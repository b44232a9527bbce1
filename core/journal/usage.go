package journal

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Usage says how full the log is.
type Usage struct {
	Bytes      int64  // stored, with what each message costs beside its data
	Limit      int64  // bytes at which the log takes nothing more
	Messages   uint64 // stored
	LastSeq    uint64 // sequence of the last message
	SyncAlways bool   // as in [Options]: each ack means fsync
}

// freshFor is how long what the server said last is good enough.
const freshFor = time.Second

// messageCost is about what a message takes beside subject and data: record
// header, headers, hash.
const messageCost = 160

// usage is what the server said last, and what was written since.
type usage struct {
	mu    sync.Mutex
	at    time.Time // zero: never asked
	said  Usage
	bytes int64
	count uint64
	last  uint64
}

func (u *usage) wrote(seq uint64, e Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes += int64(len(e.Subject) + len(e.Data) + messageCost)
	u.count++
	u.last = max(u.last, seq)
}

// newest is the highest sequence that was acknowledged to this journal.
func (u *usage) newest() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

func (u *usage) estimate() Usage {
	e := u.said
	e.Bytes += u.bytes
	e.Messages += u.count
	e.LastSeq = max(e.LastSeq, u.last)
	return e
}

// Usage is cheap enough to ask for each operation: the server is asked at most
// once a second, what this journal wrote since is counted on top. Messages of
// other cores may be missing for that second.
func (j *Journal) Usage(ctx context.Context) (Usage, error) {
	u := &j.usage
	u.mu.Lock()
	if now := j.opts.Now(); !u.at.IsZero() && now.Sub(u.at) < freshFor && !now.Before(u.at) {
		defer u.mu.Unlock()
		return u.estimate(), nil
	}
	bytes, count := u.bytes, u.count
	u.mu.Unlock()

	s, err := j.state(ctx)
	if err != nil {
		return Usage{}, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	// What was written while the server was asked may now be counted twice, for a
	// second: better than not at all.
	u.bytes, u.count = max(0, u.bytes-bytes), u.count-min(u.count, count)
	u.at = j.opts.Now()
	u.said = Usage{Bytes: s.Bytes, Limit: s.limit, Messages: s.Messages, LastSeq: s.LastSeq, SyncAlways: j.opts.SyncAlways}
	return u.estimate(), nil
}

// state is what the server says of the stream.
type state struct {
	Messages uint64 `json:"messages"`
	Bytes    int64  `json:"bytes"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	limit    int64
}

func (j *Journal) state(ctx context.Context) (s state, err error) {
	err = j.insist(ctx, func() error {
		b, err := j.ask(ctx, "STREAM.INFO", nil)
		if err != nil {
			return err
		}
		var info struct {
			Error  *apiError `json:"error"`
			State  state     `json:"state"`
			Config struct {
				MaxBytes int64 `json:"max_bytes"`
			} `json:"config"`
		}
		if err := json.Unmarshal(b, &info); err != nil {
			return err
		}
		if info.Error != nil {
			return info.Error
		}
		s = info.State
		s.limit = info.Config.MaxBytes
		return nil
	})
	return s, err
}
