package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
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
	m := maps.Clone(catalogue)
	maps.Copy(m, codes)
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
	for k, x := range all() {
		if x.en == "" || x.zh == "" || x.en == x.zh {
			t.Errorf("%s: en %q and zh %q must both be there and differ", k, x.en, x.zh)
		}
		if !strings.ContainsFunc(x.zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
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
	for k := range codes {
		if _, twice := catalogue[k]; twice {
			t.Errorf("%s stands in both tables", k)
		}
	}
}

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
	for k := range catalogue {
		if !slices.Contains(known, k) && !strings.Contains(string(k), ".") {
			t.Errorf("%q has no constant", k)
		}
	}
}

func constants(t *testing.T) map[string]Key {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Key{}
	for _, d := range f.Decls {
		for _, s := range d.(*ast.GenDecl).Specs {
			v := s.(*ast.ValueSpec)
			text, _ := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			out[v.Names[0].Name] = Key(text)
		}
	}
	return out
}

// usesOf finds every words.X in the programs' own code.
func usesOf(t *testing.T) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	for _, root := range []string{"..", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "words" {
						used[s.Sel.Name] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return used
}

// TestB112EveryCodeHasWords holds the tables complete against the closed codes
// of package events, read from its source.
func TestB112EveryCodeHasWords(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../events/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]string{
		"EndReason": "end.", "Code": "code.", "Reject": "reject.", "Answer": "answer.", "Outcome": "outcome.",
		"Kind": "kind.", "Scope": "scope.", "FrontendKind": "frontend.",
	}
	want := map[Key]bool{}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			table, ok := tables[v.Type.(*ast.Ident).Name]
			if !ok {
				continue
			}
			code, _ := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			want[Key(table+code)] = true
		}
	}
	if len(want) < 60 {
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
