package integration_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// speaking are the programs that a person reads. agent-hook speaks to agents and
// models; what core/hooks and place say, a test of frontends/words holds against
// the catalogue.
var speaking = []string{"cmd/core", "cmd/fermata", "cmd/tui-frontend", "cmd/acp-frontend"}

// unspoken are literals that are printed, or made an error, and need no
// catalogue.
var unspoken = map[string]string{
	"down":                       "an error that is only compared",
	"fermata: ":                  "a program's name",
	"fermata: %v\n":              "a program's name",
	"tui-frontend: ":             "a program's name",
	"acp-frontend: %s\n":         "a program's name",
	"acp-frontend: %s\n\n%s\n":   "a program's name",
	"\n  --%s VALUE\n      %s\n": "a flag as it is typed",
	"wait.%s  %s  %s/%s":         "a span as it is exported",
	"%s: %w":                     "a part that ended, before its reason",
	"dry-run":                    "an id",
	"demo":                       "an id",
}

var (
	// sentence is two words beside each other that no command line would have.
	sentence = regexp.MustCompile(`\p{Ll}{2,}[,;:.]? \p{L}*\p{Ll}{2,}`)
	verbs    = regexp.MustCompile(`%[-+# 0-9.\[\]]*[a-zA-Z]`)
	printing = regexp.MustCompile(`^(fmt\.(Print|Fprint|Errorf)|errors\.New$|paragraph$)`)
	logging  = regexp.MustCompile(`(^|\.)log\.(Debug|Info|Warn|Error)$`)
)

// TestB125NothingIsSaidOutsideTheCatalogue reads the commands' own code: a
// sentence in a literal, wherever it is, and any word in a literal that is
// printed or made an error, must come from frontends/words. Lines of the core's
// log are for its operator and are English.
func TestB125NothingIsSaidOutsideTheCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test() || !slices.Contains(speaking, filepath.Dir(f.path)) {
			continue
		}
		seen[filepath.Dir(f.path)] = true
		for _, said := range literals(f.ast) {
			if _, ok := unspoken[said.text]; ok {
				continue
			}
			if sentence.MatchString(said.text) || strings.ContainsFunc(said.text, isHan) ||
				said.printed && strings.ContainsFunc(verbs.ReplaceAllString(said.text, ""), unicode.IsLetter) {
				t.Errorf("%s: %q is said outside frontends/words", f.at(said.node), said.text)
			}
		}
	}
	if len(seen) != len(speaking) {
		t.Errorf("found only %v", seen)
	}
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

// literal is a string in the code. Printed says that it goes straight to a person.
type literal struct {
	node    ast.Node
	text    string
	printed bool
}

// literals finds every string of a file but imports, tags, and what is logged.
func literals(file *ast.File) []literal {
	var found []literal
	var visit func(n ast.Node, printed bool)
	visit = func(n ast.Node, printed bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				n.Tag = nil
			case *ast.CallExpr:
				name := called(n.Fun)
				if logging.MatchString(name) {
					return false
				}
				visit(n.Fun, false)
				for _, arg := range n.Args {
					visit(arg, printing.MatchString(name))
				}
				return false
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					text, _ := strconv.Unquote(n.Value)
					found = append(found, literal{n, text, printed})
				}
			}
			return true
		})
	}
	visit(file, false)
	return found
}

// called is the name of what is called: fmt.Fprintln, h.log.Warn.
func called(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return called(f.X) + "." + f.Sel.Name
	}
	return ""
}
