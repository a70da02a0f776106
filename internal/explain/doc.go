// Package explain tells a person why a task is not running yet.
//
// [Explain] runs the same rules as the leader (reconcile.Judge) and the same
// placement (placement.Backlog.Refuse) against the view and throws the changes
// away. Each [Answer] has a word for programs, a sentence for people, since
// when it is so, and the record that says so at the revision at which it was
// seen. Any replica can answer from its mirror; what only the leader knows
// (losses or due times being held) is handed in.
//
// What can never happen: an answer changes anything, or rests on something
// else than what the rules decide by.
//
// The api and the ui call it under the view's read lock, from any goroutine.
// It costs a look at each task that is asked about and, where one of them is
// ready, a full pass: who else waits can only be told from all of them. It
// does not fail; a run that is not active has no answers.
package explain
