// Package executor runs commands for a worker's agent, and ends them with all
// of their children. It is the agent's side of package keeper.
//
// It owns the keeper process, the state directory's part about attempts, the
// environment and the files that an attempt gets, and the reading of results
// and logs. It decides nothing about states: it says what became of a process,
// as a [Result], and the agent reports it.
//
//	<state>/executor.json                which directory this is, which keeper runs
//	<state>/attempts/<token>/attempt.json   written before the start
//	                         inputs.json    WRIT_INPUTS, where there are any
//	                         result         WRIT_RESULT, written by the task
//	                         pid.json       written by the keeper after the fork
//	                         end.json       written by the keeper at the end
//
// # What can never happen
//
//   - A token is started twice from one state directory: the token's directory
//     is made exclusively before the start, and stands until [Executor.Forget].
//   - A [Result] is given while a process of the attempt lives. Where the
//     keeper was killed, the attempts' processes are found and ended first, and
//     Lost is set.
//   - A call waits for an inherited pipe, for a result that is a FIFO, or for a
//     keeper that is stopped: one that leaves several pings unanswered is
//     killed, and its attempts are lost.
//   - The agent holds output in memory. The keeper writes it to disk, within
//     Head + 2*Tail bytes (DefaultHead and DefaultTail, 4 MiB each).
//
// # Who calls it
//
// [Executor.Run] owns all goroutines and the keeper, from one goroutine of the
// agent; everything else may be called from any. When Run returns, no process
// of any attempt lives. To drain, the agent waits for its processes (or calls
// KillAll) before it ends the context of Run.
//
// Before Run, and with the state directory locked, an agent calls
// [EndLeftovers]: it ends whatever an earlier agent of the directory left, and
// its success is what makes an attestation of death true.
//
// # On failure
//
// A command that cannot be started is a Result with StartError, not an error.
// A keeper that dies is started again; one that dies before it said hello, and
// processes that will not die, end Run with an error.
package executor
