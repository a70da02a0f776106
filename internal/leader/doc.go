// Package leader turns what was touched into commits, for as long as this
// replica leads.
//
// It owns the loop of one term and all that the loop remembers: what has a
// commit in flight, the backlog of ready tasks, the alarms, the fence waits
// and the ended documents that are being written. None of it is needed by the
// next leader, who finds the same from the records.
//
//	feed, alarms, outcomes, timer ──► touched ──► pass ──► changes ─┐
//	        ▲                                       └──► backlog ──► intents ─┤
//	        └────────── outcome, and the mirror has reached it ◄── committer ◄┘
//
// What can never happen: a task is decided while a commit about it is in
// flight; a change is made that package reconcile did not make; the loop waits
// for the committer; progress is reported while the mirror stands still.
//
// [Leader.Lead] is called by the election, once per term and never twice at a
// time; it blocks, starts no goroutine of its own but those that read the
// documents of runs to be reopened, and returns when its context ends. Commits
// still in flight then land or lose by their guards. A record that no rule can
// make sense of is logged and left alone. Lead has no errors of its own: what
// goes wrong is a conflict, and the next pass sees the records as they are.
package leader
