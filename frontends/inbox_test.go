package frontends

import (
	"context"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

var (
	project = events.ProjectToken("/p")
	here    = place{project, events.SessionToken("core", "claude", "one")}
	there   = place{project, events.SessionToken("core", "claude", "two")}
)

func id(n int) events.ID {
	var e [10]byte
	e[8], e[9] = byte(n>>8), byte(n)
	return events.NewID(time.UnixMilli(int64(1+n)), e)
}

func asked(at place, n int, seq uint64) *events.Question {
	return &events.Question{
		ID: id(n), Project: at.project, Session: at.session, AskedAt: events.Micros(n), Seq: seq,
		Version: events.Version{Digest: events.DigestOf([]byte(`{}`)), Bytes: 2}, Args: []byte(`{}`),
	}
}

func by(fe int, seq uint64) *events.Claim {
	return &events.Claim{Frontend: id(fe), Kind: events.FrontendTUI, Principal: "uid:1", Claim: seq}
}

// truth is a core as far as its feed and its lists go.
type truth struct {
	epoch int
	n     uint64
	seq   uint64
	asked int
	open  map[events.ID]events.Question
	over  map[events.ID]events.End
	sent  []sent
}

type sent struct {
	feed mark
	live events.Live
}

func (w *truth) mark() mark { return mark{id(9000 + w.epoch), w.n} }

func (w *truth) say(live events.Live) {
	w.n++
	live.Seq = w.seq
	w.sent = append(w.sent, sent{w.mark(), live})
}

func (w *truth) ids() []events.ID {
	var list []events.ID
	for id := range w.open {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// step makes something happen.
func (w *truth) step(t *rapid.T) {
	w.seq++
	open := w.ids()
	what := rapid.IntRange(0, 9).Draw(t, "step")
	if len(open) == 0 || what < 3 {
		w.asked++
		q := *asked(here, w.asked, w.seq)
		w.open[q.ID] = q
		w.say(events.Live{Asked: &q})
		return
	}
	q := w.open[rapid.SampledFrom(open).Draw(t, "question")]
	q.Seq = w.seq
	switch {
	case what < 5:
		live := events.Live{Claimed: &events.LiveClaim{Question: q.ID, By: *by(100+what, w.seq)}}
		if q.ClaimedBy != nil {
			live.Released = q.ID
		}
		q.ClaimedBy = &live.Claimed.By
		w.open[q.ID] = q
		w.say(live)
	case what < 6:
		q.ClaimedBy = nil
		w.open[q.ID] = q
		w.say(events.Live{Released: q.ID})
	case what < 9:
		delete(w.open, q.ID)
		end := events.End{Question: q.ID, Result: events.ResultAnswered, Who: "uid:1", At: events.Micros(w.seq)}
		w.over[q.ID] = end
		w.say(events.Live{Ended: &end})
	default: // another core takes over; what is open stays open
		w.epoch++
		w.n = 0
	}
}

// page is a page of a list, at most two questions.
func (w *truth) page(cursor events.ID) (list []events.Question, next events.ID) {
	for _, id := range w.ids() {
		if id <= cursor {
			continue
		}
		if len(list) == 2 {
			return list, list[1].ID
		}
		list = append(list, w.open[id])
	}
	return list, ""
}

// lister runs lists page by page, as a client does, with anything in between.
type lister struct {
	running bool
	first   mark
	cursor  events.ID
	listed  map[events.ID]bool
}

func (l *lister) step(b *Inbox, w *truth) {
	if !l.running {
		*l = lister{running: true, listed: map[events.ID]bool{}}
		b.beginSync(here)
		return
	}
	list, next := w.page(l.cursor)
	if l.cursor == "" {
		l.first = w.mark()
	}
	if w.mark().epoch != l.first.epoch {
		l.running = false
		return
	}
	for _, q := range list {
		l.listed[q.ID] = true
	}
	b.list(here, l.first, list)
	if l.cursor = next; next == "" {
		b.endSync(here, l.first, l.listed)
		l.running = false
	}
}

// TestF2InboxConverges delivers the feed in any order, twice, late or not at
// all, between the pages of any lists: as soon as the numbers say that nothing
// is missing, the inbox is what the core has.
func TestF2InboxConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, w, l := newInbox(), &truth{open: map[events.ID]events.Question{}, over: map[events.ID]events.End{}}, &lister{}
		heads := []events.SessionHead{{Project: here.project, Session: here.session}}
		b.attach(heads, 0)
		delivered := 0
		deliver := func(i int) { b.apply(here, w.sent[i].feed, w.sent[i].live) }
		for range rapid.IntRange(1, 60).Draw(t, "length") {
			switch rapid.IntRange(0, 9).Draw(t, "action") {
			case 0, 1, 2, 3:
				w.step(t)
			case 4, 5, 6: // in order
				if delivered < len(w.sent) {
					deliver(delivered)
					delivered++
				}
			case 7: // lost
				delivered = min(delivered+1, len(w.sent))
			case 8: // early, late or again
				if len(w.sent) > 0 {
					deliver(rapid.IntRange(0, len(w.sent)-1).Draw(t, "which"))
				}
			default:
				l.step(b, w)
			}
		}
		for l.running {
			l.step(b, w)
		}
		heads[0].Feed = w.n
		for range 3 {
			b.renewed(map[events.ID][]events.SessionHead{w.mark().epoch: heads}, true, b.now())
			for len(b.behind()) > 0 {
				for l.step(b, w); l.running; {
					l.step(b, w)
				}
			}
		}
		var want []events.Question
		for _, id := range w.ids() {
			want = append(want, w.open[id])
		}
		if diff := cmp.Diff(want, b.Questions(), equateEmpty); diff != "" {
			t.Fatalf("inbox differs from the core (-core +inbox):\n%s", diff)
		}
		for _, end := range b.ended.of {
			if diff := cmp.Diff(w.over[end.end.Question], end.end); diff != "" {
				t.Fatalf("end differs (-core +inbox):\n%s", diff)
			}
		}
	})
}

