package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// record writes runs that decide nothing where they belong: on an operation's
// subject or on a session's.
type record func([]events.Event, []events.Body) error

// watch is one run that nothing waits for, from its start on record to its end.
type watch struct {
	place   Place
	started events.HookStarted
	set     *hooks.Set
	hook    hooks.Hook
	in      hooks.Input
	record  record
	// entry is the delivery that the run is a start of, nil for none.
	entry *hooks.Entry
}

// watchers are the runs that nothing waits for. They outlive the engine's own
// context: at its end they have a while to come to theirs.
type watchers struct {
	mu      sync.Mutex
	closed  bool
	running map[*watch]life
}

type life struct {
	end  context.CancelFunc
	over chan struct{}
}

func newWatchers() *watchers { return &watchers{running: map[*watch]life{}} }

// begin counts a run in; false when the engine takes no more.
func (ws *watchers) begin(w *watch) (context.Context, bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return nil, false
	}
	ctx, end := context.WithCancel(context.Background())
	ws.running[w] = life{end, make(chan struct{})}
	return ctx, true
}

func (ws *watchers) done(w *watch) {
	ws.mu.Lock()
	l := ws.running[w]
	delete(ws.running, w)
	ws.mu.Unlock()
	l.end()
	close(l.over)
}

// killGrace is how long a run may take to end once it has been told to: TERM, one
// second later KILL, and its record.
const killGrace = 5 * time.Second

// drain gives the runs of which holds is true the grace of their rules, ends what
// is left then, and waits for them. It returns even if one does not end.
func (ws *watchers) drain(holds func(*watch) bool) {
	ws.mu.Lock()
	open := maps.Clone(ws.running)
	ws.mu.Unlock()
	var all sync.WaitGroup
	for w, l := range open {
		if holds(w) {
			all.Go(func() { l.settle(w.set.Settings.ShutdownGrace) })
		}
	}
	all.Wait()
}

func (l life) settle(grace time.Duration) {
	for _, limit := range []time.Duration{grace, killGrace} {
		timer := time.NewTimer(limit)
		select {
		case <-l.over:
			timer.Stop()
			return
		case <-timer.C:
			l.end()
		}
	}
}

// close lets nothing begin any more.
func (ws *watchers) close() {
	ws.mu.Lock()
	ws.closed = true
	ws.mu.Unlock()
}

// drainWatchers ends the runs of a session within the grace of their rules.
func (e *Engine) drainWatchers(p Place) {
	e.watchers.drain(func(w *watch) bool { return w.place == p })
}

// start runs a watcher whose start is on record. It does not wait for it.
func (e *Engine) start(w *watch) {
	ctx, ok := e.watchers.begin(w)
	if !ok {
		return // the run stays open in the log; the next core closes it
	}
	go func() { // the drain waits for it, as long as that is possible
		defer e.watchers.done(w)
		e.outbox.put(w.entry)
		res, waited := e.attend(ctx, w.place, w.set, w.hook, w.in)
		ran, bodies := ranOf(w.started, res, waited)
		if err := w.record([]events.Event{ran}, bodies); err != nil {
			e.o.Logger.Error("the end of a hook's run was not recorded", "hook", w.hook.Ref.ID, "error", err)
		}
		e.outbox.ran(w.entry, res)
	}()
}

// ranOf records how a run that decides nothing ended.
func ranOf(started events.HookStarted, res hooks.Result, waited time.Duration) (events.HookRan, []events.Body) {
	ran := events.HookRan{
		Run: started.Run, Hook: started.Hook, Effect: res.Effect, Outcome: res.Outcome, NotApplied: res.NotApplied,
		Script: res.Script, Exit: res.Exit, Micros: res.Duration.Microseconds(), Waited: waited.Microseconds(),
		Event: started.Event, Mode: started.Mode,
	}
	if res.Effect == events.EffectBlock || res.Effect == events.EffectModify || res.Effect == events.EffectAsk {
		ran.Effect = events.EffectError // a run that decides nothing failed to know that
	}
	var bodies []events.Body
	if res.Stderr != "" {
		bodies = append(bodies, events.Body{Key: events.StderrBody(started.Run), Data: []byte(last(res.Stderr, maxStderr))})
	}
	if res.Reason != "" {
		bodies = append(bodies, events.Body{Key: events.ReasonBody(started.Run), Data: []byte(first(res.Reason, maxReason))})
	}
	return ran, bodies
}

// abandonedRun records the end of a run that its core did not survive.
func abandonedRun(started events.HookStarted) events.HookRan {
	return events.HookRan{
		Run: started.Run, Hook: started.Hook, Effect: events.EffectError, Outcome: events.RunAbandoned,
		Event: started.Event, Mode: started.Mode,
	}
}

