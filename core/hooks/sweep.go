package hooks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// unfinishedAge is how long a directory may be without its payload because
// another core is just making it.
const unfinishedAge = time.Minute

// Sweep removes the directories in tempDir ("" is the system's) that earlier
// cores left behind and that no process needs any more: those of runs which a
// core's death cut off, and those of detached processes that have ended. It may
// run beside other cores and at any time. What cannot be removed is in the
// error; all others are gone then too.
func Sweep(tempDir string) error {
	if tempDir == "" {
		tempDir = os.TempDir()
	}
	entries, err := os.ReadDir(tempDir)
	failed := []error{err}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), exchangePrefix) {
			failed = append(failed, removeUnused(tempDir+"/"+e.Name()))
		}
	}
	return errors.Join(failed...)
}

// removeUnused removes a run's directory unless a process needs it.
func removeUnused(dir string) error {
	if inUse(dir) {
		return nil
	}
	return removeTree(dir)
}

// removeTree removes a run's directory, also when its process has closed parts
// of it to everybody.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// inUse asks for the lock that a run holds on its payload. In doubt, such as
// before another user's directory, the answer is yes.
func inUse(dir string) bool {
	// Between fork and exec a starting process holds every lock of the core.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.OpenFile(dir+"/"+payloadName, os.O_RDONLY|syscall.O_NOFOLLOW|nonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		info, err := os.Lstat(dir)
		return err == nil && time.Since(info.ModTime()) < unfinishedAge
	}
	if err != nil {
		return true
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
