package hooks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// exchangePrefix begins the name of every run's directory.
const exchangePrefix = "fermata-hook-"

// exchange is the pair of files through which core and process talk, in a
// directory that only their owner can enter.
//
// Whoever needs the directory holds a shared lock on the payload file: the core
// while it attends a run, or the detached process itself, which inherits the
// lock. The kernel drops a lock with its last holder, so that kill -9 leaves
// nothing behind that looks as if it were in use.
type exchange struct {
	dir, payload, verdict string
	lock                  *os.File // the payload, open for reading
}

func newExchange(tempDir string, payload []byte) (exchange, error) {
	dir, err := os.MkdirTemp(tempDir, exchangePrefix)
	if err != nil {
		return exchange{}, err
	}
	x := exchange{dir: dir, payload: dir + "/" + payloadName, verdict: dir + "/result.json"}
	if err := x.fill(payload); err != nil {
		x.remove()
		return exchange{}, err
	}
	return x, nil
}

const payloadName = "payload.json"

func (x *exchange) fill(payload []byte) error {
	err := os.WriteFile(x.payload, payload, 0o600)
	if err == nil {
		err = os.WriteFile(x.verdict, nil, 0o600)
	}
	if err == nil {
		x.lock, err = os.Open(x.payload)
	}
	if err == nil {
		err = syscall.Flock(int(x.lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	}
	return err
}

// remove takes everything away. A process that is still there loses its files.
func (x *exchange) remove() {
	x.lock.Close() // of nil too
	// The usual case in three calls; a process may have left anything.
	_ = os.Remove(x.payload)
	_ = os.Remove(x.verdict)
	if os.Remove(x.dir) != nil {
		_ = removeTree(x.dir)
	}
}

// result reads what the process left; a file that it removed is an empty one, a
// link to nothing is not.
func (x *exchange) result() ([]byte, error) {
	data, _, err := readPlain(x.verdict, maxVerdict+1)
	if errors.Is(err, fs.ErrNotExist) {
		if _, linked := os.Lstat(x.verdict); linked != nil {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the result file is not readable: %w", err)
	}
	return data, nil
}
