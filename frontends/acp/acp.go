// Package acp stands between an editor and its agent that speak the Agent
// Client Protocol over stdio: JSON-RPC messages, one a line.
//
// It starts the agent and carries both directions byte for byte, whatever they
// hold: lines that are no JSON, line ends of two characters, empty lines, a
// last line without an end. [Lines] divides a direction into messages, [Relay]
// carries one direction, [Run] is the whole of it.
//
//	editor ── stdin ──► Relay ──► agent
//	editor ◄─ stdout ── Relay ◄── agent      stderr is the agent's own
//
// A message is passed on when its line is complete, not before: a part of one
// is nothing that either side could use.
package acp
