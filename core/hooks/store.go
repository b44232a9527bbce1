package hooks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
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

	mu   sync.Mutex
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
	return &Store{o: o}
}

// For returns the hooks in force for a working directory, now. An unchanged
// file gives the same Set. A *[ConfigError] says that the file is there and
// broken.
//
// A file counts as unchanged without being read when everything that the system
// notes of it is as it was, the time of its last change by the kernel's own
// clock included, and that time was old when it was read: a change within the
// clock's grain could hide behind a young one. Otherwise its text is read and
// compared.
func (s *Store) For(_ string) (*Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := look(s.o.GlobalDir)
	if s.last.seen.settled() && seen == s.last.seen {
		return s.last.set, s.last.err
	}
	file, data, err := readFirst(s.o.GlobalDir)
	if err != nil {
		s.last = reading{}
		return nil, &ConfigError{File: file, Line: 1, Column: 1, Message: err.Error()}
	}
	known := s.last.set != nil || s.last.err != nil
	if !known || s.last.file != file || !bytes.Equal(s.last.data, data) {
		s.last = reading{file: file, data: data}
		s.last.set, s.last.err = newSet(file, s.o.Home, data)
	}
	s.last.seen = seen // noted before the text was read: what came between shows the next time
	return s.last.set, s.last.err
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
	files [3]note
	young bool // something had changed just before
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
		s.young = s.young || now.Sub(n.changed) < grain || n.changed.After(now)
	}
	return s
}

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
		if !errors.Is(err, fs.ErrNotExist) {
			return file, data, err
		}
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
