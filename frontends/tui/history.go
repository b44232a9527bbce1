package tui

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// history is what the list shows of operations that were decided.
type history struct {
	lines    []events.Line // the one that was heard of last first
	shown    []events.Line // those that the filter lets through
	filtered string        // by this filter
}

// readHistory takes over the operations of late. A row keeps its place among them
// whatever becomes of its operation.
func (m *Model) readHistory() {
	m.history.lines = m.o.Inbox.Lines()
	slices.Reverse(m.history.lines)
	m.filterHistory()
}

// filterHistory lets the filter choose among the lines, and keeps the cursor on the
// operation that it stood on.
func (m *Model) filterHistory() {
	h, want := &m.history, m.list.filter.value()
	h.shown, h.filtered = h.lines, want
	if want = strings.ToLower(want); want != "" {
		h.shown = nil
		for _, l := range h.lines {
			if strings.Contains(m.lineText(l), want) {
				h.shown = append(h.shown, l)
			}
		}
	}
	at := slices.IndexFunc(h.shown, func(l events.Line) bool { return l.Operation == m.list.operation })
	if at >= 0 && m.list.operation != "" {
		m.list.earlier.cursor = at
	}
}

// linesShown are the lines that the filter lets through.
func (m *Model) linesShown() []events.Line {
	if m.history.filtered != m.list.filter.value() {
		m.filterHistory()
	}
	return m.history.shown
}

// lineText is all that the list knows of an operation, for the filter: codes in
// words too.
func (m *Model) lineText(l events.Line) string {
	hook := ""
	if l.Hook != nil {
		hook = l.Hook.ID
	}
	return strings.ToLower(strings.Join([]string{
		string(l.Agent), l.ProjectPath, m.teller().Tool(l.Tool, l.Kind), l.Tool.Name, l.Tool.Kind, l.About, l.Path, hook,
		l.Text, m.teller().Receipt(l), m.short(l)[0], string(l.Code), string(l.EndReason), string(l.Outcome),
	}, "\n"))
}

func (m *Model) currentLine() (events.Line, bool) {
	lines := m.linesShown()
	if i := m.list.earlier.cursor; i >= 0 && i < len(lines) {
		return lines[i], true
	}
	return events.Line{}, false
}

// earlierRows draws what was decided of late, as many rows as there is room for.
func (m *Model) earlierRows(room, line int) []string {
	lines := m.linesShown()
	from, to := m.list.earlier.window(len(lines), room)
	var out []string
	for i := from; i < to; i++ {
		l := lines[i]
		out = append(out, m.lineRow(l, m.inEarlier() && i == m.list.earlier.cursor))
		m.zone(line+len(out)-1, 0, m.width, func() tea.Cmd {
			m.list.lower, m.list.operation = true, l.Operation
			m.filterHistory()
			return m.openRow()
		})
	}
	return out
}

func (m *Model) lineRow(l events.Line, current bool) string {
	sign := m.style.dim.Render(card.Sign(l))
	style := m.style.dim
	if card.RanOther(l) {
		style = m.style.warn
	}
	right := m.short(l)
	for i, text := range right {
		right[i] = style.Render(text)
	}
	return m.columns(leadOf(sign, false, current, m.style), cellsOf{
		agent: string(l.Agent), project: l.ProjectPath, tool: m.teller().Tool(l.Tool, l.Kind), path: m.shortPath(l.Path),
		about: card.Line(l.About), right: right, dim: true,
	}, current)
}

// short has ways to write the receipt in a row of the list, the longest first: the
// sign before the row tells the decision, so who and the last step are enough.
func (m *Model) short(l events.Line) []string {
	switch {
	case l.State == events.LineRefused && l.Code == events.CodeDeclined && l.Text != "" && l.Who != "":
		return []string{m.w.Say(words.SaidWords, m.teller().Who(l.Who), card.Line(l.Text))}
	case l.State == events.LineRefused, l.State == events.LineAborted:
		return []string{m.teller().Verdict(l), m.w.Code(string(cmp.Or(l.Code, events.CodeEnded)))}
	}
	who, whoShort := m.decider(l)
	step, stepShort := m.lastStep(l)
	return []string{who + " → " + step, whoShort + " → " + step, whoShort + " → " + stepShort, stepShort}
}

// decider names who let an operation go on, with what else there is to say and
// without: a person, or the rule that needed none.
func (m *Model) decider(l events.Line) (long, short string) {
	who := m.teller().Who(l.Who)
	switch took := card.DecisionTook(l); {
	case l.Who != "" && took > 0 && m.teller().Mine(l.Who):
		return m.w.Say(words.YouTook, card.Took(took, m.w)), who
	case l.Who != "" && took > 0:
		return m.w.Say(words.WhoTook, who, card.Took(took, m.w)), who
	case l.Who == "" && l.Hook != nil:
		return m.teller().Verdict(l), m.w.Say(words.RuleShort, card.Line(l.Hook.ID))
	case l.Who == "":
		return m.teller().Verdict(l), m.teller().Verdict(l)
	}
	return who, who
}

// lastStep tells how far an operation that was let go on has come.
func (m *Model) lastStep(l events.Line) (long, short string) {
	switch l.State {
	case events.LineCommitted:
		return m.w.Say(words.Sent), m.w.Say(words.Sent)
	case events.LineDelivered:
		return m.w.Say(words.Delivered), m.w.Say(words.Delivered)
	}
	text := m.w.Outcome(string(l.Outcome))
	switch {
	case card.RanOther(l):
		return m.w.Say(words.OtherDigest, text), m.w.Say(words.NotAllowed)
	case l.Took > 0 && (l.Outcome == events.OutcomeOK || l.Outcome == events.OutcomeFailed):
		return m.w.Say(words.WhoTook, text, m.teller().Lasted(l.Took)), text
	}
	return text, text
}
