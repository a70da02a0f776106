// Package election knows whether this replica may lead, and since which
// revision.
//
// It owns the keys below one prefix: a candidate is the key <prefix><lease in
// hex>, attached to that lease, and the candidate with the lowest create
// revision leads. That is the layout of etcd's own concurrency package, so
// `etcdctl elect` reads it and may even take part. The create revision of the
// leader's key is the term's fence: a Txn that compares it loses once the
// leadership is over, whatever its sender believes.
//
//	           ┌──────────── pause ◄───────────────┐
//	           ▼                                   │
//	Run ──► grant lease ──► enter key ──► wait ──► verify ──► lead ──► give up
//	           ▲ every way out of a candidacy ends its lease; the next has a new one
//	roll: list + watch of the prefix, on every replica ──► wait, lead, Current
//
// Correctness never rests on this package: the guards of the writes carry it.
// It spares the work of two leaders, and makes a deposed one stop early.
//
// What can never happen: two terms share a lease or a fence; lead is called
// twice at once; lead is called for a key that a linearizable read, made after
// the wait, did not show first; a candidate waits on with a dead lease; a key
// or a lease outlives Run, except where etcd cannot be reached, and then for
// the lease's time to live only.
//
// A term ends, and its context with a cause, when the lease is lost or not
// renewed in time ([ErrSessionEnded]), the key is gone ([ErrKeyGone]), no
// progress was reported for a while ([ErrStalled]: leading means progressing),
// [Elector.Resign] was called or lead returned ([ErrResigned]), or Run's context
// ended. Leadership is handed over at once then, not after the time to live.
//
// Run is called by one goroutine, once; lead runs in another, and everything
// has ended when Run returns. All other methods may be called from any
// goroutine at any time. On failure (etcd unreachable, lease lost) Run goes on
// campaigning, with a pause; it ends with its context only.
package election
