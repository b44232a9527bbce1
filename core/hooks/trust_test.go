package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/events"
)

func TestTrustDecidesWhetherAProjectCounts(t *testing.T) {
	g := newGround(t)
	g.write(filepath.Join(g.home, "hooks.yaml"), named("global"))
	file := g.write(".fermata/hooks.yaml", scripted("own", "check.sh"))
	script := g.write(".fermata/check.sh", "exit 0\n")

	before := g.set()
	if ids(before) != "global" || len(before.Notices) != 1 || !strings.Contains(before.Notices[0].Error(), file) {
		t.Errorf("never trusted: %s, notices %q", ids(before), before.Notices)
	}
	kept := g.store()
	if set, err := kept.For(g.project); err != nil || ids(set) != "global" {
		t.Fatal(err)
	}
	r := g.trust()
	if len(r.Files) != 2 || r.Files[0].Trust != TrustTrusted || r.Files[1].Trust != TrustAlways || r.Files[0].Scripts[0].Path != script {
		t.Errorf("%+v", r)
	}
	for _, s := range []*Store{kept, g.store()} {
		set, err := s.For(g.project)
		g.ok(err)
		digest, err := digestRegular(script)
		g.ok(err)
		if ids(set) != "own global" || len(set.Notices) != 0 || set.Hook(0).Pinned != digest || set.Hook(0).Ref.Scope != events.ScopeProject {
			t.Errorf("trusted: %s, notices %q, pinned %q", ids(set), set.Notices, set.Hook(0).Pinned)
		}
		if set.Digest == before.Digest {
			t.Error("the digest is the same with and without the project's hooks")
		}
	}
	r, err := g.store().Untrust(g.project)
	if err != nil || r.Files[0].Trust != TrustNone {
		t.Error(err, r)
	}
	if set, err := kept.For(g.project); err != nil || ids(set) != "global" || set.Digest != before.Digest {
		t.Error("untrusted:", err, set)
	}
	info, err := os.Stat(g.o.TrustFile)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error("the trust file:", err, info)
	}
	if left, err := filepath.Glob(g.o.TrustFile + "*"); err != nil || len(left) != 2 {
		t.Error("beside the trust file there is more than its lock:", left)
	}
}

// What was trusted holds until it is trusted again, whatever is done to it.
func TestTrustEndsWithEveryChange(t *testing.T) {
	const own, script = ".fermata/hooks.yml", ".fermata/check.sh"
	for _, tc := range []struct {
		name, want string
		change     func(*ground)
	}{
		{"another text", own + " changed", func(g *ground) { g.write(own, scripted("other", "check.sh")) }},
		{"a comment more", own + " changed", func(g *ground) { g.write(own, scripted("own", "check.sh")+"# x\n") }},
		{"broken", own + " changed", func(g *ground) { g.write(own, "hooks:\n") }},
		{"emptied", own + " changed", func(g *ground) { g.write(own, "") }},
		{"deleted", own + " gone", func(g *ground) { g.ok(os.Remove(g.at(own))) }},
		{"its directory deleted", own + " gone, " + script + " gone", func(g *ground) { g.ok(os.RemoveAll(g.at(".fermata"))) }},
		{"its directory a file", own + " unreadable, " + script + " unreadable", func(g *ground) {
			g.ok(os.RemoveAll(g.at(".fermata")))
			g.write(".fermata", "")
		}},
		{"renamed to another that counts", own + " gone", func(g *ground) { g.ok(os.Rename(g.at(own), g.at(".fermata/hooks.json"))) }},
		{"shadowed", own + " shadowed", func(g *ground) { g.write(".fermata/hooks.yaml", "version: 1\n") }},
		{"shadowed by a link to nothing", own + " shadowed", func(g *ground) { g.ok(os.Symlink("nothing", g.at(".fermata/hooks.yaml"))) }},
		{"writable by everybody", own + " unreadable", func(g *ground) { g.ok(os.Chmod(g.at(own), 0o666)) }},
		{"a directory", own + " unreadable", func(g *ground) {
			g.ok(os.Remove(g.at(own)))
			g.ok(os.Mkdir(g.at(own), 0o700))
		}},
		{"a link to the same text", own + " link", func(g *ground) {
			g.ok(os.Rename(g.at(own), g.at("moved.yml")))
			g.ok(os.Symlink("../moved.yml", g.at(own)))
		}},
		{"a link to nothing", own + " link", func(g *ground) {
			g.ok(os.Remove(g.at(own)))
			g.ok(os.Symlink("nothing", g.at(own)))
		}},
		{"its directory a link to the same", own + " link", func(g *ground) {
			g.ok(os.Rename(g.at(".fermata"), g.at("moved")))
			g.ok(os.Symlink("moved", g.at(".fermata")))
		}},
		{"a link to the global file", own + " link", func(g *ground) {
			g.ok(os.Remove(g.at(own)))
			g.ok(os.Symlink(filepath.Join(g.home, "hooks.yaml"), g.at(own)))
		}},
		{"a hard link to the global file", own + " changed", func(g *ground) {
			g.ok(os.Remove(g.at(own)))
			g.ok(os.Link(filepath.Join(g.home, "hooks.yaml"), g.at(own)))
		}},
		{"another script", script + " changed", func(g *ground) { g.write(script, "exit 1\n") }},
		{"no script", script + " gone", func(g *ground) { g.ok(os.Remove(g.at(script))) }},
		{"the script a directory", script + " unreadable", func(g *ground) {
			g.ok(os.Remove(g.at(script)))
			g.ok(os.Mkdir(g.at(script), 0o700))
		}},
		{"the script a link to the same text", script + " link", func(g *ground) {
			g.ok(os.Rename(g.at(script), g.at("moved.sh")))
			g.ok(os.Symlink("../moved.sh", g.at(script)))
		}},
		{"both", own + " gone, " + script + " changed", func(g *ground) {
			g.ok(os.Remove(g.at(own)))
			g.write(script, "exit 1\n")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			g.o.OnInvalidWarn = true // never for what was trusted
			g.write(filepath.Join(g.home, "hooks.yaml"), named("global"))
			g.write(own, scripted("own", "check.sh"))
			g.write(script, "exit 0\n")
			g.trust()
			known := g.store()
			set, err := known.For(g.project)
			g.ok(err)
			if ids(set) != "own global" {
				t.Fatal(ids(set))
			}
			tc.change(g)
			g.refused(tc.want, known)
			if f := Lint(known.Inspect(g.project), os.Environ()); !hasFinding(f, FindingChanged, SeverityError) {
				t.Errorf("not among the findings: %+v", f)
			}
			if other, err := known.For(g.root); err != nil || ids(other) != "global" {
				t.Error("another directory is not concerned:", err)
			}
		})
	}
}

