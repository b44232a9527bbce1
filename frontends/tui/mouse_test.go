package tui

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// click presses the left button on the first place where a text stands.
func (tm *terminal) click(t *testing.T, text string) {
	t.Helper()
	for y, l := range strings.Split(tm.text(), "\n") {
		if before, _, found := strings.Cut(l, text); found {
			tm.send(tea.MouseClickMsg{X: cells(before), Y: y, Button: tea.MouseLeft})
			synctest.Wait()
			return
		}
	}
	t.Fatalf("%q is not on the screen:\n%s", text, tm.text())
}

func TestTheMouseOpensRows(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.click(t, "npm test")
		if d := tm.m.dialog; d == nil || len(d.questions()) != 2 {
			t.Fatalf("not opened:\n%s", tm.text())
		}
		t.Run("F9 no click answers before the question could be read", func(t *testing.T) {
			tm.click(t, "Continue")
			tm.click(t, "│ npm test")
			if len(tm.desk.answers)+len(tm.desk.claims) != 0 {
				t.Fatal("a click counted at once")
			}
			tm.wait(400 * time.Millisecond)
			tm.click(t, "Continue")
			tm.wait(400 * time.Millisecond)
			tm.click(t, "Continue")
			if len(tm.desk.answers) != 0 {
				t.Fatal("a click within 500 ms of another one answered")
			}
			tm.settle()
			tm.click(t, "Continue")
			if len(tm.desk.answers) != 2 {
				t.Errorf("%d answers", len(tm.desk.answers))
			}
		})
		tm.settle()
		tm.press("esc")
		tm.click(t, "https://example.org")
		if tm.m.on != screenReceipt || !strings.Contains(tm.text(), "use the mirror") {
			t.Errorf("no receipt:\n%s", tm.text())
		}
		tm.click(t, "Esc back")
		tm.click(t, "h hooks")
		tm.click(t, "redline-scan")
		if tm.m.on != screenRun || !strings.Contains(tm.text(), "call rejected") {
			t.Errorf("no run:\n%s", tm.text())
		}
		if len(tm.desk.answers) != 2 {
			t.Error("a click in the list answered")
		}
	})
}

func TestTheMouseTicks(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.send(tea.MouseClickMsg{X: 1, Y: 3, Button: tea.MouseLeft})
		synctest.Wait()
		if tm.m.dialog != nil || !strings.Contains(tm.text(), "1 ticked") {
			t.Errorf("not ticked:\n%s", tm.text())
		}
		for _, b := range []tea.MouseButton{tea.MouseRight, tea.MouseMiddle} {
			tm.send(tea.MouseClickMsg{X: 20, Y: 3, Button: b})
			synctest.Wait()
			if tm.m.dialog != nil {
				t.Errorf("button %v opened a question", b)
			}
		}
	})
}

func TestTheWheelMovesWhatIsUnderIt(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		tm.press("home")
		tm.send(tea.MouseWheelMsg{X: 5, Y: 4, Button: tea.MouseWheelDown})
		synctest.Wait()
		if tm.m.list.cursor != wheelRows || tm.m.inEarlier() {
			t.Errorf("row %d", tm.m.list.cursor)
		}
		tm.send(tea.MouseWheelMsg{X: 5, Y: 15, Button: tea.MouseWheelDown})
		synctest.Wait()
		if tm.m.list.earlier.cursor != wheelRows || !tm.m.inEarlier() {
			t.Errorf("earlier row %d", tm.m.list.earlier.cursor)
		}
		tm.press("?")
		tm.send(tea.MouseWheelMsg{X: 5, Y: 15, Button: tea.MouseWheelDown})
		synctest.Wait()
		if tm.m.page.top != wheelRows {
			t.Errorf("page at %d", tm.m.page.top)
		}
	})
}

func TestTheTerminalsOwnSelection(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		for _, want := range []tea.MouseMode{tea.MouseModeCellMotion, tea.MouseModeNone, tea.MouseModeCellMotion} {
			if got := tm.m.View().MouseMode; got != want {
				t.Fatalf("mouse mode %v, want %v", got, want)
			}
			tm.press("m")
		}
	})
}
