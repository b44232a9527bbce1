package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestF7JSONIsNothingThatATerminalObeys(t *testing.T) {
	for _, text := range []string{
		"plain", "ЖЁ 漢字 👩‍👩‍👧", "\x1b[31m", "\u009b31m", "\x7f", "\u202ertl", "a\u200bb", "\U000e0041tag", "\U0001f600",
	} {
		checkVisible(t, text)
	}
}

func FuzzPrintJSON(f *testing.F) {
	f.Add("\u009b31m\U000e0041")
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) {
			checkVisible(t, text)
		}
	})
}

// checkVisible prints a text and reads it back.
func checkVisible(t *testing.T, text string) {
	t.Helper()
	var out bytes.Buffer
	if err := printJSON(&out, text); err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSuffix(out.String(), "\n")
	if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }); i >= 0 {
		t.Errorf("%q is printed as %q", text, line)
	}
	var back string
	if err := json.Unmarshal([]byte(line), &back); err != nil || back != text {
		t.Errorf("%q came back as %q: %v", text, back, err)
	}
}
