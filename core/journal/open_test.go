package journal_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
)

func inBubble(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func stream(l *log) jetstream.Stream {
	l.Helper()
	js, err := jetstream.New(l.nc)
	if err != nil {
		l.Fatal(err)
	}
	s, err := js.Stream(l.ctx, "FERMATA_0001")
	if err != nil {
		l.Fatal(err)
	}
	return s
}

func TestNewLogBeginsWithItsGenesis(t *testing.T) {
	bubble(t, func(l *log) {
		all, err := collect(l.Scan(l.ctx, 0))
		if err != nil || len(all) != 1 || all[0].Subject != events.GenesisSubject || all[0].Seq != 1 {
			t.Fatalf("%v %v", all, err)
		}
		m, err := events.DecodeMessage(all[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		g, ok := m.Events[0].(events.Genesis)
		if !ok || g.Segment != 1 || g.Core != core || len(g.Config) != 64 {
			t.Errorf("genesis %+v", m.Events[0])
		}
		again, err := journal.Open(l.ctx, l.nc, options())
		if err != nil {
			t.Fatal(err)
		}
		if all, err := collect(again.Scan(l.ctx, 0)); err != nil || len(all) != 1 {
			t.Errorf("opened again: %d messages, %v", len(all), err)
		}
	})
}

func TestSeveralOpenANewLog(t *testing.T) {
	bubble(t, func(l *log) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, err := journal.Open(l.ctx, l.nc, options()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if all, err := collect(l.Read(l.ctx, events.GenesisSubject)); err != nil || len(all) != 1 {
			t.Errorf("%d geneses, %v", len(all), err)
		}
	})
}

func TestLogStreamIsConfiguredAsDesigned(t *testing.T) {
	bubble(t, func(l *log) {
		c := stream(l).CachedInfo().Config
		c.Metadata = nil
		want := jetstream.StreamConfig{
			Name: "FERMATA_0001", Subjects: []string{"fermata.ev.>"}, Retention: jetstream.LimitsPolicy,
			Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Replicas: 1, MaxBytes: 64 << 20,
			MaxMsgs: -1, MaxMsgsPerSubject: -1, MaxMsgSize: -1, MaxConsumers: -1, Duplicates: 10 * time.Second,
			DenyDelete: true, DenyPurge: true, AllowAtomicPublish: true,
		}
		if d := cmp.Diff(want, c); d != "" {
			t.Error(d)
		}
		for name, try := range map[string]func(jetstream.Stream) error{
			"delete": func(s jetstream.Stream) error { return s.DeleteMsg(l.ctx, 1) },
			"erase":  func(s jetstream.Stream) error { return s.SecureDeleteMsg(l.ctx, 1) },
			"purge":  func(s jetstream.Stream) error { return s.Purge(l.ctx) },
		} {
			if err := try(stream(l)); err == nil {
				t.Errorf("%s succeeded", name)
			}
		}
	})
}

// A stream that somebody weakened is refused, and the error names each setting.
func TestConfigurationDriftIsRefusedByName(t *testing.T) {
	cases := []struct {
		name   string
		change func(*jetstream.StreamConfig)
	}{
		{"max_age", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"max_msgs", func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 }},
		{"max_bytes", func(c *jetstream.StreamConfig) { c.MaxBytes = -1 }},
		{"max_msgs_per_subject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 64 }},
		{"max_msg_size", func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 }},
		{"discard", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{"retention", func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }},
		{"storage", func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }},
		{"no_ack", func(c *jetstream.StreamConfig) { c.NoAck = true; c.AllowAtomicPublish = false }},
		{"deny_delete", func(c *jetstream.StreamConfig) { c.DenyDelete = false }},
		{"deny_purge", func(c *jetstream.StreamConfig) { c.DenyPurge = false }},
		{"allow_rollup_hdrs", func(c *jetstream.StreamConfig) { c.AllowRollup = true; c.DenyPurge = false }},
		{"allow_direct", func(c *jetstream.StreamConfig) { c.AllowDirect = true }},
		{"allow_msg_ttl", func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }},
		{"allow_msg_schedules", func(c *jetstream.StreamConfig) {
			c.AllowMsgSchedules = true
			c.DenyPurge = false
			c.Discard = jetstream.DiscardOld
		}},
		{"allow_atomic", func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = false }},
		{"persist_mode", func(c *jetstream.StreamConfig) {
			c.PersistMode = jetstream.AsyncPersistMode
			c.AllowAtomicPublish = false
		}},
		{"duplicate_window", func(c *jetstream.StreamConfig) { c.Duplicates = time.Second }},
		{"republish", func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Destination: "leak.>"} }},
		{"subjects", func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "other") }},
		{"name", func(c *jetstream.StreamConfig) { c.Name = "OTHER" }},
	}
	inBubble(t, func(t *testing.T) {
		good := stream(open(t, t.TempDir(), options())).CachedInfo().Config
		for _, c := range cases {
			changed := good
			changed.Metadata = nil
			c.change(&changed)
			err := openOn(t, changed, options())
			var drift *journal.Drift
			if !errors.As(err, &drift) || !slices.Contains(drift.Names, c.name) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		if err := openOn(t, good, options()); err != nil {
			t.Errorf("unchanged: %v", err)
		}
		replicated := options()
		replicated.Replicas = 3
		var drift *journal.Drift
		if err := openOn(t, good, replicated); !errors.As(err, &drift) || !slices.Equal(drift.Names, []string{"num_replicas"}) {
			t.Errorf("one replica instead of three: %v", err)
		}
	})
}

// openOn opens a log on a new server where the stream exists as given.
func openOn(t *testing.T, c jetstream.StreamConfig, o journal.Options) error {
	t.Helper()
	o.MaxBytes = 1 << 20 // never above what is there: raising it is not the subject
	s, nc := server(t)
	defer s.Close()
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), c); err != nil {
		t.Fatalf("create %+v: %v", c, err)
	}
	_, err = journal.Open(t.Context(), nc, o)
	return err
}

// What is in a stream of the right form is not taken for a log without its
// genesis.
func TestLogWithoutGenesisIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		good := stream(open(t, t.TempDir(), options())).CachedInfo().Config
		for name, subject := range map[string]string{"foreign": subject(), "genesis of another kind": events.GenesisSubject} {
			_, nc := server(t)
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), good); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := js.Publish(ctx, subject, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := journal.Open(t.Context(), nc, options()); err == nil {
				t.Errorf("%s: opened", name)
			}
		}
	})
}

// What tests of other packages use: a log that leaves nothing behind.
func TestLogInMemory(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, err := natsd.Start(natsd.Options{Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		nc, err := s.Core()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		o := options()
		o.Memory, o.MaxBytes = true, 0
		j, err := journal.Open(t.Context(), nc, o)
		if err != nil {
			t.Fatal(err)
		}
		e := entry(subject(), 0)
		if _, err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		if all, err := collect(j.Read(t.Context(), e.Subject)); err != nil || len(all) != 1 {
			t.Errorf("%v %v", all, err)
		}
	})
}

func TestF5ALogOfAnotherCoreIsRefusedWhereOneOwnsIt(t *testing.T) {
	bubble(t, func(l *log) {
		o := options()
		o.Own, o.Core = true, events.CoreToken("another")
		if _, err := journal.Open(l.ctx, l.nc, o); err == nil || !strings.Contains(err.Error(), "begun by core") {
			t.Errorf("a stranger's log: %v", err)
		}
		o.Core = core
		if _, err := journal.Open(l.ctx, l.nc, o); err != nil {
			t.Errorf("its own log: %v", err)
		}
	})
}
