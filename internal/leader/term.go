package leader

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/metrics"
	"github.com/writ-sched/writ/internal/placement"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

const (
	// retryPause is the wait before something is decided again whose change
	// lost, where nothing says that the mirror has yet to catch up.
	retryPause = 50 * time.Millisecond
	// roundOfIntents bounds the dispatches of one round, and with them how long
	// the view is kept from moving.
	roundOfIntents = 512
)

// term is what the loop remembers while it leads. One goroutine owns it; the
// inbox, and what mu guards, are written by others too.
type term struct {
	*Leader
	id    Term
	feed  Feed
	inbox *inbox

	busy    *reconcile.Busy
	vigil   *reconcile.Vigil
	agenda  reconcile.Agenda
	backlog *placement.Backlog
	flying  map[*flight]placement.Assignment
	// landed are settled changes that the mirror has yet to show.
	landed    []*flight
	documents map[record.RunID]*document
	// again is to be decided again at retryAt.
	again   view.Touched
	retryAt time.Time
	fullAt  time.Time
	out     []*flight // submitted at the end of the round
	// held is set while losses are, at the latest until heldTo.
	held   bool
	heldTo time.Time

	reading  sync.WaitGroup
	mu       sync.Mutex // guards the fields below
	restored map[record.RunID][]record.EndedPage
	reopened []record.RunID        // restored is new for them
	opening  map[record.RunID]bool // a reader is at work
}

func newTerm(l *Leader, id Term, feed Feed) *term {
	return &term{
		Leader: l, id: id, feed: feed, inbox: newInbox(),
		busy: reconcile.NewBusy(), vigil: reconcile.NewVigil(), backlog: placement.NewBacklog(),
		flying: map[*flight]placement.Assignment{}, documents: map[record.RunID]*document{},
		restored: map[record.RunID][]record.EndedPage{}, opening: map[record.RunID]bool{},
	}
}

// round does everything that is due, and says whether there is more at once.
func (t *term) round(ctx context.Context, now time.Time) (more bool) {
	touched := t.feed.Take().Merge(t.agenda.Due(now))
	if !t.retryAt.IsZero() && !now.Before(t.retryAt) {
		touched, t.again, t.retryAt = touched.Merge(t.again), view.Touched{}, time.Time{}
	}
	if !now.Before(t.fullAt) {
		touched.Full = true
		t.fullAt = now.Add(t.config.FullPass)
	}
	touched = touched.Merge(t.read())
	arrived := t.inbox.take()
	t.mirror.Read(func(v *view.Active) {
		for _, f := range arrived {
			t.settle(v, f, now)
		}
		touched = touched.Merge(t.land(v)).Merge(t.losses(v, touched, now))
		if !touched.Empty() {
			t.pass(ctx, v, touched, now)
		}
		more = t.dispatch(v, now)
	})
	t.submit()
	return more
}

// losses asks whether losses are held. When they are no more, everything that
// was held is looked at again.
func (t *term) losses(v *view.Active, touched view.Touched, now time.Time) (again view.Touched) {
	before := t.held
	if t.held, t.heldTo = t.config.Losses(v, touched, now); !t.held {
		t.heldTo = time.Time{}
	}
	switch {
	case t.held && !before:
		t.config.Logger.Warn("many workers fell silent at once: none is declared lost for a while, since the store is likelier to have stalled",
			zap.Time("until", t.heldTo))
	case before && !t.held:
		t.config.Logger.Info("losses are not held any more")
		again.Full = true
	}
	return again
}

// rest is how long nothing is due.
func (t *term) rest(now time.Time) time.Duration {
	next := now.Add(pulse)
	for _, at := range []time.Time{t.retryAt, t.fullAt, t.heldTo} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	if at, ok := t.agenda.Next(); ok && at.Before(next) {
		next = at
	}
	return max(0, next.Sub(now))
}

func (t *term) turn(now time.Time) reconcile.Turn {
	return reconcile.Turn{Now: now, Stamp: t.stamp(t.id), Policy: t.config.Policy, Busy: t.busy, Vigil: t.vigil, HoldLosses: t.held}
}

