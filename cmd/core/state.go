package main

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"

	"github.com/fermata-hitl/fermata/frontends/words"
)

// begunFile says that a log has been begun in this state directory.
func begunFile(state string) string { return filepath.Join(state, "keys", "begun") }

// logIsThere refuses to begin an empty log where there was one: what is gone
// must be missed, not replaced.
func (c cli) logIsThere(state string) error {
	if _, err := os.Stat(begunFile(state)); err != nil {
		return nil //nolint:nilerr // no log has been begun here
	}
	if _, err := os.Stat(filepath.Join(state, "log")); errors.Is(err, os.ErrNotExist) {
		return c.fault(words.LogGone, state)
	}
	return nil
}

// begun notes that the log has its beginning.
func begun(state string) error {
	if _, err := os.Stat(begunFile(state)); err == nil {
		return nil
	}
	return keep(begunFile(state), []byte("begun\n"))
}

// secret reads a random 32-byte value from a file, or makes it.
func (c cli) secret(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) == 32 {
		return b, nil
	}
	if err == nil {
		return nil, c.fault(words.KeyDamaged, path, len(b))
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	b = make([]byte, 32)
	_, _ = rand.Read(b) // never fails; the runtime ends the process instead
	return b, keep(path, b)
}

// keep writes a new file that is there whole or not at all, whatever ends the
// process or the machine meanwhile.
func keep(path string, b []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
