package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// ran is how a command ended.
type ran struct {
	exit          int
	out, problems string
}

// call runs a command as a person would type it.
func call(t *testing.T, in string, args ...string) ran {
	t.Helper()
	var out, problems bytes.Buffer
	exit := run(t.Context(), "fermata", args, strings.NewReader(in), &out, &problems)
	return ran{exit, out.String(), problems.String()}
}

// home makes everything of a user's own, without any file, and is its directory.
func home(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	for _, name := range []string{"CONFIG", "STATE", "RUNTIME"} {
		t.Setenv("FERMATA_"+name+"_DIR", filepath.Join(dir, strings.ToLower(name)))
	}
	t.Setenv("FERMATA_AUTOSTART", "0")
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		t.Setenv(name, "")
	}
	return dir
}

// write makes a file, and the directories above it.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func han(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// english is what a Chinese page must not have: two English words beside each
// other, apart from a command as it is typed.
var (
	english = regexp.MustCompile(`\p{Ll}{2,} \p{Ll}{2,}`)
	typed   = regexp.MustCompile(`fermata [a-z]+( [a-z]+)?`)
)

// everyCommand lists the words of each command of the tree.
func everyCommand(c *cobra.Command, path ...string) [][]string {
	all := [][]string{path}
	for _, sub := range c.Commands() {
		all = append(all, everyCommand(sub, append(slices.Clip(path), sub.Name())...)...)
	}
	return all
}

func TestB125HelpOfEveryCommandInBothLanguages(t *testing.T) {
	home(t)
	commands := everyCommand(cli{name: "fermata"}.root())
	if len(commands) < 16 {
		t.Fatalf("found only %v", commands)
	}
	for _, path := range commands {
		for _, lang := range []words.Language{words.English, words.Chinese} {
			r := call(t, "", append(slices.Clip(path), "--help", "--language", string(lang))...)
			if r.exit != 0 || r.problems != "" {
				t.Errorf("%v in %s: %+v", path, lang, r)
			}
			for line := range strings.SplitSeq(r.out, "\n") {
				if lang == words.Chinese && english.MatchString(typed.ReplaceAllString(line, "")) || lang == words.English && han(line) {
					t.Errorf("%v in %s says: %s", path, lang, line)
				}
			}
			if lang == words.Chinese && !han(r.out) {
				t.Errorf("%v has no Chinese help: %s", path, r.out)
			}
		}
	}
}

func TestB125WrongUseIsSaidInTheLanguageThatWasAskedFor(t *testing.T) {
	home(t)
	for _, args := range [][]string{
		{"nothing"},
		{"nothing", "--json"},
		{"hooks", "nothing"},
		{"help", "nothing"},
		{"status", "now"},
		{"answer", "x"},
		{"status", "--nothing"},
		{"status", "-z"},
		{"demo", "--timeout"},
		{"demo", "--timeout", "soon"},
		{"demo", "--timeout", "-1s"},
		{"demo", "--answer", "yes"},
		{"serve", "--mode", "fast"},
		{"completion", "csh"},
		{"answer", "x", "continue"},
		{"answer", "01jqz3v5k8w9y2x4c6b7n8m9ab", "yes"},
		{"status"},
		{"questions"},
		{"sessions"},
		{"stop"},
		{"answer", "01jqz3v5k8w9y2x4c6b7n8m9ab", "cancel"},
		{"hooks", "list", "--dir", "/no/such"},
		{"hooks", "init", "--pack", "nothing"},
		{"hooks", "run", "nothing"},
		{"hooks", "trust"},
	} {
		for _, lang := range []words.Language{words.English, words.Chinese} {
			r := call(t, "", append([]string{"--language", string(lang)}, args...)...)
			if r.exit != exitFault || r.out != "" || !strings.HasPrefix(r.problems, "fermata: ") {
				t.Errorf("%v: %+v", args, r)
			}
			if han(r.problems) != (lang == words.Chinese) {
				t.Errorf("%v in %s says: %s", args, lang, r.problems)
			}
		}
	}
	if r := call(t, "", "status", "--language", "de"); r.exit != exitFault || !strings.Contains(r.problems, "zh-Hans") {
		t.Errorf("an unknown language: %+v", r)
	}
}

func TestB125TheLanguageIsThatOfFlagThenFileThenEnvironment(t *testing.T) {
	dir := home(t)
	for i, step := range []struct {
		prepare func()
		args    []string
		chinese bool
	}{
		{func() {}, nil, false},
		{func() { t.Setenv("LANG", "zh_CN.UTF-8") }, nil, true},
		{func() { t.Setenv("LC_MESSAGES", "en_GB.UTF-8") }, nil, false},
		{func() { t.Setenv("LC_ALL", "zh_CN.UTF-8") }, nil, true},
		{func() { write(t, dir+"/config/config.yaml", "language: en\n") }, nil, false},
		{func() {}, []string{"--language=zh-Hans"}, true},
		{func() {}, []string{"--language", "zh-Hans"}, true},
		{func() { write(t, dir+"/config/config.yaml", "language: zh-Hans\n") }, []string{"--language", "en"}, false},
	} {
		step.prepare()
		if r := call(t, "", append([]string{"status"}, step.args...)...); han(r.problems) != step.chinese {
			t.Errorf("step %d: %s", i, r.problems)
		}
	}
}

func TestCommandsHelpTheShell(t *testing.T) {
	home(t)
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := call(t, "", "completion", shell); r.exit != 0 || !strings.Contains(r.out, "fermata") {
			t.Errorf("%s: exit %d, %d bytes", shell, r.exit, len(r.out))
		}
	}
	if r := call(t, "", "--version"); r.exit != 0 || r.out != "fermata "+version+"\n" {
		t.Errorf("%+v", r)
	}
}

func TestTextIsSetToThePage(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("一个很长的句子，", 12) + "zh-Hans " + strings.Repeat("word-after-word ", 12)
	table{{"  name", "value", long}, {"  a longer name", "v", ""}}.print(page{&out})
	for line := range strings.Lines(out.String()) {
		if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > pageWidth {
			t.Errorf("%d characters: %s", n, line)
		}
		if strings.HasSuffix(line, " \n") || strings.HasPrefix(strings.TrimSpace(line), "，") || strings.Contains(line, solid) {
			t.Errorf("set badly: %q", line)
		}
	}
	if first, _, _ := strings.Cut(out.String(), "\n"); !strings.HasPrefix(first, "  name           value  一") {
		t.Errorf("columns do not stand below each other: %s", first)
	}
}
