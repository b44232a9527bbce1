package hooks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

// StoreOptions say where hooks files are.
type StoreOptions struct {
	// GlobalDir holds the hooks file that is always on, such as
	// ~/.config/fermata.
	GlobalDir string
	// Home is what ${fermata_home} and ${chrys_home} stand for; GlobalDir if "".
	Home string
}

// Store reads hooks files and keeps what they say until they change. It is safe
// for concurrent use.
type Store struct {
	o StoreOptions

	turn chan struct{} // held by whoever reads; a channel, because one may have to wait for a writer
	last reading
}

// reading is what was found in a file, and what came of it.
type reading struct {
	file string
	data []byte
	set  *Set
	err  error
	seen sight
}

// NewStore makes a store. Files are read when they are first asked for.
func NewStore(o StoreOptions) *Store {
	if o.Home == "" {
		o.Home = o.GlobalDir
	}
	return &Store{o: o, turn: make(chan struct{}, 1)}
}

// For returns the hooks in force for a working directory, now. An unchanged
// file gives the same Set. A *[ConfigError] says that the file is there and
// broken.
//
// A file counts as unchanged without being read when everything that the system
// notes of it is as it was, the time of its last change by the kernel's own
// clock included, and that time was old when it was read: a change within the
// clock's grain could hide behind a young one. Otherwise its text is read and
// compared. A text that somebody is still writing is waited for: half of the
// rules can be well-formed, and so can none.
func (s *Store) For(_ string) (*Set, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	seen := look(s.o.GlobalDir)
	if s.last.seen.settled() && seen == s.last.seen {
		return s.last.set, s.last.err
	}
	file, data, err := readFirst(s.o.GlobalDir)
	if s.known() && (s.last.file != file || !bytes.Equal(s.last.data, data)) || seen.fresh() {
		seen, file, data, err = s.calm(seen)
	}
	if err != nil {
		s.last = reading{}
		return nil, &ConfigError{File: file, Line: 1, Column: 1, Message: err.Error()}
	}
	if !s.known() || s.last.file != file || !bytes.Equal(s.last.data, data) {
		s.last = reading{file: file, data: data}
		s.last.set, s.last.err = newSet(file, s.o.Home, data)
	}
	s.last.seen = seen // noted before the text was read: what came between shows the next time
	return s.last.set, s.last.err
}

func (s *Store) known() bool { return s.last.set != nil || s.last.err != nil }

// Calm is a text that has not changed for a while.
const (
	calmFor   = 100 * time.Millisecond
	calmLimit = 2 * time.Second
	calmLook  = 20 * time.Millisecond
)

// calm waits until nothing has changed for calmFor, and reads what is there
// then. Files that do not come to rest are an error: nobody knows which rules
// hold.
func (s *Store) calm(seen sight) (sight, string, []byte, error) {
	begun := time.Now()
	since := begun
	for {
		time.Sleep(calmLook)
		now := look(s.o.GlobalDir)
		if now.files != seen.files {
			seen, since = now, time.Now()
		}
		if time.Since(since) >= calmFor {
			file, data, err := readFirst(s.o.GlobalDir)
			if after := look(s.o.GlobalDir); after.files == seen.files {
				return after, file, data, err
			}
			since = time.Now()
		}
		if time.Since(begun) > calmLimit {
			return seen, filepath.Join(s.o.GlobalDir, names[0]), nil, errors.New("the hooks file is being written all the time; nobody knows which rules hold")
		}
	}
}

// newSet makes the set of the global file; no file, no hooks.
func newSet(file, home string, data []byte) (*Set, error) {
	set := &Set{Settings: DefaultSettings()}
	set.Digest = events.DigestOf(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%s", events.ScopeGlobal, file, len(data), data))
	if file == "" {
		return set, nil
	}
	var err error
	set.Hooks, set.Settings, set.Warnings, err = readFile(events.ScopeGlobal, file, home, data)
	if err != nil {
		return nil, err
	}
	for i := range set.Hooks {
		set.Hooks[i].Ref.Index = i
	}
	return set, nil
}

// sight is what the system notes of the hooks files of a directory, without
// reading them, and when it was looked at.
type sight struct {
	files  [3]note
	young  bool // something had changed just before
	recent bool // so short a time before that its writer may not be done
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

// grain is more than the grain of any file system's clock.
const grain = 2 * time.Second

// look notes what is there.
func look(dir string) sight {
	var s sight
	now := time.Now()
	for i, name := range names {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			// Absent, or not to be looked at: reading tells which.
			s.young = s.young || !errors.Is(err, fs.ErrNotExist)
			continue
		}
		n := noteOf(info)
		s.files[i] = n
		age := now.Sub(n.changed)
		s.young = s.young || age < grain
		s.recent = s.recent || age >= 0 && age < calmFor
	}
	return s
}

// fresh reports whether a file changed so short a time ago that its writer may
// not be done. A change in the future says nothing.
func (s sight) fresh() bool { return s.recent }

// settled reports whether an equal sight later means that nothing changed.
func (s sight) settled() bool { return !s.young && s != sight{} }

// names are the hooks files, in the order in which they count.
var names = [3]string{"hooks.yaml", "hooks.yml", "hooks.json"}

// readFirst reads the first hooks file that stands in a directory; "" when none
// does. Of a file that is too large it reads one byte more than is allowed.
func readFirst(dir string) (file string, data []byte, err error) {
	for _, name := range names {
		file = filepath.Join(dir, name)
		data, err = readRegular(file, maxFile+1)
		if errors.Is(err, fs.ErrNotExist) {
			if _, linked := os.Lstat(file); linked != nil {
				continue
			}
			err = fmt.Errorf("%s is a link to nothing", file)
		}
		return file, data, err
	}
	return "", nil, nil
}

// readRegular reads at most limit bytes. It refuses what is no plain file, so
// that a pipe cannot hold the core.
func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a plain file", path)
	case info.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("%s can be written by everybody, so its rules are nobody's; run chmod o-w on it", path)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
