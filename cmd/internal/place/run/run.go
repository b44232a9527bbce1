// Package run tells where Fermata's files and sockets are, and starts a core
// when none runs. It is the half of place that cmd/agent-hook can afford: no
// YAML, no package net, no fmt, since agent-hook starts with each call of an
// agent.
//
// The environment may move each directory, with an absolute path:
//
//	FERMATA_CONFIG_DIR   else $XDG_CONFIG_HOME/fermata, else ~/.config/fermata
//	FERMATA_STATE_DIR    else $XDG_STATE_HOME/fermata, else ~/.local/state/fermata
//	FERMATA_RUNTIME_DIR  else $XDG_RUNTIME_DIR/fermata, else $TMPDIR/fermata-<uid>
//
// FERMATA_AUTOSTART=0 forbids to start a core.
package run

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// maxSocketPath is the longest path of a socket, in bytes. macOS takes 103.
const maxSocketPath = 100

// Dirs are Fermata's directories. The state and the runtime directory are
// 0700 and belong to the user.
type Dirs struct {
	Config, State, Runtime string
}

// Find tells the directories from the environment of a user. It looks at no
// file. It is an error when a variable of ours is no absolute path, when a
// directory cannot be told because HOME is not set, or when a socket's path
// would be too long.
func Find(getenv func(string) string, uid int) (Dirs, error) {
	e := environment{getenv: getenv}
	p := Dirs{
		Config:  e.dir("FERMATA_CONFIG_DIR", "XDG_CONFIG_HOME", "/.config"),
		State:   e.dir("FERMATA_STATE_DIR", "XDG_STATE_HOME", "/.local/state"),
		Runtime: e.runtime(uid),
	}
	if e.err != nil {
		return Dirs{}, e.err
	}
	if n := len(p.AgentSocket()); n > maxSocketPath {
		return Dirs{}, errors.New("the path of the socket " + p.AgentSocket() + " has " + strconv.Itoa(n) +
			" bytes, more than " + strconv.Itoa(maxSocketPath) + "; set FERMATA_RUNTIME_DIR to a shorter directory")
	}
	return p, nil
}

// AgentSocket is where agent-hook calls.
func (p Dirs) AgentSocket() string { return p.Runtime + "/agent.sock" }

// NATSSocket is where frontends and agents written in Go connect.
func (p Dirs) NATSSocket() string { return p.Runtime + "/nats.sock" }

// Log is where a core that was started on its own writes.
func (p Dirs) Log() string { return p.State + "/core.log" }

// ConfigFile is config.yaml.
func (p Dirs) ConfigFile() string { return p.Config + "/config.yaml" }

// environment reads directories and keeps the first error.
type environment struct {
	getenv func(string) string
	err    error
}

// own is a variable of ours, which must be absolute; "" if it is not set.
func (e *environment) own(name string) string {
	v := e.getenv(name)
	if v != "" && v[0] != '/' && e.err == nil {
		e.err = errors.New(name + " must be an absolute path, it is " + strconv.Quote(v))
	}
	return v
}

// xdg is a variable of the XDG specification, which says to ignore a relative
// path.
func (e *environment) xdg(name string) string {
	if v := e.getenv(name); v != "" && v[0] == '/' {
		return v
	}
	return ""
}

func (e *environment) dir(own, xdg, home string) string {
	if v := e.own(own); v != "" {
		return v
	}
	if v := e.xdg(xdg); v != "" {
		return v + "/fermata"
	}
	h := e.getenv("HOME")
	if (h == "" || h[0] != '/') && e.err == nil {
		e.err = errors.New("HOME is not set; set it, or " + own)
	}
	return h + home + "/fermata"
}

func (e *environment) runtime(uid int) string {
	if v := e.own("FERMATA_RUNTIME_DIR"); v != "" {
		return v
	}
	if v := e.xdg("XDG_RUNTIME_DIR"); v != "" {
		return v + "/fermata"
	}
	tmp := e.xdg("TMPDIR")
	for len(tmp) > 1 && tmp[len(tmp)-1] == '/' {
		tmp = tmp[:len(tmp)-1]
	}
	if tmp == "" {
		tmp = "/tmp"
	}
	return tmp + "/fermata-" + strconv.Itoa(uid)
}

// Private makes a directory for its owner alone, or checks that one that is
// there is: no link, the user's, 0700. Everything that is trusted about the
// sockets rests on it.
func Private(dir string, uid int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return CheckPrivate(dir, uid)
}

// ErrOpen is in an error of [Private]: other users may look into the directory.
var ErrOpen = errors.New("is open to other users")

// openTo says of a directory that it is open, and what to do.
type openTo string

func (dir openTo) Error() string {
	return string(dir) + " " + ErrOpen.Error() + "; run chmod 700 on it"
}

func (dir openTo) Unwrap() error { return ErrOpen }

// CheckPrivate is the check of [Private] alone. The error wraps
// [fs.ErrNotExist] when there is no such directory.
func CheckPrivate(dir string, uid int) error {
	i, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := i.Sys().(*syscall.Stat_t)
	switch {
	case i.Mode()&fs.ModeSymlink != 0 || !i.IsDir():
		return errors.New(dir + " must be a directory, not a link or a file")
	case !ok || int(st.Uid) != uid:
		return errors.New(dir + " belongs to another user; remove it or choose another directory")
	case i.Mode().Perm()&0o077 != 0:
		return openTo(dir)
	}
	return nil
}

// Dial connects to a Unix socket and returns the file descriptor, blocking and
// closed on exec.
func Dial(path string) (int, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, err
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}
