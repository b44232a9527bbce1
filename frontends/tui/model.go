package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Model is the state of the screen. What it knows changes only in Update, by one
// message at a time; drawing it sets where boxes and lists are scrolled to and
// keeps what it has counted. It does nothing but return commands.
type Model struct {
	ctx   context.Context
	o     Options
	w     words.Words
	style styles

	width, height int
	now           time.Time // when the current message came
	counting      bool      // a tick of the seconds is on its way

	questions []events.Question
	lines     []events.Line // newest first
	projects  map[events.Token]string
	sessions  int
	attached  bool
	summaries map[events.ID]string // what each known question is about, by question

	dialog  *dialog // the question on the screen, nil for the list
	list    list
	later   map[events.ID]bool // put aside with Esc: not opened by itself
	settled map[events.ID]bool // answered here, not yet gone from the inbox
	took    map[events.ID]time.Duration
	last    events.ID // the question whose end the list's bottom line tells
	ended   string    // that end in words, until a line of its operation says more
	notice  notice
	draft   string // words that were not sent
}

// The messages of the model besides Bubble Tea's own.
type (
	changedMsg struct{}
	secondMsg  struct{}
	graceMsg   struct{ question events.ID }
	drawnMsg   struct{ question events.ID }
	argsMsg    struct {
		question events.ID
		version  int
		args     []byte
		err      error
	}
	claimMsg struct {
		question events.ID
		claim    uint64
		err      error
	}
	answerMsg struct {
		respond events.Respond
		tool    string
		took    time.Duration
		err     error
	}
	doneMsg struct{}
)

// New makes the model. Commands that it returns call the client under ctx.
func New(ctx context.Context, o Options) *Model {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Model{
		ctx: ctx, o: o, w: o.Words, style: newStyles(true), width: 80, height: 24,
		later: map[events.ID]bool{}, settled: map[events.ID]bool{}, took: map[events.ID]time.Duration{},
		summaries: map[events.ID]string{},
	}
}

// Init implements [tea.Model].
func (m *Model) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, m.changed) }

func (m *Model) changed() tea.Msg { return changedMsg{} }

// Update implements [tea.Model].
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	before := m.now
	m.now = m.o.Now()
	if m.dialog != nil && m.counting && m.now.Sub(before) > stopped {
		m.dialog.grace.begin(m.now)
	}
	return m, tea.Batch(m.handle(msg), m.schedule())
}

func (m *Model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		if d := m.dialog; d != nil && d.details != nil {
			d.details.layout(m.width - detailMargin)
		}
	case tea.BackgroundColorMsg:
		m.style = newStyles(msg.IsDark())
	case tea.ResumeMsg:
		if m.dialog != nil {
			m.dialog.grace.begin(m.now)
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		m.paste(msg)
	case changedMsg:
		return m.refresh()
	case secondMsg:
		m.counting = false
		return m.retryArgs()
	case graceMsg:
		if m.dialog != nil && m.dialog.q.ID == msg.question {
			m.dialog.waking = false
		}
	case drawnMsg:
		return m.reportDrawn(msg.question)
	case argsMsg:
		return m.gotArgs(msg)
	case claimMsg:
		return m.gotClaim(msg)
	case answerMsg:
		return m.gotAnswer(msg)
	}
	return nil
}

// schedule asks to be woken when something on the screen changes by time
// alone: each second while somebody waits, and at the end of a grace. An empty
// list sleeps.
func (m *Model) schedule() tea.Cmd {
	var cmds []tea.Cmd
	if len(m.questions) > 0 && !m.counting {
		m.counting = true
		cmds = append(cmds, tea.Tick(time.Second, func(time.Time) tea.Msg { return secondMsg{} }))
	}
	if d := m.dialog; d != nil && !d.waking && d.card != nil {
		if left := d.grace.left(m.now); left > 0 {
			d.waking = true
			id := d.q.ID
			cmds = append(cmds, tea.Tick(left, func(time.Time) tea.Msg { return graceMsg{id} }))
		}
	}
	return tea.Batch(cmds...)
}

