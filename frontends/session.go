package frontends

import "github.com/fermata-hitl/fermata/events"

// session is how much of one session's feed is known. Everything up to hi is
// known when whole is true; else only lo to hi without a gap, and the list of
// open questions has to be asked for again.
type session struct {
	head   events.SessionHead
	known  bool // the head came from a core, not only its two tokens
	epoch  events.ID
	lo, hi uint64
	whole  bool
	listed mark   // up to where the last complete list speaks
	tick   uint64 // when something of it last arrived
}

// old reports whether the last list already speaks of what a message says.
func (s *session) old(m mark) bool { return m.epoch == s.listed.epoch && m.n <= s.listed.n }

// note counts a feed message in, and reports whether it follows on what was heard
// before. The first of an epoch follows on nothing, so it does.
func (s *session) note(m mark) bool {
	switch {
	case m.epoch != s.epoch:
		s.epoch, s.lo, s.hi, s.whole = m.epoch, m.n, m.n, false
	case m.n == s.hi+1:
		s.hi = m.n
	case m.n > s.hi:
		s.lo, s.hi, s.whole = m.n, m.n, false
		return false
	}
	return true
}

func (s *session) learn(h events.SessionHead) {
	h.Feed = max(h.Feed, s.head.Feed)
	s.head, s.known = h, true
}

// session finds a session or makes it, and notes that something of it arrived.
func (b *Inbox) session(at place) (s *session, isNew bool) {
	s = b.sessions[at.session]
	if s == nil {
		s = &session{head: events.SessionHead{Project: at.project, Session: at.session}}
		b.sessions[at.session] = s
		isNew = true
	}
	b.tick++
	s.tick = b.tick
	return s, isNew
}

// opened learns of a session from an announcement.
func (b *Inbox) opened(h events.SessionHead) []Update {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, _ := b.session(place{h.Project, h.Session})
	s.learn(h)
	return []Update{{Kind: KindSession, Session: h.Session}}
}

// spoil notes that a feed message could not be read: its session must be listed
// again.
func (b *Inbox) spoil(at place, m mark) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, _ := b.session(at)
	s.note(m)
	s.whole, b.missed = false, true
}

// beginSync starts a list. What the feed brought before cannot be newer than
// the list, because the list is made after it.
func (b *Inbox) beginSync(at place) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.sessions[at.session]; s != nil {
		s.epoch, s.whole = "", false
	}
}

// list folds one page. first is the position of the list's first page.
func (b *Inbox) list(at place, first mark, questions []events.Question) (out []Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[at.session] == nil {
		return nil // it closed while the list was on its way
	}
	for _, q := range questions {
		out = append(out, b.ask(at, first, q)...)
	}
	return out
}

// endSync folds the end of a list: a question that is not listed, and that the
// feed did not bring after the list's first page, is over although nobody said
// how. The session stays behind when the feed has a gap between the list and now,
// or belongs to another epoch.
func (b *Inbox) endSync(at place, first mark, listed map[events.ID]bool) (out []Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[at.session]
	if s == nil {
		return nil
	}
	if s.epoch == "" {
		s.epoch, s.lo, s.hi = first.epoch, first.n+1, first.n
	}
	if s.epoch != first.epoch {
		return nil
	}
	s.listed = first
	if s.lo <= first.n+1 {
		s.hi, s.whole = max(s.hi, first.n), true
	} else {
		b.missed = true
	}
	for id, e := range b.entries {
		if e.at != at || listed[id] || e.seen.epoch == first.epoch && e.seen.n > first.n {
			continue
		}
		if e.visible() {
			out = append(out, Update{Kind: KindEnded, Question: id, Session: at.session})
		}
		b.drop(id)
	}
	return out
}

// behind lists the sessions whose open questions must be listed again.
func (b *Inbox) behind() (list []place) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for token, s := range b.sessions {
		if !s.whole {
			list = append(list, place{s.head.Project, token})
		}
	}
	return list
}

// holds reports whether a session is in scope.
func (b *Inbox) holds(token events.Token) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.sessions[token] != nil
}

