package engine_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// shelf is an outbox that outlives cores.
type shelf struct {
	mu    sync.Mutex
	kept  map[events.ID]hooks.Entry
	fails bool   // Put loses what it is given, as a core that dies before it does
	after func() // what happens right after a Put, nil for nothing
}

func (s *shelf) Put(e hooks.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails {
		return errors.New("no space left on device")
	}
	s.kept[e.Run] = e
	if s.after != nil {
		s.after()
	}
	return nil
}

func (s *shelf) Done(run events.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, run)
	return nil
}

func (s *shelf) Entries() ([]hooks.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.kept)), nil
}

func (s *shelf) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)
}

const durable = "settings: {outbox_retry_age_seconds: 30, outbox_max_retries: 3, shutdown_grace_seconds: 0}\nhooks:\n"

func failed(context.Context) hooks.Result {
	return hooks.Result{Effect: events.EffectError, Outcome: events.RunFailed, Exit: 1}
}

// starts lists what is recorded of a durable hook's starts and how each ended.
func (r *rig) starts(op events.ID) (list []int, ends []events.RunOutcome) {
	for _, ev := range r.events(op) {
		if e, ok := ev.(events.HookStarted); ok && e.Mode != "" {
			list = append(list, e.Start)
		}
		if e, ok := ev.(events.HookRan); ok && e.Mode != "" {
			ends = append(ends, e.Outcome)
		}
	}
	return list, ends
}

