package notify

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// glance is between two looks at a sign.
const glance = 50 * time.Millisecond

// aloud runs a screen that tells of itself through the pipe $0: a line when it
// starts, and one when it has ended well. Where nobody reads any more, the pipe is
// gone and no screen starts. What comes from an agent stands in "$@".
const aloud = `exec 3<>"$0" && echo >&3 && "$@" 3>&- && echo >&3`

// sign is the named pipe through which a screen proves that it is there. A
// multiplexer's own word is no proof: it may have opened nothing.
type sign struct {
	dir   string
	fd    int
	lines int
	ended bool
}

func newSign(parent string) (*sign, error) {
	dir, err := os.MkdirTemp(parent, "popup")
	if err != nil {
		return nil, err
	}
	s := &sign{dir: dir}
	if err = syscall.Mkfifo(s.path(), 0o600); err == nil {
		s.fd, err = syscall.Open(s.path(), syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("%s: %w", s.path(), err)
	}
	return s, nil
}

func (s *sign) path() string { return filepath.Join(s.dir, "there") }

// around is the command that runs a screen and has it tell of itself.
func (s *sign) around(screen []string) []string {
	return append([]string{"/bin/sh", "-c", aloud, s.path()}, screen...)
}

// seen looks: whether the screen has been there, and whether it is gone since. It is
// gone when nobody holds the pipe open any more.
func (s *sign) seen() (there, gone bool) {
	b := make([]byte, 8)
	for !s.ended {
		n, err := syscall.Read(s.fd, b)
		switch {
		case errors.Is(err, syscall.EINTR):
		case n > 0:
			s.lines += n
		case err == nil && s.lines > 0:
			s.ended = true
		default: // nobody has come yet, or nothing is new
			return s.lines > 0, false
		}
	}
	return true, true
}

// verdict is how a screen ended that is gone.
func (s *sign) verdict() error {
	if s.lines < 2 {
		return errors.New("its screen failed or was closed by force")
	}
	return nil
}

func (s *sign) remove() {
	_ = syscall.Close(s.fd)
	_ = os.RemoveAll(s.dir)
}
