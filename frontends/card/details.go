package card

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// Detail is one row of what is known of a question: what it is called, and what it
// says, in one line or more.
type Detail struct{ Name, Text string }

// Details tells everything that is known of a question: why it is asked, what became
// of what the agent asked for, and which hook, version and times stand behind it.
// others are questions that are equal to it.
func (t Teller) Details(q events.Question, c Card, others ...events.Question) []Detail {
	w := t.Words
	rows := []Detail{
		{c.ReasonLabel, c.Reason},
		{w.Say(words.DetailRule), c.Hook + "\n" + Line(w.Scope(string(q.Hook.Scope))) + " " + Line(q.Hook.File) + ":" + strconv.Itoa(q.Hook.Line)},
	}
	rows = append(rows, t.changes(q, c)...)
	ids := []string{Line(string(q.ID))}
	for _, other := range others {
		ids = append(ids, Line(string(other.ID)))
	}
	return append(rows,
		Detail{w.Say(words.DetailTool), strings.Trim(Line(q.Tool.Name)+" · "+Line(q.Tool.Kind), " ·")},
		Detail{w.Say(words.DetailKind), Line(w.Kind(string(q.Kind)))},
		Detail{w.Say(words.DetailAgent), Line(string(q.Agent))},
		Detail{w.Say(words.DetailPath), Line(q.Path)},
		Detail{w.Say(words.DetailProject), Line(q.ProjectPath)},
		Detail{w.Say(words.DetailDirectory), Line(q.Cwd)},
		Detail{w.Say(words.DetailVersion), fmt.Sprintf("%d · %s", q.Version.N, w.Say(words.Bytes, Count(q.Version.Bytes)))},
		Detail{"sha256", string(c.Digest)},
		Detail{w.Say(words.DetailAttempt), fmt.Sprintf("%d / 3", q.Attempt)},
		Detail{w.Say(words.DetailAsked), LocalTime(q.AskedAt)},
		Detail{w.Say(words.DetailDeadline), t.deadline(q)},
		Detail{w.Say(words.DetailQuestion), strings.Join(ids, "\n")},
		Detail{w.Say(words.DetailOperation), Line(string(q.Operation))},
		Detail{w.Say(words.DetailSession), Line(string(q.Session))},
	)
}

// changes tells what the arguments were before hooks changed them, whole as far as
// the question has it, and which hooks did.
func (t Teller) changes(q events.Question, c Card) []Detail {
	if c.Since < 0 {
		return nil
	}
	rows := []Detail{{t.Words.Say(words.ChangedBy), strings.Join(c.ChangedBy, "\n")}}
	if c.Missing {
		return append(rows, Detail{c.Was, t.Words.Say(words.ChangedLoad)})
	}
	for _, change := range c.Changes {
		name := change.Name
		if name == "" {
			name = Whole(q.Kind, t.Words)
		}
		was := change.Old.Shown(t.Words)
		if change.Added {
			was = t.Words.Say(words.ChangedAdded)
		}
		rows = append(rows, Detail{c.Was, t.Words.Because(name, was)})
	}
	return rows
}

func (t Teller) deadline(q events.Question) string {
	if q.Deadline == 0 {
		return t.Words.Say(words.DetailNone)
	}
	return LocalTime(q.Deadline) + " · " + Line(q.DeadlineFrom)
}

// LocalTime writes a moment as the reader's clock shows it, "" for none.
func LocalTime(at events.Micros) string {
	if at == 0 {
		return ""
	}
	return at.Time().Local().Format(time.DateTime)
}
