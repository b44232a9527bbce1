package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-hitl/fermata/events"
)

// ground is a home and a project with every place where hooks files can be.
type ground struct {
	t       *testing.T
	root    string // that holds all of it
	home    string // of Fermata
	chrys   string // of iCode
	project string
	o       StoreOptions
}

func newGround(t *testing.T) *ground {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, root: root, home: filepath.Join(root, "fermata"), chrys: filepath.Join(root, ".chrys"), project: filepath.Join(root, "p")}
	for _, dir := range []string{g.home, filepath.Join(g.chrys, "hooks"), filepath.Join(g.project, ".fermata"), filepath.Join(g.project, ".chrys", "hooks")} {
		g.ok(os.MkdirAll(dir, 0o700))
	}
	g.o = StoreOptions{
		GlobalDir: g.home, ICodeGlobal: filepath.Join(g.chrys, "hooks"), ICode: true, TrustFile: filepath.Join(root, "state", "trust.json"),
	}
	return g
}

func (g *ground) ok(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// write puts a file into the project; an absolute path stays what it is.
func (g *ground) write(path, text string) string {
	g.t.Helper()
	path = g.at(path)
	g.ok(os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (g *ground) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(g.project, path)
}

func (g *ground) store() *Store { return NewStore(g.o) }

// trust says yes to the project as it is now.
func (g *ground) trust() Report {
	g.t.Helper()
	r, err := g.store().Trust(g.project)
	g.ok(err)
	return r
}

// set is what holds in the project, read by a store that knows nothing yet.
func (g *ground) set() *Set {
	g.t.Helper()
	set, err := g.store().For(g.project)
	g.ok(err)
	return set
}

// refused wants a NotTrusted with these changes, by a new store and by ones
// that knew the files before.
func (g *ground) refused(want string, stores ...*Store) {
	g.t.Helper()
	for _, s := range append(stores, g.store()) {
		set, err := s.For(g.project)
		var not *NotTrusted
		if !errors.As(err, &not) || set != nil {
			g.t.Fatalf("%v, %+v; want a *NotTrusted", err, set)
		}
		var got []string
		for _, c := range not.Changes {
			got = append(got, c.Path+" "+string(c.Kind))
		}
		if g.t.Helper(); strings.Join(got, ", ") != want {
			g.t.Errorf("changes %q, want %q", strings.Join(got, ", "), want)
		}
		if not.Code() != events.CodeNotTrusted || not.Dir != g.project || !strings.Contains(err.Error(), "fermata hooks trust") {
			g.t.Errorf("%s %s: %v", not.Code(), not.Dir, err)
		}
	}
}

// ids lists a set's hooks.
func ids(set *Set) string {
	var out []string
	for _, h := range set.Hooks {
		out = append(out, h.Ref.ID)
	}
	return strings.Join(out, " ")
}

// named is a file with one blocking rule.
func named(id string) string {
	return one("id: "+id, "event: before_tool_call", "run: {type: verdict, action: ask}", "execution: {mode: blocking}")
}

// scripted is a file with one blocking hook that runs a script.
func scripted(id, path string) string {
	return one("id: "+id, "event: before_tool_call", "run: {type: script, path: "+path+"}", "execution: {mode: blocking}")
}
