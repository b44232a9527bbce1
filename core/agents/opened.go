package agents

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// How many sessions a door knows, of one connection and of all.
const (
	maxOpened    = 1024
	maxAllOpened = 1 << 14
)

// caller is who sent a command about a session, and how it opened that.
type caller struct {
	agent   events.ID
	project events.Token
	session events.Token
	opening core.SessionOpening
}

// entry is a session that a connection has opened.
type entry struct {
	caller
	used time.Time
}

// listening is the subscription of a session, for all who have opened it.
type listening struct {
	sub   *nats.Subscription
	users int
}

// opened is which connection has opened which session. Beyond its bounds the
// entry that was not used for longest goes: its connection opens the session
// again.
type opened struct {
	conn *nats.Conn
	to   chan *nats.Msg

	change sync.Mutex // held while subscriptions change; taken before mu
	subs   map[events.Token]*listening
	closed bool

	mu  sync.Mutex
	of  map[events.ID]map[events.Token]*entry
	all int
}

func (o *opened) find(agent events.ID, session events.Token) (caller, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.of[agent][session]
	if e == nil {
		return caller{}, false
	}
	e.used = time.Now()
	return e.caller, true
}

// add notes a session as opened and listens to its subjects. It returns when the
// server knows that.
func (o *opened) add(ctx context.Context, c caller) error {
	o.change.Lock()
	defer o.change.Unlock()
	if o.closed {
		return context.Canceled
	}
	l := o.subs[c.session]
	if l == nil {
		sub, err := o.conn.ChanSubscribe(events.AgentSubject(c.project, c.session, "*", "*"), o.to)
		if err != nil {
			return err
		}
		l = &listening{sub: sub}
		o.subs[c.session] = l
		if err := flush(ctx, o.conn); err != nil {
			o.unused(c.session)
			return err
		}
	}
	for _, old := range o.note(c) {
		o.subs[old].users--
		o.unused(old)
	}
	return nil
}

// note is the part of add about who. It returns the sessions that lost an entry;
// the one of c, which has a user more, is counted here.
func (o *opened) note(c caller) (lost []events.Token) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.of[c.agent][c.session]; e != nil {
		e.caller, e.used = c, time.Now()
		return nil
	}
	if len(o.of[c.agent]) >= maxOpened {
		lost = append(lost, o.evict(map[events.ID]map[events.Token]*entry{c.agent: o.of[c.agent]}))
	} else if o.all >= maxAllOpened {
		lost = append(lost, o.evict(o.of))
	}
	if o.of[c.agent] == nil {
		o.of[c.agent] = map[events.Token]*entry{}
	}
	o.of[c.agent][c.session] = &entry{c, time.Now()}
	o.all++
	o.subs[c.session].users++
	return lost
}

// evict takes out the entry that was not used for longest. o.mu is held.
func (o *opened) evict(among map[events.ID]map[events.Token]*entry) events.Token {
	var oldest *entry
	for _, sessions := range among {
		for _, e := range sessions {
			if oldest == nil || e.used.Before(oldest.used) {
				oldest = e
			}
		}
	}
	o.remove(oldest.agent, oldest.session)
	return oldest.session
}

// remove is called with o.mu held.
func (o *opened) remove(agent events.ID, session events.Token) {
	delete(o.of[agent], session)
	if len(o.of[agent]) == 0 {
		delete(o.of, agent)
	}
	o.all--
}

// drop forgets a session of a connection.
func (o *opened) drop(agent events.ID, session events.Token) {
	o.change.Lock()
	defer o.change.Unlock()
	o.mu.Lock()
	known := o.of[agent][session] != nil
	if known {
		o.remove(agent, session)
	}
	o.mu.Unlock()
	if l := o.subs[session]; known && l != nil {
		l.users--
		o.unused(session)
	}
}

// unused ends the subscription of a session that nobody has open. o.change is
// held.
func (o *opened) unused(session events.Token) {
	if l := o.subs[session]; l.users == 0 {
		_ = l.sub.Unsubscribe()
		delete(o.subs, session)
	}
}

// close stops listening.
func (o *opened) close() {
	o.change.Lock()
	defer o.change.Unlock()
	o.closed = true
	for s, l := range o.subs {
		_ = l.sub.Unsubscribe()
		delete(o.subs, s)
	}
}
