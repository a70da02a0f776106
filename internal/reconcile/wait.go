package reconcile

import (
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Reason says in one word what a task or a run waits for.
type Reason string

// The reasons.
const (
	ReasonUpstream    Reason = "upstream"    // the trigger rule is not decided yet
	ReasonDue         Reason = "due"         // a retry's time has not come
	ReasonPaused      Reason = "paused"      // an operator holds the run
	ReasonQueued      Reason = "queued"      // the run waits for its turn: max_active_runs
	ReasonReopening   Reason = "reopening"   // the run's rows are being restored
	ReasonEnding      Reason = "ending"      // the run's document is being written
	ReasonSpec        Reason = "spec"        // the revision is not loaded yet
	ReasonInFlight    Reason = "in_flight"   // a commit about the task is under way
	ReasonUnconfirmed Reason = "unconfirmed" // dispatched, and not confirmed yet
	ReasonRunning     Reason = "running"     // a worker runs it
	ReasonOverdue     Reason = "overdue"     // it runs longer than its timeout, its worker lives
	ReasonSilent      Reason = "silent"      // the worker is gone, its fence has yet to strike
	ReasonProof       Reason = "proof"       // the worker is gone, nothing proves its process dead
	ReasonUnproven    Reason = "unproven"    // an earlier attempt's death is not proven
	ReasonSettling    Reason = "settling"    // a successor delivers what the old session left
	ReasonHeld        Reason = "held"        // many sessions went at once, losses are held
	ReasonClock       Reason = "clock"       // the leader's clock is ahead, due times are held
	ReasonCancelling  Reason = "cancelling"  // the run is cancelled, a worker has yet to stop
	ReasonCleared     Reason = "cleared"     // an attempt under a clear has yet to stop
	ReasonSignal      Reason = "signal"      // waits for a signal or a child run
	ReasonReady       Reason = "ready"       // ready: waits for a worker and a slot
	ReasonClosed      Reason = "closed"      // terminal: waits for nothing
)

// Wait says why a task is not going on, since when, and which record says so.
type Wait struct {
	Task   record.TaskRef
	Reason Reason
	Since  time.Time
	// Until is when time alone ends the wait; zero where it does not.
	Until time.Time
	// Key is the record that says so, as it stood at revision Rev.
	Key record.Key
	Rev int64
}

// standing says that the wait is worth reporting: something other than the
// run's own progress ends it.
func (w Wait) standing() bool {
	switch w.Reason {
	case ReasonUpstream, ReasonRunning, ReasonReady, ReasonClosed, ReasonInFlight:
		return false
	default:
		return true
	}
}

// Alarm says that something is to be looked at again at a time.
type Alarm struct {
	At      time.Time
	Task    record.TaskRef  // where Task.Task is set
	Run     record.RunID    // where set
	Session view.SessionRef // where set
}
