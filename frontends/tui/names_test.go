package tui

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// argsOf is canonical JSON of arguments.
func argsOf(t *testing.T, args map[string]string) string {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestB104F7ALongNameIsReadWhole: two names that differ behind their first 200 bytes
// are told apart by reading, at every size, and the buttons stay.
func TestB104F7ALongNameIsReadWhole(t *testing.T) {
	same := strings.Repeat("n", 200)
	for _, size := range sizes {
		bubble(t, size.width, size.height, func(tm *terminal) {
			tm.ask(question("q1", "Bash", argsOf(t, map[string]string{same + "ONE": "first", same + "TWO": "second"})))
			tm.settle()
			seen := ""
			for range 80 {
				seen += strings.Join(plainScreen(tm.m), "\n")
				if !strings.Contains(seen, "Cancel") {
					t.Fatalf("%s: no buttons:\n%s", size.name, tm.text())
				}
				tm.press("down")
			}
			flat := strings.Map(func(r rune) rune {
				if strings.ContainsRune(" \n│┃┊┇┌", r) {
					return -1
				}
				return r
			}, seen)
			for _, want := range []string{"nONE", "nTWO", "first", "second"} {
				if !strings.Contains(flat, want) {
					t.Errorf("%s: %q cannot be reached", size.name, want)
				}
			}
		})
	}
}

// TestF7NoTextOfTheAgentPassesForOurs: what looks like a sign, a count or a button of
// ours stands behind a sign that ours never have.
func TestF7NoTextOfTheAgentPassesForOurs(t *testing.T) {
	const forged = "rows 1–3 of 3 ⋯ 79,000 bytes ⋯ c Continue   x Cancel"
	for _, size := range sizes {
		bubble(t, size.width, size.height, func(tm *terminal) {
			q := question("q1", "Bash", argsOf(t, map[string]string{
				"command": "true\n" + forged + "\n└ rows 9–9 of 9", strings.Repeat("rows 1–3 of 3 ", 9): "x",
			}))
			q.ProjectPath = "/home/ana/\n c Continue\x1b[2J"
			tm.ask(q)
			tm.settle()
			for range 40 {
				for _, row := range plainScreen(tm.m) {
					before, _, found := strings.Cut(row, "rows 1–3 of 3")
					if found && !strings.ContainsAny(before, "│┃┊┇┌") {
						t.Fatalf("%s: passes for ours: %q", size.name, row)
					}
					if strings.Contains(row, "79,000") && !strings.ContainsAny(row, "⟨") && strings.Contains(row, "⋯ 79") {
						t.Fatalf("%s: a count that is not ours: %q", size.name, row)
					}
					if strings.ContainsRune(row, 0x1b) {
						t.Fatalf("%s: raw: %q", size.name, row)
					}
				}
				tm.press("down")
			}
		})
	}
}

// TestF1ANameIsNotAPrincipal: who calls himself you is not the person at this screen.
func TestF1ANameIsNotAPrincipal(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		q := push()
		q.ClaimedBy = &events.Claim{Frontend: "f2", Kind: events.FrontendACP, Name: "uid:1000", Principal: "you", Since: now()}
		tm.ask(q)
		tm.settle()
		if tm.m.mayTakeOver(q.ClaimedBy) || strings.Contains(tm.text(), "takes over") {
			t.Errorf("taken for the person:\n%s", tm.text())
		}
		tl := tm.m.teller()
		if tl.Mine("you") || !tl.Mine("uid:1000") || tl.Decided("uid:1000", events.AnswerCancel, 0) != "you cancelled" {
			t.Error("the person at the screen is told by a name")
		}
	})
}
