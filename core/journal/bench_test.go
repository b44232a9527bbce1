package journal_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
)

// BenchmarkAppend sets Append beside a bare awaited conditional publish, in
// turns in the same run. The metrics are the ratio of their times, and of what
// they get done: in mode power at least 1.5 times as much with 64 in flight, and
// 4 times with 512.
func BenchmarkAppend(b *testing.B) {
	for _, sync := range []bool{false, true} {
		for _, flight := range []int{1, 64, 512} {
			name := map[bool]string{false: "process", true: "power"}[sync]
			b.Run(fmt.Sprintf("%s/%d", name, flight), func(b *testing.B) { benchmarkAppend(b, sync, flight) })
		}
	}
}

func benchmarkAppend(b *testing.B, syncAlways bool, flight int) {
	s, err := natsd.Start(natsd.Options{StateDir: b.TempDir(), RuntimeDir: b.TempDir(), SyncAlways: syncAlways})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	nc, err := s.Core()
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	o := options()
	o.MaxBytes, o.SyncAlways = 1<<30, syncAlways
	j, err := journal.Open(b.Context(), nc, o)
	if err != nil {
		b.Fatal(err)
	}
	data := make([]byte, 1024)
	bare := func(e journal.Entry) (uint64, error) { return barePublish(b.Context(), nc, e) }
	own := func(e journal.Entry) (uint64, error) { return j.Append(b.Context(), e) }

	round := max(512, 8*flight) // several turns of each flight
	var bareTime, ownTime time.Duration
	for n := 0; b.Loop(); n++ {
		bareTime += race(b, flight, round, data, bare)
		ownTime += race(b, flight, round, data, own)
	}
	per := float64(b.N * round)
	b.ReportMetric(float64(bareTime.Microseconds())/per, "bare-µs/op")
	b.ReportMetric(float64(ownTime.Microseconds())/per, "append-µs/op")
	b.ReportMetric(float64(ownTime)/float64(bareTime), "ratio")
	b.ReportMetric(float64(bareTime)/float64(ownTime), "times-bare")
	b.ReportMetric(0, "ns/op")
}

// race writes n entries with so many in flight at once, each flight a chain on
// a subject of its own.
func race(b *testing.B, flight, n int, data []byte, write func(journal.Entry) (uint64, error)) time.Duration {
	var left atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	begin := time.Now()
	for range flight {
		all.Go(func() {
			s, last := subject(), uint64(0)
			for left.Add(-1) >= 0 {
				seq, err := write(journal.Entry{Subject: s, Expected: last, ID: newID(), Types: "HookRan", Data: data})
				if err != nil {
					b.Error(err)
					return
				}
				last = seq
			}
		})
	}
	all.Wait()
	return time.Since(begin)
}

// barePublish is the least that an awaited conditional publish takes.
func barePublish(ctx context.Context, nc *nats.Conn, e journal.Entry) (uint64, error) {
	reply, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: e.Subject, Data: e.Data, Header: nats.Header{
		"Nats-Msg-Id":                         {string(e.ID)},
		"Nats-Expected-Last-Subject-Sequence": {strconv.FormatUint(e.Expected, 10)},
	}})
	if err != nil {
		return 0, err
	}
	var seq uint64
	if _, err := fmt.Sscanf(string(reply.Data), `{"stream":"FERMATA_0001","seq":%d`, &seq); err != nil {
		return 0, fmt.Errorf("%s: %w", reply.Data, err)
	}
	return seq, nil
}

func BenchmarkScan(b *testing.B) {
	s, nc := server(b)
	defer s.Close()
	j, err := journal.Open(b.Context(), nc, options())
	if err != nil {
		b.Fatal(err)
	}
	race(b, 64, 20000, make([]byte, 200), func(e journal.Entry) (uint64, error) { return j.Append(b.Context(), e) })
	var n int
	begin := time.Now()
	for b.Loop() {
		for _, err := range j.Scan(b.Context(), 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(n)/time.Since(begin).Seconds(), "msgs/s")
}
