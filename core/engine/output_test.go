package engine_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// slowLog counts what is read of subjects, and stands still before each record while
// it is told to.
type slowLog struct {
	engine.Log
	read  *atomic.Int64
	stuck *atomic.Bool
}

func (l slowLog) Read(ctx context.Context, subject string) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for r, err := range l.Log.Read(ctx, subject) {
			l.read.Add(1)
			if l.stuck.Load() {
				<-ctx.Done()
				yield(journal.Record{}, ctx.Err())
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// heardOf is a core whose log is slow, and a run on an event of its session with much
// behind it.
func heardOf(t *testing.T) (r *rig, l slowLog, run events.RunLine) {
	t.Helper()
	l = slowLog{read: &atomic.Int64{}, stuck: &atomic.Bool{}}
	r = newRuled(t, engine.Options{}, "hooks:\n"+entry("turn", "before_turn", "mode: blocking"))
	r.kill()
	r.wrap = func(log engine.Log) engine.Log { l.Log = log; return l }
	r.start()
	r.hook["turn"] = func(hooks.Input) hooks.Result {
		return hooks.Result{Effect: events.EffectAllow, Outcome: events.RunOK, Stderr: "here"}
	}
	for range 20 {
		r.observe(core.Observation{Signal: signal(events.BeforeTurn)})
		synctest.Wait()
		r.observe(core.Observation{Signal: signal(events.AfterTurn)})
		synctest.Wait()
	}
	return r, l, r.past().Runs[0]
}

func TestB112OutputReadsNoMoreThanItNeeds(t *testing.T) {
	bubble(t, "B112 not behind the end of the run", func(t *testing.T) {
		r, l, run := heardOf(t)
		before := l.read.Load()
		got := r.eng.Output(t.Context(), engine.Place{Project: run.Project, Session: run.Session}, events.RunCommand{Run: run.Run})
		if n := l.read.Load() - before; got.Stderr != "here" || got.Refused != nil || n > 5 {
			t.Errorf("%s after %d records", toJSON(got), n)
		}
	})
	bubble(t, "B112 not when nobody waits any more", func(t *testing.T) {
		r, l, run := heardOf(t)
		l.stuck.Store(true)
		at := engine.Place{Project: run.Project, Session: run.Session}
		output := func() (leave func(), heard chan events.RunReply) {
			ctx, cancel := context.WithCancel(t.Context())
			heard = make(chan events.RunReply, 1)
			go func() { heard <- r.eng.Output(ctx, at, events.RunCommand{Run: run.Run}) }()
			synctest.Wait()
			return cancel, heard
		}
		first, firstHeard := output()
		second, secondHeard := output() // it waits for the place of the first
		second()
		synctest.Wait()
		if len(secondHeard) != 1 || len(firstHeard) != 0 {
			t.Errorf("%d and %d", len(firstHeard), len(secondHeard))
		}
		first()
		synctest.Wait()
		if len(firstHeard) != 1 || (<-firstHeard).Refused == nil {
			t.Error("it reads on for nobody")
		}
		l.stuck.Store(false)
		if got := r.eng.Output(t.Context(), at, events.RunCommand{Run: run.Run}); got.Stderr != "here" {
			t.Errorf("%s", toJSON(got))
		}
	})
}
