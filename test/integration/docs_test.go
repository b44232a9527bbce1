package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/fermata-hitl/fermata/core/hooks"
	"github.com/fermata-hitl/fermata/events"
)

// translated are the pages that exist in both languages.
var translated = []string{"hooks", "guides/ask-before-an-operation", "guides/be-called"}

// TestB124PagesInBothLanguages: both languages tell the same, and a reader of
// either finds every word of the interface.
func TestB124PagesInBothLanguages(t *testing.T) {
	for _, name := range translated {
		t.Run("B124 "+name, func(t *testing.T) {
			en, zh := page(t, name+".md"), page(t, name+".zh-Hans.md")
			if a, b := outline(en), outline(zh); !slices.Equal(a, b) {
				t.Errorf("the pages differ in their outline:\n%s\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
			}
			if a, b := codeWords(en), codeWords(zh); !slices.Equal(a, b) {
				t.Errorf("words of code on one page only: %q and %q", missing(a, b), missing(b, a))
			}
			if a, b := len(blocks(en, "json")), len(blocks(zh, "json")); a != b {
				t.Errorf("%d and %d examples in JSON", a, b)
			}
			if !strings.ContainsFunc(zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
				t.Error("the Chinese page has no Chinese")
			}
		})
	}
}

// TestB124ReferenceNamesEverything: the reference has every event, kind and
// agent that the core knows, and what the behaviours promise to be told.
func TestB124ReferenceNamesEverything(t *testing.T) {
	text := page(t, "hooks.md")
	words := append(events.ToolKinds(), string(events.BeforeToolCall), string(events.UserPromptSubmit))
	for _, e := range events.ObservedEvents() {
		words = append(words, string(e))
	}
	for _, a := range events.Agents() {
		words = append(words, string(a))
	}
	words = append(words, "confirmation_available", "hook_confirmation", "declined", "timed_out", "unavailable",
		"Input rejected: …", "headless", "not_applied: nonblocking", "not_applied: event", "failed_open")
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("docs/hooks.md does not speak of %s", w)
		}
	}
}

// TestExamplesInPagesAreTrue: every file in the pages loads without a warning,
// and every piece of JSON is JSON.
func TestExamplesInPagesAreTrue(t *testing.T) {
	for _, name := range translated {
		for _, lang := range []string{".md", ".zh-Hans.md"} {
			text := page(t, name+lang)
			for _, y := range blocks(text, "yaml") {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "hooks.yaml"), []byte(y), 0o600); err != nil {
					t.Fatal(err)
				}
				set, err := hooks.NewStore(hooks.StoreOptions{GlobalDir: dir}).For(dir)
				if err != nil {
					t.Errorf("%s%s: %v\n%s", name, lang, err, y)
					continue
				}
				for _, w := range set.Warnings {
					t.Errorf("%s%s: warning: %v\n%s", name, lang, w, y)
				}
			}
			for _, j := range blocks(text, "json") {
				if !json.Valid([]byte(j)) {
					t.Errorf("%s%s: not JSON:\n%s", name, lang, j)
				}
			}
		}
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// outline is the depth of each heading, and each table and block, in order.
func outline(text string) []string {
	var out []string
	table, block := false, false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			if block = !block; block {
				out = append(out, strings.TrimSpace(line))
			}
		case block:
		case strings.HasPrefix(line, "#"):
			out = append(out, line[:strings.IndexByte(line, ' ')])
		case strings.HasPrefix(line, "|") && !table:
			out = append(out, "|")
		}
		if !block {
			if strings.HasPrefix(line, "|") {
				out = append(out, "row")
			}
			table = strings.HasPrefix(line, "|")
		}
	}
	return out
}

var codeSpan = regexp.MustCompile("`([a-z_.${}]+)`")

// codeWords are the words of the interface on a page, sorted, each once.
func codeWords(text string) []string {
	var out []string
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func missing(from, in []string) []string {
	var out []string
	for _, w := range from {
		if !slices.Contains(in, w) {
			out = append(out, w)
		}
	}
	return out
}

func blocks(text, language string) []string {
	var out []string
	for _, part := range strings.Split(text, "\n```"+language+"\n")[1:] {
		body, _, _ := strings.Cut(part, "\n```")
		out = append(out, body+"\n")
	}
	return out
}
