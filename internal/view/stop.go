package view

import (
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// Unwanted says that the worker that holds a live row is to stop it, and why:
// its run is cancelled, a clear covers it, or the run is past its deadline.
func (r *Run) Unwanted(row Row, now time.Time) (record.CauseCode, bool) {
	switch {
	case !row.Live():
		return record.CauseNone, false
	case r.Record.State == record.RunCancelling:
		return record.CauseCancelled, true
	case row.FirstRev() < r.cover[row.Task]:
		return record.CauseCancelled, true
	case r.Overdue(now):
		return record.CauseRunTimeout, true
	default:
		return record.CauseNone, false
	}
}

// Deadline is when the run times out: what its record says, or its start and
// the timeout of its spec; zero means never.
func (r *Run) Deadline() time.Time {
	switch {
	case !r.Record.Deadline.IsZero():
		return r.Record.Deadline
	case r.Graph == nil || r.Timeout() == 0 || r.Record.StartedAt.IsZero():
		return time.Time{}
	default:
		return r.Record.StartedAt.Add(r.Timeout())
	}
}

// Timeout is the bound that the run's spec puts on it; zero means none, or
// that the spec is not loaded.
func (r *Run) Timeout() time.Duration {
	if r.Graph == nil {
		return 0
	}
	return r.Graph.Workflow().Timeout.Std()
}

// Overdue says that the run is past its deadline.
func (r *Run) Overdue(now time.Time) bool {
	d := r.Deadline()
	return !d.IsZero() && !now.Before(d)
}
