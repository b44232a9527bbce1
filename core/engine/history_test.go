package engine_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// past is all of the history.
func (r *rig) past() events.HistoryReply {
	r.t.Helper()
	synctest.Wait()
	return r.eng.History(events.DoorAll, events.History{})
}

// line is the history's line of a call.
func (r *rig) line(op events.ID) events.Line {
	r.t.Helper()
	for _, l := range r.past().Lines {
		if l.Operation == op {
			return l
		}
	}
	r.t.Fatalf("the history has no %s", op)
	return events.Line{}
}

func finish(r *rig, c *call, o events.Outcome, ran string) {
	r.t.Helper()
	_, err := r.eng.Finish(r.t.Context(), core.Finished{
		Operation: c.p.Operation, Secret: c.p.Secret, Outcome: o, Ran: events.DigestOf([]byte(ran)),
	})
	must(r.t, err)
}

func TestF11HistoryTellsWhatBecameOfAnAnswer(t *testing.T) {
	bubble(t, "F11 continued, delivered, ran", func(t *testing.T) {
		r := newRig(t, "looks", "asks", "allows")
		r.hook["asks"] = asks
		s := r.attach("uid:1")
		const args = `{"command":"go test ./..."}`
		c := r.propose(args)
		q := s.question()
		pass(3 * time.Second)
		s.answer(q, events.AnswerContinue)
		c.verdict()
		answered := r.line(c.p.Operation)
		pass(time.Minute)
		finish(r, c, events.OutcomeOK, args)
		l := r.line(c.p.Operation)
		want := events.Line{
			Operation: c.p.Operation, Project: q.Project, Session: q.Session, ProjectPath: q.ProjectPath, Agent: "generic",
			Kind: events.KindToolCall, Path: "main", Tool: c.p.Tool, About: "go test ./...", State: events.LineFinished,
			Hook: &q.Hook, Question: q.ID, AskedAt: q.AskedAt, EndedAt: answered.EndedAt, Who: "uid:1",
			Outcome: events.OutcomeOK, Ran: events.DigestOf([]byte(args)), Committed: q.Version.Digest, Bytes: len(args),
			Took: l.At.Time().Sub(answered.EndedAt.Time()).Microseconds(), At: l.At,
		}
		if d := cmp.Diff(want, l); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if q.Hook.ID != "asks" || answered.State != events.LineDelivered || answered.Took != 0 ||
			l.EndedAt.Time().Sub(q.AskedAt.Time()) < 3*time.Second || l.Took < time.Minute.Microseconds() {
			t.Errorf("%s, before the report %s", toJSON(l), toJSON(answered))
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if last := r.live[len(r.live)-1]; last.Line == nil || !cmp.Equal(*last.Line, l) {
			t.Errorf("the feed says %s", toJSON(last.Line))
		}
	})
	bubble(t, "F11 F8 refused with words", func(t *testing.T) {
		r := newRig(t, "asks")
		r.hook["asks"] = asks
		s := r.attach("uid:1")
		c := r.propose(`{"path":"a"}`)
		q := s.question()
		words := strings.Repeat("wörter ", 100)
		r.eng.Respond(t.Context(), s.f, place(q), events.Respond{
			Question: q.ID, Digest: q.Version.Digest, Answer: events.AnswerCancel, Text: words, Human: true,
		})
		c.verdict()
		l := r.line(c.p.Operation)
		if l.State != events.LineRefused || l.Code != events.CodeDeclined || l.EndReason != events.EndCancel || l.Hook.ID != "asks" ||
			l.Took != 0 || l.Committed != "" {
			t.Errorf("%s", toJSON(l))
		}
		if cut, ok := strings.CutSuffix(l.Text, "…"); !ok || len(cut) > 256 || len(cut) < 250 || !strings.HasPrefix(words, cut) {
			t.Errorf("%d bytes of words: %q", len(l.Text), l.Text)
		}
	})
	type answers = map[string]func(hooks.Input) hooks.Result // nil allows
	for name, c := range map[string]struct {
		hooks answers
		yes   bool   // a person says it to the question
		rule  string // "" for none
		code  events.Code
	}{
		"no rule is about it":                {nil, false, "", ""},
		"the last that let it on":            {answers{"a": nil, "b": nil}, false, "b", ""},
		"the one that asked":                 {answers{"a": asks, "b": nil}, true, "a", ""},
		"the one that blocked":               {answers{"a": blocks, "b": nil}, false, "a", events.CodeBlocked},
		"the one that blocked behind a yes":  {answers{"a": asks, "b": blocks}, true, "b", events.CodeBlocked},
		"the one whose question nobody sees": {answers{"a": nil, "b": asks}, false, "b", events.CodeUnavailable},
	} {
		bubble(t, "F11 the rule that decided: "+name, func(t *testing.T) {
			r := newRig(t, slices.Sorted(maps.Keys(c.hooks))...)
			maps.Copy(r.hook, c.hooks)
			var s *screen
			if c.yes {
				s = r.attach("uid:1")
			}
			call := r.propose(`{"path":"a"}`)
			if c.yes {
				s.answer(s.question(), events.AnswerContinue)
			}
			call.verdict()
			l := r.line(call.p.Operation)
			rule, state := "", events.LineDelivered
			if l.Hook != nil {
				rule = l.Hook.ID
			}
			if c.code != "" {
				state = events.LineRefused
			}
			if rule != c.rule || l.Code != c.code || l.State != state {
				t.Errorf("%s", toJSON(l))
			}
		})
	}
}

func blocks(hooks.Input) hooks.Result {
	return hooks.Result{Effect: events.EffectBlock, Outcome: events.RunOK, Code: events.CodeBlocked, Reason: "not here"}
}

// TestF12UnknownIsInHistory: a call that was let go and of which nobody told.
func TestF12UnknownIsInHistory(t *testing.T) {
	bubble(t, "F12", func(t *testing.T) {
		r := newRig(t)
		op := r.letGo(r.callIn("t1"))
		pass(time.Second)
		r.observe(core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"})
		if l := r.line(op); l.State != events.LineFinished || l.Outcome != events.OutcomeUnknown || l.Took != 0 || l.Ran != "" {
			t.Errorf("%s", toJSON(l))
		}
	})
}

func TestF2HistoryOfAScope(t *testing.T) {
	bubble(t, "F2", func(t *testing.T) {
		r := newRig(t, "h1")
		parent := r.callFrom("s1", "", "main")
		child := r.callFrom("s2", "s1", "main > sub#1")
		other := r.callFrom("s3", "", "main")
		for _, p := range []core.Proposal{parent, child, other} {
			r.send(p).verdict()
		}
		tokens := map[string]events.Token{}
		for _, h := range r.eng.Sessions(events.DoorAll) {
			tokens[h.Native] = h.Session
		}
		ids := func(scope string, limit int) (ops string) {
			h := r.eng.History(scope, events.History{Limit: limit})
			for i, l := range h.Lines {
				if h.Runs[i].Operation != l.Operation {
					t.Errorf("run %s stands beside %s", toJSON(h.Runs[i]), l.Operation)
				}
				for n, p := range map[string]core.Proposal{"parent": parent, "child": child, "other": other} {
					if p.Operation == l.Operation {
						ops += n + " "
					}
				}
			}
			return strings.TrimSpace(ops)
		}
		project := string(r.past().Lines[0].Project)
		for _, c := range []struct {
			scope string
			limit int
			want  string
		}{
			{events.DoorAll, 0, "parent child other"},
			{events.DoorAll, 1000, "parent child other"},
			{events.DoorAll, 2, "child other"},
			{project, 0, "parent child other"},
			{string(tokens["s1"]), 0, "parent child"},
			{string(tokens["s2"]), 0, "child"},
			{string(events.ProjectToken("/elsewhere")), 0, ""},
		} {
			if got := ids(c.scope, c.limit); got != c.want {
				t.Errorf("%s, at most %d: %q, want %q", c.scope, c.limit, got, c.want)
			}
		}
	})
}

// TestF2HistoryFitsAReply: whatever names agents choose, the reply has its bound, and
// what is left out is the oldest.
func TestF2HistoryFitsAReply(t *testing.T) {
	bubble(t, "F2", func(t *testing.T) {
		r := newRig(t, "h1")
		var last events.ID
		for range events.MaxHistory + 20 {
			p := r.proposal(`{"command":"` + strings.Repeat("x", 1000) + `"}`)
			p.Path, p.Tool.CallID = strings.Repeat("p", 1000), strings.Repeat("c", 500)
			r.send(p).verdict()
			r.eng.Gone(p.Operation, p.Secret, events.EndAgentGone)
			last = p.Operation
		}
		h := r.past()
		data, err := events.Encode(h)
		must(t, err)
		if len(data) > 256<<10 || len(h.Lines) < 50 || len(h.Runs) < 50 || h.Lines[len(h.Lines)-1].Operation != last ||
			h.Runs[len(h.Runs)-1].Operation != last {
			t.Errorf("%d bytes: %d lines and %d runs", len(data), len(h.Lines), len(h.Runs))
		}
	})
	bubble(t, "F2 of usual calls all fit", func(t *testing.T) {
		r := newRig(t, "h1")
		var calls []events.ID
		for i := range events.MaxHistory + 5 {
			calls = append(calls, r.letGo(r.proposal(fmt.Sprintf(`{"command":"make target-%d"}`, i))))
		}
		h := r.past()
		if len(h.Lines) != events.MaxHistory || len(h.Runs) != events.MaxHistory {
			t.Fatalf("%d lines and %d runs", len(h.Lines), len(h.Runs))
		}
		for i, l := range h.Lines {
			if want := calls[i+5]; l.Operation != want || h.Runs[i].Operation != want {
				t.Fatalf("place %d: %s, %s, want %s", i, l.Operation, h.Runs[i].Operation, want)
			}
		}
	})
}

// TestF2F11HistorySurvives: whatever happened, the history that a new core makes of
// the snapshot, or of the log alone, is the one that the dead core had.
func TestF2F11HistorySurvives(t *testing.T) {
	all := []string{
		"allowed", "reported", "unknown", "blocked", "continued", "cancelled", "withdrawn", "unanswered", "changed", "event", "snapshot",
	}
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 0))
		ways := slices.Clone(all)
		random.Shuffle(len(ways), func(i, j int) { ways[i], ways[j] = ways[j], ways[i] })
		bubble(t, fmt.Sprintf("F2 F11 F12 seed %d", seed), func(t *testing.T) {
			r := newRuled(t, engine.Options{Timeout: time.Minute}, "hooks:\n"+entry("acts", "before_tool_call", "mode: blocking")+
				entry("looks", "before_tool_call", "mode: async")+entry("after", "after_tool_call", "mode: blocking")+
				entry("turn", "before_turn", "mode: blocking")+entry("quiet", "after_turn", "mode: fire_and_forget"))
			for i, way := range ways {
				live(r, way, fmt.Sprintf("t%d", i))
			}
			pass(time.Minute)
			before := r.past()
			if len(before.Lines) != len(all)-2 || len(before.Runs) < 2*len(all)-2 {
				t.Fatalf("%d lines and %d runs", len(before.Lines), len(before.Runs))
			}
			for _, of := range []string{"the snapshot", "the log"} {
				r.kill()
				if of == "the log" {
					must(t, os.Remove(filepath.Join(r.dir, "snapshot")))
				}
				r.start()
				if d := cmp.Diff(before, r.past(), cmpopts.IgnoreFields(events.HistoryReply{}, "Epoch")); d != "" {
					t.Errorf("after %v, of %s (-before +after):\n%s", ways, of, d)
				}
			}
		})
	}
}

