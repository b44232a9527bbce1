package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

func TestClaims(t *testing.T) {
	bubble(t, "B3 F1 one of twenty claims at once wins, the others hear who", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		first := r.attach("uid:1")
		c := r.propose(`{}`)
		q := first.question()
		var wg sync.WaitGroup
		replies := make([]events.ClaimReply, 20)
		for i := range replies {
			s := r.attach(fmt.Sprintf("uid:%d", 100+i))
			wg.Go(func() {
				replies[i] = r.eng.Claim(context.Background(), s.f, place(q), events.ClaimCommand{Question: q.ID})
			})
		}
		wg.Wait()
		won := 0
		for _, reply := range replies {
			switch {
			case reply.Claim != 0:
				won++
			case reply.Refused.Code != events.RejectNotClaimer || reply.Refused.Who == "":
				t.Errorf("a loser heard %s", toJSON(reply.Refused))
			}
		}
		if won != 1 {
			t.Fatalf("%d claims won", won)
		}
		r.eng.Gone(c.p.Operation, c.p.Secret, events.EndAgentGone)
		<-c.result
	})
	bubble(t, "F13 the same person's other screen takes over by engaging, and the first cannot answer any more", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		one, two := r.attach("uid:1"), r.attach("uid:1")
		c := r.propose(`{}`)
		q := one.question()
		a := r.eng.Claim(t.Context(), one.f, place(q), events.ClaimCommand{Question: q.ID})
		b := r.eng.Claim(t.Context(), two.f, place(q), events.ClaimCommand{Question: q.ID})
		if a.Claim == 0 || b.Claim == 0 || a.Claim == b.Claim {
			t.Fatalf("%s %s", toJSON(a), toJSON(b))
		}
		stale := r.eng.Respond(t.Context(), one.f, place(q), events.Respond{
			Question: q.ID, Digest: q.Version.Digest, Claim: a.Claim, Answer: events.AnswerContinue, Human: true,
		})
		if stale.Refused == nil || stale.Refused.Code != events.RejectNotClaimer {
			t.Fatalf("the first screen's answer: %s", toJSON(stale))
		}
		good := r.eng.Respond(t.Context(), two.f, place(q), events.Respond{
			Question: q.ID, Digest: q.Version.Digest, Claim: b.Claim, Answer: events.AnswerCancel, Human: true,
		})
		if good.Refused != nil {
			t.Fatal(good.Refused)
		}
		if v := c.verdict(); v.Code != events.CodeDeclined {
			t.Fatal(toJSON(v))
		}
	})
	bubble(t, "F2 a claim without input lapses within its lease, and another may claim", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		one, two := r.attach("uid:1"), r.attach("uid:2")
		keep(t, two)
		c := r.propose(`{}`)
		q := two.question()
		r.eng.Claim(t.Context(), one.f, place(q), events.ClaimCommand{Question: q.ID})
		// one is killed: it renews nothing.
		pass(engine.FrontendLease + time.Second)
		again := r.eng.Claim(t.Context(), two.f, place(q), events.ClaimCommand{Question: q.ID})
		if again.Refused != nil {
			t.Fatal(again.Refused)
		}
		ok := r.eng.Respond(t.Context(), two.f, place(q), events.Respond{
			Question: q.ID, Digest: q.Version.Digest, Claim: again.Claim, Answer: events.AnswerContinue, Human: true,
		})
		if ok.Refused != nil || !c.verdict().Allow {
			t.Fatal(toJSON(ok))
		}
	})
	bubble(t, "F2 a claimer that is there but idle loses the claim after its lease", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		one := r.attach("uid:1")
		c := r.propose(`{}`)
		q := one.question()
		r.eng.Claim(t.Context(), one.f, place(q), events.ClaimCommand{Question: q.ID})
		for range 8 {
			pass(5 * time.Second)
			r.eng.Renew(one.f, events.DoorAll, events.Renew{})
		}
		if now := one.question(); now.ClaimedBy != nil {
			t.Fatalf("still claimed after 40 s without input: %s", toJSON(now.ClaimedBy))
		}
		r.eng.Gone(c.p.Operation, c.p.Secret, events.EndAgentGone)
		<-c.result
	})
}

