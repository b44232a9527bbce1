package frontends

import (
	"bytes"
	"slices"

	"github.com/fermata-hitl/fermata/events"
)

// Equal reports whether one look answers both questions: in the same session, at
// the same place, the same hook asks the same thing about the same tool and the
// same bytes, and the same was changed on the way. A change whose values did not
// travel is equal to nothing.
func Equal(a, b events.Question) bool {
	return alikeOf(a) == alikeOf(b) &&
		slices.EqualFunc(a.ChangedBy, b.ChangedBy, sameHook) &&
		slices.EqualFunc(a.Changed, b.Changed, sameChange)
}

// alike is what equal questions have in common, as far as Go compares it.
type alike struct {
	project, session events.Token
	gate             events.Gate
	kind             events.Kind
	path             string
	tool, toolKind   string
	digest           events.Digest
	hook             string
	scope            events.Scope
	file             string
	reason, cwd      string
	first            bool
}

func alikeOf(q events.Question) alike {
	return alike{
		q.Project, q.Session, q.Gate, q.Kind, q.Path, q.Tool.Name, q.Tool.Kind, q.Version.Digest,
		q.Hook.ID, q.Hook.Scope, q.Hook.File, q.Reason, q.Cwd, q.Previous < 0,
	}
}

func sameHook(a, b events.Hook) bool { return a.ID == b.ID && a.Scope == b.Scope && a.File == b.File }

func sameChange(a, b events.Change) bool {
	travelled := a.Old != nil || a.New != nil
	return travelled && a.Name == b.Name && same(a.Old, b.Old) && same(a.New, b.New)
}

// same compares values of which an absent one is equal to no other.
func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// Groups puts questions together that are [Equal]. A group stands where its first
// question stood, and holds its questions in their order.
func Groups(questions []events.Question) [][]events.Question {
	var groups [][]events.Question
	at := map[alike][]int{} // the groups that may fit
	for _, q := range questions {
		key := alikeOf(q)
		fits := slices.IndexFunc(at[key], func(g int) bool { return Equal(groups[g][0], q) })
		if fits >= 0 {
			g := at[key][fits]
			groups[g] = append(groups[g], q)
			continue
		}
		at[key] = append(at[key], len(groups))
		groups = append(groups, []events.Question{q})
	}
	return groups
}
