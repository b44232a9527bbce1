package tracing

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

func find(t *testing.T, spans []Span, name string) Span {
	t.Helper()
	i := slices.IndexFunc(spans, func(s Span) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no span %s", name)
	}
	return spans[i]
}

func TestB96EveryEndOfAQuestion(t *testing.T) {
	results := []events.Result{
		events.ResultTimedOut, events.ResultUnavailable, events.ResultWithdrawn, events.ResultFailed,
	}
	failed := map[events.EndReason]bool{
		events.EndDeadline: true, events.EndNoFrontend: true, events.EndUnclaimed: true,
		events.EndStoreError: true, events.EndInternal: true,
	}
	for _, gate := range []events.Gate{events.GateHook, events.GateApproval} {
		for _, result := range results {
			for _, reason := range events.EndReasons(result) {
				t.Run(fmt.Sprintf("%s %s/%s", gate, result, reason), func(t *testing.T) {
					w := newWriter(1)
					_, q := endedQuestion(w, gate, func(q events.ID) []events.Event {
						return []events.Event{
							events.Withdrawn{Gate: gate, ID: q, Result: result, Reason: reason},
							events.OperationRefused{Code: events.CodeEnded, Question: q},
						}
					})
					checkWait(t, w, q, gate, result, reason, failed[reason])
				})
			}
		}
		for answer, reason := range map[events.Answer]events.EndReason{
			events.AnswerContinue: events.EndContinue, events.AnswerCancel: events.EndCancel,
			events.AnswerClientCancels: events.EndClientCancelled, events.AnswerAlwaysTool: events.EndContinue,
		} {
			t.Run(fmt.Sprintf("%s %s", gate, answer), func(t *testing.T) {
				w := newWriter(1)
				_, q := endedQuestion(w, gate, func(q events.ID) []events.Event {
					return []events.Event{events.Response{Gate: gate, ID: q, Principal: "uid:1000", Answer: answer}}
				})
				s := checkWait(t, w, q, gate, events.ResultAnswered, reason, false)
				if s.Text("fermata.actor.class") != "human" || s.Text("fermata.actor.ref") == "" {
					t.Error("the answer names no actor")
				}
				if got := s.Text("fermata.approval.outcome"); (gate == events.GateApproval) != (got == string(answer)) {
					t.Errorf("approval outcome %q at gate %s", got, gate)
				}
			})
		}
	}
}

func checkWait(
	t *testing.T, w *writer, q events.ID, gate events.Gate, result events.Result, reason events.EndReason, failed bool,
) Span {
	t.Helper()
	spans := project(t, w.records)
	s := find(t, spans, "wait."+string(gate))
	if s.Text("fermata.question.id") != string(q) || s.Text("fermata.wait.category") != string(gate) {
		t.Errorf("B95: question %q, category %q", s.Text("fermata.question.id"), s.Text("fermata.wait.category"))
	}
	if s.Text("fermata.wait.result") != string(result) || s.Text("fermata.wait.end_reason") != string(reason) {
		t.Errorf("says %s/%s", s.Text("fermata.wait.result"), s.Text("fermata.wait.end_reason"))
	}
	isError := s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR
	if isError != failed || (s.Text("error.type") == string(reason)) != failed {
		t.Errorf("status %v, error.type %q", s.GetStatus(), s.Text("error.type"))
	}
	if result != events.ResultAnswered && s.Text("fermata.actor.ref") != "" {
		t.Error("an end that nobody answered names an actor")
	}
	if got := s.EndTimeUnixNano - s.StartTimeUnixNano; got != uint64(5*time.Second) {
		t.Errorf("lasted %v", time.Duration(got))
	}
	if report := verify(t, w.records, each(spans)); len(report.Findings) > 0 {
		t.Errorf("findings %v", report.Findings)
	}
	return s
}

