package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// screen is what fills the window while no question is open.
type screen int

// The screens. The list is the one to which Esc leads back.
const (
	screenList screen = iota
	screenHooks
	screenRun     // one run of the hooks pane
	screenReceipt // one operation of the list
	screenHelp
)

// list is the screen without a question: everything that waits, and what was
// decided of late.
type list struct {
	pointer                // the row of what waits that the keys are about
	question     events.ID // on that row, so that the cursor stays with it
	earlier      pointer   // the row of what was decided
	operation    events.ID // on that row
	lower        bool      // the keys are about what was decided
	filtering    bool      // the filter has the keys
	filter       entry
	firstEarlier int // the row of the screen below which earlier rows stand, as drawn
}

// pointer is a place in a list that is longer than its window.
type pointer struct{ cursor, top int }

// move takes the cursor to a row of n.
func (p *pointer) move(to, n int) { p.cursor = max(min(to, n-1), 0) }

// window says which rows of n are in sight where there is room for some, moved just
// far enough that the cursor is among them.
func (p *pointer) window(n, room int) (from, to int) {
	p.move(p.cursor, n)
	room = min(n, room)
	p.top = max(min(p.top, p.cursor, n-room), p.cursor-room+1, 0)
	return p.top, p.top + room
}

func (m *Model) listKey(k tea.KeyPressMsg) tea.Cmd {
	m.last, m.ended = "", "" // it was read
	switch {
	case m.list.filtering:
		return m.filterKey(k)
	case m.on != screenList:
		return m.sideKey(k.String())
	}
	if by, moves := m.moves(k.String()); moves {
		m.moveCursor(by)
		return nil
	}
	return m.listAct(k.String())
}

// listAct is what a key of the list does besides moving. None of them answers.
func (m *Model) listAct(key string) tea.Cmd {
	switch key {
	case "q":
		return tea.Quit
	case "/":
		m.list.filtering = true
	case "esc":
		return m.clearList()
	case "tab", "shift+tab":
		m.list.lower = !m.inEarlier()
	case "enter":
		return m.openRow()
	case "c", "x":
		return m.openSet(m.chosen())
	case "space":
		if r, ok := m.currentRow(); ok && !m.inEarlier() {
			m.tick(r)
			m.moveCursor(1)
			return m.openDue()
		}
	case "a":
		if !m.inEarlier() {
			m.tickAll()
			return m.openDue()
		}
	case "n":
		return m.openAny()
	case "h":
		m.on = screenHooks
	case "?":
		m.on, m.page.top = screenHelp, 0
	case "m":
		m.toggleMouse()
	}
	return nil
}

// clearList takes back the last of what was chosen: the ticks, then the filter. What
// came while rows were ticked opens with the last tick that goes.
func (m *Model) clearList() tea.Cmd {
	if len(m.waiting.ticked) > 0 {
		clear(m.waiting.ticked)
		return m.openDue()
	}
	m.list.filter.set("")
	return nil
}

// openRow opens what is ticked or under the cursor: as a dialog, or as a receipt.
func (m *Model) openRow() tea.Cmd {
	if !m.inEarlier() {
		return m.openSet(m.chosen())
	}
	if l, ok := m.currentLine(); ok {
		m.on, m.page.top = screenReceipt, 0
		m.list.operation = l.Operation
	}
	return nil
}

// inEarlier says that the keys are about what was decided: because Tab chose it, or
// because nothing else is there.
func (m *Model) inEarlier() bool {
	lines := len(m.linesShown())
	return lines > 0 && (m.list.lower || len(m.filtered()) == 0)
}

// moves says how far a key moves a cursor.
func (m *Model) moves(key string) (by int, moves bool) {
	page := max(m.height-6, 1)
	switch key {
	case "up", "k":
		return -1, true
	case "down", "j":
		return 1, true
	case "pgup":
		return -page, true
	case "pgdown":
		return page, true
	case "home":
		return -farthest, true
	case "end":
		return farthest, true
	}
	return 0, false
}

// farthest is beyond either end of any list.
const farthest = 1 << 30

func (m *Model) moveCursor(by int) {
	if m.inEarlier() {
		lines := m.linesShown()
		m.list.earlier.move(m.list.earlier.cursor+by, len(lines))
		m.list.operation = lines[m.list.earlier.cursor].Operation
		return
	}
	m.list.move(m.list.cursor+by, len(m.filtered()))
	m.list.question = ""
	if r, ok := m.currentRow(); ok {
		m.list.question = m.questions[r[0]].ID
	}
}

// filterKey writes into the filter. Leaving it with Enter does nothing else:
// no key that was meant for the filter opens or answers anything.
func (m *Model) filterKey(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		m.list.filtering = false
		return nil
	case "esc":
		m.list.filter.set("")
		m.list.filtering = false
		return nil
	}
	m.list.filter.write(k)
	m.list.pointer, m.list.earlier, m.list.question, m.list.operation = pointer{}, pointer{}, "", ""
	return nil
}

// listView draws what fills the window while no question is open.
func (m *Model) listView() []string {
	var out []string
	switch m.on {
	case screenHooks:
		out = m.hooksView()
	case screenRun:
		out = m.runView()
	case screenReceipt:
		out = m.receiptView()
	case screenHelp:
		out = m.helpView()
	default:
		out = m.listRows()
	}
	for i, line := range out {
		out[i] = fit(line, m.width)
	}
	return out
}

