package engine

import (
	"slices"
	"sync"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// maxDeclined bounds what is remembered of one session.
const maxDeclined = 128

// repeats remember which calls were declined in which turn, so that the same call in
// the same turn asks nobody again. A new message of the user clears it.
type repeats struct {
	mu sync.Mutex
	of map[Place][]declined // the oldest first
}

// declined is one call that a person refused, or that nobody answered in time. Digest is
// that of its arguments as they came: what hooks make of them may differ each
// time.
type declined struct {
	Tool   string
	Digest events.Digest
	Turn   string
	Repeat core.Repeat
}

// cachedRepeats is what a snapshot keeps of one session.
type cachedRepeats struct {
	Place    Place
	Declined []declined
}

func newRepeats() *repeats { return &repeats{of: map[Place][]declined{}} }

// take follows an operation's messages; s is its state after m.
func (r *repeats) take(s core.State, m events.Message) {
	p := Place{m.Project, m.Session}
	for _, ev := range m.Events {
		switch ev := ev.(type) {
		case events.OperationRefused:
			if ev.Code == events.CodeDeclined || ev.Code == events.CodeTimedOut {
				r.put(p, s, core.Repeat{Code: ev.Code, Question: ev.Question, Words: string(s.Body(events.TextBody(ev.Question)))})
			}
		case events.OperationCommitted:
			if s.Proposed.Kind == events.KindUserPrompt || s.Proposed.Kind == events.KindInjection {
				r.forget(p)
			}
		}
	}
}

// put remembers a call. The first of a call stays: its question is the one that a
// person saw.
func (r *repeats) put(p Place, s core.State, again core.Repeat) {
	if s.Turn == "" || s.Proposed.Kind != events.KindToolCall {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.of[p]
	if find(list, s) >= 0 {
		return
	}
	list = append(list, declined{s.Proposed.Tool.Name, s.Versions[0].Digest, s.Turn, again})
	r.of[p] = list[max(0, len(list)-maxDeclined):]
}

// find returns how the same call was declined before, nil if it was not.
func (r *repeats) find(p Place, s core.State) *core.Repeat {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.of[p]
	if i := find(list, s); i >= 0 {
		again := list[i].Repeat
		return &again
	}
	return nil
}

func find(list []declined, s core.State) int {
	return slices.IndexFunc(list, func(d declined) bool {
		return s.Turn != "" && s.Proposed.Kind == events.KindToolCall &&
			d.Turn == s.Turn && d.Tool == s.Proposed.Tool.Name && d.Digest == s.Versions[0].Digest
	})
}

func (r *repeats) forget(p Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, p)
}

func (r *repeats) copy() []cachedRepeats {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]cachedRepeats, 0, len(r.of))
	for p, calls := range r.of {
		list = append(list, cachedRepeats{p, slices.Clone(calls)})
	}
	return list
}

func (r *repeats) restore(list []cachedRepeats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = map[Place][]declined{}
	for _, c := range list {
		r.of[c.Place] = c.Declined
	}
}
