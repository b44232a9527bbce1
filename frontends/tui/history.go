package tui

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

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
	if len(m.took) <= 2*len(m.history.lines)+100 {
		return
	}
	told := map[events.ID]bool{}
	for _, l := range m.history.lines {
		told[l.Question] = true
	}
	maps.DeleteFunc(m.took, func(id events.ID, _ time.Duration) bool { return !told[id] })
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
		string(l.Agent), l.ProjectPath, m.toolName(l.Tool, l.Kind), l.Tool.Name, l.Tool.Kind, l.About, l.Path, hook,
		l.Text, m.receipt(l), m.short(l)[0], string(l.Code), string(l.EndReason), string(l.Outcome),
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
	sign := m.style.dim.Render(m.signOf(l))
	style := m.style.dim
	if m.alarming(l) {
		style = m.style.warn
	}
	right := m.short(l)
	for i, text := range right {
		right[i] = style.Render(text)
	}
	return m.columns(leadOf(sign, false, current, m.style), cellsOf{
		agent: string(l.Agent), project: l.ProjectPath, tool: m.toolName(l.Tool, l.Kind), path: m.shortPath(l.Path),
		about: card.Line(l.About), right: right, dim: true,
	}, current)
}

// alarming says that something else ran than was allowed.
func (m *Model) alarming(l events.Line) bool {
	return l.Ran != "" && l.Committed != "" && l.Ran != l.Committed
}

// signOf is the sign of an operation in the history.
func (m *Model) signOf(l events.Line) string {
	switch l.State {
	case events.LineAborted:
		return "–"
	case events.LineRefused:
		switch l.Code {
		case events.CodeTimedOut, events.CodeUnavailable:
			return "⌛"
		case events.CodeEnded:
			return "–"
		}
		return "✕"
	case events.LineCommitted, events.LineDelivered:
		return "●"
	}
	if l.Question == "" {
		return "·"
	}
	return "✓"
}

// decisionTook is how long a question was open before it ended, 0 if that is not known.
func (m *Model) decisionTook(l events.Line) time.Duration {
	if l.AskedAt == 0 || l.EndedAt < l.AskedAt {
		return m.took[l.Question]
	}
	return l.EndedAt.Time().Sub(l.AskedAt.Time())
}

// receipt tells what became of an operation, step by step.
func (m *Model) receipt(l events.Line) string {
	return strings.Join(append([]string{m.verdict(l)}, m.became(l)...), " → ")
}

// became are the steps behind the decision.
func (m *Model) became(l events.Line) []string {
	switch l.State {
	case events.LineCommitted:
		return []string{m.w.Say(words.Sent)}
	case events.LineDelivered:
		return []string{m.w.Say(words.Delivered)}
	case events.LineFinished:
		if l.Outcome == events.OutcomeUnknown {
			return []string{m.ran(l)}
		}
		return []string{m.w.Say(words.Delivered), m.ran(l)}
	}
	return nil
}

// short has ways to write the receipt in a row of the list, the longest first: the
// sign before the row tells the decision, so who and the last step are enough.
func (m *Model) short(l events.Line) []string {
	switch {
	case l.State == events.LineRefused && l.Code == events.CodeDeclined && l.Text != "" && l.Who != "":
		return []string{m.w.Say(words.SaidWords, m.who(l.Who), card.Line(l.Text))}
	case l.State == events.LineRefused, l.State == events.LineAborted:
		return []string{m.verdict(l), m.w.Code(string(cmp.Or(l.Code, events.CodeEnded)))}
	}
	who, whoShort := m.decider(l)
	step, stepShort := m.lastStep(l)
	return []string{who + " → " + step, whoShort + " → " + step, whoShort + " → " + stepShort, stepShort}
}

// decider names who let an operation go on, with what else there is to say and
// without: a person, or the rule that needed none.
func (m *Model) decider(l events.Line) (long, short string) {
	who := m.who(l.Who)
	switch took := m.decisionTook(l); {
	case l.Who != "" && took > 0 && who == m.w.Say(words.You):
		return m.w.Say(words.YouTook, card.Took(took, m.w)), who
	case l.Who != "" && took > 0:
		return m.w.Say(words.WhoTook, who, card.Took(took, m.w)), who
	case l.Who == "" && l.Hook != nil:
		return m.verdict(l), m.w.Say(words.RuleShort, card.Line(l.Hook.ID))
	case l.Who == "":
		return m.verdict(l), m.verdict(l)
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
	case m.alarming(l):
		return m.w.Say(words.OtherDigest, text), m.w.Say(words.NotAllowed)
	case l.Took > 0 && (l.Outcome == events.OutcomeOK || l.Outcome == events.OutcomeFailed):
		return m.w.Say(words.WhoTook, text, m.lasted(l.Took)), text
	}
	return text, text
}

// verdict tells who or what decided.
func (m *Model) verdict(l events.Line) string {
	switch {
	case l.State == events.LineAborted || l.Code == events.CodeEnded:
		if l.EndReason == "" {
			return m.w.Code(string(events.CodeEnded))
		}
		return m.w.Because(m.w.Code(string(events.CodeEnded)), m.w.End(string(l.EndReason)))
	case l.Code == events.CodeDeclined && l.Who != "":
		return m.decided(m.who(l.Who), events.AnswerCancel, m.decisionTook(l))
	case l.Code == events.CodeTimedOut && m.decisionTook(l) > 0:
		return m.w.Say(words.NoAnswerIn, card.Clock(m.decisionTook(l)))
	case l.Code != "" && l.Code != events.CodeChecked:
		return m.refusedBy(l)
	case l.Who != "":
		return m.decided(m.who(l.Who), events.AnswerContinue, m.decisionTook(l))
	case l.Hook != nil:
		return m.w.Say(words.RuleDecided, card.Line(l.Hook.ID))
	}
	return m.w.Say(words.NoQuestion)
}

// refusedBy tells why an operation was refused without a person's word, and which
// rule it was.
func (m *Model) refusedBy(l events.Line) string {
	code := m.w.Code(string(l.Code))
	switch {
	case l.Hook == nil || l.Code == events.CodeUnavailable:
		return code
	case l.Code == events.CodeBlocked:
		return m.w.Say(words.RuleRefused, card.Line(l.Hook.ID))
	}
	return m.w.Because(code, card.Line(l.Hook.ID))
}

// ran tells what the agent reported, how large it was and whether it is what was
// allowed.
func (m *Model) ran(l events.Line) string {
	text := m.w.Outcome(string(l.Outcome))
	if l.Outcome != events.OutcomeOK && l.Outcome != events.OutcomeFailed {
		return text
	}
	if l.Bytes > 0 {
		text = m.w.Say(words.RanBytes, text, card.Count(l.Bytes))
	}
	switch {
	case l.Ran == "" || l.Committed == "":
	case l.Ran == l.Committed:
		text = m.w.Say(words.SameDigest, text)
	default:
		text = m.w.Say(words.OtherDigest, text)
	}
	return text
}

// lasted writes how long something ran, given in microseconds.
func (m *Model) lasted(micros int64) string {
	d := time.Duration(micros) * time.Microsecond
	if d < time.Second {
		return m.w.Say(words.Milliseconds, strconv.FormatInt(max(d.Milliseconds(), 1), 10))
	}
	return card.Took(d, m.w)
}