func hasFinding(all []Finding, code FindingCode, severity Severity) bool {
	for _, f := range all {
		if f.Code == code && f.Severity == severity && f.Message.Error() != "" && f.File != "" {
			return true
		}
	}
	return false
}

func TestTrustAgainAfterAChange(t *testing.T) {
	g := newGround(t)
	g.write(".fermata/hooks.yml", scripted("own", "check.sh"))
	script := g.write(".fermata/check.sh", "exit 0\n")
	g.trust()
	g.write(".fermata/check.sh", "exit 1\n")
	g.refused(".fermata/check.sh changed")
	g.trust()
	digest, err := digestRegular(script)
	if set := g.set(); err != nil || set.Hook(0).Pinned != digest {
		t.Error("the new script is not the pinned one")
	}
	g.write(".fermata/hooks.yaml", named("before"))
	g.trust()
	if set := g.set(); ids(set) != "before" {
		t.Error(ids(set))
	}
	// A yes to files that are gone is a yes all the same.
	g.ok(os.RemoveAll(g.at(".fermata")))
	g.refused(".fermata/hooks.yaml gone")
	g.trust()
	if set := g.set(); ids(set) != "" || len(set.Notices) != 0 {
		t.Error(ids(set), set.Notices)
	}
	if _, err := g.store().Trust(g.project); err == nil || !strings.Contains(err.Error(), "no hooks file") {
		t.Error("nothing to trust:", err)
	}
	if _, err := g.store().Untrust(g.project); err != nil {
		t.Error("nothing to take back:", err)
	}
}

// A yes to a file that became the global one leaves nothing to trust: from then
// on it changes as global files do.
func TestTrustOfWhatBecameGlobal(t *testing.T) {
	g := newGround(t)
	global := g.write(filepath.Join(g.home, "hooks.yaml"), named("global"))
	own := g.write(".fermata/hooks.yaml", named("own"))
	g.trust()
	g.ok(os.Remove(own))
	g.ok(os.Link(global, own))
	g.refused(".fermata/hooks.yaml changed")
	g.trust()
	if set := g.set(); ids(set) != "global" {
		t.Error(ids(set))
	}
	g.write(global, named("edited"))
	if set := g.set(); ids(set) != "edited" {
		t.Error(ids(set))
	}
}

