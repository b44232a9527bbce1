package plain

import (
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// maxHistory is how many operations h tells.
const maxHistory = 20

// teller tells in words what became of things, to the person who types here.
func (s *screen) teller() card.Teller {
	return card.Teller{Words: s.w, Self: s.o.Self, Principal: s.o.Principal(), Home: s.o.Home, Now: s.o.Now()}
}

// history tells the operations of late, the newest last.
func (s *screen) history() {
	lines := s.o.Inbox.Lines()
	slices.SortStableFunc(lines, func(a, b events.Line) int { return int(a.At - b.At) })
	lines = lines[max(0, len(lines)-maxHistory):]
	if len(lines) == 0 {
		s.say(words.PlainNoHistory)
		return
	}
	s.page.together(func() {
		for _, l := range lines {
			about := strings.TrimSpace(s.teller().Tool(l.Tool, l.Kind) + "   " + card.Line(l.About))
			s.page.row(card.Sign(l) + " " + card.Session(l.Agent, l.ProjectPath) + "   " + about)
			s.page.row("  " + s.teller().Receipt(l))
			if l.Text != "" {
				s.page.row("  “" + card.Line(l.Text) + "”")
			}
		}
	})
}
