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
}

// NewStore makes a store. Files are read when they are first asked for.
func NewStore(o StoreOptions) *Store {
	if o.Home == "" {
		o.Home = o.GlobalDir
	}
	return &Store{o: o}
}

// For returns the hooks in force for a working directory, now. The file's text
// is read each time and compared: times and sizes can stay the same when a file
// changes. An unchanged file gives the same Set. A *[ConfigError] says that the
// file is there and broken.
func (s *Store) For(_ string) (*Set, error) {
	file, data, err := readFirst(s.o.GlobalDir)
	if err != nil {
		return nil, &ConfigError{File: file, Line: 1, Column: 1, Message: err.Error()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.last.set != nil || s.last.err != nil
	if !known || s.last.file != file || !bytes.Equal(s.last.data, data) {
		s.last = reading{file: file, data: data}
		s.last.set, s.last.err = newSet(file, s.o.Home, data)
	}
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

// readFirst reads the first hooks file that stands in a directory; "" when none
// does. Of a file that is too large it reads one byte more than is allowed.
func readFirst(dir string) (file string, data []byte, err error) {
	for _, name := range []string{"hooks.yaml", "hooks.yml", "hooks.json"} {
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
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
