package hooks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// sight is what the system notes of everything that the rules of a working
// directory hang on, without reading any of it, and when it was looked at.
type sight struct {
	notes
	at time.Time
}

// notes are equal when nothing has changed.
type notes struct {
	cwd   note // device and inode only: what happens in it does not matter
	spots [maxSources]spot
	trust note
}

// spot is what stands where one hooks file may be. The zero spot is empty.
type spot struct {
	path string // of the file that counts
	link note   // of the name itself, which may be a link
	file note   // of what it leads to
	hid  bool   // it cannot even be looked at
}

// note is what the system notes of one file; the zero note is that of none.
type note struct {
	there      bool
	dev, inode uint64
	size       int64
	mode       fs.FileMode
	modified   time.Time
	changed    time.Time // the kernel's own; nobody can set it
}

// same reports whether two notes are of one physical file.
func (n note) same(m note) bool {
	return n.there && m.there && n.dev == m.dev && n.inode == m.inode
}

// grain is more than the grain of any file system's clock.
const grain = 2 * time.Second

// look notes what is there.
func (s *Store) look(d *directory) sight {
	seen := sight{at: time.Now()}
	if filepath.IsAbs(d.cwd) {
		n := noteAt(d.cwd)
		seen.cwd = note{there: n.there, dev: n.dev, inode: n.inode}
	}
	for i, src := range d.sources {
		seen.spots[i] = src.look()
	}
	if s.o.TrustFile != "" {
		seen.trust = noteAt(s.o.TrustFile)
	}
	return seen
}

// noteAt notes what a path leads to.
func noteAt(path string) note {
	info, err := os.Stat(path)
	if err != nil {
		return note{}
	}
	return noteOf(info)
}

// look finds the hooks file that counts in a directory. A name that stands
// there counts even when it is no usable file: nothing behind it may take its
// place unnoticed.
func (src source) look() spot {
	if _, err := os.Stat(src.dir); err != nil {
		// Nothing can stand in a directory that is not there, unless it is a
		// link to one.
		_, linked := os.Lstat(src.dir)
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
		return spot{hid: !absent || linked == nil}
	}
	for _, path := range src.files {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return spot{path: path, hid: true}
		}
		p := spot{path: path, link: noteOf(info)}
		if p.file = p.link; info.Mode()&fs.ModeSymlink != 0 {
			p.file = noteAt(path)
		}
		return p
	}
	return spot{}
}

// of keeps the notes of what counts: nobody waits for a file to come to rest
// whose text is not used.
func (n notes) of(parts []part) notes {
	for i, p := range parts {
		if p.trust == TrustNone {
			n.spots[i] = spot{}
		}
	}
	return n
}

// fresh reports whether something changed so short a time ago that its writer
// may not be done. A change in the future says nothing.
func (s sight) fresh(parts []part) bool {
	return s.any(s.of(parts), func(age time.Duration) bool { return age >= 0 && age < calmFor })
}

// settled reports whether equal notes later mean that nothing changed: a change
// within the clock's grain could hide behind a young one.
func (s sight) settled() bool {
	for _, p := range s.spots {
		if p.hid {
			return false
		}
	}
	return !s.any(s.notes, isYoung)
}

func isYoung(age time.Duration) bool { return age < grain }

// any asks about the ages of all files.
func (s sight) any(n notes, asked func(age time.Duration) bool) bool {
	for _, p := range n.spots {
		if p.link.there && asked(s.at.Sub(p.link.changed)) || p.file.there && asked(s.at.Sub(p.file.changed)) {
			return true
		}
	}
	return n.trust.there && asked(s.at.Sub(n.trust.changed))
}
