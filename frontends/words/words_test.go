package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/fermata-hitl/fermata/events"
)

func all() map[Key]text {
	m := map[Key]text{}
	for _, table := range tables {
		maps.Copy(m, table)
	}
	return m
}

// spoken is every text: also the sentences, whose keys are their English.
func spoken() map[Key]text {
	m := all()
	for en, zh := range sentences {
		m[en] = text{string(en), zh}
	}
	return m
}

var verb = regexp.MustCompile(`%(\[(\d+)\])?([a-z])`)

// verbs gives the verb of each argument, whatever the order in the text.
func verbs(s string) map[int]string {
	out := map[int]string{}
	next := 1
	for _, v := range verb.FindAllStringSubmatch(s, -1) {
		if v[2] != "" {
			next, _ = strconv.Atoi(v[2])
		}
		out[next] = v[3]
		next++
	}
	return out
}

func TestB125EveryTextInBothLanguages(t *testing.T) {
	for k, x := range spoken() {
		if x.en == "" || x.zh == "" || x.en == x.zh && strings.ContainsFunc(letters(x.en), unicode.IsLetter) {
			t.Errorf("%s: en %q and zh %q must both be there and differ", k, x.en, x.zh)
		}
		if strings.ContainsFunc(letters(x.en), unicode.IsLetter) && !strings.ContainsFunc(x.zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			t.Errorf("%s: %q is not Chinese", k, x.zh)
		}
		if strings.ContainsFunc(x.en, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			t.Errorf("%s: %q is not English", k, x.en)
		}
		if !maps.Equal(verbs(x.en), verbs(x.zh)) {
			t.Errorf("%s: the languages take different arguments: %q, %q", k, x.en, x.zh)
		}
		if strings.Contains(x.en, "!") || strings.Contains(x.zh, "！") {
			t.Errorf("%s: a calm text has no exclamation mark", k)
		}
	}
	n := 0
	for _, table := range tables {
		n += len(table)
	}
	if n != len(all()) {
		t.Errorf("%d texts for %d keys: one stands in two tables", n, len(all()))
	}
}

// letters is a text without its verbs, whose letters are no words.
func letters(s string) string { return verb.ReplaceAllString(s, "") }

// TestB125EveryKeyIsDeclaredAndUsed holds the constants of keys.go, the tables
// and the frontends together.
func TestB125EveryKeyIsDeclaredAndUsed(t *testing.T) {
	declared := constants(t)
	used := usesOf(t)
	for name, k := range declared {
		if _, ok := all()[k]; !ok {
			t.Errorf("%s (%q) has no text", name, k)
		}
		if !used[name] {
			t.Errorf("%s is used nowhere", name)
		}
	}
	known := slices.Collect(maps.Values(declared))
	for k := range all() {
		if !slices.Contains(known, k) && !strings.Contains(string(k), ".") {
			t.Errorf("%q has no constant", k)
		}
	}
}

func constants(t *testing.T) map[string]Key {
	t.Helper()
	out := map[string]Key{}
	for _, file := range []string{"keys.go", "keys_commands.go", "cards.go", "browsing.go", "plainly.go", "notices.go"} {
		for _, v := range constantsIn(t, file) {
			if before, twice := out[v.name]; twice {
				t.Errorf("%s is %q and %q", v.name, before, v.value)
			}
			out[v.name] = Key(v.value)
		}
	}
	return out
}

// constant is one of a file: its name, its type as written ("" for none), and
// its text.
type constant struct{ name, kind, value string }

// constantsIn reads every constant of a file that is a string.
func constantsIn(t *testing.T, path string) []constant {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []constant
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			kind, _ := v.Type.(*ast.Ident)
			for i, n := range v.Names {
				if i >= len(v.Values) {
					continue
				}
				lit, ok := v.Values[i].(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					continue
				}
				c := constant{name: n.Name}
				c.value, _ = strconv.Unquote(lit.Value)
				if kind != nil {
					c.kind = kind.Name
				}
				out = append(out, c)
			}
		}
	}
	return out
}

// sources are the programs' own files.
func sources(t *testing.T) []*ast.File {
	t.Helper()
	var files []*ast.File
	for _, root := range []string{"..", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			files = append(files, f)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// named is the X of words.X, "" for anything else.
func named(n ast.Node) string {
	if s, ok := n.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "words" {
			return s.Sel.Name
		}
	}
	return ""
}

// usesOf finds every words.X in the programs' own code.
func usesOf(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	for _, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			if name := named(n); name != "" {
				used[name] = true
			}
			return true
		})
	}
	return used
}

// TestB125EveryTextGetsItsArguments counts what stands behind a key where it is
// said.
func TestB125EveryTextGetsItsArguments(t *testing.T) {
	keys, said := constants(t), 0
	for _, f := range sources(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || call.Ellipsis.IsValid() {
				return true
			}
			for i, arg := range call.Args {
				k, ok := keys[named(arg)]
				if !ok {
					continue
				}
				said++
				if want, got := len(verbs(all()[k].en)), len(call.Args)-i-1; want != got {
					t.Errorf("%s is said with %d arguments, its text takes %d", k, got, want)
				}
			}
			return true
		})
	}
	if said < 200 {
		t.Errorf("found only %d places", said)
	}
}

