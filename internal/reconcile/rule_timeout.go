package reconcile

import (
	"fmt"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// timeout ends what has waited too long for a start.
//
// When: the run is past its deadline; or a task that is ready has waited
// longer than its queue_timeout.
// Then: waiting and intent → failed (run_timeout, queue_timeout). Past the
// run's deadline what has no row, or is owed an attempt, is closed by a
// cancelled row. For its queue_timeout a task without a row gets a waiting row
// first, which the next pass fails: no row is made failed. A running row is
// its worker's to stop; the leader writes no timeout over a living session.
// Guard: row absent and previous row as seen, or row as seen; run as seen.
// Keeps: I8, I2.
func (p *pass) timeout(r *view.Run, t *view.Task) *Verdict {
	if r.Overdue(p.turn.Now) {
		return p.overrun(r, t)
	}
	limit := t.Spec.QueueTimeout.Std()
	if limit == 0 || !r.Record.Startable() {
		return nil
	}
	row, ok := t.Latest()
	if ok && row.Intent() {
		since, _ := row.EnteredState(record.Queued)
		if row.NotBefore.After(since) {
			since = row.NotBefore
		}
		if p.turn.Now.Before(since.Add(limit)) {
			return nil
		}
		return p.expire(r, row, record.CauseQueueTimeout, fmt.Sprintf("not started within %v", limit))
	}
	ready, _, ok := p.ready(r, t)
	if !ok || p.turn.Now.Before(ready.Since.Add(limit)) {
		return nil
	}
	if latest, has := t.Latest(); has && latest.Waiting() {
		return p.expire(r, latest, record.CauseQueueTimeout, fmt.Sprintf("not started within %v", limit))
	}
	c := p.plan(record.RuleTimeout)
	next := c.fresh(r, t)
	next.NotBefore = ready.Since
	return c.move(next, record.Queued, record.Because(record.CauseQueueTimeout, "")).verdict(p.aboutRun(r, t, ReasonReady))
}

// expire fails a queued row.
func (p *pass) expire(r *view.Run, row view.Row, code record.CauseCode, text string) *Verdict {
	c := p.plan(record.RuleTimeout).row(row).run(r)
	return c.move(row.Attempt, record.Failed, record.Because(code, text)).verdict(aboutRow(row, ReasonReady))
}

// overrun closes a task of a run that is past its deadline.
func (p *pass) overrun(r *view.Run, t *view.Task) *Verdict {
	const text = "the run is past its deadline"
	row, ok := t.Latest()
	switch {
	case ok && row.State == record.Queued:
		return p.expire(r, row, record.CauseRunTimeout, text)
	case ok && row.State == record.Running:
		return nil
	case ok && t.Debt() == view.DebtNone:
		return waiting(aboutRow(row, ReasonClosed))
	default:
		c := p.plan(record.RuleTimeout)
		next := c.fresh(r, t)
		return c.move(next, record.Cancelled, record.Because(record.CauseRunTimeout, text)).verdict(p.aboutRun(r, t, ReasonReady))
	}
}
