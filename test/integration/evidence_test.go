package integration_test

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/core/engine"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/core/natsd"
	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/tracing"
)

// evidence is what a core has left behind: its log and its spans.
type evidence struct {
	records  []tracing.Record
	messages []events.Message // those of operations and sessions
	spans    []tracing.Span
	verify   tracing.VerifyOptions
}

// evidence reads the log and the spans of a core that is down.
func (h *home) evidence(t testing.TB) evidence {
	t.Helper()
	seed, err := os.ReadFile(filepath.Join(h.dirs.State, "keys", "core"))
	if err != nil {
		t.Fatal(err)
	}
	store := events.CoreToken(string(seed))
	e := evidence{verify: tracing.VerifyOptions{StoreID: string(store), Key: tracing.Key{ID: "k1", Secret: seed}}}
	e.readLog(t, h, store)
	for s, err := range tracing.ReadFile(filepath.Join(h.dirs.State, "traces.jsonl")) {
		if err != nil {
			t.Fatal(err)
		}
		e.spans = append(e.spans, s)
	}
	return e
}

func (e *evidence) readLog(t testing.TB, h *home, store events.Token) {
	t.Helper()
	server, err := natsd.Start(natsd.Options{StateDir: h.dirs.State, RuntimeDir: h.dir + "/read", MaxStore: 16 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	nc, err := server.Core()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	log, err := journal.Open(t.Context(), nc, journal.Options{
		Core: store, Now: time.Now, NewID: func() events.ID { return engine.NewID(time.Now()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range log.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		e.records = append(e.records, tracing.Record{Seq: r.Seq, Subject: r.Subject, Data: r.Data})
		m, err := events.DecodeMessage(r.Data)
		if err != nil {
			t.Fatal(err)
		}
		m.Seq = r.Seq
		e.messages = append(e.messages, m)
	}
}

// fact is one event of the log and the message that it stands in.
type fact[E events.Event] struct {
	Event   E
	Message events.Message
}

// facts are the events of one type, in the log's order.
func facts[E events.Event](e evidence) []fact[E] {
	var all []fact[E]
	for _, m := range e.messages {
		for _, ev := range m.Events {
			if ev, ok := ev.(E); ok {
				all = append(all, fact[E]{ev, m})
			}
		}
	}
	return all
}

// of narrows facts to one operation.
func of[E events.Event](all []fact[E], op events.ID) []fact[E] {
	return slices.DeleteFunc(slices.Clone(all), func(f fact[E]) bool { return f.Message.Operation != op })
}

// calls are the operations of a tool, in the order in which they were proposed.
func (e evidence) calls(tool string) []events.ID {
	var ids []events.ID
	for _, f := range facts[events.OperationProposed](e) {
		if f.Event.Tool.Name == tool {
			ids = append(ids, f.Message.Operation)
		}
	}
	return ids
}

// call is the one operation of a tool.
func (e evidence) call(t testing.TB, tool string) events.ID {
	t.Helper()
	ids := e.calls(tool)
	if len(ids) != 1 {
		t.Fatalf("%d operations of %s, want one", len(ids), tool)
	}
	return ids[0]
}

// ending is how a question ended.
type ending struct {
	result events.Result
	reason events.EndReason
}

// endings are those of every question, as often as the log has them.
func (e evidence) endings() map[events.ID][]ending {
	all := map[events.ID][]ending{}
	for _, f := range facts[events.Request](e) {
		all[f.Event.ID] = nil
	}
	for _, f := range facts[events.Response](e) {
		reason := map[events.Answer]events.EndReason{
			events.AnswerContinue: events.EndContinue, events.AnswerCancel: events.EndCancel,
		}[f.Event.Answer]
		all[f.Event.ID] = append(all[f.Event.ID], ending{events.ResultAnswered, reason})
	}
	for _, f := range facts[events.Withdrawn](e) {
		all[f.Event.ID] = append(all[f.Event.ID], ending{f.Event.Result, f.Event.Reason})
	}
	return all
}

// checkSpans holds the spans against the log: of every question that ended
// exactly one, with its result and end_reason, and nothing that does not hold.
func (e evidence) checkSpans(t testing.TB) {
	t.Helper()
	waits := map[events.ID][]ending{}
	for _, s := range e.spans {
		if s.Name == "wait.hook_confirmation" {
			id := events.ID(s.Text("fermata.question.id"))
			waits[id] = append(waits[id], ending{
				events.Result(s.Text("fermata.wait.result")), events.EndReason(s.Text("fermata.wait.end_reason")),
			})
		}
	}
	endings := e.endings()
	for id, ends := range endings {
		if len(ends) != 1 {
			t.Errorf("question %s ended %d times in the log: %v", id, len(ends), ends)
		}
		if !slices.Equal(waits[id], ends) {
			t.Errorf("question %s: the spans say %v, the log %v", id, waits[id], ends)
		}
	}
	if len(waits) != len(endings) {
		t.Errorf("%d questions have spans, the log has %d", len(waits), len(endings))
	}
	report, err := tracing.Verify(e.verify, sequence(e.records), sequence(e.spans))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		t.Errorf("finding %s about %s: %s", f.Rule, f.Object, f.Detail)
	}
}

// checkRuns: the right to run was given at most once to each operation, for a
// version that had been checked to its end.
func (e evidence) checkRuns(t testing.TB) {
	t.Helper()
	checked := facts[events.OperationChecked](e)
	seen := map[events.ID]bool{}
	for _, f := range facts[events.OperationCommitted](e) {
		op := f.Message.Operation
		if seen[op] {
			t.Errorf("operation %s was committed twice", op)
		}
		seen[op] = true
		last := of(checked, op)
		if len(last) == 0 || last[len(last)-1].Event.Version != f.Event.Version {
			t.Errorf("operation %s: committed %v, checked %v", op, f.Event.Version, last)
		}
	}
}

func sequence[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}
