package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
)

func TestF7AnEditIsADiffAndItsWholeValues(t *testing.T) {
	for _, size := range sizes {
		bubble(t, size.width, size.height, func(tm *terminal) {
			tm.ask(edit())
			tm.settle()
			seen := ""
			for range 120 {
				checkFits(t, tm.m)
				seen += tm.text() + "\n"
				tm.press("down")
			}
			for _, want := range []string{"− ", "+ ", "line(twelve", "line(30)", "unchanged lines", "file_path", "new_string", "old_string", "line(39)"} {
				if !strings.Contains(seen, want) {
					t.Errorf("%s: %q was never in sight", size.name, want)
				}
			}
		})
	}
}

// TestF7NoLineOfADiffWritesItsSign: signs and numbers stand where no text can.
func TestF7NoLineOfADiffWritesItsSign(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(question("q1", "Edit", `{"new_string":"a\n+ forged\n12 − forged","old_string":"a"}`))
		tm.settle()
		for _, l := range plainScreen(tm.m) {
			if strings.Contains(l, "12 − forged") && !strings.Contains(l, "+ 12 − forged") && !strings.Contains(l, "│ 12 − forged") {
				t.Errorf("a line passes for a sign: %q", l)
			}
		}
	})
}

// TestF7RowsOfADiff has any lines in any width: each is drawn once, behind its own
// sign and number.
func TestF7RowsOfADiff(t *testing.T) {
	m := New(t.Context(), Options{})
	rapid.Check(t, func(r *rapid.T) {
		var lines []card.DiffLine
		for i := range rapid.IntRange(1, 30).Draw(r, "lines") {
			sign := rapid.SampledFrom([]byte{' ', '+', '-', '@', '*'}).Draw(r, "sign")
			text := fmt.Sprintf("<%d>%s", i, strings.Repeat("word ", rapid.IntRange(0, 30).Draw(r, "words")))
			lines = append(lines, card.DiffLine{Sign: sign, Text: text, Old: i + 1, New: i + 2})
		}
		b := newDiffBox("diff", lines)
		width := rapid.IntRange(14, 120).Draw(r, "width")
		b.layout(0, width)
		rows := b.view(m, 4, width+8, b.need(), false)
		at := 0
		for i, l := range lines {
			mark := fmt.Sprintf("<%d>", i)
			for at < len(rows) && !strings.Contains(rows[at], mark) {
				at++
			}
			if at == len(rows) {
				r.Fatalf("line %d is not drawn in %d", i, width)
			}
			sign := map[byte]string{' ': "  ", '+': "+ ", '-': "− ", '@': "  ", '*': "* "}[l.Sign]
			row := ansi.Strip(rows[at])
			if before, _, _ := strings.Cut(row, mark); !strings.HasSuffix(before, sign) {
				r.Fatalf("line %d %q stands behind %q", i, l.Sign, before)
			}
			if cells(strings.TrimRight(row, " ")) > width+8 {
				r.Fatalf("%q is wider than %d", row, width+8)
			}
		}
	})
}

func TestB108ARepeatIsToldWithItsHooks(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(repeatedLines())
		tm.settle()
		for _, want := range []string{
			"asked again, 1 of 3", "a hook changed command after you continued", "3 − terraform apply",
			"3 + terraform apply -var region=eu", "changed by", "add-region (global hooks.yaml:14)",
		} {
			if !strings.Contains(tm.text(), want) {
				t.Errorf("%q is missing:\n%s", want, tm.text())
			}
		}
	})
}

// TestF8WhatTheAgentAskedFor: a first question about what hooks made says so, and
// "?" has what it was.
func TestF8WhatTheAgentAskedFor(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(changedBefore())
		tm.settle()
		if !strings.Contains(tm.text(), "add-region (global hooks.yaml:14) · ? shows") {
			t.Errorf("the hook is not named:\n%s", tm.text())
		}
		tm.press("?")
		for _, want := range []string{"asked for", "command: terraform apply", "add-region"} {
			if !strings.Contains(tm.text(), want) {
				t.Errorf("%q is missing:\n%s", want, tm.text())
			}
		}
		if strings.Contains(tm.text(), "shown by") {
			t.Errorf("how many screens show it is nobody's cause:\n%s", tm.text())
		}
	})
	t.Run("fetched when it did not travel, and answerable meanwhile", func(t *testing.T) {
		bubble(t, 80, 24, func(tm *terminal) {
			q := changedBefore()
			q.Changed = []events.Change{{Name: "command"}}
			tm.ask(q)
			tm.settle()
			tm.desk.change(func() { tm.desk.args["q3 v0"] = []byte(`{"command":"terraform plan"}`) })
			tm.press("?")
			tm.settle()
			tm.settle()
			if !strings.Contains(tm.text(), "command: terraform plan") {
				t.Errorf("not fetched:\n%s", tm.text())
			}
			tm.press("c")
			one(t, tm)
		})
	})
}
