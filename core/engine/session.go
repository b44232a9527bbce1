package engine

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// session is one conversation of one agent: the fold of its subject and what
// only this core knows of it.
type session struct {
	place Place

	// Guarded by the engine's lock.
	opened   events.SessionOpened // its parent may become known later
	children []*session           // those in memory that name it as their parent
	ready    chan struct{}        // closed once it is in the log and frontends can reach it, or never will
	err      error                // set before ready is closed: why they never will
	// reachable says that ready is closed and all is well.
	reachable bool
	asked     int    // open questions
	pane      string // where its agent last said that it stands, "" = never

	sign atomic.Int64 // when it was last heard of, [events.Micros]

	// turn is the mailbox: who holds its token writes on the session's subject.
	// Proposals only read what the fold says, so none of them waits here.
	turn  chan struct{}
	stale bool // an append's outcome is unknown; under turn
	left  bool // it has left memory; under turn

	mu         sync.Mutex // guards what follows; never held while waiting
	log        chronicle
	marked     map[events.ID]events.EndReason // operations that are ended in the session's log and not yet in their own
	unreported []delivered                    // calls that were let go and of whose end nobody told, in order
	forgotten  int                            // how many more there were: the log has those
	sweeps     []sweep                        // what the log is to be asked about them

	feeding sync.Mutex    // messages leave in the order of their numbers
	feed    atomic.Uint64 // number of the newest feed message of this epoch
	silent  bool          // its end was the last message, and nothing follows while it is over; under feeding
}

func newSession(p Place, opened events.SessionOpened) *session {
	return &session{place: p, opened: opened, ready: make(chan struct{}), turn: make(chan struct{}, 1)}
}

// heard notes a sign of life.
func (s *session) heard(at events.Micros) {
	if at > events.Micros(s.sign.Load()) {
		s.sign.Store(int64(at))
	}
}

// over reports whether the session has ended.
func (s *session) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Closed != ""
}

// publish sends a message of the feed. Numbers are consecutive in the order in
// which messages leave.
func (e *Engine) publish(p Place, live events.Live) {
	e.mu.Lock()
	ses, ok := e.sessions[p.Session]
	e.mu.Unlock()
	if !ok {
		return
	}
	ses.heard(e.at()) // whatever there is to tell of it is a sign of life
	ses.feeding.Lock()
	defer ses.feeding.Unlock()
	closes, over := live.Session != nil && live.Session.Closed, ses.over()
	if ses.silent && over || closes && !over {
		return
	}
	n := ses.feed.Load() + 1
	e.o.Feed(p, string(e.o.Epoch)+"."+strconv.FormatUint(n, 10), live.Seq, live)
	ses.feed.Store(n) // only now: a reply that names it leaves behind the message
	ses.silent = closes
}

// visit is a session as whoever speaks of it names it.
type visit struct {
	agent  events.Agent
	native string
	cwd    string
	parent events.Token // "" for none, or when it is not known
	pane   string
}

// arrival says how somebody found a session.
type arrival int

const (
	foundOpen  arrival = iota // it was open
	begun                     // the log had never heard of it
	begunAgain                // the log had it, as one that is over
)

// open returns the session of a proposal, and that of its parent before it.
func (e *Engine) open(ctx context.Context, p core.Proposal) (*session, error) {
	return e.enterBelow(ctx, p.Parent, visit{agent: p.Agent, native: p.Native, cwd: p.Cwd, pane: p.Pane})
}

// enterBelow enters a session whose agent names its parent, or not.
func (e *Engine) enterBelow(ctx context.Context, parent string, v visit) (*session, error) {
	if parent != "" {
		above, _, err := e.enter(ctx, visit{agent: v.agent, native: parent, cwd: v.cwd, pane: v.pane})
		if err != nil {
			return nil, err
		}
		v.parent = above.place.Session
	}
	ses, _, err := e.enter(ctx, v)
	return ses, err
}

