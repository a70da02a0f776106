// Package api serves people and programs: it converts what they send, refuses
// what cannot be, makes guarded changes of the rest, and tells them what the
// records say.
//
// It owns the three public services (workflows, runs, administration), the
// conversion between records and the protocol, and the one table from errors
// to gRPC codes. It decides nothing about tasks: a run that it makes or cancels
// is carried on by the leader, who sees the record.
//
//	request ──► check ──► change ──► Store ──┬─ committed ─► wait for the mirror ─► answer
//	              │         ▲                ├─ conflict ──► look again, or refuse
//	              ▼         └──── again ◄────┴─ unknown
//	           refusal                             └─ deadline ─► UNAVAILABLE, may have happened
//
//	read ──► mirror ──► not there ──► store: active? ended? ──► document as a view ──► answer
//
// What can never happen: a write without a guard on what it was decided by; an
// answer that says "done" before the write is durable, or "refused" while an
// earlier try of it may still have been what committed; two runs for one
// idempotency key; a watch that ends before its run has, without an error.
//
// A Service is made once by replica and called by gRPC, from any goroutine; it
// starts none. It reads the mirror under its lock and does no I/O there. What
// fails is told to the caller as a status with a code from the table; what the
// table does not know is logged and is INTERNAL.
package api
