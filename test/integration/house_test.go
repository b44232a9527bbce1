package integration_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxLines     = 500
	maxTestLines = 800
)

var (
	nameless   = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared"}
	vagueType  = regexp.MustCompile(`(Manager|Service|Handler)$`)
	unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	decoder    = regexp.MustCompile(`^(Decode|Parse|Validate|Canonical)`)
)

// goFile is one parsed Go file of the project.
type goFile struct {
	path  string // from the root
	lines int
	set   *token.FileSet
	ast   *ast.File
}

func (f goFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f goFile) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.set.Position(n.Pos()).Line)
}

func TestFilesAreShort(t *testing.T) {
	for _, f := range goFiles(t) {
		limit := maxLines
		if f.test() {
			limit = maxTestLines
		}
		if f.lines > limit {
			t.Errorf("%s has %d lines, at most %d: divide it by subject", f.path, f.lines, limit)
		}
	}
}

func TestNamesSayWhatThingsAre(t *testing.T) {
	for _, f := range goFiles(t) {
		if slices.Contains(nameless, strings.TrimSuffix(f.ast.Name.Name, "_test")) {
			t.Errorf("%s: package %s is named after nothing that it provides", f.path, f.ast.Name.Name)
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && vagueType.MatchString(s.Name.Name) {
				t.Errorf("%s: type %s: name it after what it is", f.at(n), s.Name.Name)
			}
			return true
		})
	}
}

func TestNoTestIsSkipped(t *testing.T) {
	for _, f := range goFiles(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || !f.test() || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name) {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"t", "b", "f", "tb"}, x.Name) {
				t.Errorf("%s: %s.%s: a test that does not run proves nothing", f.at(n), x.Name, s.Sel.Name)
			}
			return true
		})
	}
}

// TestSleepOnlyInBubbles lets a test sleep where the clock is faked. What runs
// in a bubble cannot be seen from its syntax, so the file must speak of it.
func TestSleepOnlyInBubbles(t *testing.T) {
	for _, f := range goFiles(t) {
		sleeps, bubble := "", false
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && n.Sel.Name == "Sleep" {
					sleeps = f.at(n)
				}
			case *ast.Ident:
				bubble = bubble || strings.Contains(strings.ToLower(n.Name), "bubble") || n.Name == "synctest"
			}
			return true
		})
		if f.test() && sleeps != "" && !bubble {
			t.Errorf("%s: a real sleep in a test: wait for the event, or use testing/synctest", sleeps)
		}
	}
}

func TestNothingIsLeftForLater(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, group := range f.ast.Comments {
			if word := unfinished.FindString(group.Text()); word != "" {
				t.Errorf("%s: %s: finish it, or write down in docs why it is not done", f.at(group), word)
			}
		}
	}
	walk(t, []string{".md", ".yml", ".yaml", ".sh"}, func(path string, text []byte) {
		if word := unfinished.Find(text); word != nil {
			t.Errorf("%s: %s: finish it, or say plainly what is missing", path, word)
		}
	})
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test() {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && receiverExported(d) {
					t.Errorf("%s: %s has no doc comment", f.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				checkSpecsDocumented(t, f, d)
			}
		}
	}
}

func checkSpecsDocumented(t *testing.T, f goFile, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
				t.Errorf("%s: type %s has no doc comment", f.at(s), s.Name.Name)
			}
		case *ast.ValueSpec: // one comment may speak for a whole group
			for _, n := range s.Names {
				if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
					t.Errorf("%s: %s has no doc comment", f.at(s), n.Name)
				}
			}
		}
	}
}

func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported || id.IsExported()
		}
		return true
	})
	return exported
}

// TestEveryDecoderIsFuzzed holds every exported function that reads what
// somebody else wrote (Decode…, Parse…, Validate…, Canonical…, a method
// Translate) to be reached from a fuzz target of its own package.
func TestEveryDecoderIsFuzzed(t *testing.T) {
	packages := map[string][]goFile{}
	for _, f := range goFiles(t) {
		packages[filepath.Dir(f.path)] = append(packages[filepath.Dir(f.path)], f)
	}
	for dir, files := range packages {
		calls, decoders := map[string][]string{}, map[string]string{}
		var targets []string
		for _, f := range files {
			for _, decl := range f.ast.Decls {
				d, ok := decl.(*ast.FuncDecl)
				if !ok {
					continue
				}
				name := d.Name.Name
				calls[name] = append(calls[name], namesUsed(d)...)
				switch {
				case f.test() && strings.HasPrefix(name, "Fuzz"):
					targets = append(targets, name)
				case !f.test() && (d.Recv == nil && decoder.MatchString(name) || d.Recv != nil && name == "Translate"):
					decoders[name] = f.at(d)
				}
			}
		}
		reached := reach(targets, calls)
		for name, at := range decoders {
			if !reached[name] {
				t.Errorf("%s: no fuzz target in %s calls %s", at, dir, name)
			}
		}
	}
}

func namesUsed(d *ast.FuncDecl) []string {
	var names []string
	if d.Body != nil {
		ast.Inspect(d.Body, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				names = append(names, id.Name)
			}
			return true
		})
	}
	return names
}

func reach(from []string, calls map[string][]string) map[string]bool {
	reached := map[string]bool{}
	for len(from) > 0 {
		name := from[len(from)-1]
		from = from[:len(from)-1]
		if !reached[name] {
			reached[name] = true
			from = append(from, calls[name]...)
		}
	}
	return reached
}

func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	walk(t, []string{".go"}, func(path string, text []byte) {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, goFile{path, strings.Count(string(text), "\n"), set, tree})
	})
	return files
}

// walk visits the project's own files with these endings.
func walk(t *testing.T, endings []string, visit func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "node_modules", "testdata"}, d.Name()) {
			return fs.SkipDir
		}
		if d.IsDir() || !slices.Contains(endings, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		visit(strings.TrimPrefix(path, root+"/"), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
