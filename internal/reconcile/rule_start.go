package reconcile

import (
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// start finds what may be dispatched.
//
// When: the run is running, in no phase and not held; the task's trigger rule
// says run and it has no row that counts, or it is owed an attempt, or its
// waiting row is due; no row of it is live; and, unless it is idempotent, no
// death of an earlier attempt is unproven.
// Then: the task is ready. Placement finds a worker, and Dispatch writes the
// intent: ∅ → queued with a token, or waiting → queued with a token.
// Guard (of Dispatch): row absent and previous row as seen, or row as seen; run
// as seen; no unproven death in the range.
// Keeps: I1, I2, I5, I6, I7, I11.
func (p *pass) start(r *view.Run, t *view.Task) *Verdict {
	ready, w, ok := p.ready(r, t)
	switch {
	case ok:
		return &Verdict{Ready: ready, Wait: w}
	case w.Reason != "":
		return waiting(w)
	default:
		return nil
	}
}

// ready says whether a task may be dispatched; otherwise w says what it waits
// for, with no reason where its latest row is closed.
func (p *pass) ready(r *view.Run, t *view.Task) (ready view.Ready, w Wait, ok bool) {
	row, has := t.Latest()
	switch {
	case has && row.Waiting():
		if row.NotBefore.After(p.turn.Now) {
			w = aboutRow(row, ReasonDue)
			w.Until = row.NotBefore
			return view.Ready{}, w, false
		}
		if p.turn.HoldDue && !row.NotBefore.IsZero() {
			return view.Ready{}, aboutRow(row, ReasonClock), false
		}
	case has && t.Debt() == view.DebtNone:
		return view.Ready{}, Wait{}, false
	case !has:
		if state, decided := verdictOf(t); !decided || state != record.None {
			return view.Ready{}, p.aboutRun(r, t, ReasonUpstream), false
		}
	}
	if !r.Record.Startable() {
		return view.Ready{}, p.aboutRun(r, t, ReasonPaused), false
	}
	if marks := r.Marks(t.Ref); len(marks) > 0 && !t.Spec.Idempotent {
		m := marks[0]
		return view.Ready{}, Wait{
			Task: t.Ref, Reason: ReasonUnproven, Since: m.Since, Key: record.UnprovenKey(m.Ref()), Rev: m.ModRev,
		}, false
	}
	ready = p.need(r, t)
	w = p.aboutLatest(r, t, ReasonReady)
	w.Since = ready.Since
	if limit := t.Spec.QueueTimeout.Std(); limit > 0 {
		w.Until = ready.Since.Add(limit)
	}
	return ready, w, true
}

// need says what the task's next dispatch asks of a worker.
func (p *pass) need(r *view.Run, t *view.Task) view.Ready {
	next := blank(t)
	if row, ok := t.Latest(); ok && row.Waiting() {
		next = row.Attempt
	}
	return view.Ready{
		Ref: next.Ref(), Workflow: r.Record.Workflow, Queue: next.Queue, Pool: next.Pool, Keys: next.Keys,
		Handler: t.Spec.Handler, Priority: t.Spec.Priority, Since: since(r, t),
	}
}

// since is when a ready task became ready.
func since(r *view.Run, t *view.Task) time.Time {
	if row, ok := t.Latest(); ok {
		switch {
		case row.Waiting() && !row.NotBefore.IsZero():
			return row.NotBefore
		case t.Debt() == view.DebtRetry:
			return dueAgain(t.Spec, row)
		default:
			return row.EnteredAt
		}
	}
	at := r.Record.StartedAt
	if above := t.ClosedAbove(); above.After(at) {
		at = above
	}
	for _, c := range r.Clears() {
		if c.FirstRev == t.Cleared() && c.At.After(at) {
			at = c.At
		}
	}
	return at
}
