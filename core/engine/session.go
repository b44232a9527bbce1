package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/core/journal"
	"github.com/fermata-hitl/fermata/events"
)

// session is one conversation of one agent.
type session struct {
	place  Place
	opened events.SessionOpened
	ready  chan struct{} // closed when it is in the log, or failed to get there
	err    error         // set before ready is closed
	asked  int           // open questions; under the engine's lock

	feeding sync.Mutex    // messages leave in the order of their numbers
	feed    atomic.Uint64 // number of the newest feed message of this epoch
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
	ses.feeding.Lock()
	defer ses.feeding.Unlock()
	n := ses.feed.Load() + 1
	e.o.Feed(p, string(e.o.Epoch)+"."+strconv.FormatUint(n, 10), live.Seq, live)
	ses.feed.Store(n) // only now: a reply that names it leaves behind the message
}

// open returns the session of a proposal and writes its beginning when this is
// the first that the core hears of it.
func (e *Engine) open(ctx context.Context, p core.Proposal) (*session, error) {
	token := events.SessionToken(e.o.Core, p.Agent, p.Native)
	e.mu.Lock()
	ses, known := e.sessions[token]
	if !known {
		path := projectOf(p.Cwd)
		ses = &session{
			place:  Place{events.ProjectToken(path), token},
			opened: events.SessionOpened{Agent: p.Agent, Native: p.Native, Cwd: p.Cwd, ProjectPath: path},
			ready:  make(chan struct{}),
		}
		e.sessions[token] = ses
	}
	e.mu.Unlock()
	if known {
		select {
		case <-ses.ready:
			return ses, ses.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	e.barrier.RLock()
	defer e.barrier.RUnlock()
	ses.err = e.begin(ses)
	if ses.err != nil {
		e.mu.Lock()
		delete(e.sessions, token)
		e.mu.Unlock()
	}
	if ses.err == nil {
		e.o.OnSession(ses.head())
	}
	close(ses.ready)
	return ses, ses.err
}

func (e *Engine) begin(ses *session) error {
	m := events.Message{
		ID: e.newID(), Project: ses.place.Project, Session: ses.place.Session, At: e.at(), Principal: e.o.Owner,
		Events: []events.Event{ses.opened},
	}
	data, _, err := events.EncodeMessage(m)
	if err != nil {
		return refuse(events.RejectInternal, err.Error())
	}
	ctx, end := context.WithTimeout(e.ctx, appendLimit)
	defer end()
	seq, err := e.o.Log.Append(ctx, journal.Entry{
		Subject: events.SessionSubject(ses.place.Project, ses.place.Session), ID: m.ID, Types: m.TypeHeader(), Data: data,
	})
	var lost *journal.Lost
	if err != nil && !errors.As(err, &lost) { // lost = an earlier core wrote it
		e.doubtful.Store(true)
		return e.appendFailed(err)
	}
	e.advance(seq)
	return nil
}

func (s *session) head() events.SessionHead {
	return events.SessionHead{
		Project: s.place.Project, Session: s.place.Session, Agent: s.opened.Agent, Native: shown(s.opened.Native),
		ProjectPath: s.opened.ProjectPath, Parent: s.opened.Parent, Feed: s.feed.Load(),
	}
}

// maxShown bounds a native id in a list, bytes. Agents choose these ids: a few
// of a megabyte would make a list that no message carries.
const maxShown = 256

// shown is a native id as lists have it. The log has it whole.
func shown(native string) string {
	if len(native) <= maxShown {
		return native
	}
	return strings.ToValidUTF8(native[:maxShown], "") + "…"
}

// Sessions lists the sessions of a scope.
func (e *Engine) Sessions(scope string) []events.SessionHead {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heads(scope)
}

// heads lists sessions with the number of their open questions. Frontends ask
// for it all the time, so it walks no questions. e.mu is held.
func (e *Engine) heads(scope string) []events.SessionHead {
	var list []events.SessionHead
	for _, ses := range e.sessions {
		select {
		case <-ses.ready:
		default:
			continue // not in the log yet: it is announced when it is
		}
		if e.covers(scope, ses.place) {
			h := ses.head()
			h.Open = ses.asked
			list = append(list, h)
		}
	}
	return list
}

func (e *Engine) sessionAt(p Place) (*session, *events.Refused) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ses, ok := e.sessions[p.Session]
	if !ok || ses.place != p {
		return nil, refuse(events.RejectUnknownSession, "")
	}
	return ses, nil
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
