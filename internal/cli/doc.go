// Package cli is the command line of writ: it reads arguments, calls a replica
// as any client does (or is one, for server and dev), and prints the answer.
//
// It owns what people see: words, tables, the live view of a run, exit codes.
// It owns no state of the cluster and decides nothing about it. The one part
// with a life of its own is the bridge between package pkg/worker, which
// speaks with replicas, and package executor, which runs processes: it turns
// an attempt into an environment and files, and the end of a process into an
// outcome.
//
// # Answers
//
// Standard output is the answer and nothing else: a table, or with --json the
// protocol's message as JSON with the field names of proto/writ/v1, one
// document, or one line per message where a stream is followed. Everything
// else, errors and logs included, goes to standard error.
//
// # Exit codes
//
//	0  done; for wait and --follow: the run succeeded
//	1  the answer is bad: the run failed, the audit found violations
//	2  the request is wrong: usage, a workflow file, a name that is not there
//	3  the run was cancelled
//	4  the server could not be reached, or did not answer in time
//	5  anything else went wrong
//
// # What can never happen
//
//   - A command reads os.Args, os.Stdin, the environment or a clock of its own:
//     all of it comes in an [Env], so that tests need no process.
//   - A command ends the process, or prints an error twice.
//   - A run's outcome is guessed: where the connection breaks while a run is
//     followed, it is followed again until the time is up, and then the exit
//     code is 4, not 1.
//   - The text of a log or of an error from elsewhere moves the cursor of the
//     live table: control characters are not passed on there.
//
// # Who calls it
//
// [Run] is called once, by main, with a context that ends at the first SIGINT
// or SIGTERM: servers and workers then drain; everything else stops.
//
// # On failure
//
// Every command returns an error, and Run prints it once, as cause and hint,
// and turns it into an exit code.
package cli