// pass asks the rules about what was touched, under the view's lock.
func (t *term) pass(ctx context.Context, v *view.Active, touched view.Touched, now time.Time) {
	kind := metrics.Touched
	if touched.Full {
		kind = metrics.Full
	}
	t.config.Metrics.Passed(kind)
	turn := t.turn(now)
	res := reconcile.Pass(v, touched, turn)
	t.agenda.Note(res)
	for _, err := range res.Faults {
		t.config.Logger.Error("a record makes no sense, its task is left alone", zap.Error(err))
	}
	for _, ready := range res.Ready {
		t.backlog.Put(ready)
	}
	for _, task := range res.Idle {
		t.backlog.Drop(task)
	}
	for _, run := range res.Gone {
		t.backlog.DropRun(run)
		delete(t.documents, run)
		t.forgetRestored(run)
	}
	for _, c := range res.Changes {
		t.send(&flight{change: c})
	}
	for _, run := range res.Ending {
		t.beginDocument(v, run, turn.Stamp)
	}
	for _, run := range res.Reopening {
		t.restore(ctx, v, run, turn)
	}
}

// dispatch gives free slots to ready tasks, under the view's lock.
func (t *term) dispatch(v *view.Active, now time.Time) (more bool) {
	if t.backlog.Len() == 0 {
		return false
	}
	flying := make([]placement.Assignment, 0, len(t.flying))
	for _, a := range t.flying {
		flying = append(flying, a)
	}
	fleet := placement.Survey(v, flying)
	placed := t.backlog.Place(&fleet, roundOfIntents)
	if len(placed) == 0 {
		return false
	}
	turn := t.turn(now)
	for _, a := range placed {
		c, ok, err := reconcile.Dispatch(v, reconcile.Assignment{
			Ref: a.Ready.Ref, Session: a.Session, Token: record.Token(draw(16)),
		}, turn)
		switch {
		case err != nil:
			t.config.Logger.Error("a ready task cannot be dispatched", zap.Stringer("attempt", a.Ready.Ref), zap.Error(err))
		case !ok:
			// The view moved on, or a commit about the task is in flight; both
			// have the task looked at again when they are through.
		default:
			f := &flight{change: c}
			t.flying[f] = a
			t.send(f)
		}
	}
	return len(placed) == roundOfIntents
}

// send notes that a change is on its way; it leaves at the end of the round,
// when the view's lock is given back.
func (t *term) send(f *flight) {
	t.busy.Add(f.change)
	t.out = append(t.out, f)
}

func (t *term) submit() {
	inbox := t.inbox
	for _, f := range t.out {
		t.committer.Submit(f.change, func(o record.Outcome) {
			f.outcome = o
			inbox.put(f)
		})
	}
	t.out = t.out[:0]
}

// settle takes in what became of a change. It stays busy until the mirror
// shows what the outcome saw: before that, the same would be decided again.
func (t *term) settle(v *view.Active, f *flight, now time.Time) {
	if f.page != nil {
		t.busy.Done(f.change)
		t.advance(v, f, now)
		return
	}
	if f.outcome.Verdict != record.Committed {
		delete(t.flying, f)
		f.outcome.Rev = 0
		for _, s := range f.outcome.Seen {
			if s.Key.Family.Active() {
				f.outcome.Rev = max(f.outcome.Rev, s.ModRev)
			}
		}
	}
	if f.outcome.Verdict != record.Committed && f.outcome.Rev <= v.Rev() {
		t.busy.Done(f.change)
		t.later(about(f.change), now)
		return
	}
	t.landed = append(t.landed, f)
}

// later has something decided again, after a pause.
func (t *term) later(touched view.Touched, now time.Time) {
	t.again = t.again.Merge(touched)
	if t.retryAt.IsZero() {
		t.retryAt = now.Add(retryPause)
	}
}

// land lets go of the changes that the view shows, and returns what they were
// about.
func (t *term) land(v *view.Active) view.Touched {
	var touched view.Touched
	t.landed = slices.DeleteFunc(t.landed, func(f *flight) bool {
		if f.outcome.Rev > v.Rev() {
			return false
		}
		t.busy.Done(f.change)
		delete(t.flying, f)
		touched = touched.Merge(about(f.change))
		return true
	})
	return touched
}
