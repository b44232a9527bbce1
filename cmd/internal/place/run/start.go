package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrAutostartOff is why no core was started when FERMATA_AUTOSTART is 0.
var ErrAutostartOff = errors.New("FERMATA_AUTOSTART=0 forbids to start one")

// respawn is the shortest time between two starts by one process.
const respawn = time.Second

// Starter starts a core. Of many processes that need one at the same moment
// the first takes a lock and starts it; the others wait for it and connect. A
// core that finds another one holding its state ends by itself.
type Starter struct {
	Dirs    Dirs
	UID     int
	Environ []string // the environment; only a list of names reaches the core
	// Program is the core's binary; "" means [Program].
	Program string

	lock  *os.File // start.lock, while it is this process that starts
	last  time.Time
	ended atomic.Bool // the core that was started has ended again
}

// Start makes sure that a core is being started, by this process or another.
// It does not wait for it: the caller dials in a loop, calls Start each time
// that fails, and Done when it is connected. An error says why none can be
// started; a later call may succeed.
func (s *Starter) Start() error {
	if lookup(s.Environ, "FERMATA_AUTOSTART") == "0" {
		return ErrAutostartOff
	}
	if s.lock == nil {
		if err := s.take(); err != nil || s.lock == nil {
			return err
		}
		if s.there() {
			s.Done() // the one who had the lock before was faster
			return nil
		}
	}
	if !s.last.IsZero() && (!s.ended.Load() || time.Since(s.last) < respawn) {
		return nil
	}
	return s.spawn()
}

// Done gives the lock back. It must be called when a core answers.
func (s *Starter) Done() {
	if s.lock != nil {
		_ = s.lock.Close()
		s.lock = nil
	}
	s.last = time.Time{}
}

// take tries to become the one who starts; without the lock and without an
// error another process is at it.
func (s *Starter) take() error {
	if err := Private(s.Dirs.Runtime, s.UID); err != nil {
		return err
	}
	f, err := os.OpenFile(s.Dirs.Runtime+"/start.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil
		}
		return err
	}
	s.lock = f
	return nil
}

func (s *Starter) there() bool {
	fd, err := Dial(s.Dirs.AgentSocket())
	if err == nil {
		_ = syscall.Close(fd)
	}
	return err == nil
}

// spawn starts the core on its own: its own session, so that what an agent
// does to its children's group or terminal does not reach it; no directory
// held; nothing of the agent's environment but a list of names.
func (s *Starter) spawn() error {
	program := s.Program
	if program == "" {
		var err error
		if program, err = Program(s.Environ); err != nil {
			return err
		}
	}
	if err := Private(s.Dirs.State, s.UID); err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	log, err := os.OpenFile(s.Dirs.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	pid, err := syscall.ForkExec(program, []string{program, "serve"}, &syscall.ProcAttr{
		Dir:   "/",
		Env:   Environ(s.Environ),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return errors.New("cannot start " + program + ": " + err.Error())
	}
	s.last = time.Now()
	s.ended.Store(false)
	go func() { // a core outlives us as a rule; one that does not is no zombie
		var status syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(pid, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		s.ended.Store(true)
	}()
	return nil
}

// Program finds the core's binary: beside the running one, links resolved,
// else on PATH, where relative entries do not count.
func Program(environ []string) (string, error) {
	var dirs []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		dirs = append(dirs, filepath.Dir(exe))
	}
	dirs = append(dirs, strings.Split(lookup(environ, "PATH"), ":")...)
	for _, d := range dirs {
		for _, name := range []string{"core", "fermata"} {
			if p := d + "/" + name; p[0] == '/' && runnable(p) {
				return p, nil
			}
		}
	}
	return "", errors.New("there is no binary core beside this one or on PATH")
}

func runnable(path string) bool {
	i, err := os.Stat(path)
	return err == nil && i.Mode().IsRegular() && i.Mode().Perm()&0o111 != 0
}

// Environ is the part of an environment that a core gets: who and where the
// user is, language, time zone, Fermata's own variables. The agent's secrets
// are not among them.
func Environ(environ []string) []string {
	var out []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if allowed(name) {
			out = append(out, kv)
		}
	}
	return out
}

func allowed(name string) bool {
	switch name {
	case "HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR",
		"DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS":
		return true
	}
	return strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "FERMATA_")
}

// lookup finds a variable in a list; as in getenv the first one counts.
func lookup(environ []string, name string) string {
	for _, kv := range environ {
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			return v
		}
	}
	return ""
}
