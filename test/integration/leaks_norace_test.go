//go:build !race

package integration_test

// leakCalls is how many calls are made.
const leakCalls = 10_000
