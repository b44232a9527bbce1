package tui

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends/words"
)

var sizes = []struct {
	name          string
	width, height int
}{{"80x24", 80, 24}, {"200x50", 200, 50}, {"40x20", 40, 20}, {"40x10", 40, 10}, {"40x8", 40, 8}}

// askEqual asks the same several times, as an agent does that calls a tool in a loop.
func askEqual(tm *terminal, n int) {
	for i := range n {
		q := push()
		q.ID = events.ID(fmt.Sprint("e", i))
		tm.desk.questions = append(tm.desk.questions, q)
	}
	tm.send(changedMsg{})
	synctest.Wait()
}

// askSet opens several different questions at once, one of them twice.
func askSet(tm *terminal) {
	twice := push()
	twice.ID = "q1b"
	tm.desk.questions = append(tm.desk.questions, push(), repeated(), twice, longQuestion(300))
	tm.send(changedMsg{})
	tm.settle()
	tm.press("esc")
	tm.m.openSet(tm.desk.Questions())
	tm.send(changedMsg{})
	synctest.Wait()
}

var addRegion = events.Hook{ID: "add-region", Scope: events.ScopeGlobal, File: "/home/ana/.config/fermata/hooks.yaml", Line: 14}

// changedBefore is asked for the first time, of what a hook made.
func changedBefore() events.Question {
	q := repeated()
	q.Attempt, q.Previous, q.ChangedBy = 0, -1, []events.Hook{addRegion}
	return q
}

func edit() events.Question {
	var before, after strings.Builder
	for i := range 40 {
		fmt.Fprintf(&before, "\tline(%d)\n", i)
		if i == 12 {
			after.WriteString("\tline(twelve, with an argument that is long enough to need a second row on most screens)\n")
			continue
		}
		if i != 30 {
			fmt.Fprintf(&after, "\tline(%d)\n", i)
		}
	}
	args, _ := json.Marshal(map[string]string{
		"file_path": "src/pay.go", "new_string": after.String(), "old_string": before.String(),
	})
	q := question("q7", "Edit", string(args))
	q.Tool.Kind = "filesystem.edit"
	return q
}

func patch() events.Question {
	text := "--- a/src/pay.go\n+++ b/src/pay.go\n@@ -10,4 +10,4 @@ func pay() {\n \tcheck()\n-\tcharge(1)\n+\tcharge(2)\n \tdone()\n }\n"
	q := question("q8", "apply_patch", `{"patch":`+strconv.Quote(text)+`}`)
	q.Tool.Kind = "filesystem.edit"
	return q
}

// repeatedLines is asked again after a hook changed one line of many.
func repeatedLines() events.Question {
	old, now := "set -e\ncd infra\nterraform apply\necho done\n", "set -e\ncd infra\nterraform apply -var region=eu\necho done\n"
	q := question("q9", "Bash", `{"command":`+strconv.Quote(now)+`}`)
	q.Attempt, q.Previous, q.Version.N, q.ChangedBy = 1, 0, 1, []events.Hook{addRegion}
	q.Changed = []events.Change{{Name: "command", Old: []byte(strconv.Quote(old)), New: []byte(strconv.Quote(now))}}
	return q
}

