package engine

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slots share out the places among a session's parallel hooks, first come,
// first served. A session that runs none has no line.
type slots struct {
	mu    sync.Mutex
	lines map[Place]*line
}

type line struct {
	running int
	waiting []*ticket
}

// ticket is one who stands in line; most is how many may run beside each other
// under the rules that it runs under.
type ticket struct {
	most  int
	ready chan struct{}
}

func newSlots() *slots { return &slots{lines: map[Place]*line{}} }

// take waits for a place. Whoever has one must leave it, once.
func (s *slots) take(ctx context.Context, p Place, most int) (leave func(), waited time.Duration, err error) {
	t := &ticket{most: max(1, most), ready: make(chan struct{})}
	s.mu.Lock()
	l, ok := s.lines[p]
	if !ok {
		l = &line{}
		s.lines[p] = l
	}
	l.waiting = append(l.waiting, t)
	l.serve()
	s.mu.Unlock()
	select {
	case <-t.ready: // also when ctx has ended: whoever has a place shall say so
		return func() { s.leave(p) }, 0, nil
	default:
	}
	came := time.Now()
	select {
	case <-t.ready:
		return func() { s.leave(p) }, time.Since(came), nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(l.waiting, t)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.serve() // the next may be content with less room
	}
	s.mu.Unlock()
	if i < 0 { // it was served at the same moment
		s.leave(p)
	}
	return nil, time.Since(came), context.Cause(ctx)
}

func (s *slots) leave(p Place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[p]
	l.running--
	l.serve()
	if l.running == 0 && len(l.waiting) == 0 {
		delete(s.lines, p)
	}
}

// serve lets in whoever stands in front, as long as there is room.
func (l *line) serve() {
	for len(l.waiting) > 0 && l.running < l.waiting[0].most {
		close(l.waiting[0].ready)
		l.waiting = slices.Delete(l.waiting, 0, 1)
		l.running++
	}
}
