package tracing

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// testKey and options are the same in every test and in the killed process.
func options(sink Sink) Options {
	return Options{
		StoreID: string(events.CoreToken("test")), Version: "0.1.0", Sink: sink,
		Key: Key{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")},
	}
}

// secretText stands in every body and name that must not leave the machine.
const secretText = "hunter2-do-not-export"

// writer makes a log as a core would: whole operations, interleaved.
type writer struct {
	rng     *rand.Rand
	now     events.Micros
	seq     uint64
	project events.Token
	session events.Token
	records []Record
}

func newWriter(seed uint64) *writer {
	project := events.ProjectToken("/home/somebody/project")
	return &writer{
		rng: rand.New(rand.NewPCG(seed, 1)), now: 1_790_000_000_000_000, project: project,
		session: events.SessionToken(events.CoreToken("test"), "claude", "native"),
	}
}

func (w *writer) id() events.ID {
	var entropy [10]byte
	binary.BigEndian.PutUint64(entropy[:], w.rng.Uint64())
	return events.NewID(w.now.Time(), entropy)
}

// put appends one message of an operation, or of the session when op is ""; d is
// how long after the last.
func (w *writer) put(op events.ID, d time.Duration, fill func(*events.Message), es ...events.Event) {
	w.now += events.Micros(d.Microseconds())
	w.seq++
	m := events.Message{
		ID: w.id(), Project: w.project, Session: w.session, Operation: op, At: w.now, Principal: "core", Events: es,
	}
	if fill != nil {
		fill(&m)
	}
	salt := make([]byte, events.SaltSize)
	m.Bodies = []events.Body{{Key: "args/0", Salt: salt, Data: []byte(`{"password":"` + secretText + `"}`)}}
	data, _, err := events.EncodeMessage(m)
	if err != nil {
		panic(err)
	}
	subject := events.OperationSubject(w.project, w.session, op)
	if op == "" {
		subject = events.SessionSubject(w.project, w.session)
	}
	w.records = append(w.records, Record{Seq: w.seq, Subject: subject, Data: data})
}

// other appends a message that is about no session.
func (w *writer) other() {
	w.seq++
	w.records = append(w.records, Record{Seq: w.seq, Subject: events.GrantsSubject(w.project)})
}

func version(n int) events.Version {
	return events.Version{N: n, Digest: events.DigestOf(fmt.Append(nil, "version", n)), Bytes: 20 + n}
}

var (
	askHook = events.Hook{ID: "ask-before-push", Scope: events.ScopeProject, File: "/home/somebody/.fermata/hooks.yaml", Line: 6}
	addHook = events.Hook{ID: "add-region", Scope: events.ScopeGlobal, File: "/home/somebody/hooks.yaml", Line: 14, Index: 1}
)

func proposal() events.OperationProposed {
	return events.OperationProposed{
		Kind: events.KindToolCall, Agent: "claude", Path: "main", Cwd: "/home/somebody/project",
		Tool:    events.Tool{Name: "Bash", Kind: "shell", CallID: "call_1"},
		Version: version(0), Config: events.DigestOf([]byte("config")), Secret: events.DigestOf([]byte("secret")),
	}
}

// life is one operation's messages, made one by one as the log gets to them.
type life = iter.Seq[[]events.Event]

// randomLife goes through up to four hooks, each of which may ask, change,
// block, fail or never end.
func (w *writer) randomLife() life {
	return func(yield func([]events.Event) bool) {
		run, question := w.id(), events.ID("")
		if !yield([]events.Event{proposal(), events.HookStarted{Run: run, Hook: askHook, Version: 0}}) {
			return
		}
		v := 0
		for range 1 + w.rng.IntN(3) {
			ran := events.HookRan{
				Run: run, Hook: askHook, Outcome: events.RunOK, Script: version(9).Digest,
				Micros: w.rng.Int64N(30_000), Waited: w.rng.Int64N(2) * w.rng.Int64N(300_000),
			}
			next := w.id()
			again := events.HookStarted{Run: next, Hook: addHook, Version: v}
			switch w.rng.IntN(7) {
			case 0:
				ran.Effect = events.EffectBlock
				yield([]events.Event{ran, events.OperationRefused{Code: events.CodeBlocked, Run: run}})
				return
			case 1:
				yield([]events.Event{events.OperationAborted{Reason: events.EndTurnEnded}})
				ran.Outcome = events.RunAbandoned
				yield([]events.Event{ran})
				return
			case 2:
				ran.Effect = events.EffectModify
				v++
				change := events.ArgumentsChanged{From: v - 1, To: version(v), Cause: events.CauseHook, Names: []string{secretText}}
				if !yield([]events.Event{ran, change, again}) {
					return
				}
			case 3, 4, 5:
				ran.Effect, question = events.EffectAsk, w.id()
				request := events.Request{
					Gate: events.GateHook, ID: question, Hook: askHook, Run: run, Version: version(v), Previous: -1,
					Deadline: w.now + 60_000_000, Offered: 2,
				}
				if w.rng.IntN(4) == 0 {
					request.Gate = events.GateApproval
				}
				if !yield([]events.Event{ran, request}) || !w.randomWait(request, again, yield) {
					return
				}
			default:
				ran.Effect = events.EffectAllow
				if !yield([]events.Event{ran, again}) {
					return
				}
			}
			run = next
		}
		last := events.HookRan{Run: run, Hook: addHook, Effect: events.EffectAllow, Outcome: events.RunOK}
		commit := []events.Event{last, events.OperationChecked{Version: version(v)}, events.OperationCommitted{Version: version(v)}}
		watchers := w.watchers("")
		for _, run := range watchers {
			commit = append(commit, run.HookStarted)
		}
		_ = yield(commit) &&
			yield([]events.Event{events.OperationDelivered{}}) &&
			w.randomEnds(watchers, yield) &&
			yield([]events.Event{events.OperationFinished{Outcome: events.OutcomeUnknown}}) &&
			yield([]events.Event{events.OperationFinished{Outcome: events.OutcomeOK, Ran: version(v).Digest}}) &&
			w.randomRuns(events.AfterToolCall, yield)
	}
}

// randomSignals are what hooks of observed events do on a session's subject.
func (w *writer) randomSignals() life {
	return func(yield func([]events.Event) bool) {
		_ = yield([]events.Event{events.TurnStarted{Turn: "1"}}) && w.randomRuns(events.BeforeTurn, yield) &&
			yield([]events.Event{events.TurnEnded{Turn: "1"}}) && w.randomRuns(events.AfterTurn, yield)
	}
}

// watched is a run that does not end with its operation.
type watched struct{ events.HookStarted }

func (w *writer) watchers(event events.HookEvent) []watched {
	list := make([]watched, w.rng.IntN(4))
	for i := range list {
		list[i].HookStarted = events.HookStarted{Run: w.id(), Hook: addHook, Event: event, Mode: events.ModeAsync}
		if event != "" && w.rng.IntN(2) == 0 {
			list[i].Mode = ""
		}
	}
	return list
}

// ran ends a run in one of the ways that there are.
func (w *writer) ran(run watched) events.HookRan {
	e := events.HookRan{
		Run: run.Run, Hook: run.Hook, Effect: events.EffectAllow, Outcome: events.RunOK, Event: run.Event, Mode: run.Mode,
		Micros: w.rng.Int64N(1_000_000), Waited: w.rng.Int64N(2) * w.rng.Int64N(300_000),
	}
	switch w.rng.IntN(5) {
	case 0:
		e.Effect, e.Outcome, e.Micros, e.Waited = events.EffectError, events.RunAbandoned, 0, 0
	case 1:
		e.Outcome, e.Micros, e.Waited = events.RunDetached, 0, 0
	case 2:
		e.Effect, e.Outcome = events.EffectError, events.RunTimedOut
	}
	return e
}

// randomRuns starts runs, one message for all, and ends them.
func (w *writer) randomRuns(event events.HookEvent, yield func([]events.Event) bool) bool {
	runs := w.watchers(event)
	var start []events.Event
	for _, run := range runs {
		start = append(start, run.HookStarted)
	}
	return (len(start) == 0 || yield(start)) && w.randomEnds(runs, yield)
}

// randomEnds ends runs in any order; those that nobody waits for may start again.
func (w *writer) randomEnds(runs []watched, yield func([]events.Event) bool) bool {
	for len(runs) > 0 {
		i := w.rng.IntN(len(runs))
		end := 2 // for good; 1: it starts again, 0: likewise, and its end is lost
		if runs[i].Start < 3 && runs[i].Mode != "" {
			end = w.rng.IntN(3)
		}
		if end > 0 && !yield([]events.Event{w.ran(runs[i])}) {
			return false
		}
		if end == 2 {
			runs = slices.Delete(runs, i, i+1)
			continue
		}
		runs[i].Start = max(runs[i].Start, 1) + 1
		if !yield([]events.Event{runs[i].HookStarted}) {
			return false
		}
	}
	return true
}

// randomWait draws, claims and ends a question; false when that ended the
// operation.
func (w *writer) randomWait(q events.Request, next events.Event, yield func([]events.Event) bool) bool {
	frontend := w.id()
	claim := events.Claimed{Gate: q.Gate, ID: q.ID, Frontend: frontend, Kind: events.FrontendTUI, Name: secretText, Principal: secretText}
	shown := events.Presented{Gate: q.Gate, ID: q.ID, Frontend: frontend, Kind: events.FrontendTUI, Digest: q.Version.Digest, At: w.now}
	for range w.rng.IntN(3) {
		if !yield([]events.Event{shown, claim}) ||
			!yield([]events.Event{events.Released{Gate: q.Gate, ID: q.ID, Frontend: frontend, Reason: events.ReleasedLapsed}}) ||
			!yield([]events.Event{events.AnswerRejected{ID: q.ID, Frontend: frontend, Code: events.RejectNotClaimer}}) {
			return false
		}
	}
	response := events.Response{
		Gate: q.Gate, ID: q.ID, Frontend: frontend, Kind: events.FrontendTUI, Principal: secretText,
		Answer: events.AnswerContinue, Digest: q.Version.Digest,
	}
	end := func(r events.EndReason) events.Withdrawn {
		return events.Withdrawn{Gate: q.Gate, ID: q.ID, Result: events.ResultOf(r), Reason: r}
	}
	switch w.rng.IntN(6) {
	case 0:
		response.Answer = events.AnswerCancel
		yield([]events.Event{claim, response, events.OperationRefused{Code: events.CodeDeclined, Question: q.ID}})
		return false
	case 1:
		yield([]events.Event{end(events.EndDeadline), events.OperationRefused{Code: events.CodeTimedOut, Question: q.ID}})
		return false
	case 2:
		yield([]events.Event{end(events.EndTurnEnded), events.OperationAborted{Reason: events.EndTurnEnded}})
		late := events.AnswerRejected{ID: q.ID, Frontend: frontend, Code: events.RejectWithdrawn}
		yield([]events.Event{late})
		return false
	}
	return yield([]events.Event{claim, response, next})
}

// syntheticLog interleaves operations, up to 12 of them open at a time.
func syntheticLog(seed uint64, operations int) []Record {
	w := newWriter(seed)
	type running struct {
		id   events.ID
		next func() ([]events.Event, bool)
		stop func()
	}
	var open []running
	for operations > 0 || len(open) > 0 {
		if operations > 0 && (len(open) == 0 || len(open) < 12 && w.rng.IntN(3) == 0) {
			next, stop := iter.Pull(w.randomLife())
			open = append(open, running{w.id(), next, stop})
			operations--
			if w.rng.IntN(8) == 0 {
				next, stop := iter.Pull(w.randomSignals())
				open = append(open, running{"", next, stop})
			}
			if w.rng.IntN(8) == 0 {
				w.other()
			}
		}
		i := w.rng.IntN(len(open))
		es, ok := open[i].next()
		if !ok {
			open[i].stop()
			open = slices.Delete(open, i, i+1)
			continue
		}
		w.put(open[i].id, time.Duration(w.rng.IntN(500_000))*time.Microsecond, nil, es...)
	}
	return w.records
}

// from is a log that begins at a sequence.
func from(records []Record, first uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, r := range records {
			if r.Seq >= first && !yield(r, nil) {
				return
			}
		}
	}
}

