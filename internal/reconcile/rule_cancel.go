package reconcile

import (
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// cancel ends what may not go on.
//
// When: the run is cancelling, or a row that is not terminal lies under a
// clear.
// Then: ∅ → cancelled (cancelling only) and waiting → cancelled at once. A row
// that a worker holds waits for the worker's word; it is cancelled here where
// its session is gone, with the mark of an unproven death where it was claimed,
// is not idempotent and nothing proves its process dead. A dispatch into a void
// is replaced by a cancelled row (cancelling) or failed (under a clear, where
// its state does not count).
// Guard: row absent and previous row as seen, or row as seen; run as seen; of a
// lost one, the session's key absent and its record as seen.
// Keeps: I11, I7, I2.
func (p *pass) cancel(r *view.Run, t *view.Task) *Verdict {
	cancelling := r.Record.State == record.RunCancelling
	last, has := t.Last()
	covered := has && !t.Counts(last)
	done := !has || last.State.Terminal()
	switch {
	case done && !cancelling, !covered && !cancelling:
		return nil
	case done && t.State() != record.None:
		return waiting(p.aboutLatest(r, t, ReasonClosed))
	case done:
		c := p.plan(record.RuleCancel)
		return c.move(c.fresh(r, t), record.Cancelled, record.Because(record.CauseCancelled, "")).verdict(p.aboutRun(r, t, ReasonCancelling))
	case !last.Live():
		c := p.plan(record.RuleCancel).row(last).run(r)
		return c.move(last.Attempt, record.Cancelled, record.Because(record.CauseCancelled, "")).verdict(aboutRow(last, ReasonCancelling))
	case covered && !cancelling:
		return p.stop(r, t, last, ReasonCleared)
	default:
		return p.stop(r, t, last, ReasonCancelling)
	}
}

// stop ends a live row that is not wanted any more, where that can be done
// without its worker.
func (p *pass) stop(r *view.Run, t *view.Task, row view.Row, why Reason) *Verdict {
	a := p.seek(row.Holder())
	if a.alive {
		cause, until, void := p.void(row, a)
		if !void {
			w := aboutRow(row, why)
			w.Until = until
			return waiting(w)
		}
		return p.discard(r, t, row, cause, why)
	}
	if w, ok := p.delay(row, a); ok {
		return waiting(w)
	}
	if !a.gone() {
		return waiting(aboutRow(row, ReasonSilent))
	}
	c := p.plan(record.RuleCancel).row(row).absent(a)
	next := row.Attempt
	if proven, _ := p.dead(a, row.Fenced(), row.TTL.Std()); !proven && row.Claimed() && !row.Idempotent {
		next.Unproven = true
		c.unproven(row)
	}
	return c.move(next, record.Cancelled, record.Because(record.CauseCancelled, "its worker is gone")).verdict(aboutRow(row, why))
}

// discard ends a dispatch that nobody took up.
func (p *pass) discard(r *view.Run, t *view.Task, row view.Row, cause record.Cause, why Reason) *Verdict {
	if why == ReasonCleared {
		return p.plan(record.RuleCancel).row(row).run(r).move(row.Attempt, record.Failed, cause).verdict(aboutRow(row, why))
	}
	c := p.plan(record.RuleCancel)
	next := c.fresh(r, t)
	return c.move(row.Attempt, record.Abandoned, cause).
		move(next, record.Cancelled, record.Because(record.CauseCancelled, "")).verdict(aboutRow(row, why))
}
