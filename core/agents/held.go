package agents

import (
	"context"
	"sync"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// What one connection may have at a door.
const (
	maxBusy      = 512      // commands under way, without those that await
	maxBusyBytes = 32 << 20 // of them
	maxAwaiting  = 4096
	maxHeld      = 4096 // operations
)

// class is what a command counts as while it is under way.
type class int

const (
	ordinary class = iota
	awaiting
)

// busy counts what each connection has under way.
type busy struct {
	mu sync.Mutex
	of map[events.ID]load
}

type load struct {
	commands [awaiting + 1]int
	bytes    int
}

func (b *busy) take(agent events.ID, c class, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.of[agent]
	most := [...]int{ordinary: maxBusy, awaiting: maxAwaiting}[c]
	if l.commands[c] >= most || l.bytes > 0 && l.bytes+bytes > maxBusyBytes {
		return false
	}
	l.commands[c]++
	l.bytes += bytes
	b.of[agent] = l
	return true
}

func (b *busy) give(agent events.ID, c class, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.of[agent]
	l.commands[c]--
	l.bytes -= bytes
	if b.of[agent] = l; l == (load{}) {
		delete(b.of, agent)
	}
}

// holder names one connection's part in an operation.
type holder struct {
	agent, op events.ID
}

// holding is an operation that a connection waits for. It is the door's, and not
// the connection's, which may come and go: the asker keeps it by asking.
type holding struct {
	op     events.ID
	secret string
	until  time.Time
	older  context.CancelFunc // ends an await that a newer one follows
}

// held is every operation that is waited for at a door.
type held struct {
	mu    sync.Mutex
	of    map[holder]*holding
	count map[events.ID]int // by connection
}

func (h *held) full(agent events.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count[agent] >= maxHeld
}

// keep begins an operation's lease. It is false when the connection held it
// before.
func (h *held) keep(agent, op events.ID, secret string) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := time.Now().Add(events.AskerLease)
	if k := h.of[holder{agent, op}]; k != nil && k.secret == secret {
		k.until = until
		return false
	}
	if h.of[holder{agent, op}] == nil {
		h.count[agent]++
	}
	h.of[holder{agent, op}] = &holding{op: op, secret: secret, until: until}
	return true
}

// await renews a lease for an await that begins, and ends the one before it.
// False when the connection does not hold the operation.
func (h *held) await(agent, op events.ID, secret string, cancel context.CancelFunc) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.of[holder{agent, op}]
	if k == nil || k.secret != secret {
		return false
	}
	if k.older != nil {
		k.older()
	}
	k.until, k.older = time.Now().Add(events.AskerLease), cancel
	return true
}

// answered sets the lease that follows a reply.
func (h *held) answered(agent, op events.ID, left time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := h.of[holder{agent, op}]; k != nil {
		k.until = time.Now().Add(left)
	}
}

// release ends a connection's part in an operation; false if it had none.
func (h *held) release(agent, op events.ID, secret string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.of[holder{agent, op}]
	if k == nil || k.secret != secret {
		return false
	}
	h.drop(holder{agent, op})
	return true
}

// lapsed takes out what nobody asked about in time.
func (h *held) lapsed(now time.Time) (list []*holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for at, k := range h.of {
		if now.After(k.until) {
			list = append(list, k)
			h.drop(at)
		}
	}
	return list
}

// drop is called with the lock held.
func (h *held) drop(at holder) {
	delete(h.of, at)
	if h.count[at.agent]--; h.count[at.agent] == 0 {
		delete(h.count, at.agent)
	}
}
