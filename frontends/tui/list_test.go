package tui

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
	"github.com/fermata-hitl/fermata/frontends"
	"github.com/fermata-hitl/fermata/frontends/words"
)

var listSizes = []struct {
	name          string
	width, height int
}{{"80x24", 80, 24}, {"40x10", 40, 10}, {"200x50", 200, 50}}

// browse shows the list over everything that a fake desk has.
func browse(tm *terminal) {
	fillFake(tm.desk)
	tm.desk.questions = append(tm.desk.questions, numbered("r1", "npm test"), numbered("r2", "npm test"), paying(), subAgents())
	tm.desk.sessions = append(tm.desk.sessions, events.SessionHead{Session: "other"})
	tm.send(changedMsg{})
	tm.settle()
	tm.press("esc")
}

func numbered(id, command string) events.Question {
	q := question(id, "Bash", fmt.Sprintf(`{"command":%q}`, command))
	q.Operation = events.ID("op-" + id)
	return q
}

func paying() events.Question {
	q := question("e1", "Edit", `{"file_path":"src/pay.ts","old_string":"a\nb\n","new_string":"a\nc\nd\n"}`)
	q.Tool.Kind, q.Agent, q.ProjectPath = "filesystem.write", "gemini", "/home/ana/src/web-shop"
	q.ClaimedBy = &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Name: "root", Principal: "ana", Since: now(), Claim: 9}
	return q
}

// subAgents asks in a session of its own.
func subAgents() events.Question {
	q := numbered("s1", "rm -r build")
	q.Session, q.Path, q.Agent = "child", "main > reviewer#1 > cleaner#2", "codex"
	q.Deadline = events.At(time.Now().Add(90 * time.Second))
	return q
}

func TestB106ListGoldenScreens(t *testing.T) {
	scenes := []struct {
		name string
		show func(*terminal)
	}{
		{"waiting", func(tm *terminal) { browse(tm) }},
		{"earlier", func(tm *terminal) { browse(tm); tm.press("tab", "down") }},
		{"only-earlier", func(tm *terminal) { fillFake(tm.desk); tm.desk.questions = nil; tm.send(changedMsg{}); synctest.Wait() }},
		{"ticked", func(tm *terminal) { browse(tm); tm.press("down", "space", "space") }},
		{"filtering", func(tm *terminal) { browse(tm); tm.press("/", "n", "p", "m") }},
		{"filtered", func(tm *terminal) { browse(tm); tm.press("/", "r", "u", "l", "e", "enter") }},
		{"late", func(tm *terminal) { browse(tm); tm.wait(80 * time.Second) }},
		{"detached", func(tm *terminal) { browse(tm); tm.desk.change(func() { tm.desk.detached = true }); synctest.Wait() }},
		{"receipt", func(tm *terminal) { browse(tm); tm.press("tab", "enter") }},
		{"receipt-words", func(tm *terminal) { browse(tm); tm.press("tab", "down", "enter") }},
		{"receipt-unknown", func(tm *terminal) { browse(tm); tm.press("tab", "/", "s", "t", "a", "g", "enter", "enter") }},
		{"hooks", func(tm *terminal) { browse(tm); tm.press("h") }},
		{"run", func(tm *terminal) { browse(tm); tm.press("h", "home", "down", "down", "enter") }},
		{"run-asking", func(tm *terminal) { browse(tm); tm.press("h", "up", "enter") }},
		{"help", func(tm *terminal) { browse(tm); tm.press("?") }},
	}
	for _, s := range scenes {
		for _, size := range listSizes {
			t.Run(s.name+"/"+size.name, func(t *testing.T) {
				bubble(t, size.width, size.height, func(tm *terminal) {
					s.show(tm)
					golden(t, "browse-"+s.name+"-"+size.name, tm)
				})
			})
		}
	}
	for name, keys := range map[string][]string{"waiting": nil, "receipt": {"tab", "enter"}, "hooks": {"h"}, "help": {"?"}} {
		t.Run("B125 "+name+" in Chinese", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := newTerminal(t.Context(), 80, 24, words.Chinese)
				defer tm.close()
				browse(tm)
				tm.press(keys...)
				golden(t, "browse-chinese-"+name, tm)
			})
		})
	}
}

