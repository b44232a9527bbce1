package frontdesk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
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
					time.Sleep(time.Duration(rand.IntN(2)) * 100 * time.Millisecond)
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

// TestLostReply: an answer whose reply is lost is given again and counts once.
func TestLostReply(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		id := r.desk.ask(main, 1, args)
		synctest.Wait()
		times := 0
		r.desk.hooks.respond = func(events.ID) {
			if times++; times == 1 {
				s.wire.cut(false)
			}
		}
		ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
		defer cancel()
		if _, err := s.Answer(ctx, answer(id, 0)); err != nil {
			t.Fatalf("answer: %v", err)
		}
		if r.desk.answers != 1 || times != 2 {
			t.Fatalf("%d answers in %d attempts, want 1 in 2", r.desk.answers, times)
		}
		s.stop()
	})
}

// TestNoCore: calls wait for a core only as long as their context.
func TestNoCore(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		id := r.desk.ask(main, 1, args)
		synctest.Wait()
		s.wire.cut(true)
		settle(soon)
		ctx, cancel := context.WithTimeout(r.ctx, 3*time.Second)
		defer cancel()
		if _, err := s.Answer(ctx, answer(id, 0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("answer without a core: %v", err)
		}
		s.stop()
		if _, err := s.Claim(r.ctx, id); !errors.Is(err, frontends.ErrClosed) {
			t.Fatalf("claim after the end: %v", err)
		}
	})
}

// TestSlowConsumer: somebody who does not read updates holds up nobody and
// finds the final state in the inbox.
func TestSlowConsumer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		entered, goOn := make(chan struct{}), make(chan struct{})
		var last frontends.Kind
		var slow sync.WaitGroup
		slow.Go(func() {
			first := true
			for u, err := range s.Updates(r.ctx) {
				if err != nil {
					return
				}
				if first {
					close(entered)
					<-goOn
					first = false
				}
				if last = u.Kind; u.Question == newID(6000) {
					return
				}
			}
		})
		<-entered
		for n := range 6000 {
			id := r.desk.ask(main, 1+n, args)
			if n%2 == 0 {
				r.desk.withdraw(id)
			}
		}
		settle(soon)
		if got := len(s.Inbox().Questions()); got != 3000 {
			t.Fatalf("%d questions, want 3000", got)
		}
		close(goOn)
		synctest.Wait()
		if got := len(s.Inbox().Questions()); got != 3000 || last == "" {
			t.Fatalf("%d questions, last update %q", got, last)
		}
		s.stop()
		slow.Wait()
	})
}

// TestF7Arguments: arguments that did not fit a page are fetched in chunks and
// checked against the digest that is asked about.
func TestF7Arguments(t *testing.T) {
	long := []byte(`"` + strings.Repeat("x", 900_000) + `"`)
	bubble(t, func(t *testing.T, r *rig) {
		id := r.desk.ask(main, 1, long)
		synctest.Wait()
		s := r.screen(1)
		settle(soon)
		if q, ok := s.Inbox().Question(id); !ok || q.Args != nil || q.Version.Bytes != len(long) {
			t.Fatalf("question %v with %d bytes", ok, len(q.Args))
		}
		got, err := s.Args(r.ctx, id, 0)
		must(t, err)
		if !bytes.Equal(got, long) {
			t.Fatalf("%d bytes, want %d", len(got), len(long))
		}
		if q, _ := s.Inbox().Question(id); !bytes.Equal(q.Args, long) {
			t.Fatal("the inbox has not kept them")
		}
		forged := r.desk.ask(main, 2, long)
		r.desk.args[forged] = args
		synctest.Wait()
		second := r.screen(2)
		settle(soon)
		if _, err := second.Args(r.ctx, forged, 0); err == nil {
			t.Fatal("arguments that do not fit the digest were accepted")
		}
		must(t, s.Drawn(r.ctx, id, events.DigestOf(long)))
		if len(r.desk.drawn) != 1 {
			t.Fatalf("drawn %v", r.desk.drawn)
		}
		s.stop()
		second.stop()
	})
}

