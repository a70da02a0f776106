// Package record holds what is durable, and the only functions that move a
// state.
//
// Everything that writ stores in etcd is a value of this package: runs,
// attempt rows, sessions, workers, revisions' pointers, ended documents. The
// package knows no key names (package keyspace does), no etcd and no clock:
// times, tokens and write ids are handed in by the caller.
//
//	               ┌────────────► abandoned (replaced by the next attempt)
//	               │
//	∅ ──► queued ──┼──► running ──► success | failed | skipped | cancelled
//	  │            └──► success | failed | skipped | cancelled
//	  └──► skipped | upstream_failed | cancelled
//
// A change of state is asked for with [Attempt.Move] or [Run.Move]; both read
// one table (see [AttemptTable] and [RunTable]) of from, to, actor and the
// guards that the same Txn must carry. What is to be written is a [Change]:
// plain data, a list of expectations and of puts and deletes. A Change without
// an expectation cannot be built, so no unguarded write can leave the core.
//
// What can never happen: a terminal row moves; an attempt number is skipped by
// this package; a row is changed in place (values go in, values come out).
//
// All functions are pure and may be called from any goroutine. They return an
// error for a move that the table does not know, and panic never.
package record
