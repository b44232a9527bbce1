package natsd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
)

// storedStreams lists the streams that a store holds messages of. A directory
// without messages is what a crash in the middle of a creation leaves; it may
// be lost.
func storedStreams(store string) ([]string, error) {
	blocks, err := filepath.Glob(filepath.Join(store, "jetstream", coreAccount, "streams", "*", "msgs", "*.blk"))
	if err != nil {
		return nil, fmt.Errorf("look for the log in %s: %w", store, err)
	}
	var names []string
	for _, b := range blocks {
		info, err := os.Stat(b)
		if err != nil {
			return nil, fmt.Errorf("look for the log in %s: %w", store, err)
		}
		if info.Size() > 0 {
			names = append(names, filepath.Base(filepath.Dir(filepath.Dir(b))))
		}
	}
	return slices.Compact(names), nil
}

// allOpened checks that the server has opened every stream that was stored. The
// server itself only warns about one that it cannot read and goes on without;
// the core would then begin an empty log beside the lost one.
func allOpened(ns *server.Server, store string, stored []string) error {
	if len(stored) == 0 {
		return nil
	}
	account, err := ns.JszAccount(&server.JSzOptions{Account: coreAccount, Streams: true})
	if err != nil {
		return fmt.Errorf("look at the log: %w", err)
	}
	for _, name := range stored {
		if !slices.ContainsFunc(account.Streams, func(s server.StreamDetail) bool { return s.Name == name }) {
			return fmt.Errorf("the log %s in %s cannot be opened: repair it, or move it away to begin a new one", name, store)
		}
	}
	return nil
}
