package tui

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/card"
	"github.com/fermata-hitl/fermata/frontends/words"
)

// reader is a model that only tells what it has read.
func reader(ctx context.Context, lang words.Language) *Model {
	return New(ctx, Options{Principal: func() string { return "uid:1000" }, Words: words.In(lang), Home: "/home/ana"})
}

// TestF11ReceiptsTellWhatBecameOfIt has an operation of every sort: its sign, its row
// and the receipt in full.
func TestF11ReceiptsTellWhatBecameOfIt(t *testing.T) {
	want := map[string][3]string{
		"Bash":      {"✓", "you, 2.4 s → ran, 340 ms", "you continued after 2.4 s → delivered → ran, 22 bytes, same digest"},
		"web_fetch": {"✕", "you: “use the mirror”", "you cancelled after 9.0 s"},
		"shell":     {"●", "rule files-read, no question → delivered", "rule files-read, no question → delivered"},
		"Glob":      {"·", "rule files-read, no question → ran, 12 ms", "rule files-read, no question → delivered → ran"},
		"Edit":      {"⌛", "no answer in 5:00", "no answer in 5:00"},
		"rm":        {"✕", "refused by rule redline-scan", "refused by rule redline-scan"},
		"Write":     {"–", "withdrawn: the agent was interrupted", "withdrawn: the agent was interrupted"},
		"Run":       {"✓", "uid:7, 1.0 s → ran, not what was allowed", "uid:7 continued after 1.0 s → delivered → ran, not what was allowed"},
		"deploy":    {"✓", "you, 1.0 s → outcome unknown", "you continued after 1.0 s → outcome unknown"},
		"Read":      {"✕", "a hook took too long: slow-scan", "a hook took too long: slow-scan"},
		"Grep":      {"⌛", "nobody to ask", "nobody to ask"},
		"LS":        {"·", "no question → ran, failed", "no question → delivered → ran, failed"},
	}
	m := reader(t.Context(), words.English)
	lines := someLines()
	for _, l := range lines {
		got := [3]string{card.Sign(l), m.short(l)[0], m.teller().Receipt(l)}
		if got != want[l.Tool.Name] {
			t.Errorf("%s: %q, want %q", l.Tool.Name, got, want[l.Tool.Name])
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines", len(lines))
	}
	t.Run("in fewer words where there is less room", func(t *testing.T) {
		for _, l := range lines {
			short := m.short(l)
			for i := 1; i < len(short); i++ {
				if cells(short[i]) > cells(short[i-1]) {
					t.Errorf("%s: %q", l.Tool.Name, short)
				}
			}
			if card.RanOther(l) != strings.Contains(short[len(short)-1], "not what was allowed") {
				t.Errorf("%s: the warning gives way: %q", l.Tool.Name, short)
			}
		}
	})
}

// TestF12AnUnknownOutcomeStaysInTheHistory has an operation that nobody reported.
func TestF12AnUnknownOutcomeStaysInTheHistory(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.press("tab", "/", "s", "t", "a", "g", "i", "n", "g", "enter")
		if !strings.Contains(tm.text(), "outcome unknown") {
			t.Fatalf("not in the list:\n%s", tm.text())
		}
		tm.press("enter")
		if !strings.Contains(tm.text(), "It is not run again") {
			t.Errorf("not explained:\n%s", tm.text())
		}
	})
}

// TestF8TheReceiptNamesTheRule has everything about one operation on Enter.
func TestF8TheReceiptNamesTheRule(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.press("tab", "down", "enter")
		for _, want := range []string{
			"you cancelled after 9.0 s", "“use the mirror”", "ask-before-push", ".fermata/hooks.yaml:6", "https://example.org", "h2",
		} {
			if !strings.Contains(tm.text(), want) {
				t.Errorf("%q is missing:\n%s", want, tm.text())
			}
		}
		tm.press("esc")
		if tm.m.on != screenList || !tm.m.inEarlier() {
			t.Errorf("Esc leads elsewhere:\n%s", tm.text())
		}
	})
}

// TestF11ARowKeepsItsPlace: what becomes of an operation moves nothing, and an open
// receipt follows it.
func TestF11ARowKeepsItsPlace(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.press("tab", "down", "down", "enter")
		if !strings.Contains(tm.text(), "delivered") || strings.Contains(tm.text(), "ran") {
			t.Fatalf("not the row that runs:\n%s", tm.text())
		}
		tm.desk.change(func() {
			for i, l := range tm.desk.lines {
				if l.Tool.Name == "shell" {
					tm.desk.lines[i].State, tm.desk.lines[i].Outcome, tm.desk.lines[i].At = events.LineFinished, events.OutcomeOK, now()+5
				}
			}
			tm.desk.lines = append(tm.desk.lines, events.Line{Operation: "newer", State: events.LineCommitted, At: now()})
		})
		synctest.Wait()
		if !strings.Contains(tm.text(), "delivered → ran") {
			t.Errorf("the receipt stands still:\n%s", tm.text())
		}
		tm.press("esc")
		if l, _ := tm.m.currentLine(); l.Tool.Name != "shell" || tm.m.linesShown()[0].Operation != "newer" {
			t.Errorf("the row moved:\n%s", tm.text())
		}
	})
}

func TestB125EveryReceiptIsChinese(t *testing.T) {
	m, en := reader(t.Context(), words.Chinese), reader(t.Context(), words.English)
	for _, l := range someLines() {
		for i, text := range m.short(l) {
			if !strings.ContainsFunc(text, func(r rune) bool { return r > 0x4e00 }) {
				t.Errorf("%s: %q", l.Tool.Name, text)
			}
			if text == fmt.Sprint(en.short(l)[i]) {
				t.Errorf("%s is not translated: %q", l.Tool.Name, text)
			}
		}
	}
}
