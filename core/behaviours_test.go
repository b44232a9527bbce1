package core

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// asked is an operation whose first hook of three asks about {"path":"a"}.
func asked(t *testing.T) *story {
	st := newStory(t)
	st.want("Proposed,HookStarted", propose1(`{"path":"a"}`, next(run(1), 0, 1, 2)))
	st.want("HookRan,Request", askDone(run(1), q1, next(run(2), 0, 1, 2)))
	return st
}

func TestClaimAndAnswer(t *testing.T) {
	all := next(run(2), 0, 1, 2)
	t.Run("B2 a question is a request with its own id", func(t *testing.T) {
		st := asked(t)
		r := last[events.Request](st)
		want := events.Request{
			Gate: events.GateHook, ID: q1, Hook: hook(0), Run: run(1), Previous: -1, Deadline: 99, DeadlineFrom: "hook",
			Version:    events.Version{Digest: events.DigestOf([]byte(`{"path":"a"}`)), Bytes: 12},
			WhenNobody: events.NobodyReject, Offered: 2,
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Error(diff)
		}
		if r.EventType() != "HookConfirmationRequest" {
			t.Error(r.EventType())
		}
	})
	t.Run("B3 the first frontend to claim owns the question", func(t *testing.T) {
		st := asked(t)
		st.want("Claimed", TakeClaim{Question: q1, Frontend: tui, Principal: ana})
		st.want("!not_claimer", TakeClaim{Question: q1, Frontend: web, Principal: bob})
		st.want("", TakeClaim{Question: q1, Frontend: tui, Principal: ana})
		_, err := Decide(st.s, TakeClaim{Question: q1, Frontend: web, Principal: bob})
		want := &events.Refused{Code: events.RejectNotClaimer, Who: ana, When: st.s.At, Hint: "somebody is answering; wait until the claim is given back"}
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Error(diff)
		}
		if st.s.Question.Claim().Seq != st.seq {
			t.Errorf("fencing token %d, want the sequence %d of the claim's message", st.s.Question.Claim().Seq, st.seq)
		}
	})
	t.Run("F13 the same person on a second screen takes over", func(t *testing.T) {
		st := asked(t).must(TakeClaim{Question: q1, Frontend: tui, Principal: ana})
		old := st.s.Question.Claim().Seq
		st.want("Released,Claimed", TakeClaim{Question: q1, Frontend: web, Principal: ana})
		if r := last[events.Released](st); r.Frontend != tui || r.Reason != events.ReleasedTakenOver {
			t.Errorf("%+v", r)
		}
		late := yes(st.s, all)
		late.Claim = old
		st.want("AnswerRejected !not_claimer", late)
		st.want("Released,Claimed,Response,HookStarted", yes(st.s, all))
	})
	t.Run("F2 a claim that ended frees the question", func(t *testing.T) {
		st := asked(t).must(TakeClaim{Question: q1, Frontend: tui, Principal: ana})
		token := st.s.Question.Claim().Seq
		st.want("", Release{Question: q1, Frontend: web, Reason: events.ReleasedBack})
		st.want("Released", Release{Question: q1, Frontend: tui, Reason: events.ReleasedLapsed})
		stale := yes(st.s, all)
		stale.Claim = token
		st.want("AnswerRejected !not_claimer", stale)
		st.want("Claimed", TakeClaim{Question: q1, Frontend: web, Principal: bob})
	})
	t.Run("B4 only for the open question, from the claimer, for the version shown", func(t *testing.T) {
		st := asked(t).must(TakeClaim{Question: q1, Frontend: tui, Principal: ana})
		token := st.s.Question.Claim().Seq
		good := yes(st.s, all)
		good.Claim = token
		for _, c := range []struct {
			name string
			bend func(*Answer)
			want string
		}{
			{"another question", func(a *Answer) { a.Question = q2 }, "AnswerRejected !unknown_question"},
			{"no question at all is not even recorded", func(a *Answer) { a.Question = "x" }, "!unknown_question"},
			{"another frontend", func(a *Answer) { a.Frontend = web }, "AnswerRejected !not_claimer"},
			{"another principal", func(a *Answer) { a.Principal = bob }, "AnswerRejected !not_claimer"},
			{"another principal without token", func(a *Answer) { a.Principal, a.Claim = bob, 0 }, "AnswerRejected !not_claimer"},
			{"another token", func(a *Answer) { a.Claim++ }, "AnswerRejected !not_claimer"},
			{"another version", func(a *Answer) { a.Digest = confA }, "AnswerRejected !stale_version"},
			{"not a person", func(a *Answer) { a.Human = false }, "AnswerRejected !not_allowed"},
		} {
			t.Run(c.name, func(t *testing.T) {
				a := good
				c.bend(&a)
				st.want(c.want, a)
			})
		}
		st.want("Response,HookStarted", good)
		if r := last[events.Response](st); r.Claim != token || r.Principal != ana {
			t.Errorf("%+v", r)
		}
	})
	t.Run("B5 a second response has no effect", func(t *testing.T) {
		st := asked(t)
		first := yes(st.s, all)
		first.Text = "go"
		st.want("Claimed,Response,HookStarted", first)
		at := st.s.At
		st.want("", first)
		other := first
		other.Text = "wait"
		st.want("AnswerRejected !already_answered", other)
		other = first
		other.Answer = events.AnswerCancel
		st.want("AnswerRejected !already_answered", other)
		_, err := Decide(st.s, other)
		want := &events.Refused{Code: events.RejectAlreadyAnswered, Who: ana, Answer: events.AnswerContinue, When: at}
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Error(diff)
		}
		other = first
		other.Principal = bob // behind the same frontend's name
		st.want("AnswerRejected !already_answered", other)
		if count[events.Response](st) != 1 {
			t.Error("two responses")
		}
	})
	t.Run("B6 two answers only", func(t *testing.T) {
		for _, a := range []events.Answer{
			events.AnswerOnce, events.AnswerAlways, events.AnswerAlwaysTool, events.AnswerAlwaysServer,
			events.AnswerModifyEditor, "", "Continue", "yes",
		} {
			st := asked(t)
			c := yes(st.s, all)
			c.Answer = a
			st.want("AnswerRejected !not_allowed", c)
		}
		st := asked(t)
		c := yes(st.s, all)
		c.Answer = "yes, and much more that nobody asked to keep"
		st.want("AnswerRejected !not_allowed", c)
		if r := last[events.AnswerRejected](st); r.Answer != "" {
			t.Errorf("the log keeps a stranger's words: %q", r.Answer)
		}
	})
	t.Run("B12 answer and end race has one winner", func(t *testing.T) {
		st := asked(t)
		st.must(yes(st.s, all))
		st.want("", EndQuestion{Question: q1, Reason: events.EndDeadline})
		st.want("Aborted", Withdraw{Reason: events.EndTurnEnded}) // of the running hook; q1 stays answered
		if count[events.Withdrawn](st) != 0 {
			t.Error("withdrawn after an accepted answer")
		}
		st = asked(t)
		late := yes(st.s, all)
		st.want("Withdrawn,Refused", EndQuestion{Question: q1, Reason: events.EndDeadline})
		st.want("AnswerRejected !withdrawn", late)
		if count[events.Response](st) != 0 {
			t.Error("answered after the end")
		}
	})
	t.Run("B22 one answer never settles another question", func(t *testing.T) {
		st := asked(t)
		st.must(yes(st.s, all), askDone(run(2), q2, next(run(3), 0, 1, 2)))
		again := yes(st.s, all)
		again.Question = q1
		st.want("", again) // the accepted answer, repeated
		if !st.s.Question.Open || st.s.Question.ID != q2 {
			t.Errorf("%+v", st.s.Question)
		}
	})
	t.Run("B80 a late answer changes nothing and is recorded", func(t *testing.T) {
		st := asked(t)
		late := yes(st.s, all)
		st.must(Withdraw{Reason: events.EndInterrupted})
		st.want("AnswerRejected !withdrawn", late)
		if r := last[events.AnswerRejected](st); r.Code != events.RejectWithdrawn || r.Answer != events.AnswerContinue {
			t.Errorf("%+v", r)
		}
		_, err := Decide(st.s, late)
		want := &events.Refused{Code: events.RejectWithdrawn, EndReason: events.EndInterrupted, When: st.s.Settled[0].At}
		if diff := cmp.Diff(error(want), err); diff != "" {
			t.Error(diff)
		}
	})
}