// TestQuestionBeyondThePayload: a question that no message can hold still
// reaches the screens, without what did not fit.
func TestQuestionBeyondThePayload(t *testing.T) {
	huge := []byte(`"` + strings.Repeat("x", 17<<20) + `"`)
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		id := r.desk.ask(main, 1, huge)
		synctest.Wait()
		if q, ok := s.Inbox().Question(id); !ok || q.Args != nil || q.Version.Bytes != len(huge) {
			t.Fatalf("question %v with %d bytes", ok, len(q.Args))
		}
		var refused *events.Refused
		big := answer(id, 0)
		big.Text = string(huge)
		if _, err := s.Answer(r.ctx, big); !errors.As(err, &refused) || refused.Code != events.RejectMalformed {
			t.Fatalf("an answer that no message can hold: %v", err)
		}
		s.stop()
	})
}

// TestInputRenewsClaims: only what a person did within 30 s is renewed.
func TestInputRenewsClaims(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(time.Minute)
		if r.desk.inputs != 0 {
			t.Fatal("a renewal spoke of input that nobody gave")
		}
		s.Input()
		settle(time.Minute)
		if r.desk.inputs < 5 || r.desk.inputs > 7 {
			t.Fatalf("%d renewals with input in a minute, want about 6", r.desk.inputs)
		}
		s.stop()
	})
}

// TestF4ForgedID: a frontend whose connection has another id than its subjects
// is refused at once, by the server.
func TestF4ForgedID(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := &wire{r: r, uid: 1, wrap: func(c net.Conn) net.Conn { return renamed{c, newID(77), newID(78)} }}
		c, err := frontends.New(frontends.Options{Dial: w.dial, ID: newID(77), Kind: events.FrontendTUI})
		must(t, err)
		var refused *events.Refused
		if err := c.Run(r.ctx); !errors.As(err, &refused) || refused.Code != events.RejectNotAllowed {
			t.Fatalf("ran until %v", err)
		}
		if len(r.desk.attached) != 0 {
			t.Fatal("attached all the same")
		}
	})
}

// renamed connects under another id than its user believes.
type renamed struct {
	net.Conn
	from, to events.ID
}

func (c renamed) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("CONNECT ")) {
		b = bytes.ReplaceAll(b, []byte(c.from), []byte(c.to))
	}
	return c.Conn.Write(b)
}

// TestSecondConnectionWithAnID: the one that is there stays, the other one is
// told why it may not come.
func TestSecondConnectionWithAnID(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		w := &wire{r: r, uid: 2}
		c, err := frontends.New(frontends.Options{Dial: w.dial, ID: s.id, Kind: events.FrontendTUI})
		must(t, err)
		begun := time.Now()
		if err := c.Run(r.ctx); err == nil || time.Since(begun) > 5*time.Second {
			t.Fatalf("ran %s until %v", time.Since(begun), err)
		}
		if !s.Inbox().Attached() {
			t.Fatal("the first one was thrown out")
		}
		s.stop()
	})
}

// TestGarbageFeed: what cannot be read on a feed loses nothing.
func TestGarbageFeed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		for i, m := range garbage() {
			must(t, r.core.Publish(events.AnnounceSubject, m))
			must(t, r.core.Publish(events.LiveSubject(main.Project, main.Session), m))
			must(t, r.core.Publish(events.LiveSubject("x", "y"), m))
			r.desk.mu.Lock()
			head := r.desk.sessions[main]
			head.Feed++
			number := fmt.Sprintf("%s.%d", r.desk.epoch, head.Feed)
			r.desk.mu.Unlock()
			must(t, r.core.PublishMsg(live(number, m)))
			r.desk.ask(main, 1+i, args)
		}
		settle(soon)
		if got := len(s.Inbox().Questions()); got != len(garbage()) {
			t.Fatalf("%d questions, want %d", got, len(garbage()))
		}
		s.stop()
	})
}