func TestDurableHooks(t *testing.T) {
	report := entry("reports", "before_tool_call", "mode: async, delivery: durable")
	begin := func(t *testing.T, yaml string) (*rig, *shelf) {
		t.Helper()
		s := &shelf{kept: map[events.ID]hooks.Entry{}}
		return newRuled(t, engine.Options{Outbox: s}, yaml), s
	}
	t.Run("a run that succeeds is delivered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+report)
			r.long["reports"] = func(ctx context.Context) hooks.Result { return lasts(ctx, time.Second) }
			c := r.propose(`{}`)
			c.verdict()
			r.until("it is kept while it runs", func() bool { return s.len() == 1 })
			r.until("it is delivered", func() bool { return s.len() == 0 })
			pass(10 * time.Minute)
			if starts, _ := r.starts(c.p.Operation); !slices.Equal(starts, []int{1}) {
				t.Errorf("%v", starts)
			}
		})
	})
	t.Run("one that fails is started again, with the same payload, three times in all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+report)
			r.long["reports"] = failed
			c := r.propose(`{}`)
			c.verdict()
			r.until("it is given up", func() bool { return len(r.ran()) > 0 && s.len() == 0 })
			pass(10 * time.Minute)
			starts, ends := r.starts(c.p.Operation)
			if !slices.Equal(starts, []int{1, 2, 3}) || !slices.Equal(ends, []events.RunOutcome{events.RunFailed, events.RunFailed, events.RunFailed}) {
				t.Errorf("%v %v", starts, ends)
			}
			first, again := of[events.HookStarted](r, c.p.Operation)[0], of[events.HookStarted](r, c.p.Operation)[1]
			if first.Run == again.Run || again.Hook.ID != "reports" || again.Mode != events.ModeAsync || again.Event != "" {
				t.Errorf("%+v %+v", first, again)
			}
		})
	})
	t.Run("F3 B99 one that the core did not survive goes on under the next", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+report)
			r.long["reports"] = func(ctx context.Context) hooks.Result { return lasts(ctx, time.Hour) }
			c := r.propose(`{"a":1}`)
			c.verdict()
			r.until("it runs", func() bool { return s.len() == 1 })
			kept, _ := s.Entries()
			r.kill()
			delete(r.long, "reports")
			var raw []byte
			r.hook["reports"] = func(in hooks.Input) hooks.Result { raw = in.Raw; return allow }
			r.start()
			r.until("it is delivered", func() bool { return s.len() == 0 })
			starts, ends := r.starts(c.p.Operation)
			if !slices.Equal(starts, []int{1, 2}) || !slices.Equal(ends, []events.RunOutcome{events.RunAbandoned, events.RunOK}) {
				t.Errorf("%v %v", starts, ends)
			}
			if len(raw) == 0 || string(raw) != string(kept[0].Payload) {
				t.Errorf("told %q, kept %q", raw, kept[0].Payload)
			}
		})
	})
	t.Run("F3 so does one that had not reached the outbox", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+report)
			s.fails = true
			cut := r.cutOff()
			delivered, isCut := make(chan struct{}), make(chan struct{})
			r.long["reports"] = func(ctx context.Context) hooks.Result {
				<-delivered
				cut()
				close(isCut)
				return lasts(ctx, time.Hour)
			}
			c := r.propose(`{"a":1}`)
			c.verdict()
			close(delivered)
			<-isCut
			r.kill()
			s.fails = false
			delete(r.long, "reports")
			r.reopen()
			r.until("it is delivered", func() bool { return len(r.ran()) == 2 && s.len() == 0 })
			if starts, ends := r.starts(c.p.Operation); !slices.Equal(starts, []int{1, 2}) || ends[0] != events.RunAbandoned {
				t.Errorf("%v %v", starts, ends)
			}
		})
	})
	t.Run("F3 so does one of a session's event, even if its start was not on record", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+entry("begins", "session_start", "mode: async, delivery: durable"))
			s.after = sync.OnceFunc(r.cutOff())
			_, _, err := r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: "s1", Cwd: r.dir})
			must(t, err)
			r.until("it is kept", func() bool { return s.len() == 1 })
			synctest.Wait()
			r.kill()
			if len(r.ran()) != 0 {
				t.Fatalf("%v", r.ran())
			}
			s.after = nil
			r.reopen()
			r.until("it is delivered", func() bool { return len(r.ran()) == 1 && s.len() == 0 })
		})
	})
	t.Run("F3 what is owed for an event is kept before the event is in the log, and only for one that is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+entry("turns", "after_turn", "mode: async, delivery: durable")+entry("tools", "after_tool_call", "mode: async, delivery: durable"))
			r.long = map[string]func(context.Context) hooks.Result{"turns": failed, "tools": failed}
			log := moodily(r)
			var mu sync.Mutex
			kept := map[string]int{}
			keptBefore := func(types string) int { mu.Lock(); defer mu.Unlock(); return kept[types] }
			watch := func(e journal.Entry, seq uint64, _ error) error {
				n := s.len()
				mu.Lock()
				defer mu.Unlock()
				if seq == 0 {
					kept[e.Types] = n
				}
				return nil
			}
			log.fault.Store(&watch)
			p := r.called("t1", "main", "c1", `{}`)
			r.letGo(p)
			finish := func() {
				_, err := r.eng.Finish(t.Context(), core.Finished{Operation: p.Operation, Secret: p.Secret, Outcome: events.OutcomeOK})
				must(t, err)
			}
			finish()
			r.observe(core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"})
			if f, e := keptBefore("OperationFinished"), keptBefore("TurnEnded"); f != 1 || e != 2 {
				t.Errorf("deliveries kept when the log was asked: %d, %d", f, e)
			}
			finish()
			r.observe(core.Observation{Signal: signal(events.AfterTurn), Turn: "t1"})
			if synctest.Wait(); s.len() != 2 {
				t.Errorf("%d deliveries are owed for two events", s.len())
			}
		})
	})
	t.Run("every start is told the same, with the time of the first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+report)
			var told []string
			r.hook["reports"] = func(in hooks.Input) hooks.Result {
				told = append(told, string(in.Raw))
				return failed(t.Context())
			}
			began := time.Now()
			r.propose(`{}`).verdict()
			r.until("it is given up", func() bool { return len(r.ran()) == 3 && s.len() == 0 })
			if told[0] != told[1] || told[0] != told[2] || !strings.Contains(told[0], `"timestamp":"`+began.UTC().Format("2006-01-02T15:04:05")) {
				t.Errorf("%q", told)
			}
		})
	})
	t.Run("one that left the rules is given up, and the log says so", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+report)
			r.long["reports"] = failed
			c := r.propose(`{}`)
			c.verdict()
			r.until("it has failed", func() bool { _, ends := r.starts(c.p.Operation); return len(ends) == 1 })
			r.write(durable + entry("other", "before_tool_call", "mode: async"))
			r.until("it is given up", func() bool { return s.len() == 0 })
			starts, ends := r.starts(c.p.Operation)
			if !slices.Equal(starts, []int{1, 2}) || !slices.Equal(ends, []events.RunOutcome{events.RunFailed, events.RunMissing}) {
				t.Errorf("%v %v", starts, ends)
			}
		})
	})
	t.Run("one whose operation the log does not have is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+report)
			lost := r.proposal(`{}`).Operation
			must(t, s.Put(hooks.Entry{
				Run: lost, Hook: events.Hook{ID: "reports"}, Event: events.BeforeToolCall, Operation: lost, Cwd: r.dir, Starts: 1, Payload: []byte(`{}`),
				Project: events.ProjectToken(r.dir), Session: events.SessionToken("core", "generic", "s1"),
			}))
			r.restart()
			r.until("it is given up", func() bool { return s.len() == 0 })
			if len(r.ran()) != 0 {
				t.Errorf("%v", r.ran())
			}
		})
	})
	t.Run("a report's delivery is recorded on its operation, a session's on the session", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, s := begin(t, durable+entry("reports", "after_tool_call", "mode: async, delivery: durable")+
				entry("begins", "session_start", "mode: fire_and_forget, delivery: durable"))
			r.long["reports"], r.long["begins"] = failed, failed
			_, _, err := r.eng.OpenSession(t.Context(), core.SessionOpening{Agent: "generic", Native: "s1", Cwd: r.dir})
			must(t, err)
			c := r.propose(`{}`)
			c.verdict()
			_, err = r.eng.Finish(t.Context(), core.Finished{Operation: c.p.Operation, Secret: c.p.Secret, Outcome: events.OutcomeOK})
			must(t, err)
			r.until("both are given up", func() bool { return len(r.ran()) == 6 && s.len() == 0 })
			if starts, _ := r.starts(c.p.Operation); !slices.Equal(starts, []int{1, 2, 3}) {
				t.Errorf("%v", starts)
			}
			if starts, _ := r.starts(""); !slices.Equal(starts, []int{1, 2, 3}) {
				t.Errorf("%v", starts)
			}
			for _, e := range of[events.HookStarted](r, c.p.Operation) {
				if e.Event != events.AfterToolCall {
					t.Errorf("%+v", e)
				}
			}
		})
	})
}
