package frontdesk_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

var args = []byte(`{"command":"rm -rf build"}`)

const soon = 200 * time.Millisecond

func answer(id events.ID, claim uint64) events.Respond {
	return events.Respond{Question: id, Digest: events.DigestOf(args), Claim: claim, Answer: events.AnswerContinue, Human: true}
}

// TestB16OwnSubscription: a question is on the screens as soon as it exists,
// with nothing else going on in its session.
func TestB16OwnSubscription(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		id := r.desk.ask(main, 1, args)
		synctest.Wait()
		q, ok := s.Inbox().Question(id)
		if !ok || !bytes.Equal(q.Args, args) || q.Session != main.Session {
			t.Fatalf("question %+v, %v", q, ok)
		}
		if s.count(id) != 1 {
			t.Fatalf("announced %d times", s.count(id))
		}
		if got := r.desk.received[id]; len(got) == 0 || got[0] != s.id {
			t.Fatalf("B7: received by %v, want this screen", got)
		}
		s.stop()
		if len(r.desk.attached) != 0 {
			t.Fatal("the screen left without a goodbye")
		}
	})
}

// TestF1OneClaimOneAnswer: all show, one claims, the others see who, all close
// together, and the loser is told who, when and what.
func TestF1OneClaimOneAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, b := r.screen(1), r.screen(2)
		settle(soon)
		id := r.desk.ask(main, 1, args)
		synctest.Wait()
		claim, err := a.Claim(r.ctx, id)
		must(t, err)
		synctest.Wait()
		q, _ := b.Inbox().Question(id)
		if q.ClaimedBy == nil || q.ClaimedBy.Frontend != a.id || q.ClaimedBy.Principal != "uid:1" {
			t.Fatalf("F4: the other screen sees %+v", q.ClaimedBy)
		}
		var refused *events.Refused
		if _, err := b.Claim(r.ctx, id); !errors.As(err, &refused) || refused.Code != events.RejectNotClaimer {
			t.Fatalf("B3: second claim: %v", err)
		}
		must(t, a.Release(r.ctx, id, claim))
		synctest.Wait()
		if q, _ := b.Inbox().Question(id); q.ClaimedBy != nil {
			t.Fatalf("still held by %+v", q.ClaimedBy)
		}
		claim, err = a.Claim(r.ctx, id)
		must(t, err)
		_, err = a.Answer(r.ctx, answer(id, claim))
		must(t, err)
		if _, open := a.Inbox().Question(id); open {
			t.Fatal("still open on the screen that answered")
		}
		_, err = b.Answer(r.ctx, answer(id, 0))
		if !errors.As(err, &refused) || refused.Code != events.RejectAlreadyAnswered || refused.Who != "uid:1" ||
			refused.Answer != events.AnswerContinue || refused.When == 0 {
			t.Fatalf("the loser hears %+v", err)
		}
		synctest.Wait()
		for _, s := range []*screen{a, b} {
			if e, ok := s.Inbox().Ended(id); !ok || e.Who != "uid:1" || len(s.Inbox().Questions()) != 0 {
				t.Errorf("end %+v %v, open %v", e, ok, s.Inbox().Questions())
			}
		}
		a.stop()
		b.stop()
	})
}

// TestF2LateFrontend: one that attaches late sees what is open within 1 s, page
// by page, and reports it as received.
func TestF2LateFrontend(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		for n := range 50 {
			r.desk.ask(main, 1+n, args)
		}
		s := r.screen(1)
		settle(time.Second)
		if got := len(s.Inbox().Questions()); got != 50 || len(r.desk.received) != 50 {
			t.Fatalf("%d questions shown, %d received, want 50", got, len(r.desk.received))
		}
		s.stop()
	})
}

