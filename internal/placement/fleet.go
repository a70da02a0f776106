package placement

import (
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Assignment gives a ready task to a session. The caller draws the token.
type Assignment struct {
	Ready   view.Ready
	Session view.SessionRef
}

// Seat is a living session with its free slots.
type Seat struct {
	Session view.SessionRef
	Worker  record.Worker
	Free    int
}

// open says that the session takes new attempts.
func (s Seat) open() bool { return s.Free > 0 && s.Worker.Draining == nil }

// Fleet is what there is to be given: seats sorted by session, and limits.
type Fleet struct {
	Seats []Seat
	// Live counts the live slots of each workflow.
	Live map[record.WorkflowName]int
	// Pools are the free places of the pools that have a width; a pool without
	// one has no limit.
	Pools map[record.Pool]int
}

// Survey counts the fleet from the view. flying are the assignments whose
// intents were sent to the store and that may not be in the view yet: they
// take their slots all the same, each once.
func Survey(v *view.Active, flying []Assignment) Fleet {
	f := Fleet{Live: map[record.WorkflowName]int{}, Pools: map[record.Pool]int{}}
	taken := map[view.SessionRef]int{}
	for _, p := range v.Pools() {
		f.Pools[p.Record.Pool] = p.Record.Slots - v.InPool(p.Record.Pool)
	}
	for _, w := range v.Workflows() {
		f.Live[w.Record.Workflow] = v.LiveOf(w.Record.Workflow)
	}
	for _, a := range flying {
		if row, ok := v.Row(a.Ready.Ref); ok && row.Token != "" {
			continue
		}
		if _, ok := f.Live[a.Ready.Workflow]; !ok {
			f.Live[a.Ready.Workflow] = v.LiveOf(a.Ready.Workflow)
		}
		taken[a.Session]++
		f.take(a.Ready)
	}
	for _, w := range v.Workers() {
		ref := view.SessionRef{Worker: w.Record.Worker, Session: w.Record.Session}
		f.Seats = append(f.Seats, Seat{
			Session: ref, Worker: w.Record, Free: w.Record.Slots - v.Occupied(ref) - taken[ref],
		})
	}
	return f
}

// take counts one more live slot of a task's workflow and pool.
func (f *Fleet) take(r view.Ready) {
	f.Live[r.Workflow]++
	if _, limited := f.Pools[r.Pool]; limited {
		f.Pools[r.Pool]--
	}
}

// full says that the task's pool has no place left.
func (f *Fleet) full(p record.Pool) bool {
	free, limited := f.Pools[p]
	return p != "" && limited && free <= 0
}

// seat returns the index of the session that a task goes to: of those that fit
// and are open the one with the most free slots, by name among equals; or -1.
func (f *Fleet) seat(r view.Ready) int {
	best := -1
	for i, s := range f.Seats {
		if s.open() && r.Fits(s.Worker) && (best < 0 || s.Free > f.Seats[best].Free) {
			best = i
		}
	}
	return best
}