// enter returns a session that is open, and writes its beginning when it was not.
func (e *Engine) enter(ctx context.Context, v visit) (*session, arrival, error) {
	for {
		ses, known, err := e.find(v)
		if err != nil {
			return nil, 0, err
		}
		ses.heard(e.at())
		if !known {
			how, err := e.begin(ses)
			return ses, how, err
		}
		select {
		case <-ses.ready:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
		if ses.err != nil {
			return nil, 0, ses.err
		}
		e.stands(ses, v.pane)
		if how, err := e.beginAgain(ses, v); !errors.Is(err, errLeft) {
			return ses, how, err
		}
	}
}

// find returns the session in memory, or makes it and puts it there.
func (e *Engine) find(v visit) (ses *session, known bool, _ error) {
	token := events.SessionToken(e.o.Core, v.agent, v.native)
	e.mu.Lock()
	defer e.mu.Unlock()
	if ses, known = e.sessions[token]; !known {
		e.mu.Unlock()
		path := projectOf(v.cwd) // asks the file system: nobody waits for that
		e.mu.Lock()
		ses, known = e.sessions[token]
		if !known {
			ses = newSession(Place{events.ProjectToken(path), token}, events.SessionOpened{
				Agent: v.agent, Native: v.native, Cwd: v.cwd, ProjectPath: path, Parent: v.parent,
			})
			ses.feed.Store(e.feedFloor)
			ses.pane = knownPane(v.pane)
		}
	}
	if refused := e.checkParent(token, v.parent); refused != nil {
		return nil, false, refused
	}
	e.sessions[token] = ses
	return ses, known, nil
}

// knownPane is a pane as it may be told on, "" for what is none.
func knownPane(pane string) string {
	if _, ok := events.ParsePane(pane); !ok {
		return ""
	}
	return pane
}

// stands notes where the agent of a session is now, and tells frontends if that is
// another pane than before. Who names none changes nothing: some of an agent's calls
// come from an environment without it.
func (e *Engine) stands(ses *session, pane string) {
	if pane = knownPane(pane); pane == "" {
		return
	}
	e.mu.Lock()
	moved := ses.pane != pane
	ses.pane = pane
	head := ses.head()
	e.mu.Unlock()
	if moved {
		e.publish(ses.place, events.Live{Session: &head})
	}
}

// inPane reports whether the agent of a session, or of one above it, stands in a
// pane. e.mu is held.
func (e *Engine) inPane(token events.Token) bool {
	for ses, ok := e.sessions[token]; ok; ses, ok = e.sessions[ses.opened.Parent] {
		if ses.pane != "" {
			return true
		}
	}
	return false
}

// checkParent refuses a parent that is not there, and one that would be its own
// ancestor. e.mu is held.
func (e *Engine) checkParent(token, parent events.Token) *events.Refused {
	if parent == "" {
		return nil
	}
	if above, ok := e.sessions[parent]; !ok || above.over() {
		return refuse(events.RejectUnknownSession, "the parent session is not open; open it first")
	}
	if e.below(parent, token) {
		return refuse(events.RejectMalformed, "a session cannot be its own parent")
	}
	return nil
}

// below reports whether a session is another one or has it above itself. e.mu is
// held.
func (e *Engine) below(token, above events.Token) bool {
	for s := token; s != ""; {
		if s == above {
			return true
		}
		ses, ok := e.sessions[s]
		if !ok {
			return false
		}
		s = ses.opened.Parent
	}
	return false
}

// begin writes the beginning of a session that is new to memory, and opens it to
// frontends.
func (e *Engine) begin(ses *session) (how arrival, err error) {
	_, err = e.writeSession(ses, e.o.Owner, func(c chronicle) []events.Event {
		switch {
		case c.Seq == 0:
			how = begun
		case c.Closed != "":
			how = begunAgain
		default: // an earlier core wrote it, or an append whose ack was lost
			how = foundOpen
			return nil
		}
		return []events.Event{e.openedAs(ses)}
	})
	e.mu.Lock()
	if err != nil {
		delete(e.sessions, ses.place.Session)
		ses.err = err
		close(ses.ready)
		e.mu.Unlock()
		return how, err
	}
	head := ses.head()
	e.mu.Unlock()
	e.o.OnSession(head) // outside of all locks: it waits for the server
	e.mu.Lock()
	ses.reachable = true
	close(ses.ready)
	e.mu.Unlock()
	return how, nil
}

// beginAgain opens a session in memory again if it is over, and writes down its
// parent once that is known.
func (e *Engine) beginAgain(ses *session, v visit) (how arrival, _ error) {
	lacks := func(over bool) (opened events.SessionOpened, _ bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		opened = ses.opened
		if above, ok := e.sessions[opened.Parent]; !ok || above.over() {
			opened.Parent = v.parent
		}
		return opened, over || opened.Parent != "" && opened.Parent != ses.opened.Parent
	}
	if _, something := lacks(ses.over()); !something {
		return foundOpen, nil
	}
	wrote, err := e.writeSession(ses, e.o.Owner, func(c chronicle) []events.Event {
		opened, still := lacks(c.Closed != "")
		if !still {
			return nil // somebody was here first
		}
		if how = foundOpen; c.Closed != "" {
			how = begunAgain
		}
		return []events.Event{opened}
	})
	if !wrote {
		return how, err
	}
	e.mu.Lock()
	head := ses.head()
	e.mu.Unlock()
	e.o.OnSession(head)
	e.publish(ses.place, events.Live{Session: &head})
	return how, nil
}

func (e *Engine) openedAs(ses *session) events.SessionOpened {
	e.mu.Lock()
	defer e.mu.Unlock()
	return ses.opened
}

// introduce takes what the log says of a session's beginning, and puts it below its
// parent. e.mu is held.
func (e *Engine) introduce(ses *session, opened events.SessionOpened) {
	if above, ok := e.sessions[opened.Parent]; !ok || e.below(opened.Parent, ses.place.Session) {
		opened.Parent = ""
	} else if !slices.Contains(above.children, ses) {
		above.children = append(above.children, ses)
	}
	ses.opened = opened
}

// family is a session and all below it. e.mu is held.
func (s *session) family() []*session {
	list := []*session{s}
	for i := 0; i < len(list); i++ {
		list = append(list, list[i].children...)
	}
	return list
}

// head is the session in a list. The engine's lock is held.
func (s *session) head() events.SessionHead {
	s.mu.Lock()
	opened := s.log.Opened
	s.mu.Unlock()
	return events.SessionHead{
		Project: s.place.Project, Session: s.place.Session, Agent: s.opened.Agent, Native: shown(s.opened.Native),
		ProjectPath: s.opened.ProjectPath, Parent: s.opened.Parent, Open: s.asked, Feed: s.feed.Load(),
		Opened: opened, Pane: s.pane,
	}
}

// Sessions lists the sessions of a scope.
func (e *Engine) Sessions(scope string) []events.SessionHead {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heads(scope)
}

// heads lists sessions with the number of their open questions. Frontends ask
// for it all the time, so it walks no questions, and of a session's scope only
// what is below it. e.mu is held.
func (e *Engine) heads(scope string) []events.SessionHead {
	if top, ok := e.sessions[events.Token(scope)]; ok {
		return e.fit(headsOf(slices.Values(top.family()), 1))
	}
	room := 0
	if scope == events.DoorAll {
		room = len(e.sessions)
	}
	return e.fit(headsOf(func(yield func(*session) bool) {
		for _, ses := range e.sessions {
			if e.covers(scope, ses.place) && !yield(ses) {
				return
			}
		}
	}, room))
}

// headsOf lists what frontends shall know of: sessions that are in the log, can be
// reached, and are not over. The engine's lock is held.
func headsOf(sessions iter.Seq[*session], room int) []events.SessionHead {
	list := make([]events.SessionHead, 0, room)
	for ses := range sessions {
		if ses.listed() {
			list = append(list, ses.head())
		}
	}
	return list
}

// maxHeads bounds a list of sessions, bytes, about half of what a message carries:
// whoever opens thousands must not keep frontends from ever attaching.
const maxHeads = 8 << 20

// fit leaves of a list what a message carries: first the sessions that have an open
// question, then those that were heard of last. e.mu is held.
func (e *Engine) fit(list []events.SessionHead) []events.SessionHead {
	size := func(h events.SessionHead) int {
		const rest = 256 // names of fields, tokens, numbers
		return rest + len(h.Native) + len(h.ProjectPath) + len(h.Pane)
	}
	all := 0
	for _, h := range list {
		all += size(h)
	}
	if all <= maxHeads {
		return list
	}
	slices.SortFunc(list, func(a, b events.SessionHead) int {
		return cmp.Or(
			cmp.Compare(min(b.Open, 1), min(a.Open, 1)),
			e.sessions[b.Session].lastSign().Compare(e.sessions[a.Session].lastSign()),
		)
	})
	for ; all > maxHeads; list = list[:len(list)-1] {
		all -= size(list[len(list)-1])
	}
	return list
}

// listed reports whether frontends shall know of the session. One that cannot be
// reached yet is announced when it can. The engine's lock is held.
func (s *session) listed() bool { return s.reachable && !s.over() }

func (e *Engine) sessionAt(p Place) (*session, *events.Refused) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ses, ok := e.sessions[p.Session]
	if !ok || ses.place != p {
		return nil, refuse(events.RejectUnknownSession, "")
	}
	return ses, nil
}

func (e *Engine) projectPath(p Place) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ses, ok := e.sessions[p.Session]; ok {
		return ses.opened.ProjectPath
	}
	return ""
}

func (e *Engine) native(p Place) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ses, ok := e.sessions[p.Session]; ok {
		return ses.opened.Native
	}
	return ""
}

// projectOf is the nearest ancestor with .git, links resolved, else the
// directory itself.
func projectOf(cwd string) string {
	dir, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return filepath.Clean(cwd)
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}
