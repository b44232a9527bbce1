package journal_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/journal"
)

func TestScanGivesAllUpToNow(t *testing.T) {
	bubble(t, func(l *log) {
		var last uint64
		for s, n := subject(), 0; n < 3000; n++ {
			last = l.append(entry(s, last))
		}
		for _, after := range []uint64{0, 1, 1500, last - 1, last} {
			next := after + 1
			for r, err := range l.Scan(l.ctx, after) {
				if err != nil {
					t.Fatal(err)
				}
				if r.Seq != next {
					t.Fatalf("after %d: %d instead of %d", after, r.Seq, next)
				}
				if next++; next == after+10 {
					l.append(entry(subject(), 0)) // comes after the call: not in it
				}
			}
			if want := last + 1; next != want {
				t.Errorf("after %d: ended before %d, want %d", after, next, want)
			}
			u, err := l.Usage(l.ctx)
			if err != nil {
				t.Fatal(err)
			}
			last = u.LastSeq
		}
	})
}

// A snapshot that is newer than the log does not go unnoticed.
func TestScanBehindTheEnd(t *testing.T) {
	bubble(t, func(l *log) {
		for name, seq := range map[string]func(func(journal.Record, error) bool){
			"scan": l.Scan(l.ctx, 2), "follow": l.Follow(l.ctx, 2),
		} {
			if all, err := collect(seq); !errors.Is(err, journal.ErrMissing) || len(all) > 0 {
				t.Errorf("%s: %v %v", name, all, err)
			}
		}
	})
}

func TestFollowGoesOn(t *testing.T) {
	bubble(t, func(l *log) {
		ctx, cancel := context.WithCancel(l.ctx)
		defer cancel()
		s := subject()
		last := l.append(entry(s, 0))
		var got []uint64
		var end error
		for r, err := range l.Follow(ctx, 0) {
			if end = err; err != nil {
				break
			}
			got = append(got, r.Seq)
			switch len(got) {
			case 2, 3, 4:
				<-time.After(time.Minute) // fake time: nothing happens for longer than any heartbeat
				last = l.append(entry(s, last))
			case 5:
				cancel()
			}
		}
		if len(got) != 5 || got[4] != last || !errors.Is(end, context.Canceled) {
			t.Errorf("%v, last %d, ended %v", got, last, end)
		}
	})
}

// The caller may stop at any time, and the connection may break: what is given
// is in order and without holes.
func TestFollowSurvivesItsConnection(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		drop := &lossy{}
		l := open(t, t.TempDir(), options(), drop.wrap)
		s, last := subject(), uint64(0)
		for range 100 {
			last = l.append(entry(s, last))
		}
		next := uint64(1)
		for r, err := range l.Follow(l.ctx, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Seq != next {
				t.Fatalf("%d instead of %d", r.Seq, next)
			}
			if next++; next > 300 {
				break
			}
			if r.Seq%40 == 0 {
				drop.armed.Store(1)
			}
			last = l.append(entry(s, last))
		}
		if drop.lost.Load() == 0 {
			t.Error("the connection never broke")
		}
	})
}

func TestUsageCountsOwnAppends(t *testing.T) {
	bubble(t, func(l *log) {
		s, last := subject(), uint64(0)
		for range 50 {
			last = l.append(entry(s, last))
			u, err := l.Usage(l.ctx)
			if err != nil || u.LastSeq != last || u.Messages != last || u.Limit != 64<<20 || u.SyncAlways {
				t.Fatalf("%+v %v, last %d", u, err, last)
			}
		}
		guess, err := l.Usage(l.ctx)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Second) // fake time
		exact, err := l.Usage(l.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if off := guess.Bytes - exact.Bytes; off < -exact.Bytes/10 || off > exact.Bytes/2 {
			t.Errorf("counted %d bytes, the server says %d", guess.Bytes, exact.Bytes)
		}
	})
}
