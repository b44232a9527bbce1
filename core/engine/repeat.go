package engine

import (
	"slices"
	"sync"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// maxNoes bounds what is remembered of one session.
const maxNoes = 128

// repeats remember who said no to what in which turn, so that the same call in
// the same turn asks nobody again. A new message of the user clears it.
type repeats struct {
	mu sync.Mutex
	of map[Place][]no // the oldest first
}

// no is one call that was declined, or that nobody answered in time. Digest is
// that of its arguments as they came: what hooks make of them may differ each
// time.
type no struct {
	Tool   string
	Digest events.Digest
	Turn   string
	Repeat core.Repeat
}

// cachedNoes is what a snapshot keeps of one session.
type cachedNoes struct {
	Place Place
	Noes  []no
}

func newRepeats() *repeats { return &repeats{of: map[Place][]no{}} }

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

// put remembers a no. The first of a call stays: its question is the one that a
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
	list = append(list, no{s.Proposed.Tool.Name, s.Versions[0].Digest, s.Turn, again})
	r.of[p] = list[max(0, len(list)-maxNoes):]
}

// find returns the no that a call got before, nil if there is none.
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

func find(list []no, s core.State) int {
	return slices.IndexFunc(list, func(n no) bool {
		return s.Turn != "" && s.Proposed.Kind == events.KindToolCall &&
			n.Turn == s.Turn && n.Tool == s.Proposed.Tool.Name && n.Digest == s.Versions[0].Digest
	})
}

func (r *repeats) forget(p Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, p)
}

func (r *repeats) copy() []cachedNoes {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]cachedNoes, 0, len(r.of))
	for p, noes := range r.of {
		list = append(list, cachedNoes{p, slices.Clone(noes)})
	}
	return list
}

func (r *repeats) restore(list []cachedNoes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = map[Place][]no{}
	for _, c := range list {
		r.of[c.Place] = c.Noes
	}
}
