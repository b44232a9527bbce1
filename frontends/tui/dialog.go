package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// dialog is the question on the screen.
type dialog struct {
	q    events.Question // its Args are in card
	card *card.Card      // nil until the arguments are here
	args []byte

	values    []*box // changes first, then every argument
	reason    *box
	details   *box // behind "?", nil while it is closed
	comparing bool // what changed is being fetched
	current   int  // the box that scroll keys move: values, then the reason
	first     int  // the first box in sight
	focus     int  // what Tab chose: none, a box, a button; see focusables

	grace   grace
	waking  bool // a message at the end of the grace is on its way
	problem string
	marks   *string // what was made visible, counted once

	claim     claim
	pending   *events.Respond // waits for the claim
	sending   bool
	composing bool
	input     entry
}

// claim is this screen's right to answer.
type claim struct {
	asked bool   // on its way
	token uint64 // the fencing token, 0 while there is none
}

// open shows a question. The claim on the one before is given back.
func (m *Model) open(q events.Question) tea.Cmd {
	leave := m.release()
	m.dialog = &dialog{q: q, focus: focusNone}
	delete(m.later, q.ID)
	d := m.dialog
	d.grace.begin(m.now)
	if c := q.ClaimedBy; c != nil && c.Frontend == m.o.Self {
		d.claim.token = c.Claim
	}
	if len(q.Args) == 0 {
		return tea.Batch(leave, m.fetch(q.ID, q.Version.N))
	}
	d.q.Args = nil
	return tea.Batch(leave, m.show(d, q.Args))
}

func (m *Model) fetch(id events.ID, version int) tea.Cmd {
	return func() tea.Msg {
		args, err := m.o.Client.Args(m.ctx, id, version)
		return argsMsg{id, version, args, err}
	}
}

func (m *Model) gotArgs(msg argsMsg) tea.Cmd {
	d := m.dialog
	switch {
	case d == nil || d.q.ID != msg.question:
		return nil
	case msg.err != nil:
		d.problem = m.w.Say(words.LoadFailed, card.Line(msg.err.Error()))
		return nil
	case msg.version == d.q.Version.N:
		d.problem = ""
		m.summaries[d.q.ID] = clip(card.Summary(card.Fields(msg.args)))
		return m.show(d, msg.args)
	}
	d.problem, d.comparing = "", false
	d.grace.begin(m.now)
	d.values = m.boxes(d, card.Compare(names(d.q.Changed), msg.args, d.args))
	return nil
}

// retryArgs tries again, once a second, what could not be fetched.
func (m *Model) retryArgs() tea.Cmd {
	d := m.dialog
	if d == nil || d.problem == "" {
		return nil
	}
	if d.card == nil {
		return m.fetch(d.q.ID, d.q.Version.N)
	}
	return m.fetch(d.q.ID, d.q.Previous)
}

func names(list []events.Change) []string {
	var all []string
	for _, c := range list {
		all = append(all, c.Name)
	}
	return all
}

// show makes the card from the bytes that will run and starts its grace.
func (m *Model) show(d *dialog, args []byte) tea.Cmd {
	c := card.New(d.q, args, m.o.Home, m.w)
	d.card, d.args = &c, args
	reason := c.Reason
	if c.Given {
		reason = "“" + reason + "”"
	}
	d.reason = &box{label: m.w.Say(words.Reason), text: reason, raw: d.q.Reason, bytes: len(d.q.Reason), bare: true}
	d.grace.begin(m.now)
	changes, complete := card.Changes(d.q.Changed)
	d.values = m.boxes(d, changes)
	id := d.q.ID
	drawn := tea.Tick(frame, func(time.Time) tea.Msg { return drawnMsg{id} })
	if d.q.Previous >= 0 && !complete {
		d.comparing = true
		return tea.Batch(drawn, m.fetch(id, d.q.Previous))
	}
	return drawn
}

// boxes lays out what changed and then every argument, whole.
func (m *Model) boxes(d *dialog, changes []card.Change) []*box {
	var all []*box
	for _, c := range changes {
		name := c.Name
		if name == "" {
			name = card.Whole(d.q.Kind, m.w)
		}
		was, now := m.cutText(c.Old), m.cutText(c.New)
		if c.Added {
			was = m.w.Say(words.ChangedAdded)
		}
		if c.Removed {
			now = m.w.Say(words.ChangedGone)
		}
		all = append(all,
			&box{label: name, text: was, bytes: len(was), sign: "−"},
			&box{text: now, bytes: len(now), sign: "+"})
	}
	for _, f := range d.card.Fields {
		b := &box{label: f.Name, text: f.Text, raw: f.Raw, bytes: f.Bytes}
		if f.Text == "" {
			b.text, b.bare = m.w.Say(words.Empty), true
		}
		all = append(all, b)
	}
	if len(all) == 0 {
		all = append(all, &box{text: m.w.Say(words.NoArguments), bare: true})
	}
	return all
}

