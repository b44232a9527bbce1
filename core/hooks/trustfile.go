package hooks

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockWait is how long somebody waits who wants to change the trust file while
// another does. The other needs milliseconds.
const lockWait = 10 * time.Second

// lockTrust takes the lock beside the trust file. The lock file stays: who
// removed it could hold a lock that nobody else sees.
func lockTrust(file string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, tell("the place of the trust file could not be made: %s", err)
	}
	path := file + ".lock"
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, tell("the lock of the trust file could not be opened: %s", err)
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // which also unlocks
		}
		held := errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR)
		if !held || time.Since(begun) > lockWait {
			_ = f.Close()
			return nil, tell("the lock %s could not be taken, another process may hold it: %s", path, err)
		}
	}
}

// writeTrust puts a new trust file in the place of the old one.
func writeTrust(file string, data []byte) error {
	if len(data) > maxTrustFile {
		return tell("the trust file %s would be too large; take trust back where it is not needed", file)
	}
	if err := replaceFile(file, data); err != nil {
		return tell("the trust file could not be written: %s", err)
	}
	return nil
}