var equateEmpty = cmp.FilterValues(
	func(x, y []events.Question) bool { return len(x) == 0 && len(y) == 0 },
	cmp.Comparer(func(_, _ []events.Question) bool { return true }))

// fold plays messages into an empty inbox.
func fold(b *Inbox, at place, list ...events.Live) (kinds []Kind) {
	for i, live := range list {
		for _, u := range b.apply(at, mark{id(9000), uint64(i + 1)}, live) {
			kinds = append(kinds, u.Kind)
		}
	}
	return kinds
}

func TestInboxFold(t *testing.T) {
	end := &events.End{Question: id(1), Result: events.ResultAnswered, Who: "uid:2"}
	claimed := func(fe int, seq uint64) events.Live {
		return events.Live{Seq: seq, Claimed: &events.LiveClaim{Question: id(1), By: *by(fe, seq)}}
	}
	ask := events.Live{Seq: 5, Asked: asked(here, 1, 5)}
	for _, c := range []struct {
		name   string
		feed   []events.Live
		open   bool
		holder events.ID
		kinds  []Kind
	}{
		{"B2 asked", []events.Live{ask}, true, "", []Kind{KindSession, KindAsked}},
		{"asked twice", []events.Live{ask, ask}, true, "", []Kind{KindSession, KindAsked}},
		{"F1 claimed", []events.Live{ask, claimed(7, 6)}, true, id(7), []Kind{KindSession, KindAsked, KindClaimed}},
		{"claim before question", []events.Live{claimed(7, 6), ask}, true, id(7), []Kind{KindSession, KindAsked}},
		{"claim at or below what is known", []events.Live{ask, claimed(7, 5)}, true, id(7), []Kind{KindSession, KindAsked, KindClaimed}},
		{"claim below what is known", []events.Live{ask, claimed(7, 4)}, true, "", []Kind{KindSession, KindAsked}},
		{
			"released",
			[]events.Live{ask, claimed(7, 6), {Seq: 7, Released: id(1)}},
			true, "",
			[]Kind{KindSession, KindAsked, KindClaimed, KindReleased},
		},
		{"release before claim", []events.Live{ask, {Seq: 7, Released: id(1)}, claimed(7, 6)}, true, "", []Kind{KindSession, KindAsked}},
		{"F13 taken over in one message", []events.Live{ask, claimed(7, 6), {
			Seq: 7, Released: id(1), Claimed: &events.LiveClaim{Question: id(1), By: *by(8, 7)},
		}}, true, id(8), []Kind{KindSession, KindAsked, KindClaimed, KindReleased, KindClaimed}},
		{"F1 ended for all", []events.Live{ask, {Seq: 8, Ended: end}}, false, "", []Kind{KindSession, KindAsked, KindEnded}},
		{
			"B5 nothing after the end",
			[]events.Live{ask, {Seq: 8, Ended: end}, claimed(7, 9), ask, {Seq: 8, Ended: end}},
			false, "",
			[]Kind{KindSession, KindAsked, KindEnded},
		},
		{"end before question", []events.Live{{Seq: 8, Ended: end}, ask}, false, "", []Kind{KindSession, KindEnded}},
		{
			"B7 asked and ended in one message",
			[]events.Live{{Seq: 5, Asked: asked(here, 1, 5), Ended: end}},
			false, "",
			[]Kind{KindSession, KindAsked, KindEnded},
		},
		{"question of another session", []events.Live{{Seq: 5, Asked: asked(there, 1, 5)}}, false, "", []Kind{KindSession}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newInbox()
			kinds := fold(b, here, c.feed...)
			q, open := b.Question(id(1))
			if open != c.open || holder(q.ClaimedBy) != c.holder {
				t.Errorf("open %v held by %q, want %v by %q", open, holder(q.ClaimedBy), c.open, c.holder)
			}
			if diff := cmp.Diff(c.kinds, kinds); diff != "" {
				t.Errorf("updates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInboxGapsAndEpochs(t *testing.T) {
	b := newInbox()
	b.attach([]events.SessionHead{{Project: here.project, Session: here.session}}, 0)
	sync := func(m mark) { b.beginSync(here); b.endSync(here, m, nil) }
	step := func(what string, behind bool) {
		t.Helper()
		if got := len(b.behind()) > 0; got != behind {
			t.Errorf("%s: behind %v, want %v", what, got, behind)
		}
	}
	step("before the first list", true)
	sync(mark{id(1), 4})
	step("listed", false)
	b.apply(here, mark{id(1), 5}, events.Live{})
	step("next message", false)
	b.apply(here, mark{id(1), 5}, events.Live{})
	step("same message", false)
	b.apply(here, mark{id(1), 7}, events.Live{})
	step("gap", true)
	sync(mark{id(1), 7})
	step("listed after the gap", false)
	b.apply(here, mark{id(2), 1}, events.Live{})
	step("new epoch", true)
	sync(mark{id(2), 1})
	step("listed in the new epoch", false)
	b.spoil(here, mark{id(2), 2})
	step("unreadable message", true)
	sync(mark{id(2), 2})
	step("listed past the unreadable message", false)
}

// TestB109InboxHoldsEverySession: nothing in the inbox filters by session.
func TestB109InboxHoldsEverySession(t *testing.T) {
	b := newInbox()
	fold(b, here, events.Live{Seq: 1, Asked: asked(here, 1, 1)})
	fold(b, there, events.Live{Seq: 2, Asked: asked(there, 2, 2)})
	if q := b.Questions(); len(q) != 2 || q[0].Session != here.session || q[1].Session != there.session {
		t.Fatalf("questions %v, want one of each session, oldest first", q)
	}
	b.attach([]events.SessionHead{{Project: there.project, Session: there.session}}, b.now())
	if q := b.Questions(); len(q) != 1 || q[0].Session != there.session {
		t.Fatalf("questions %v, want only the other session's once this one has gone", q)
	}
}

func TestInboxKeepsAYoungSession(t *testing.T) {
	b := newInbox()
	since := b.now()
	b.opened(events.SessionHead{Project: here.project, Session: here.session})
	b.renewed(map[events.ID][]events.SessionHead{id(1): nil}, true, since)
	if len(b.Sessions()) != 1 {
		t.Fatal("a session that opened after the renewal was sent has been forgotten")
	}
	b.renewed(map[events.ID][]events.SessionHead{id(1): nil}, true, b.now())
	if len(b.Sessions()) != 0 {
		t.Fatal("a session that no core names is still there")
	}
}

func TestInboxKeepsArguments(t *testing.T) {
	b := newInbox()
	fold(b, here, events.Live{Seq: 5, Asked: asked(here, 1, 5)})
	trimmed := *asked(here, 1, 6)
	trimmed.Args = nil
	b.list(here, mark{id(9000), 1}, []events.Question{trimmed})
	if q, _ := b.Question(id(1)); string(q.Args) != "{}" || q.Seq != 6 {
		t.Fatalf("arguments %q at %d, want those of the feed at 6", q.Args, q.Seq)
	}
}

func TestInboxIsBounded(t *testing.T) {
	b := newInbox()
	for i := range 3 * maxEnded {
		fold(b, here,
			events.Live{Seq: uint64(i), Ended: &events.End{Question: id(i)}},
			events.Live{Seq: uint64(i), Line: &events.Line{Operation: id(i), Project: here.project, Session: here.session}})
	}
	if len(b.ended.of) != maxEnded || len(b.lines.of) != maxLines || len(b.Lines()) != maxLines {
		t.Fatalf("%d ends and %d lines kept, want %d and %d", len(b.ended.of), len(b.lines.of), maxEnded, maxLines)
	}
	if _, ok := b.Ended(id(3*maxEnded - 1)); !ok {
		t.Fatal("the newest end is not there")
	}
}

func TestReceivedIsToldOnce(t *testing.T) {
	b := newInbox()
	fold(b, here, events.Live{Seq: 1, Asked: asked(here, 1, 1)})
	at, ids, attachment := b.received(256)
	if at != here || !slices.Equal(ids, []events.ID{id(1)}) {
		t.Fatalf("to report %v of %v", ids, at)
	}
	b.attach([]events.SessionHead{{Project: here.project, Session: here.session}}, b.now())
	b.told(ids, attachment) // the reply of the core before
	if _, ids, attachment = b.received(256); len(ids) != 1 {
		t.Fatal("a core that has just been attached to was not told")
	}
	b.told(ids, attachment)
	if _, ids, _ = b.received(256); len(ids) != 0 {
		t.Fatalf("%v would be told again", ids)
	}
}

func TestUpdatesCoalesce(t *testing.T) {
	u := func(k Kind, n int) Update { return Update{Kind: k, Question: id(n)} }
	for _, c := range []struct {
		name      string
		add, want []Update
	}{
		{"asked and claimed", []Update{u(KindAsked, 1), u(KindClaimed, 1)}, []Update{u(KindAsked, 1)}},
		{"asked and ended", []Update{u(KindAsked, 1), u(KindEnded, 1)}, []Update{u(KindEnded, 1)}},
		{"claimed and released", []Update{u(KindClaimed, 1), u(KindReleased, 1)}, []Update{u(KindReleased, 1)}},
		{"two questions", []Update{u(KindAsked, 1), u(KindAsked, 2), u(KindEnded, 1)}, []Update{u(KindEnded, 1), u(KindAsked, 2)}},
		{"detached and attached", []Update{{Kind: KindDetached}, {Kind: KindAttached}}, []Update{{Kind: KindAttached}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newQueue()
			q.add(c.add...)
			var got []Update
			for {
				u, ok, _ := q.take()
				if !ok {
					break
				}
				got = append(got, u)
			}
			if diff := cmp.Diff(append([]Update{{Kind: KindResynced}}, c.want...), got); diff != "" {
				t.Errorf("updates (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("nobody reads", func(t *testing.T) {
		q := newQueue()
		for i := range 10 * maxPending {
			q.add(Update{Kind: KindLine, Operation: id(i)})
		}
		if len(q.order) > maxPending+1 || len(q.pending) != len(q.order) {
			t.Fatalf("%d updates pending", len(q.order))
		}
		if u, _, _ := q.take(); u.Kind != KindResynced {
			t.Fatalf("first update %v, want resynced", u)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	dial := func(context.Context) (net.Conn, error) { return nil, io.EOF }
	for _, o := range []Options{
		{ID: id(1), Kind: events.FrontendTUI},
		{Dial: dial, Kind: events.FrontendTUI},
		{Dial: dial, ID: "x", Kind: events.FrontendTUI},
		{Dial: dial, ID: id(1)},
		{Dial: dial, ID: id(1), Kind: events.FrontendTUI, Scope: "*"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("id %q, kind %q, scope %q: accepted", o.ID, o.Kind, o.Scope)
		}
	}
	if _, err := New(Options{Dial: dial, ID: id(1), Kind: events.FrontendTUI}); err != nil {
		t.Errorf("good options: %v", err)
	}
}
