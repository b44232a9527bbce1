package hooks

import (
	"errors"
	"path"
	"path/filepath"
	"slices"

	"github.com/fermata-hitl/fermata/events"
)

// Inspect reads every hooks file that could count for a working directory,
// trusted or not. Of a file that stands in two of the places it tells once.
func (s *Store) Inspect(cwd string) Report {
	cwd = physical(cwd)
	parts, _ := s.gather(s.newDirectory(cwd), true)
	r := Report{Dir: resolve(cwd)}
	index := 0
	for _, p := range parts {
		if p.trust == "" {
			continue
		}
		f := s.report(p)
		for i := range f.Hooks {
			f.Hooks[i].Ref.Index = index
			index++
		}
		r.Files = append(r.Files, f)
	}
	return r
}

// report reads one file for a person to look at.
func (s *Store) report(p part) FileReport {
	f := FileReport{
		Scope: p.scope, Dir: p.dir, Path: p.file, ICode: p.icode, Trust: p.trust,
		Changes: p.changes, Digest: p.digest, Settings: DefaultSettings(),
	}
	if p.file == "" {
		f.Path = filepath.Join(p.root, p.changes[0].Path)
		return f
	}
	read := s.parse(p)
	if f.Err = read.err; f.Err != nil {
		return f
	}
	f.Hooks, f.Warnings = slices.Clone(read.hooks), read.warnings
	f.Settings = read.settings.over(f.Settings)
	if p.scope == events.ScopeProject {
		for _, script := range scriptsOf(f.Hooks) {
			file := filepath.Join(p.dir, script)
			digest, _ := digestRegular(file)
			f.Scripts = append(f.Scripts, ScriptReport{file, digest})
		}
	}
	return f
}

// scriptsOf lists the scripts that trust covers, as the file writes them, each
// once.
func scriptsOf(hooks []Hook) []string {
	var paths []string
	for _, h := range hooks {
		if h.pinnable() && !slices.Contains(paths, h.Run.Path) {
			paths = append(paths, h.Run.Path)
		}
	}
	return paths
}

// Trust says yes to the hooks files of a project and to the scripts that they
// name by a relative path, as they are now. When they are gone it says yes to
// that. A broken file is a *[ConfigError] and nothing is trusted.
func (s *Store) Trust(cwd string) (Report, error) {
	cwd = physical(cwd)
	return s.changeTrust(cwd, func(root string, was []trustedFile) ([]trustedFile, error) {
		now, err := s.trustable(cwd)
		if err == nil && len(now)+len(was) == 0 {
			err = tell("%s has no hooks file to trust", root)
		}
		// What is not looked at now, because iCode's files are not read, stays.
		for _, f := range was {
			if !slices.ContainsFunc(s.sources(cwd), func(src source) bool { return src.inside == path.Dir(f.Path) }) {
				now = append(now, f)
			}
		}
		return now, err
	})
}

// Untrust takes back what [Store.Trust] said. The project's files are then
// passed over.
func (s *Store) Untrust(cwd string) (Report, error) {
	return s.changeTrust(physical(cwd), func(string, []trustedFile) ([]trustedFile, error) { return nil, nil })
}

// trustable reads what there is to trust in a project. A file that counts as a
// global one needs no trust.
func (s *Store) trustable(cwd string) ([]trustedFile, error) {
	var files []trustedFile
	parts, _ := s.gather(s.newDirectory(cwd), true)
	for _, p := range parts {
		if p.scope != events.ScopeProject || p.file == "" || p.twinned(parts) {
			continue
		}
		f, err := s.trustedFile(p)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// trustedFile is a file as it is now. Only what can be used can be trusted.
func (s *Store) trustedFile(p part) (trustedFile, error) {
	read := s.parse(p)
	if read.err != nil {
		return trustedFile{}, read.err
	}
	f := trustedFile{Path: filepath.ToSlash(p.named(filepath.Base(p.file))), Real: p.real, Digest: p.digest, Scripts: []trustedScript{}}
	for _, script := range scriptsOf(read.hooks) {
		digest, err := digestRegular(filepath.Join(p.dir, script))
		if err == nil && isReachedByLink(p.dir, script) {
			err = errors.New("it is reached through a link; name the file itself")
		}
		if err != nil {
			return trustedFile{}, tell("the script %s that %s names is not readable: %s", script, p.file, err)
		}
		f.Scripts = append(f.Scripts, trustedScript{script, digest})
	}
	return f, nil
}

// changeTrust replaces what is trusted of a project, alone: others who change
// the trust file at the same time wait, so that nothing is lost. A damaged
// trust file stays as it is.
func (s *Store) changeTrust(cwd string, files func(root string, was []trustedFile) ([]trustedFile, error)) (Report, error) {
	switch {
	case s.o.TrustFile == "":
		return Report{}, tell("there is no trust file, so nothing can be trusted")
	case !filepath.IsAbs(cwd):
		return Report{}, tell("%q is not an absolute path, so it names no project", cwd)
	}
	unlock, err := lockTrust(s.o.TrustFile)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	t := s.readTrust()
	if t.damage != nil {
		return Report{}, damaged(t.damage)
	}
	root := resolve(cwd)
	now, err := files(root, t.files(root))
	if err != nil {
		return Report{}, err
	}
	t.put(root, now)
	if err := writeTrust(s.o.TrustFile, t.encode()); err != nil {
		return Report{}, err
	}
	return s.Inspect(cwd), nil
}
