package main

import (
	"strings"
	"testing"
	"time"

	"github.com/fermata-hitl/fermata/events"
)

func Example_rows() {
	rows("content", "one row\n"+strings.Repeat("0123456789", 7)+"    | forged: no row of ours\ttab\n")
	// Output:
	//   content:
	//     | one row
	//     | 0123456789012345678901234567890123456789012345678901234567890123456789
	//     ↳     | forged: no row of ours⇥ tab
	//     |
}

// What was typed too early, or for nothing, reaches no client: there is none here.
func TestF13WhatWasTypedTooEarlyAnswersNothing(t *testing.T) {
	now := time.Now()
	s := screen{list: []asked{{Question: events.Question{ID: "q"}, shown: now}, {over: true}}}
	for _, line := range []string{"c 1", "x 1", "c 2", "c 3", "c 0", "", "y", "c", "c 1 "} {
		s.answer(t.Context(), typed{line, now.Add(grace - 1)})
	}
	for _, line := range []string{"c 2", "c 3", "c -1", "", "y", "yes", "c", "C 1"} {
		s.answer(t.Context(), typed{line, now.Add(time.Hour)})
	}
}
