package words

import (
	"go/ast"
	values "go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestB125EverySentenceIsInTheCatalogue holds the catalogue complete against the
// rooms that do not know it. What a person reads of them has a type of its own,
// so the type checker finds all of it.
func TestB125EverySentenceIsInTheCatalogue(t *testing.T) {
	said := map[Key]bool{}
	for _, room := range []string{"../../core/hooks", "../../cmd/internal/place"} {
		files, info := checked(t, room)
		for e, of := range info.Types {
			switch {
			case !isSentence(of.Type) || of.IsType():
			case of.Value != nil:
				said[Key(values.StringVal(of.Value))] = true
			case !passedOn(e):
				t.Errorf("%s: a sentence that is no constant: %s", room, types.ExprString(e))
			}
		}
		for _, f := range files {
			countArguments(t, f, info)
		}
	}
	delete(said, "") // no sentence at all
	if len(said) < 100 {
		t.Errorf("found only %d sentences", len(said))
	}
	for k := range said {
		if sentences[k] == "" {
			t.Errorf("%q has no words in Chinese", k)
		}
	}
	symbols := all()
	for k := range sentences {
		if !said[k] {
			t.Errorf("%q is said nowhere", k)
		}
		if _, twice := symbols[k]; twice {
			t.Errorf("%q is also a key", k)
		}
	}
}

func isSentence(of types.Type) bool {
	named, ok := of.(*types.Named)
	return ok && named.Obj().Name() == "sentence"
}

// passedOn reports a variable, whose text was found where it came from.
func passedOn(e ast.Expr) bool {
	switch e.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr:
		return true
	}
	return false
}

// countArguments counts what stands behind each sentence where it is said.
func countArguments(t *testing.T, f *ast.File, info *types.Info) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || call.Ellipsis.IsValid() {
			return true
		}
		of, ok := info.Types[call.Fun].Type.(*types.Signature)
		if !ok || !of.Variadic() || !takesAnything(of) {
			return true
		}
		at := of.Params().Len() - 2
		if at < 0 {
			return true
		}
		text := info.Types[call.Args[at]]
		if text.Value == nil || !isSentence(text.Type) {
			return true
		}
		s := values.StringVal(text.Value)
		if want, got := len(verbs(s)), len(call.Args)-at-1; want != got {
			t.Errorf("%q is said with %d arguments, it takes %d", s, got, want)
		}
		return true
	})
}

// takesAnything reports a function that ends in ...any.
func takesAnything(of *types.Signature) bool {
	last := of.Params().At(of.Params().Len() - 1).Type().(*types.Slice)
	return types.Identical(last.Elem().Underlying(), types.NewInterfaceType(nil, nil))
}

// checked reads a package of ours and gives every expression its type.
func checked(t *testing.T, dir string) ([]*ast.File, *types.Info) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range goList(t, dir, "{{range .GoFiles}}{{$.Dir}}/{{.}}\n{{end}}") {
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	compiled := map[string]string{}
	for _, line := range goList(t, dir, "{{.ImportPath}} {{.Export}}", "-export", "-deps") {
		path, file, _ := strings.Cut(line, " ")
		compiled[path] = file
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})}
	if _, err := config.Check(filepath.Base(dir), fset, files, info); err != nil {
		t.Fatal(err)
	}
	return files, info
}

func goList(t *testing.T, dir, format string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"list", "-f", format}, args...), ".")...)
	cmd.Dir, cmd.Stderr = dir, t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
