// Package reconcile decides what the active runs need now.
//
// [Pass] looks at what was touched and returns changes, each with its guard,
// the tasks that are ready for a worker, what the rest waits for, and when it
// wants to look again. [Dispatch] makes the change that gives a ready task to
// a worker; [EndPages] and [EndHead] make the ended document of a run,
// [RestorePage] and [Restored] bring one back.
//
// The package is level-triggered: it is never told what happened, it compares
// records, so the event-driven pass and the timer's full pass are one code,
// and a pass that is run twice, late or by two replicas at once changes
// nothing but time.
//
// The rules, in the order in which they are asked. The first that has
// something to say about a task speaks for it:
//
//	sessions  rule_session.go   a key that is gone is noted; what nobody names is forgotten
//	          rule_prove.go     a proven death lifts its mark
//	runs      rule_admit.go     queued → running
//	tasks     rule_repair.go    what no rule should have left is mended, and counted
//	          rule_cancel.go    nothing of a cancelled run or under a clear goes on
//	          rule_timeout.go   too long in the queue; the run took too long
//	          rule_abandon.go   a dispatch into a void is replaced        (check 1)
//	          rule_lost.go      the worker of a running row is gone       (check 2)
//	          rule_retry.go     a failed task waits for its next attempt
//	          rule_trigger.go   the trigger rule decides without running
//	          rule_start.go     a task or a waiting row is ready
//	runs      rule_finish.go    all tasks are closed                      (check 3)
//
// What can never happen: a change without its guards (record.Lacking is empty
// for each); two attempts of a task that are not terminal; an attempt whose
// trigger rule does not hold in rows that are terminal at the view's revision;
// a further attempt of a task that succeeded, unless a clear covers it; a
// decision that rests on who leads.
//
// The caller is the leader's loop, under the view's read lock, one pass at a
// time; package explain runs the same code and throws the changes away. All of
// it is pure but for the [Vigil], which the leader owns and hands in. A record
// that no rule can make sense of is reported in Result.Faults, and its task is
// left as it is; the others go on.
package reconcile
