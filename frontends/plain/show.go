package plain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// card writes a whole question: what it is about, what changed, every value, and
// whose question it is.
func (p *page) card(number string, q events.Question, c card.Card) {
	title := c.Title
	if c.Path != "" {
		title += " · " + c.Path
	}
	if c.Stats != "" {
		title += "   " + c.Stats
	}
	p.row(number + title + "   " + c.Session)
	if q.Previous >= 0 {
		p.row(p.w.Say(words.AskedAgain, q.Attempt))
	}
	if c.ChangedIn != "" {
		p.row(c.ChangedIn)
	}
	for _, hook := range c.ChangedBy {
		p.row("  " + hook)
	}
	if len(c.Fields) == 0 {
		p.row(p.w.Say(words.NoArguments))
	}
	for _, section := range c.Sections {
		p.section(section, c)
	}
	p.labelled(p.w.Say(words.AskedBy), c.Hook+"   "+c.Origin)
	reason := c.Reason
	if c.Quoted {
		reason = "“" + reason + "”"
	}
	p.labelled(c.ReasonLabel, reason)
}

func (p *page) section(section card.Section, c card.Card) {
	switch section.Kind {
	case card.SectionValue:
		p.field(section)
	case card.SectionDiff:
		p.row(section.Name + "   " + section.Stats)
		p.note(section.Note)
		p.lines(section.Lines)
	case card.SectionChange:
		p.note(section.Note)
		if len(section.Lines) > 0 {
			p.row(section.Name + "   " + section.Stats)
			p.lines(section.Lines)
			return
		}
		p.change(section.Name, *section.Change, c.Was)
	}
}

func (p *page) note(text string) {
	if text != "" {
		p.row("  " + text)
	}
}

// field writes a value, and counts what was made visible in it.
func (p *page) field(section card.Section) {
	f := section.Field
	p.note(section.Note)
	p.value(f.Name, f.Text, f.Bytes)
	for _, m := range append(card.Marks(f.Name), card.Marks(f.Text)...) {
		p.note(p.w.Say(words.Marked, m.Count, m.Text))
	}
	if f.Bad {
		p.note(p.w.Say(words.NotJSON))
	}
}

// lines writes what was taken away and put in its place.
func (p *page) lines(list []card.DiffLine) {
	for _, l := range list {
		sign := string(rune(l.Sign)) + " "
		if l.Sign == '-' {
			sign = "− "
		}
		p.broken(begins+sign, goesOn+"  ", l.Text)
	}
}

// change writes one argument, old and new, cut around what differs.
func (p *page) change(name string, ch card.Change, was string) {
	before, now := p.cut(ch.Old), p.cut(ch.New)
	if ch.Added {
		before = p.w.Say(words.ChangedAdded)
	}
	if ch.Removed {
		now = p.w.Say(words.ChangedGone)
	}
	p.labelled(name+" − "+was, before)
	p.labelled(name+" +", now)
}

func (p *page) cut(c card.Cut) string {
	text := c.Lead + c.Middle + c.Trail
	if c.Before > 0 {
		text = "[… " + p.w.Say(words.Bytes, card.Count(c.Before)) + "] " + text
	}
	if c.After > 0 {
		text += " [… " + p.w.Say(words.Bytes, card.Count(c.After)) + "]"
	}
	return text
}

// fetch makes the card of a question, with what it does not carry itself.
func (s *screen) fetch(q events.Question) (card.Card, error) {
	args, err := s.o.Client.Args(s.ctx, q.ID, q.Version.N)
	if err != nil {
		return card.Card{}, err
	}
	c := card.New(q, args, s.o.Home, s.w)
	if !c.Missing {
		return c, nil
	}
	before, err := s.o.Client.Args(s.ctx, q.ID, c.Since)
	if err != nil {
		return card.Card{}, err
	}
	return card.NewSince(q, before, args, s.o.Home, s.w), nil
}

// show makes a question the one that the person reads.
func (s *screen) show(a *asked) {
	s.current = a
	a.later = false
	if a.loading {
		return
	}
	a.loading = true
	q := a.question
	s.beside(func() func() {
		c, err := s.fetch(q)
		return func() {
			a.loading = false
			if s.open[q.ID] == a && s.current == a {
				s.write(a, c, err)
			}
		}
	})
}

