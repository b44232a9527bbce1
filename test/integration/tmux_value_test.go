package integration_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// hidden are the values of HAND-02, whose end is what matters.
func hidden() map[string]string {
	return map[string]string{
		"a": "echo a" + strings.Repeat("\n", 400) + "touch M",
		"b": strings.Repeat("b", 12_000-len(";touch M")) + ";touch M",
		"c": strings.Repeat("0123456789", 8_000)[len(";touch M"):] + ";touch M",
		"d": strings.Repeat("d", 2<<20-len(";touch M")) + ";touch M",
	}
}

func commandArgs(t testing.TB, command string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestHAND02HiddenTail has a person read long values in a real terminal: every
// byte can be reached by keys, the buttons are in the window at each step, and
// what is answered is the digest of what was read.
func TestHAND02HiddenTail(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ columns, rows int }{{80, 24}, {200, 60}} {
		t.Run(fmt.Sprintf("B102 B104 tmux %dx%d", size.columns, size.rows), func(t *testing.T) {
			t.Parallel()
			var rules []rule
			for name := range hidden() {
				rules = append(rules, ask("hand02"+name))
			}
			b := newBox(t, "", rules...)
			p := b.tmux(size.columns, size.rows)
			p.rests()
			for _, name := range []string{"a", "b", "c", "d"} {
				t.Run("B102 B104 ("+name+") the whole value is read by keys", func(t *testing.T) {
					b, p := b.in(t), p.in(t)
					args := commandArgs(t, hidden()[name])
					c := b.call("hand02"+name, args)
					p.asks("hand02" + name)
					readsHidden(p, name)
					if exists(c.file + ".ran") {
						t.Fatal("it ran before the yes")
					}
					p.answers("hand02"+name, "c")
					c.wantRan(args)
				})
			}
			b.stopCore()
			answersWhatWasRead(t, b)
		})
	}
}

// readsHidden reads a value to its end: page by page, or by End where there are
// too many pages for a person.
func readsHidden(p *pane, name string) {
	t := p.t
	t.Helper()
	want := hidden()[name]
	if name == "d" {
		p.press("End")
		p.shows("the last byte", func(text string) bool {
			v, ok := partOf(t, text)
			return ok && v.to == v.of && v.bytes == len(want) && strings.HasSuffix(v.rows[len(v.rows)-1], ";touch M") && p.live(text)
		})
		p.press("Home")
		p.shows("the first row", func(text string) bool {
			v, ok := partOf(t, text)
			return ok && v.from == 1 && p.live(text)
		})
		return
	}
	rows, bytes := p.reads("PageDown")
	if at := differs(rows, want); at >= 0 || bytes != len(want) {
		t.Errorf("what was read differs at byte %d; %d bytes were announced, of %d", at, bytes, len(want))
	}
	for row := len(rows) - 1; row > len(rows)-12; row-- { // and row by row on the way back
		p.does(fmt.Sprintf("row %d at the lower edge", row), func(text string) bool {
			v, ok := partOf(t, text)
			return ok && v.to == row && p.live(text)
		}, "Up")
	}
}

// answersWhatWasRead holds each answer in the log to the digest of the value.
func answersWhatWasRead(t *testing.T, b *box) {
	t.Helper()
	t.Run("B42 B58 the answer carries the digest of what was shown", func(t *testing.T) {
		e := b.in(t).evidence(t)
		for name, value := range hidden() {
			answers := of(facts[events.Response](e), e.call(t, "hand02"+name))
			if len(answers) != 1 || answers[0].Event.Digest != events.DigestOf([]byte(commandArgs(t, value))) {
				t.Errorf("(%s): answers %+v, want one with the value's digest", name, answers)
			}
		}
		e.checkRuns(t)
	})
}

// TestHAND02OnTheCommandLine: the same values as `core questions --watch` prints
// them, answered with `core answer`.
func TestHAND02OnTheCommandLine(t *testing.T) {
	t.Parallel()
	var rules []rule
	for name := range hidden() {
		rules = append(rules, ask("hand02"+name))
	}
	b := newBox(t, "", rules...)
	w := b.watch()
	for name, value := range hidden() {
		t.Run("B102 ("+name+") is printed whole", func(t *testing.T) {
			b := b.in(t)
			args := commandArgs(t, value)
			c := b.call("hand02"+name, args)
			q := w.opens("hand02" + name)
			if string(q.Args) != args || q.Digest != events.DigestOf([]byte(args)) {
				t.Errorf("%d bytes with %s were printed, want all %d with their digest", len(q.Args), q.Digest, len(args))
			}
			if r := b.gives(q.Question, events.AnswerContinue); r.Exit != 0 {
				t.Fatalf("core answer: %+v", r)
			}
			c.wantRan(args)
		})
	}
	b.stopCore()
	answersWhatWasRead(t, b)
}
