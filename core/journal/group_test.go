package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/journal"
)

// told is what an append came to.
type told struct {
	seq uint64
	err error
}

// together appends all entries at once.
func (l *log) together(entries []journal.Entry) []told {
	out := make([]told, len(entries))
	var all sync.WaitGroup
	for i, e := range entries {
		all.Go(func() { out[i].seq, out[i].err = l.Append(l.ctx, e) })
	}
	all.Wait()
	return out
}

// strangers are n entries of different subjects.
func strangers(n int) []journal.Entry {
	all := make([]journal.Entry, n)
	for i := range all {
		all[i] = entry(subject(), 0)
	}
	return all
}

// commits counts the batches that are sent from now on.
func (l *log) commits() func() int {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, time.Hour)
	l.Cleanup(cancel)
	flush := func() {
		if err := l.nc.FlushWithContext(ctx); err != nil {
			l.Fatal(err)
		}
	}
	var n atomic.Int32
	if _, err := l.nc.Subscribe("fermata.ev.>", func(m *nats.Msg) {
		if m.Header.Get("Nats-Batch-Commit") != "" {
			n.Add(1)
		}
	}); err != nil {
		l.Fatal(err)
	}
	flush()
	return func() int {
		flush()
		synctest.Wait()
		return int(n.Load())
	}
}

// inBatches runs a test on a log that syncs, where n entries share a batch.
func inBatches(t *testing.T, n int, f func(l *log, drop *lossy)) {
	inBubble(t, func(t *testing.T) {
		t.Cleanup(func() { <-time.After(time.Second) }) // fake time: the server's stores of batches come to rest
		o := options()
		o.SyncAlways = true
		drop := &lossy{quiet: true}
		l := open(t, t.TempDir(), o, drop.wrap)
		if n > 0 {
			l.BatchesOf(n)
		}
		f(l, drop)
	})
}

// won checks that the entries are stored where their appends say, each once.
func (l *log) won(entries []journal.Entry, out []told) {
	l.Helper()
	for i, e := range entries {
		all, err := collect(l.Read(l.ctx, e.Subject))
		if err != nil || out[i].err != nil || len(all) != 1 || all[0].Seq != out[i].seq || string(all[0].Data) != string(e.Data) {
			l.Errorf("entry %d of %s: told %+v, stored %+v, %v", i, e.Subject, out[i], all, err)
		}
	}
}

// The acknowledgement of a batch names its last sequence. The others follow.
func TestBatchSequencesFollowFromTheLast(t *testing.T) {
	for _, n := range []int{1, 2, 16, 333} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			inBatches(t, n, func(l *log, _ *lossy) {
				commits := l.commits()
				for range 3 {
					entries := strangers(n)
					l.won(entries, l.together(entries))
				}
				if c := commits(); c != 3 {
					t.Errorf("%d batches", c)
				}
			})
		})
	}
}

// Nobody waits for company; those who wait together go together.
func TestEntriesGoTogetherOnlyWhenManyWait(t *testing.T) {
	inBatches(t, 0, func(l *log, _ *lossy) {
		commits := l.commits()
		last, s := uint64(0), subject()
		for range 20 {
			last = l.append(entry(s, last))
		}
		few := strangers(15)
		l.won(few, l.together(few))
		if c := commits(); c > 0 {
			t.Errorf("%d batches of few", c)
		}
		many := strangers(800)
		l.won(many, l.together(many))
		if c := commits(); c < 2 || c > 20 { // a batch holds 500
			t.Errorf("%d batches of many", c)
		}
	})
}

