package tui

import (
	"strings"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// state is the line above the buttons: who answers, or what is in the way, or
// the words that are being written, in up to a number of rows.
func (m *Model) state(d *dialog, rows int) []string {
	if d.composing {
		return m.composer(d, rows)
	}
	text, warn := m.stateText(d)
	style := m.style.dim
	if warn {
		style = m.style.warn
	}
	marks := ""
	if m.cramped() {
		marks = m.marksText(d)
	}
	switch {
	case marks != "" && text != "":
		// One line for both: the warning has at least its half.
		const between = " · "
		room := m.stateWidth() - cells(between)
		marks = fit(marks, room-min(cells(text), room/2))
		return []string{m.indent() + m.style.warn.Render(marks) + between + style.Render(fit(text, room-cells(marks)))}
	case marks != "":
		return []string{m.indent() + m.style.warn.Render(fit(marks, m.stateWidth()))}
	case text != "":
		return []string{m.indent() + style.Render(fit(text, m.stateWidth()))}
	}
	return []string{""}
}

// composer draws the words that are being written.
func (m *Model) composer(d *dialog, rows int) []string {
	label := m.style.dim.Render(m.w.Say(words.WordsPrompt))
	if m.width < 60 {
		label = m.style.dim.Render(m.w.Say(words.WordsShort))
	}
	if marks := m.marksText(d); m.cramped() && marks != "" {
		label = m.style.warn.Render(fit(marks, m.stateWidth()/3))
	}
	out := d.input.view(m.style, m.stateWidth()-cells(label)-2, rows)
	for i, row := range out {
		if i > 0 {
			label = pad("", cells(label))
		}
		out[i] = m.indent() + label + "  " + row
	}
	return out
}

// indent is before the state, stateWidth what is left for it.
func (m *Model) indent() string {
	if m.width < 60 {
		return "  "
	}
	return "   "
}

func (m *Model) stateWidth() int { return m.width - cells(m.indent()) - 1 }

func (m *Model) stateText(d *dialog) (text string, warn bool) {
	switch {
	case !d.ready():
		return "", false
	case d.problem != "":
		return d.problem, true
	case d.pending != nil:
		return m.w.Say(words.Claiming), false
	case d.sending:
		return m.w.Say(words.Sending), false
	}
	if text, warn = m.obstacle(d); text != "" {
		return text, warn
	}
	switch lock := m.lockedBy(d); {
	case lock != nil:
		return m.claimText(lock), true
	case d.unseen() > 0:
		return m.w.Say(words.NotSeenYet, d.unseen(), len(d.parts)), false
	case d.holds():
		return m.w.Say(words.HeldByYou), false
	}
	return "", false
}

// obstacle is what keeps a part from being answered on this screen.
func (m *Model) obstacle(d *dialog) (text string, warn bool) {
	for _, p := range d.parts {
		if text, passes := m.teller().Obstacle(p.lead(), *p.card); text != "" {
			return text, !passes
		}
	}
	return "", false
}

// claimText says who answers, and whether one may take over.
func (m *Model) claimText(c *events.Claim) string {
	text := m.teller().Claimed(c)
	if !m.mayTakeOver(c) {
		return text
	}
	text += "   " + m.w.Say(words.TakesItOver)
	if cells(text) > m.stateWidth() {
		return m.w.Say(words.TakesOver)
	}
	return text
}

// marksText counts what was made visible, so that nobody has to search for it.
// It has its own line: nothing that happens may take its place.
func (m *Model) marksText(d *dialog) string {
	if !d.ready() {
		return ""
	}
	if d.marks == nil {
		d.marks = new(m.countMarks(d))
	}
	return *d.marks
}

func (d *dialog) fields() []card.Field {
	var all []card.Field
	for _, p := range d.parts {
		all = append(all, p.card.Fields...)
	}
	return all
}

func (m *Model) countMarks(d *dialog) string {
	var parts []string
	bad, total := false, 0
	seen := map[string]bool{}
	for _, f := range d.fields() {
		bad = bad || f.Bad
		for _, mark := range append(card.Marks(f.Name), card.Marks(f.Text)...) {
			total += mark.Count
			if !seen[mark.Text] {
				seen[mark.Text] = true
				parts = append(parts, mark.Text)
			}
		}
	}
	switch {
	case bad:
		return m.w.Say(words.NotJSON)
	case total > 0:
		return m.w.Say(words.Marked, total, strings.Join(parts[:min(len(parts), 8)], " "))
	}
	return ""
}

// bottom is the last line of a dialog: what the last key did, or who is next.
// How another question ended is not told here, where it would read as if this
// one had.
func (m *Model) bottom(d *dialog) string {
	text := m.noticeText()
	if text == "" {
		text = m.nextText(d)
	}
	return " " + m.style.dim.Render(fit(text, m.width-2))
}

func (m *Model) nextText(d *dialog) string {
	next := m.upNext(d)
	if len(next) == 0 {
		return ""
	}
	q := next[0]
	left := m.w.Say(words.Next) + "  " + card.Session(q.Agent, q.ProjectPath) + "   " + m.about(q)
	if len(next) > 1 {
		left += " " + m.w.Say(words.Times, len(next))
	}
	return sides(left, m.w.Say(words.WaitingFor, card.Clock(m.now.Sub(q.AskedAt.Time()))), m.width-2)
}
