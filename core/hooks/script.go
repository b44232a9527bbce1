package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/fermata-hitl/fermata/events"
)

// script is a script file as it was right before its run. The zero script is
// none.
type script struct {
	path   string
	digest events.Digest
	pinned bool
	note   note
}

// readScript takes the digest of the file that is about to run and compares it
// with the one that the person trusted, if pinned is one.
func readScript(path string, pinned events.Digest) (script, error) {
	look := os.Stat
	if pinned != "" {
		look = os.Lstat // a link can lead to another file when the script starts
	}
	info, err := look(path)
	switch {
	case err != nil:
		return script{}, missing("its script %s is not there", path)
	case info.Mode()&fs.ModeSymlink != 0:
		return script{}, notThatScript(path)
	case !info.Mode().IsRegular():
		return script{}, missing("its script %s is not a file", path)
	}
	// The note is taken first: a change while the file is read is one after it.
	s := script{path: path, pinned: pinned != "", note: noteOf(info)}
	if s.digest, err = digestFile(path); err != nil {
		return script{}, tell("its script is not readable: %s", err)
	}
	if s.pinned && s.digest != pinned {
		return script{}, notThatScript(path)
	}
	return s, nil
}

func notThatScript(path string) error {
	return startError{events.CodeNotTrusted, tell("its script %s is not the one that was trusted; look at it, then run fermata hooks trust", path)}
}

// unchanged says that a pinned script is still the file that it was before the
// run: the same inode with the same change time, and the same content. The
// interpreter opens the file by its name some time between the two looks, so
// both must see what was trusted for the run to count.
//
// This finds whoever writes to the file, replaces it, or moves it away and back,
// because each sets a change time that only the system's clock can set. It does
// not find whoever replaces a directory above the file for the moment of its
// start and puts it back, turns a symbolic link above it there and back, does all of it
// within one tick of the file system's clock, or can set that clock. Nor does the
// pin cover what the script loads: modules, sourced files, the interpreter.
func (s script) unchanged() error {
	if !s.pinned {
		return nil
	}
	info, err := os.Lstat(s.path)
	if err != nil {
		return fmt.Errorf("its script is not there any more: %w", err)
	}
	digest, err := digestFile(s.path)
	if err != nil {
		return fmt.Errorf("its script is not readable any more: %w", err)
	}
	if noteOf(info) != s.note || digest != s.digest {
		return fmt.Errorf("its script %s was changed while it ran", s.path)
	}
	return nil
}

func digestFile(path string) (events.Digest, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return events.Digest(hex.EncodeToString(sum.Sum(nil))), nil
}
