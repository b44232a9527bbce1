// Package events is Fermata's vocabulary: what happened (events), what the two
// doors say to the core and hear back (commands and replies), the closed tables
// of codes, the subjects, and the codec that carries all of it.
//
// It does no I/O and imports nothing of Fermata. A core, a frontend and an
// agent's client meet only here.
//
// Start with [Event] for the facts in the log, [Message] for how they are
// stored, [Question] for what a frontend is shown, and subjects.go for where
// things travel. Field names on the wire are the json tags, for msgpack and
// for JSON alike.
package events