// waits are the rows of the list that wait, without styles.
func waits(tm *terminal) []string {
	var rows []string
	for l := range strings.SplitSeq(tm.text(), "\n") {
		if r := []rune(l); len(r) > 1 && r[1] == '?' {
			rows = append(rows, l)
		}
	}
	return rows
}

func TestB109TheListHasEverySession(t *testing.T) {
	bubble(t, 200, 24, func(tm *terminal) {
		browse(tm)
		rows := strings.Join(waits(tm), "\n")
		for _, want := range []string{"myproj", "web-shop", "reviewer#1 > cleaner#2 · rm -r build"} {
			if !strings.Contains(rows, want) {
				t.Errorf("%q is not in the list:\n%s", want, tm.text())
			}
		}
		tm.press("enter")
		if tm.m.dialog == nil || tm.m.dialog.lead().ID != "q1" {
			t.Errorf("the oldest question is not the first:\n%s", tm.text())
		}
	})
}

// TestB106ALongQuestionIsNamedByItsSize has arguments that did not travel with the list.
func TestB106ALongQuestionIsNamedByItsSize(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		q := push()
		q.Args, q.Version.Bytes = nil, 80_113
		tm.ask(q)
		tm.settle()
		tm.press("esc")
		if rows := waits(tm); len(rows) != 1 || !strings.Contains(rows[0], "80,113 bytes") {
			t.Errorf("rows %q", rows)
		}
	})
}

func TestB106EqualQuestionsAreOneRow(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		for i := range 3 {
			tm.ask(numbered(fmt.Sprint("r", i), "npm test"))
		}
		tm.ask(numbered("other", "npm start"))
		tm.settle()
		tm.press("esc")
		if rows := waits(tm); len(rows) != 2 || !strings.Contains(rows[0], "×3") || strings.Contains(rows[1], "×") {
			t.Fatalf("rows %q", rows)
		}
		tm.press("home", "enter")
		if d := tm.m.dialog; d == nil || len(d.questions()) != 3 {
			t.Fatalf("not opened as one:\n%s", tm.text())
		}
		tm.settle()
		tm.press("c")
		if len(tm.desk.answers) != 3 {
			t.Errorf("%d answers", len(tm.desk.answers))
		}
	})
}

func TestB106TickedRowsOpenTogether(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		for _, id := range []string{"a", "b", "c"} {
			tm.ask(numbered(id, "make "+id))
		}
		tm.settle()
		tm.press("esc", "home", "space", "down", "space")
		if !strings.Contains(tm.text(), "2 ticked") {
			t.Fatalf("not ticked:\n%s", tm.text())
		}
		t.Run("F9 no key of the list answers", func(t *testing.T) {
			tm.press("c")
			if d := tm.m.dialog; d == nil || fmt.Sprint(idsOf(d.questions())) != "[a c]" {
				t.Fatalf("not opened together:\n%s", tm.text())
			}
			tm.press("c", "x", "enter")
			if len(tm.desk.answers) != 0 {
				t.Error("a key answered before anything could be read")
			}
		})
		tm.settle()
		tm.press("esc")
		if !strings.Contains(tm.text(), "2 ticked") {
			t.Errorf("the ticks are lost:\n%s", tm.text())
		}
		tm.desk.end("c", events.EndTurnEnded)
		synctest.Wait()
		if !strings.Contains(tm.text(), "1 ticked") {
			t.Errorf("one that ended is still ticked:\n%s", tm.text())
		}
		tm.press("esc")
		if strings.Contains(tm.text(), "ticked") {
			t.Errorf("Esc took no tick back:\n%s", tm.text())
		}
	})
}