func TestB97AndB98TheAskingRun(t *testing.T) {
	w := newWriter(1)
	recheckedCall(w)
	spans := project(t, w.records)
	run, wait := find(t, spans, "hook.run ask-before-push"), find(t, spans, "wait.hook_confirmation")
	if run.Text("fermata.hook.effect") != "ask" {
		t.Errorf("B97: effect %q", run.Text("fermata.hook.effect"))
	}
	if run.EndTimeUnixNano != wait.StartTimeUnixNano {
		t.Errorf("B98: the run ends at %d, its wait begins at %d", run.EndTimeUnixNano, wait.StartTimeUnixNano)
	}
}

func TestB99RunsEndWithTheirOperation(t *testing.T) {
	w := newWriter(1)
	op, run := w.id(), w.id()
	w.put(op, 0, nil, proposal(), events.HookStarted{Run: run, Hook: askHook})
	w.put(op, time.Second, nil, events.OperationAborted{Reason: events.EndInterrupted})
	w.put(op, time.Second, nil, events.HookRan{Run: run, Hook: askHook, Effect: events.EffectAllow, Outcome: events.RunOK})
	spans := project(t, w.records)
	s := find(t, spans, "hook.run ask-before-push")
	if len(spans) != 2 || s.Text("fermata.hook.outcome") != "abandoned" || s.EndTimeUnixNano-s.StartTimeUnixNano != uint64(time.Second) {
		t.Errorf("%d spans, the run: %v", len(spans), s)
	}
}

func TestWithdrawnQuestionIsNotAsked(t *testing.T) {
	w := newWriter(1)
	op, q := w.id(), w.id()
	w.put(op, 0, nil, proposal(),
		events.Request{Gate: events.GateHook, ID: q, Hook: askHook, Version: version(0), Previous: -1},
		events.Withdrawn{Gate: events.GateHook, ID: q, Result: events.ResultUnavailable, Reason: events.EndNoFrontend},
		events.OperationRefused{Code: events.CodeUnavailable, Question: q})
	// What a late frontend still says must change nothing.
	w.put(op, time.Second, nil, events.Response{Gate: events.GateHook, ID: q, Answer: events.AnswerContinue})
	spans := project(t, w.records)
	if len(spans) != 2 || spans[0].StartTimeUnixNano != spans[0].EndTimeUnixNano {
		t.Errorf("spans %v", spans)
	}
}