func TestAnswers(t *testing.T) {
	bubble(t, "B4 B5 B80 F9 wrong and late answers get a typed no, change nothing and are recorded", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		one, two := r.attach("uid:1"), r.attach("uid:2")
		c := r.propose(`{}`)
		q := one.question()
		give := func(s *screen, change func(*events.Respond)) *events.Refused {
			a := events.Respond{Question: q.ID, Digest: q.Version.Digest, Answer: events.AnswerContinue, Human: true}
			change(&a)
			return r.eng.Respond(t.Context(), s.f, place(q), a).Refused
		}
		for name, f := range map[events.Reject]func(*events.Respond){
			events.RejectStaleVersion:    func(a *events.Respond) { a.Digest = events.DigestOf([]byte("other")) },
			events.RejectNotAllowed:      func(a *events.Respond) { a.Human = false },
			events.RejectNotClaimer:      func(a *events.Respond) { a.Claim = 99 },
			events.RejectUnknownQuestion: func(a *events.Respond) { a.Question = engine.NewID(time.Now()) },
		} {
			if got := give(one, f); got == nil || got.Code != name {
				t.Errorf("%s: got %v", name, got)
			}
		}
		if got := give(one, func(a *events.Respond) { a.Answer = events.AnswerOnce }); got == nil || got.Code != events.RejectNotAllowed {
			t.Errorf("an answer of the other gate: %v", got)
		}
		if got := give(two, func(a *events.Respond) { a.Answer = events.AnswerCancel; a.Text = "use the mirror" }); got != nil {
			t.Fatal(got)
		}
		late := give(one, func(*events.Respond) {})
		if late == nil || late.Code != events.RejectAlreadyAnswered || late.Who != "uid:2" || late.Answer != events.AnswerCancel || late.When == 0 {
			t.Fatalf("the late answer heard %s", toJSON(late))
		}
		if same := give(two, func(a *events.Respond) { a.Answer = events.AnswerCancel; a.Text = "use the mirror" }); same != nil {
			t.Fatalf("the same answer again: %v", same)
		}
		v := c.verdict()
		if v.Code != events.CodeDeclined || !contains(v.Message, "use the mirror") {
			t.Fatal(toJSON(v))
		}
		if n := count[events.AnswerRejected](r.events(v.Operation)); n != 5 {
			t.Fatalf("%d rejected answers recorded, want 5", n)
		}
	})
	bubble(t, "B11 B20 the asker goes and its question is withdrawn once", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{}`)
		q := s.question()
		r.eng.Gone(c.p.Operation, c.p.Secret, events.EndAgentGone)
		if late := s.answer(q, events.AnswerContinue).Refused; late == nil || late.Code != events.RejectWithdrawn || late.EndReason != events.EndAgentGone {
			t.Fatalf("late answer: %v", late)
		}
		<-c.result
		if n := count[events.Withdrawn](r.events(c.p.Operation)); n != 1 {
			t.Fatalf("%d withdrawals", n)
		}
	})
	bubble(t, "B22 ten questions at once with one frontend: none unclaimed, one answer settles one", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		var calls []*call
		for i := range 10 {
			p := r.proposal(fmt.Sprintf(`{"n":%d}`, i))
			calls = append(calls, r.send(p))
		}
		synctest.Wait()
		s.receiveAll()
		for range 10 {
			pass(20 * time.Second) // a slow person, far beyond the 5 s
			q := s.receiveAll()[0]
			if a := s.answer(q, events.AnswerContinue); a.Refused != nil {
				t.Fatal(a.Refused)
			}
		}
		for _, c := range calls {
			if v := c.verdict(); !v.Allow || string(v.Args) != string(c.p.Args) {
				t.Fatal(toJSON(v))
			}
		}
	})
	bubble(t, "B9 a question held for 24 h by a renewing claimer is still answerable", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		c := r.propose(`{}`)
		q := s.question()
		claim := r.eng.Claim(t.Context(), s.f, place(q), events.ClaimCommand{Question: q.ID})
		pass(24 * time.Hour)
		a := r.eng.Respond(t.Context(), s.f, place(q), events.Respond{
			Question: q.ID, Digest: q.Version.Digest, Claim: claim.Claim, Answer: events.AnswerContinue, Human: true,
		})
		if a.Refused != nil || !c.verdict().Allow {
			t.Fatal(toJSON(a))
		}
		if n := count[events.Claimed](r.events(c.p.Operation)); n != 1 {
			t.Fatalf("%d claims in the log: renewals must not be events", n)
		}
	})
	bubble(t, "B7 when_nobody wait: a question without a frontend stays for one that attaches later", func(t *testing.T) {
		r := newRig(t, "h1")
		r.kill()
		r.o.WhenNobody = events.NobodyWait
		r.start()
		r.hook["h1"] = asks
		c := r.propose(`{}`)
		pass(time.Hour)
		s := r.attach("uid:1")
		if a := s.answer(s.question(), events.AnswerContinue); a.Refused != nil || !c.verdict().Allow {
			t.Fatal(toJSON(a))
		}
	})
	bubble(t, "B7 the last frontend goes: the question waits 30 s for another", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{}`)
		s.question()
		start := time.Now()
		r.eng.Bye(s.f)
		v := c.verdict()
		if v.Code != events.CodeUnavailable || time.Since(start) != engine.NobodyGrace {
			t.Fatalf("%s after %v", toJSON(v), time.Since(start))
		}
	})
	bubble(t, "B98 drawings are written with the next event, or alone after a second", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{}`)
		q := s.question()
		r.eng.Presented(t.Context(), s.f, place(q), events.Drawn{Question: q.ID, Digest: q.Version.Digest})
		s.answer(q, events.AnswerContinue)
		c.verdict()
		want := "OperationProposed HookStarted HookRan Request Presented Claimed Response OperationChecked OperationCommitted OperationDelivered"
		if got := types(r.events(c.p.Operation)); got != want {
			t.Fatal(got)
		}
		c = r.propose(`{}`)
		q = s.question()
		r.eng.Presented(t.Context(), s.f, place(q), events.Drawn{Question: q.ID, Digest: q.Version.Digest})
		pass(engine.DrawnWithin)
		synctest.Wait()
		if got := types(r.events(c.p.Operation)); got != "OperationProposed HookStarted HookRan Request Presented" {
			t.Fatal(got)
		}
		s.answer(q, events.AnswerCancel)
		c.verdict()
	})
	bubble(t, "B12 two answers in flight: exactly one wins, a thousand rounds", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		one, two := r.attach("uid:1"), r.attach("uid:2")
		for range 1000 {
			c := r.propose(`{}`)
			q := one.question()
			var yes, no events.Ack
			var wg sync.WaitGroup
			wg.Go(func() { yes = one.answer(q, events.AnswerContinue) })
			wg.Go(func() { no = two.answer(q, events.AnswerCancel) })
			wg.Wait()
			v := c.verdict()
			if (yes.Refused == nil) == (no.Refused == nil) || v.Allow != (yes.Refused == nil) {
				t.Fatalf("yes %s no %s verdict %s", toJSON(yes), toJSON(no), toJSON(v))
			}
		}
	})
}
