package engine

import (
	"slices"
	"sync"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// history is what happened of late: the newest operations that were granted or
// ended, and the newest runs of hooks. One that is here stays where it is while it
// changes; one that others have pushed out does not come back.
type history struct {
	mu    sync.Mutex
	lines latest[pastLine]
	runs  latest[events.RunLine]
}

// pastLine is a line and what its later changes are counted from. Its fields are
// exported because a snapshot holds it.
type pastLine struct {
	events.Line
	CommittedAt events.Micros
}

// cachedHistory is what a snapshot keeps of the history.
type cachedHistory struct {
	Lines []pastLine
	Runs  []events.RunLine
}

func newHistory() *history {
	return &history{lines: newLatest[pastLine](events.MaxHistory), runs: newLatest[events.RunLine](events.MaxHistory)}
}

// latest keeps the newest values, each under its id, in the order in which they
// came.
type latest[V any] struct {
	at   map[events.ID]int // where in the list
	list []V
	ids  ring
}

func newLatest[V any](most int) latest[V] {
	return latest[V]{at: make(map[events.ID]int, most), list: make([]V, most), ids: ring{ids: make([]events.ID, most)}}
}

func (l *latest[V]) get(id events.ID) (v V, known bool) {
	i, known := l.at[id]
	if known {
		v = l.list[i]
	}
	return v, known
}

// put changes a value, or adds it in place of the oldest.
func (l *latest[V]) put(id events.ID, v V) {
	i, known := l.at[id]
	if !known {
		i = l.ids.next
		delete(l.at, l.ids.put(id))
		l.at[id] = i
	}
	l.list[i] = v
}

// all lists the values, the oldest first.
func (l *latest[V]) all() []V {
	all := make([]V, 0, len(l.at))
	for i := range l.list {
		if at := (l.ids.next + i) % len(l.list); l.ids.ids[at] != "" {
			all = append(all, l.list[at])
		}
	}
	return all
}

// putLine notes a line. Only one that begins to be told of may push out another.
func (h *history) putLine(l pastLine, begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.lines.get(l.Operation); known || begins {
		h.lines.put(l.Operation, l)
	}
}

// about is what an operation's arguments are about. To read them may take long, so it
// is done once behind the commit, which is the last that can change them.
func (h *history) about(s core.State) string {
	h.mu.Lock()
	l, known := h.lines.get(s.ID)
	h.mu.Unlock()
	if known && l.Committed != "" {
		return l.About
	}
	return events.About(s.Args())
}

// follow notes what a message says of runs about one thing, and returns them.
func (h *history) follow(about events.RunLine, m events.Message, asked []core.Settled) []events.RunLine {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := runsIn{about: about, at: m.At, known: h.runs.get}
	for _, ev := range m.Events {
		f.take(ev, asked)
	}
	for _, l := range f.list {
		h.runs.put(l.Run, l)
	}
	return f.list
}

// trailing follows what the log says of an operation that memory has let go, and
// returns what its runs are about.
func (h *history) trailing(m events.Message) events.RunLine {
	h.mu.Lock()
	defer h.mu.Unlock()
	about := events.RunLine{Operation: m.Operation, Project: m.Project, Session: m.Session}
	l, known := h.lines.get(m.Operation)
	if !known {
		return about
	}
	about.ProjectPath, about.Agent, about.Tool, about.Event = l.ProjectPath, l.Agent, l.Tool, gateOf(l.Kind)
	for _, ev := range m.Events {
		switch ev := ev.(type) {
		case events.OperationDelivered:
			l.At = m.At
		case events.OperationFinished:
			l.State, l.Outcome, l.Ran, l.At = events.LineFinished, ev.Outcome, ev.Ran, m.At
			l.Took = took(ev.Outcome, l.CommittedAt, m.At)
		}
	}
	h.lines.put(m.Operation, l)
	return about
}

// copy is what a snapshot keeps.
func (h *history) copy() cachedHistory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return cachedHistory{Lines: h.lines.all(), Runs: h.runs.all()}
}

func (h *history) restore(c cachedHistory) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range c.Lines {
		h.lines.put(l.Operation, l)
	}
	for _, l := range c.Runs {
		h.runs.put(l.Run, l)
	}
}

// recall takes a message of an operation, s being its state behind it, into the
// history, and returns what frontends hear of it: nil and none when that is nothing.
func (e *Engine) recall(p Place, m events.Message, s core.State) (line *events.Line, runs []events.RunLine) {
	path := e.projectPath(p)
	if says, begins := saysLine(m); says {
		l := pastLine{lineOf(p, s), s.Ending().CommittedAt}
		l.ProjectPath, l.About = path, e.past.about(s)
		e.past.putLine(l, begins)
		line = &l.Line
	}
	return line, e.past.follow(events.RunLine{
		Operation: s.ID, Project: p.Project, Session: p.Session, ProjectPath: path,
		Agent: s.Proposed.Agent, Tool: s.Proposed.Tool, Event: gateOf(s.Proposed.Kind),
	}, m, s.Settled)
}

// recallRuns is recall for a message of a session's own subject.
func (e *Engine) recallRuns(ses *session, m events.Message) []events.RunLine {
	e.mu.Lock()
	opened := ses.opened
	e.mu.Unlock()
	return e.past.follow(events.RunLine{
		Project: ses.place.Project, Session: ses.place.Session, ProjectPath: opened.ProjectPath, Agent: opened.Agent,
	}, m, nil)
}

// tellRuns tells frontends what a message of a session's own subject says of runs.
func (e *Engine) tellRuns(ses *session, m events.Message) {
	if runs := e.recallRuns(ses, m); len(runs) > 0 {
		e.publish(ses.place, events.Live{Seq: m.Seq, Runs: runs})
	}
}

// History lists what happened of late in a scope.
func (e *Engine) History(scope string, c events.History) events.HistoryReply {
	limit := c.Limit
	if limit <= 0 || limit > events.MaxHistory {
		limit = events.MaxHistory
	}
	past := e.past.copy()
	r := events.HistoryReply{Epoch: e.o.Epoch}
	e.mu.Lock()
	for _, l := range past.Lines {
		if e.covers(scope, Place{l.Project, l.Session}) {
			r.Lines = append(r.Lines, l.Line)
		}
	}
	past.Runs = slices.DeleteFunc(past.Runs, func(l events.RunLine) bool { return !e.covers(scope, Place{l.Project, l.Session}) })
	e.mu.Unlock()
	const rest = 1 << 10 // what a reply holds beside the lists
	runs, taken := newest(past.Runs, limit, chunk/2)
	r.Runs = runs
	r.Lines, _ = newest(r.Lines, limit, chunk-rest-taken)
	return r
}

// newest leaves the last of a list: at most so many, and as many as fit into room
// bytes. It returns how many bytes they take.
func newest[V any](list []V, most, room int) ([]V, int) {
	list = list[max(0, len(list)-most):]
	size := 0
	for i, v := range slices.Backward(list) {
		data, err := events.Encode(v)
		if err != nil || size+len(data) > room {
			return list[i+1:], size
		}
		size += len(data)
	}
	return list, size
}
