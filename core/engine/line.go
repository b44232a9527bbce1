package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// saysLine reports whether a message changes the line of its operation, and whether
// the line begins with it.
func saysLine(m events.Message) (says, begins bool) {
	for _, ev := range m.Events {
		switch ev.(type) {
		case events.OperationCommitted, events.OperationRefused, events.OperationAborted:
			return true, true
		case events.OperationDelivered, events.OperationFinished:
			says = true
		}
	}
	return says, false
}

// lineOf is the line of an operation, without its project's path and what it is
// about.
func lineOf(p Place, s core.State) events.Line {
	end := s.Ending()
	l := events.Line{
		Operation: s.ID, Project: p.Project, Session: p.Session, Agent: s.Proposed.Agent, Kind: s.Proposed.Kind,
		Path: s.Proposed.Path, Tool: s.Proposed.Tool, State: lineState(s), Code: end.Code, EndReason: end.EndReason,
		Hook: ruleOf(s), Outcome: end.Outcome, Ran: end.Ran, Committed: end.Committed.Digest, Bytes: end.Committed.Bytes,
		Took: took(end.Outcome, end.CommittedAt, s.At), At: s.At,
	}
	if n := len(s.Settled); n > 0 {
		q := s.Settled[n-1]
		l.Question, l.AskedAt, l.EndedAt, l.Who = q.ID, s.Question.AskedAt, q.At, q.Who
		l.Text = shown(string(s.Body(events.TextBody(q.ID))))
	}
	return l
}

func lineState(s core.State) events.LineState {
	end := s.Ending()
	switch {
	case end.Outcome != "":
		return events.LineFinished
	case s.Phase == core.PhaseCommitted && s.Delivered:
		return events.LineDelivered
	case s.Phase == core.PhaseCommitted:
		return events.LineCommitted
	case end.Code == events.CodeEnded:
		return events.LineAborted
	}
	return events.LineRefused
}

// took is how long a call ran, as far as that is known, microseconds.
func took(outcome events.Outcome, committed, reported events.Micros) int64 {
	if outcome == "" || outcome == events.OutcomeUnknown {
		return 0
	}
	return int64(reported - committed)
}

// ruleOf is the rule that refused an operation, or the one that asked last, or else
// the last that looked at it; nil for none.
func ruleOf(s core.State) *events.Hook {
	if s.Run.Run == "" {
		return nil
	}
	rule, end := s.Run.Hook, s.Ending()
	asked := func(q core.Settled) bool { return q.ID == end.Question }
	switch n := len(s.Settled); {
	case n == 0, end.CodeRun == s.Run.Run, end.Question != "" && !slices.ContainsFunc(s.Settled, asked): // an earlier no counted again
	default:
		rule = s.Settled[n-1].Run.Hook
	}
	return &rule
}

// maxShown bounds a text in a list, bytes. Agents and people choose these: a few of
// a megabyte would make a list that no message carries.
const maxShown = 256

// shown is a text as lists have it. The log has it whole.
func shown(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// runsIn makes the lines of the runs that a message is about, as they stand behind
// it, in order.
type runsIn struct {
	about events.RunLine // what all of them are about, with the event of the gate
	at    events.Micros
	known func(events.ID) (events.RunLine, bool)
	list  []events.RunLine
}

// take follows one event. Asked are the operation's questions that have ended.
func (f *runsIn) take(ev events.Event, asked []core.Settled) {
	switch ev := ev.(type) {
	case events.HookStarted:
		l := f.line(ev.Run, ev.Hook, ev.Event, ev.Mode)
		l.State, l.Attempt, l.Start = events.RunRunning, ev.Attempt, ev.Start
	case events.HookRan:
		l := f.line(ev.Run, ev.Hook, ev.Event, ev.Mode)
		l.State, l.Effect, l.Outcome, l.Code = events.RunEnded, ev.Effect, ev.Outcome, ev.Code
		l.FailedOpen, l.NotApplied = ev.FailedOpen, ev.NotApplied
		l.Exit, l.Micros, l.Waited = ev.Exit, ev.Micros, ev.Waited
	case events.Request:
		l := f.line(ev.Run, ev.Hook, "", "")
		l.State, l.Attempt = events.RunAsking, ev.Attempt
	case events.Response:
		f.settle(ev.ID, asked)
	case events.Withdrawn:
		f.settle(ev.ID, asked)
	case events.OperationRefused:
		if i := f.find(ev.Run); i >= 0 && f.list[i].Code == ev.Code {
			f.list[i].Rejected = true
		}
	}
}

// settle ends the run that asked a question.
func (f *runsIn) settle(question events.ID, asked []core.Settled) {
	i := slices.IndexFunc(asked, func(q core.Settled) bool { return q.ID == question })
	if i < 0 {
		return
	}
	q := asked[i]
	l := f.line(q.Run.Run, q.Run.Hook, "", "")
	l.State, l.EndReason, l.Attempt = events.RunEnded, q.Reason, q.Run.Attempt
	l.Effect, l.Outcome = events.EffectAsk, events.RunOK
}

func (f *runsIn) find(run events.ID) int {
	return slices.IndexFunc(f.list, func(l events.RunLine) bool { return l.Run == run })
}

// line is the line of a run, to be changed.
func (f *runsIn) line(run events.ID, hook events.Hook, event events.HookEvent, mode events.HookMode) *events.RunLine {
	i := f.find(run)
	if i < 0 {
		l, known := f.known(run)
		if !known {
			l = f.about
		}
		f.list = append(f.list, l)
		i = len(f.list) - 1
	}
	l := &f.list[i]
	l.Run, l.Hook, l.At = run, hook, f.at
	l.Event, l.Mode = cmp.Or(event, f.about.Event), cmp.Or(mode, events.ModeBlocking)
	return l
}
