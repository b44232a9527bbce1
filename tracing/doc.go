// Package tracing turns the log into spans, so that every wait for a person
// or for a place among parallel hooks becomes exactly one span, also when a
// process was killed while it lasted.
//
// The log is the evidence; spans are a view of it. A [Projector] folds the
// messages of each operation and gives out a span when the thing it stands for
// has ended:
//
//	fermata.operation                 committed, refused or aborted
//	├─ wait.hook_slot                 the hook has its place, and has ended
//	├─ hook.run {hook}                the hook's process has ended
//	├─ wait.hook_confirmation         the question has ended; the same for
//	├─ wait.tool_approval             every gate
//	└─ commit                         the right to run one version was given
//
// Hooks that nobody waits for, and those of observed events, have the same two
// spans. They may end after their operation, and begin after it: then their own
// messages say where they stand. Those of a session stand under the agent's span
// or under none.
//
// Ids, times and attributes depend on the log and on [Options] alone: never on
// the process, the machine or the hour of export. Projecting the log again
// gives the same bytes, which is what makes "exactly once" possible: a [Sink]
// needs only to remember the sequence of the last message whose spans it has.
// [FileSink] keeps them as OTLP JSON lines and reads that sequence back from
// its own file.
//
// Spans carry metadata only: names, sizes, codes, and keyed commitments
// ([Key]) in place of arguments, texts and people. Values stay in the log.
package tracing
