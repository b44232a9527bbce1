package natsd

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// maxSocketPath is what both Linux and macOS can bind to, with some room.
const maxSocketPath = 100

// ListenAgents listens on agent.sock in the runtime directory. Accept returns
// only connections of this process's own user; others are closed unheard.
func (s *Server) ListenAgents() (net.Listener, error) {
	l, err := s.listen("agent.sock")
	if err != nil {
		return nil, err
	}
	return l, nil
}

// listener is a Unix socket that only its own user can use.
type listener struct {
	*net.UnixListener
	uid int
}

func (s *Server) listen(name string) (*listener, error) {
	if s.opts.Memory {
		return nil, fmt.Errorf("listen on %s: a server in memory has no sockets", name)
	}
	path := filepath.Join(s.opts.RuntimeDir, name)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on %s: the path is longer than %d bytes, choose a shorter runtime directory",
			path, maxSocketPath)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // until here the 0700 directory guards it
		_ = l.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, net.ErrClosed)
	}
	s.listeners = append(s.listeners, l)
	return &listener{l, os.Geteuid()}, nil
}

// removeStale removes the socket of a core that is gone. Only the holder of the
// directory's lock may call it.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listen: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("listen: %s is in the way and is no socket: move it away", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	return nil
}

// Accept waits for a connection of our own user.
func (l *listener) Accept() (net.Conn, error) {
	c, _, err := l.accept()
	return c, err
}

func (l *listener) accept() (net.Conn, Peer, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, Peer{}, err
		}
		if p, err := PeerOf(c); err == nil && p.UID == l.uid {
			return c, p, nil
		}
		_ = c.Close()
	}
}
