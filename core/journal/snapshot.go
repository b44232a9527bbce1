package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fermata-hitl/fermata/events"
)

// Snapshot is a fold of the log up to a sequence, so that a core need not read
// everything again. It is a cache: whatever is doubtful about one, the log is
// read from its beginning instead, and nothing is ever proved by it.
type Snapshot struct {
	Seq  uint64       // the last message that is in it
	Fold int          // version of the code that made Data; another version cannot use it
	Core events.Token // whose log it is of
	Data []byte
}

// ErrDoubt says that a snapshot's file is not whole.
var ErrDoubt = errors.New("the snapshot is not to be trusted")

// A snapshot's file: magic, sequence, fold version, core, data, and SHA-256 of
// all that.
const (
	snapshotMagic = "fermata snapshot 1\n"
	coreSize      = 26
	snapshotHead  = len(snapshotMagic) + 8 + 4 + coreSize
)

// WriteSnapshot replaces the snapshot at path. A crash at any point leaves the
// old one or the new one.
func WriteSnapshot(path string, s Snapshot) error {
	if len(s.Core) != coreSize {
		return fmt.Errorf("write the snapshot: %q is not a core's token", s.Core)
	}
	b := make([]byte, 0, snapshotHead+len(s.Data)+sha256.Size)
	b = append(b, snapshotMagic...)
	b = binary.BigEndian.AppendUint64(b, s.Seq)
	b = binary.BigEndian.AppendUint32(b, uint32(s.Fold))
	b = append(b, s.Core...)
	b = append(b, s.Data...)
	sum := sha256.Sum256(b)
	if err := replace(path, append(b, sum[:]...)); err != nil {
		return fmt.Errorf("write the snapshot: %w", err)
	}
	return nil
}

// ReadSnapshot reads what [WriteSnapshot] wrote. The error is [fs.ErrNotExist]
// when there is none and [ErrDoubt] when anything is wrong with it. The caller
// still has to compare Fold and Core with its own; [Journal.Scan] finds out if
// the log is older than the snapshot.
func ReadSnapshot(path string) (Snapshot, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return Snapshot{}, fmt.Errorf("read the snapshot: %w: %s is no plain file", ErrDoubt, path)
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Snapshot{}, fmt.Errorf("read the snapshot: %w", err)
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("read the snapshot: %w: %w", ErrDoubt, err)
	}
	end := len(b) - sha256.Size
	if end < snapshotHead || !bytes.HasPrefix(b, []byte(snapshotMagic)) {
		return Snapshot{}, fmt.Errorf("read the snapshot: %w: %s does not hold one", ErrDoubt, path)
	}
	if sum := sha256.Sum256(b[:end]); !bytes.Equal(sum[:], b[end:]) {
		return Snapshot{}, fmt.Errorf("read the snapshot: %w: its checksum does not fit", ErrDoubt)
	}
	rest := b[len(snapshotMagic):end]
	return Snapshot{
		Seq:  binary.BigEndian.Uint64(rest),
		Fold: int(binary.BigEndian.Uint32(rest[8:])),
		Core: events.Token(rest[12 : 12+coreSize]),
		Data: rest[12+coreSize:],
	}, nil
}

// replace writes a file beside path, makes it durable and renames it.
func replace(path string, b []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".new-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
