package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/writ-sched/writ/internal/placement"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// some is how many names a sentence lists before it says how many more.
const some = 3

// run answers for the run as a whole.
func (x *inquiry) run() []Answer {
	rec := x.r.Record
	a := Answer{
		Task: record.TaskRef{Run: x.r.ID()}, Since: rec.EnteredAt, Key: record.RunKey(x.r.ID()), Rev: x.r.ModRev,
	}
	switch {
	case !x.r.Loaded():
		a.Reason, a.Text = string(reconcile.ReasonSpec), fmt.Sprintf("revision %d of %s is not loaded yet", rec.Revision, rec.Workflow)
	case rec.Phase == record.PhaseEnding:
		a.Reason, a.Text = string(reconcile.ReasonEnding), fmt.Sprintf("ended as %s; its document is being written", rec.State)
	case rec.Phase == record.PhaseReopening:
		a.Reason, a.Text = string(reconcile.ReasonReopening), "its rows are being restored from its document"
	case rec.State == record.RunCancelling:
		a.Reason, a.Text = string(reconcile.ReasonCancelling), "cancelled"+held(rec.Cancelling)+fmt.Sprintf("; %d attempts have yet to stop", x.r.Live())
	case rec.Paused != nil:
		a.Reason, a.Text, a.Since = string(reconcile.ReasonPaused), "paused"+held(rec.Paused)+"; nothing is started", rec.Paused.At
	case rec.State == record.RunQueued:
		a.Reason, a.Text = string(reconcile.ReasonQueued), x.limit()
	default:
		return nil
	}
	return []Answer{a}
}

func held(h *record.Hold) string {
	switch {
	case h == nil:
		return ""
	case h.Why == "":
		return " by " + h.By
	default:
		return fmt.Sprintf(" by %s (%s)", h.By, h.Why)
	}
}

// limit says which runs a queued one waits for.
func (x *inquiry) limit() string {
	var active []string
	for _, r := range x.v.RunsOf(x.r.Record.Workflow) {
		if s := r.Record.State; s != record.RunQueued && !s.Terminal() {
			active = append(active, string(r.ID()))
		}
	}
	return fmt.Sprintf("waits for its turn: max_active_runs is %d, active: %s", x.r.Graph.Workflow().MaxActiveRuns, few(active))
}

// few lists the first names and says how many more there are.
func few(names []string) string {
	switch {
	case len(names) == 0:
		return "none"
	case len(names) <= some:
		return strings.Join(names, ", ")
	default:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:some], ", "), len(names)-some)
	}
}

// say puts what the rules found into a sentence.
func (x *inquiry) say(a *Answer, t *view.Task) {
	row, _ := t.Last()
	worker := fmt.Sprintf("worker %s (session %s)", row.Worker, row.Session)
	switch reconcile.Reason(a.Reason) {
	case reconcile.ReasonUpstream:
		x.upstream(a, t)
	case reconcile.ReasonDue:
		a.Text = "not due until " + a.Until.UTC().Format(time.RFC3339)
	case reconcile.ReasonClock:
		a.Text = "due, but the leader's clock is ahead of its peers', so due times are held"
	case reconcile.ReasonPaused:
		a.Text = "the run is paused" + held(x.r.Record.Paused)
	case reconcile.ReasonQueued:
		a.Text = "the run waits for its turn"
	case reconcile.ReasonReopening:
		a.Text = "the run is being reopened"
	case reconcile.ReasonEnding:
		a.Text = "the run has ended"
	case reconcile.ReasonUnconfirmed:
		a.Text = "dispatched to " + worker + ", which has not confirmed it; otherwise it is dispatched anew"
	case reconcile.ReasonRunning:
		a.Text = "running on " + worker
	case reconcile.ReasonOverdue:
		a.Text = "running on " + worker + " beyond its timeout; the worker is to stop it"
	case reconcile.ReasonSilent:
		a.Text = worker + " is silent; its process must be dead by its own deadline, then the task goes on"
	case reconcile.ReasonProof:
		a.Text = worker + " is silent, the task is not idempotent and nothing proves its process dead; " +
			"start the worker again in its state directory, or decide with writ resolve"
	case reconcile.ReasonUnproven:
		a.Text = fmt.Sprintf("waits for proof that attempt %d is dead, or for writ resolve --dead", a.Key.N)
	case reconcile.ReasonSettling:
		a.Text = "the successor of " + worker + " has yet to deliver the results that it left"
	case reconcile.ReasonHeld:
		a.Text = worker + " is silent, as many are at once: losses are held, since the store is likelier to have stalled"
	case reconcile.ReasonCancelling:
		a.Text = "cancelled; " + worker + " has yet to stop it"
	case reconcile.ReasonCleared:
		a.Text = "cleared; " + worker + " has yet to stop the attempt before"
	case reconcile.ReasonSignal:
		a.Text = "waits for a signal or a child run"
	case reconcile.ReasonInFlight, reconcile.ReasonSpec, reconcile.ReasonReady, reconcile.ReasonClosed:
		a.Text = "the leader is about to write what comes next"
	}
}

