package tui

import (
	"slices"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// part is what one look answers: one question, or several that are equal.
type part struct {
	all  []events.Question // at least one, without Args, which are in card
	card *card.Card        // nil until the arguments are here
	args []byte
	seen bool // some of it has been in sight
}

func partsOf(list []events.Question) []*part {
	var parts []*part
	for _, group := range frontends.Groups(list) {
		parts = append(parts, &part{all: slices.Clone(group)})
	}
	return parts
}

func (p *part) lead() events.Question { return p.all[0] }

func (p *part) has(id events.ID) bool {
	for _, q := range p.all {
		if q.ID == id {
			return true
		}
	}
	return false
}

// takeArgs gives the arguments that travelled with one of the questions. They are
// the same for all.
func (p *part) takeArgs() []byte {
	var args []byte
	for i := range p.all {
		if len(args) == 0 {
			args = p.all[i].Args
		}
		p.all[i].Args = nil
	}
	return args
}

// again says that the person has said yes to an earlier version.
func (p *part) again() bool { return p.lead().Previous >= 0 }

// comparing says that what differs from the earlier version is not here yet.
func (p *part) comparing() bool { return p.card != nil && p.card.Missing }

// compared takes the earlier version. What changed since the last yes is in sight,
// so it begins a grace.
func (m *Model) compared(d *dialog, p *part, earlier []byte) {
	c := card.NewSince(p.lead(), earlier, p.args, m.o.Home, m.w)
	p.card = &c
	if d.details != nil {
		m.openDetails(d)
	}
	if p.again() {
		m.layOut(d)
		d.grace.begin(m.now)
	}
}

// layOut makes the boxes of all parts.
func (m *Model) layOut(d *dialog) {
	d.values, d.reason, d.marks = nil, nil, nil
	for i, p := range d.parts {
		before := len(d.values)
		if d.set() {
			d.values = append(d.values, &box{text: m.heading(d, i), kind: boxHeading})
		}
		d.values = append(d.values, m.boxes(p)...)
		if d.set() {
			from := &box{label: m.w.Say(words.AskedBy), text: p.card.Hook + "   " + p.card.Origin, kind: boxSentence}
			d.values = append(d.values, from, m.reasonBox(p))
		}
		for _, b := range d.values[before:] {
			b.part = i
		}
	}
	if !d.set() {
		d.reason = m.reasonBox(d.parts[0])
	}
}

// heading names one part of a set.
func (m *Model) heading(d *dialog, at int) string {
	p := d.parts[at]
	text := m.w.Say(words.PartOf, at+1, len(d.parts), m.partTitle(p)) + " · " + p.card.Session
	if p.card.Path != "" {
		text += " · " + p.card.Path
	}
	if p.again() {
		text += " · " + m.w.Say(words.AskedAgain, p.lead().Attempt)
	}
	return text
}

// partTitle names the tool, how many equal questions there are, and how much an edit
// changes.
func (m *Model) partTitle(p *part) string {
	name := card.Line(p.lead().Tool.Name)
	if p.card != nil {
		name = p.card.Title
	}
	if len(p.all) > 1 {
		name += " " + m.w.Say(words.Times, len(p.all))
	}
	if p.card != nil && p.card.Stats != "" {
		name += "  " + p.card.Stats
	}
	return name
}

func (m *Model) reasonBox(p *part) *box {
	reason := p.card.Reason
	if p.card.Quoted {
		reason = "“" + reason + "”"
	}
	raw := p.lead().Reason
	return &box{label: p.card.ReasonLabel, text: reason, raw: raw, bytes: len(raw), kind: boxSentence}
}

// boxes lays out what changed since the last yes and then every argument, whole.
func (m *Model) boxes(p *part) []*box {
	var all []*box
	compared := false
	for _, s := range p.card.Sections {
		switch s.Kind {
		case card.SectionChange:
			if p.again() {
				all = append(all, m.changeBoxes(p, s)...)
			}
		case card.SectionDiff:
			all = append(all, m.diffBoxes(s)...)
			compared = true
		case card.SectionValue:
			all = append(all, m.fieldBoxes(s, compared)...)
		}
	}
	if len(p.card.Fields) == 0 {
		all = append(all, &box{text: m.w.Say(words.NoArguments), kind: boxSentence})
	}
	if by := m.changedBy(p); by != "" {
		all = append(all, &box{label: m.w.Say(words.ChangedBy), text: by, kind: boxSentence})
	}
	return all
}

// fieldBoxes draws one argument. What follows an edit is what the edit was made of.
func (m *Model) fieldBoxes(s card.Section, compared bool) []*box {
	f := s.Field
	b := &box{label: s.Name, text: f.Text, raw: f.Raw, bytes: f.Bytes, minor: compared && !f.Claimed}
	if f.Text == "" {
		b.text, b.kind = m.w.Say(words.Empty), boxSentence
	}
	if s.Note == "" {
		return []*box{b}
	}
	return []*box{b, {text: s.Note, kind: boxNote}}
}

func (m *Model) diffBoxes(s card.Section) []*box {
	if len(s.Lines) == 0 {
		return []*box{{label: s.Name, text: s.Note, kind: boxNote}}
	}
	all := []*box{newDiffBox(m.w.Say(words.Diff), s.Lines)}
	if s.Note != "" {
		all = append(all, &box{text: s.Note, kind: boxNote})
	}
	return all
}

// changeBoxes draws what was and what is. Values of several lines are compared line
// by line.
func (m *Model) changeBoxes(p *part, s card.Section) []*box {
	name, c := s.Name, s.Change
	if name == "" {
		name = card.Whole(p.lead().Kind, m.w)
	}
	if len(s.Lines) > 0 {
		return []*box{newDiffBox(name, s.Lines)}
	}
	was, now := c.Old.Shown(m.w), c.New.Shown(m.w)
	if c.Added {
		was = m.w.Say(words.ChangedAdded)
	}
	if c.Removed {
		now = m.w.Say(words.ChangedGone)
	}
	return []*box{
		{label: name, text: was, bytes: len(was), kind: boxWas},
		{text: now, bytes: len(now), kind: boxNow},
	}
}

// changedBy names the hooks that made this version of an earlier one.
func (m *Model) changedBy(p *part) string {
	if p.card.Since < 0 {
		return ""
	}
	text := m.w.List(p.card.ChangedBy)
	if p.card.First && text != "" {
		text += " · " + m.w.Say(words.FirstAsked)
	}
	return text
}
