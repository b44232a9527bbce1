package tracing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-hitl/fermata/events"
)

// told is what a span says of a run, with its times since the log's beginning.
type told struct {
	Name, Event, Mode, Outcome string
	From, To                   time.Duration
}

// toldOf are the spans of runs and of their waits, in the order of the log. The
// verifier must agree with all of them.
func toldOf(t *testing.T, w *writer) (all []told) {
	t.Helper()
	spans := project(t, w.records)
	began := nanos(newWriter(1).now)
	for _, s := range spans {
		if s.Name == "fermata.operation" || s.Name == "commit" {
			continue
		}
		all = append(all, told{
			s.Name, s.Text("fermata.hook.event"), s.Text("fermata.hook.mode"), s.Text("fermata.hook.outcome"),
			time.Duration(s.StartTimeUnixNano - began), time.Duration(s.EndTimeUnixNano - began),
		})
	}
	if report := verify(t, w.records, each(spans)); len(report.Findings) > 0 || report.Copies != report.Spans {
		t.Errorf("%d copies of %d spans, findings %v", report.Copies, report.Spans, report.Findings)
	}
	return all
}

func started(run events.ID, event events.HookEvent, mode events.HookMode) events.HookStarted {
	return events.HookStarted{Run: run, Hook: addHook, Event: event, Mode: mode}
}

func ran(s events.HookStarted, outcome events.RunOutcome, process, waited time.Duration) events.HookRan {
	return events.HookRan{
		Run: s.Run, Hook: s.Hook, Effect: events.EffectAllow, Outcome: outcome, Event: s.Event, Mode: s.Mode,
		Micros: process.Microseconds(), Waited: waited.Microseconds(),
	}
}

func TestB100AWaitForAPlaceIsASpanBesideItsRun(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		ran        events.HookRan
		wait, runs [2]time.Duration
	}{
		"process":                 {ran(started("r", "", ""), events.RunOK, 300*ms, 600*ms), [2]time.Duration{0, 600 * ms}, [2]time.Duration{700 * ms, time.Second}},
		"no process":              {ran(started("r", "", ""), events.RunMissing, 0, 600*ms), [2]time.Duration{0, 600 * ms}, [2]time.Duration{600 * ms, time.Second}},
		"clocks disagree":         {ran(started("r", "", ""), events.RunOK, 900*ms, 600*ms), [2]time.Duration{0, 600 * ms}, [2]time.Duration{600 * ms, time.Second}},
		"longer than the log has": {ran(started("r", "", ""), events.RunOK, 0, time.Hour), [2]time.Duration{0, time.Second}, [2]time.Duration{time.Second, time.Second}},
	} {
		t.Run("B98 "+name, func(t *testing.T) {
			w := newWriter(1)
			op := w.id()
			w.put(op, 0, nil, proposal(), started("r", "", ""))
			w.put(op, time.Second, nil, c.ran, events.OperationCommitted{Version: version(0)})
			want := []told{
				{"wait.hook_slot", "before_tool_call", "", "", c.wait[0], c.wait[1]},
				{"hook.run add-region", "before_tool_call", "", string(c.ran.Outcome), c.runs[0], c.runs[1]},
			}
			if diff := cmp.Diff(want, toldOf(t, w)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if s := find(t, project(t, w.records), "wait.hook_slot"); s.Text("fermata.wait.category") != "hook_slot" || s.Text("fermata.hook.name") != "add-region" {
				t.Errorf("the wait says %v", s.Attributes)
			}
		})
	}
}

