package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// DefaultSocket is the path of this user's nats.sock: in FERMATA_RUNTIME_DIR,
// else XDG_RUNTIME_DIR/fermata, else TMPDIR/fermata-<uid>. It is an error when
// FERMATA_RUNTIME_DIR is no absolute path.
func DefaultSocket() (string, error) {
	const own, name = "FERMATA_RUNTIME_DIR", "nats.sock"
	if dir := os.Getenv(own); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s must be an absolute path, it is %q", own, dir)
		}
		return filepath.Join(dir, name), nil
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "fermata", name), nil
	}
	tmp := os.Getenv("TMPDIR")
	if !filepath.IsAbs(tmp) {
		tmp = "/tmp"
	}
	return filepath.Join(tmp, "fermata-"+strconv.Itoa(os.Getuid()), name), nil
}

// checkOwn checks that a socket's directory is the user's alone: in a shared
// place anybody could have put a core of their own there, which allows all.
func checkOwn(socket string) error {
	dir := filepath.Dir(socket)
	i, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := i.Sys().(*syscall.Stat_t)
	if !i.IsDir() || !ok || int(st.Uid) != os.Getuid() || i.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s must be a directory that belongs to you and is closed to others; run chmod 700 on it, or remove it", dir)
	}
	return nil
}
