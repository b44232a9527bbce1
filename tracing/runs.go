package tracing

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// run is a hook's run that has not ended.
//
// A run at the gate ends with its operation at the latest. One that nobody
// waits for, or that belongs to an observed event, may end later, and may begin
// later too: after a tool has run, or for a session that has no operation. What
// begins after the message that ended its operation is told by its own messages
// alone, so that nothing needs to be kept for it in between.
type run struct {
	events.HookStarted
	scope
	first uint64 // sequence of the message that began it
	at    events.Micros
}

func (r *run) firstSeq() uint64 { return r.first }

// outlives says that a run does not end with its operation.
func outlives(e events.HookStarted) bool { return !e.AtGate() }

// object is what a run's spans are named after. A durable delivery that starts
// again is another process under the same id.
func object(e events.HookStarted) events.ID {
	if e.Start > 1 {
		return e.Run + events.ID("/"+strconv.Itoa(e.Start))
	}
	return e.Run
}

// startRun begins a run. The same run once more means that the start before
// was lost.
func (f *fold) startRun(op *operation, m *events.Message, e events.HookStarted, now moment) (lost []*span) {
	if r := f.takeRun(op, e.Run); r != nil {
		lost = f.runSpans(r, abandoned(r), now)
	}
	r := &run{HookStarted: e, first: m.Seq, at: now.at}
	switch {
	case op != nil && (op.ended == 0 || op.ended == m.Seq && outlives(e)):
		r.scope = op.scope
		op.runs[e.Run] = r
	case outlives(e):
		r.scope = f.scopeOf(m)
		if e.Event == events.AfterToolCall || e.Event == events.ToolError {
			r.kind = events.KindToolCall
		}
		f.late[e.Run] = f.order.PushBack(r)
	}
	return lost
}

func (f *fold) endRun(op *operation, e events.HookRan, now moment) []*span {
	r := f.takeRun(op, e.Run)
	if r == nil {
		return nil // it was closed by the end of its operation
	}
	if op != nil && !outlives(r.HookStarted) {
		op.lastRan, op.hooked = e, true
	}
	return f.runSpans(r, e, now)
}

// takeRun takes an open run out of the fold, nil when there is none of that id.
func (f *fold) takeRun(op *operation, id events.ID) *run {
	if op != nil && op.runs[id] != nil {
		r := op.runs[id]
		delete(op.runs, id)
		return r
	}
	if el, ok := f.late[id]; ok {
		delete(f.late, id)
		return f.order.Remove(el).(*run)
	}
	return nil
}

// abandon closes the runs that an operation leaves behind when it ends: their
// processes are being stopped, and nothing that they still say has an effect.
func (f *fold) abandon(op *operation, now moment) []*span {
	var spans []*span
	for _, id := range slices.SortedFunc(maps.Keys(op.runs), func(a, b events.ID) int { return strings.Compare(string(a), string(b)) }) {
		if r := op.runs[id]; !outlives(r.HookStarted) {
			delete(op.runs, id)
			spans = append(spans, f.runSpans(r, abandoned(r), now)...)
		}
	}
	return spans
}

func abandoned(r *run) events.HookRan {
	return events.HookRan{
		Run: r.Run, Hook: r.Hook, Effect: events.EffectError, Outcome: events.RunAbandoned, Event: r.Event, Mode: r.Mode,
	}
}

// runSpans are the span of a run that has ended and, before it, that of its
// wait for a place among the session's parallel hooks.
func (f *fold) runSpans(r *run, e events.HookRan, now moment) []*span {
	at := timesOf(r.at, now.at, e)
	var spans []*span
	if e.Waited > 0 {
		s := r.span(KindSlot, object(r.HookStarted), "wait.hook_slot", r.at, at.free)
		s.add(text("fermata.wait.category", "hook_slot"))
		r.describe(s, e, now)
		spans = append(spans, r.finish(s))
	}
	s := r.span(KindHookRun, object(r.HookStarted), "hook.run "+e.Hook.ID, at.start, at.end)
	s.add(text("fermata.hook.effect", string(e.Effect)), text("fermata.hook.outcome", string(e.Outcome)))
	if e.FailedOpen {
		s.add(truth("fermata.hook.failed_open", true))
	}
	r.describe(s, e, now)
	switch e.Outcome {
	case events.RunOK, events.RunAbandoned, events.RunDetached:
	default:
		s.fail(string(e.Outcome))
	}
	return append(spans, r.finish(s))
}

// describe says which run of which hook a span is about.
func (r *run) describe(s *span, e events.HookRan, now moment) {
	s.addHook(r.scope, e.Hook, r.Event, e.Script)
	if r.Mode != "" {
		s.add(text("fermata.hook.mode", string(r.Mode)))
	}
	if r.Start > 1 {
		s.add(number("fermata.hook.start", int64(r.Start)))
	}
	if r.Attempt > 0 {
		s.add(number("fermata.recheck.attempt", int64(r.Attempt)))
	}
	s.addProof(now)
}

// times are when a run got its place, and when its process lived.
type times struct{ free, start, end events.Micros }

// timesOf says when a hook's process lived: it ended when the log says, and its
// own clock says for how long, never longer than the log allows and never while
// it stood in line. So a run ends where the wait that it asked for begins. Of a
// detached run only the moment is known in which it was let go.
func timesOf(started, ran events.Micros, e events.HookRan) times {
	t := times{end: max(started, ran)}
	t.free = min(t.end, started+events.Micros(max(e.Waited, 0)))
	t.start = t.free
	switch {
	case e.Outcome == events.RunDetached:
		t.start = t.end
	case e.Micros > 0:
		t.start = max(t.free, t.end-events.Micros(e.Micros))
	}
	return t
}
