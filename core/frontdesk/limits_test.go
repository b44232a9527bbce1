package frontdesk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
)

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

// TestF7LongQuestionsInTheFeed: what is long is fetched by who shows it, and is not
// kept for each frontend that does not read.
func TestF7LongQuestionsInTheFeed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		s := r.screen(1)
		settle(soon)
		for n, size := range []int{200 << 10, 300 << 10} {
			id := r.desk.ask(main, n+1, []byte(`"`+strings.Repeat("x", size)+`"`))
			synctest.Wait()
			if q, ok := s.Inbox().Question(id); !ok || (q.Args == nil) != (size > 256<<10) {
				t.Errorf("%d bytes: known %v, with %d bytes", size, ok, len(q.Args))
			}
		}
		s.stop()
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
