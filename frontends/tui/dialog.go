package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// dialog is what is on the screen to be decided with one answer: one question, or
// several that were opened together.
type dialog struct {
	parts []*part // at least one

	values  []*box // of all parts, in order
	reason  *box   // of a single part; in a set each part has its own among the values
	details *box   // behind "?", nil while it is closed
	wide    int    // the window's width that the details were made for
	current int    // the box that scroll keys move: values, then the reason
	chosen  bool   // the person chose it; before, it is the first that scrolls
	first   int    // the first box in sight
	focus   int    // what Tab chose: none, a box, a button; see moveFocus
	spans   []span // where the boxes were drawn last

	grace   grace
	waking  bool // a message at the end of the grace is on its way
	problem string
	marks   *string // what was made visible, counted once

	told      map[events.ID]bool // to the core, as drawn
	claims    map[events.ID]claim
	pending   *decision // waits for the claims
	sending   bool
	composing bool
	input     entry // words to the model, kept while they are not sent
}

// lead is the question that the dialog was opened for.
func (d *dialog) lead() events.Question { return d.parts[0].lead() }

// set says that several different questions are decided at once.
func (d *dialog) set() bool { return len(d.parts) > 1 }

// ready says that all values are here.
func (d *dialog) ready() bool {
	return !slices.ContainsFunc(d.parts, func(p *part) bool { return p.card == nil })
}

// questions are all that the answer is for.
func (d *dialog) questions() []events.Question {
	var all []events.Question
	for _, p := range d.parts {
		all = append(all, p.all...)
	}
	return all
}

func (d *dialog) part(id events.ID) *part {
	for _, p := range d.parts {
		if p.has(id) {
			return p
		}
	}
	return nil
}

// has reports whether the dialog is about a question.
func (d *dialog) has(id events.ID) bool { return d.part(id) != nil }

// openSet shows questions to be decided with one answer, equal ones as one. What
// was on the screen before is put aside, and its claims are given back.
func (m *Model) openSet(list []events.Question) tea.Cmd {
	if len(list) == 0 {
		return nil
	}
	cmds := []tea.Cmd{m.leave()}
	d := &dialog{parts: partsOf(list), focus: focusNone, told: map[events.ID]bool{}, claims: map[events.ID]claim{}}
	m.dialog = d
	d.grace.begin(m.now)
	for _, p := range d.parts {
		for _, q := range p.all {
			delete(m.later, q.ID)
			if c := q.ClaimedBy; c != nil && c.Frontend == m.o.Self {
				d.claims[q.ID] = claim{token: c.Claim}
			}
		}
		if args := p.takeArgs(); len(args) > 0 {
			m.load(p, args)
		} else {
			cmds = append(cmds, m.fetch(p.lead().ID, p.lead().Version.N))
		}
	}
	if d.ready() {
		cmds = append(cmds, m.show(d))
	}
	return tea.Batch(cmds...)
}

// leave puts aside what is on the screen, with its place, and gives its claims
// back.
func (m *Model) leave() tea.Cmd {
	d := m.dialog
	if d == nil {
		return nil
	}
	m.aside.keep(d)
	cmd := m.release()
	m.dialog = nil
	return cmd
}

func (m *Model) fetch(id events.ID, version int) tea.Cmd {
	return func() tea.Msg {
		args, err := m.o.Client.Args(m.ctx, id, version)
		return argsMsg{id, version, args, err}
	}
}

func (m *Model) gotArgs(msg argsMsg) tea.Cmd {
	d := m.dialog
	if d == nil || !d.has(msg.question) {
		return nil
	}
	p := d.part(msg.question)
	if msg.err != nil {
		d.problem = m.w.Say(words.LoadFailed, card.Line(msg.err.Error()))
		return nil
	}
	if p.card == nil {
		m.load(p, msg.args)
		if !d.ready() {
			return nil
		}
		d.problem = ""
		return m.show(d)
	}
	if p.comparing() && msg.version == p.card.Since {
		d.problem = ""
		m.compared(d, p, msg.args)
	}
	return nil
}

// retryArgs tries again, once a second, what could not be fetched.
func (m *Model) retryArgs() tea.Cmd {
	d := m.dialog
	if d == nil || d.problem == "" {
		return nil
	}
	var cmds []tea.Cmd
	for _, p := range d.parts {
		switch q := p.lead(); {
		case p.card == nil:
			cmds = append(cmds, m.fetch(q.ID, q.Version.N))
		case p.comparing():
			cmds = append(cmds, m.fetch(q.ID, p.card.Since))
		}
	}
	return tea.Batch(cmds...)
}

// load makes the card from the bytes that will run.
func (m *Model) load(p *part, args []byte) {
	c := card.New(p.lead(), args, m.o.Home, m.w)
	p.card, p.args = &c, args
	for _, q := range p.all {
		if m.summaries[q.ID] == "" {
			m.summaries[q.ID] = clip(card.About(args))
		}
	}
}

// show lays out what is here now, whole, and starts its grace.
func (m *Model) show(d *dialog) tea.Cmd {
	cmds := []tea.Cmd{tea.Tick(frame, func(time.Time) tea.Msg { return drawnMsg{} })}
	for _, p := range d.parts {
		if p.comparing() {
			cmds = append(cmds, m.fetch(p.lead().ID, p.card.Since))
		}
	}
	m.layOut(d)
	m.aside.restore(m, d)
	d.grace.begin(m.now)
	return tea.Batch(cmds...)
}

// reportDrawn tells the core what a person has had in sight, each question once.
func (m *Model) reportDrawn() tea.Cmd {
	d := m.dialog
	if d == nil || !d.ready() || !m.fits() {
		return nil
	}
	var cmds []tea.Cmd
	for _, p := range d.parts {
		for _, q := range p.all {
			if !p.seen || d.told[q.ID] {
				continue
			}
			d.told[q.ID] = true
			// Only a report: nothing hangs on it.
			cmds = append(cmds, m.call(func() { _ = m.o.Client.Drawn(m.ctx, q.ID, p.card.Digest) }))
		}
	}
	return tea.Batch(cmds...)
}

// inSight notes which parts the frame that has just been made shows.
func (d *dialog) inSight() {
	for _, s := range d.spans {
		if s.box >= len(d.values) {
			continue
		}
		if b := d.values[s.box]; b.kind != boxHeading {
			d.parts[b.part].seen = true
		}
	}
}

// unseen counts the parts of a set that have never been in sight. What nobody has
// seen is not let go on.
func (d *dialog) unseen() int {
	n := 0
	for _, p := range d.parts {
		if d.set() && !p.seen {
			n++
		}
	}
	return n
}

func (m *Model) call(f func()) tea.Cmd {
	return func() tea.Msg { f(); return doneMsg{} }
}
