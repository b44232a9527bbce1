package tui

import (
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// row is a line of what waits: the questions that one look answers, the oldest
// first, by their places in Model.questions.
type row []int

// waiting is what the list shows of the open questions. Thousands may wait: rows
// are made when questions come or go, not for a frame, and only those in sight are
// drawn.
type waiting struct {
	rows     []row
	shown    []row             // those that the filter lets through
	filtered string            // by this filter
	places   map[events.ID]int // in Model.questions
	searches map[events.ID]string
	stats    map[events.ID]string // of the rows that were drawn
	ticked   map[events.ID]bool
	twins    twins
}

func newWaiting() waiting {
	return waiting{
		places: map[events.ID]int{}, searches: map[events.ID]string{}, stats: map[events.ID]string{},
		ticked: map[events.ID]bool{},
	}
}

// arrangeRows follows a new list of questions, and tells which are new. Rows stay
// as they are where only claims have changed.
func (m *Model) arrangeRows(before []events.Question) (fresh []events.Question) {
	same := func(a, b events.Question) bool { return a.ID == b.ID }
	if slices.EqualFunc(before, m.questions, same) {
		return nil
	}
	places := make(map[events.ID]int, len(m.questions))
	for i, q := range m.questions {
		places[q.ID] = i
		if _, known := m.waiting.places[q.ID]; !known {
			fresh = append(fresh, q)
		}
	}
	m.waiting.places = places
	m.waiting.rows = group(m.questions, places)
	m.sessions = countSessions(m.questions)
	m.waiting.twins = m.findTwins()
	m.dropGone()
	m.filterRows()
	return fresh
}

// group puts equal questions into one row. Questions about other bytes are never
// equal, and most are: only the rest are compared.
func group(questions []events.Question, places map[events.ID]int) []row {
	about := make(map[events.Digest]int, len(questions))
	for i := range questions {
		about[questions[i].Version.Digest]++
	}
	var alike []events.Question
	for i := range questions {
		if about[questions[i].Version.Digest] > 1 {
			alike = append(alike, questions[i])
		}
	}
	led := map[events.ID]row{} // by the first question of each
	for _, equal := range frontends.Groups(alike) {
		var r row
		for _, q := range equal {
			r = append(r, places[q.ID])
		}
		led[equal[0].ID] = r
	}
	rows, all := make([]row, 0, len(questions)), make(row, len(questions))
	for i := range questions {
		all[i] = i
		if about[questions[i].Version.Digest] == 1 {
			rows = append(rows, all[i:i+1:i+1])
		} else if r := led[questions[i].ID]; r != nil {
			rows = append(rows, r)
		}
	}
	return rows
}

// dropGone forgets what was kept about questions that are over.
func (m *Model) dropGone() {
	gone := func(id events.ID) bool { _, open := m.waiting.places[id]; return !open }
	for _, marks := range []map[events.ID]bool{m.waiting.ticked, m.later} {
		maps.DeleteFunc(marks, func(id events.ID, _ bool) bool { return gone(id) })
	}
	for _, texts := range []map[events.ID]string{m.summaries, m.waiting.searches, m.waiting.stats} {
		if len(texts) > 2*len(m.questions)+100 {
			maps.DeleteFunc(texts, func(id events.ID, _ string) bool { return gone(id) })
		}
	}
}

// filterRows lets the filter choose among the rows again, and keeps the cursor on
// the question that it stood on.
func (m *Model) filterRows() {
	w, want := &m.waiting, m.list.filter.value()
	at := m.list.question
	w.shown, w.filtered = w.rows, want
	if want = strings.ToLower(want); want != "" {
		w.shown = nil
		for _, r := range w.rows {
			if strings.Contains(m.searchText(r[0]), want) {
				w.shown = append(w.shown, r)
			}
		}
	}
	m.pointAt(at)
}

// filtered are the rows that the filter lets through.
func (m *Model) filtered() []row {
	if m.waiting.filtered != m.list.filter.value() {
		m.filterRows()
	}
	return m.waiting.shown
}

// searchText is all that the list knows of a question, for the filter. It is put
// together once.
func (m *Model) searchText(place int) string {
	text, known := m.waiting.searches[m.questions[place].ID]
	if known {
		return text
	}
	q := m.questions[place]
	text = strings.ToLower(strings.Join([]string{
		string(q.Agent), q.ProjectPath, m.teller().Tool(q.Tool, q.Kind), q.Tool.Name, q.Tool.Kind, m.summary(q),
		q.Hook.ID, q.Path, m.w.Kind(string(q.Kind)), string(q.Kind),
	}, "\n"))
	if len(q.Args) > 0 {
		m.waiting.searches[q.ID] = text
	}
	return text
}

// summary is one line about what a question would do.
func (m *Model) summary(q events.Question) string {
	text, known := m.summaries[q.ID]
	if !known && len(q.Args) > 0 {
		text = clip(card.Line(events.About(q.Args)))
		m.summaries[q.ID] = text
	}
	return text
}

// stats counts what an edit adds and takes away, as in "+12 −3", "" for any other
// call and for what is too large for a list. It is counted for rows in sight alone.
func (m *Model) stats(q events.Question) string {
	text, known := m.waiting.stats[q.ID]
	if !known && len(q.Args) > 0 {
		text = card.Stats(q.Args)
		m.waiting.stats[q.ID] = text
	}
	return text
}

// clip bounds what a summary keeps; lists show less.
func clip(s string) string {
	if len(s) > 2000 {
		s = strings.ToValidUTF8(s[:2000], "") + "…"
	}
	return fitAbout(s, 200)
}

// pointAt puts the cursor on the row of a question, if there is one.
func (m *Model) pointAt(id events.ID) {
	place, open := m.waiting.places[id]
	if !open {
		return
	}
	i := m.list.cursor
	if shown := m.waiting.shown; i < 0 || i >= len(shown) || !slices.Contains(shown[i], place) {
		i = slices.IndexFunc(shown, func(r row) bool { return slices.Contains(r, place) })
	}
	if i >= 0 {
		m.list.cursor, m.list.question = i, id
	}
}

// questionsOf are the questions of a row.
func (m *Model) questionsOf(r row) []events.Question {
	var list []events.Question
	for _, i := range r {
		list = append(list, m.questions[i])
	}
	return list
}

// chosen is what Enter opens: what is ticked, in the order of the list, else the
// row under the cursor.
func (m *Model) chosen() []events.Question {
	if len(m.waiting.ticked) == 0 {
		if r, ok := m.currentRow(); ok {
			return m.questionsOf(r)
		}
		return nil
	}
	var list []events.Question
	for _, q := range m.questions {
		if m.waiting.ticked[q.ID] {
			list = append(list, q)
		}
	}
	return list
}

func (m *Model) currentRow() (row, bool) {
	shown := m.filtered()
	if i := m.list.cursor; i >= 0 && i < len(shown) {
		return shown[i], true
	}
	return nil, false
}

// tick marks a row, or takes its mark away.
func (m *Model) tick(r row) {
	on := !m.isTicked(r)
	for _, i := range r {
		if id := m.questions[i].ID; on {
			m.waiting.ticked[id] = true
		} else {
			delete(m.waiting.ticked, id)
		}
	}
}

// tickAll marks all rows that the filter lets through, or, where all are marked,
// takes their marks away.
func (m *Model) tickAll() {
	shown := m.filtered()
	all := !slices.ContainsFunc(shown, func(r row) bool { return !m.isTicked(r) })
	for _, r := range shown {
		if all == m.isTicked(r) {
			m.tick(r)
		}
	}
}

func (m *Model) isTicked(r row) bool { return m.waiting.ticked[m.questions[r[0]].ID] }

// waitingRows draws the rows from which to which the window shows.
func (m *Model) waitingRows(shown []row, from, to, line int) []string {
	var out []string
	for i := from; i < to; i++ {
		r, current := shown[i], i == m.list.cursor && !m.inEarlier()
		out = append(out, m.waitingRow(r, current))
		at := line + len(out) - 1
		m.zone(at, 0, m.width, func() tea.Cmd { return m.openSet(m.questionsOf(r)) })
		m.zone(at, 0, leadWidth, func() tea.Cmd { m.tick(r); return m.openDue() })
	}
	return out
}

func (m *Model) waitingRow(r row, current bool) string {
	q := m.questions[r[0]]
	about := m.summary(q)
	if about == "" && len(q.Args) == 0 { // too long to travel with the list
		about = m.w.Say(words.Bytes, card.Count(q.Version.Bytes))
	}
	lead := leadOf(m.style.accent.Render("?"), m.isTicked(r), current, m.style)
	cells := cellsOf{
		agent: string(q.Agent), project: q.ProjectPath, tool: m.teller().Tool(q.Tool, q.Kind),
		path: m.shortPath(q.Path), about: about, stats: m.stats(q), right: []string{m.waitsText(r)},
	}
	cells.session, cells.twin = m.waiting.twins[q.ID]
	return m.columns(lead, cells, current)
}

// shortPath names who in the agent wants it, "" for the agent itself.
func (m *Model) shortPath(path string) string {
	if path == events.MainPath {
		return ""
	}
	return card.Line(strings.TrimPrefix(path, events.MainPath+" > "))
}

// waitsText stands at the right edge: how many questions the row is, who answers,
// what time is left, and how long the oldest waits.
func (m *Model) waitsText(r row) string {
	q := m.questions[r[0]]
	var parts []string
	if len(r) > 1 {
		parts = append(parts, m.style.strong.Render("×"+card.Count(len(r))))
	}
	if m.keptAside(q.ID) && m.width >= 60 {
		parts = append(parts, m.style.dim.Render(m.w.Say(words.PutAside)))
	}
	if c := m.claimOf(r); c != nil {
		parts = append(parts, m.style.dim.Render(m.claimerText(c)))
	}
	if left, urgent := m.leftText(r); left != "" {
		style := m.style.dim
		if urgent {
			style = m.style.warn
		}
		parts = append(parts, style.Render(left))
		if m.width < 60 {
			return strings.Join(parts, " ")
		}
	}
	clock := card.Clock(m.now.Sub(q.AskedAt.Time()))
	return strings.Join(append(parts, m.style.dim.Render(clock)), "  ")
}

// claimOf is the first claim on a question of the row.
func (m *Model) claimOf(r row) *events.Claim {
	for _, i := range r {
		if c := m.questions[i].ClaimedBy; c != nil {
			return c
		}
	}
	return nil
}

// claimerText names who answers.
func (m *Model) claimerText(c *events.Claim) string {
	who := m.teller().Who(c.Principal)
	switch {
	case c.Frontend == m.o.Self:
		return m.w.Say(words.HeldByYou)
	case m.mayTakeOver(c):
		return m.w.Say(words.YouAnswer)
	}
	if m.width < 60 {
		return fit(who, 8)
	}
	return m.w.Say(words.Answers, fit(who, 16))
}

// leftText is the least time that is left for a question of the row, "" without a
// limit; it is urgent in its last fifth.
func (m *Model) leftText(r row) (text string, urgent bool) {
	var least events.Micros
	for _, i := range r {
		q := m.questions[i]
		left, soon := m.teller().Left(q)
		if left != "" && (text == "" || q.Deadline < least) {
			least, text = q.Deadline, left
		}
		urgent = urgent || soon
	}
	return text, urgent
}
