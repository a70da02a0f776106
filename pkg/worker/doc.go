// Package worker is the SDK for programs that execute attempts.
//
// A worker serves queues with a number of slots. It runs handlers, which are
// Go functions, and processes where it is given something that runs them (as
// `writ worker` is). It attends any replica, and another one when that stream
// breaks, without anything that runs being touched.
//
//	connect ─► Hello ─► Welcome ─┬─ heartbeats, from their own goroutine
//	   ▲                         ├─ Assign ─► claim ─► run ─► outbox ─► Finished
//	   └── stream broke ◄────────┴─ Cancel, Probe
//
// That an idempotent attempt began is told only when it has run for a moment;
// of a shorter one the end says all, and costs one write instead of two.
//
// With a state directory the worker keeps its identity and its reports over
// restarts: a report is on disk before it is sent and until it was answered,
// and what an earlier life left is delivered by the next. The directory is
// locked; two workers never share one.
//
// What can never happen: an attempt that is not idempotent is started without
// an acknowledged claim, or past the worker's own deadline, which is the send
// time of its last acknowledged heartbeat, plus the session's time to live,
// less a margin; a report is dropped before the server answered it; a slow
// handler holds up a heartbeat.
//
// [Worker.Run] is called once; it blocks, and everything that it started has
// ended when it returns. When its context ends, the worker takes no more
// attempts, gives those that run Config.Drain to end, and ends the rest.
// Handlers are called from goroutines of their own and must heed their context;
// one that panics fails its attempt, not the worker. Run returns an error where
// the server refuses the worker for good, or the state directory cannot be used.
package worker