// refresh reads the inbox again and lets the screen follow: a question that
// has ended closes by itself, the next one opens.
func (m *Model) refresh() tea.Cmd {
	m.readInbox()
	if d := m.dialog; d != nil {
		if q, open := m.find(d.q.ID); open {
			m.follow(d, q)
		} else {
			m.closeEnded(d)
		}
	}
	if m.o.Once && m.last != "" && len(m.questions) == 0 {
		return tea.Quit
	}
	if m.dialog == nil && !m.list.filtering {
		return m.openNext()
	}
	return nil
}

func (m *Model) readInbox() {
	all := m.o.Inbox.Questions()
	open := make(map[events.ID]bool, len(all))
	m.questions = m.questions[:0:0]
	for _, q := range all {
		open[q.ID] = true
		if !m.settled[q.ID] {
			m.questions = append(m.questions, q)
		}
	}
	for _, known := range []map[events.ID]bool{m.settled, m.later} {
		for id := range known {
			if !open[id] {
				delete(known, id)
			}
		}
	}
	m.lines = m.o.Inbox.Lines()
	slices.SortStableFunc(m.lines, func(a, b events.Line) int { return int(b.At - a.At) })
	m.readSessions()
	m.attached = m.o.Inbox.Attached()
	m.summarize(open)
}

func (m *Model) readSessions() {
	heads := m.o.Inbox.Sessions()
	m.sessions = len(heads)
	m.projects = make(map[events.Token]string, len(heads))
	for _, h := range heads {
		m.projects[h.Project] = h.ProjectPath
	}
}

// summarize keeps one line about each question for as long as a line of the
// history may speak of it.
func (m *Model) summarize(open map[events.ID]bool) {
	for _, q := range m.questions {
		if _, ok := m.summaries[q.ID]; !ok && len(q.Args) > 0 {
			m.summaries[q.ID] = clip(card.Summary(card.Fields(q.Args)))
		}
	}
	if len(m.summaries) < 2*(len(open)+len(m.lines))+100 {
		return
	}
	told := make(map[events.ID]bool, len(m.lines))
	for _, l := range m.lines {
		told[l.Question] = true
	}
	for id := range m.summaries {
		if !open[id] && !told[id] {
			delete(m.summaries, id)
			delete(m.took, id)
		}
	}
}

// clip bounds what a summary keeps; lists show less.
func clip(s string) string {
	if len(s) > 2000 {
		s = strings.ToValidUTF8(s[:2000], "") + "…"
	}
	return fit(s, 200)
}

func (m *Model) find(id events.ID) (events.Question, bool) {
	if i := m.index(id); i >= 0 {
		return m.questions[i], true
	}
	return events.Question{}, false
}

func (m *Model) index(id events.ID) int {
	return slices.IndexFunc(m.questions, func(q events.Question) bool { return q.ID == id })
}

// openNext opens the oldest question that was not put aside.
func (m *Model) openNext() tea.Cmd {
	for _, q := range m.questions {
		if !m.later[q.ID] {
			return m.open(q)
		}
	}
	return nil
}

// follow takes over what is new about the question on the screen. Buttons that
// somebody else's claim had locked and that come free begin a grace of their
// own.
func (m *Model) follow(d *dialog, q events.Question) {
	wasLocked := m.lockedBy(d) != nil
	d.q = q
	d.q.Args = nil // the card holds them
	if d.claim.token != 0 && q.ClaimedBy == nil && q.Seq >= d.claim.token {
		d.claim = claim{} // it lapsed
	}
	if wasLocked && m.lockedBy(d) == nil {
		d.grace.begin(m.now)
	}
}

// closeEnded closes the dialog of a question that is no longer open, and keeps
// its end in words for the list. Words that were being written stay for
// the next w.
func (m *Model) closeEnded(d *dialog) {
	end, known := m.o.Inbox.Ended(d.q.ID)
	m.last, m.ended = d.q.ID, ""
	if known {
		m.ended = m.endText(d.card, end)
	}
	if d.composing && !d.sending {
		m.draft = d.input.value()
		if m.draft != "" {
			m.notice = notice{text: m.w.Say(words.UnsentWords)}
		}
	}
	m.dialog = nil
}