// claimBy is a claim by one of many frontends.
func claimBy(frontend, principal int) TakeClaim {
	return TakeClaim{Question: q1, Frontend: events.ID(fmt.Sprintf("fe-%d", frontend)), Principal: fmt.Sprintf("uid:%d", principal)}
}

func TestBounds(t *testing.T) {
	all := next(run(2), 0, 1, 2)
	t.Run("B4 the first ten rejected answers are recorded, then a count at powers of two", func(t *testing.T) {
		st := asked(t)
		var counts []int
		for i := range 40 {
			a := yes(st.s, all)
			a.Human, a.Repeats = false, i
			if st.do(a) != "!not_allowed" {
				counts = append(counts, last[events.AnswerRejected](st).Count)
			}
		}
		want := []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 23}
		if diff := cmp.Diff(want, counts); diff != "" {
			t.Error(diff)
		}
		if st.s.Question.Rejected != 33 {
			t.Errorf("%d rejected as far as the log knows, want 33", st.s.Question.Rejected)
		}
	})
	t.Run("B11 an end is possible whatever frontends did", func(t *testing.T) {
		st := asked(t)
		for i := range maxClaims {
			c := claimBy(i%8, i/8%2)
			st.must(c)
			st.must(Release{Question: q1, Frontend: c.Frontend})
		}
		st.want("!too_many", claimBy(8, 2))
		for st.s.Outsiders < maxRepeated {
			a := yes(st.s, all)
			a.Human = false
			st.want("AnswerRejected !not_allowed", a)
		}
		a := yes(st.s, all)
		a.Human = false
		st.want("!not_allowed", a)
		st.want("", Present{Question: q1, Frontend: tui})
		st.want("!too_many", TakeClaim{Question: q1, Frontend: tui, Principal: ana})
		full := st.s
		full.Outsiders = maxOutsiders
		for name, c := range map[string]Command{
			"yes": yes(full, all), "no": no(full), "deadline": EndQuestion{Question: q1, Reason: events.EndDeadline},
			"withdraw": Withdraw{Reason: events.EndShutdown},
		} {
			if d, err := Decide(full, c); err != nil || len(d.Events) == 0 {
				t.Errorf("%s: %v %v", name, d, err)
			}
		}
	})
	t.Run("B3 F1 who claims and lets go in a loop locks nobody else out", func(t *testing.T) {
		st := asked(t)
		grab := func(frontend, principal int) (granted int) {
			for range maxClaims {
				c := claimBy(frontend, principal)
				if got := st.do(c); got == "!too_many" {
					return granted
				}
				granted++
				st.must(Release{Question: q1, Frontend: c.Frontend})
			}
			return granted
		}
		for _, c := range []struct{ frontend, principal, want int }{
			{0, 0, maxFrontendClaims},
			{0, 0, 0},
			{1, 0, maxFrontendClaims},
			{2, 0, maxFrontendClaims},
			{3, 0, maxPrincipalClaims - 3*maxFrontendClaims},
			{4, 0, 0}, // its principal's others have used up what there was
			{0, 1, maxFrontendClaims},
			{5, 2, maxFrontendClaims},
		} {
			if got := grab(c.frontend, c.principal); got != c.want {
				t.Errorf("frontend %d of principal %d had it %d times, want %d", c.frontend, c.principal, got, c.want)
			}
		}
		st.want("Claimed,Response,Refused", no(st.s)) // with the answer claiming is always possible
	})
	t.Run("B3 F1 what was used up leaves a first claim to everybody else", func(t *testing.T) {
		st := asked(t)
		st.must(claimBy(0, 0))
		st.must(Release{Question: q1, Frontend: claimBy(0, 0).Frontend})
		used := st.s
		used.Outsiders = maxRepeated
		if d, err := Decide(used, claimBy(0, 0)); err == nil || len(d.Events) > 0 {
			t.Errorf("again: %s %v", types(d.Events), err)
		}
		if d, err := Decide(used, claimBy(1, 0)); err != nil || types(d.Events) != "Claimed" {
			t.Errorf("for the first time: %s %v", types(d.Events), err)
		}
	})
	t.Run("B3 what frontends did on earlier questions counts too", func(t *testing.T) {
		s := asked(t).s
		s.Outsiders = maxOutsiders
		if d, err := Decide(s, TakeClaim{Question: q1, Frontend: tui, Principal: ana}); err == nil || len(d.Events) > 0 {
			t.Errorf("%s %v", types(d.Events), err)
		}
	})
	t.Run("B3 drawing again and again keeps nobody from claiming", func(t *testing.T) {
		st := asked(t)
		for range maxPresented {
			st.want("Presented", Present{Question: q1, Frontend: tui, At: 7})
		}
		st.want("", Present{Question: q1, Frontend: tui})
		st.want("Claimed", TakeClaim{Question: q1, Frontend: tui, Principal: ana})
	})
}

