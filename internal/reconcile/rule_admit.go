package reconcile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// admit lets queued runs of a workflow begin.
//
// When: a run is queued and not held, and fewer runs of its workflow are
// active than its max_active_runs; the oldest first.
// Then: queued → running, with its deadline.
// Guard: the run as seen, and the election key, on which the limit rests.
// Keeps: I12 (max_active_runs), I8.
func (p *pass) admit(w record.WorkflowName) {
	active := 0
	var queued []*view.Run
	for _, r := range p.v.RunsOf(w) {
		switch {
		case r.Record.State == record.RunQueued && !p.turn.Busy.Run(r.ID()):
			queued = append(queued, r)
		case !r.Record.State.Terminal():
			active++ // a queued one with a change in flight may be running by now
		}
	}
	slices.SortStableFunc(queued, func(a, b *view.Run) int { return a.Record.CreatedAt.Compare(b.Record.CreatedAt) })
	for i, r := range queued {
		switch {
		case !r.Loaded():
			// Its limit is not known, and those behind it wait for it.
			p.pend(queued[i:], ReasonSpec)
			return
		case r.Record.Paused != nil:
			p.pend(queued[i:i+1], ReasonPaused)
			continue
		}
		if limit := r.Graph.Workflow().MaxActiveRuns; limit > 0 && active >= limit {
			p.pend(queued[i:], ReasonQueued)
			return
		}
		active++
		p.begin(r)
	}
}

// pend says of queued runs what they wait for.
func (p *pass) pend(runs []*view.Run, why Reason) {
	for _, r := range runs {
		p.res.Waits = append(p.res.Waits, Wait{
			Task: record.TaskRef{Run: r.ID()}, Reason: why, Since: r.Record.EnteredAt, Key: record.RunKey(r.ID()), Rev: r.ModRev,
		})
	}
}

func (p *pass) begin(r *view.Run) {
	c := p.plan(record.RuleAdmit).run(r)
	next, err := r.Record.Move(c.runMove(record.RunRunning, record.PhaseNone, record.Cause{}))
	if err == nil && next.Deadline.IsZero() && r.Timeout() > 0 {
		next.Deadline = p.turn.Now.Add(r.Timeout())
	}
	p.settle(r, c.store(record.RunKey(r.ID()), next), err)
}

// runMove is a step of a run by the leader.
func (c *plan) runMove(to record.RunState, phase record.Phase, cause record.Cause) record.RunMove {
	return record.RunMove{
		To: to, Phase: phase, By: record.Leader, Who: c.turn.Stamp.Who, At: c.turn.Now, Rule: c.rule,
		Term: c.turn.Stamp.Rev, Write: c.write, Cause: cause,
	}
}

// settle books a change of a run record.
func (p *pass) settle(r *view.Run, c *plan, err error) {
	c.err = cmp.Or(c.err, err)
	change, err := c.change()
	if err != nil {
		p.res.Faults = append(p.res.Faults, fmt.Errorf("decide run %s at revision %d: %w", r.ID(), p.v.Rev(), err))
		return
	}
	p.res.Changes = append(p.res.Changes, change)
}
