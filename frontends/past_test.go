package frontends

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

func line(n int, state events.LineState) events.Line {
	return events.Line{Operation: id(n), Project: here.project, Session: here.session, State: state}
}

func run(n int, state events.RunState) events.RunLine {
	return events.RunLine{Run: id(n), Project: here.project, Session: here.session, State: state}
}

// annals are a core as far as its history goes: runs that change, and what the feed
// says of each change.
type annals struct {
	seq   uint64
	order []events.ID
	now   map[events.ID]events.RunLine
	sent  []sent
}

func (a *annals) step(t *rapid.T) {
	a.seq++
	n := rapid.IntRange(1, len(a.order)+1).Draw(t, "run")
	if n > len(a.order) {
		a.order = append(a.order, id(n))
	}
	r := run(n, events.RunRunning)
	r.Micros = int64(a.seq)
	a.now[r.Run] = r
	a.sent = append(a.sent, sent{mark{id(9000), uint64(len(a.sent) + 1)}, events.Live{Seq: a.seq, Runs: []events.RunLine{r}}})
}

func (a *annals) history() (h events.HistoryReply) {
	for _, id := range a.order {
		h.Runs = append(h.Runs, a.now[id])
	}
	return h
}

// TestF11HistoryConverges asks a core for its history while the feed goes on. What
// was lost before is found in it, and nothing in it undoes what the feed has said
// since it was asked for.
func TestF11HistoryConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, a := newInbox(), &annals{now: map[events.ID]events.RunLine{}}
		delivered := 0
		deliver := func() {
			if delivered < len(a.sent) {
				b.apply(here, a.sent[delivered].feed, a.sent[delivered].live)
				delivered++
			}
		}
		ask := func(mayLose bool) {
			since := b.beginRecall()
			var told *events.HistoryReply
			for range rapid.IntRange(0, 20).Draw(t, "meanwhile") {
				switch what := rapid.IntRange(0, 6).Draw(t, "action"); {
				case what < 3:
					a.step(t)
				case what < 5:
					deliver()
				case what == 5 && mayLose:
					delivered = min(delivered+1, len(a.sent))
				case told == nil:
					h := a.history()
					told = &h
				}
			}
			if told == nil {
				h := a.history()
				told = &h
			}
			for range rapid.IntRange(0, 5).Draw(t, "on its way") {
				deliver()
			}
			b.recalled(*told, since)
		}
		for range rapid.IntRange(0, 3).Draw(t, "asked before") {
			ask(true)
		}
		ask(false)
		for delivered < len(a.sent) {
			deliver()
		}
		got := map[events.ID]events.RunLine{}
		for _, r := range b.Runs() {
			got[r.Run] = r
		}
		if diff := cmp.Diff(a.now, got); diff != "" || len(got) != len(b.Runs()) {
			t.Fatalf("the inbox differs from the core (-core +inbox):\n%s", diff)
		}
	})
}

