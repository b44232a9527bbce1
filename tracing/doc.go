// Package tracing turns the log into spans, so that every wait for a person
// becomes exactly one span, also when a process was killed while it lasted.
//
// The log is the evidence; spans are a view of it. A [Projector] folds the
// messages of each operation and gives out a span when the thing it stands for
// has ended:
//
//	fermata.operation                 committed, refused or aborted
//	├─ hook.run {hook}                the hook's process has ended
//	├─ wait.hook_confirmation         the question has ended; the same for
//	├─ wait.tool_approval             every gate
//	└─ commit                         the right to run one version was given
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
