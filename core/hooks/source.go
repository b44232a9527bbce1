package hooks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// fileNames are the names of a hooks file, in the order in which they count.
var fileNames = [3]string{"hooks.yaml", "hooks.yml", "hooks.json"}

// FileNames lists the names that a hooks file can have. Where several stand, the
// first one counts.
func FileNames() []string { return slices.Clone(fileNames[:]) }

// maxSources is how many hooks files can count at once.
const maxSources = 4

// source is a directory in which a hooks file may stand.
type source struct {
	scope events.Scope
	dir   string
	icode bool
	// inside is the directory's path within the project, "" for a global one.
	inside string
	files  [len(fileNames)]string // the paths that a hooks file may have
}

func newSource(scope events.Scope, dir, inside string, icode bool) source {
	src := source{scope: scope, dir: dir, icode: icode, inside: inside}
	for i, name := range fileNames {
		src.files[i] = filepath.Join(dir, name)
	}
	return src
}

// sources lists where hooks files may be, in the order in which their hooks
// run. A working directory that is not absolute has no project.
func (s *Store) sources(cwd string) []source {
	all := make([]source, 0, maxSources)
	if filepath.IsAbs(cwd) {
		all = append(all, newSource(events.ScopeProject, filepath.Join(cwd, ".fermata"), ".fermata", false))
		if s.o.ICode {
			all = append(all, newSource(events.ScopeProject, filepath.Join(cwd, ".chrys", "hooks"), ".chrys/hooks", true))
		}
	}
	all = append(all, newSource(events.ScopeGlobal, s.o.GlobalDir, "", false))
	if s.o.ICode && s.o.ICodeGlobal != "" {
		all = append(all, newSource(events.ScopeGlobal, s.o.ICodeGlobal, "", true))
	}
	return all
}

// named is a path beside the source's file as the project's people name it.
func (src source) named(path string) string { return filepath.Join(src.inside, path) }

// home is what the templates for the home stand for in a source's file.
func (s *Store) home(src source) string {
	if src.icode && s.o.ICodeGlobal != "" {
		return filepath.Dir(s.o.ICodeGlobal)
	}
	return s.o.Home
}

// text is a hooks file as it was found. Without one it is zero.
type text struct {
	file   string // its path
	real   string // its path with links resolved
	note   note
	data   []byte // dropped once it has been read into hooks
	digest events.Digest
	err    error // why it could not be read
	hidden bool  // its directory could not be looked into; which file counts is not known
}

// locate finds the hooks file of a source without reading it.
func (src source) locate() text {
	p := src.look()
	if p.hid {
		return text{file: src.files[0], err: hiddenBy(src.dir), hidden: true}
	}
	return text{file: p.path, note: p.file}
}

// hiddenBy tells why nobody can see what stands in a directory.
func hiddenBy(dir string) error {
	_, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return tell("%s is a link to nothing", dir)
	}
	if err == nil {
		return tell("%s cannot be looked into", dir)
	}
	return err
}

// read reads the hooks file of a source. Of a file that is too large it
// reads one byte more than is allowed.
func (src source) read() text {
	t := src.locate()
	if t.file == "" || t.err != nil {
		return t
	}
	t.data, t.err = readRegular(t.file, maxFile+1)
	if errors.Is(t.err, fs.ErrNotExist) {
		if _, linked := os.Lstat(t.file); linked == nil {
			t.err = tell("%s is a link to nothing", t.file)
		}
	}
	if t.err == nil {
		t.digest = events.DigestOf(t.data)
		t.real, t.err = filepath.EvalSymlinks(t.file)
	}
	return t
}

// readRegular reads at most limit bytes of a file that says what holds. It refuses
// one that everybody can write.
func readRegular(path string, limit int64) ([]byte, error) {
	data, mode, err := readPlain(path, limit)
	if err == nil && mode.Perm()&0o002 != 0 {
		return nil, tell("%s can be written by everybody, so its rules are nobody's; run chmod o-w on it", path)
	}
	return data, err
}

