package frontends

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

func full(n int) events.Question {
	q := *asked(here, n, uint64(n))
	q.Gate, q.Kind, q.Path, q.Cwd, q.Reason, q.Previous = events.GateHook, events.KindToolCall, "main", "/p", "May it?", -1
	q.Tool = events.Tool{Name: "write", Kind: "filesystem.write", CallID: "c" + string(id(n))}
	q.Hook = events.Hook{ID: "h", Scope: events.ScopeProject, File: "/p/.agents/hooks.yaml", Line: 6}
	q.ChangedBy = []events.Hook{{ID: "fix", Scope: events.ScopeGlobal, File: "/c/hooks.yaml"}}
	q.Changed = []events.Change{
		{Name: "path", Old: json.RawMessage(`"a"`), New: json.RawMessage(`"b"`)}, {Name: "mode", New: json.RawMessage(`1`)},
	}
	return q
}

// TestB22Equal: one look answers two questions only if nothing that a person looks
// at differs.
func TestB22Equal(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*events.Question)
		equal  bool
	}{
		"another call":           {func(q *events.Question) { q.Tool.CallID = "c2"; q.Operation = id(77); q.AskedAt++ }, true},
		"its deadline":           {func(q *events.Question) { q.Deadline = 5; q.ClaimedBy = by(1, 2) }, true},
		"the args did not fit":   {func(q *events.Question) { q.Args = nil }, true},
		"B109 another session":   {func(q *events.Question) { q.Session = there.session }, false},
		"another gate":           {func(q *events.Question) { q.Gate = "tool_approval" }, false},
		"an input":               {func(q *events.Question) { q.Kind = events.KindUserPrompt }, false},
		"a sub-agent's":          {func(q *events.Question) { q.Path = "main > sub#1" }, false},
		"another tool":           {func(q *events.Question) { q.Tool.Name = "edit" }, false},
		"another kind of tool":   {func(q *events.Question) { q.Tool.Kind = "filesystem.edit" }, false},
		"B58 other bytes":        {func(q *events.Question) { q.Version.Digest = events.DigestOf([]byte("{1}")) }, false},
		"another hook":           {func(q *events.Question) { q.Hook.ID = "h2" }, false},
		"another hook's scope":   {func(q *events.Question) { q.Hook.Scope = events.ScopeGlobal }, false},
		"another hook's file":    {func(q *events.Question) { q.Hook.File = "/x" }, false},
		"another reason":         {func(q *events.Question) { q.Reason = "" }, false},
		"another directory":      {func(q *events.Question) { q.Cwd = "/q" }, false},
		"asked again":            {func(q *events.Question) { q.Previous = 0 }, false},
		"nothing changed":        {func(q *events.Question) { q.Changed = nil }, false},
		"changed by another":     {func(q *events.Question) { q.ChangedBy[0].ID = "x" }, false},
		"changed from other":     {func(q *events.Question) { q.Changed[0].Old = json.RawMessage(`"c"`) }, false},
		"changed to other":       {func(q *events.Question) { q.Changed[0].New = json.RawMessage(`"c"`) }, false},
		"changed under a name":   {func(q *events.Question) { q.Changed[0].Name = "x" }, false},
		"null is not nothing":    {func(q *events.Question) { q.Changed[1].Old = json.RawMessage{} }, false},
		"a value did not travel": {func(q *events.Question) { q.Changed[0].Old, q.Changed[0].New = nil, nil }, false},
	} {
		a, b := full(1), full(2)
		c.change(&b)
		if Equal(a, b) != c.equal || Equal(b, a) != c.equal {
			t.Errorf("%s: equal %v %v, want %v", name, Equal(a, b), Equal(b, a), c.equal)
		}
	}
	a, b := full(1), full(2)
	a.Changed[0] = events.Change{Name: "path"}
	b.Changed[0] = events.Change{Name: "path"}
	if Equal(a, b) {
		t.Error("two changes of which nobody knows the values are taken for equal")
	}
}

// TestB22Groups: every question is in exactly one group, with its equals and in the
// order in which they came.
func TestB22Groups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []events.Question
		for n := range rapid.IntRange(0, 30).Draw(t, "questions") {
			q := full(n)
			q.Reason = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "reason")
			q.Changed[0].Old = json.RawMessage(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "old"))
			all = append(all, q)
		}
		var want [][]events.ID
		taken := map[events.ID]bool{}
		for i, q := range all {
			if taken[q.ID] {
				continue
			}
			var group []events.ID
			for _, other := range all[i:] {
				if Equal(q, other) {
					group, taken[other.ID] = append(group, other.ID), true
				}
			}
			want = append(want, group)
		}
		var got [][]events.ID
		for _, g := range Groups(all) {
			var group []events.ID
			for _, q := range g {
				group = append(group, q.ID)
			}
			got = append(got, group)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("groups (-want +got):\n%s", diff)
		}
	})
}
