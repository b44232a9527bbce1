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
	if d.card == nil {
		return
	}
	if d.details != nil {
		d.details = nil
		return
	}
	text := m.detailText(d)
	d.details = &box{text: text, bytes: len(text), raw: text, bare: true}
	d.details.layout(m.width - detailMargin)
}

// detailMargin is what the frame takes of the details' width.
const detailMargin = 5

func (m *Model) detailText(d *dialog) string {
	q := d.q
	rows := [][2]string{
		{m.w.Say(words.Reason), d.card.Reason},
		{m.w.Say(words.DetailRule), d.card.Hook},
		{"", m.w.Scope(string(q.Hook.Scope)) + " " + card.Line(q.Hook.File) + ":" + strconv.Itoa(q.Hook.Line)},
		{m.w.Say(words.DetailTool), card.Line(q.Tool.Name) + " · " + card.Line(q.Tool.Kind)},
		{m.w.Say(words.DetailKind), m.w.Kind(string(q.Kind))},
		{m.w.Say(words.DetailAgent), card.Line(string(q.Agent))},
		{m.w.Say(words.DetailPath), card.Line(q.Path)},
		{m.w.Say(words.DetailProject), card.Line(q.ProjectPath)},
		{m.w.Say(words.DetailDirectory), card.Line(q.Cwd)},
		{m.w.Say(words.DetailVersion), fmt.Sprintf("%d · %s", q.Version.N, m.w.Say(words.Bytes, card.Count(q.Version.Bytes)))},
		{"sha256", string(d.card.Digest)},
		{m.w.Say(words.DetailAttempt), fmt.Sprintf("%d / 3", q.Attempt)},
		{m.w.Say(words.DetailAsked), q.AskedAt.Time().Local().Format(time.DateTime)},
		{m.w.Say(words.DetailDeadline), m.deadlineText(q)},
		{m.w.Say(words.DetailReceived), m.w.Say(words.Screens, q.ReceivedBy)},
		{m.w.Say(words.DetailMarks), m.markText(d)},
		{m.w.Say(words.DetailQuestion), string(q.ID)},
		{m.w.Say(words.DetailOperation), string(q.Operation)},
		{m.w.Say(words.DetailSession), string(q.Session)},
		{m.w.Say(words.DetailKeys), m.w.Say(words.MoreKeys)},
	}
	widest := 0
	for _, r := range rows {
		widest = max(widest, cells(r[0]))
	}
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(pad(r[0], widest+1) + strings.ReplaceAll(r[1], "\n", "\n"+pad("", widest+1)))
	}
	return b.String()
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
