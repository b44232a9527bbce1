//go:build race

package agents_test

// waitingBudget is larger here: the race detector makes stacks larger.
const waitingBudget = 8 << 10