func TestB107TheCursorStaysWithItsQuestion(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		for _, id := range []string{"a", "b", "c", "d"} {
			tm.ask(numbered(id, "make "+id))
		}
		tm.settle()
		tm.press("esc", "home", "down", "down")
		tm.desk.end("a", events.EndTurnEnded)
		synctest.Wait()
		if len(waits(tm)) != 3 {
			t.Fatalf("the question that ended is still there:\n%s", tm.text())
		}
		tm.press("enter")
		if tm.m.dialog == nil || tm.m.dialog.lead().ID != "c" {
			t.Errorf("Enter opened another row:\n%s", tm.text())
		}
		tm.settle()
		tm.press("esc")
		tm.desk.end("c", events.EndTurnEnded)
		synctest.Wait()
		tm.press("enter")
		if tm.m.dialog == nil || tm.m.dialog.lead().ID != "d" {
			t.Errorf("the cursor left its place:\n%s", tm.text())
		}
	})
}

func TestF1TheListSaysWhoAnswers(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.settle()
		tm.press("esc")
		tm.desk.claimed("q1", &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Name: "root", Principal: "ana", Since: now(), Claim: 9})
		synctest.Wait()
		if !strings.Contains(tm.text(), "ana answers") {
			t.Errorf("not told:\n%s", tm.text())
		}
		tm.desk.claimed("q1", &events.Claim{Frontend: "fe2", Kind: events.FrontendACP, Name: "zed", Principal: "uid:1000", Since: now(), Claim: 10})
		synctest.Wait()
		if !strings.Contains(tm.text(), "you answer ") {
			t.Errorf("one's own other screen is not told:\n%s", tm.text())
		}
	})
}

// TestF9HAND10TheListsKeysAnswerNothing types a sentence into the list, with the
// filter open or not, while questions come.
func TestF9HAND10TheListsKeysAnswerNothing(t *testing.T) {
	keys := append(keysOf(typed), "y", "a", "c", "x", "space", "enter", "esc")
	for _, filtering := range []bool{false, true} {
		for at := range keys {
			bubble(t, 80, 24, func(tm *terminal) {
				tm.ask(push())
				tm.settle()
				tm.press("esc")
				if filtering {
					tm.press("/")
				}
				for i, k := range keys {
					if i == at {
						tm.ask(longQuestion(100))
					}
					tm.press(k)
					tm.wait(time.Second / 12)
					want := strings.TrimSuffix(typed, "\n")
					if filtering && k == "enter" && i < len(typed) && tm.m.list.filter.value() != want {
						t.Errorf("at key %d the filter has %q", at, tm.m.list.filter.value())
					}
				}
				if len(tm.desk.answers)+len(tm.desk.claims) != 0 {
					t.Errorf("at key %d: answers %v, claims %v", at, tm.desk.answers, tm.desk.claims)
				}
			})
		}
	}
}

func TestB106TheFilterIsOverBothParts(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		for filter, want := range map[string][2]int{
			"gemini":         {2, 1},  // agent
			"web-shop":       {1, 1},  // project
			"write_file":     {1, 0},  // tool
			"NPM":            {1, 0},  // about
			"redline":        {0, 1},  // hook
			"reviewer":       {1, 1},  // path
			"no answer":      {0, 1},  // a code in words
			"use the mirror": {0, 1},  // words of a no
			"":               {8, 12}, // all
		} {
			tm.m.list.filter.set(filter)
			if got := [2]int{len(tm.m.filtered()), len(tm.m.linesShown())}; got != want {
				t.Errorf("%q lets %v through, want %v", filter, got, want)
			}
		}
	})
}

