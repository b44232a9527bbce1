//go:build race

package integration_test

// leakCalls is how many calls are made. The race detector makes each of them
// take many times as long, and what leaks, leaks with a thousand too.
const leakCalls = 1_000
