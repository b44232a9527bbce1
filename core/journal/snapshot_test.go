package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fermata-hitl/fermata/core/journal"
)

func TestSnapshotRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	if _, err := journal.ReadSnapshot(path); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, journal.ErrDoubt) {
		t.Errorf("none: %v", err)
	}
	rapid.Check(t, func(t *rapid.T) {
		want := journal.Snapshot{
			Seq: rapid.Uint64().Draw(t, "seq"), Fold: rapid.IntRange(0, 1000).Draw(t, "fold"),
			Core: core, Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
		}
		if err := journal.WriteSnapshot(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := journal.ReadSnapshot(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left %v %v", left, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// One changed, missing or added byte anywhere is doubt.
func TestDamagedSnapshotIsDoubted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := journal.WriteSnapshot(path, journal.Snapshot{Seq: 9, Fold: 1, Core: core, Data: []byte("state")}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := [][]byte{nil, append(append([]byte{}, whole...), 0)}
	for i := range whole {
		flipped := append([]byte{}, whole...)
		flipped[i] ^= 1
		damaged = append(damaged, flipped, whole[:i])
	}
	for _, b := range damaged {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := journal.ReadSnapshot(path); !errors.Is(err, journal.ErrDoubt) {
			t.Fatalf("%d bytes: %+v %v", len(b), s, err)
		}
	}
	if err := journal.WriteSnapshot(path, journal.Snapshot{Core: "short"}); err == nil {
		t.Error("a core that is no token was written")
	}
}