// TestB99WatchersEndAfterTheirOperation: runs that nobody waits for have a span
// each, whenever they end, and the operation's span is made once, at its end.
func TestB99WatchersEndAfterTheirOperation(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("B99 started before the commit in its message %v", first), func(t *testing.T) {
			w := newWriter(1)
			op := w.id()
			async, fire, lost := started("a", "", events.ModeAsync), started("f", "", events.ModeFireAndForget), started("l", "", events.ModeAsync)
			commit := []events.Event{async, fire, lost}
			if first {
				commit = append(commit, events.OperationCommitted{Version: version(0)})
			} else {
				commit = slices.Insert(commit, 0, events.Event(events.OperationCommitted{Version: version(0)}))
			}
			// The agent's parent stands in the first message only.
			w.put(op, 0, func(m *events.Message) { m.Traceparent = agentParent }, proposal())
			w.put(op, time.Second, nil, commit...)
			w.put(op, time.Second, nil, ran(fire, events.RunDetached, 0, 0))
			w.put(op, time.Second, nil, events.OperationFinished{Outcome: events.OutcomeUnknown}, events.OperationAborted{Reason: events.EndAgentGone})
			w.put(op, time.Second, nil, ran(async, events.RunTimedOut, 500*time.Millisecond, time.Second))
			w.put(op, time.Second, nil, events.OperationFinished{Outcome: events.OutcomeOK, Ran: version(0).Digest})
			w.put(op, time.Second, nil, ran(lost, events.RunAbandoned, 0, 0))
			want := []told{
				{"hook.run add-region", "before_tool_call", "fire_and_forget", "detached", 2 * time.Second, 2 * time.Second},
				{"wait.hook_slot", "before_tool_call", "async", "", time.Second, 2 * time.Second},
				{"hook.run add-region", "before_tool_call", "async", "timed_out", 3500 * time.Millisecond, 4 * time.Second},
				{"hook.run add-region", "before_tool_call", "async", "abandoned", time.Second, 6 * time.Second},
			}
			if diff := cmp.Diff(want, toldOf(t, w)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			spans := project(t, w.records)
			if n := len(slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return s.Name != "fermata.operation" })); n != 1 {
				t.Errorf("%d spans of the operation", n)
			}
			if s := find(t, spans, "fermata.operation"); s.EndTimeUnixNano != nanos(newWriter(1).now)+uint64(time.Second) {
				t.Error("the operation's span does not end with its commit")
			}
		})
	}
}

