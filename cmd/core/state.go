package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// begunFile says that a log has been begun in this state directory.
func begunFile(state string) string { return filepath.Join(state, "keys", "begun") }

// logIsThere refuses to begin an empty log where there was one: what is gone
// must be missed, not replaced.
func logIsThere(state string) error {
	if _, err := os.Stat(begunFile(state)); err != nil {
		return nil //nolint:nilerr // no log has been begun here
	}
	if _, err := os.Stat(filepath.Join(state, "log")); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the log is gone from %s: restore it, or move that directory away to begin anew", state)
	}
	return nil
}

// begun notes that the log has its beginning.
func begun(state string) error {
	if _, err := os.Stat(begunFile(state)); err == nil {
		return nil
	}
	return keep(begunFile(state), []byte("a log was begun here\n"))
}

// secret reads a random 32-byte value from a file, or makes it.
func secret(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) == 32 {
		return b, nil
	}
	if err == nil {
		return nil, fmt.Errorf("%s has %d bytes, not 32: it was damaged; restore it, or move the state directory away", path, len(b))
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
