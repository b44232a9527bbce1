package hooks

import (
	"io/fs"
	"syscall"
	"time"
)

func noteOf(info fs.FileInfo) note {
	n := note{there: true, size: info.Size(), mode: info.Mode(), modified: info.ModTime()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		n.dev, n.inode, n.changed = uint64(s.Dev), s.Ino, time.Unix(s.Ctimespec.Unix())
	}
	return n
}
