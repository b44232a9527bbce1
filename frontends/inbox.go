package frontends

import (
	"cmp"
	"slices"
	"sync"

	"github.com/fermata-hitl/fermata/events"
)

// How much of what is over an inbox keeps.
const (
	maxEnded = 2048
	maxLines = 1000
	maxRuns  = 1000
)

// Inbox is what a frontend knows: the open questions of its scope, how the last
// ones ended, and a history of operations and of hooks' runs. It is a fold of the feed and of
// lists: whatever order and however often they arrive, the newest stream
// sequence wins, and an end wins over everything. All methods may be called
// from any goroutine; what they return is the caller's, but byte slices in it
// must not be changed.
type Inbox struct {
	mu         sync.RWMutex
	attached   bool
	attachment uint64 // counts attachments
	tick       uint64 // counts what arrived; see removeUnlisted
	sessions   map[events.Token]*session
	entries    map[events.ID]*entry
	untold     map[events.ID]struct{} // listed here, not yet reported as received
	ended      recent[events.ID, ending]
	lines      past[events.Line]    // by operation
	runs       past[events.RunLine] // by run
	missed     bool                 // lines or runs may be missing: ask for the history
}

// place is a session in its project.
type place struct{ project, session events.Token }

// mark is a position in a session's feed.
type mark struct {
	epoch events.ID
	n     uint64
}

// entry is what is known of a question that has not ended.
type entry struct {
	at       place
	question events.Question // ID is "" until the question itself arrived
	claim    *events.Claim
	claimSeq uint64
	seen     mark // newest feed position at which it was certainly open
}

type ending struct {
	at  place
	end events.End
}

func newInbox() *Inbox {
	return &Inbox{
		sessions: map[events.Token]*session{},
		entries:  map[events.ID]*entry{},
		untold:   map[events.ID]struct{}{},
		ended:    newRecent[events.ID, ending](maxEnded),
		lines:    newPast[events.Line](maxLines),
		runs:     newPast[events.RunLine](maxRuns),
	}
}

// Attached reports whether a core knows this frontend now. While it is false,
// the rest is what was true last.
func (b *Inbox) Attached() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.attached
}

// Questions returns the open questions, the one that was asked first first.
func (b *Inbox) Questions() []events.Question {
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := make([]events.Question, 0, len(b.entries))
	for _, e := range b.entries {
		if e.visible() {
			list = append(list, e.view())
		}
	}
	slices.SortFunc(list, func(x, y events.Question) int {
		return cmp.Or(cmp.Compare(x.AskedAt, y.AskedAt), cmp.Compare(x.ID, y.ID))
	})
	return list
}

// Question returns an open question, false if there is none with that id.
func (b *Inbox) Question(id events.ID) (events.Question, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if e := b.entries[id]; e != nil && e.visible() {
		return e.view(), true
	}
	return events.Question{}, false
}

// Ended returns how a question ended, false if that is not known (any more).
func (b *Inbox) Ended(id events.ID) (events.End, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, ok := b.ended.get(id)
	return e.end, ok
}

// Lines returns the newest 1,000 operations, in the order in which they were first
// heard of. Of those of before this frontend came, the newest [events.MaxHistory] of
// each core are there soon after it is attached.
func (b *Inbox) Lines() []events.Line {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.lines.list()
}

// Runs returns the newest 1,000 runs of hooks, as Lines does operations.
func (b *Inbox) Runs() []events.RunLine {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.runs.list()
}

// Sessions returns the sessions in scope, sorted by project and token.
func (b *Inbox) Sessions() []events.SessionHead {
	b.mu.RLock()
	defer b.mu.RUnlock()
	list := make([]events.SessionHead, 0, len(b.sessions))
	for _, s := range b.sessions {
		list = append(list, s.head)
	}
	slices.SortFunc(list, func(x, y events.SessionHead) int {
		return cmp.Or(cmp.Compare(x.ProjectPath, y.ProjectPath), cmp.Compare(x.Session, y.Session))
	})
	return list
}