func TestChain(t *testing.T) {
	t.Run("B31 continue resumes with the next hook", func(t *testing.T) {
		st := asked(t)
		st.must(yes(st.s, next(run(2), 0, 1, 2)))
		if h := last[events.HookStarted](st).Hook.Index; h != 1 {
			t.Errorf("hook %d follows, want 1", h)
		}
		st.want("HookRan,HookStarted", allowDone(run(2), next(run(3), 0, 1, 2)))
		st.want("HookRan,Checked,Committed", allowDone(run(3), next(run(4), 0, 1, 2)))
	})
	t.Run("B33 cancel rejects, no further hook starts", func(t *testing.T) {
		for answer, reason := range map[events.Answer]events.EndReason{
			events.AnswerCancel: events.EndCancel, events.AnswerClientCancels: events.EndClientCancelled,
		} {
			st := asked(t)
			a := no(st.s)
			a.Answer = answer
			st.want("Claimed,Response,Refused", a)
			if r := last[events.OperationRefused](st); r != (events.OperationRefused{Code: events.CodeDeclined, Question: q1}) {
				t.Errorf("%+v", r)
			}
			if v, _ := VerdictOf(st.s); v.EndReason != reason || v.Allow {
				t.Errorf("%+v", v)
			}
		}
	})
	t.Run("B34 a later hook may block or ask again", func(t *testing.T) {
		st := asked(t)
		st.must(yes(st.s, next(run(2), 0, 1, 2)), askDone(run(2), q2, next(run(3), 0, 1, 2)))
		if r := last[events.Request](st); r.ID != q2 || r.Previous != 0 || len(r.Changed) != 0 || r.Attempt != 0 {
			t.Errorf("%+v", r)
		}
		st.must(yes(st.s, next(run(3), 0, 1, 2)))
		st.want("HookRan,Refused", HookDone{Run: run(3), Effect: events.EffectBlock, Outcome: events.RunOK, Reason: "No pushes on Friday."})
		if r := last[events.OperationRefused](st); r != (events.OperationRefused{Code: events.CodeBlocked, Run: run(3)}) {
			t.Errorf("%+v", r)
		}
		if got := string(st.s.Body(events.ReasonBody(run(3)))); got != "No pushes on Friday." {
			t.Errorf("reason %q", got)
		}
	})
	t.Run("B35 a failure blocks or lets on as its rule says", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next(run(1), 0)))
		st.want("HookRan,Checked,Committed", HookDone{
			Run: run(1), Effect: events.EffectError, Outcome: events.RunTimedOut, Reason: "took 2 s", Next: next(run(2), 0),
			Args: []byte(`{"void":true}`), Stderr: "slow",
		})
		if r := last[events.HookRan](st); !r.FailedOpen {
			t.Error("not recorded as failed open")
		}
		if string(st.s.Body(events.ReasonBody(run(1)))) != "took 2 s" || st.s.Body(events.StderrBody(run(1))) != nil {
			t.Error("want the reason kept, stderr only in the log")
		}
		st = newStory(t).must(propose1(`{}`, next(run(1), 0)))
		st.want("HookRan,Refused", HookDone{Run: run(1), Effect: events.EffectBlock, Outcome: events.RunMissing, Code: events.CodeHookMissing})
		if r := last[events.HookRan](st); r.FailedOpen || r.Code != events.CodeHookMissing {
			t.Errorf("%+v", r)
		}
	})
	t.Run("B38 an ask with new arguments is about the new ones", func(t *testing.T) {
		st := newStory(t).must(propose1(`{"path":"a"}`, next(run(1), 0)))
		ask := askDone(run(1), q1, next(run(2), 0))
		ask.Args = []byte(`{"path":"b"}`)
		st.want("HookRan,ArgumentsChanged,Request", ask)
		if r := last[events.Request](st); r.Version.N != 1 || r.Version.Digest != events.DigestOf(ask.Args) {
			t.Errorf("%+v", r)
		}
		st.want("Claimed,Response,Checked,Committed", yes(st.s, next(run(2), 0)))
		if v, _ := VerdictOf(st.s); string(v.Args) != `{"path":"b"}` || !v.Changed {
			t.Errorf("%+v", v)
		}
	})
	t.Run("B30 asking when nobody can be asked refuses at once", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next(run(1), 0)))
		ask := askDone(run(1), q1, Next{})
		ask.Ask.Available, ask.Ask.WhenNobody = false, ""
		st.want("HookRan,Request,Withdrawn,Refused", ask)
		if w := last[events.Withdrawn](st); w.Result != events.ResultUnavailable || w.Reason != events.EndNoFrontend {
			t.Errorf("%+v", w)
		}
		if r := last[events.OperationRefused](st); r != (events.OperationRefused{Code: events.CodeUnavailable, Question: q1}) {
			t.Errorf("%+v", r)
		}
		if last[events.Request](st).WhenNobody != events.NobodyReject {
			t.Error("the rule is not written down")
		}
	})
	t.Run("B7 when_nobody wait keeps the question open", func(t *testing.T) {
		st := newStory(t).must(propose1(`{}`, next(run(1), 0)))
		ask := askDone(run(1), q1, Next{})
		ask.Ask.Available, ask.Ask.WhenNobody = false, events.NobodyWait
		st.want("HookRan,Request", ask)
	})
	t.Run("B27 the run says whether a question could be shown", func(t *testing.T) {
		n := next(run(1), 0)
		n.Available = false
		st := newStory(t).must(propose1(`{}`, n))
		if last[events.HookStarted](st).Available {
			t.Error("available")
		}
	})
	t.Run("B99 a run that died with its core is closed and starts again", func(t *testing.T) {
		st := asked(t)
		st.must(yes(st.s, next(run(2), 0, 1, 2)))
		st.want("HookRan,HookStarted", Abandon{Next: next(run(3), 0, 1, 2)})
		if r := last[events.HookRan](st); r.Outcome != events.RunAbandoned || r.Run != run(2) || r.FailedOpen {
			t.Errorf("%+v", r)
		}
		if s := last[events.HookStarted](st); s.Hook.Index != 1 || s.Run != run(3) {
			t.Errorf("%+v", s)
		}
		st.want("", allowDone(run(2), next(run(4), 0, 1, 2)))
		st.want("HookRan,HookStarted", allowDone(run(3), next(run(4), 0, 1, 2)))
	})
	t.Run("B98 the hook's interval ends before the wait begins", func(t *testing.T) {
		st := asked(t)
		ran := slices.IndexFunc(st.log, func(e events.Event) bool { _, ok := e.(events.HookRan); return ok })
		req := slices.IndexFunc(st.log, func(e events.Event) bool { _, ok := e.(events.Request); return ok })
		if ran < 0 || ran > req {
			t.Error(types(st.log))
		}
	})
}