// upstream names the open tasks that a task waits for. The record that says so
// is the row of the first of them, where it has one.
func (x *inquiry) upstream(a *Answer, t *view.Task) {
	var open []string
	for _, i := range x.r.Graph.Up(t.Index) {
		up := x.r.At(i)
		if up.Class() != spec.ClassOpen {
			continue
		}
		if row, ok := up.Latest(); ok && len(open) == 0 {
			a.Key, a.Rev, a.Since = record.AttemptKey(row.Ref()), row.ModRev, row.EnteredAt
		}
		open = append(open, up.Ref.Name()+" ("+standing(up)+")")
	}
	a.Text = fmt.Sprintf("trigger rule %s waits for %s", t.Spec.Rule(), few(open))
}

func standing(t *view.Task) string {
	switch {
	case t.State() == record.None:
		return "not started"
	case t.Debt() != view.DebtNone:
		return string(t.State()) + ", runs again"
	default:
		return string(t.State())
	}
}

// blame puts why a ready task has no worker into a sentence.
func (x *inquiry) blame(a *Answer, f placement.Refusal) {
	r := f.Ready
	switch f.Reason {
	case placement.NoWorker:
		a.Text = "ready; no worker is connected"
	case placement.NoQueue:
		a.Text = fmt.Sprintf("ready; no living worker serves queue %s", r.Queue)
	case placement.NoHandler:
		a.Text = fmt.Sprintf("ready; no worker of queue %s has the handler %s", r.Queue, r.Handler)
	case placement.NoProcess:
		a.Text = fmt.Sprintf("ready; no worker of queue %s runs processes", r.Queue)
	case placement.Draining:
		a.Text = "ready; draining: " + few(sessions(f.Sessions))
		x.cite(a, f.Sessions)
	case placement.PoolFull:
		a.Text = fmt.Sprintf("ready; pool %s is full", r.Pool)
		if p, ok := x.v.Pool(r.Pool); ok {
			a.Key, a.Rev = record.PoolKey(r.Pool), p.ModRev
		}
	case placement.SlotsFull:
		a.Text = fmt.Sprintf("ready; all slots of %s are taken, by %s; %d tasks go first", few(sessions(f.Sessions)), few(x.holders(f.Sessions)), f.Ahead)
		x.cite(a, f.Sessions)
	case placement.InLine:
		a.Text = fmt.Sprintf("ready; %d tasks of queue %s go first, at their head %s", f.Ahead, r.Queue, f.First)
	case placement.Unassigned, placement.NotWaiting:
		a.Text = "ready; about to be dispatched"
	}
}

// cite names the first session's record as the one that says so.
func (x *inquiry) cite(a *Answer, list []view.SessionRef) {
	for _, s := range list {
		if w, ok := x.v.Worker(s); ok {
			a.Key, a.Rev = record.WorkerKey(s.Worker, s.Session), w.ModRev
			return
		}
	}
}

func (x *inquiry) holders(list []view.SessionRef) []string {
	var names []string
	for _, s := range list {
		for _, row := range x.v.Held(s) {
			names = append(names, row.Ref().String())
		}
	}
	return names
}

func sessions(list []view.SessionRef) []string {
	names := make([]string, 0, len(list))
	for _, s := range list {
		names = append(names, string(s.Worker))
	}
	return names
}
