package journal

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
)

// Group commit. A server that syncs before each acknowledgement takes one entry
// a sync, but a whole atomic batch a few. An entry goes alone as long as few are
// under way, so nobody waits for company; those that arrive while others are
// under way wait, and when enough of them do, they go together. Replicas share
// syncs by themselves, and without syncs a batch only costs.
//
// An entry keeps all that it has alone: its id, its expectation, and that
// whatever is no acknowledgement is doubt. A refused batch names nobody and has
// written nothing; its members then go alone.
const (
	leastBatch    = 16       // staging a batch costs about as much as so many syncs
	abreast       = 4        // go alone at once: enough that the disk never idles
	largestBatch  = 500      // the server takes 1000
	batchBytes    = 1 << 20  // all data of a batch
	largestMember = 64 << 10 // larger entries go alone: a sync is the least of their cost
)

// Headers of a batch's members.
const (
	headerBatch       = "Nats-Batch-Id"
	headerBatchMember = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
)

// group is who is under way to the log and who waits. Some are under way
// whenever some wait, and the last one back sends the next ones.
type group struct {
	least, abreast int
	commit         func(batch []*member) // begins to write a batch; settle ends it

	mu      sync.Mutex
	alone   int       // entries that went alone and are not back
	batch   bool      // a batch is under way, and nothing else starts
	waiting []*member // in order of arrival
}

// member is an entry's first attempt.
type member struct {
	entry Entry
	gone  bool      // nobody awaits its turn any more; guarded by group.mu
	turn  chan turn // one of room
}

// turn tells a member to go alone, or what came of the batch that it was in.
type turn struct {
	alone bool
	seq   uint64
	err   error
}

// first is the first attempt to write an entry, alone or in a batch. Its results
// are those of [Journal.publish].
func (j *Journal) first(ctx context.Context, e Entry) (uint64, error) {
	if j.group == nil || len(e.Data) > largestMember {
		return j.publish(ctx, e)
	}
	m := &member{entry: e, turn: make(chan turn, 1)}
	j.group.arrive(m)
	select {
	case t := <-m.turn:
		if !t.alone {
			return t.seq, t.err
		}
	case <-ctx.Done():
		j.group.leave(m)
		return 0, ctx.Err()
	}
	defer j.group.back()
	return j.publish(ctx, e)
}

// arrive puts a member in line.
func (g *group) arrive(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, m)
	g.next()
}

// leave takes a member out of the line. Its batch, if it is in one, goes on.
func (g *group) leave(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.gone = true
	if i := slices.Index(g.waiting, m); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	select {
	case t := <-m.turn:
		if t.alone {
			g.alone--
			g.next()
		}
	default:
	}
}

// back is told by a member that went alone.
func (g *group) back() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alone--
	g.next()
}

// settle ends a batch. After it a few go alone before the next batch, however
// many wait: meanwhile its members come back, and join that one.
func (g *group) settle(batch []*member, last uint64, err error) {
	var refusal *apiError
	refused := errors.As(err, &refusal)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.batch = false
	for i, m := range batch {
		switch behind := uint64(len(batch) - 1 - i); {
		case refused:
			g.goAlone(m)
		case err != nil:
			m.turn <- turn{err: err}
		default:
			m.turn <- turn{seq: last - behind}
		}
	}
	g.fill()
	g.next()
}

// next starts what may start now. mu is held.
func (g *group) next() {
	switch {
	case g.batch:
	case len(g.waiting) < g.least:
		g.fill()
	case g.alone == 0:
		g.start()
	}
}

// fill lets the longest waiting go alone, a few abreast. mu is held.
func (g *group) fill() {
	for g.alone < g.abreast && len(g.waiting) > 0 {
		g.goAlone(g.waiting[0])
		g.waiting = g.waiting[1:]
	}
}

// start sends a batch. When too few of those who wait can share one, all go
// alone. mu is held.
func (g *group) start() {
	batch, rest := pick(g.waiting)
	if len(batch) < g.least {
		for _, m := range g.waiting {
			g.goAlone(m)
		}
		g.waiting = nil
		return
	}
	g.waiting, g.batch = rest, true
	g.commit(batch)
}

// goAlone gives a member its turn. mu is held.
func (g *group) goAlone(m *member) {
	if !m.gone {
		g.alone++
		m.turn <- turn{alone: true}
	}
}

// pick chooses who shares a batch, the longest waiting first. The server refuses
// a batch with two entries of one subject that expect anything, and one in which
// an id occurs twice.
func pick(waiting []*member) (batch, rest []*member) {
	taken := make(map[string]bool, 2*len(waiting))
	size := 0
	for _, m := range waiting {
		subject, id, more := m.entry.Subject, string(m.entry.ID), len(m.entry.Data)
		if len(batch) == largestBatch || taken[subject] || taken[id] || size+more > batchBytes {
			rest = append(rest, m)
			continue
		}
		taken[subject], taken[id] = true, true
		size += more
		batch = append(batch, m)
	}
	return batch, rest
}

// commitBatch writes a batch in a goroutine of its own, which ends within
// ackWait: so it depends on no member's context.
func (j *Journal) commitBatch(batch []*member) {
	go func() {
		last, err := j.publishBatch(batch)
		j.group.settle(batch, last, err)
	}()
}

// publishBatch makes one attempt to write all entries of a batch, or none. A nil
// error is the only news: the entries have consecutive sequences, in their
// order, up to the returned one. The server stores a batch while nothing else
// can be stored, and acknowledges its last message.
func (j *Journal) publishBatch(batch []*member) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ackWait)
	defer cancel()
	id := string(j.opts.NewID())
	var msg *nats.Msg
	for i, m := range batch {
		if i > 0 {
			if err := j.nc.PublishMsg(msg); err != nil {
				return 0, err
			}
		}
		msg = m.entry.message()
		msg.Header[headerBatch] = []string{id}
		msg.Header[headerBatchMember] = []string{strconv.Itoa(i + 1)}
	}
	msg.Header[headerBatchCommit] = []string{"1"}
	return j.acked(ctx, msg, len(batch))
}
