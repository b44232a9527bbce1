package natsd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// stateLock is the lock file of a state directory.
const stateLock = "state.lock"

// InUse says that another process holds a directory: a core runs already.
type InUse struct {
	Dir string
	PID int // 0 when the holder has not written it yet
}

// Error names the directory and its holder.
func (e *InUse) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("%s is in use by %s: connect to that core, or stop it first", e.Dir, holder)
}

// ownDir makes dir for this user alone, or checks that it is. A link is refused:
// in a directory like /tmp somebody else could have put it there.
func ownDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%q is not an absolute path", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check the directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory: move it away", dir)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user: move it away, or name another directory", dir)
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("%s can be written by everybody: look at what is in it, then chmod 700 it", dir)
	case info.Mode().Perm() != 0o700:
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("close the directory to others: %w", err)
		}
	}
	return nil
}

// lock takes the lock file of a directory without waiting. The kernel frees it
// when this process ends, however it ends. The file holds the pid and is never
// removed.
func lock(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		defer f.Close()
		return nil, &InUse{Dir: dir, PID: holder(f)}
	}
	if err == nil {
		err = writePID(f)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("take the lock %s: %w", path, err)
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func holder(f *os.File) int {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}

// Locked reports whether a process holds a state directory: it goes on for a
// moment after a core has closed its sockets.
func Locked(stateDir string) bool {
	f, err := os.Open(filepath.Join(stateDir, stateLock))
	if err != nil {
		return false
	}
	defer f.Close() // and lets go of what it may have taken
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