// cutText writes a shortened value with the count of what is left out.
func (m *Model) cutText(c card.Cut) string {
	var b strings.Builder
	if c.Before > 0 {
		b.WriteString("⋯ " + m.w.Say(words.Bytes, card.Count(c.Before)) + " ⋯ ")
	}
	b.WriteString(c.Lead + c.Middle + c.Trail)
	if c.After > 0 {
		b.WriteString(" ⋯ " + m.w.Say(words.Bytes, card.Count(c.After)) + " ⋯")
	}
	return b.String()
}

func (m *Model) reportDrawn(id events.ID) tea.Cmd {
	d := m.dialog
	if d == nil || d.q.ID != id || d.card == nil || !m.fits() {
		return nil
	}
	digest := d.card.Digest
	return m.call(func() { _ = m.o.Client.Drawn(m.ctx, id, digest) }) // only a report: nothing hangs on it
}

func (m *Model) call(f func()) tea.Cmd {
	return func() tea.Msg { f(); return doneMsg{} }
}

// lockedBy is the claim of somebody else, nil if there is none.
func (m *Model) lockedBy(d *dialog) *events.Claim {
	if c := d.q.ClaimedBy; c != nil && c.Frontend != m.o.Self {
		return c
	}
	return nil
}

// mayTakeOver reports whether the one who answers is the person at this
// screen.
func (m *Model) mayTakeOver(c *events.Claim) bool {
	return c.Principal != "" && c.Principal == m.o.Principal()
}

// answerable reports whether the question can be answered on this screen at
// all; grace is another matter.
func (m *Model) answerable(d *dialog) bool {
	if d.card == nil || d.comparing || !d.card.Genuine || d.q.Gate != events.GateHook || d.sending || !m.fits() {
		return false
	}
	c := m.lockedBy(d)
	return c == nil || m.mayTakeOver(c)
}

// engage claims the question for this screen: a person has begun to deal with
// it.
func (m *Model) engage(d *dialog) tea.Cmd {
	if d.claim.asked || d.claim.token != 0 || !m.answerable(d) {
		return nil
	}
	d.claim.asked = true
	id := d.q.ID
	return func() tea.Msg {
		token, err := m.o.Client.Claim(m.ctx, id)
		return claimMsg{id, token, err}
	}
}

func (m *Model) gotClaim(msg claimMsg) tea.Cmd {
	d := m.dialog
	if d == nil || d.q.ID != msg.question || !d.claim.asked {
		if msg.err != nil {
			return nil
		}
		return m.releaseClaim(msg.question, msg.claim) // left meanwhile
	}
	d.claim = claim{token: msg.claim}
	respond := d.pending
	d.pending = nil
	if msg.err != nil {
		d.claim, d.sending = claim{}, false
		m.notice = notice{m.refusal(msg.err), d.q.ID, d.card.Title}
		d.grace.begin(m.now)
		return m.refresh()
	}
	if respond == nil {
		return m.refresh()
	}
	respond.Claim = msg.claim
	return m.send(*respond)
}

// release gives back the claim on the question that is being left.
func (m *Model) release() tea.Cmd {
	d := m.dialog
	if d == nil || d.claim.token == 0 {
		return nil
	}
	return m.releaseClaim(d.q.ID, d.claim.token)
}

func (m *Model) releaseClaim(id events.ID, token uint64) tea.Cmd {
	return m.call(func() { _ = m.o.Client.Release(m.ctx, id, token) }) // if it is lost, the lease lapses
}

// answer sends what the person chose. The claim comes first where one is on
// its way or somebody else's is to be taken over; else it comes with the
// answer.
func (m *Model) answer(d *dialog, a events.Answer, text string) tea.Cmd {
	if !m.answerable(d) {
		return nil
	}
	respond := events.Respond{Question: d.q.ID, Digest: d.card.Digest, Answer: a, Text: text, Human: true}
	if m.lockedBy(d) != nil || d.claim.asked {
		claiming := m.engage(d)
		d.pending, d.sending = &respond, true
		return claiming
	}
	respond.Claim = d.claim.token
	return m.send(respond)
}

func (m *Model) send(r events.Respond) tea.Cmd {
	m.dialog.sending = true
	tool := m.dialog.card.Title
	took := m.now.Sub(m.dialog.q.AskedAt.Time())
	return func() tea.Msg {
		_, err := m.o.Client.Answer(m.ctx, r)
		return answerMsg{r, tool, took, err}
	}
}

func (m *Model) gotAnswer(msg answerMsg) tea.Cmd {
	id := msg.respond.Question
	d := m.dialog
	shown := d != nil && d.q.ID == id
	if msg.err != nil {
		m.notice = notice{m.refusal(msg.err), id, msg.tool}
		if shown {
			d.sending = false
			d.grace.begin(m.now)
		}
		return m.refresh()
	}
	m.settled[id] = true
	m.last, m.took[id] = id, msg.took
	m.ended = m.decided(m.w.Say(words.You), msg.respond.Answer, msg.took)
	if msg.respond.Text != "" {
		m.draft, m.notice = "", notice{}
	}
	if shown {
		m.dialog = nil
	}
	return m.refresh()
}
