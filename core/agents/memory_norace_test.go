//go:build !race

package agents_test

// waitingBudget is the socket's share of 12 KB, bytes.
const waitingBudget = 5 << 10