// TestHAND05ListWhilePublishing is HAND-05 (iv): a frontend lists while a
// question is published, 1,000 times.
func TestHAND05ListWhilePublishing(t *testing.T) {
	const rounds, screens = 1000, 10
	bubble(t, func(t *testing.T, r *rig) {
		for round := range rounds / screens {
			var on []*screen
			var publish sync.WaitGroup
			for range screens {
				on = append(on, r.screen(1))
			}
			ids := make([]events.ID, screens)
			for i := range ids {
				publish.Go(func() {
					// At the moment of dialling, or at the one of listing: the
					// answers to a hello are gathered for 100 ms.
					<-time.After(time.Duration(rand.IntN(2)) * 100 * time.Millisecond)
					for range rand.IntN(200) {
						runtime.Gosched()
					}
					ids[i] = r.desk.ask(main, 1+round*screens+i, args)
				})
			}
			publish.Wait()
			settle(soon)
			for _, s := range on {
				if n := len(s.Inbox().Questions()); n != screens {
					t.Fatalf("round %d: %d questions, want %d", round, n, screens)
				}
				for _, id := range ids {
					if n := s.count(id); n != 1 {
						t.Fatalf("round %d: question shown %d times, want once", round, n)
					}
				}
				s.stop()
			}
			for _, id := range ids {
				r.desk.withdraw(id)
			}
		}
	})
}

// TestF2Reconnect: a lost connection is noticed, made again, and what happened
// meanwhile is caught up with.
func TestF2Reconnect(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		gone, stays := r.desk.ask(main, 1, args), r.desk.ask(main, 2, args)
		synctest.Wait()
		s.wire.cut(true)
		settle(soon)
		if s.Inbox().Attached() || !s.saw(frontends.KindDetached) {
			t.Fatal("B13: the loss was not noticed")
		}
		if len(s.Inbox().Questions()) != 2 {
			t.Fatal("what was known must stay")
		}
		r.desk.withdraw(gone)
		fresh := r.desk.ask(main, 3, args)
		s.wire.up()
		settle(soon)
		if !s.Inbox().Attached() {
			t.Fatal("not attached again")
		}
		for id, want := range map[events.ID]bool{gone: false, stays: true, fresh: true} {
			if _, open := s.Inbox().Question(id); open != want {
				t.Errorf("question %s open %v, want %v", id, open, want)
			}
		}
		if e, ok := s.Inbox().Ended(gone); !ok || e.Reason != events.EndInterrupted {
			t.Errorf("end of the question that went meanwhile: %+v %v", e, ok)
		}
		if got := r.desk.received[stays]; len(got) < 2 {
			t.Errorf("reported as received %d times, want once per connection at least", len(got))
		}
		s.stop()
	})
}

// TestF3AnotherCore: a core that takes over on the same server has another
// epoch and knows no frontend.
func TestF3AnotherCore(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		r.desk.ask(main, 1, args)
		synctest.Wait()
		r.desk.restart(2)
		id := r.desk.ask(main, 2, args)
		settle(soon)
		if len(s.Inbox().Questions()) != 2 || len(r.desk.attached) != 1 || len(r.desk.received[id]) == 0 {
			t.Fatalf("%d questions, %d attached, received %v", len(s.Inbox().Questions()), len(r.desk.attached), r.desk.received[id])
		}
		r.desk.restart(3) // and nothing is said: the renewal finds out
		settle(6 * time.Second)
		if len(r.desk.attached) != 1 || len(r.desk.received) != 2 {
			t.Fatalf("%d attached, %d received", len(r.desk.attached), len(r.desk.received))
		}
		s.stop()
	})
}

