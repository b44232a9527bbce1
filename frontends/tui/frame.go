package tui

import "github.com/fermata-hitl/fermata/frontends/words"

// The smallest window in which a question can be shown and answered.
const (
	leastWidth  = 40
	leastHeight = 8
)

// restful is how many rows a value that scrolls should have: where it would have
// fewer, the dialog's empty lines are given to the values.
const restful = 8

func (m *Model) fits() bool { return m.width >= leastWidth && m.height >= leastHeight }

// roomy says that there is space for rules, the session and who is next.
func (m *Model) roomy() bool { return m.height >= 16 }

// cramped says that there is no line to spare: what was made visible and the
// state share one, and "?" has what gives way.
func (m *Model) cramped() bool { return m.height < 10 }

// frameOf is how the dialog's lines are shared out for a window: everything but
// the boxes has its fixed number of lines, so the buttons are always there.
type frameOf struct {
	labels  int   // width of the column of names
	first   int   // first value box in sight
	heights []int // of the value boxes from first on
	airy    bool  // empty lines between the parts
	spaced  bool  // an empty line between the boxes
	hidden  bool  // a line counts the boxes that are out of sight
	room    int   // rows for the boxes when some are
	reason  int   // height of the reason
}

// arrange lays out the boxes for the window as it is.
func (m *Model) arrange(d *dialog) frameOf {
	f := frameOf{labels: m.labelWidth(d), airy: m.roomy()}
	if !d.ready() {
		return f
	}
	width := m.width - f.labels - 5
	for _, b := range d.all() {
		b.layout(f.labels, width)
	}
	if d.reason != nil {
		f.reason = min(d.reason.need(), m.reasonRows())
	}
	f.airy = f.airy && rests(d.values, m.roomFor(d, f))
	room := m.roomFor(d, f)
	if f.heights = share(d.values, room); f.heights == nil {
		f.hidden = true
		m.window(d, &f, room-1)
		d.choose(f)
		return f
	}
	d.choose(f)
	for _, h := range f.heights {
		room -= h
	}
	if d.reason != nil {
		more := min(d.reason.need()-f.reason, room)
		f.reason += more
		room -= more
	}
	f.spaced = f.airy && len(d.values)-1 <= room
	return f
}

// rests reports whether a number of rows is enough to read in for every box that
// scrolls, or for all together where not all are in sight.
func rests(boxes []*box, rows int) bool {
	heights := share(boxes, rows)
	for i, h := range heights {
		if boxes[i].need() > h && h < restful {
			return false
		}
	}
	return heights != nil || rows >= restful
}

// roomFor counts the rows that the value boxes have among them.
func (m *Model) roomFor(d *dialog, f frameOf) int {
	return m.bodyRows(d, f.airy) - len(m.source(d, f)) - f.reason
}

// bodyRows counts the rows between the title and the state.
func (m *Model) bodyRows(d *dialog, airy bool) int {
	return m.height - len(m.top(d, airy)) - len(m.foot(d, airy, 1))
}

// choose makes the first box in sight that scrolls the current one, for as long as
// the person has not chosen one.
func (d *dialog) choose(f frameOf) {
	if d.chosen {
		return
	}
	d.current = 0
	for i, h := range f.heights {
		if d.values[f.first+i].need() > h {
			d.current = f.first + i
			return
		}
	}
}

// window picks the boxes in sight when not all fit: as many as fit from the
// first, moved just far enough that the current one is among them. One that was
// chosen and scrolls has room to be read in, as far as there is any.
func (m *Model) window(d *dialog, f *frameOf, room int) {
	current := min(d.current, len(d.values)-1)
	least := func(at int) int {
		if at == d.current && d.chosen {
			return min(d.values[at].need(), restful, max(room, 1))
		}
		return d.values[at].least()
	}
	if !d.chosen {
		current, d.first = 0, 0
	}
	d.first = min(d.first, current)
	for left := room - needOf(d.values[d.first:]); d.first > 0; d.first-- { // no row stays empty
		if left < d.values[d.first-1].least() {
			break
		}
		left -= d.values[d.first-1].need()
	}
	for {
		n := 0
		for left := room; d.first+n < len(d.values); n++ {
			if left -= least(d.first + n); left < 0 {
				break
			}
		}
		if n = max(n, 1); current < d.first+n {
			f.first, f.room = d.first, room
			f.heights = m.heightsOf(d, f.first, n, room)
			return
		}
		d.first++
	}
}

func needOf(boxes []*box) int {
	n := 0
	for _, b := range boxes {
		n += b.need()
	}
	return n
}

// heightsOf shares rows among n boxes from the first in sight. What the chosen one
// can use is its own before the others get more than they must have.
func (m *Model) heightsOf(d *dialog, first, n, room int) []int {
	boxes := d.values[first : first+n]
	heights := share(boxes, room)
	if heights == nil {
		return []int{room}
	}
	at := d.current - first
	if !d.chosen || at < 0 || at >= n {
		return heights
	}
	own := room
	for i, b := range boxes {
		if heights[i] = b.least(); i != at {
			own -= heights[i]
		}
	}
	heights[at] = min(boxes[at].need(), own)
	own -= heights[at]
	for i, b := range boxes {
		more := max(min(b.need()-heights[i], own), 0)
		heights[i] += more
		own -= more
	}
	return heights
}

// reasonRows is how many rows the reason has for certain; what the values leave
// free is its own too.
func (m *Model) reasonRows() int {
	switch {
	case m.height >= 20:
		return 3
	case m.height >= 12:
		return 2
	}
	return 1
}

// labelWidth is the width of the column of names. A name that is wider than the
// column may get has rows of its own, so that it is never cut.
func (m *Model) labelWidth(d *dialog) int {
	most := 12
	if m.width >= 60 {
		most = m.width / 4
	}
	widest := max(cells(m.w.Say(words.AskedBy)), cells(m.w.Say(words.Reason)))
	for _, b := range d.values { // none while they are fetched
		if n := cells(b.label); n <= most {
			widest = max(widest, n)
		}
	}
	return min(widest, most)
}

// heightOf is the height of the box that scroll keys move.
func (m *Model) heightOf(d *dialog) int {
	if !d.ready() || !m.fits() {
		return 1
	}
	f := m.arrange(d)
	switch at := d.current - f.first; {
	case d.details != nil:
		return m.bodyRows(d, f.airy)
	case d.current >= len(d.values):
		return f.reason
	case at >= 0 && at < len(f.heights):
		return f.heights[at]
	}
	return 1
}

func (m *Model) pageOf(d *dialog) int { return m.currentBox(d).page(m.heightOf(d)) }