// project returns all spans of a log.
func project(t testing.TB, records []Record) []Span {
	t.Helper()
	p, err := New(options(nil))
	if err != nil {
		t.Fatal(err)
	}
	var spans []Span
	for e, err := range p.Project(from(records, 1)) {
		if err != nil {
			t.Fatal(err)
		}
		spans = append(spans, spansOf(t, e.Line)...)
	}
	return spans
}

// spansOf returns the spans of one line.
func spansOf(t testing.TB, line []byte) []Span {
	t.Helper()
	d, err := decodeLine(line)
	if err != nil {
		t.Fatal(err)
	}
	return spansIn(d)
}

// lines returns the file that a log must give, undisturbed.
func lines(t testing.TB, records []Record) []byte {
	t.Helper()
	p, err := New(options(nil))
	if err != nil {
		t.Fatal(err)
	}
	var file []byte
	for e, err := range p.Project(from(records, 1)) {
		if err != nil {
			t.Fatal(err)
		}
		file = append(append(file, e.Line...), '\n')
	}
	return file
}

func verify(t testing.TB, records []Record, spans iter.Seq2[Span, error]) Report {
	t.Helper()
	o := options(nil)
	report, err := Verify(VerifyOptions{StoreID: o.StoreID, Key: o.Key}, from(records, 1), spans)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func each(spans []Span) iter.Seq2[Span, error] {
	return func(yield func(Span, error) bool) {
		for _, s := range spans {
			if !yield(s, nil) {
				return
			}
		}
	}
}
