package tui

import (
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// receiptView shows everything about one operation: what was wanted, who or what
// decided, and what became of it.
func (m *Model) receiptView() []string {
	at := slices.IndexFunc(m.history.lines, func(l events.Line) bool { return l.Operation == m.list.operation })
	if at < 0 {
		return m.pageView(m.w.Say(words.LineGone), nil)
	}
	l := m.history.lines[at]
	title := card.Sign(l) + "  " + m.teller().Tool(l.Tool, l.Kind) + " · " + card.Session(l.Agent, l.ProjectPath)
	return m.pageView(title, m.receiptFields(l))
}

func (m *Model) receiptFields(l events.Line) []field {
	fields := []field{{name: m.w.Say(words.FieldDecided), value: m.teller().Verdict(l)}}
	add := func(value string, k words.Key) {
		if value != "" {
			fields = append(fields, field{name: m.w.Say(k), value: value})
		}
	}
	if l.Text != "" {
		add("“"+card.Escape(l.Text)+"”", words.WordsShort)
	}
	if steps := m.teller().Became(l); len(steps) > 0 {
		fields = append(fields, field{m.w.Say(words.FieldBecame), strings.Join(steps, " → "), card.RanOther(l), false})
	}
	if l.Outcome == events.OutcomeUnknown {
		fields = append(fields, field{value: m.w.Say(words.UnknownMeans)})
	}
	if l.Took > 0 {
		add(m.teller().Lasted(l.Took), words.FieldTook)
	}
	add(card.Line(l.About), words.FieldAbout)
	if l.Hook != nil {
		add(card.Line(l.Hook.ID)+"   "+card.Origin(*l.Hook, l.ProjectPath, m.o.Home, m.w), words.DetailRule)
	}
	add(m.w.Kind(string(l.Kind)), words.DetailKind)
	add(m.shortPath(l.Path), words.DetailPath)
	add(card.Line(l.ProjectPath), words.DetailProject)
	add(card.LocalTime(l.AskedAt), words.DetailAsked)
	ended := words.FieldEndedAt
	if l.Who != "" {
		ended = words.FieldEnded
	}
	add(card.LocalTime(l.EndedAt), ended)
	add(card.LocalTime(l.At), words.FieldAt)
	add(string(l.Committed), words.FieldAllowed)
	fields = append(fields, m.ranField(l)...)
	add(string(l.Operation), words.DetailOperation)
	add(string(l.Question), words.DetailQuestion)
	add(string(l.Session), words.DetailSession)
	return fields
}

// ranField shows the digest of what ran.
func (m *Model) ranField(l events.Line) []field {
	if l.Ran == "" {
		return nil
	}
	return []field{{name: m.w.Say(words.FieldRan), value: string(l.Ran), warn: card.RanOther(l)}}
}
