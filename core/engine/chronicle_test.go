package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

// anyEvent draws an event of a session.
func anyEvent(t *rapid.T) events.Event {
	turn := rapid.SampledFrom([]string{"", "t1", "t2", "t3"}).Draw(t, "turn")
	run := events.ID(rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run"))
	return rapid.SampledFrom([]events.Event{
		events.SessionOpened{Agent: "generic"},
		events.SessionClosed{Reason: events.EndSessionClosed},
		events.TurnStarted{Turn: turn},
		events.TurnEnded{Turn: turn},
		events.Interrupted{Turn: turn},
		events.BuildChanged{},
		events.HookStarted{Run: run, Event: events.BeforeTurn},
		events.HookRan{Run: run, Event: events.BeforeTurn},
	}).Draw(t, "event")
}

func anyChronicle(t *rapid.T) (c chronicle) {
	for i, ev := range rapid.SliceOfN(rapid.Custom(anyEvent), 0, 40).Draw(t, "events") {
		c.apply(events.Message{Seq: uint64(i + 1), Hash: "h", Events: []events.Event{ev}})
	}
	return c
}

func TestChronicle(t *testing.T) {
	t.Run("B76 the turn that runs is not over, and a list never holds one twice", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c := anyChronicle(t)
			if c.Turn != "" && c.past(c.Turn).Turn != "" {
				t.Errorf("turn %s runs and is over: %+v", c.Turn, c)
			}
			seen := map[string]bool{}
			for _, p := range c.Past {
				if p.Turn == "" || seen[p.Turn] || !p.Ended && !p.Interrupted {
					t.Errorf("%+v", c.Past)
				}
				seen[p.Turn] = true
			}
			if c.Closed != "" && c.Turn != "" && c.Turn != "t1" && c.Turn != "t2" && c.Turn != "t3" {
				t.Errorf("%+v", c)
			}
		})
	})
	t.Run("F3 an older copy stays as it was", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c := anyChronicle(t)
			before, shown := c, fmt.Sprintf("%+v", c)
			c.apply(events.Message{Seq: 99, Events: []events.Event{anyEvent(t), anyEvent(t)}})
			if got := fmt.Sprintf("%+v", before); got != shown {
				t.Errorf("%s became %s", shown, got)
			}
		})
	})
	t.Run("B76 of many turns the newest are remembered", func(t *testing.T) {
		var c chronicle
		for i := range 3 * maxPast {
			c.apply(events.Message{Events: []events.Event{events.TurnEnded{Turn: fmt.Sprint(i)}}})
		}
		if len(c.Past) != maxPast || c.past(fmt.Sprint(3*maxPast-1)).Turn == "" || c.past("0").Turn != "" {
			t.Errorf("%d turns", len(c.Past))
		}
	})
}

// TestReach: what an event ends, by hand.
func TestReach(t *testing.T) {
	const sub = "main > sub#1"
	for _, c := range []struct {
		name       string
		r          reach
		kind       events.Kind
		path, turn string
		want       events.EndReason
	}{
		{"B76 its call", reach{reason: events.EndTurnEnded, turn: "t"}, events.KindToolCall, "main", "t", events.EndTurnEnded},
		{"B76 another turn's call", reach{reason: events.EndTurnEnded, turn: "t"}, events.KindToolCall, "main", "u", ""},
		{"B76 a turn without a name", reach{reason: events.EndTurnEnded}, events.KindToolCall, "main", "u", events.EndTurnEnded},
		{"B69 a prompt of its own", reach{reason: events.EndTurnEnded, turn: "t"}, events.KindUserPrompt, "main", "t", events.EndTurnEnded},
		{"B69 a prompt of none", reach{reason: events.EndTurnEnded}, events.KindUserPrompt, "main", "", ""},
		{"B75 an injection", reach{reason: events.EndTurnEnded}, events.KindInjection, "main", "t", events.EndRunEnded},
		{"B79 an interrupt and an injection", reach{reason: events.EndInterrupted, queue: true}, events.KindInjection, "main", "t", events.EndInterrupted},
		{"B75 a run", reach{reason: events.EndRunEnded, path: sub, queue: true}, events.KindToolCall, sub, "t", events.EndRunEnded},
		{"B75 below a run", reach{reason: events.EndRunEnded, path: sub, queue: true}, events.KindUserPrompt, sub + " > n#2", "", events.EndRunEnded},
		{"B75 beside a run", reach{reason: events.EndRunEnded, path: sub, queue: true}, events.KindToolCall, sub + "0", "t", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.ends(c.kind, c.path, c.turn); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestF3SnapshotKeepsSessions: what was marked and not yet written, and all else
// that a session knows, is the same behind a snapshot.
func TestF3SnapshotKeepsSessions(t *testing.T) {
	project := events.ProjectToken("/p")
	rapid.Check(t, func(t *rapid.T) {
		e := New(Options{})
		names := []string{"root", "sub", "subsub"}
		for i, name := range names {
			ses := e.remember(Place{project, events.SessionToken("core", "generic", name)})
			ses.log = anyChronicle(t)
			ses.log.Seq++ // it is in the log
			ses.log.Owed = rapid.Bool().Draw(t, "owed")
			ses.opened = events.SessionOpened{Agent: "generic", Native: name}
			if i > 0 {
				ses.opened.Parent = events.SessionToken("core", "generic", names[i-1])
			}
			ses.sign.Store(int64(i + 1))
			ses.marked = rapid.MapOfN(rapid.Custom(func(t *rapid.T) events.ID {
				return events.ID(rapid.StringN(1, 3, 3).Draw(t, "id"))
			}), rapid.Just(events.EndInterrupted), 1, 3).Draw(t, "marked")
			ses.unreported = []delivered{{Operation: "o", Turn: "t", Tool: "x", Over: rapid.Bool().Draw(t, "over"), Told: rapid.Bool().Draw(t, "told")}}
		}
		seq, c := e.copyStates()
		data, err := c.encode()
		if err != nil || seq != 0 {
			t.Fatal(err)
		}
		again := New(Options{})
		if err := again.takeCached(data, newRecovery()); err != nil {
			t.Fatal(err)
		}
		for token, ses := range e.sessions {
			other, ok := again.sessions[token]
			if !ok {
				t.Fatalf("session %s is gone", token)
			}
			if diff := cmp.Diff(fmt.Sprintf("%+v", ses.cached()), fmt.Sprintf("%+v", other.cached())); diff != "" {
				t.Error(diff)
			}
		}
		root := again.sessions[events.SessionToken("core", "generic", "root")]
		if family := root.family(); len(family) != 3 || slices.Contains(family[1:], root) {
			t.Errorf("the root has a family of %d", len(family))
		}
	})
}

// BenchmarkHeads is what a renewal costs with 10,000 sessions.
func BenchmarkHeads(b *testing.B) {
	e := New(Options{})
	for i := range 10_000 {
		ses := e.remember(Place{events.ProjectToken(fmt.Sprint(i % 10)), events.SessionToken("core", "generic", fmt.Sprint(i))})
		ses.opened = events.SessionOpened{Agent: "generic", Native: fmt.Sprint(i), ProjectPath: "/p"}
	}
	for _, scope := range []string{events.DoorAll, string(events.SessionToken("core", "generic", "7"))} {
		b.Run(scope, func(b *testing.B) {
			for b.Loop() {
				e.Sessions(scope)
			}
		})
	}
}