func TestTrustRefusesWhatCannotBeUsed(t *testing.T) {
	g := newGround(t)
	file := g.write(".fermata/hooks.yaml", "hooks:\n")
	var bad *ConfigError
	if _, err := g.store().Trust(g.project); !errors.As(err, &bad) || bad.File != file || bad.Code() != events.CodeHooksConfigInvalid {
		t.Error("a broken file:", err)
	}
	g.write(".fermata/hooks.yaml", scripted("own", "check.sh"))
	if _, err := g.store().Trust(g.project); err == nil || !strings.Contains(err.Error(), "check.sh") {
		t.Error("a script that is not there:", err)
	}
	g.write(".fermata/hooks.yaml", one("id: off", "enabled: false", "event: after_turn", "run: {type: script, path: check.sh}"))
	g.trust()
	if _, err := g.store().Trust("p"); err == nil {
		t.Error("a relative path was trusted")
	}
	g.o.TrustFile = ""
	if _, err := g.store().Trust(g.project); err == nil {
		t.Error("trusted without a place to note it")
	}
	if set := g.set(); ids(set) != "" || len(set.Notices) != 1 {
		t.Error("without a trust file nothing is trusted:", ids(set), set.Notices)
	}
	g.o.TrustAll = true
	if set := g.set(); ids(set) != "off" || len(set.Notices) != 0 {
		t.Error("a dry run trusts all:", ids(set), set.Notices)
	}
}

// Nobody knows what was trusted: what might have been stops gated calls.
func TestTrustFileDamaged(t *testing.T) {
	g := newGround(t)
	g.write(filepath.Join(g.home, "hooks.yaml"), named("global"))
	g.write(".fermata/hooks.yaml", named("own"))
	g.trust()
	good, err := os.ReadFile(g.o.TrustFile)
	g.ok(err)
	known := g.store()
	for name, damage := range map[string]func(){
		"cut off":     func() { g.write(g.o.TrustFile, string(good[:len(good)-5])) },
		"empty":       func() { g.write(g.o.TrustFile, "") },
		"other case":  func() { g.write(g.o.TrustFile, strings.Replace(string(good), `"dir"`, `"Dir"`, 1)) },
		"further key": func() { g.write(g.o.TrustFile, strings.Replace(string(good), `"version"`, `"x": 1, "version"`, 1)) },
		"twice a key": func() {
			g.write(g.o.TrustFile, strings.Replace(string(good), `"version"`, `"version": 1, "version"`, 1))
		},
		"version 2":     func() { g.write(g.o.TrustFile, strings.Replace(string(good), `"version": 1`, `"version": 2`, 1)) },
		"bad digest":    func() { g.write(g.o.TrustFile, strings.Replace(string(good), `"digest": "`, `"digest": "A`, 1)) },
		"two texts":     func() { g.write(g.o.TrustFile, string(good)+string(good)) },
		"all may write": func() { g.ok(os.Chmod(g.o.TrustFile, 0o666)) },
		"a directory": func() {
			g.ok(os.Remove(g.o.TrustFile))
			g.ok(os.Mkdir(g.o.TrustFile, 0o700))
		},
		"a link to nothing": func() {
			g.ok(os.Remove(g.o.TrustFile))
			g.ok(os.Symlink("nothing", g.o.TrustFile))
		},
	} {
		g.ok(os.RemoveAll(g.o.TrustFile))
		g.write(g.o.TrustFile, string(good))
		if set, err := known.For(g.project); err != nil || ids(set) != "own global" {
			t.Fatal(name, err)
		}
		damage()
		g.refused(".fermata/hooks.yaml unknown", known)
		_, err := known.For(g.project)
		if !strings.Contains(err.Error(), g.o.TrustFile) {
			t.Errorf("%s: the file is not named: %v", name, err)
		}
		if _, err := known.Trust(g.project); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: trusted over the damage: %v", name, err)
		}
		if set, err := known.For(g.root); err != nil || ids(set) != "global" {
			t.Errorf("%s: a directory without hooks is not concerned: %v", name, err)
		}
	}
}

