// Package placement decides who gets the free slots, and says why the others
// do not.
//
// A [Backlog] keeps the ready tasks of all runs in lanes: one for each queue,
// need (the handler, or processes), pool and workflow. A [Fleet] is what the
// view shows of sessions and limits, with the intents that are in flight taken
// off. [Backlog.Place] fills the free slots one by one:
//
//	priority   the highest first, over all workflows
//	fairness   then the workflow with the fewest live slots
//	age        then the task that has been ready the longest
//
// and a task goes to the session with the most free slots among those that
// serve its queue, have its handler or run processes, and are not draining.
// Each step looks at the heads of the lanes, so that a placement costs free
// slots times lanes, never the number of ready tasks.
//
// What can never happen: a session gets more than its slots, a pool more than
// its width, as the view and the flying intents show them (I12); a task is
// assigned twice without having been put back. Limits are counted from records
// each time and never kept, so they cannot leak.
//
// The leader's loop owns the backlog and calls everything here from its one
// goroutine. Nothing fails: a task that no session can take stays in its lane,
// and [Backlog.Refuse] tells why.
package placement
