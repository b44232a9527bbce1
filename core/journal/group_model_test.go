package journal_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/core/journal"
)

// place is a message of a subject, as the model has it.
type place struct {
	seq   uint64
	entry journal.Entry
}

// TestBatchesAgreeWithTheModel races right, stale and repeated entries of a few
// subjects in rounds, with answers lost. In the model a subject is a list; of the
// new entries that expect its last message exactly one is added, and everybody
// is told who stands behind what they expected.
func TestBatchesAgreeWithTheModel(t *testing.T) {
	inBatches(t, 1, func(l *log, drop *lossy) {
		rapid.Check(t, func(t *rapid.T) {
			drop.armed.Store(0)
			least, abreast := rapid.IntRange(1, 4).Draw(t, "least"), rapid.IntRange(0, 3).Draw(t, "abreast")
			if least > 1 {
				abreast++ // else the last few would wait for ever
			}
			l.Group(least, abreast)
			model := map[string][]place{}
			subjects := []string{subject(), subject(), subject(), subject(), subject(), subject()}
			for range rapid.IntRange(1, 4).Draw(t, "rounds") {
				var entries []journal.Entry
				for range rapid.IntRange(1, 16).Draw(t, "entries") {
					entries = append(entries, drawEntry(t, subjects, model, entries))
				}
				drop.armed.Store(rapid.Int32Range(0, 2).Draw(t, "lost"))
				out := l.together(entries)
				for _, s := range subjects {
					l.compare(t, s, model, entries, out)
				}
			}
		})
	})
}

// drawEntry is an entry at the end of a subject, behind an earlier message of it,
// or one that was sent before or is being sent now.
func drawEntry(t *rapid.T, subjects []string, model map[string][]place, now []journal.Entry) journal.Entry {
	s := rapid.SampledFrom(subjects).Draw(t, "subject")
	stored := model[s]
	kind := rapid.SampledFrom([]string{"next", "next", "next", "stale", "stored", "twice"}).Draw(t, "kind")
	switch {
	case kind == "twice" && len(now) > 0:
		return rapid.SampledFrom(now).Draw(t, "twice")
	case kind == "stored" && len(stored) > 0:
		return rapid.SampledFrom(stored).Draw(t, "stored").entry
	}
	var last uint64
	if len(stored) > 0 && (kind != "stale" || len(stored) > 1) {
		behind := len(stored) - 1
		if kind == "stale" {
			behind = rapid.IntRange(0, len(stored)-2).Draw(t, "behind")
		}
		last = stored[behind].seq
	}
	e := entry(s, last)
	e.Data = []byte(e.ID)
	return e
}

// compare brings the model of a subject up to a round, and checks both the log
// and what each was told against it.
func (l *log) compare(t *rapid.T, s string, model map[string][]place, entries []journal.Entry, out []told) {
	records, err := collect(l.Read(l.ctx, s))
	if err != nil {
		t.Fatal(err)
	}
	before := model[s]
	var last uint64
	if len(before) > 0 {
		last = before[len(before)-1].seq
	}
	isNext := func(e journal.Entry) bool { return e.Subject == s && e.Expected == last }
	added := len(records) - len(before)
	if wanted := slices.ContainsFunc(entries, isNext); added != 0 && !wanted || added != 1 && wanted {
		t.Fatalf("%d messages were added to %s, wanted one: %v", added, s, wanted)
	}
	for i, p := range before {
		if records[i].Seq != p.seq || string(records[i].Data) != string(p.entry.ID) {
			t.Fatalf("message %d of %s is %+v, was %+v", i, s, records[i], p)
		}
	}
	if added == 1 {
		r := records[len(before)]
		i := slices.IndexFunc(entries, func(e journal.Entry) bool { return isNext(e) && string(e.ID) == string(r.Data) })
		if i < 0 {
			t.Fatalf("%+v was added to %s, nobody wrote it there", r, s)
		}
		model[s] = append(before, place{r.Seq, entries[i]})
	}
	for i, e := range entries {
		if e.Subject != s {
			continue
		}
		at := slices.IndexFunc(records, func(r journal.Record) bool { return r.Seq > e.Expected })
		var lost *journal.Lost
		switch r := records[at]; {
		case string(r.Data) == string(e.ID):
			if out[i].err != nil || out[i].seq != r.Seq {
				t.Fatalf("%+v is stored at %d, told %+v", e, r.Seq, out[i])
			}
		case !errors.As(out[i].err, &lost) || lost.Record.Seq != r.Seq:
			t.Fatalf("%+v lost to %d, told %+v", e, r.Seq, out[i])
		}
	}
}