func TestTrustOfManyAtOnceLosesNothing(t *testing.T) {
	g := newGround(t)
	const projects = 24
	var all sync.WaitGroup
	for i := range projects {
		dir := filepath.Join(g.root, fmt.Sprint("project", i))
		g.ok(os.MkdirAll(filepath.Join(dir, ".fermata"), 0o700))
		g.write(filepath.Join(dir, ".fermata", "hooks.yaml"), named(fmt.Sprint("h", i)))
		all.Go(func() {
			if _, err := g.store().Trust(dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	store := g.store()
	for i := range projects {
		set, err := store.For(filepath.Join(g.root, fmt.Sprint("project", i)))
		if err != nil || ids(set) != fmt.Sprint("h", i) {
			t.Errorf("project %d: %v", i, err)
		}
	}
}

// A project is its directory, by whatever path it is reached.
func TestTrustFollowsTheDirectory(t *testing.T) {
	g := newGround(t)
	g.write(".fermata/hooks.yaml", named("own"))
	g.trust()
	link := filepath.Join(g.root, "link")
	g.ok(os.Symlink("p", link))
	store := g.store()
	if set, err := store.For(link); err != nil || ids(set) != "own" {
		t.Fatal("through a link:", err)
	}
	// The link leads to another project now, with the same files.
	other := filepath.Join(g.root, "other")
	g.ok(os.CopyFS(other, os.DirFS(g.project)))
	g.ok(os.Remove(link))
	g.ok(os.Symlink("other", link))
	if set, err := store.For(link); err != nil || ids(set) != "" || len(set.Notices) != 1 {
		t.Error("a copy is another project:", err, set)
	}
	// And now to nowhere; and the trusted project is moved away.
	g.ok(os.RemoveAll(other))
	if set, err := store.For(link); err != nil || ids(set) != "" {
		t.Error("a directory that is gone:", err)
	}
	g.ok(os.Remove(link))
	g.ok(os.Symlink("p", link))
	if set, err := store.For(link); err != nil || ids(set) != "own" {
		t.Error("back again:", err)
	}
	g.ok(os.Rename(g.project, other))
	if _, err := store.For(link); err == nil {
		t.Error("its files are gone and nobody said yes to that")
	}
	if set, err := store.For(other); err != nil || ids(set) != "" || len(set.Notices) != 1 {
		t.Error("moved to another place it was not trusted:", err)
	}
}

// Behind a link, .. is the parent of what the link names: there the call runs, and
// there its rules are.
func TestTrustFollowsTheSystemsWay(t *testing.T) {
	g := newGround(t)
	g.write(".fermata/hooks.yaml", named("own"))
	g.trust()
	g.ok(os.Mkdir(filepath.Join(g.project, "below"), 0o700))
	g.ok(os.Mkdir(filepath.Join(g.root, "elsewhere"), 0o700))
	g.ok(os.Symlink(filepath.Join(g.project, "below"), filepath.Join(g.root, "elsewhere", "link")))
	cwd := filepath.Join(g.root, "elsewhere", "link") + "/.."
	if set, err := g.store().For(cwd); err != nil || ids(set) != "own" {
		t.Error(err, set)
	}
	if dir := g.store().Inspect(cwd).Dir; dir != resolve(g.project) {
		t.Error(dir)
	}
}

// What is trusted survives writing and reading, and any other text is damage.
func TestTrustFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digest := rapid.Custom(func(t *rapid.T) events.Digest { return events.DigestOf(rapid.SliceOf(rapid.Byte()).Draw(t, "content")) })
		dir := rapid.StringMatching(`(/[a-zé <>&"\\]{1,8}){1,4}`)
		script := rapid.Custom(func(t *rapid.T) trustedScript {
			return trustedScript{rapid.StringMatching(`[a-z./]{1,9}`).Draw(t, "path"), digest.Draw(t, "digest")}
		})
		var f trustFile
		for range rapid.IntRange(0, 4).Draw(t, "projects") {
			var files []trustedFile
			for _, place := range []string{".fermata", ".chrys/hooks"} {
				scripts := rapid.SliceOfNDistinct(script, 0, 3, func(s trustedScript) string { return s.Path }).Draw(t, "scripts")
				name := rapid.SampledFrom(FileNames()).Draw(t, "name")
				files = append(files, trustedFile{place + "/" + name, dir.Draw(t, "real"), digest.Draw(t, "digest"), scripts})
			}
			f.put(dir.Draw(t, "dir"), files[:rapid.IntRange(0, 2).Draw(t, "files")])
		}
		if f.Version == 0 {
			return
		}
		got, err := decodeTrust(f.encode())
		if err != nil {
			t.Fatalf("%v: %s", err, f.encode())
		}
		if string(got.encode()) != string(f.encode()) {
			t.Fatalf("%s\nis read as\n%s", f.encode(), got.encode())
		}
	})
}

func FuzzTrustFile(f *testing.F) {
	digest := events.DigestOf(nil)
	var good trustFile
	good.put("/w/p", []trustedFile{{".fermata/hooks.yaml", "/w/p/.fermata/hooks.yaml", digest, []trustedScript{{"check.py", digest}}}})
	f.Add(good.encode())
	f.Add([]byte(`{"version":1,"projects":[]}`))
	f.Add([]byte(`{"version":1,"projects":null}`))
	f.Add([]byte(`{"VERSION":1,"projects":[{"dir":"/a","files":[]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeTrust(data)
		if err != nil {
			return
		}
		if got.Version != 1 || !json.Valid(data) {
			t.Fatalf("read %q", data)
		}
		again, err := decodeTrust(got.encode())
		if err != nil || string(again.encode()) != string(got.encode()) {
			t.Fatalf("%v: %q is not what is read back", err, got.encode())
		}
		for _, p := range got.Projects {
			for _, file := range p.Files {
				if was, ok := got.file(p.Dir, filepath.ToSlash(filepath.Dir(file.Path))); !ok || was.Path != file.Path {
					t.Fatalf("%s of %s is not found", file.Path, p.Dir)
				}
			}
		}
	})
}