// TestTwoCores: every core of a server answers; what one does not know the
// other may, and one that goes takes its sessions along.
func TestTwoCores(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		second := newCore(t, r.server, "second", 2)
		defer second.stop()
		second.session(child, "")
		ours, theirs := r.desk.ask(main, 1, args), second.desk.ask(child, 2, args)
		s := r.screen(1)
		settle(soon)
		if got := len(s.Inbox().Questions()); got != 2 || len(r.desk.attached) != 1 || len(second.desk.attached) != 1 {
			t.Fatalf("%d questions, attached to %d and %d", got, len(r.desk.attached), len(second.desk.attached))
		}
		found, err := s.Find(r.ctx, events.Find{Question: theirs})
		must(t, err)
		if found.Session != child.Session {
			t.Fatalf("found %+v", found)
		}
		var refused *events.Refused
		if _, err := s.Find(r.ctx, events.Find{Question: newID(99)}); !errors.As(err, &refused) || refused.Code != events.RejectUnknownQuestion {
			t.Fatalf("find what nobody has: %v", err)
		}
		second.stop()
		settle(20 * time.Second)
		if got := s.Inbox().Questions(); len(got) != 1 || got[0].ID != ours || len(s.Inbox().Sessions()) != 1 {
			t.Fatalf("after one core went: %v in %v", got, s.Inbox().Sessions())
		}
		s.stop()
	})
}

// TestLostFeed: messages that never arrive are found by their numbers, at the
// next message or at the next renewal.
func TestLostFeed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		first := r.desk.ask(main, 1, args)
		synctest.Wait()
		lost := func(f func()) {
			r.desk.mu.Lock()
			r.desk.mute = true
			r.desk.mu.Unlock()
			f()
			r.desk.mu.Lock()
			r.desk.mute = false
			r.desk.mu.Unlock()
		}
		lost(func() { r.desk.ask(main, 2, args); r.desk.withdraw(first) })
		r.desk.ask(main, 3, args)
		settle(soon)
		if got := s.Inbox().Questions(); len(got) != 2 || got[0].ID != newID(2) {
			t.Fatalf("after a gap: %v", got)
		}
		lost(func() { r.desk.ask(main, 4, args) })
		settle(6 * time.Second)
		if got := s.Inbox().Questions(); len(got) != 3 {
			t.Fatalf("after a lost last message: %d questions, want 3", len(got))
		}
		s.stop()
	})
}

// TestB109Scopes: scope all shows every session, a session's scope shows that
// session and its children, and nothing else.
func TestB109Scopes(t *testing.T) {
	other := engine.Place{Project: events.ProjectToken("/q"), Session: events.SessionToken("core", "gemini", "x")}
	for _, c := range []struct {
		scope string
		want  int
	}{{events.DoorAll, 3}, {string(main.Session), 2}, {string(project), 2}, {string(other.Session), 1}} {
		t.Run(c.scope, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				s := r.screen(1, func(o *frontends.Options) { o.Scope = c.scope })
				settle(soon)
				r.session(child, main.Session)
				r.session(other, "")
				for i, p := range []engine.Place{main, child, other} {
					r.desk.ask(p, 1+i, args)
				}
				settle(soon)
				if got := len(s.Inbox().Questions()); got != c.want {
					t.Fatalf("%d questions, want %d", got, c.want)
				}
				id := r.desk.ask(child, 7, args)
				synctest.Wait()
				if _, ok := s.Inbox().Question(id); ok != (c.want > 1) {
					t.Fatalf("a child's question shown: %v", ok)
				}
				heads, err := s.Sessions(r.ctx)
				must(t, err)
				if len(heads) != c.want || len(s.Inbox().Sessions()) != c.want {
					t.Fatalf("%d sessions asked for, %d in the inbox, want %d", len(heads), len(s.Inbox().Sessions()), c.want)
				}
				s.stop()
			})
		})
	}
}

// TestHAND05OwnSession is HAND-05 (v): sessions come and take turns, and a
// question stands only in its own.
func TestHAND05OwnSession(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.session(child, main.Session)
		s := r.screen(1, func(o *frontends.Options) { o.Scope = string(child.Session) })
		settle(soon)
		for n := range 100 {
			at := []engine.Place{main, child}[n%2]
			id := r.desk.ask(at, 1+n, args)
			synctest.Wait()
			if q, ok := s.Inbox().Question(id); ok != (at == child) || ok && q.Session != child.Session {
				t.Fatalf("round %d: shown %v in %s", n, ok, q.Session)
			}
		}
		s.stop()
	})
}
