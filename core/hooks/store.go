package hooks

import (
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// StoreOptions say where hooks files are.
type StoreOptions struct {
	// GlobalDir holds the hooks file that is always on, such as
	// ~/.config/fermata.
	GlobalDir string
	// Home is what ${fermata_home} and ${chrys_home} stand for; GlobalDir if "".
	Home string
	// ICodeGlobal is where iCode keeps its global hooks file, such as
	// ~/.chrys/hooks; "" if there is none. In iCode's files the templates for
	// the home stand for the directory above it.
	ICodeGlobal string
	// ICode says that files where iCode looks are read too.
	ICode bool
	// TrustFile keeps what was trusted; "" trusts no project.
	TrustFile string
	// TrustAll makes every project's files count. It is for a dry run only.
	TrustAll bool
	// OnInvalidWarn makes a broken file a notice instead of an error; its hooks
	// are then not in force.
	OnInvalidWarn bool
}

// maxDirs bounds how many working directories a store remembers.
const maxDirs = 256

// Store reads hooks files and keeps what they say until they change. It is safe
// for concurrent use.
type Store struct {
	o StoreOptions

	globals [2]atomic.Pointer[parsed] // what the global files say, for every directory

	mu    sync.Mutex
	dirs  map[string]*directory
	asked uint64 // how often For was called
}

// directory is one working directory.
type directory struct {
	cwd     string
	sources []source
	asked   uint64        // when it was last asked for, as a count; guarded by Store.mu
	turn    chan struct{} // held by whoever reads; a channel, because one may have to wait for a writer
	last    atomic.Pointer[reading]
}

// reading is what was found for a working directory, and what came of it.
type reading struct {
	seen    sight
	parts   []part
	scripts []watchedScript
	set     *Set
	err     error
}

// watchedScript is a script that was compared with what was trusted, and its
// note from before.
type watchedScript struct {
	path string
	note note
}

// NewStore makes a store. Files are read when they are first asked for.
func NewStore(o StoreOptions) *Store {
	if o.Home == "" {
		o.Home = o.GlobalDir
	}
	return &Store{o: o, dirs: map[string]*directory{}}
}

// For returns the hooks in force for a working directory, now. Nothing changed
// gives the same Set. A *[ConfigError] says that a file which counts is broken,
// a *[NotTrusted] that a project's files are not as they were trusted. A
// directory that is not absolute has no project of its own.
//
// A file counts as unchanged without being read when everything that the system
// notes of it is as it was, the time of its last change by the kernel's own
// clock included, and that time was old when it was read: a change within the
// clock's grain could hide behind a young one. Otherwise its text is read and
// compared. A text that somebody is still writing is waited for: half of the
// rules can be well-formed, and so can none.
func (s *Store) For(cwd string) (*Set, error) {
	d := s.directory(physical(cwd))
	if last := d.last.Load(); last != nil && s.holds(d, last) {
		return last.set, last.err
	}
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	last := d.last.Load()
	seen, parts, scripts, err := s.read(d, last)
	if err != nil {
		return nil, err
	}
	next := &reading{seen: seen, parts: parts, scripts: scripts}
	if last != nil && slices.EqualFunc(last.parts, parts, part.equal) {
		next.set, next.err = last.set, last.err
	} else {
		next.set, next.err = s.assemble(parts)
	}
	for i := range parts {
		parts[i].data = nil
	}
	d.last.Store(next)
	return next.set, next.err
}

// directory finds or makes the entry of a working directory. Of too many, the
// one that was not asked for longest is forgotten.
func (s *Store) directory(cwd string) *directory {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	d := s.dirs[cwd]
	if d == nil {
		d = s.newDirectory(cwd)
		if len(s.dirs) >= maxDirs {
			s.forget()
		}
		s.dirs[cwd] = d
	}
	d.asked = s.asked
	return d
}

func (s *Store) newDirectory(cwd string) *directory {
	return &directory{cwd: cwd, sources: s.sources(cwd), turn: make(chan struct{}, 1)}
}

func (s *Store) forget() {
	var oldest *directory
	for _, d := range s.dirs {
		if oldest == nil || d.asked < oldest.asked {
			oldest = d
		}
	}
	delete(s.dirs, oldest.cwd)
}

// holds reports whether nothing has changed since a reading.
func (s *Store) holds(d *directory, last *reading) bool {
	if !last.seen.settled() || slices.ContainsFunc(last.parts, part.unsure) || s.look(d).notes != last.seen.notes {
		return false
	}
	return !slices.ContainsFunc(last.scripts, func(w watchedScript) bool {
		return isYoung(last.seen.at.Sub(w.note.changed)) || noteAt(w.path) != w.note
	})
}

// read gathers what stands in the files. What has changed, or did so just
// before, is given time to come to rest.
func (s *Store) read(d *directory, last *reading) (sight, []part, []watchedScript, error) {
	seen := s.look(d)
	parts, scripts := s.gather(d, false)
	if seen.fresh(parts) || last != nil && !slices.EqualFunc(last.parts, parts, part.equal) {
		return s.calm(d, seen, parts)
	}
	return seen, parts, scripts, nil
}

// Calm is a text that has not changed for a while.
const (
	calmFor   = 100 * time.Millisecond
	calmLimit = 2 * time.Second
	calmLook  = 20 * time.Millisecond
)

// calm waits until nothing has changed for calmFor, and reads what is there
// then. Files that do not come to rest are an error: nobody knows which rules
// hold.
func (s *Store) calm(d *directory, seen sight, parts []part) (sight, []part, []watchedScript, error) {
	begun := time.Now()
	since := begun
	for {
		time.Sleep(calmLook)
		now := s.look(d)
		if now.of(parts) != seen.of(parts) {
			since = time.Now()
		}
		seen = now
		if time.Since(since) >= calmFor {
			var scripts []watchedScript
			parts, scripts = s.gather(d, false)
			if s.look(d).of(parts) == seen.of(parts) {
				return seen, parts, scripts, nil
			}
			since = time.Now()
		}
		if time.Since(begun) > calmLimit {
			message := tell("a hooks file is being written all the time; nobody knows which rules hold")
			return seen, parts, nil, invalid(unresting(parts), 1, 1, message)
		}
	}
}

// unresting names the file that a person should look at: the first that counts.
func unresting(parts []part) string {
	for _, p := range parts {
		if p.trust != "" && p.trust != TrustNone {
			return p.file
		}
	}
	return filepath.Join(parts[len(parts)-1].dir, fileNames[0])
}