// TestB104TheListFitsAnyWindow has any screen of the list in any window.
func TestB104TheListFitsAnyWindow(t *testing.T) {
	screens := [][]string{{}, {"tab"}, {"?"}, {"h"}, {"h", "up", "enter"}, {"tab", "enter"}, {"/", "x"}, {"space"}, {"end"}}
	rapid.Check(t, func(r *rapid.T) {
		width, height := rapid.IntRange(10, 220).Draw(r, "width"), rapid.IntRange(2, 60).Draw(r, "height")
		lang := rapid.SampledFrom([]words.Language{words.English, words.Chinese}).Draw(r, "language")
		keys := rapid.SampledFrom(screens).Draw(r, "screen")
		d := newDesk()
		m := New(t.Context(), Options{Client: d, Inbox: d, Self: self, Principal: func() string { return "uid:1000" }, Words: words.In(lang)})
		fillFake(d)
		m.Update(changedMsg{})
		m.dialog, m.width, m.height = nil, width, height
		for _, q := range d.questions {
			m.later[q.ID] = true
		}
		for _, k := range keys {
			m.Update(keyOf(k))
		}
		if m.dialog == nil {
			checkFits(r, m)
		}
	})
}

func TestNoColorLosesNothing(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		browse(tm)
		signs := map[string]bool{}
		for _, l := range strings.Split(tm.text(), "\n")[2:23] {
			if r := []rune(l); len(r) > 1 {
				signs[string(r[1])] = true
			}
		}
		for _, sign := range []string{"?", "●", "✓", "✕", "⌛", "–", "·"} {
			if !signs[sign] {
				t.Errorf("%s is missing:\n%s", sign, tm.text())
			}
		}
		t.Run("light and dark differ in colour alone", func(t *testing.T) {
			tm.press("end")
			dark := tm.m.View().Content
			tm.m.style = newStyles(false)
			light := tm.m.View().Content
			if ansi.Strip(dark) != ansi.Strip(light) {
				t.Error("the words depend on the background")
			}
		})
	})
}

// TestB106AFloodOfChangesIsFollowedCalmly: the last change is seen, and not each on the
// way.
func TestB106AFloodOfChangesIsFollowedCalmly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var told atomic.Int32
		seen := 0
		source := func(ctx context.Context, changed func()) {
			for range 1000 {
				told.Add(1)
				changed()
				<-time.After(time.Millisecond)
			}
			<-ctx.Done()
		}
		last := int32(0)
		done := make(chan struct{})
		go func() { defer close(done); forward(ctx, source, func() { seen++; last = told.Load() }) }()
		<-time.After(2 * time.Second)
		synctest.Wait()
		if last != 1000 || seen > 25 {
			t.Errorf("%d frames, the last after %d of %d changes", seen, last, told.Load())
		}
		cancel()
		<-done
	})
}

// TestB106RowsAreTheGroups: however questions are mixed, the rows are what the SDK's
// groups are.
func TestB106RowsAreTheGroups(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var list []events.Question
		places := map[events.ID]int{}
		for i := range rapid.IntRange(0, 12).Draw(r, "questions") {
			q := numbered(fmt.Sprint("q", i), rapid.SampledFrom([]string{"a", "b", "c", fmt.Sprint(i)}).Draw(r, "command"))
			q.Session = events.Token(rapid.SampledFrom([]string{"s", "t"}).Draw(r, "session"))
			places[q.ID] = i
			list = append(list, q)
		}
		var want [][]int
		for _, g := range frontends.Groups(list) {
			var at []int
			for _, q := range g {
				at = append(at, places[q.ID])
			}
			want = append(want, at)
		}
		if got := group(list, places); fmt.Sprint(got) != fmt.Sprint(want) {
			r.Fatalf("rows %v, want %v", got, want)
		}
	})
}

// TestB106TheListShowsWhatWasPutAside: words that were not sent are told in the row.
func TestB106TheListShowsWhatWasPutAside(t *testing.T) {
	bubble(t, 80, 24, func(tm *terminal) {
		tm.ask(push())
		tm.ask(longQuestion(100))
		tm.settle()
		tm.press("w", "n", "o", "esc", "esc")
		if rows := waits(tm); len(rows) != 2 || !strings.Contains(rows[0], "words kept") || strings.Contains(rows[1], "words kept") {
			t.Errorf("rows %q\n%s", rows, tm.text())
		}
	})
}
