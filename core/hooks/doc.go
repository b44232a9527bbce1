// Package hooks reads a person's rules and carries them out: the hooks file
// (strict, every mistake with its place), matching, running a script or
// command in a process group of its own, and judging what it wrote.
//
// The order of use: a [Store] gives the [Set] in force for a working directory,
// made of the global files and of those of the project that somebody trusted;
// [Set.Plan] lists the blocking hooks that match an operation, and a [Runner]
// runs one of them and says what it did. Nothing here knows about questions,
// the log or frontends.
//
// One rule holds everywhere: whatever goes wrong is a failure of the hook, and
// a failure never allows unless the person wrote on_error: warn or ignore. In a
// file where iCode looks warn is what holds when nothing is written, as there;
// [Lint] names each hook that can so fail open.
package hooks
