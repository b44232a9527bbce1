package tui

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
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
	busy          bool      // its frame has not been drawn yet
	counting      bool      // a tick of the seconds is on its way

	questions []events.Question // open and not answered here, the oldest first
	waiting   waiting
	history   history
	hooks     hooks
	sessions  int // in which something waits
	attached  bool
	filling   filling
	summaries map[events.ID]string // what open questions are about, as far as it was shown

	dialog  *dialog // the question on the screen, nil for what on says
	on      screen
	list    list
	page    page
	once    once               // of a program that shows one question
	aside   aside              // what was put aside keeps its place
	later   map[events.ID]bool // put aside with Esc: not opened by itself
	settled map[events.ID]bool // answered here, not yet gone from the inbox
	last    events.ID          // the question whose end the list's bottom line tells
	ended   string             // that end in words, until a line of its operation says more
	notice  notice
	draft   draft // words that were not sent

	zones    []zone // of the screen as it was drawn last
	captures bool   // the mouse is this program's, not the terminal's
	bell     bell
}

// The messages of the model besides Bubble Tea's own.
type (
	changedMsg struct{}
	secondMsg  struct{}
	graceMsg   struct{ dialog *dialog }
	drawnMsg   struct{}
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
		decided decision
		of      map[events.ID]sent
		results []frontends.Result // at least one
	}
	outputMsg struct {
		run   events.ID
		reply events.RunReply
		err   error
	}
	ringMsg struct {
		question events.ID
		yours    bool
	}
	// toldMsg takes away the line about an end, if it is still the same.
	toldMsg struct {
		last  events.ID
		ended string
	}
	doneMsg struct{}
)

// New makes the model. Commands that it returns call the client under ctx.
func New(ctx context.Context, o Options) *Model {
	o = o.filled()
	return &Model{
		ctx: ctx, o: o, w: o.Words, style: newStyles(true), width: 80, height: 24,
		later: map[events.ID]bool{}, settled: map[events.ID]bool{},
		summaries: map[events.ID]string{}, waiting: newWaiting(), hooks: newHooks(), captures: true,
		bell: bell{started: events.At(o.Now()), key: o.Now()}, // whoever started it is there
	}
}

// Init implements [tea.Model].
func (m *Model) Init() tea.Cmd { return tea.Batch(tea.RequestBackgroundColor, m.changed) }

func (m *Model) changed() tea.Msg { return changedMsg{} }

// Update implements [tea.Model].
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	before, shown, told := m.now, m.dialog, toldMsg{m.last, m.ended}
	m.now, m.busy = m.o.Now(), true
	if m.dialog != nil && m.counting && m.now.Sub(before) > stopped {
		m.dialog.grace.begin(m.now)
	}
	cmd := m.handle(msg)
	if shown != nil && m.dialog == nil {
		m.pointAt(shown.lead().ID) // back in the list one stands where one was
	}
	m.zones = m.zones[:0] // the next frame says where things are
	return m, tea.Batch(cmd, m.reportDrawn(), m.schedule(), m.tellEnd(told))
}

func (m *Model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case changedMsg:
		return m.refresh()
	case filledMsg:
		m.filling.looking = false
		return m.refresh()
	case toldMsg:
		m.told(msg)
	case secondMsg:
		m.counting = false
		return tea.Batch(m.retryArgs(), m.callPerson())
	case graceMsg:
		msg.dialog.waking = false
	case drawnMsg: // what was in sight is told after every message
	case argsMsg:
		return m.gotArgs(msg)
	case claimMsg:
		return m.gotClaim(msg)
	case answerMsg:
		return m.gotAnswer(msg)
	case outputMsg:
		m.gotOutput(msg)
	case pagedMsg:
		m.paged(msg)
	case onceMsg:
		return m.gotOnce(msg)
	case ringMsg:
		return m.gotRing(msg)
	}
	return m.handleTerminal(msg)
}

// handleTerminal takes what comes from the terminal.
func (m *Model) handleTerminal(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		return m.resize(msg)
	case tea.BackgroundColorMsg:
		m.style = newStyles(msg.IsDark())
	case tea.FocusMsg:
		m.bell.focus = focusHere
	case tea.BlurMsg:
		m.bell.focus = focusAway
	case tea.ResumeMsg:
		if m.dialog != nil {
			m.dialog.grace.begin(m.now)
		}
	case tea.KeyPressMsg:
		m.bell.key = m.now
		return m.key(msg)
	case tea.PasteMsg:
		m.paste(msg)
	case tea.MouseMsg:
		m.bell.key = m.now
		return m.mouse(msg)
	}
	return nil
}

// resize takes the window's size. A question that it could not show is drawn now.
func (m *Model) resize(msg tea.WindowSizeMsg) tea.Cmd {
	hidden := !m.fits()
	m.width, m.height = msg.Width, msg.Height
	d := m.dialog
	if d == nil {
		return nil
	}
	if d.details != nil {
		d.details.layout(0, m.width-detailMargin)
	}
	if !hidden || !m.fits() {
		return nil
	}
	return tea.Tick(frame, func(time.Time) tea.Msg { return drawnMsg{} })
}

// schedule asks to be woken when something on the screen changes by time
// alone: each second while somebody waits, and at the end of a grace. An empty
// list sleeps.
func (m *Model) schedule() tea.Cmd {
	var cmds []tea.Cmd
	if !m.counting && (len(m.questions) > 0 || m.countsRuns()) {
		m.counting = true
		cmds = append(cmds, tea.Tick(time.Second, func(time.Time) tea.Msg { return secondMsg{} }))
	}
	if d := m.dialog; d != nil && !d.waking && d.ready() && m.fits() {
		if left := d.grace.left(m.now); left > 0 {
			d.waking = true
			cmds = append(cmds, tea.Tick(left, func(time.Time) tea.Msg { return graceMsg{d} }))
		}
	}
	return tea.Batch(cmds...)
}

// refresh reads the inbox again and lets the screen follow: a question that
// has ended closes by itself, the next one opens.
func (m *Model) refresh() tea.Cmd {
	fresh := m.readInbox()
	m.follow()
	m.forgetAside()
	if m.o.Question != "" {
		return m.oneQuestion()
	}
	cmds := []tea.Cmd{m.readRuns(), m.join(fresh), m.awaitAll()}
	if m.o.Once && m.last != "" && len(m.questions) == 0 {
		return tea.Quit
	}
	return tea.Batch(append(cmds, m.openDue(), m.noteNew(fresh))...)
}

// readInbox takes over what is known now, and tells which questions are new.
func (m *Model) readInbox() (fresh []events.Question) {
	before := m.questions
	m.questions = m.unsettled(m.o.Inbox.Questions())
	fresh = m.arrangeRows(before)
	m.readHistory()
	m.attached = m.o.Inbox.Attached()
	return fresh
}

// unsettled leaves out what was answered here, and forgets it once it is over.
func (m *Model) unsettled(all []events.Question) []events.Question {
	if len(m.settled) == 0 {
		return all
	}
	still := map[events.ID]bool{}
	all = slices.DeleteFunc(all, func(q events.Question) bool {
		if m.settled[q.ID] {
			still[q.ID] = true
		}
		return m.settled[q.ID]
	})
	m.settled = still
	return all
}

func (m *Model) find(id events.ID) (events.Question, bool) {
	if i := m.index(id); i >= 0 {
		return m.questions[i], true
	}
	return events.Question{}, false
}

// index is the place of an open question, -1 for one that is not open.
func (m *Model) index(id events.ID) int {
	if i, open := m.waiting.places[id]; open {
		return i
	}
	return -1
}
