package reconcile

import (
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// repair mends what no rule should have left.
//
// When: the latest row of a task is abandoned, though its next row is written
// in the same change.
// Then: ∅ → queued n+1, by the name of this rule, so that it is counted as a
// fault of the state machine.
// Guard: row absent, previous row as seen, run as seen.
// Keeps: I8.
func (p *pass) repair(r *view.Run, t *view.Task) *Verdict {
	row, ok := t.Latest()
	if !ok || row.State != record.Abandoned || r.Record.State == record.RunCancelling {
		return nil
	}
	c := p.plan(record.RuleRepair)
	next := c.fresh(r, t)
	return c.move(next, record.Queued, record.Because(record.CauseRetry, "")).verdict(aboutRow(row, ReasonReady))
}