func (m *Model) listRows() []string {
	out := m.head(m.listHeader())
	upper, lower := m.shareRows(m.height - len(out) - 1)
	m.list.firstEarlier = 0
	out = append(out, m.upperRows(upper, len(out))...)
	if lower > 0 {
		out = append(out, m.earlierRule(lower-1))
		m.list.firstEarlier = len(out)
		out = append(out, m.earlierRows(lower-1, len(out))...)
	}
	return m.fill(out, m.listBottom())
}

// head is the header and, where there is room, a rule below it.
func (m *Model) head(header string) []string {
	if m.height < 12 {
		return []string{header}
	}
	return []string{header, m.rule()}
}

// fill makes the window's height of lines, with one at the bottom.
func (m *Model) fill(lines []string, bottom string) []string {
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines[:max(m.height-1, 0)], bottom)
}

// leastEarlier is how many rows what was decided keeps while more waits than there
// is room for.
const leastEarlier = 3

// shareRows divides the rows of the window between what waits and, with its rule,
// what was decided. While what waits needs more, a small window keeps half for what
// was decided, so that something of it is in sight, and a larger one a third; but no
// more than leastEarlier rows.
func (m *Model) shareRows(room int) (upper, lower int) {
	needs, lines := max(len(m.filtered()), 1), len(m.linesShown())
	if lines == 0 || room < 4 {
		return max(room, 1), 0
	}
	kept := room / 3
	if room < 12 {
		kept = room / 2
	}
	kept = min(kept, leastEarlier+1)
	upper = min(needs, max(room-lines-1, room-kept))
	return upper, min(lines+1, room-upper)
}

func (m *Model) upperRows(room, line int) []string {
	shown := m.filtered()
	if len(shown) == 0 {
		text := words.NothingWaits
		if len(m.questions) > 0 {
			text = words.NoMatch
		}
		return []string{" " + m.style.dim.Render(fit(m.w.Say(text), m.width-2))}
	}
	if len(shown) > room {
		room = max(room-1, 1) // one row counts the rest
	}
	from, to := m.list.window(len(shown), room)
	out := m.waitingRows(shown, from, to, line)
	if rest := m.more(from, to, len(shown)); rest != "" {
		out = append(out, " "+m.style.dim.Render(rest))
	}
	return out
}

// earlierRule stands above what was decided, of which a number of rows are in sight.
func (m *Model) earlierRule(rows int) string {
	text := m.w.Say(words.Earlier)
	if n := len(m.linesShown()); rows < n {
		text = m.w.Say(words.EarlierCut, text, rows, n)
	}
	label := fit("─ "+text+" ", m.width-2)
	return " " + m.style.dim.Render(label+strings.Repeat("─", max(m.width-2-cells(label), 0)))
}

// The keys that the last line of the list names, the most useful first.
var (
	browseKeys = []button{
		{"Enter", words.Open, focusNone},
		{"space", words.Tick, focusNone},
		{"/", words.Filter, focusNone},
		{"h", words.HooksPane, focusNone},
		{"Tab", words.Earlier, focusNone},
		{"q", words.Quit, focusNone},
	}
	earlierKeys = []button{
		{"Enter", words.Receipt, focusNone},
		{"/", words.Filter, focusNone},
		{"h", words.HooksPane, focusNone},
		{"Tab", words.Waiting, focusNone},
		{"q", words.Quit, focusNone},
	}
	idleKeys = []button{
		{"h", words.HooksPane, focusNone}, {"?", words.Help, focusNone}, {"q", words.Quit, focusNone},
	}
	tickedKeys = []button{
		{"Enter", words.OpenTicked, focusNone}, {"a", words.TickAll, focusNone}, {"Esc", words.Untick, focusNone},
	}
	writeKeys = []button{{"Enter", words.Keep, focusNone}, {"Esc", words.Clear, focusNone}}
)

func (m *Model) listBottom() string {
	if m.list.filtering {
		keys := m.keyLine(writeKeys, m.width-16)
		room := max(m.width-cells(keys)-6, 8)
		return " / " + pad(m.list.filter.view(m.style, room, 1)[0], room) + " " + keys
	}
	text := m.noticeText()
	if text == "" {
		text = m.lastText()
	}
	switch {
	case text != "":
		return " " + m.style.dim.Render(fit(text, m.width-2))
	case m.inEarlier():
		return m.keysLine(earlierKeys)
	case len(m.questions) == 0:
		return m.keysLine(idleKeys)
	case len(m.waiting.ticked) > 0:
		return m.keysLine(tickedKeys)
	}
	return m.keysLine(browseKeys)
}

// keysLine names keys in the last line of a screen, as many as it has room for. A
// click on one is the key.
func (m *Model) keysLine(keys []button) string {
	width := func(b button) int { return cells(b.key) + 1 + cells(m.w.Say(b.text)) + 3 }
	last := keys[len(keys)-1] // leaving is always named
	room, kept := m.width+1-width(last), keys[:0:0]
	for _, b := range keys[:len(keys)-1] {
		if room -= width(b); room >= 0 {
			kept = append(kept, b)
		}
	}
	kept = append(kept, last)
	line := " "
	for i, b := range kept {
		if i > 0 {
			line += "   "
		}
		from := cells(line)
		line += m.style.strong.Render(b.key) + m.style.dim.Render(" "+m.w.Say(b.text))
		m.zone(m.height-1, from, from+width(b)-3, func() tea.Cmd { return m.pressed(strings.ToLower(b.key)) })
	}
	return line
}

// pressed is what a key does where no question is open.
func (m *Model) pressed(key string) tea.Cmd {
	if m.on != screenList {
		return m.sideKey(key)
	}
	return m.listAct(key)
}