func TestClockThatGoesBack(t *testing.T) {
	w := newWriter(1)
	op, q := w.id(), w.id()
	w.put(op, 0, nil, proposal(), events.Request{Gate: events.GateHook, ID: q, Version: version(0), Previous: -1})
	w.put(op, -time.Hour, nil,
		events.Presented{Gate: events.GateHook, ID: q, At: 17},
		events.Response{Gate: events.GateHook, ID: q, Answer: events.AnswerCancel},
		events.OperationRefused{Code: events.CodeDeclined, Question: q})
	for _, s := range project(t, w.records) {
		if s.EndTimeUnixNano != s.StartTimeUnixNano {
			t.Errorf("%s lasts from %d to %d", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
		}
		for _, e := range s.Events {
			if e.TimeUnixNano < s.StartTimeUnixNano || e.TimeUnixNano > s.EndTimeUnixNano {
				t.Errorf("event %s lies outside of its span", e.Name)
			}
		}
	}
}

func TestDecidedBy(t *testing.T) {
	yes := func(answered, committed int) []events.Event {
		q := events.ID("01m3250v00zx5e77vbph7vg000")
		return []events.Event{
			events.Request{Gate: events.GateHook, ID: q, Version: version(answered), Previous: -1},
			events.Response{Gate: events.GateHook, ID: q, Answer: events.AnswerContinue},
			events.OperationCommitted{Version: version(committed)},
		}
	}
	ran := []events.Event{
		events.HookStarted{Run: "r", Hook: askHook},
		events.HookRan{Run: "r", Hook: askHook, Effect: events.EffectAllow, Outcome: events.RunOK},
	}
	for name, c := range map[string]struct {
		events      []events.Event
		outcome, by string
		links       int
	}{
		"no hook":  {[]events.Event{events.OperationCommitted{}}, "committed", "system", 0},
		"a hook":   {append(slices.Clone(ran), events.OperationCommitted{}), "committed", "hook", 0},
		"a person": {yes(0, 0), "committed", "human", 1},
		"a hook that watches": {
			[]events.Event{
				events.HookStarted{Run: "r", Hook: askHook, Event: events.ApprovalRequested},
				events.HookRan{Run: "r", Hook: askHook, Event: events.ApprovalRequested, Outcome: events.RunOK},
				events.OperationCommitted{},
			}, "committed", "system", 0,
		},
		"yes to another one": {append(slices.Clone(ran), yes(0, 1)...), "committed", "hook", 0},
		"declined":           {[]events.Event{events.OperationRefused{Code: events.CodeDeclined}}, "refused", "human", 0},
		"timed out":          {[]events.Event{events.OperationRefused{Code: events.CodeTimedOut}}, "refused", "timeout", 0},
		"blocked":            {[]events.Event{events.OperationRefused{Code: events.CodeBlocked}}, "refused", "hook", 0},
		"unavailable":        {[]events.Event{events.OperationRefused{Code: events.CodeUnavailable}}, "refused", "system", 0},
		"interrupted":        {[]events.Event{events.OperationAborted{Reason: events.EndInterrupted}}, "aborted", "system", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWriter(1)
			w.put(w.id(), 0, nil, append([]events.Event{proposal()}, c.events...)...)
			spans := project(t, w.records)
			s := find(t, spans, "fermata.operation")
			if s.Text("fermata.operation.outcome") != c.outcome || s.Text("fermata.operation.decided_by") != c.by {
				t.Errorf("%s by %s", s.Text("fermata.operation.outcome"), s.Text("fermata.operation.decided_by"))
			}
			for _, s := range spans {
				if s.Name == "commit" && len(s.Links) != c.links {
					t.Errorf("the commit has %d links, want %d", len(s.Links), c.links)
				}
			}
		})
	}
}

// TestMetadataOnly: what must not leave the machine is in no span, and every
// attribute is one of the profile's.
func TestMetadataOnly(t *testing.T) {
	records := syntheticLog(5, 200)
	file := lines(t, records)
	for _, word := range []string{secretText, "/home/somebody", "password", "uid:"} {
		if bytes.Contains(file, []byte(word)) {
			t.Errorf("the spans contain %q", word)
		}
	}
	for _, f := range verify(t, records, Read(bytes.NewReader(file))).Findings {
		t.Errorf("finding %v", f)
	}
}

func TestTimelineIsBounded(t *testing.T) {
	w := newWriter(1)
	_, q := endedQuestion(w, events.GateHook, func(q events.ID) []events.Event {
		var es []events.Event
		for range 300 {
			es = append(es, events.AnswerRejected{ID: q, Code: events.RejectNotClaimer})
		}
		return append(es, events.Withdrawn{Gate: events.GateHook, ID: q, Result: events.ResultTimedOut, Reason: events.EndDeadline})
	})
	s := find(t, project(t, w.records), "wait.hook_confirmation")
	first, last := s.Events[0].Name, s.Events[len(s.Events)-1].Name
	if len(s.Events) != timelineLimit || s.DroppedEventsCount != 302-timelineLimit {
		t.Errorf("question %s: %d events, %d dropped", q, len(s.Events), s.DroppedEventsCount)
	}
	if first != "fermata.question.asked" || last != "fermata.question.timed_out" {
		t.Errorf("from %s to %s", first, last)
	}
}

