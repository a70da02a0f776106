// Package store makes a change durable, or says that it lost, or that it
// cannot know.
//
// All writers of a replica go through one [Store]. Its committer gathers
// changes while Txns are in flight and sends the next with all of them, each a
// nested Txn with compares of its own and an Else that reads what stood in its
// way; what may share a Txn, and what waits, is decided by package batch.
//
//	Submit, Commit ──► batch ──► Txn ──┬─ answered ──► Committed | Conflict
//	                     ▲             ├─ refused ───► halved, until one is left
//	                     └─────────────┴─ unknown ───► the same again, with a pause
//
// What can never happen: a change is reported as committed without an answer
// of etcd that says so, or a stored value that bears its write id; as a
// conflict while an earlier try of it may still have been what committed; one
// change fails because of another that shared its Txn; a value that cannot be
// decoded ends the process or hides the others.
//
// [Store.Run] is called once; it owns the committer and the one stream of
// lease renewals, and whoever still waits for it when it ends hears Unknown.
// Everything else may be called from any goroutine. Every call to etcd has a
// deadline and fails at once at a member that has lost its leader. A read
// returns its error to the caller; a write is repeated until it is settled, its
// caller gives up, or Run ends.
package store
