package record

// AttemptState is the state of one attempt row. None is the state of a row
// that does not exist yet.
type AttemptState string

// The states of an attempt.
const (
	None           AttemptState = ""
	Queued         AttemptState = "queued"
	Running        AttemptState = "running"
	Success        AttemptState = "success"
	Failed         AttemptState = "failed"
	Skipped        AttemptState = "skipped"
	UpstreamFailed AttemptState = "upstream_failed"
	Abandoned      AttemptState = "abandoned"
	Cancelled      AttemptState = "cancelled"
)

// AttemptStates lists every state that a row can be in, in the order in which
// documentation shows them.
func AttemptStates() []AttemptState {
	return []AttemptState{Queued, Running, Success, Failed, Skipped, UpstreamFailed, Abandoned, Cancelled}
}

// Terminal says that a row in s never changes again.
func (s AttemptState) Terminal() bool { return s != None && s != Queued && s != Running }

// Bad says that s counts as a failure for the trigger rules of the tasks
// downstream (a failed task with allow_failure is excepted by its spec).
func (s AttemptState) Bad() bool { return s == Failed || s == UpstreamFailed || s == Cancelled }

// RunState is the state of a run. RunNone is a run that does not exist yet.
type RunState string

// The states of a run.
const (
	RunNone       RunState = ""
	RunQueued     RunState = "queued"
	RunRunning    RunState = "running"
	RunCancelling RunState = "cancelling"
	RunSuccess    RunState = "success"
	RunFailed     RunState = "failed"
	RunCancelled  RunState = "cancelled"
)

// RunStates lists every state that a run record can be in.
func RunStates() []RunState {
	return []RunState{RunQueued, RunRunning, RunCancelling, RunSuccess, RunFailed, RunCancelled}
}

// Terminal says that the run has ended; an operator may reopen it.
func (s RunState) Terminal() bool { return s == RunSuccess || s == RunFailed || s == RunCancelled }

// Phase is set while a large step over many keys is under way. Each phase has
// a rule that carries it on, whoever began it.
type Phase string

// The phases of a run record.
const (
	PhaseNone Phase = ""
	// PhaseEnding: the terminal state is committed, pages of the ended
	// document are being written.
	PhaseEnding Phase = "ending"
	// PhaseReopening: an ended run is being restored from its document.
	PhaseReopening Phase = "reopening"
)

// Kind says what an attempt does while it is running.
type Kind string

// The kinds of attempts.
const (
	// KindExec runs on a worker: a script, a command or a handler.
	KindExec Kind = "exec"
	// KindWait waits for a signal and occupies no worker.
	KindWait Kind = "wait"
	// KindChild waits for the end of a child run and occupies no worker.
	KindChild Kind = "child"
)

// OnLost says what happens to a non-idempotent attempt whose worker is lost.
type OnLost string

// The answers to a lost worker.
const (
	// OnLostWait never runs the task again by itself (the default).
	OnLostWait OnLost = "wait"
	// OnLostRetry makes a new attempt once the old process is proven dead.
	OnLostRetry OnLost = "retry"
	// OnLostFail ends the attempt as failed as soon as the session's key is
	// gone, its death unproven.
	OnLostFail OnLost = "fail"
)

// CauseCode says in one word why a row or a run entered its state.
type CauseCode string

// The causes. The text beside a code is for people and is never parsed.
const (
	CauseNone           CauseCode = ""
	CauseExitCode       CauseCode = "exit_code"       // the process ended with a non-zero code
	CauseSignal         CauseCode = "signal"          // the process was ended by a signal not ours
	CauseStartError     CauseCode = "start_error"     // the process could not be started
	CauseHandlerError   CauseCode = "handler_error"   // a Go handler returned an error
	CauseHandlerPanic   CauseCode = "handler_panic"   // a Go handler panicked
	CauseNoHandler      CauseCode = "no_handler"      // the worker knows no such handler
	CauseResultInvalid  CauseCode = "result_invalid"  // the result is too large or not JSON
	CauseTimeout        CauseCode = "timeout"         // the attempt ran longer than allowed
	CauseQueueTimeout   CauseCode = "queue_timeout"   // the attempt was not started in time
	CauseRunTimeout     CauseCode = "run_timeout"     // the run took longer than allowed
	CauseWorkerLost     CauseCode = "worker_lost"     // the worker's session is gone
	CauseWorkerStopped  CauseCode = "worker_stopped"  // the worker was told to stop
	CauseFenced         CauseCode = "fenced"          // the worker's own deadline struck
	CauseLossLimit      CauseCode = "loss_limit"      // lost more often than lost_limit allows
	CauseUnconfirmed    CauseCode = "unconfirmed"     // nobody confirmed the dispatch in time
	CauseRefused        CauseCode = "refused"         // the probed worker did not know the token
	CauseSessionGone    CauseCode = "session_gone"    // the session ended before the dispatch was confirmed
	CauseTriggerRule    CauseCode = "trigger_rule"    // decided by the trigger rule
	CauseSkippedByTask  CauseCode = "skipped_by_task" // the task said so itself
	CauseCancelled      CauseCode = "cancelled"       // a person cancelled the run
	CauseResolved       CauseCode = "resolved"        // a person decided the outcome
	CauseRetry          CauseCode = "retry"           // a further attempt after a failure
	CauseTasksFailed    CauseCode = "tasks_failed"    // the run has failed tasks
	CauseTasksSucceeded CauseCode = "tasks_succeeded" // the run has no failed task
)

// MaxCauseText is the longest text of a cause, in bytes. Rows are guarded
// records and stay small, since a compare loads the whole value.
const MaxCauseText = 240

// Cause is a code and a sentence for people.
type Cause struct {
	Code CauseCode `json:"code,omitempty"`
	Text string    `json:"text,omitempty"`
}

// Because makes a cause; a text that is too long is cut.
func Because(code CauseCode, text string) Cause {
	return Cause{Code: code, Text: clip(text, MaxCauseText-len("…"))}
}

// Loss says that the cause is the loss of a worker, which is counted apart
// from the failures of the task itself.
func (c CauseCode) Loss() bool {
	switch c {
	case CauseWorkerLost, CauseFenced, CauseSessionGone, CauseLossLimit:
		return true
	default:
		return false
	}
}

// UserFailure says that a failure with this cause is the task's own and spends
// one of its retries.
func (c CauseCode) UserFailure() bool {
	switch c {
	case CauseExitCode, CauseSignal, CauseStartError, CauseHandlerError, CauseHandlerPanic,
		CauseNoHandler, CauseResultInvalid, CauseTimeout:
		return true
	default:
		return false
	}
}
