package tui

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

// env is an environment.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// ringing runs f with a terminal that shows messages with sequence 9, and a core that
// lets this screen call.
func ringing(t *testing.T, f func(*terminal)) {
	t.Helper()
	bubble(t, 80, 24, func(tm *terminal) {
		tm.m.o.Getenv = env("TERM_PROGRAM", "WezTerm")
		tm.desk.mayRing = true
		f(tm)
	})
}

const called = "\x1b]9;fermata: Bash of claude waits for you\a"

func TestRingsForANewQuestion(t *testing.T) {
	t.Run("at once by the bell, after three seconds in words", func(t *testing.T) {
		ringing(t, func(tm *terminal) {
			tm.send(tea.BlurMsg{})
			tm.ask(push())
			if got := tm.written(); got != "\a" {
				t.Fatalf("wrote %q", got)
			}
			tm.wait(2900 * time.Millisecond)
			if got := tm.written(); got != "\a" || len(tm.desk.asked()) != 0 {
				t.Fatalf("wrote %q, asked for %v", got, tm.desk.asked())
			}
			tm.wait(1500 * time.Millisecond)
			if got := tm.written(); got != "\a"+called {
				t.Fatalf("wrote %q", got)
			}
			tm.wait(time.Minute)
			if got := tm.written(); got != "\a"+called || len(tm.desk.asked()) != 1 {
				t.Errorf("wrote %q, asked for %v", got, tm.desk.asked())
			}
		})
	})
	t.Run("never what the call would do", func(t *testing.T) {
		ringing(t, func(tm *terminal) {
			tm.send(tea.BlurMsg{})
			tm.ask(push())
			tm.wait(10 * time.Second)
			if got := tm.written(); got == "" || strings.Contains(got, "git") || strings.Contains(got, "myproj") {
				t.Errorf("wrote %q", got)
			}
		})
	})
	t.Run("not when another screen calls", func(t *testing.T) {
		ringing(t, func(tm *terminal) {
			tm.desk.mayRing = false
			tm.send(tea.BlurMsg{})
			tm.ask(push())
			tm.wait(10 * time.Second)
			if got := tm.written(); got != "\a" || len(tm.desk.asked()) != 1 {
				t.Errorf("wrote %q, asked for %v", got, tm.desk.asked())
			}
		})
	})
	t.Run("a terminal that shows no messages leaves that to who can", func(t *testing.T) {
		ringing(t, func(tm *terminal) {
			tm.m.o.Getenv = env("TERM", "xterm-256color")
			tm.send(tea.BlurMsg{})
			tm.ask(push())
			tm.wait(30 * time.Second)
			if got := tm.written(); got != "\a" || len(tm.desk.asked()) != 0 {
				t.Errorf("wrote %q, asked for %v", got, tm.desk.asked())
			}
		})
	})
	t.Run("not in words when it ends or is claimed before", func(t *testing.T) {
		ringing(t, func(tm *terminal) {
			tm.send(tea.BlurMsg{})
			tm.ask(push())
			tm.ask(longQuestion(100))
			tm.wait(time.Second)
			tm.desk.end("q1", events.EndTurnEnded)
			tm.desk.claimed("q2", &events.Claim{Frontend: "fe2", Principal: "uid:7", Since: now(), Claim: 9})
			tm.wait(30 * time.Second)
			if got := tm.written(); got != "\a\a" || len(tm.desk.asked()) != 0 {
				t.Errorf("wrote %q, asked for %v", got, tm.desk.asked())
			}
		})
	})
	t.Run("not for what the person looks at", func(t *testing.T) {
		ringing(t, func(tm *terminal) {
			tm.send(tea.FocusMsg{})
			tm.ask(push())
			tm.wait(30 * time.Second)
			if got := tm.written(); got != "" || len(tm.desk.asked()) != 0 {
				t.Fatalf("wrote %q", got)
			}
			tm.ask(longQuestion(100)) // behind the one on the screen
			if got := tm.written(); got != "\a" {
				t.Fatalf("wrote %q", got)
			}
			tm.send(tea.BlurMsg{})
			tm.wait(5 * time.Second)
			if got := tm.written(); !strings.Contains(got, called) {
				t.Errorf("nobody is called who went away: %q", got)
			}
		})
	})
	t.Run("a key tells that somebody is there, for a while", func(t *testing.T) {
		ringing(t, func(tm *terminal) {
			tm.wait(present)
			tm.press("down")
			tm.ask(push())
			if got := tm.written(); got != "" {
				t.Fatalf("wrote %q before somebody who types", got)
			}
			tm.wait(present + 5*time.Second)
			if got := tm.written(); got != called {
				t.Errorf("wrote %q", got)
			}
		})
	})
	t.Run("not for what waited when the screen was opened", func(t *testing.T) {
		ringing(t, func(tm *terminal) {
			q := push()
			q.AskedAt -= 60_000_000
			tm.ask(q)
			tm.wait(30 * time.Second)
			if got := tm.written(); got != "" {
				t.Errorf("wrote %q", got)
			}
		})
	})
	t.Run("once for many", func(t *testing.T) {
		ringing(t, func(tm *terminal) {
			tm.send(tea.BlurMsg{})
			tm.desk.change(func() {
				for i := range 200 {
					tm.desk.questions = append(tm.desk.questions, numbered(fmt.Sprint("n", i), "make"))
				}
			})
			synctest.Wait()
			tm.wait(31 * time.Second)
			if got := tm.written(); strings.Count(got, "\a") > 5 || strings.Count(got, called) < 2 {
				t.Errorf("wrote %d bells, %d messages", strings.Count(got, "\a"), strings.Count(got, called))
			}
		})
	})
}