// A stale entry refuses the whole batch and is the only one that loses.
func TestOneStaleEntryAmongFifty(t *testing.T) {
	for name, lose := range map[string]int32{"refusal heard": 0, "refusal lost": 1} {
		t.Run(name, func(t *testing.T) {
			inBatches(t, 50, func(l *log, drop *lossy) {
				entries := strangers(50)
				taken := entries[17]
				taken.ID = newID()
				l.BatchesOf(1)
				first := l.append(taken)
				l.BatchesOf(50)
				commits := l.commits()
				drop.armed.Store(lose)
				out := l.together(entries)
				var lost *journal.Lost
				if !errors.As(out[17].err, &lost) || lost.Record.Seq != first {
					t.Errorf("the stale one: %+v", out[17])
				}
				l.won(append(entries[:17:17], entries[18:]...), append(out[:17:17], out[18:]...))
				if c := commits(); c != 1 || drop.lost.Load() != lose {
					t.Errorf("%d batches, %d answers lost", c, drop.lost.Load())
				}
				again := strangers(50) // whoever went alone is back
				l.won(again, l.together(again))
				if c := commits(); c != 2 {
					t.Errorf("%d batches with the one after", c)
				}
			})
		})
	}
}

// The server has stored a batch and nobody hears of it.
func TestF3LostAckOfABatch(t *testing.T) {
	inBatches(t, 50, func(l *log, drop *lossy) {
		for range 3 {
			entries := strangers(50)
			drop.armed.Store(1)
			l.won(entries, l.together(entries))
		}
		if n := drop.lost.Load(); n != 3 {
			t.Errorf("%d acknowledgements were lost", n)
		}
		if u, err := l.Usage(l.ctx); err != nil || u.LastSeq != 151 {
			t.Errorf("%+v, %v", u, err)
		}
	})
}

// The server shows a batch's messages to a consumer before it has synced them,
// and answers no read until it has. Whoever follows a log that syncs, and has not
// heard an acknowledgement, is given a message only behind such a read.
func TestFollowAwaitsTheSync(t *testing.T) {
	const size, batches = 50, 4
	inBatches(t, size, func(l *log, _ *lossy) {
		o := options()
		o.SyncAlways = true
		other, err := journal.Open(l.ctx, l.nc, o)
		if err != nil {
			t.Fatal(err)
		}
		reads, err := l.nc.SubscribeSync("$JS.API.STREAM.MSG.GET.*")
		if err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		l.BatchesOf(1)
		l.append(entry(subject(), 0))
		l.BatchesOf(size)
		given := 0
		for r, err := range other.Follow(l.ctx, 1) {
			if err != nil {
				t.Fatal(err)
			}
			given++
			synctest.Wait() // until the subscription has them too
			if n, _, err := reads.Pending(); err != nil || n < given {
				t.Fatalf("message %d was given after %d reads, %v", r.Seq, n, err)
			}
			if given == 1 {
				writers.Go(func() {
					for range batches {
						l.together(strangers(size))
					}
				})
			}
			if given == 1+size*batches {
				break
			}
		}
		writers.Wait()
	})
}

// A repeated entry is the same success, whatever else is in its batch.
func TestRepeatedEntriesInABatch(t *testing.T) {
	inBatches(t, 20, func(l *log, _ *lossy) {
		entries := strangers(20)
		first := l.together(entries)
		again := append(strangers(10), entries[:10]...)
		out := l.together(again)
		l.won(again, out)
		for i := range 10 {
			if out[10+i] != first[i] {
				t.Errorf("entry %d: %+v, then %+v", i, first[i], out[10+i])
			}
		}
	})
}

// Whoever stops waiting is not written; those who stay are.
func TestLeavingTheLine(t *testing.T) {
	inBatches(t, 3, func(l *log, _ *lossy) {
		ctx, cancel := context.WithCancel(l.ctx)
		defer cancel()
		entries := strangers(4)
		out := make([]told, 4)
		var all sync.WaitGroup
		wait := func(ctx context.Context, i int) {
			all.Go(func() { out[i].seq, out[i].err = l.Append(ctx, entries[i]) })
			synctest.Wait()
		}
		wait(ctx, 0)
		wait(l.ctx, 1)
		cancel()
		synctest.Wait()
		wait(l.ctx, 2) // would be the third
		if !errors.Is(out[0].err, journal.ErrUnavailable) {
			t.Errorf("left with %v", out[0].err)
		}
		wait(l.ctx, 3)
		all.Wait()
		l.won(entries[1:], out[1:])
		if r, err := collect(l.Read(l.ctx, entries[0].Subject)); err != nil || len(r) > 0 {
			t.Errorf("the one that left: %v, %v", r, err)
		}
	})
}

