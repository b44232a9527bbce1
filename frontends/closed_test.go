package frontends

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// TestB107ClosedSession: with a session's end its questions are over, whatever
// was heard of them, and what comes late brings none of them back.
func TestB107ClosedSession(t *testing.T) {
	closed := &events.SessionHead{Project: here.project, Session: here.session, Closed: true}
	begin := func() *Inbox {
		b := newInbox()
		b.attach([]events.SessionHead{{Project: here.project, Session: here.session}}, 0)
		fold(b, here, events.Live{Seq: 1, Asked: asked(here, 1, 1)})
		fold(b, there, events.Live{Seq: 2, Asked: asked(there, 2, 2)})
		return b
	}
	gone := func(t *testing.T, b *Inbox) {
		t.Helper()
		if q := b.Questions(); len(q) != 1 || q[0].Session != there.session {
			t.Errorf("questions %v, want only the other session's", q)
		}
		if s := b.Sessions(); len(s) != 1 || s[0].Session != there.session {
			t.Errorf("sessions %v, want only the other one", s)
		}
		if len(b.behind()) != 1 {
			t.Errorf("behind: %v, want only the other session", b.behind())
		}
	}
	t.Run("B107 it says so as the last message of its feed", func(t *testing.T) {
		b := begin()
		out := b.apply(here, mark{id(1), 9}, events.Live{Session: closed})
		if diff := cmp.Diff([]Update{
			{Kind: KindEnded, Question: id(1), Session: here.session}, {Kind: KindSession, Session: here.session},
		}, out); diff != "" {
			t.Errorf("updates (-want +got):\n%s", diff)
		}
		gone(t, b)
	})
	t.Run("B107 a renewal no longer lists it", func(t *testing.T) {
		b := begin()
		other := []events.SessionHead{{Project: there.project, Session: there.session}}
		b.renewed(map[events.ID][]events.SessionHead{id(1): other}, true, b.now())
		gone(t, b)
	})
	t.Run("B107 a list that was on its way does not bring its questions back", func(t *testing.T) {
		b := begin()
		b.beginSync(here)
		b.apply(here, mark{id(1), 9}, events.Live{Session: closed})
		b.list(here, mark{id(1), 8}, []events.Question{*asked(here, 1, 1)})
		b.endSync(here, mark{id(1), 8}, map[events.ID]bool{id(1): true})
		gone(t, b)
	})
	t.Run("B94 one that opens again has a feed of its own", func(t *testing.T) {
		b := begin()
		b.apply(here, mark{id(1), 9}, events.Live{Session: closed})
		b.apply(here, mark{id(1), 10}, events.Live{Session: &events.SessionHead{Project: here.project, Session: here.session}})
		b.apply(here, mark{id(1), 11}, events.Live{Seq: 7, Asked: asked(here, 3, 7)})
		if q, ok := b.Question(id(3)); !ok || q.Session != here.session || len(b.Sessions()) != 2 {
			t.Errorf("%v %v", ok, b.Sessions())
		}
		if len(b.behind()) != 2 {
			t.Error("what it missed is not listed")
		}
	})
}
