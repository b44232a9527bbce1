//go:build !race

package agents_test

// waitingBudget is the socket's share of 12 KB, in bytes.
const waitingBudget = 10 << 10
