package reconcile

import (
	"fmt"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// lost ends a running row whose worker is gone.
//
// When: the session's key is absent and its record says since when, no living
// successor is still delivering what it left, losses are not held, and: the
// row is idempotent; or on_lost is fail; or its process is proven dead, by the
// successor's attestation or, on_lost retry, by the fence wait (the session's
// TTL and a margin, the record unchanged meanwhile).
// Then: running → failed (worker_lost, or loss_limit), without proof with the
// mark that keeps the task from running. on_lost wait without proof stays as it
// is, flagged as a wait; so does retry until the fence has struck.
// Guard: row as seen; the session's key absent, its record as seen.
// Keeps: I7, I8 (the wait is said), I4 (an earlier finish moves the row).
func (p *pass) lost(r *view.Run, t *view.Task) *Verdict {
	row, ok := t.Latest()
	if !ok || row.State != record.Running {
		return nil
	}
	if row.Kind != record.KindExec {
		return waiting(aboutRow(row, ReasonSignal))
	}
	a := p.seek(row.Holder())
	if a.alive {
		return waiting(p.running(t, row))
	}
	if w, ok := p.delay(row, a); ok {
		return waiting(w)
	}
	if !a.gone() {
		return waiting(aboutRow(row, ReasonSilent))
	}
	proven, until := p.dead(a, row.Fenced(), row.TTL.Std())
	c := p.plan(record.RuleLost).row(row).absent(a)
	next := row.Attempt
	switch {
	case row.Idempotent || proven:
	case row.OnLost == record.OnLostFail:
		next.Unproven = true
		c.unproven(row)
	case row.OnLost == record.OnLostRetry:
		w := aboutSession(row, a.kept, ReasonSilent)
		w.Until = until
		return waiting(w)
	default:
		return waiting(aboutSession(row, a.kept, ReasonProof))
	}
	cause := record.Because(record.CauseWorkerLost, fmt.Sprintf("worker %s is gone", row.Worker))
	if row.Losses >= t.Spec.Losses() {
		cause = lossLimit(row)
	}
	return c.move(next, record.Failed, cause).verdict(aboutSession(row, a.kept, ReasonSilent))
}

// running is the wait for a row whose worker lives. A timeout is the worker's
// to enforce; the loop flags what is late and writes nothing over a living
// session.
func (p *pass) running(t *view.Task, row view.Row) Wait {
	w := aboutRow(row, ReasonRunning)
	if t.Spec.Timeout == 0 {
		return w
	}
	due := row.EnteredAt.Add(t.Spec.Timeout.Std())
	if p.turn.Now.Before(due) {
		w.Until = due
		return w
	}
	w.Reason, w.Since = ReasonOverdue, due
	return w
}
