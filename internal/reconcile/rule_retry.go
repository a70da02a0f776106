package reconcile

import (
	"math"
	"strconv"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// retry makes a failed task wait for its next attempt.
//
// When: the latest row ended by a failure of the task's own, retries are left,
// its exit code does not forbid it, and the delay, counted from the failure,
// is not over.
// Then: ∅ → queued n+1 with the due time in the row, so that no leader forgets
// it. A delay that is over makes the task ready at once (see start), as a loss
// and a stopped worker do.
// Guard: row absent, previous row as seen, run as seen.
// Keeps: I2, I5 (the previous row failed), I8.
func (p *pass) retry(r *view.Run, t *view.Task) *Verdict {
	row, ok := t.Latest()
	if !ok || t.Debt() != view.DebtRetry {
		return nil
	}
	due := dueAgain(t.Spec, row)
	if !due.After(p.turn.Now) {
		return nil
	}
	c := p.plan(record.RuleRetry)
	next := c.fresh(r, t)
	next.NotBefore = due
	return c.move(next, record.Queued, record.Because(record.CauseRetry, "")).verdict(aboutRow(row, ReasonDue))
}

// dueAgain is when the attempt after a failed row may start: the failure, the
// delay of this retry, and a jitter that depends on the row's name alone, so
// that every replica comes to the same time.
func dueAgain(t *spec.Task, row view.Row) time.Time {
	return row.EnteredAt.Add(Delay(t.Retries, row.Failures, share(row.Ref().String(), strconv.Itoa(row.Failures))))
}

// Delay is the wait before the retry that follows failures earlier ones:
// exponential, capped, and then lengthened by the jitter's share of it. draw
// is in [0, 1).
func Delay(r spec.Retry, failures int, draw float64) time.Duration {
	if r.Delay <= 0 {
		return 0
	}
	// A year is as good as for ever, and far from what overflows a time; the
	// power may be +Inf.
	limit := float64(365 * 24 * time.Hour)
	if r.MaxDelay > 0 {
		limit = min(limit, float64(r.MaxDelay))
	}
	d := min(float64(r.Delay)*math.Pow(max(r.Backoff, 1), float64(failures)), limit)
	return time.Duration(d + d*r.Jitter*draw)
}