func TestTheTitleCounts(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		if got := tm.m.View().WindowTitle; got != "fermata" {
			t.Errorf("title %q", got)
		}
		tm.ask(push())
		tm.ask(longQuestion(100))
		if v := tm.m.View(); v.WindowTitle != "(2) fermata" || !v.ReportFocus {
			t.Errorf("title %q, focus %v", v.WindowTitle, v.ReportFocus)
		}
	})
}

func TestNotificationsFitTheTerminal(t *testing.T) {
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"TERM", "xterm-256color"}, ""},
		{[]string{"TERM_PROGRAM", "Apple_Terminal"}, ""},
		{[]string{"TERM_PROGRAM", "iTerm.app"}, "\x1b]9;fermata: a, b\a"},
		{[]string{"TERM", "xterm-kitty"}, "\x1b]9;fermata: a, b\a"},
		{[]string{"VTE_VERSION", "7600", "TERM", "xterm-256color"}, "\x1b]777;notify;fermata;a, b\x1b\\"},
		{[]string{"TERM", "foot"}, "\x1b]777;notify;fermata;a, b\x1b\\"},
		{[]string{"TERM", "tmux-256color", "TERM_PROGRAM", "tmux", "TMUX", "/tmp/t,1,0"}, ""},
		{
			[]string{"TERM", "tmux-256color", "TERM_PROGRAM", "tmux", "TMUX", "/tmp/t,1,0", "VTE_VERSION", "7600"},
			"\x1bPtmux;\x1b\x1b]777;notify;fermata;a, b\x1b\x1b\\\x1b\\",
		},
	} {
		if got := notification(env(c.env...), "fermata", "a; b"); got != c.want {
			t.Errorf("%v: %q, want %q", c.env, got, c.want)
		}
	}
}

// TestNotificationsCannotBeSteered has any name of a tool.
func TestNotificationsCannotBeSteered(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.String().Draw(r, "text")
		for _, terminal := range [][]string{{"TERM_PROGRAM", "WezTerm"}, {"VTE_VERSION", "7600"}} {
			got := notification(env(terminal...), "fermata", text)
			inside := strings.TrimSuffix(strings.TrimSuffix(got[1:], "\a"), "\x1b\\")
			if strings.ContainsFunc(inside, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }) ||
				strings.Count(inside, ";") > 3 {
				r.Fatalf("%q", got)
			}
		}
	})
}
