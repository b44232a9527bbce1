package card

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

func BenchmarkEscape(b *testing.B) {
	for name, s := range map[string]string{
		"ascii": strings.Repeat("some words\n", 8000), "chinese": strings.Repeat("一些文字，", 5400), "marks": strings.Repeat("a\u202e", 20000),
		"russian": strings.Repeat("некоторые слова, и ещё\n", 2000), "one line": strings.Repeat("слово word ", 4000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Escape(s)
			}
		})
	}
}

// BenchmarkCard makes the card of an argument of 80,000 characters, of an edit of as
// many with changes all over it, and of a change of one.
func BenchmarkCard(b *testing.B) {
	line := "x := compute(a, b) // what stands here\n"
	old := strings.Repeat(line, 80_000/len(line))
	var changed strings.Builder
	for i, l := range strings.SplitAfter(old, "\n") {
		if i%40 == 0 {
			fmt.Fprintf(&changed, "changed %d\n", i)
		}
		changed.WriteString(l)
	}
	arguments := func(m map[string]string) []byte {
		args, err := json.Marshal(m)
		if err != nil {
			b.Fatal(err)
		}
		return args
	}
	q := call("Edit")
	again := q
	again.Previous, again.Changed = 0, []events.Change{{Name: "content"}}
	for _, c := range []struct {
		name         string
		q            events.Question
		args, before []byte
	}{
		{"argument", q, arguments(map[string]string{"content": old}), nil},
		{"argument in Chinese", q, arguments(map[string]string{"content": strings.Repeat("一些文字，", 16_000)}), nil},
		{"edit", q, arguments(map[string]string{"old_string": old, "new_string": changed.String()}), nil},
		{"change", again, arguments(map[string]string{"content": changed.String()}), arguments(map[string]string{"content": old})},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				NewSince(c.q, c.before, c.args, "", english())
			}
		})
	}
}
