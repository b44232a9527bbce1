package tui

import (
	"strings"

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
	d.details.layout(0, m.width-detailMargin)
	d.details.seek(at)
	d.wide = m.width
}

// detailMargin is what the frame takes of the details' width.
const detailMargin = 5

// detailBlocks has rows for each part, and the keys at the end.
func (m *Model) detailBlocks(d *dialog) [][]card.Detail {
	var blocks [][]card.Detail
	for i, p := range d.parts {
		rows := m.teller().Details(p.lead(), *p.card, p.all[1:]...)
		if d.set() {
			rows = append([]card.Detail{{Name: m.heading(d, i)}}, rows...)
		}
		blocks = append(blocks, rows)
	}
	return append(blocks, []card.Detail{
		{Name: m.w.Say(words.DetailMarks), Text: m.markText(d)},
		{Name: m.w.Say(words.DetailKeys), Text: m.w.Say(words.MoreKeys)},
	})
}

// tables writes blocks of rows in two columns, in a width; 0 is as wide as they are.
func tables(blocks [][]card.Detail, width int) string {
	widest := 0
	for _, rows := range blocks {
		for _, r := range rows {
			if r.Text != "" {
				widest = max(widest, cells(r.Name)+2)
			}
		}
	}
	var parts []string
	for _, rows := range blocks {
		var lines []string
		for _, r := range rows {
			lines = append(lines, detailLines(r, widest, width)...)
		}
		parts = append(parts, strings.Join(lines, "\n"))
	}
	return strings.Join(parts, "\n\n")
}

// detailLines writes one row. What is said stays in its column.
func detailLines(d card.Detail, label, width int) []string {
	if d.Text == "" {
		return []string{d.Name}
	}
	if width == 0 {
		return []string{pad(d.Name, label) + strings.ReplaceAll(d.Text, "\n", "\n"+pad("", label))}
	}
	var out []string
	w := wrap(d.Text, width-label)
	for i := range w.Len() {
		said, _ := w.Row(i)
		out = append(out, pad(d.Name, label)+strings.TrimRight(said, " "))
		d.Name = ""
	}
	return out
}

func (m *Model) markText(d *dialog) string {
	if text := m.marksText(d); text != "" {
		return text
	}
	return m.w.Say(words.DetailNone)
}