func (e *entry) visible() bool { return e.question.ID != "" }

func (e *entry) view() events.Question {
	q := e.question
	q.ClaimedBy = e.claim
	q.Seq = max(q.Seq, e.claimSeq)
	return q
}

// apply folds one message of a session's feed.
func (b *Inbox) apply(at place, feed mark, live events.Live) []Update {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Update
	s, isNew := b.session(at)
	if isNew {
		out = append(out, Update{Kind: KindSession, Session: at.session})
	}
	if !s.note(feed) {
		b.missed = true
	}
	if h := live.Session; h != nil && h.Closed {
		return append(out, b.remove(at.session)...) // the last message of its feed
	}
	// An old message is true of what the list named; a question that the list
	// did not name had ended.
	ended := func(id events.ID) bool { return s.old(feed) && b.entries[id] == nil }
	if q := live.Asked; q != nil && !ended(q.ID) {
		out = append(out, b.ask(at, feed, *q)...)
	}
	if live.Released != "" && !ended(live.Released) {
		out = append(out, b.setClaim(at, feed, live.Released, nil, live.Seq)...)
	}
	if c := live.Claimed; c != nil && !ended(c.Question) {
		out = append(out, b.setClaim(at, feed, c.Question, &c.By, live.Seq)...)
	}
	if live.Ended != nil {
		out = append(out, b.end(at, *live.Ended)...)
	}
	if live.Line != nil {
		out = append(out, b.line(at, *live.Line, live.Seq)...)
	}
	for _, r := range live.Runs {
		out = append(out, b.run(at, r, live.Seq)...)
	}
	if h := live.Session; h != nil && h.Session == at.session && h.Project == at.project {
		s.learn(*h)
		out = append(out, Update{Kind: KindSession, Session: at.session})
	}
	return out
}

// ask folds a question as it stood at q.Seq, from the feed or from a list.
func (b *Inbox) ask(at place, seen mark, q events.Question) []Update {
	if q.ID == "" || q.Project != at.project || q.Session != at.session {
		return nil // a question is shown in its own session or not at all
	}
	if _, over := b.ended.get(q.ID); over {
		return nil
	}
	e := b.entry(at, q.ID, seen)
	first := !e.visible()
	before := e.claim
	e.moveClaim(q.ClaimedBy, q.Seq)
	if first || q.Seq >= e.question.Seq {
		e.question = merged(e.question, q)
	}
	switch {
	case first:
		b.untold[q.ID] = struct{}{}
		return []Update{{Kind: KindAsked, Question: q.ID, Session: at.session}}
	case holder(before) != holder(e.claim):
		return []Update{e.claimUpdate()}
	}
	return nil
}

// merged takes the newer of two views of one question, and keeps what the newer
// left out because it was too long.
func merged(old, q events.Question) events.Question {
	if old.ID == "" {
		return q
	}
	if q.Args == nil && q.Version == old.Version {
		q.Args = old.Args
	}
	if q.Seq == old.Seq {
		q.ReceivedBy = max(q.ReceivedBy, old.ReceivedBy)
	}
	return q
}

// setClaim folds who holds a question since seq, nil for nobody.
func (b *Inbox) setClaim(at place, seen mark, id events.ID, by *events.Claim, seq uint64) []Update {
	if _, over := b.ended.get(id); over {
		return nil
	}
	e := b.entry(at, id, seen)
	if e.at != at {
		return nil
	}
	before := e.claim
	e.moveClaim(by, seq)
	if !e.visible() || holder(before) == holder(e.claim) {
		return nil
	}
	return []Update{e.claimUpdate()}
}

// moveClaim takes a newer fact about the claim. In one message a takeover
// releases and claims, so at the same sequence a claim wins, and of two the one
// that says who.
func (e *entry) moveClaim(by *events.Claim, seq uint64) {
	if seq > e.claimSeq || seq == e.claimSeq && by != nil && (e.claim == nil || e.claim.Principal == "") {
		e.claim, e.claimSeq = by, seq
	}
}

