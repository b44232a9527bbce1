package tui

import "time"

// A question that has just been drawn takes no keys: what a person typed before
// they could read it was meant for something else. Keys count once the question
// has been on the screen for half a second and no key has come for half a
// second. Whatever makes buttons live again, the next question, a claim that
// somebody gave back, or the return from a stopped program, begins anew.
const (
	graceDrawn = 500 * time.Millisecond
	graceQuiet = 500 * time.Millisecond
	// frame is how long the terminal may take to show what was drawn: the time that
	// the question is on the screen counts from its end.
	frame = 50 * time.Millisecond
	// slow is how long a message may keep the program busy. What was typed meanwhile
	// is read only then, as if it had just been typed.
	slow = 100 * time.Millisecond
	// stopped is a silence that a running program cannot have while it counts
	// seconds: it slept, and keys may have gathered meanwhile.
	stopped = 3 * time.Second
)

// grace is the state of one question's buttons. The zero value has not been
// drawn and takes no keys.
type grace struct {
	drawn time.Time // when it was certainly on the screen
	key   time.Time // when the last key came that did not count
	live  bool
	shut  bool // something else has the terminal: nothing counts until another begins
}

// begin starts the grace of what will be drawn; its time counts from then on.
func (g *grace) begin(now time.Time) { *g = grace{key: now} }

// painted notes that it has been drawn.
func (g *grace) painted(now time.Time) {
	if g.drawn.IsZero() {
		g.drawn = now.Add(frame)
	}
}

// paint notes what a frame, which has just been made, shows of a dialog. An agent
// chooses how long that takes: a huge value can be slow to lay out.
func (m *Model) paint() {
	now, d := m.o.Now(), m.dialog
	busy := m.busy && now.Sub(m.now) > slow
	m.busy = false
	if d == nil || d.grace.shut {
		return
	}
	if !m.fits() || busy {
		d.grace.begin(now)
	}
	if m.fits() {
		d.grace.painted(now)
		d.inSight()
	}
}

// left is how long keys will still not count.
func (g *grace) left(now time.Time) time.Duration {
	if g.live {
		return 0
	}
	if g.drawn.IsZero() || g.shut {
		return graceDrawn + frame
	}
	return max(g.drawn.Add(graceDrawn).Sub(now), g.key.Add(graceQuiet).Sub(now), 0)
}

// passed settles whether the time is over.
func (g *grace) passed(now time.Time) bool {
	g.live = g.left(now) == 0
	return g.live
}

// takes reports whether a key counts, and notes one that does not.
func (g *grace) takes(now time.Time) bool {
	if g.passed(now) {
		return true
	}
	g.key = now
	return false
}
