package engine_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/events"
)

// deed is what one frontend tries with the one question; how tells what it
// heard: "" for yes, else the code.
type deed struct {
	who  int
	verb string // claim, answer, release, bye
	what events.Answer
}

// desk is the specification: one holder at a time, one answer for ever.
type desk struct {
	holder   int // 0 = nobody
	answerer int // 0 = open
	answer   events.Answer
}

// question says what a question is, for one history of everybody's deeds.
var question = porcupine.Model{
	Init: func() any { return desk{} },
	Step: func(state, input, output any) (bool, any) {
		d, in, heard := state.(desk), input.(deed), output.(events.Reject)
		if in.verb == "bye" {
			if d.holder == in.who {
				d.holder = 0
			}
			return true, d
		}
		if d.answerer != 0 {
			again := in.verb == "answer" && in.who == d.answerer && in.what == d.answer
			return (again && heard == "") || (!again && heard == events.RejectAlreadyAnswered), d
		}
		free := d.holder == 0 || d.holder == in.who
		switch in.verb {
		case "claim":
			if free && heard == "" {
				d.holder = in.who
			}
			return free == (heard == ""), d
		case "answer":
			if free && heard == "" {
				d = desk{answerer: in.who, answer: in.what}
			}
			return free == (heard == ""), d
		case "release":
			if d.holder == in.who {
				d.holder = 0
			}
			return heard == "", d
		}
		return false, d
	},
}

func TestLinear(t *testing.T) {
	bubble(t, "B3 B4 B12 claims, releases and answers of eight frontends are linearizable", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		first := r.attach("uid:0")
		random := rand.New(rand.NewPCG(1, 2))
		for range 60 {
			c := r.propose(`{}`)
			q := first.question()
			history := race(t, r, q, random)
			if !porcupine.CheckOperations(question, history) {
				t.Fatalf("not linearizable: %+v", history)
			}
			first.answer(q, events.AnswerCancel) // a no-op unless everybody let go
			v := c.verdict()
			if n := count[events.Response](r.events(v.Operation)); n != 1 {
				t.Fatalf("%d responses in the log", n)
			}
		}
	})
}

// race lets eight frontends try six deeds each at once.
func race(t *testing.T, r *rig, q events.Question, random *rand.Rand) []porcupine.Operation {
	t.Helper()
	var (
		clock   atomic.Int64
		mu      sync.Mutex
		history []porcupine.Operation
		wg      sync.WaitGroup
	)
	for who := 1; who <= 8; who++ {
		s := r.attach("uid:" + string(rune('0'+who)))
		seed := random.Uint64()
		wg.Go(func() {
			mine := rand.New(rand.NewPCG(seed, uint64(who)))
			var token uint64
			for i := range 7 {
				d := deed{who: who, verb: []string{"claim", "claim", "release", "answer"}[mine.IntN(4)]}
				if i == 6 {
					d.verb = "bye"
				}
				if d.verb == "answer" {
					d.what = []events.Answer{events.AnswerContinue, events.AnswerCancel}[mine.IntN(2)]
				}
				call := clock.Add(1)
				heard := s.try(q, d, &token)
				op := porcupine.Operation{ClientId: who, Input: d, Call: call, Output: heard, Return: clock.Add(1)}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return history
}

func (s *screen) try(q events.Question, d deed, token *uint64) events.Reject {
	var refused *events.Refused
	ctx := s.r.t.Context()
	switch d.verb {
	case "claim":
		reply := s.r.eng.Claim(ctx, s.f, place(q), events.ClaimCommand{Question: q.ID})
		if refused = reply.Refused; refused == nil {
			*token = reply.Claim
		}
	case "release":
		refused = s.r.eng.Release(ctx, s.f, place(q), events.ReleaseCommand{Question: q.ID, Claim: *token}).Refused
	case "answer":
		refused = s.answer(q, d.what).Refused
	case "bye":
		s.r.eng.Bye(s.f)
	}
	if refused == nil {
		return ""
	}
	return refused.Code
}

func TestHAND05(t *testing.T) {
	bubble(t, "F2 a frontend that lists while questions are published: none lost, none twice, a thousand times", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		keep(t, s)
		for range 100 {
			calls := make([]*call, 0, 10)
			var wg sync.WaitGroup
			listed := map[events.ID]int{}
			wg.Go(func() {
				for range 10 {
					calls = append(calls, r.propose(`{}`))
				}
			})
			for len(listed) < 10 {
				for _, q := range s.receiveAll() {
					listed[q.ID]++
					if a := s.answer(q, events.AnswerContinue); a.Refused != nil {
						t.Fatal(a.Refused)
					}
				}
				pass(time.Millisecond)
			}
			wg.Wait()
			for _, c := range calls {
				c.verdict()
			}
			for id, n := range listed {
				if n != 1 {
					t.Fatalf("question %s was open %d times", id, n)
				}
			}
		}
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		for id, n := range r.seen {
			if n != 1 {
				t.Fatalf("question %s was published %d times", id, n)
			}
		}
		if len(r.seen) != 1000 {
			t.Fatalf("%d questions were published, want 1000", len(r.seen))
		}
	})
	bubble(t, "F2 a question shows in its own session only", func(t *testing.T) {
		r := newRig(t, "h1")
		r.hook["h1"] = asks
		s := r.attach("uid:1")
		var calls []*call
		for i := range 20 {
			p := r.proposal(`{}`)
			p.Native = string(rune('a' + i))
			calls = append(calls, r.send(p))
		}
		synctest.Wait()
		for _, h := range r.eng.Sessions(events.DoorAll) {
			p := engine.Place{Project: h.Project, Session: h.Session}
			list := r.eng.Sync(p, events.Sync{}).Questions
			if len(list) != 1 || list[0].Session != h.Session {
				t.Fatalf("session %s lists %s", h.Native, toJSON(list))
			}
			other := engine.Place{Project: h.Project, Session: events.SessionToken("x", "generic", "other")}
			if a := r.eng.Respond(t.Context(), s.f, other, events.Respond{Question: list[0].ID, Digest: list[0].Version.Digest, Answer: events.AnswerContinue, Human: true}); a.Refused == nil {
				t.Fatal("an answer through another session was taken")
			}
			s.answer(list[0], events.AnswerContinue)
		}
		for _, c := range calls {
			c.verdict()
		}
	})
}