// codesIn says which constants are codes that a person reads in words: those of
// a type, or for a name that ends in * the untyped ones whose names begin so.
var codesIn = map[string]map[string]string{
	"../../events/codes.go": {
		"EndReason": "end.", "Code": "code.", "Reject": "reject.", "Answer": "answer.", "Outcome": "outcome.", "Kind": "kind.",
		"Scope": "scope.", "FrontendKind": "frontend.", "Effect": "effect.", "Cause": "cause.", "NotApplied*": "not_applied.",
	},
	"../../core/hooks/report.go": {"TrustState": "trust."},
	"../../core/hooks/lint.go":   {"Severity": "severity.", "FindingCode": "finding."},
	"../../cmd/core/dryrun.go":   {"why*": "why."},
	"../../events/agent.go":      {"Would": "does."},
}

var setting = regexp.MustCompile(`\{Name: "([a-z_.]+)"`)

// TestB112EveryCodeHasWords holds the tables complete against the closed codes
// of the other rooms, read from their source.
func TestB112B125EveryCodeHasWords(t *testing.T) {
	want := map[Key]bool{}
	for file, tables := range codesIn {
		found := map[string]int{}
		for _, c := range constantsIn(t, file) {
			for name, table := range tables {
				prefix, untyped := strings.CutSuffix(name, "*")
				if c.kind == name || untyped && c.kind == "" && strings.HasPrefix(c.name, prefix) {
					want[Key(table+c.value)] = true
					found[name]++
				}
			}
		}
		for name := range tables {
			if found[name] < 2 {
				t.Errorf("%s: found %d constants of %s", file, found[name], name)
			}
		}
	}
	place, err := os.ReadFile("../../cmd/internal/place/config.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range setting.FindAllSubmatch(place, -1) {
		want[Key("setting."+string(m[1]))] = true
	}
	if len(want) < 110 {
		t.Fatalf("found only %d codes", len(want))
	}
	for k := range want {
		if _, ok := all()[k]; !ok {
			t.Errorf("%s has no words", k)
		}
	}
	for k := range all() {
		if strings.Contains(string(k), ".") && !want[k] {
			t.Errorf("%s is no code", k)
		}
	}
	for _, r := range []events.Result{"answered", "timed_out", "unavailable", "withdrawn", "failed"} {
		for _, e := range events.EndReasons(r) {
			if In(English).End(string(e)) == string(e) {
				t.Errorf("end reason %s is shown as a code", e)
			}
		}
	}
}

func TestB125ChoosesTheLanguage(t *testing.T) {
	for _, c := range []struct {
		option, all, messages, lang string
		want                        Language
	}{
		{want: English},
		{lang: "de_DE.UTF-8", want: English},
		{lang: "zh_CN.UTF-8", want: Chinese},
		{messages: "zh_CN.UTF-8", lang: "en_GB.UTF-8", want: Chinese},
		{all: "C", messages: "zh_CN.UTF-8", lang: "zh_CN.UTF-8", want: English},
		{option: "en", all: "zh_CN.UTF-8", want: English},
		{option: "zh-Hans", all: "en_US", want: Chinese},
		{option: "zhuang", want: English},
	} {
		env := map[string]string{"LC_ALL": c.all, "LC_MESSAGES": c.messages, "LANG": c.lang}
		if got := Choose(c.option, func(k string) string { return env[k] }); got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

func TestUnknownCodesAreShownAsTheyAre(t *testing.T) {
	if got := In(Chinese).End("from_the_future"); got != "from_the_future" {
		t.Errorf("got %q", got)
	}
	if got := In("xx").Say(Continue); got != "Continue" {
		t.Errorf("unknown language: got %q", got)
	}
	if got := In(Chinese).Say(After, "选择了继续", "3.1 s"); got != "3.1 s后选择了继续" {
		t.Errorf("got %q", got)
	}
}

// pair is said by another room.
type pair struct{ a, b any }

func (p pair) In(say func(text string, args ...any) string) string { return say("%s, %s", p.a, p.b) }

func TestB125WhatAnotherRoomSaysIsInTheSameLanguage(t *testing.T) {
	nested := pair{pair{"a", "b"}, "c"}
	for lang, want := range map[Language]string{English: "a, b, c", Chinese: "a、b、c"} {
		if got := In(lang).Tell(nested); got != want {
			t.Errorf("%s: got %q", lang, got)
		}
		if got := In(lang).Say(YouTook, nested); !strings.HasSuffix(got, want) {
			t.Errorf("%s: got %q", lang, got)
		}
	}
	if got := In(Chinese).Say("a text %s knows", "nobody"); got != "a text nobody knows" {
		t.Errorf("got %q", got)
	}
}
