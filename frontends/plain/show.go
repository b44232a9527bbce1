package plain

import (
	"cmp"
	"slices"

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
		p.heading(section.Name, "   "+section.Stats)
		p.note(section.Note)
		p.lines(section.Lines)
	case card.SectionChange:
		p.note(section.Note)
		if len(section.Lines) > 0 {
			p.heading(section.Name, "   "+section.Stats)
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
		switch l.Sign {
		case '@': // ours
			p.note(l.Text)
			continue
		case '-':
			sign = "− "
		}
		p.broken(begins+sign, goesOn+"  ", l.Text)
	}
}

// change writes one argument, old and new, cut around what differs.
func (p *page) change(name string, ch card.Change, was string) {
	before, now := ch.Old.Shown(p.w), ch.New.Shown(p.w)
	if ch.Added {
		before = p.w.Say(words.ChangedAdded)
	}
	if ch.Removed {
		now = p.w.Say(words.ChangedGone)
	}
	p.labelled(name+" − "+was, before)
	p.labelled(name+" +", now)
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
	why, _ := s.teller().Obstacle(q, c)
	rows := s.page.together(func() {
		s.page.row("")
		s.page.card(s.w.Say(words.PlainQuestion, a.number)+" · ", q, c)
		if left, _ := s.teller().Left(q); left != "" {
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

// explain writes everything that is known of a question.
func (s *screen) explain(a *asked) {
	q := a.question
	s.beside(func() func() {
		c, err := s.fetch(q)
		return func() {
			if err != nil {
				s.about(a.number, s.teller().Refusal(err))
				return
			}
			s.page.together(func() {
				for _, d := range s.teller().Details(q, c) {
					s.page.labelled(d.Name, d.Text)
				}
			})
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
			if left, _ := s.teller().Left(a.question); left != "" {
				text += " · " + left
			}
			if c := a.question.ClaimedBy; c != nil && c.Frontend != s.o.Self {
				text += " · " + s.teller().Claimed(c)
			}
			s.page.row(itoa(a.number) + "  " + s.named(a.question) + "   " + text)
		}
	})
}

// named is one line that tells which question this is.
func (s *screen) named(q events.Question) string {
	return card.Session(q.Agent, q.ProjectPath) + "   " + s.teller().Tool(q.Tool, q.Kind) + "   " + card.About(q.Args)
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
