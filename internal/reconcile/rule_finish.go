package reconcile

import (
	"fmt"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// close asks about the run itself, after its tasks.
//
// When: every task is closed (terminal, no attempt owed) and no row is live;
// of a cancelled run, every task has a terminal row and no row is live.
// Nothing about the run is in flight.
// Then: running → failed where a task without allow_failure ended failed or
// upstream_failed, or the deadline closed some; else success; cancelling →
// cancelled. Phase ending: the pages of the document follow.
// Guard: run as seen; no row of the run put since the view's revision.
// Keeps: I8, I10; I11, since the end is the last word.
func (p *pass) close(r *view.Run) {
	switch {
	case r.Record.Phase == record.PhaseEnding:
		if r.Loaded() {
			p.res.Ending = append(p.res.Ending, r.ID())
		}
		return
	case r.Record.Phase == record.PhaseReopening:
		p.res.Reopening = append(p.res.Reopening, r.ID())
		return
	case r.Record.State.Terminal():
		p.res.Faults = append(p.res.Faults, fmt.Errorf("decide run %s: it is %s in no phase, expected %s",
			r.ID(), r.Record.State, record.PhaseEnding))
		return
	}
	if at := r.Deadline(); at.After(p.turn.Now) {
		p.alarm(Alarm{At: at, Run: r.ID()})
	}
	if !r.Loaded() || p.turn.Busy.Within(r.ID()) || r.Live() > 0 {
		return
	}
	switch r.Record.State {
	case record.RunRunning:
		if r.Open() == 0 {
			p.finish(r)
		}
	case record.RunCancelling:
		if r.Count(record.None)+r.Count(record.Queued)+r.Count(record.Running) == 0 {
			p.end(r, record.RunCancelled, record.Because(record.CauseCancelled, ""))
		}
	case record.RunNone, record.RunQueued, record.RunSuccess, record.RunFailed, record.RunCancelled:
	}
}

func (p *pass) finish(r *view.Run) {
	failed, upstream, cancelled := r.Count(record.Failed), r.Count(record.UpstreamFailed), r.Count(record.Cancelled)
	switch {
	case r.Overdue(p.turn.Now) && (cancelled > 0 || r.Spoiled()):
		p.end(r, record.RunFailed, record.Because(record.CauseRunTimeout, fmt.Sprintf("%d tasks were not finished in time", cancelled+failed)))
	case r.Spoiled():
		p.end(r, record.RunFailed, record.Because(record.CauseTasksFailed, fmt.Sprintf("%d failed, %d upstream_failed", failed, upstream)))
	default:
		p.end(r, record.RunSuccess, record.Because(record.CauseTasksSucceeded, ""))
	}
}

// end makes the terminal state, the commit point of the ending.
func (p *pass) end(r *view.Run, to record.RunState, cause record.Cause) {
	c := p.plan(record.RuleFinishRun).run(r).expect(record.Unchanged(record.AttemptsOf(r.ID()), p.v.Rev()))
	next, err := r.Record.Move(c.runMove(to, record.PhaseEnding, cause))
	next.Pages = len(cut(r))
	p.settle(r, c.store(record.RunKey(r.ID()), next), err)
}
