// Package view holds the active part of the keyspace as values: runs with
// their rows and specs, sessions, workers, workflows, pools, marks.
//
// An [Active] is fed event by event ([Active.Apply]) from one list and one
// watch, so what it shows is the store as it stood at one revision
// ([Active.Rev]). Beside the records it keeps what the rules would otherwise
// have to count: for each task the row that counts for its state and a tally
// of its direct upstreams, for each run the number of tasks in each state, for
// each session the rows that it holds. An event costs what it changes: the
// task of the row and, where the task's class changed, the tasks directly
// below it. [Active.Recount] counts again from the rows; a difference is a bug
// of this package and is reported as one.
//
//	put, delete ──► Apply ──► rows ──► task's state and class ──► run's counts
//	                  │                        └────────────────► tallies below
//	                  └──► Touched: what a pass has to look at (Take)
//
// A run needs its compiled spec before its tasks can be told: rows that come
// first wait beside it ([Run.Graph] is nil, [Active.Missing] names the
// revision), and [Active.Load] sorts them in.
//
// What can never happen: the package decides nothing and calls no clock; a row
// older than a clear that covers it never counts; no record that it was given
// is changed in place, so values handed out stay what they were.
//
// An Active is not safe for concurrent use. Its owner (package mirror) guards
// it with one lock: Apply and Load under the write lock, everything else under
// the read lock. Pointers to runs and tasks are good only while that lock is
// held; rows and records are values and may be kept. Nothing here returns an
// error but Recount; an event that makes no sense (a delete of what is not
// there) changes nothing.
package view