func TestF11History(t *testing.T) {
	states := func(b *Inbox) (all []string) {
		for _, l := range b.Lines() {
			all = append(all, string(l.Operation[24:])+" "+string(l.State))
		}
		return all
	}
	want := func(t *testing.T, b *Inbox, lines ...events.Line) {
		t.Helper()
		w := newInbox()
		for i, l := range lines {
			fold(w, here, events.Live{Seq: uint64(i), Line: &l})
		}
		if diff := cmp.Diff(states(w), states(b)); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	}
	say := func(b *Inbox, seq uint64, l events.Line) { fold(b, here, events.Live{Seq: seq, Line: &l}) }
	t.Run("F11 what was heard since it was asked for stays, and stands behind it", func(t *testing.T) {
		b := newInbox()
		since := b.beginRecall()
		say(b, 9, line(3, events.LineFinished))
		say(b, 10, line(4, events.LineCommitted))
		out := b.recalled(events.HistoryReply{Lines: []events.Line{
			line(1, events.LineAborted), line(2, events.LineFinished), line(3, events.LineCommitted),
		}}, since)
		want(t, b, line(1, events.LineAborted), line(2, events.LineFinished), line(3, events.LineFinished), line(4, events.LineCommitted))
		if diff := cmp.Diff([]Update{
			{Kind: KindLine, Operation: id(1), Session: here.session}, {Kind: KindLine, Operation: id(2), Session: here.session},
		}, out); diff != "" {
			t.Errorf("updates (-want +got):\n%s", diff)
		}
	})
	t.Run("F11 what was heard before it is replaced, and what came between is put between", func(t *testing.T) {
		b := newInbox()
		say(b, 1, line(1, events.LineCommitted))
		say(b, 2, line(2, events.LineFinished))
		say(b, 3, line(5, events.LineCommitted))
		b.recalled(events.HistoryReply{Lines: []events.Line{
			line(1, events.LineFinished), line(3, events.LineRefused), line(4, events.LineRefused), line(5, events.LineFinished), line(6, events.LineRefused),
		}}, b.beginRecall())
		want(t, b, line(1, events.LineFinished), line(2, events.LineFinished), line(3, events.LineRefused), line(4, events.LineRefused),
			line(5, events.LineFinished), line(6, events.LineRefused))
		say(b, 2, line(1, events.LineDelivered))
		if b.Lines()[0].State != events.LineDelivered {
			t.Error("what the feed says next does not count any more")
		}
	})
	t.Run("F11 it is bounded, and the oldest go", func(t *testing.T) {
		b := newInbox()
		for n := range maxLines {
			say(b, uint64(n), line(1000+n, events.LineFinished))
		}
		b.recalled(events.HistoryReply{Lines: []events.Line{line(1, events.LineFinished), line(1000, events.LineRefused), line(3000, events.LineFinished)}}, b.beginRecall())
		if len(b.Lines()) != maxLines || len(b.lines.of) != maxLines {
			t.Fatalf("%d lines, %d kept", len(b.Lines()), len(b.lines.of))
		}
		if got := b.Lines(); got[0].Operation != id(1001) || got[maxLines-1].Operation != id(3000) {
			t.Errorf("from %s to %s", got[0].Operation, got[maxLines-1].Operation)
		}
	})
	t.Run("F11 a gap of the feed asks for it again", func(t *testing.T) {
		head := events.SessionHead{Project: here.project, Session: here.session}
		sync := func(b *Inbox, n uint64) { b.beginSync(here); b.endSync(here, mark{id(1), n}, nil) }
		for name, c := range map[string]struct {
			happens func(b *Inbox)
			missed  bool
		}{
			"nothing":              {func(*Inbox) {}, false},
			"the next message":     {func(b *Inbox) { b.apply(here, mark{id(1), 5}, events.Live{}) }, false},
			"a later message":      {func(b *Inbox) { b.apply(here, mark{id(1), 6}, events.Live{}) }, true},
			"an unreadable one":    {func(b *Inbox) { b.spoil(here, mark{id(1), 5}) }, true},
			"a renewal":            {func(b *Inbox) { head.Feed = 4; renew(b, head) }, false},
			"a renewal that knows": {func(b *Inbox) { head.Feed = 5; renew(b, head) }, true},
			"a list that is older": {func(b *Inbox) {
				b.beginSync(here)
				b.apply(here, mark{id(1), 8}, events.Live{})
				b.endSync(here, mark{id(1), 6}, nil)
			}, true},
			"a new attachment": {func(b *Inbox) { b.attach([]events.SessionHead{head}, b.now()) }, true},
		} {
			b := newInbox()
			b.attach([]events.SessionHead{head}, 0)
			sync(b, 4)
			b.beginRecall()
			if c.happens(b); b.hasMissed() != c.missed {
				t.Errorf("%s: asks again: %v, want %v", name, b.hasMissed(), c.missed)
			}
		}
	})
}

func renew(b *Inbox, head events.SessionHead) {
	b.renewed(map[events.ID][]events.SessionHead{id(1): {head}}, true, b.now())
}

func TestF11RunsAreFolded(t *testing.T) {
	b := newInbox()
	kinds := fold(b, here,
		events.Live{Seq: 1, Runs: []events.RunLine{run(1, events.RunRunning), run(2, events.RunRunning)}},
		events.Live{Seq: 2, Runs: []events.RunLine{run(1, events.RunAsking)}},
		events.Live{Seq: 1, Runs: []events.RunLine{run(1, events.RunRunning)}},
		events.Live{Seq: 3, Runs: []events.RunLine{run(1, events.RunEnded), {Run: id(4), Session: there.session}, {Session: here.session}}})
	if diff := cmp.Diff([]events.RunLine{run(1, events.RunEnded), run(2, events.RunRunning)}, b.Runs()); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Kind{KindSession, KindRun, KindRun, KindRun, KindRun}, kinds); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
	for n := range 2 * maxRuns {
		fold(b, here, events.Live{Seq: 9, Runs: []events.RunLine{run(10+n, events.RunEnded)}})
	}
	if got := slices.Collect(maps.Keys(b.runs.of)); len(got) != maxRuns || len(b.Runs()) != maxRuns {
		t.Errorf("%d runs kept, want %d", len(got), maxRuns)
	}
}
