// Package keeper is the small process that forks attempts and outlives
// nothing.
//
// A worker's agent starts exactly one keeper: the one binary, executed again
// under the name [Argv0] with a socket as file descriptor 3. The keeper forks
// every attempt, is the subreaper of all that they fork, captures their
// output, and ends them. It links the standard library and x/sys only, so that
// nothing of the rest (a store that stalls, a stream that blocks, a garbage
// collection over a large heap) can keep a deadline from striking.
//
//	agent ──start, kill, extend, ping──▶ keeper ──fork──▶ attempt (own session)
//	      ◀──hello, started, ended, pong──      ◀─pipe─── stdout and stderr
//	                                         ──write──▶ log segments, pid.json, end.json
//
// # What can never happen
//
//   - An attempt's process lives on after its fence deadline, whatever the
//     agent does: the deadline lives here, on CLOCK_BOOTTIME, and only an
//     Extend moves it. At the deadline there is no TERM: everything of the
//     attempt gets KILL at once. (A host that was suspended as a whole runs
//     its processes for the instant until the keeper is scheduled again, and a
//     process in uninterruptible sleep dies when it wakes.)
//   - An attempt is reported ended while one of its processes lives. Whatever
//     outlives the attempt's main process gets TERM, the grace, KILL.
//   - A process outlives its agent: the end of the agent's socket is a KILL
//     for every descendant, then the keeper exits.
//   - An end waits for an inherited pipe: once the processes are dead, what
//     the pipe holds is drained without blocking, and the pipe is closed.
//   - A signal from a terminal or a service manager ends the keeper before its
//     agent: it has its own session, and takes HUP, INT, QUIT, TERM and their
//     like without effect.
//
// # Whose process is it
//
// While the keeper lives, every process that an attempt ever made is its
// descendant: a process that loses its parent is handed to the nearest
// subreaper. Walking /proc by parent therefore finds all of them; what remains
// is to say which attempt an orphan belongs to. Four signs are read, in this
// order: the mark (a number in the soft limit RLIMIT_LOCKS, a limit that Linux
// has not enforced since 2.4 and that survives fork, exec, setsid and an
// emptied environment), WRIT_TOKEN in its environment, and its session and its
// process group. An orphan that hid all of them dies with the first attempt
// that ends and may own it: too early rather than too late.
//
// No attempt is taken for empty on a doubtful reading. Only the keeper reaps
// its children, so a process that dies during a walk of /proc stays visible as
// a zombie; a walk that meets one that may be the attempt's is repeated.
//
// # Where output goes, and why here
//
// The keeper reads the pipes, not the agent: an agent that is stopped would
// block its tasks in write(2), and one that dies would end them by SIGPIPE
// before the keeper can end them in order. Standard output and error share one
// pipe, so they stand in the log in the order in which they were written. See
// [tape] for the bounds and the files.
//
// # If the keeper itself is killed
//
// Each attempt's main process has asked for KILL at its parent's death
// (PR_SET_PDEATHSIG; a set-user-id program loses this), so it dies at once.
// Its own children do not: they go to the next subreaper or to init. The agent
// sees the socket end, finds them by mark, environment, session and group
// ([Sweep]), ends them, and reports the attempts as lost.
//
// # Goroutines
//
// [Main] takes the calling goroutine and its thread for forking: the parent
// death signal follows the thread that forked, which therefore must not end. A
// fork can hang (a working directory on a dead network file system), so it
// happens apart from the loop that owns all state and holds the deadlines. One
// goroutine reads the agent, one writes to it, one waits for the alarm, and
// one per attempt reads its output. Garbage from the agent is answered with
// one refusal and treated as the agent's end.
package keeper
