package reconcile

import (
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Verdict is what the rules say about one task: a change that is due, or what
// it waits for. A ready task waits for a worker.
type Verdict struct {
	Change *record.Change
	// Ready counts where Wait.Reason is ReasonReady.
	Ready view.Ready
	Wait  Wait
	Err   error
}

// rule is asked about one task; nil means that it has nothing to say.
type rule func(p *pass, r *view.Run, t *view.Task) *Verdict

// taskRules are the rules about tasks, in the order in which they are asked.
func taskRules() [8]rule {
	return [8]rule{
		(*pass).repair,
		(*pass).cancel,
		(*pass).timeout,
		(*pass).abandon,
		(*pass).lost,
		(*pass).retry,
		(*pass).trigger,
		(*pass).start,
	}
}

// Judge asks the rules about one task and commits to nothing: it is how
// package explain knows what a pass would do.
func Judge(v *view.Active, r *view.Run, t *view.Task, turn Turn) Verdict {
	p := &pass{v: v, turn: turn}
	return p.decide(r, t)
}

// decide asks the rules about one task, after what stands before all of them.
func (p *pass) decide(r *view.Run, t *view.Task) Verdict {
	if p.turn.Busy.Task(t.Ref) || p.turn.Busy.Run(r.ID()) {
		return Verdict{Wait: p.aboutRun(r, t, ReasonInFlight)}
	}
	switch {
	case r.Record.Phase == record.PhaseEnding || r.Record.State.Terminal():
		return Verdict{Wait: p.aboutRun(r, t, ReasonEnding)}
	case r.Record.Phase == record.PhaseReopening:
		return Verdict{Wait: p.aboutRun(r, t, ReasonReopening)}
	case r.Record.State == record.RunQueued:
		return Verdict{Wait: p.aboutRun(r, t, ReasonQueued)}
	}
	for _, ask := range taskRules() {
		if v := ask(p, r, t); v != nil {
			return *v
		}
	}
	return Verdict{Wait: p.aboutLatest(r, t, ReasonClosed)}
}

// aboutRun is a wait that the run record gives rise to.
func (p *pass) aboutRun(r *view.Run, t *view.Task, why Reason) Wait {
	w := Wait{Task: t.Ref, Reason: why, Since: r.Record.EnteredAt, Key: record.RunKey(r.ID()), Rev: r.ModRev}
	if why == ReasonPaused && r.Record.Paused != nil {
		w.Since = r.Record.Paused.At
	}
	return w
}

// aboutRow is a wait that a row gives rise to.
func aboutRow(row view.Row, why Reason) Wait {
	return Wait{Task: row.TaskRef(), Reason: why, Since: row.EnteredAt, Key: record.AttemptKey(row.Ref()), Rev: row.ModRev}
}

// aboutSession is a wait that a session's record gives rise to.
func aboutSession(row view.Row, s view.Kept[record.Session], why Reason) Wait {
	return Wait{
		Task: row.TaskRef(), Reason: why, Since: s.Record.GoneAt,
		Key: record.SessionKey(row.Worker, row.Session), Rev: s.ModRev,
	}
}

// aboutLatest is a wait that the latest row of the task gives rise to or,
// where it has none, the run.
func (p *pass) aboutLatest(r *view.Run, t *view.Task, why Reason) Wait {
	if row, ok := t.Latest(); ok {
		return aboutRow(row, why)
	}
	return p.aboutRun(r, t, why)
}

func waiting(w Wait) *Verdict { return &Verdict{Wait: w} }
