package tui

import (
	"errors"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// claim is this screen's right to answer one question.
type claim struct {
	asked bool   // on its way
	token uint64 // the fencing token, 0 while there is none
	full  bool   // the core takes no more claims on it: the answer claims for itself
}

// decision is what the person chose for everything on the screen.
type decision struct {
	answer events.Answer
	text   string
}

// lockedBy is somebody else's claim on one of the questions, nil if there is none.
// One that cannot be taken over goes before one that can.
func (m *Model) lockedBy(d *dialog) *events.Claim {
	var lock *events.Claim
	for _, q := range d.questions() {
		c := q.ClaimedBy
		if c == nil || c.Frontend == m.o.Self {
			continue
		}
		if lock == nil || !m.mayTakeOver(c) {
			lock = c
		}
	}
	return lock
}

// mayTakeOver reports whether the one who answers is the person at this
// screen.
func (m *Model) mayTakeOver(c *events.Claim) bool { return m.teller().Mine(c.Principal) }

// answerable reports whether everything on the screen can be answered on it at
// all; grace is another matter.
func (m *Model) answerable(d *dialog) bool {
	if !d.ready() || d.sending || !m.fits() {
		return false
	}
	if text, _ := m.obstacle(d); text != "" {
		return false
	}
	c := m.lockedBy(d)
	return c == nil || m.mayTakeOver(c)
}

// engage claims the questions for this screen: a person has begun to deal with
// them.
func (m *Model) engage(d *dialog) tea.Cmd {
	if !m.answerable(d) {
		return nil
	}
	var cmds []tea.Cmd
	for _, q := range d.questions() {
		if d.claims[q.ID] != (claim{}) {
			continue
		}
		d.claims[q.ID] = claim{asked: true}
		cmds = append(cmds, func() tea.Msg {
			token, err := m.o.Client.Claim(m.ctx, q.ID)
			return claimMsg{q.ID, token, err}
		})
	}
	return tea.Batch(cmds...)
}

// looked claims for somebody who moves about in a question. Looking takes nothing
// over.
func (m *Model) looked(d *dialog) tea.Cmd {
	if m.lockedBy(d) != nil {
		return nil
	}
	return m.engage(d)
}

// claiming says that a claim is on its way.
func (d *dialog) claiming() bool {
	for _, c := range d.claims {
		if c.asked {
			return true
		}
	}
	return false
}

// holds says that this screen has the right to answer everything.
func (d *dialog) holds() bool {
	return !slices.ContainsFunc(d.questions(), func(q events.Question) bool { return d.claims[q.ID].token == 0 })
}

func (m *Model) gotClaim(msg claimMsg) tea.Cmd {
	d := m.dialog
	if d == nil || !d.claims[msg.question].asked {
		if msg.err != nil {
			return nil
		}
		return m.releaseClaim(msg.question, msg.claim) // left meanwhile
	}
	d.claims[msg.question] = claim{token: msg.claim, full: refusedWith(msg.err, events.RejectTooMany)}
	if msg.err != nil && !d.claims[msg.question].full && d.pending == nil {
		m.notice = notice{m.teller().Refusal(msg.err), msg.question, card.Line(d.part(msg.question).lead().Tool.Name)}
		d.grace.begin(m.now)
	}
	if d.pending == nil || d.claiming() {
		return m.refresh()
	}
	// An answer whose claim was refused goes all the same: the core says why not.
	decided := *d.pending
	d.pending = nil
	return m.send(d, decided)
}

func refusedWith(err error, code events.Reject) bool {
	var r *events.Refused
	return errors.As(err, &r) && r.Code == code
}

// release gives back the claims on what is being left.
func (m *Model) release() tea.Cmd {
	d := m.dialog
	if d == nil {
		return nil
	}
	var cmds []tea.Cmd
	for _, q := range d.questions() {
		if token := d.claims[q.ID].token; token != 0 {
			cmds = append(cmds, m.releaseClaim(q.ID, token))
		}
	}
	d.claims = map[events.ID]claim{}
	return tea.Batch(cmds...)
}

func (m *Model) releaseClaim(id events.ID, token uint64) tea.Cmd {
	return m.call(func() { _ = m.o.Client.Release(m.ctx, id, token) }) // if it is lost, the lease lapses
}

// answer sends what the person chose. Claims come first where one is on its way or
// another screen's is to be taken over; else they come with the answer.
func (m *Model) answer(d *dialog, a events.Answer, text string) tea.Cmd {
	if !m.answerable(d) {
		return nil
	}
	if a == events.AnswerContinue && d.unseen() > 0 {
		return nil
	}
	decided := decision{a, text}
	if m.lockedBy(d) == nil && !d.claiming() {
		return m.send(d, decided)
	}
	claiming := m.engage(d)
	if !d.claiming() {
		return m.send(d, decided)
	}
	d.pending, d.sending = &decided, true
	return claiming
}

// sent is one question of an answer, as it was when the answer went.
type sent struct {
	tool string
	took time.Duration
}

func (m *Model) send(d *dialog, decided decision) tea.Cmd {
	d.sending = true
	var list []events.Respond
	of := map[events.ID]sent{}
	for _, p := range d.parts {
		for _, q := range p.all {
			list = append(list, events.Respond{
				Question: q.ID, Digest: p.card.Digest, Claim: d.claims[q.ID].token,
				Answer: decided.answer, Text: decided.text, Human: true,
			})
			of[q.ID] = sent{p.card.Title, m.now.Sub(q.AskedAt.Time())}
		}
	}
	return func() tea.Msg { return answerMsg{decided, of, m.o.Client.AnswerAll(m.ctx, list)} }
}

func (m *Model) gotAnswer(msg answerMsg) tea.Cmd {
	var failed []frontends.Result
	for _, r := range msg.results {
		if r.Err != nil {
			failed = append(failed, r)
			continue
		}
		m.settled[r.Question] = true
	}
	m.tell(msg, failed)
	if len(failed) == 0 && msg.decided.text != "" {
		m.draft = draft{}
	}
	if d := m.dialog; d != nil && d.sending && d.has(msg.results[0].Question) {
		m.answered(d, msg.results, len(failed) == 0)
	}
	return m.refresh()
}

// answered leaves on the screen what was refused: it may still be open.
func (m *Model) answered(d *dialog, results []frontends.Result, all bool) {
	if all {
		m.dialog = nil
		return
	}
	d.sending = false
	for _, r := range results {
		if r.Err == nil {
			m.without(d, r.Question)
		}
	}
	d.grace.begin(m.now)
}

// tell says in one line what became of an answer.
func (m *Model) tell(msg answerMsg, failed []frontends.Result) {
	first := msg.results[0].Question
	if len(msg.results) == 1 {
		if len(failed) == 1 {
			m.notice = notice{m.teller().Refusal(failed[0].Err), first, msg.of[first].tool}
			return
		}
		m.notice, m.last = notice{}, first
		m.ended = m.teller().Decided(m.o.Principal(), msg.decided.answer, msg.of[first].took)
		return
	}
	var parts []string
	if n := len(msg.results) - len(failed); n > 0 {
		parts = append(parts, m.w.Say(words.AnsweredCount, n, m.w.Answer(string(msg.decided.answer))))
	}
	for _, why := range counted(failed, m.teller().Refusal) {
		parts = append(parts, m.w.Say(words.RefusedCount, why.n, why.text))
	}
	m.notice, m.last, m.ended = notice{}, "", strings.Join(parts, " · ")
	if len(failed) > 0 {
		m.notice = notice{text: m.w.Say(words.YourAnswers, m.ended)}
	}
}

type count struct {
	n    int
	text string
}

// counted puts equal refusals together, in order of first appearance.
func counted(failed []frontends.Result, text func(error) string) []count {
	var all []count
	for _, r := range failed {
		why := text(r.Err)
		if i := slices.IndexFunc(all, func(c count) bool { return c.text == why }); i >= 0 {
			all[i].n++
			continue
		}
		all = append(all, count{1, why})
	}
	return all
}
