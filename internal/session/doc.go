// Package session is both ends of the worker protocol, as far as it decides
// anything: what a gateway writes and answers for what a worker says, and what
// a worker does for what a gateway says.
//
//	worker end (Agent)                         gateway end
//	  Hello ─────────────────────────────────►  Register: one live session per name
//	  ◄───────────────────────────── Assign     an intent of this session
//	  Started (claim) ───────────────────────►  Start: queued → running
//	  ◄───────────────────────── StartedAck     go, or not
//	  Finished, again and again ─────────────►  Finish: → success, failed, …
//	  ◄──────────────────────── FinishedAck     accepted, rejected, forgotten
//
// The gateway end is functions from what was read to a [record.Change]; what
// the change meets in the store is read from its outcome, and the function is
// asked again. The worker end is a step machine, [Agent].
//
// What can never happen: a change of a row without the guards of its
// transition; an attempt that is not idempotent started without an acknowledged
// claim, or past the worker's own deadline; a token started twice, or after it
// was refused; more attempts running than there are slots; a report given up
// before it was answered; a report answered by anything but a terminal row, or
// the lack of one for good.
//
// Nothing here reads a clock, makes random numbers, or starts a goroutine. The
// gateway's functions may be called from any goroutine; an Agent belongs to
// one. Nothing fails: what cannot be done is a Refusal, or no action.
package session
