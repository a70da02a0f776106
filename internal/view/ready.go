package view

import (
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// Ready is a task that may be dispatched now, and what its worker must offer.
// Reconcile finds it, placement finds the worker, and the dispatch is decided
// again against the view of that moment.
type Ready struct {
	// Ref names the attempt that the dispatch makes, or gives a token to.
	Ref      record.Ref
	Workflow record.WorkflowName
	Queue    record.Queue
	Pool     record.Pool // empty: no pool
	Keys     []string    // concurrency keys
	// Handler is the Go function that the session must offer; where it is
	// empty the session must run processes.
	Handler  string
	Priority int // higher goes first
	// Since is when the task became ready: its age among others.
	Since time.Time
}

// Process says that the attempt is a process: a script or a command.
func (r Ready) Process() bool { return r.Handler == "" }

// Fits says that a session serves the queue and offers what the attempt needs.
// Free slots and draining are another matter.
func (r Ready) Fits(w record.Worker) bool { return r.Served(w) && r.Offered(w) }

// Served says that a session serves the queue.
func (r Ready) Served(w record.Worker) bool {
	for _, q := range w.Queues {
		if q == r.Queue {
			return true
		}
	}
	return false
}

// Offered says that a session has the handler, or runs processes.
func (r Ready) Offered(w record.Worker) bool {
	if r.Process() {
		return w.Processes
	}
	for _, h := range w.Handlers {
		if h == r.Handler {
			return true
		}
	}
	return false
}