func (e *entry) claimUpdate() Update {
	u := Update{Kind: KindClaimed, Question: e.question.ID, Session: e.at.session}
	if e.claim == nil {
		u.Kind = KindReleased
	}
	return u
}

func holder(c *events.Claim) events.ID {
	if c == nil {
		return ""
	}
	return c.Frontend
}

// end folds the end of a question, which nothing that comes later undoes.
func (b *Inbox) end(at place, end events.End) []Update {
	if end.Question == "" {
		return nil
	}
	if e := b.entries[end.Question]; e != nil && e.at != at {
		return nil
	}
	old, over := b.ended.get(end.Question)
	if over && (old.at != at || old.end.Who != "") {
		return nil
	}
	b.drop(end.Question)
	b.ended.put(end.Question, ending{at, end})
	if over && old.end.Result == end.Result && end.Who == "" {
		return nil
	}
	return []Update{{Kind: KindEnded, Question: end.Question, Session: at.session}}
}

func (b *Inbox) line(at place, l events.Line, seq uint64) []Update {
	if l.Operation == "" || l.Session != at.session || l.Project != at.project || !b.lines.hear(l.Operation, l, seq, b.tick) {
		return nil
	}
	return []Update{{Kind: KindLine, Operation: l.Operation, Session: at.session}}
}

func (b *Inbox) run(at place, r events.RunLine, seq uint64) []Update {
	if r.Run == "" || r.Session != at.session || r.Project != at.project || !b.runs.hear(r.Run, r, seq, b.tick) {
		return nil
	}
	return []Update{{Kind: KindRun, Run: r.Run, Session: at.session}}
}

// entry finds or makes the entry of a question that has not ended, and notes
// that it was open at seen.
func (b *Inbox) entry(at place, id events.ID, seen mark) *entry {
	e := b.entries[id]
	if e == nil {
		e = &entry{at: at}
		b.entries[id] = e
	}
	if e.seen.epoch != seen.epoch || e.seen.n < seen.n {
		e.seen = seen
	}
	return e
}

func (b *Inbox) drop(id events.ID) {
	delete(b.entries, id)
	delete(b.untold, id)
}

// where tells the place of a question, open or ended.
func (b *Inbox) where(id events.ID) (place, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if e := b.entries[id]; e != nil {
		return e.at, true
	}
	e, ok := b.ended.get(id)
	return e.at, ok
}

// hold folds a reply about a claim, nil for nobody.
func (b *Inbox) hold(at place, id events.ID, by *events.Claim, seq uint64) []Update {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entries[id]
	if e == nil {
		return nil
	}
	return b.setClaim(at, e.seen, id, by, seq)
}

// finish folds a reply that says how a question ended.
func (b *Inbox) finish(at place, end events.End) []Update {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.end(at, end)
}

// keepArgs completes an open question whose arguments did not fit a page.
func (b *Inbox) keepArgs(id events.ID, version events.Version, args []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.entries[id]; e != nil && e.question.Version == version {
		e.question.Args = args
	}
}

// recent keeps the newest entries of a map, by when each key was first put.
type recent[K comparable, V any] struct {
	limit int
	of    map[K]V
	order []K
}

func newRecent[K comparable, V any](limit int) recent[K, V] {
	return recent[K, V]{limit: limit, of: map[K]V{}}
}

func (r *recent[K, V]) get(k K) (V, bool) {
	v, ok := r.of[k]
	return v, ok
}

func (r *recent[K, V]) put(k K, v V) {
	if _, ok := r.of[k]; !ok {
		r.order = append(r.order, k)
	}
	r.of[k] = v
	r.shorten()
}

func (r *recent[K, V]) shorten() {
	for len(r.order) > r.limit {
		delete(r.of, r.order[0])
		r.order = r.order[1:]
	}
}
