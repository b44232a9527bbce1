package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/core"
	"github.com/fermata-hitl/fermata/events"
)

// maxTrustFile bounds the trust file. It holds some ten thousand projects.
const maxTrustFile = 8 << 20

// trustFile is what was trusted, by whom this state directory belongs to. It is
// one JSON document; what is not exactly what Fermata writes is damage.
type trustFile struct {
	Version  int              `json:"version"`
	Projects []trustedProject `json:"projects"`
}

// trustedProject is a project with at least one trusted hooks file.
type trustedProject struct {
	Dir   string        `json:"dir"` // links resolved
	Files []trustedFile `json:"files"`
}

// trustedFile is a hooks file as it was when somebody said yes to it.
type trustedFile struct {
	Path    string          `json:"path"` // within the project, such as .fermata/hooks.yaml
	Real    string          `json:"real"` // with links resolved
	Digest  events.Digest   `json:"digest"`
	Scripts []trustedScript `json:"scripts"`
}

// trustedScript is a script that the file names by a relative path.
type trustedScript struct {
	Path   string        `json:"path"` // as the file writes it
	Digest events.Digest `json:"digest"`
}

// trusts is what is known of trust. While there is damage, nothing is known.
type trusts struct {
	trustFile
	damage error
}

// readTrust reads the trust file. None means that nothing was trusted.
func (s *Store) readTrust() trusts {
	if s.o.TrustFile == "" {
		return trusts{}
	}
	data, err := readRegular(s.o.TrustFile, maxTrustFile+1)
	if errors.Is(err, fs.ErrNotExist) && !isLink(s.o.TrustFile) {
		return trusts{}
	}
	var t trustFile
	if err == nil {
		t, err = decodeTrust(data)
	}
	if err != nil {
		return trusts{damage: tell("the trust file %s is damaged: %s", s.o.TrustFile, err)}
	}
	return trusts{trustFile: t}
}

// decodeTrust reads the trust file's text, strictly: a yes is not to be guessed.
func decodeTrust(data []byte) (trustFile, error) {
	if len(data) > maxTrustFile {
		return trustFile{}, tell("the file is too large")
	}
	canonical, err := core.Canonical(data)
	if err != nil {
		return trustFile{}, err
	}
	var t trustFile
	if err := json.Unmarshal(data, &t); err != nil {
		return trustFile{}, err
	}
	// What is written back is the same, so that no key was passed over, was
	// read in another case, or was missing.
	again, err := core.Canonical(t.encode())
	if err != nil {
		return trustFile{}, err
	}
	if !bytes.Equal(canonical, again) {
		return trustFile{}, tell("it is not what Fermata writes")
	}
	return t, t.check()
}

func (t trustFile) encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(t) // strings and lists of them
	return b.Bytes()
}

// check wants every value to be one that trusting could have written.
func (t trustFile) check() error {
	if t.Version != 1 {
		return tell("its version is %d; this core reads version 1 only", t.Version)
	}
	dirs := map[string]bool{}
	for _, p := range t.Projects {
		if !filepath.IsAbs(p.Dir) || filepath.Clean(p.Dir) != p.Dir || dirs[p.Dir] || len(p.Files) == 0 {
			return tell("its entry for %q is damaged", clip(p.Dir))
		}
		dirs[p.Dir] = true
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

func (p trustedProject) check() error {
	places := map[string]bool{}
	for _, f := range p.Files {
		place := path.Dir(f.Path)
		if !filepath.IsLocal(f.Path) || path.Clean(f.Path) != f.Path || places[place] || !filepath.IsAbs(f.Real) || !isDigest(f.Digest) {
			return tell("its entry for %q of %q is damaged", clip(f.Path), clip(p.Dir))
		}
		places[place] = true
		scripts := map[string]bool{}
		for _, s := range f.Scripts {
			if s.Path == "" || scripts[s.Path] || !isDigest(s.Digest) {
				return tell("its entry for %q of %q is damaged", clip(s.Path), clip(p.Dir))
			}
			scripts[s.Path] = true
		}
	}
	return nil
}

func isDigest(d events.Digest) bool {
	_, err := events.ParseDigest(string(d))
	return err == nil
}

// damaged tells a person what to do about a damaged trust file.
func damaged(damage error) Message {
	return tell("%s; repair it, or remove it and run fermata hooks trust in each project again", damage)
}

// files lists what was trusted of a project.
func (t trustFile) files(root string) []trustedFile {
	i := slices.IndexFunc(t.Projects, func(p trustedProject) bool { return p.Dir == root })
	if i < 0 {
		return nil
	}
	return t.Projects[i].Files
}

// file finds what was trusted in one directory of a project.
func (t trustFile) file(root, inside string) (trustedFile, bool) {
	files := t.files(root)
	i := slices.IndexFunc(files, func(f trustedFile) bool { return path.Dir(f.Path) == inside })
	if i < 0 {
		return trustedFile{}, false
	}
	return files[i], true
}

// put replaces what is trusted of a project; no files, no trust.
func (t *trustFile) put(root string, files []trustedFile) {
	t.Version = 1
	t.Projects = slices.DeleteFunc(t.Projects, func(p trustedProject) bool { return p.Dir == root })
	if len(files) > 0 {
		t.Projects = append(t.Projects, trustedProject{root, files})
	}
	slices.SortFunc(t.Projects, func(a, b trustedProject) int { return strings.Compare(a.Dir, b.Dir) })
}

// compare judges a project's file, which has been read, by what was trusted.
func (p *part) compare(was trustedFile) {
	p.trust = TrustTrusted
	if kind := p.changedFrom(was); kind != "" {
		p.changes = append(p.changes, Change{was.Path, kind})
	}
	p.pins = pins{}
	for _, s := range was.Scripts {
		p.pins[s.Path] = s.Digest
		if kind := changedScript(p.dir, s.Path, s.Digest); kind != "" {
			p.changes = append(p.changes, Change{p.named(s.Path), kind})
		}
	}
	if len(p.changes) > 0 {
		p.trust = TrustChanged
	}
}

// changedFrom says how the file differs from the one that was trusted.
func (p *part) changedFrom(was trustedFile) ChangeKind {
	name := path.Base(was.Path)
	found := filepath.Base(p.file)
	switch {
	case p.file == "":
		return ChangedGone
	case p.hidden:
		return ChangedUnreadable
	case found != name && slices.Index(fileNames[:], found) < slices.Index(fileNames[:], name):
		return ChangedShadowed
	case found != name:
		return ChangedGone
	case p.err != nil && isLink(p.file):
		return ChangedLink
	case p.err != nil:
		return ChangedUnreadable
	case p.real != was.Real:
		return ChangedLink
	case p.digest != was.Digest:
		return ChangedContent
	}
	return ""
}

// changedScript says how a script of a hooks file's directory differs from the one
// that was trusted.
func changedScript(dir, script string, was events.Digest) ChangeKind {
	now, err := digestRegular(filepath.Join(dir, script))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ChangedGone
	case err != nil:
		return ChangedUnreadable
	case isReachedByLink(dir, script):
		return ChangedLink
	case now != was:
		return ChangedContent
	}
	return ""
}

// digestRegular is the digest of a plain file's content.
func digestRegular(path string) (events.Digest, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", tell("%s is not a plain file", path)
	}
	return digestFile(path)
}

// isReachedByLink reports whether a link stands between a directory and a script
// that is named within it. What it leads to can be another file in the moment in
// which the script is started, and the same again afterwards.
func isReachedByLink(dir, script string) bool {
	base, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(filepath.Join(dir, script))
	return err == nil && real != filepath.Join(base, script)
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