// TestB87ObservedEventsOfAnOperationThatIsOver: what runs after a tool stands
// under the operation's span although that was written long before.
func TestB87ObservedEventsOfAnOperationThatIsOver(t *testing.T) {
	for name, end := range map[string]events.Event{
		"B87 refused": events.OperationRefused{Code: events.CodeDeclined}, "B97 ran": events.OperationCommitted{Version: version(0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(1)
			op := w.id()
			inTurn := func(m *events.Message) { m.Turn = "7" }
			after, watch := started("b", events.AfterToolCall, ""), started("w", events.ToolError, events.ModeAsync)
			w.put(op, 0, inTurn, proposal(), end)
			w.put(op, time.Hour, inTurn, after)
			w.put(op, time.Second, inTurn, ran(after, events.RunOK, time.Second, 0), watch)
			w.put(op, time.Second, inTurn, ran(watch, events.RunFailed, time.Second, 0))
			want := []told{
				{"hook.run add-region", "after_tool_call", "", "ok", time.Hour, time.Hour + time.Second},
				{"hook.run add-region", "tool_error", "async", "failed", time.Hour + time.Second, time.Hour + 2*time.Second},
			}
			if diff := cmp.Diff(want, toldOf(t, w)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			spans := project(t, w.records)
			root := find(t, spans, "fermata.operation")
			for _, s := range spans[len(spans)-2:] {
				if string(s.ParentSpanId) != string(root.SpanId) || string(s.TraceId) != string(root.TraceId) {
					t.Errorf("%s stands elsewhere than under its operation", s.Name)
				}
				if s.Text("fermata.operation.kind") != "tool_call" || s.Text("fermata.operation.id") != string(op) {
					t.Errorf("%s says %v", s.Name, s.Attributes)
				}
			}
		})
	}
}

func TestB24RunsOfASession(t *testing.T) {
	w := newWriter(1)
	begin, turn, agents := started("s", events.SessionStart, ""), started("t", events.BeforeTurn, events.ModeAsync), started("u", events.AfterTurn, "")
	w.put("", 0, nil, events.SessionOpened{Agent: "claude"}, begin)
	w.put("", time.Second, func(m *events.Message) { m.Turn = "1" }, events.TurnStarted{Turn: "1"}, turn)
	w.put("", time.Second, func(m *events.Message) { m.Traceparent = agentParent }, events.TurnEnded{Turn: "1"}, agents)
	w.put("", time.Second, nil, ran(begin, events.RunOK, 0, 0), ran(turn, events.RunOK, 0, time.Second), ran(agents, events.RunOK, 0, 0))
	want := []told{
		{"hook.run add-region", "session_start", "", "ok", 0, 3 * time.Second},
		{"wait.hook_slot", "before_turn", "async", "", time.Second, 2 * time.Second},
		{"hook.run add-region", "before_turn", "async", "ok", 2 * time.Second, 3 * time.Second},
		{"hook.run add-region", "after_turn", "", "ok", 2 * time.Second, 3 * time.Second},
	}
	if diff := cmp.Diff(want, toldOf(t, w)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	agent, _ := ParseTraceparent(agentParent)
	store, session := options(nil).StoreID, string(w.session)
	for i, want := range []struct {
		trace, parent string
		flags         uint32
	}{
		{TraceID(store, session).String(), "", flagsLocal},
		{TraceID(store, session+"/1").String(), "", flagsLocal},
		{TraceID(store, session+"/1").String(), "", flagsLocal},
		{agent.TraceID().String(), agent.SpanID().String(), flagsRemote},
	} {
		s := project(t, w.records)[i]
		if got := fmt.Sprintf("%x", s.TraceId); got != want.trace {
			t.Errorf("span %d: trace %s, want %s", i, got, want.trace)
		}
		if got := fmt.Sprintf("%x", s.ParentSpanId); got != want.parent {
			t.Errorf("span %d: parent %s, want %s", i, got, want.parent)
		}
		if s.Flags != want.flags {
			t.Errorf("span %d: flags %#x, want %#x", i, s.Flags, want.flags)
		}
		if s.Text("session.id") != session || s.Text("fermata.operation.id") != "" {
			t.Errorf("span %d says %v", i, s.Attributes)
		}
	}
}

// TestF3EachStartOfADurableRunIsOneSpan: a delivery that starts again is another
// process; a start whose end nobody saw ends where the next one begins.
func TestF3EachStartOfADurableRunIsOneSpan(t *testing.T) {
	w := newWriter(1)
	op := w.id()
	start := func(n int) events.HookStarted {
		s := started("d", "", events.ModeAsync)
		s.Start = n
		return s
	}
	w.put(op, 0, nil, proposal(), events.OperationCommitted{Version: version(0)}, start(1))
	w.put(op, time.Second, nil, start(2)) // the core was killed in between
	w.put(op, time.Second, nil, ran(start(2), events.RunFailed, time.Second, 0))
	w.put(op, time.Second, nil, start(3))
	w.put(op, time.Second, nil, ran(start(3), events.RunOK, time.Second, 0))
	want := []told{
		{"hook.run add-region", "before_tool_call", "async", "abandoned", 0, time.Second},
		{"hook.run add-region", "", "async", "failed", time.Second, 2 * time.Second},
		{"hook.run add-region", "", "async", "ok", 3 * time.Second, 4 * time.Second},
	}
	if diff := cmp.Diff(want, toldOf(t, w)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	ids := map[string]bool{}
	for _, s := range project(t, w.records) {
		ids[string(s.SpanId)] = true
	}
	if len(ids) != 5 { // with the commit and the operation
		t.Errorf("%d different spans", len(ids))
	}
}

func TestVerifyFindsChangedRuns(t *testing.T) {
	w := newWriter(1)
	op := w.id()
	run := started("r", events.AfterToolCall, events.ModeAsync)
	w.put(op, 0, nil, proposal(), events.OperationCommitted{Version: version(0)})
	w.put(op, time.Second, nil, run)
	w.put(op, time.Second, nil, ran(run, events.RunOK, 500*time.Millisecond, 500*time.Millisecond))
	change := func(name, key, value string) func([]Span) []Span {
		return func(spans []Span) []Span {
			for _, kv := range find(t, spans, name).Attributes {
				if kv.Key == key {
					kv.Value = otlpText(key, value).Value
				}
			}
			return spans
		}
	}
	without := func(name string) func([]Span) []Span {
		return func(spans []Span) []Span {
			return slices.DeleteFunc(spans, func(s Span) bool { return s.Name == name })
		}
	}
	for name, c := range map[string]struct {
		change func([]Span) []Span
		want   []string
	}{
		"nothing": {func(s []Span) []Span { return s }, nil},
		"run":     {without("hook.run add-region"), []string{"S3"}},
		"wait":    {without("wait.hook_slot"), []string{"S3"}},
		"outcome": {change("hook.run add-region", "fermata.hook.outcome", "failed"), []string{"S5"}},
		"mode":    {change("wait.hook_slot", "fermata.hook.mode", "fire_and_forget"), []string{"S5"}},
		"parent": {func(s []Span) []Span {
			find(t, s, "wait.hook_slot").ParentSpanId = nil
			return s
		}, []string{"S7"}},
		"wait in the run": {func(s []Span) []Span {
			find(t, s, "wait.hook_slot").EndTimeUnixNano += 1000
			return s
		}, []string{"S5"}},
	} {
		t.Run(name, func(t *testing.T) {
			report := verify(t, w.records, each(c.change(project(t, w.records))))
			if diff := cmp.Diff(c.want, rules(report)); diff != "" {
				t.Errorf("rules (-want +got):\n%s%v", diff, report.Findings)
			}
		})
	}
}

func TestB99ARunThatEndsTwiceIsFound(t *testing.T) {
	w := newWriter(1)
	run := started("r", events.SessionStart, "")
	for range 2 {
		w.put("", time.Second, nil, run, ran(run, events.RunOK, 0, 0))
	}
	report := verify(t, w.records, each(project(t, w.records)))
	if got := rules(report); !slices.Contains(got, "S1") {
		t.Errorf("rules %v", got)
	}
}