func TestLongAndBrokenNames(t *testing.T) {
	w := newWriter(1)
	p := proposal()
	p.Tool.Name = strings.Repeat("é", 3000) + "\xff"
	w.put(w.id(), 0, nil, p, events.OperationRefused{Code: events.CodeBlocked})
	got := project(t, w.records)[0].Text("gen_ai.tool.name")
	if want := strings.Repeat("é", textLimit/2) + "…"; got != want {
		t.Errorf("name of %d bytes", len(got))
	}
	lines(t, w.records)
}

// TestMemoryIsThatOfOpenOperations: nothing is kept of what has ended.
func TestMemoryIsThatOfOpenOperations(t *testing.T) {
	f := newFold(options(nil))
	records := syntheticLog(6, 1000)
	for _, r := range records {
		if _, err := f.record(r); err != nil {
			t.Fatal(err)
		}
		if len(f.open) > 24 || f.order.Len() != len(f.open)+len(f.late) {
			t.Fatalf("%d operations and %d runs kept, %d in order, behind message %d", len(f.open), len(f.late), f.order.Len(), r.Seq)
		}
	}
	last := records[len(records)-1].Seq
	if f.order.Len() != 0 || f.low(last) != last+1 {
		t.Errorf("%d operations left, low %d", len(f.open), f.low(last))
	}
}

// TestLowLosesNothing: a projection that begins at Low gives, behind the
// message that told Low, exactly what the whole one gives.
func TestLowLosesNothing(t *testing.T) {
	records := syntheticLog(7, 40)
	p, err := New(options(nil))
	if err != nil {
		t.Fatal(err)
	}
	var all []Ended
	for e, err := range p.Project(from(records, 1)) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(0, len(all)-1).Draw(t, "cut")
		var got []byte
		for e, err := range p.Project(from(records, all[cut].Low)) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq > all[cut].Seq {
				got = append(got, e.Line...)
			}
		}
		var want []byte
		for _, e := range all[cut+1:] {
			want = append(want, e.Line...)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("from %d on, behind %d: %d bytes, want %d", all[cut].Low, all[cut].Seq, len(got), len(want))
		}
	})
}

func TestProjectRefusesABadLog(t *testing.T) {
	w := newWriter(8)
	recheckedCall(w)
	good := w.records
	broken := func(err error) iter.Seq2[Record, error] {
		return func(yield func(Record, error) bool) { _ = yield(good[0], nil) && yield(Record{}, err) }
	}
	foreign := good[0]
	foreign.Subject = events.OperationSubject("x", "y", "z")
	moved := good[0]
	moved.Subject = newerSubject(t, good[0].Subject)
	garbage := good[0]
	garbage.Data = []byte{0xc1}
	unreachable := errors.New("no log")
	for name, c := range map[string]struct {
		log  iter.Seq2[Record, error]
		want string
	}{
		"error":         {broken(unreachable), "no log"},
		"order":         {from([]Record{good[1], good[0]}, 0), "must be in order"},
		"subject":       {from([]Record{foreign}, 0), "not a subject"},
		"moved":         {from([]Record{moved}, 0), "behind the core's back"},
		"not a message": {from([]Record{garbage}, 0), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			sink := &memory{}
			p, err := New(options(sink))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Run(t.Context(), c.log); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// newerSubject is the subject of another operation of the same session.
func newerSubject(t *testing.T, subject string) string {
	t.Helper()
	s, err := events.ParseLogSubject(subject)
	if err != nil {
		t.Fatal(err)
	}
	return events.OperationSubject(s.Project, s.Session, events.NewID(time.UnixMilli(1), [10]byte{}))
}

func TestOptions(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"store":  func(o *Options) { o.StoreID = "" },
		"key id": func(o *Options) { o.Key.ID = "k:1" },
		"key":    func(o *Options) { o.Key.Secret = []byte("short") },
	} {
		o := options(nil)
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	p, err := New(options(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context(), from(nil, 1)); err == nil {
		t.Error("ran without a sink")
	}
}
