//go:build race

package integration_test

import "testing"

// TestPorcupine8x2000 is [porcupine8] under the race detector, which makes each
// question take several times as long.
func TestPorcupine8x2000(t *testing.T) {
	t.Run("F1 F2 F13 B3 B12", func(t *testing.T) { porcupine8(t, 2_000) })
}