// Large entries have no use for company, and small ones do not wait for them.
func TestLargeEntriesGoAlone(t *testing.T) {
	inBatches(t, 1, func(l *log, _ *lossy) {
		commits := l.commits()
		e := entry(subject(), 0)
		e.Data = make([]byte, 100<<10)
		l.append(e)
		if c := commits(); c > 0 {
			t.Error("the large one was in a batch")
		}
		many := strangers(64) // 60 KiB each: a batch takes 17
		for i := range many {
			many[i].Data = fmt.Appendf(nil, "%061440d", i)
		}
		l.won(many, l.together(many))
		if c := commits(); c < 64/17 {
			t.Errorf("%d batches", c)
		}
	})
}

// What the server does with a batch is what the code here counts on. A batch
// that is refused writes nothing.
func TestServersRulesOfABatch(t *testing.T) {
	inBatches(t, 1, func(l *log, _ *lossy) {
		stored := entry(subject(), 0)
		last := l.append(stored)
		a, b := strangers(2), subject()
		twice := a[1]
		twice.ID = a[0].ID
		chained := []journal.Entry{entry(b, 0), entry(b, last+1)}
		for name, c := range map[string]struct {
			batch []journal.Entry
			code  int
		}{
			"stale":                    {[]journal.Entry{a[0], entry(stored.Subject, 0)}, 10071},
			"one subject, chained":     {chained, 10164},
			"one subject, same place":  {[]journal.Entry{entry(b, 0), entry(b, 0)}, 10164},
			"one id twice":             {[]journal.Entry{a[0], twice}, 10201},
			"an id that is stored":     {[]journal.Entry{a[0], {Subject: a[1].Subject, ID: stored.ID}}, 10201},
			"the stored entry, again":  {[]journal.Entry{a[0], stored}, 10201},
			"ahead of what is written": {[]journal.Entry{a[0], entry(b, 99)}, 10071},
		} {
			if code := l.rawBatch(c.batch); code != c.code {
				t.Errorf("%s: %d, want %d", name, code, c.code)
			}
		}
		if all, err := collect(l.Scan(l.ctx, 0)); err != nil || uint64(len(all)) != last {
			t.Errorf("%d messages, %v", len(all), err)
		}
	})
}

// rawBatch sends entries as one batch and gives the code of the answer.
func (l *log) rawBatch(entries []journal.Entry) int {
	l.Helper()
	id := string(newID())
	for i, e := range entries {
		m := &nats.Msg{Subject: e.Subject, Data: e.Data, Header: nats.Header{
			"Nats-Msg-Id":                         {string(e.ID)},
			"Nats-Expected-Last-Subject-Sequence": {strconv.FormatUint(e.Expected, 10)},
			"Nats-Batch-Id":                       {id},
			"Nats-Batch-Sequence":                 {strconv.Itoa(i + 1)},
		}}
		if i < len(entries)-1 {
			if err := l.nc.PublishMsg(m); err != nil {
				l.Fatal(err)
			}
			continue
		}
		m.Header.Set("Nats-Batch-Commit", "1")
		ctx, cancel := context.WithTimeout(l.ctx, time.Minute)
		defer cancel()
		reply, err := l.nc.RequestMsgWithContext(ctx, m)
		if err != nil {
			l.Fatal(err)
		}
		var got struct {
			Error struct {
				Code int `json:"err_code"`
			} `json:"error"`
		}
		if err := json.Unmarshal(reply.Data, &got); err != nil {
			l.Fatal(err)
		}
		return got.Error.Code
	}
	return 0
}
