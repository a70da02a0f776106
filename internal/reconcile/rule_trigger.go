package reconcile

import (
	"fmt"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// trigger decides a task that will not run.
//
// When: the run may start attempts, the task has no row that counts and none
// that is not terminal, and its trigger rule is decided against running.
// Then: ∅ → skipped or upstream_failed, written as a row, so that history
// stays as it was decided.
// Guard: row absent, previous row as seen, run as seen. Rows upstream are
// terminal and move no more; a clear of them rewrites the run.
// Keeps: I6, I8.
func (p *pass) trigger(r *view.Run, t *view.Task) *Verdict {
	if t.State() != record.None || !r.Record.Startable() {
		return nil
	}
	state, decided := verdictOf(t)
	if !decided || state == record.None {
		return nil
	}
	up := t.Upstream()
	text := fmt.Sprintf("%s: %d succeeded, %d failed, %d skipped, %d open", t.Spec.Rule(), up.Success, up.Bad, up.Skipped, up.Open)
	c := p.plan(record.RuleTrigger)
	return c.move(c.fresh(r, t), state, record.Because(record.CauseTriggerRule, text)).verdict(p.aboutRun(r, t, ReasonUpstream))
}
