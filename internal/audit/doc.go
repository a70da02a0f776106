// Package audit says whether a history of the records keeps the invariants
// I1–I12 of the design, and names the record and the revision of every breach.
//
// It owns an opinion of its own. It shares no code with the rules that write
// the records: the transition relation, the ten trigger rules, what a task is
// owed and what a clear covers stand here a second time, written from the
// design, so that one mistake does not hide in both. Tests hold the relation
// against the table of package record, and the rules against those of package
// spec.
//
//	Begin(snapshot) ─► Feed(revision after revision) ─► Report, Summary
//	Spec, Ended, Observe: what stands beside the history, in any order before
//	the events or the report that need it
//
// What can never happen: a record is changed or written; a breach is reported
// twice for one key and revision by the same check; the answer depends on the
// order of a map or of the events of one revision. A history with a hole is no
// history: Feed refuses it, since everything after the hole would be a guess.
//
// What cannot be seen in records is taken from observations where there are
// any (I1 and I7 as the processes lived them), and is left alone otherwise.
// Where the history begins after a compaction, the summary says which
// invariants hold only from there. The cursor of a schedule (I9) and what a
// worker was told (I4) leave no trace that this package reads.
//
// The cost is linear in the events, the edges of the graphs and the rows of
// the documents. An Auditor belongs to one goroutine; it does no I/O. Its
// callers are `writ audit`, the simulator and the fault harness.
package audit