// live lets something happen that the history tells of.
func live(r *rig, way, turn string) {
	pass(time.Second)
	s := r.attach("uid:1")
	r.mu.Lock()
	r.hook["acts"] = map[string]func(hooks.Input) hooks.Result{
		"blocked": blocks, "continued": asks, "cancelled": asks, "withdrawn": asks, "unanswered": asks, "changed": sets(`{"path":"z"}`),
	}[way]
	r.mu.Unlock()
	switch way {
	case "event":
		r.observe(core.Observation{Signal: signal(events.BeforeTurn), Turn: turn})
		r.observe(core.Observation{Signal: signal(events.AfterTurn), Turn: turn})
		return
	case "snapshot": // the rest is then read behind it
		r.restart()
		return
	}
	c := r.send(r.callIn(turn))
	switch way {
	case "continued":
		s.answer(s.question(), events.AnswerContinue)
	case "cancelled":
		s.answer(s.question(), events.AnswerCancel)
	case "withdrawn":
		s.question()
		must(r.t, r.eng.Withdraw(context.Background(), c.p.Operation, c.p.Secret, events.EndCallerCancelled))
	}
	c.verdict()
	r.eng.Gone(c.p.Operation, c.p.Secret, events.EndAgentGone)
	switch way {
	case "reported":
		pass(time.Second)
		finish(r, c, events.OutcomeFailed, `{"path":"a"}`)
	case "unknown":
		r.observe(core.Observation{Signal: signal(events.AfterTurn), Turn: turn})
	}
	synctest.Wait()
}
