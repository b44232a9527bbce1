package tui

import (
	"path/filepath"
	"strings"
	"unicode"

	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// leadWidth is what stands before a row's text: the cursor, the sign, of which one is
// two columns wide, and the tick.
const leadWidth = 4

// leadOf draws the columns before a row.
func leadOf(sign string, ticked, current bool, s styles) string {
	cursor, tick := " ", " "
	if current {
		cursor = s.accent.Render("›")
	}
	if ticked {
		tick = s.key.Render("•")
	}
	return cursor + pad(sign, 2) + tick
}

// cellsOf are the texts of a row. path is who in the agent wants it, twin says that
// rows differ in it alone. session tells a session from others in the same project.
// stats counts what would change. right has ways to say what stands at the right edge, drawn
// already, the longest first.
type cellsOf struct {
	agent, project, session, tool, path, about, stats string

	right     []string
	dim, twin bool
}

// widths are those of the columns, 0 for one that a window has no room for.
type widths struct{ agent, project, tool int }

func (m *Model) widths() widths {
	switch {
	case m.width < 60:
		return widths{tool: 11}
	case m.width < 120:
		return widths{agent: 8, project: 10, tool: 11}
	}
	return widths{agent: 12, project: 22, tool: 16}
}

// leastAbout is how many columns are kept for what a call is about.
const leastAbout = 12

// columns lines up a row. What is at the right edge is said in fewer words before
// what the call is about gets too short.
func (m *Model) columns(lead string, c cellsOf, current bool) string {
	w := m.widths()
	left := ""
	if w.agent > 0 {
		project := card.Line(filepath.Base(c.project))
		if both := project + " " + c.session; c.session != "" && cells(both) <= w.project {
			project, c.session = both, ""
		}
		left = pad(card.Line(c.agent), w.agent) + " " + pad(project, w.project) + " "
	}
	left += pad(c.tool, w.tool) + " "
	width := m.width - leadWidth - 1
	room := width - cells(left) - 2
	right := fitting(c.right, room-min(cells(c.about)+cells(c.stats), max(leastAbout, room/3)))
	room -= cells(right)
	text := left + m.aboutCell(c, room)
	switch {
	case c.dim && !current:
		text = m.style.dim.Render(text)
	case current:
		text = m.style.strong.Render(text)
	}
	return lead + pad(text, width-cells(right)) + right
}

// fitting is the first text that fits a width, else the last one cut.
func fitting(texts []string, width int) string {
	for _, text := range texts {
		if cells(text) <= width {
			return text
		}
	}
	return fit(texts[len(texts)-1], max(width, 8))
}

func (m *Model) aboutCell(c cellsOf, room int) string {
	path, stats := "", ""
	if c.path != "" && (m.width >= 100 || c.twin) {
		path = fitLeft(c.path, room/3) + " · "
	}
	if c.session != "" {
		path = c.session + " · " + path
	}
	if c.stats != "" && m.width >= 60 {
		stats = "  " + c.stats
	}
	if cells(stats) > room/2 {
		stats = ""
	}
	return path + fitAbout(c.about, max(room-cells(path)-cells(stats), 0)) + stats
}

// fitAbout cuts what a call is about at its end, and a single path at its front:
// its end tells most.
func fitAbout(s string, width int) string {
	if strings.ContainsRune(s, '/') && !strings.ContainsFunc(s, unicode.IsSpace) && !strings.Contains(s, "://") {
		return fitLeft(s, width)
	}
	return fit(s, width)
}

// more counts what a list has above and below its window, "" if nothing.
func (m *Model) more(from, to, n int) string {
	var parts []string
	if from > 0 {
		parts = append(parts, m.w.Say(words.MoreAbove, from))
	}
	if to < n {
		parts = append(parts, m.w.Say(words.MoreBelow, n-to))
	}
	return strings.Join(parts, " · ")
}