// write writes a question. It counts as shown only when every byte of it was
// taken.
func (s *screen) write(a *asked, c card.Card, err error) {
	q := a.question
	if err != nil {
		s.current = nil
		a.later = true // it is not tried again by itself; the person can ask for it
		s.about(a.number, s.w.Say(words.PlainNotLoaded, card.Line(err.Error()), a.number))
		return
	}
	why := unanswerable(q, c, s.w)
	rows := s.page.together(func() {
		s.page.row("")
		s.page.card(s.w.Say(words.PlainQuestion, a.number)+" · ", q, c)
		if left := s.left(q); left != "" {
			s.page.row(left)
		}
	})
	if why != "" {
		s.about(a.number, why)
		return
	}
	s.say(words.PlainChoice, a.number, rows)
	if s.page.err != nil {
		return
	}
	a.shown, a.drawn, a.digest = true, s.o.Now(), c.Digest
	s.beside(func() func() {
		_ = s.o.Client.Drawn(s.ctx, q.ID, c.Digest) // a report; the answer names the digest again
		return func() {}
	})
}

// left tells how long a question still waits, "" when it has no limit.
func (s *screen) left(q events.Question) string {
	if q.Deadline == 0 {
		return ""
	}
	return s.w.Say(words.TimeLeft, card.Clock(q.Deadline.Time().Sub(s.o.Now())))
}

// explain writes everything that is known of a question.
func (s *screen) explain(a *asked) {
	q := a.question
	deadline := s.w.Say(words.DetailNone)
	if q.Deadline != 0 {
		deadline = q.Deadline.Time().Local().Format(time.DateTime) + " · " + card.Line(q.DeadlineFrom)
	}
	s.page.together(func() {
		for _, r := range [][2]string{
			{s.w.Say(words.DetailRule), card.Line(q.Hook.ID)},
			{"", card.Line(s.w.Scope(string(q.Hook.Scope))) + " " + card.Line(q.Hook.File) + ":" + itoa(q.Hook.Line)},
			{s.w.Say(words.DetailTool), card.Line(q.Tool.Name) + " · " + card.Line(q.Tool.Kind)},
			{s.w.Say(words.DetailKind), card.Line(s.w.Kind(string(q.Kind)))},
			{s.w.Say(words.DetailAgent), card.Line(string(q.Agent))},
			{s.w.Say(words.DetailPath), card.Line(q.Path)},
			{s.w.Say(words.DetailProject), card.Line(q.ProjectPath)},
			{s.w.Say(words.DetailDirectory), card.Line(q.Cwd)},
			{s.w.Say(words.DetailVersion), fmt.Sprintf("%d · %s", q.Version.N, s.w.Say(words.Bytes, card.Count(q.Version.Bytes)))},
			{"sha256", card.Line(string(q.Version.Digest))},
			{s.w.Say(words.DetailAttempt), fmt.Sprintf("%d / 3", q.Attempt)},
			{s.w.Say(words.DetailAsked), q.AskedAt.Time().Local().Format(time.DateTime)},
			{s.w.Say(words.DetailDeadline), deadline},
			{s.w.Say(words.DetailQuestion), string(q.ID)},
			{s.w.Say(words.DetailOperation), card.Line(string(q.Operation))},
			{s.w.Say(words.DetailSession), card.Line(string(q.Session))},
		} {
			s.page.labelled(r[0], r[1])
		}
	})
}

// list writes a row for each open question.
func (s *screen) list() {
	if len(s.open) == 0 {
		s.say(words.NothingWaits)
		return
	}
	s.page.together(func() {
		for _, a := range s.queue() {
			text := s.w.Say(words.WaitingFor, card.Clock(s.o.Now().Sub(a.question.AskedAt.Time())))
			if left := s.left(a.question); left != "" {
				text += " · " + left
			}
			if c := a.question.ClaimedBy; c != nil && c.Frontend != s.o.Self {
				text += " · " + s.claimed(c)
			}
			s.page.row(itoa(a.number) + "  " + s.named(a.question) + "   " + text)
		}
	})
}

// named is one line that tells which question this is.
func (s *screen) named(q events.Question) string {
	name := card.Line(q.Tool.Name)
	if q.Kind != events.KindToolCall || name == "" {
		name = card.Line(s.w.Kind(string(q.Kind)))
	}
	return card.Session(q.Agent, q.ProjectPath) + "   " + name + "   " + card.Line(events.About(q.Args))
}

// queue are the open questions in the order of their numbers.
func (s *screen) queue() []*asked {
	list := make([]*asked, 0, len(s.open))
	for _, a := range s.open {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *asked) int { return cmp.Compare(a.number, b.number) })
	return list
}
