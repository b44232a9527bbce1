package hooks

import (
	"errors"
	"os"
	"path/filepath"
)

// draftPrefix begins the name of a file that was not written to its end.
const draftPrefix = ".draft-"

// replaceFile writes a file, for its owner only, in the place of one that may be
// there. Whoever reads sees the old one or the new one, whole, also after a loss
// of power.
func replaceFile(file string, data []byte) error {
	dir := filepath.Dir(file)
	draft, err := os.CreateTemp(dir, draftPrefix) // mode 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(data)
	if err == nil {
		err = draft.Sync()
	}
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), file)
	}
	if err != nil {
		_ = os.Remove(draft.Name())
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename in a directory outlive a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