// abandonRun closes a run that the core before left open. A delivery that had
// not reached the outbox by then is put there now.
func (e *Engine) abandonRun(op *operation, started events.HookStarted) {
	if err := e.recordRuns(op)([]events.Event{abandonedRun(started)}, nil); err != nil {
		e.o.Logger.Error("a hook's run that a crash cut off is still open", "operation", op.id, "error", err)
	}
	if started.Start == 1 && started.Event == "" {
		e.outbox.adopt(e.delivery(op, op.snapshot(), started))
	}
	e.settle(op)
}

// recordRuns writes runs on an operation's subject. It works until the last
// watcher has ended, which is after the engine's own end.
func (e *Engine) recordRuns(op *operation) record {
	return func(list []events.Event, bodies []events.Body) error {
		ctx, end := context.WithTimeout(context.Background(), appendLimit)
		defer end()
		_, err := e.decideWithin(ctx, op, "core", func(core.State) core.Command {
			return core.Record{At: e.at(), Events: list, Bodies: bodies}
		})
		return err
	}
}

// follow starts what a written message of an operation lets begin: the watchers
// beside its commit, and the hooks on the end of a call that was refused.
func (e *Engine) follow(op *operation, m events.Message, s core.State) {
	for _, ev := range m.Events {
		switch ev := ev.(type) {
		case events.HookStarted:
			if ev.Mode != "" && ev.Event == "" && ev.Start <= 1 {
				e.watchCommit(op, s, ev)
			}
		case events.OperationRefused:
			e.afterRefusal(op, s)
		}
	}
}

// watchCommit runs a watcher that began with its operation's commit.
func (e *Engine) watchCommit(op *operation, s core.State, started events.HookStarted) {
	set := e.adopt(op, s.Config, nil)
	if set == nil { // it was committed under today's
		now, _ := e.o.Rules.For(s.Proposed.Cwd)
		set = e.adopt(op, s.Config, now)
	}
	w := &watch{place: op.place.Value(), started: started, set: set, record: e.recordRuns(op)}
	if set == nil {
		e.tasks.Go(func() { e.giveUpRun(w, "its rules are gone") })
		return
	}
	w.hook = set.Hook(started.Hook.Index)
	w.in = e.watchInput(op, s, started)
	if started.Start > 0 {
		w.entry = e.delivery(op, s, started)
		w.in.Raw = w.entry.Payload // every start is told the same
	}
	e.start(w)
}

// watchInput is what a watcher of a commit is told.
func (e *Engine) watchInput(op *operation, s core.State, started events.HookStarted) hooks.Input {
	r := hookRun{op: op, started: core.Run{Run: started.Run, Hook: started.Hook, Version: started.Version, Attempt: started.Attempt}, state: s, args: s.Body(events.ArgsBody(started.Version))}
	return hooks.Input{Payload: e.payload(r), Env: e.environment(s, started.Run), Cwd: s.Proposed.Cwd}
}

// giveUpRun records a run that could not begin.
func (e *Engine) giveUpRun(w *watch, why string) {
	ran, bodies := ranOf(w.started, hooks.Result{Effect: events.EffectError, Outcome: events.RunMissing, Reason: why}, 0)
	if err := w.record([]events.Event{ran}, bodies); err != nil {
		e.o.Logger.Error("the end of a hook's run was not recorded", "hook", w.started.Hook.ID, "error", err)
	}
}

// hold keeps an operation in memory while hooks on its end are to run. An open
// run on record keeps it by itself.
func (op *operation) hold() {
	op.mu.Lock()
	op.held++
	op.mu.Unlock()
}

func (e *Engine) unhold(op *operation) {
	op.mu.Lock()
	op.held--
	op.mu.Unlock()
	e.settle(op)
}

// looseRuns are the runs that began on operations which were over already, as
// far as a scan of the log has come. Those that did not end were cut off.
type looseRuns map[string][]events.ID

// take follows one message of an operation.
func (l looseRuns) take(subject string, m events.Message) {
	for _, ev := range m.Events {
		switch ev := ev.(type) {
		case events.HookStarted:
			if !ev.AtGate() {
				l[subject] = append(l[subject], ev.Run)
			}
		case events.HookRan:
			l[subject] = slices.DeleteFunc(l[subject], func(run events.ID) bool { return run == ev.Run })
			if len(l[subject]) == 0 {
				delete(l, subject)
			}
		}
	}
}

// open lists the subjects of operations with a run that did not end.
func (l looseRuns) open() []string { return slices.Sorted(maps.Keys(l)) }
