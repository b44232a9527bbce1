package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// toggleDetails opens or closes what stands behind "?": everything that is
// known about the question, in the place of its values.
func (m *Model) toggleDetails(d *dialog) {
	if d.details != nil {
		d.details = nil
		return
	}
	m.openDetails(d)
}

func (m *Model) openDetails(d *dialog) {
	if !d.ready() {
		return
	}
	at := 0
	if d.details != nil {
		at = d.details.offset()
	}
	blocks := m.detailBlocks(d)
	text := tables(blocks, m.width-detailMargin)
	d.details = &box{text: text, bytes: len(text), raw: tables(blocks, 0), kind: boxSentence}
	d.details.layout(m.width - detailMargin)
	d.details.seek(at)
	d.wide = m.width
}

// detailMargin is what the frame takes of the details' width.
const detailMargin = 5

// detail is one row: what it is called and what it says.
type detail [2]string

// detailBlocks has rows for each part, and the keys at the end.
func (m *Model) detailBlocks(d *dialog) [][]detail {
	var blocks [][]detail
	for i, p := range d.parts {
		rows := m.details(p)
		if d.set() {
			rows = append([]detail{{m.heading(d, i), ""}}, rows...)
		}
		blocks = append(blocks, rows)
	}
	return append(blocks, []detail{
		{m.w.Say(words.DetailMarks), m.markText(d)},
		{m.w.Say(words.DetailKeys), m.w.Say(words.MoreKeys)},
	})
}

// tables writes blocks of rows in two columns, in a width; 0 is as wide as they are.
func tables(blocks [][]detail, width int) string {
	widest := 0
	for _, rows := range blocks {
		for _, r := range rows {
			if r[1] != "" {
				widest = max(widest, cells(r[0])+2)
			}
		}
	}
	var parts []string
	for _, rows := range blocks {
		var lines []string
		for _, r := range rows {
			lines = append(lines, r.lines(widest, width)...)
		}
		parts = append(parts, strings.Join(lines, "\n"))
	}
	return strings.Join(parts, "\n\n")
}

// lines writes one row. What is said stays in its column.
func (r detail) lines(label, width int) []string {
	if r[1] == "" {
		return []string{r[0]}
	}
	if width == 0 {
		return []string{pad(r[0], label) + strings.ReplaceAll(r[1], "\n", "\n"+pad("", label))}
	}
	var out []string
	w := wrap(r[1], width-label)
	for i := range w.rows() {
		said, _ := w.row(i)
		out = append(out, pad(r[0], label)+strings.TrimRight(said, " "))
		r[0] = ""
	}
	return out
}

// details tells of one part: why it is asked, what became of what the agent asked
// for, and which hook, version and times stand behind it.
func (m *Model) details(p *part) []detail {
	q := p.lead()
	rows := []detail{
		{p.card.ReasonLabel, p.card.Reason},
		{m.w.Say(words.DetailRule), p.card.Hook + "\n" +
			m.w.Scope(string(q.Hook.Scope)) + " " + card.Line(q.Hook.File) + ":" + strconv.Itoa(q.Hook.Line)},
	}
	rows = append(rows, m.changeDetails(p)...)
	rows = append(rows,
		detail{m.w.Say(words.DetailTool), strings.Trim(card.Line(q.Tool.Name)+" · "+card.Line(q.Tool.Kind), " ·")},
		detail{m.w.Say(words.DetailKind), m.w.Kind(string(q.Kind))},
		detail{m.w.Say(words.DetailAgent), card.Line(string(q.Agent))},
		detail{m.w.Say(words.DetailPath), card.Line(q.Path)},
		detail{m.w.Say(words.DetailProject), card.Line(q.ProjectPath)},
		detail{m.w.Say(words.DetailDirectory), card.Line(q.Cwd)},
		detail{m.w.Say(words.DetailVersion), fmt.Sprintf("%d · %s", q.Version.N, m.w.Say(words.Bytes, card.Count(q.Version.Bytes)))},
		detail{"sha256", string(p.card.Digest)},
		detail{m.w.Say(words.DetailAttempt), fmt.Sprintf("%d / 3", q.Attempt)},
		detail{m.w.Say(words.DetailAsked), q.AskedAt.Time().Local().Format(time.DateTime)},
		detail{m.w.Say(words.DetailDeadline), m.deadlineText(q)},
		detail{m.w.Say(words.DetailQuestion), strings.Join(texts(idsOf(p.all)), "\n")},
		detail{m.w.Say(words.DetailOperation), string(q.Operation)},
		detail{m.w.Say(words.DetailSession), string(q.Session)},
	)
	return rows
}

func texts(ids []events.ID) []string {
	var all []string
	for _, id := range ids {
		all = append(all, string(id))
	}
	return all
}

// changeDetails tells what the arguments were before hooks changed them, whole as
// far as the question has it, and which hooks did.
func (m *Model) changeDetails(p *part) []detail {
	if p.card.Since < 0 {
		return nil
	}
	rows := []detail{{m.w.Say(words.ChangedBy), strings.Join(p.card.ChangedBy, "\n")}}
	if p.comparing() {
		return append(rows, detail{p.card.Was, m.w.Say(words.ChangedLoad)})
	}
	label := p.card.Was
	for _, c := range p.card.Changes {
		name := c.Name
		if name == "" {
			name = card.Whole(p.lead().Kind, m.w)
		}
		was := c.Old.Shown(m.w)
		if c.Added {
			was = m.w.Say(words.ChangedAdded)
		}
		rows = append(rows, detail{label, m.w.Because(name, was)})
	}
	return rows
}

func (m *Model) deadlineText(q events.Question) string {
	if q.Deadline == 0 {
		return m.w.Say(words.DetailNone)
	}
	return q.Deadline.Time().Local().Format(time.DateTime) + " · " + card.Line(q.DeadlineFrom)
}

func (m *Model) markText(d *dialog) string {
	if text := m.marksText(d); text != "" {
		return text
	}
	return m.w.Say(words.DetailNone)
}
