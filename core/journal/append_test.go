package journal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

func TestAppendAndReadBack(t *testing.T) {
	bothWays(t, func(l *log) {
		a, b := subject(), subject()
		var last uint64
		var want []string
		for i := range 5 {
			l.append(entry(b+"", lastOf(l, b)))
			e := entry(a, last)
			e.Data = fmt.Append(nil, "data ", i)
			want = append(want, string(e.Data))
			last = l.append(e)
		}
		all, err := collect(l.Read(l.ctx, a))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range all {
			got = append(got, string(r.Data))
			if r.Subject != a || r.At.IsZero() {
				t.Errorf("record %+v", r)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if all[4].Seq != last {
			t.Errorf("last is %d, appended %d", all[4].Seq, last)
		}
		if none, err := collect(l.Read(l.ctx, subject())); err != nil || len(none) > 0 {
			t.Errorf("an unknown subject: %v %v", none, err)
		}
	})
}

func lastOf(l *log, subject string) uint64 {
	all, err := collect(l.Read(l.ctx, subject))
	if err != nil {
		l.Fatal(err)
	}
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Seq
}

// One literal subject is both what is written and what is expected: there is no
// way to let two writers with overlapping filters both win.
func TestAppendTakesOneLiteralSubject(t *testing.T) {
	bothWays(t, func(l *log) {
		good := subject()
		for _, s := range []string{
			"", "fermata.ev.>", "fermata.ev.*", strings.Replace(good, ".op.", ".*.", 1), good + ".x", good + "\r\n", good + " x",
			strings.ToUpper(good), "fermata.v1.x", "$JS.API.STREAM.DELETE.FERMATA_0001",
		} {
			if _, err := l.Append(l.ctx, entry(s, 0)); err == nil {
				t.Errorf("%q was accepted", s)
			}
		}
		e := entry(good, 0)
		e.ID = "x\r\nNats-Rollup: all"
		if _, err := l.Append(l.ctx, e); err == nil {
			t.Error("an id that is none was accepted")
		}
		if all, err := collect(l.Scan(l.ctx, 0)); err != nil || len(all) != 1 {
			t.Errorf("the log holds %d messages, %v", len(all), err)
		}
	})
}

func TestB3ExactlyOneContenderWins(t *testing.T) {
	bothWays(t, func(l *log) {
		for range 20 {
			s := subject()
			var mu sync.Mutex
			winners := map[events.ID]uint64{}
			told := map[uint64]int{}
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					e := entry(s, 0)
					seq, err := l.Append(l.ctx, e)
					mu.Lock()
					defer mu.Unlock()
					var lost *journal.Lost
					switch {
					case err == nil:
						winners[e.ID] = seq
					case errors.As(err, &lost):
						told[lost.Record.Seq]++
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			if len(winners) != 1 || len(told) != 1 {
				t.Fatalf("winners %v, losers were told of %v", winners, told)
			}
			for _, seq := range winners {
				if told[seq] != 49 {
					t.Errorf("won by %d, told %v", seq, told)
				}
			}
		}
	})
}

// The loser is told the first message behind what it expected, not the last.
func TestLostNamesTheFirstAfterExpected(t *testing.T) {
	bothWays(t, func(l *log) {
		s := subject()
		first := l.append(entry(s, 0))
		second := l.append(entry(s, first))
		l.append(entry(s, second))
		_, err := l.Append(l.ctx, entry(s, first))
		var lost *journal.Lost
		if !errors.As(err, &lost) || lost.Record.Seq != second {
			t.Errorf("%v, want the place lost to %d", err, second)
		}
	})
}

// A retry of an entry that is stored already is the same success.
func TestRepeatedEntryIsTheSameOne(t *testing.T) {
	bothWays(t, func(l *log) {
		e := entry(subject(), 0)
		first := l.append(e)
		if again := l.append(e); again != first {
			t.Errorf("%d, then %d", first, again)
		}
		l.append(entry(e.Subject, first))
		<-time.After(time.Minute) // fake time: the server has forgotten the id
		if again := l.append(e); again != first {
			t.Errorf("%d, later %d", first, again)
		}
		if all, err := collect(l.Read(l.ctx, e.Subject)); err != nil || len(all) != 2 {
			t.Errorf("%d messages, %v", len(all), err)
		}
	})
}

// The acknowledgement is lost: the entry is stored once and Append says so.
func TestF3LostAckIsNoLostEntry(t *testing.T) {
	bothWaysOn(t, options(), func(l *log, drop *lossy) {
		s := subject()
		var last uint64
		for i := range 20 {
			drop.armed.Store(int32(1 + i%3)) // the retry's answer may be lost too
			last = l.append(entry(s, last))
		}
		drop.armed.Store(0)
		all, err := collect(l.Read(l.ctx, s))
		if err != nil || len(all) != 20 || all[19].Seq != last {
			t.Errorf("%d messages, last %d, %v", len(all), last, err)
		}
		if drop.lost.Load() < 20 {
			t.Errorf("only %d acknowledgements were lost", drop.lost.Load())
		}
	})
}

// Somebody else takes the place while the own attempt's answer is lost.
func TestLostAckOfALoser(t *testing.T) {
	bothWaysOn(t, options(), func(l *log, drop *lossy) {
		s := subject()
		won := l.append(entry(s, 0))
		drop.armed.Store(1)
		_, err := l.Append(l.ctx, entry(s, 0))
		var lost *journal.Lost
		if !errors.As(err, &lost) || lost.Record.Seq != won {
			t.Errorf("%v, want the place lost to %d", err, won)
		}
		if drop.lost.Load() != 1 {
			t.Error("the refusal was not lost")
		}
	})
}

// In doubt, Append waits as long as its context lives, and no longer.
func TestUnavailableUntilTheContextEnds(t *testing.T) {
	bothWays(t, func(l *log) {
		l.server.Close()
		ctx, cancel := context.WithTimeout(l.ctx, 7*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := l.Append(ctx, entry(subject(), 0))
		if !errors.Is(err, journal.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took != 7*time.Second {
			t.Errorf("gave up after %s", took)
		}
	})
}

// An expectation that the log has not reached is not a lost race: the log has
// lost something, and Append does not write.
func TestExpectationAheadOfTheLog(t *testing.T) {
	bothWays(t, func(l *log) {
		ctx, cancel := context.WithTimeout(l.ctx, time.Second)
		defer cancel()
		s := subject()
		if _, err := l.Append(ctx, entry(s, 99)); !errors.Is(err, journal.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		if all, err := collect(l.Read(l.ctx, s)); err != nil || len(all) > 0 {
			t.Errorf("%v %v", all, err)
		}
	})
}

func TestTooLargeEntry(t *testing.T) {
	bothWays(t, func(l *log) {
		if l.MaxEntry() != 4<<20 {
			t.Fatalf("an entry may have %d bytes", l.MaxEntry())
		}
		e := entry(subject(), 0)
		e.Data = make([]byte, l.MaxEntry()+1)
		if _, err := l.Append(l.ctx, e); !errors.Is(err, journal.ErrTooLarge) {
			t.Errorf("%v", err)
		}
		e.Data = e.Data[1:]
		l.append(e)
		if all, err := collect(l.Read(l.ctx, e.Subject)); err != nil || len(all[0].Data) != len(e.Data) {
			t.Errorf("read back: %v", err)
		}
	})
}

func TestFullLogRefusesAndKeeps(t *testing.T) {
	o := options()
	o.MaxBytes = 1 << 20
	bothWaysOn(t, o, func(l *log, _ *lossy) {
		var last uint64
		var err error
		for s := subject(); err == nil; {
			e := entry(s, last)
			e.Data = make([]byte, 50<<10)
			var seq uint64
			if seq, err = l.Append(l.ctx, e); err == nil {
				last = seq
			}
		}
		if !errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		u, err := l.Usage(l.ctx)
		if err != nil || u.LastSeq != last || u.Limit != o.MaxBytes || u.Bytes < u.Limit*9/10 || u.Bytes > u.Limit {
			t.Errorf("usage %+v, last %d, %v", u, last, err)
		}
		if all, err := collect(l.Scan(l.ctx, 0)); err != nil || uint64(len(all)) != last {
			t.Errorf("%d messages, %v", len(all), err)
		}
		more := o
		more.MaxBytes = 2 << 20 // a higher limit on the same log takes more again
		j, err := journal.Open(l.ctx, l.nc, more)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Append(l.ctx, entry(subject(), 0)); err != nil {
			t.Error(err)
		}
	})
}

// 512 at once, each a chain of its own.
func TestManyInFlight(t *testing.T) {
	bothWays(t, func(l *log) {
		var all sync.WaitGroup
		for range 512 {
			all.Go(func() {
				s, last := subject(), uint64(0)
				for range 8 {
					seq, err := l.Append(l.ctx, entry(s, last))
					if err != nil {
						t.Error(err)
						return
					}
					last = seq
				}
			})
		}
		all.Wait()
		u, err := l.Usage(l.ctx)
		if err != nil || u.Messages != 1+512*8 || u.LastSeq != u.Messages {
			t.Errorf("%+v %v", u, err)
		}
	})
}
