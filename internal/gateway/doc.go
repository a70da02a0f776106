// Package gateway speaks with workers, one stream per session.
//
// It owns the streams that this replica holds. What it writes is decided by
// package session; what it sends is read from the mirror, so that an intent
// reaches its worker over whichever replica holds the stream, whoever wrote it.
//
//	Hello ──► register ──► Welcome ──┬─ watch:      intents, cancels, probes ──► worker
//	                                 ├─ heartbeats: renew, read the key ──► ack
//	                                 └─ reports:    commit until settled ──► answer
//
// What can never happen: a message is sent for a row that is not durable; a
// heartbeat is acknowledged though the session's key was gone after it
// arrived; a report is answered before a terminal row, or the lack of one for
// good, was read; one stream's trouble is felt by another; more is held for a
// stream than its bounds.
//
// gRPC calls [Gateway.Attend] and [Gateway.ServeLogs] from a goroutine per
// stream; each starts what it needs and returns when all of that has ended.
// [Gateway.Run] wakes the streams and, when its context ends, closes them with
// UNAVAILABLE, which makes workers go elsewhere. Garbage ends its own stream
// with INVALID_ARGUMENT. Where etcd does not answer, reports and heartbeats
// stay unanswered, and the worker sends them again.
package gateway