func TestB101GoldenScreens(t *testing.T) {
	scenes := []struct {
		name string
		show func(*terminal)
	}{
		{"question", func(tm *terminal) { tm.ask(push()); tm.settle() }},
		{"fresh", func(tm *terminal) { tm.ask(push()) }},
		{"long", func(tm *terminal) { tm.ask(longQuestion(80_000)); tm.settle(); tm.press("end") }},
		{"again", func(tm *terminal) { tm.ask(repeated()); tm.settle() }},
		{"tricky", func(tm *terminal) { tm.ask(tricky()); tm.settle() }},
		{"many", func(tm *terminal) { tm.ask(many()); tm.settle(); tm.press("down", "down", "down") }},
		{"why", func(tm *terminal) { tm.ask(push()); tm.settle(); tm.press("?") }},
		{"words", func(tm *terminal) { tm.ask(push()); tm.settle(); tm.press("w", "n", "o") }},
		{"many-words", func(tm *terminal) {
			tm.ask(push())
			tm.settle()
			tm.press("w")
			tm.send(tea.PasteMsg{Content: "Please use the staging remote; the production branch is frozen until Monday.\nThen ask again."})
			synctest.Wait()
		}},
		{"line-break", func(tm *terminal) {
			tm.ask(question("q1", "write_file", `{"content":"held, then let go on.\n\n","path":"notes.txt"}`))
			tm.settle()
		}},
		{"global", func(tm *terminal) {
			q := push()
			q.Hook.Scope, q.Hook.File, q.Hook.Line = events.ScopeGlobal, "/home/ana/.config/fermata/hooks.yaml", 1204
			tm.ask(q)
			tm.settle()
		}},
		{"elsewhere", func(tm *terminal) {
			q := push()
			q.Hook.File, q.Hook.Line = "/home/ana/work/a-long-name/of-a-directory/that-holds/another/.fermata/hooks.yaml", 1204
			tm.ask(q)
			tm.settle()
		}},
		{"tricky-claimed", func(tm *terminal) {
			tm.ask(tricky())
			tm.desk.claimed("q4", &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Principal: "uid:1000", Since: now(), Claim: 9})
			tm.wait(6 * time.Second)
		}},
		{"focus", func(tm *terminal) { tm.ask(push()); tm.settle(); tm.press("tab", "tab", "tab", "tab") }},
		{"claimed", func(tm *terminal) {
			tm.ask(push())
			tm.desk.claimed("q1", &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Name: "root", Principal: "ana", Since: now(), Claim: 9})
			tm.wait(6 * time.Second)
		}},
		{"yours-elsewhere", func(tm *terminal) {
			tm.ask(push())
			tm.desk.claimed("q1", &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Principal: "uid:1000", Since: now(), Claim: 9})
			tm.wait(6 * time.Second)
		}},
		{"deadline", func(tm *terminal) {
			q := push()
			q.Deadline = events.At(time.Now().Add(time.Minute))
			tm.ask(q)
			tm.wait(50 * time.Second)
		}},
		{"message", func(tm *terminal) {
			tm.ask(input(events.KindUserPrompt, `"Deploy it with this key:\n\n  sk-ant-1234567890\n\nand tell me when it is done. If the first try fails, wait a minute and try once more."`))
			tm.settle()
		}},
		{"injection", func(tm *terminal) {
			tm.ask(input(events.KindInjection, `"Use `+"\u202e"+`gnigats, not production."`))
			tm.settle()
		}},
		{"retry-note", func(tm *terminal) {
			q := input(events.KindRetryNote, `"Try again with the new token."`)
			q.Path = "main > deploy#2"
			tm.ask(q)
			tm.settle()
		}},
		{"sub-agent", func(tm *terminal) {
			q := push()
			q.Path = "main > reviewer#1 > runs-the-tests#12"
			tm.ask(q)
			tm.settle()
		}},
		{"sub-agent-again", func(tm *terminal) {
			q := repeated()
			q.Path = "main > reviewer#1"
			tm.ask(q)
			tm.settle()
		}},
		{"set", func(tm *terminal) { askSet(tm); tm.settle() }},
		{"set-end", func(tm *terminal) {
			askSet(tm)
			tm.settle()
			for range 24 {
				tm.press("end", "down")
			}
		}},
		{"set-why", func(tm *terminal) { askSet(tm); tm.settle(); tm.press("?") }},
		{"equal", func(tm *terminal) { askEqual(tm, 3); tm.settle() }},
		{"first", func(tm *terminal) { tm.ask(changedBefore()); tm.settle() }},
		{"first-why", func(tm *terminal) { tm.ask(changedBefore()); tm.settle(); tm.press("?") }},
		{"edit", func(tm *terminal) { tm.ask(edit()); tm.settle() }},
		{"edit-end", func(tm *terminal) { tm.ask(edit()); tm.settle(); tm.press("end") }},
		{"patch", func(tm *terminal) { tm.ask(patch()); tm.settle() }},
		{"again-lines", func(tm *terminal) { tm.ask(repeatedLines()); tm.settle() }},
		{"claimed-by-you", func(tm *terminal) {
			tm.ask(push())
			tm.desk.claimed("q1", &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Principal: "uid:1000", Since: now(), Claim: 9})
			tm.wait(6 * time.Second)
		}},
	}
	for _, s := range scenes {
		for _, size := range sizes {
			t.Run(s.name+"/"+size.name, func(t *testing.T) {
				bubble(t, size.width, size.height, func(tm *terminal) {
					s.show(tm)
					golden(t, s.name+"-"+size.name, tm)
				})
			})
		}
	}
}

// TestB125ScreensInChinese has every sentence of the dialog in Chinese.
func TestB125ScreensInChinese(t *testing.T) {
	for name, show := range map[string]func(*terminal){
		"again": func(tm *terminal) { tm.ask(repeated()); tm.settle() },
		"why":   func(tm *terminal) { tm.ask(changedBefore()); tm.settle(); tm.press("?") },
		"set":   func(tm *terminal) { askSet(tm); tm.settle() },
		"edit":  func(tm *terminal) { tm.ask(edit()); tm.settle(); tm.press("down") },
	} {
		for _, size := range sizes {
			synctest.Test(t, func(t *testing.T) {
				tm := newTerminal(t.Context(), size.width, size.height, words.Chinese)
				defer tm.close()
				show(tm)
				golden(t, "chinese-"+name+"-"+size.name, tm)
			})
		}
	}
}

// TestF8ColoursSayNothingAlone has the bytes of a screen on a dark and on a light
// terminal, and what is left of them without colours.
func TestF8ColoursSayNothingAlone(t *testing.T) {
	for _, c := range []struct {
		name string
		dark bool
	}{{"dark", true}, {"light", false}} {
		bubble(t, 80, 24, func(tm *terminal) {
			tm.m.style = newStyles(c.dark)
			tm.ask(edit())
			tm.settle()
			tm.press("down")
			tm.mu.Lock()
			content := tm.m.View().Content
			tm.mu.Unlock()
			goldenText(t, "colours-"+c.name, strings.ReplaceAll(content, "\x1b", "␛")+"\n")
		})
	}
}