// readPlain reads at most limit bytes. It refuses what is no plain file, so that a
// pipe cannot hold the core.
func readPlain(path string, limit int64) ([]byte, fs.FileMode, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, tell("%s is not a plain file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return data, info.Mode(), err
}

// physical is a directory as the system finds it, where its path goes up: behind a
// link, .. is the parent of what the link names, and not of the link.
func physical(dir string) string {
	if !slices.Contains(strings.Split(dir, string(filepath.Separator)), "..") {
		return dir
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// part is what one source brings to the rules of a working directory.
type part struct {
	source
	text
	root    string     // of the project, links resolved
	trust   TrustState // "" when nothing stands there
	changes []Change
	pins    pins
	damage  error // of the trust file, where it should say whether this counts
}

// pins are the digests of scripts that were trusted, by the path that the hooks
// file gives them.
type pins map[string]events.Digest

// counts reports whether the part's hooks are in force.
func (p part) counts() bool { return p.trust == TrustAlways || p.trust == TrustTrusted }

// unsure reports whether something could not be read that another look might
// find readable, without any sign of a change.
func (p part) unsure() bool { return p.err != nil || p.damage != nil }

// equal reports whether nothing that matters has changed.
func (p part) equal(q part) bool {
	return p.root == q.root && p.file == q.file && p.real == q.real && p.digest == q.digest && p.trust == q.trust &&
		fmt.Sprint(p.err, p.damage) == fmt.Sprint(q.err, q.damage) && slices.Equal(p.changes, q.changes) && maps.Equal(p.pins, q.pins)
}

// gather finds what every source brings now, and the scripts that this hangs
// on. Texts that do not count are left unread unless all is set.
func (s *Store) gather(d *directory, all bool) ([]part, []watchedScript) {
	root := resolve(d.cwd)
	trusted := s.readTrust()
	parts := make([]part, 0, len(d.sources))
	var scripts []watchedScript
	for _, src := range d.sources {
		p := part{source: src, root: root}
		switch was, known := trusted.file(root, src.inside); {
		case src.scope == events.ScopeGlobal:
			p.text = src.read()
			p.trust = TrustAlways
		case s.o.TrustAll:
			p.text = src.read()
			p.trust = TrustTrusted
		case known:
			scripts = append(scripts, watch(src.dir, was)...)
			p.text = src.read()
			p.compare(was)
		default:
			p.passOver(trusted.damage, all)
		}
		if p.file == "" && p.trust != TrustChanged {
			p.trust = ""
		}
		parts = append(parts, p)
	}
	return dropTwins(parts), scripts
}

// watch notes the trusted scripts, before they are read: what comes between
// shows the next time.
func watch(dir string, f trustedFile) []watchedScript {
	var scripts []watchedScript
	for _, s := range f.Scripts {
		path := filepath.Join(dir, s.Path)
		scripts = append(scripts, watchedScript{path, noteAt(path)})
	}
	return scripts
}

// passOver looks at a project's file that nobody is known to have trusted.
func (p *part) passOver(damage error, all bool) {
	p.trust, p.damage = TrustNone, damage
	if p.text = p.locate(); all {
		p.text = p.read()
	}
	if damage != nil && p.file != "" {
		p.trust = TrustChanged
		p.changes = []Change{{p.named(filepath.Base(p.file)), ChangedUnknown}}
	}
}

// dropTwins lets a file that stands in more than one place count once: as a
// global one, and as Fermata's own, whose defaults are the safer ones. A file
// that is not as it was trusted stays, so that it is not passed over in silence.
func dropTwins(parts []part) []part {
	for i, p := range parts {
		if p.trust != TrustChanged && p.twinned(parts) {
			parts[i] = part{source: p.source, root: p.root}
		}
	}
	return parts
}

// twinned reports whether another of the parts, which goes before this one, is
// the same physical file.
func (p part) twinned(parts []part) bool {
	return slices.ContainsFunc(parts, func(q part) bool {
		global := q.scope == events.ScopeGlobal && p.scope == events.ScopeProject
		own := q.scope == p.scope && p.icode && !q.icode
		return (global || own) && q.note.same(p.note)
	})
}

// resolve follows the links of a path as far as it exists.
func resolve(path string) string {
	const enough = 40 // links; systems give up there too
	return follow(filepath.Clean(path), enough)
}

func follow(path string, links int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path || links == 0 {
		return path
	}
	parent = follow(parent, links-1)
	target, err := os.Readlink(path)
	switch {
	case err != nil:
		return filepath.Join(parent, filepath.Base(path))
	case filepath.IsAbs(target):
		return follow(filepath.Clean(target), links-1)
	}
	return follow(filepath.Join(parent, target), links-1)
}
