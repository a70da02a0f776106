package explain

import (
	"time"

	"github.com/writ-sched/writ/internal/placement"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Question is what is asked, and what the view does not show.
type Question struct {
	Run record.RunID
	// Task limits the answers to one task; empty asks about the whole run.
	Task record.TaskID
	Now  time.Time
	// Policy is that of the cluster.
	Policy reconcile.Policy
	// HoldLosses and HoldDue are the leader's (see reconcile.Turn).
	HoldLosses bool
	HoldDue    bool
	// Flying are the leader's intents in flight, where they are known.
	Flying []placement.Assignment
}

// Answer says what one task, or the run itself, waits for.
type Answer struct {
	// Task has no Task field where the answer is about the run.
	Task    record.TaskRef
	State   record.AttemptState // record.None: nothing was attempted yet
	Attempt int                 // of the latest row that counts; zero without one
	// Reason is a reconcile.Reason or, of a ready task, a placement.Reason.
	Reason string
	Text   string
	Since  time.Time
	// Until is when time alone ends it; zero where it does not.
	Until time.Time
	// Key is the record that says so, as it stood at revision Rev.
	Key record.Key
	Rev int64
}

// Explain answers for the run, where something stands against all of it, and
// then for each task that is not closed, in the order of the spec.
func Explain(v *view.Active, q Question) []Answer {
	r, ok := v.Run(q.Run)
	if !ok {
		return nil
	}
	x := &inquiry{v: v, q: q, r: r, turn: reconcile.Turn{
		Now: q.Now, Policy: q.Policy, HoldLosses: q.HoldLosses, HoldDue: q.HoldDue,
		Stamp: reconcile.Stamp{Who: "explain", Prefix: "explainexplain"},
	}}
	answers := x.run()
	for t := range r.Tasks() {
		if q.Task != "" && t.Ref.Task != q.Task {
			continue
		}
		if a, ok := x.task(t); ok {
			answers = append(answers, a)
		}
	}
	return answers
}

// inquiry is one question being answered.
type inquiry struct {
	v    *view.Active
	q    Question
	r    *view.Run
	turn reconcile.Turn

	backlog *placement.Backlog
	fleet   placement.Fleet
}

// task answers for one task; ok is false where it waits for nothing.
func (x *inquiry) task(t *view.Task) (Answer, bool) {
	d := reconcile.Judge(x.v, x.r, t, x.turn)
	if d.Wait.Reason == reconcile.ReasonClosed {
		return Answer{}, false
	}
	a := Answer{
		Task: t.Ref, State: t.State(), Reason: string(d.Wait.Reason), Since: d.Wait.Since, Until: d.Wait.Until,
		Key: d.Wait.Key, Rev: d.Wait.Rev,
	}
	if row, ok := t.Latest(); ok {
		a.Attempt = row.Attempt.Attempt
	}
	switch {
	case d.Err != nil:
		a.Reason, a.Text = "fault", "the records contradict each other: "+d.Err.Error()
	case d.Change != nil:
		a.Reason, a.Text = "decided", "decided by rule "+string(d.Change.Rule)+"; the leader has yet to write it"
	case d.Wait.Reason == reconcile.ReasonReady:
		x.refused(&a, d.Ready)
	default:
		x.say(&a, t)
	}
	return a, true
}

// refused answers for a ready task.
func (x *inquiry) refused(a *Answer, ready view.Ready) {
	x.survey()
	refusal := x.backlog.Refuse(x.fleet, ready.Ref.TaskRef)
	a.Reason = string(refusal.Reason)
	x.blame(a, refusal)
}

// survey makes the backlog and the fleet, once.
func (x *inquiry) survey() {
	if x.backlog != nil {
		return
	}
	x.fleet = placement.Survey(x.v, x.q.Flying)
	x.backlog = placement.NewBacklog()
	for _, r := range reconcile.Pass(x.v, view.Touched{Full: true}, x.turn).Ready {
		x.backlog.Put(r)
	}
}
