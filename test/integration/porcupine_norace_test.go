//go:build !race

package integration_test

import "testing"

// TestPorcupine8x10000 is [porcupine8] with ten thousand questions.
func TestPorcupine8x10000(t *testing.T) {
	t.Run("F1 F2 F13 B3 B12", func(t *testing.T) { porcupine8(t, 10_000) })
}
