package integration_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/fermata-hitl/fermata"
	root   = "../.." // of the module, from this package's directory
)

type room struct {
	pattern string
	may     []string
}

// rooms is the plan of the house: which of our own packages each may import. A
// star stands for one path element, "..." at the end for any number. The first
// row that fits a package holds for it.
var rooms = []room{
	{"events", nil},
	{"core", []string{"events"}},
	{"core/journal", []string{"core", "events"}},
	{"core/hooks", []string{"core", "events"}},
	{"core/approvals", []string{"core", "events"}},
	{"core/engine", []string{"core", "core/journal", "core/hooks", "core/approvals", "events"}},
	{"core/agents", []string{"core", "events"}},
	{"core/agents/*", []string{"core", "core/agents", "events"}},
	{"core/frontdesk", []string{"core", "core/engine", "events"}},
	{"core/natsd", nil},
	{"frontends", []string{"events"}},
	{"frontends/words", nil},
	{"frontends/card", []string{"events", "frontends/words"}},
	{"frontends/*", []string{"frontends", "frontends/card", "frontends/words", "events"}},
	{"tracing", []string{"events"}},
	{"cmd/internal/...", []string{"cmd/internal/..."}},
	{"cmd/*", []string{"..."}},
	{"test/...", []string{"..."}},
	{"docs/examples/...", []string{"..."}},
}

// outside says which rooms alone may import what is not ours. Test files are
// bound by the rows marked so.
var outside = []struct {
	pkg   string // it and everything below
	only  []string
	tests bool
}{
	{"github.com/nats-io/nats-server/v2", []string{"core/natsd"}, true},
	{"github.com/nats-io/nats.go/jetstream", []string{"core/journal", "test/..."}, false},
	{"github.com/nats-io/nats.go", []string{
		"core/journal", "core/engine", "core/frontdesk", "core/agents", "core/natsd", "frontends", "cmd/*", "test/...", "docs/examples/...",
	}, false},
	{"go.opentelemetry.io", []string{"tracing", "cmd/core", "test/..."}, false},
	{"charm.land", []string{"frontends/tui", "cmd/tui-frontend"}, false},
	{"github.com/spf13/cobra", []string{"cmd/*"}, false},
	{"github.com/aymanbagabas/go-udiff", []string{"frontends/card"}, false},
	{"go.yaml.in/yaml/v4", []string{"core/hooks", "core/approvals", "cmd/*", "cmd/internal/place"}, false},
}

// impure is what package core must not reach for: the world, the clock, chance.
var impure = map[string][]string{
	"import": {
		"os", "os/exec", "os/signal", "net", "net/http", "syscall", "math/rand", "math/rand/v2", "crypto/rand", "log", "log/slog", "context",
	},
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep", "Local"},
}

// listed is what the go command tells of a package.
type listed struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestEveryPackageKeepsToItsRoom(t *testing.T) {
	// Both systems, since a file for one may import what no other does.
	for _, system := range []string{"linux", "darwin"} {
		for _, p := range list(t, system, "./...") {
			pkg, ours := strings.CutPrefix(p.ImportPath, module+"/")
			if !ours {
				t.Errorf("%s: a package at the top, which holds none", p.ImportPath)
				continue
			}
			row := slices.IndexFunc(rooms, func(r room) bool { return fits(r.pattern, pkg) })
			if row < 0 {
				t.Errorf("%s has no row in the table of rooms: add one that says what it may import", pkg)
				continue
			}
			for _, imp := range p.Imports {
				if own, ok := strings.CutPrefix(imp, module+"/"); ok && !fitsAny(rooms[row].may, own) {
					t.Errorf("%s (%s) imports %s; it may import %v", pkg, system, own, rooms[row].may)
				}
			}
			checkOutside(t, pkg, p)
		}
	}
}

func checkOutside(t *testing.T, pkg string, p listed) {
	t.Helper()
	for _, imp := range p.Imports {
		for _, rule := range outside {
			if within(rule.pkg, imp) && !fitsAny(rule.only, pkg) {
				t.Errorf("%s imports %s; only %v may", pkg, imp, rule.only)
			}
		}
	}
	for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
		for _, rule := range outside {
			if rule.tests && within(rule.pkg, imp) && !fitsAny(rule.only, pkg) {
				t.Errorf("a test of %s imports %s; only %v may (use their test servers)", pkg, imp, rule.only)
			}
		}
	}
}

// TestCoreIsPure also covers F3: only a fold without clock and chance gives the
// same state after every restart.
func TestCoreIsPure(t *testing.T) {
	core := list(t, "linux", "./core")[0]
	for _, imp := range core.Imports {
		if strings.Contains(imp, ".") && imp != module+"/events" {
			t.Errorf("core imports %s; it may import events and the standard library", imp)
		}
		if slices.Contains(impure["import"], imp) {
			t.Errorf("core imports %s; state must follow from its inputs alone", imp)
		}
	}
	for _, name := range core.GoFiles {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(core.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(impure["time"], s.Sel.Name) {
					t.Errorf("%s: time.%s; time enters core as a field of a command", set.Position(s.Pos()), s.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestSmallProgramsStaySmall checks everything that is linked, at any distance.
func TestSmallProgramsStaySmall(t *testing.T) {
	tests := []struct {
		program string
		never   []string
		why     string
	}{
		{
			"./cmd/agent-hook",
			[]string{"net", "github.com", "go.yaml.in", "go.opentelemetry.io", module + "/events", module + "/core", module + "/frontends"},
			"an agent waits for it at every call, and package net alone costs as much as the program",
		},
		{
			"./cmd/tui-frontend",
			[]string{"github.com/nats-io/nats-server/v2", module + "/core"},
			"a frontend must not carry the core",
		},
		{
			"./cmd/fermata",
			[]string{"net", "github.com", "charm.land"},
			"it only finds the program that does the work",
		},
	}
	for _, test := range tests {
		t.Run(path.Base(test.program), func(t *testing.T) {
			for _, p := range list(t, "linux", "-deps", test.program) {
				// The catalogue of words imports nothing but the standard library.
				allowed := within(module+"/cmd", p.ImportPath) || test.program == "./cmd/fermata" && p.ImportPath == module+"/frontends/words"
				if i := slices.IndexFunc(test.never, func(n string) bool { return within(n, p.ImportPath) }); i >= 0 && !allowed {
					t.Errorf("links %s: %s", p.ImportPath, test.why)
				}
			}
		})
	}
}

func list(t *testing.T, system string, args ...string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports"}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v", args, err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// fits tells whether a pattern of the tables above matches a package.
func fits(pattern, pkg string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(pkg, prefix)
	}
	ok, err := path.Match(pattern, pkg)
	return ok && err == nil
}

func fitsAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return fits(p, pkg) })
}

// within tells whether a package is another or stands below it.
func within(above, pkg string) bool {
	return pkg == above || strings.HasPrefix(pkg, above+"/")
}