// now is a moment to give to attach or renewed: sessions of which something
// arrives after it are not taken for closed.
func (b *Inbox) now() uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.tick
}

// attach folds the answers to a hello that was sent at since: they say all that
// is in scope. Every session is listed again, and everything is reported as
// received again, because a core forgets a frontend that went.
func (b *Inbox) attach(heads []events.SessionHead, since uint64) (out []Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range heads {
		b.head(h)
	}
	for _, s := range b.sessions {
		s.whole = false
	}
	b.attachment++
	b.missed = true
	for id, e := range b.entries {
		if e.visible() {
			b.untold[id] = struct{}{}
		}
	}
	out = b.removeUnlisted(heads, since)
	b.attached = true
	return append(out, Update{Kind: KindAttached}, Update{Kind: KindResynced})
}

// renewed folds the answers of cores, by epoch, to a renewal that was sent at
// since. A session of which a newer feed message exists than arrived is behind;
// one that nobody names has closed, if all cores have answered.
func (b *Inbox) renewed(answers map[events.ID][]events.SessionHead, all bool, since uint64) (out []Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var named []events.SessionHead
	for epoch, heads := range answers {
		named = append(named, heads...)
		for _, h := range heads {
			s, changed := b.head(h)
			if changed {
				out = append(out, Update{Kind: KindSession, Session: h.Session})
			}
			if s.epoch != epoch || h.Feed > s.hi {
				b.missed = b.missed || s.whole
				s.whole = false
			}
		}
	}
	if !all {
		return out
	}
	return append(out, b.removeUnlisted(named, since)...)
}

func (b *Inbox) head(h events.SessionHead) (s *session, changed bool) {
	s = b.sessions[h.Session]
	if s == nil {
		s = &session{}
		b.sessions[h.Session] = s
	}
	changed = s.head != h
	s.head, s.known = h, true
	return s, changed
}

// removeUnlisted forgets the sessions that the cores no longer name, with their
// questions, except those of which something arrived after since: such a
// session may be younger than the answer that does not name it.
func (b *Inbox) removeUnlisted(heads []events.SessionHead, since uint64) (out []Update) {
	named := make(map[events.Token]bool, len(heads))
	for _, h := range heads {
		named[h.Session] = true
	}
	for token, s := range b.sessions {
		if !named[token] && s.tick <= since {
			out = append(out, b.remove(token)...)
		}
	}
	return out
}

func (b *Inbox) remove(token events.Token) (out []Update) {
	delete(b.sessions, token)
	for id, e := range b.entries {
		if e.at.session != token {
			continue
		}
		if e.visible() {
			out = append(out, Update{Kind: KindEnded, Question: id, Session: token})
		}
		b.drop(id)
	}
	return append(out, Update{Kind: KindSession, Session: token})
}

// closed forgets one session of which a core said that it does not know it.
func (b *Inbox) closed(at place) []Update {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.remove(at.session)
}

// detach notes that no core is in reach. What is known stays.
func (b *Inbox) detach() []Update {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.attached {
		return nil
	}
	b.attached = false
	return []Update{{Kind: KindDetached}}
}

// received lists up to limit questions of one session that no core was told of
// as received, and the attachment under which it has to be told.
func (b *Inbox) received(limit int) (at place, ids []events.ID, attachment uint64) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for id := range b.untold {
		e := b.entries[id]
		if len(ids) == 0 {
			at = e.at
		}
		if e.at == at {
			ids = append(ids, id)
		}
		if len(ids) == limit {
			break
		}
	}
	return at, ids, b.attachment
}

// told notes that a core was told, unless this frontend has attached anew since.
func (b *Inbox) told(ids []events.ID, attachment uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if attachment != b.attachment {
		return
	}
	for _, id := range ids {
		delete(b.untold, id)
	}
}

// state tells whether nothing of a session's feed is missing, and whether its
// head is known.
func (b *Inbox) state(at place) (whole, known bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	s := b.sessions[at.session]
	return s != nil && s.whole, s != nil && s.known
}
