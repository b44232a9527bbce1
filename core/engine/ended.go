package engine

import "github.com/fermata-hitl/fermata/events"

// ended remembers where the last operations and questions that left memory
// stand in the log. Older ones are found by reading back.
type ended struct {
	operations map[events.ID]string // subject
	questions  map[events.ID]string
	oldOps     ring
	oldQs      ring
}

// ring is a fixed number of ids, the oldest overwritten first.
type ring struct {
	ids  []events.ID
	next int
}

func newEnded(n int) ended {
	return ended{
		operations: map[events.ID]string{}, questions: map[events.ID]string{},
		oldOps: ring{ids: make([]events.ID, n)}, oldQs: ring{ids: make([]events.ID, n)},
	}
}

func (r *ring) put(id events.ID) (oldest events.ID) {
	oldest = r.ids[r.next]
	r.ids[r.next] = id
	r.next = (r.next + 1) % len(r.ids)
	return oldest
}

func (d *ended) operation(id events.ID, subject string) {
	if _, ok := d.operations[id]; !ok {
		delete(d.operations, d.oldOps.put(id))
	}
	d.operations[id] = subject
}

func (d *ended) question(id events.ID, subject string) {
	if _, ok := d.questions[id]; !ok {
		delete(d.questions, d.oldQs.put(id))
	}
	d.questions[id] = subject
}
