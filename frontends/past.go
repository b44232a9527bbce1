package frontends

import (
	"slices"

	"github.com/fermata-hitl/fermata/events"
)

// past is what a frontend has heard of things that change for a while and then
// stay, such as operations: the newest ones, in the order in which each was first
// heard of.
type past[V any] struct{ recent[events.ID, heard[V]] }

// heard is one of them as it was last told. The feed's newest sequence wins. What
// a core tells of the past has no sequence: it wins over what was heard before it
// was asked for, and over nothing that was heard since.
type heard[V any] struct {
	what      V
	seq       uint64
	from, now uint64 // the inbox's ticks at which it was first heard of, and last
}

func newPast[V any](limit int) past[V] {
	return past[V]{newRecent[events.ID, heard[V]](limit)}
}

// list gives what is kept.
func (p *past[V]) list() []V {
	all := make([]V, 0, len(p.order))
	for _, id := range p.order {
		all = append(all, p.of[id].what)
	}
	return all
}

// hear folds what the feed says, and reports whether it was news.
func (p *past[V]) hear(id events.ID, what V, seq, tick uint64) bool {
	old, known := p.get(id)
	if known && old.seq > seq {
		return false
	}
	if !known {
		old.from = tick
	}
	p.put(id, heard[V]{what, seq, old.from, tick})
	return true
}

// recall folds what a core tells of the past, the oldest first, since it was asked
// at a tick, and returns which are new or may have changed. One that was not known
// takes its place before its successor, and before what was first heard since.
func (p *past[V]) recall(told []V, id func(V) events.ID, since uint64) (changed []events.ID) {
	place := slices.IndexFunc(p.order, func(id events.ID) bool { return p.of[id].from > since })
	if place < 0 {
		place = len(p.order)
	}
	for _, what := range slices.Backward(told) {
		key := id(what)
		old, known := p.get(key)
		switch {
		case !known:
			p.order = slices.Insert(p.order, place, key)
			old.from = since
		case old.now > since:
			place = slices.Index(p.order, key)
			continue
		default:
			place = slices.Index(p.order, key)
		}
		old.what = what
		p.of[key] = old
		changed = append(changed, key)
	}
	p.shorten()
	slices.Reverse(changed)
	return changed
}

// recalled folds a core's history that was asked for at since.
func (b *Inbox) recalled(h events.HistoryReply, since uint64) (out []Update) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := slices.DeleteFunc(h.Lines, func(l events.Line) bool { return l.Operation == "" })
	for _, id := range b.lines.recall(lines, func(l events.Line) events.ID { return l.Operation }, since) {
		if l, kept := b.lines.get(id); kept {
			out = append(out, Update{Kind: KindLine, Operation: id, Session: l.what.Session})
		}
	}
	runs := slices.DeleteFunc(h.Runs, func(r events.RunLine) bool { return r.Run == "" })
	for _, id := range b.runs.recall(runs, func(r events.RunLine) events.ID { return r.Run }, since) {
		if r, kept := b.runs.get(id); kept {
			out = append(out, Update{Kind: KindRun, Run: id, Session: r.what.Session})
		}
	}
	return out
}

// miss notes that operations or runs may have been missed.
func (b *Inbox) miss() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed = true
}

// hasMissed reports whether operations or runs may have been missed.
func (b *Inbox) hasMissed() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.missed
}

// beginRecall notes that a core is about to be asked for them, and gives the moment
// at which its answer is to be folded.
func (b *Inbox) beginRecall() (since uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed = false
	return b.tick
}
