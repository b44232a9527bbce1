package integration_test

import (
	"errors"
	"testing"
	"time"
)

// patience bounds every wait of these tests: more than the longest
// lease, and short enough to be a failure and not a hang.
const patience = 40 * time.Second

// errNotYet says that what is waited for can still happen.
var errNotYet = errors.New("not yet")

// await looks again and again until look returns nil. It is the only way in
// which these tests wait for what another process does. Any other error than
// errNotYet says that it cannot happen any more, and ends the wait at once.
func await(what string, look func() error) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	late := time.After(patience)
	for {
		err := look()
		if err == nil {
			return nil
		}
		if !errors.Is(err, errNotYet) {
			return errors.Join(errors.New("waiting in vain for "+what), err)
		}
		select {
		case <-again.C:
		case <-late:
			return errors.Join(errors.New("no "+what+" within "+patience.String()), err)
		}
	}
}

// must waits as await does, and ends the test when it is in vain.
func must(t testing.TB, what string, look func() error) {
	t.Helper()
	if err := await(what, look); err != nil {
		t.Fatal(err)
	}
}
