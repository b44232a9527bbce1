package hooks

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fermata-hitl/fermata/events"
)

// parsed is what came of a file's text.
type parsed struct {
	file   string
	digest events.Digest
	contents
	err error // nil or a *ConfigError
}

// parse reads a part's text into hooks. What a global file says is kept, for it
// is the same in every directory.
func (s *Store) parse(p part) parsed {
	if p.err != nil {
		return parsed{err: invalid(p.file, 1, 1, tell("not read: %s", p.err))}
	}
	if p.scope == events.ScopeProject {
		return s.parseNow(p)
	}
	kept := &s.globals[0]
	if p.icode {
		kept = &s.globals[1]
	}
	if k := kept.Load(); k != nil && k.file == p.file && k.digest == p.digest {
		return *k
	}
	k := s.parseNow(p)
	kept.Store(&k)
	return k
}

func (s *Store) parseNow(p part) parsed {
	c, err := readFile(origin{p.scope, p.file, s.home(p.source), p.icode}, p.data)
	return parsed{p.file, p.digest, c, err}
}

// assemble makes the set of the parts that count. Whatever is not as it was
// trusted comes first: a broken file can be made a notice, this never.
func (s *Store) assemble(parts []part) (*Set, error) {
	if err := changed(parts); err != nil {
		return nil, err
	}
	set := &Set{Settings: DefaultSettings()}
	var used []parsed
	var mark strings.Builder
	for _, p := range parts {
		if p.trust == TrustNone {
			set.Notices = append(set.Notices, tell("the hooks of %s are not trusted and not in force; look at them, then run: fermata hooks trust", p.file))
		}
		if !p.counts() {
			continue
		}
		f := s.parse(p)
		if f.err != nil {
			if !s.o.OnInvalidWarn {
				return nil, f.err
			}
			set.Notices = append(set.Notices, tell("the hooks file is broken and not in force: %s", f.err))
			mark.WriteString("not in force: ")
		} else if err := p.pin(&f); err != nil {
			return nil, err
		}
		fmt.Fprintf(&mark, "%s %t %q %s %d%s\n", p.scope, p.icode, p.file, p.digest, len(p.pins), p.pins)
		used = append(used, f)
	}
	set.Digest = events.DigestOf([]byte(mark.String()))
	set.join(used)
	return set, nil
}

// join puts the hooks of all files one behind the other, and the settings over
// each other, those of the first file on top.
func (s *Set) join(files []parsed) {
	for _, f := range slices.Backward(files) {
		s.Settings = f.settings.over(s.Settings)
	}
	for _, f := range files {
		s.Warnings = append(s.Warnings, f.warnings...)
		for _, h := range f.hooks {
			h.Ref.Index = len(s.Hooks)
			s.Hooks = append(s.Hooks, h)
		}
	}
	s.Warnings = append(s.Warnings, sameIDs(s.Hooks)...)
}

// sameIDs warns of hooks in different files that have one id: both run.
func sameIDs(hooks []Hook) []ConfigError {
	var warnings []ConfigError
	first := map[string]events.Hook{}
	for _, h := range hooks {
		was, twice := first[h.Ref.ID]
		if !twice {
			first[h.Ref.ID] = h.Ref
			continue
		}
		w := invalid(h.Ref.File, h.Ref.Line, 1, tell("the id %q is also used in %s, line %d; both hooks run", clip(h.Ref.ID), was.File, was.Line))
		w.Finding, w.Hook = FindingSameID, h.Ref.ID
		warnings = append(warnings, *w)
	}
	return warnings
}

// pin gives every hook the digest of its script that was trusted. A script that
// nobody said yes to is a change.
func (p part) pin(f *parsed) error {
	if p.pins == nil {
		return nil // global, or a dry run
	}
	f.hooks = slices.Clone(f.hooks)
	for i := range f.hooks {
		h := &f.hooks[i]
		if !h.pinnable() {
			continue
		}
		if h.Pinned = p.pins[h.Run.Path]; h.Pinned == "" {
			return p.notTrusted([]Change{{p.named(h.Run.Path), ChangedContent}})
		}
	}
	return nil
}

// pinnable reports a hook whose script trust covers.
func (h Hook) pinnable() bool {
	return h.Enabled && h.Run.Type == RunScript && !filepath.IsAbs(h.Run.Path)
}

// changed is the error of everything that is not as it was trusted.
func changed(parts []part) error {
	var changes []Change
	var of part
	for _, p := range parts {
		if p.trust == TrustChanged {
			changes = append(changes, p.changes...)
			of = p
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return of.notTrusted(changes)
}

func (p part) notTrusted(changes []Change) error {
	e := &NotTrusted{Dir: p.root, Changes: changes, Hint: tell("look at them, then run: fermata hooks trust")}
	if p.damage != nil {
		e.Hint = damaged(p.damage)
	}
	return e
}

// String lists the pins in a fixed order.
func (p pins) String() string {
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&out, " %q %s", path, p[path])
	}
	return out.String()
}
