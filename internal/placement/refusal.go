package placement

import (
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Reason says in one word why a ready task has no worker.
type Reason string

// The reasons, from the one that an operator must act on to the one that time
// mends.
const (
	NoWorker   Reason = "no_worker"   // no session is alive at all
	NoQueue    Reason = "no_queue"    // no living session serves the queue
	NoHandler  Reason = "no_handler"  // none of those has the handler
	NoProcess  Reason = "no_process"  // none of those runs processes
	Draining   Reason = "draining"    // all of those are draining
	PoolFull   Reason = "pool_full"   // the pool has no place left
	SlotsFull  Reason = "slots_full"  // all slots of those are taken
	InLine     Reason = "in_line"     // others go first
	Unassigned Reason = "unassigned"  // nothing stands against it: next round
	NotWaiting Reason = "not_waiting" // the task is not in the backlog
)

// Refusal says why a ready task has no worker.
type Refusal struct {
	Reason Reason
	Ready  view.Ready
	// Sessions are those that could take the task but for the reason: that are
	// draining or full.
	Sessions []view.SessionRef
	// Ahead counts the tasks of the same queue that go first by priority and
	// age, and First is the one at their head; fairness between workflows may
	// let the task pass some of them.
	Ahead int
	First record.Ref
}

// Refuse says why a task of the backlog is not assigned. It looks at the whole
// backlog and is for people who ask, not for the loop.
func (b *Backlog) Refuse(f Fleet, t record.TaskRef) Refusal {
	r, ok := b.tasks[t]
	if !ok {
		return Refusal{Reason: NotWaiting}
	}
	x := Refusal{Ready: r}
	b.line(&x)
	x.Reason, x.Sessions = f.refuse(r)
	if x.Reason == Unassigned && x.Ahead > 0 {
		x.Reason = InLine
	}
	return x
}

// line counts what goes before the task in its queue.
func (b *Backlog) line(x *Refusal) {
	var first view.Ready
	for _, o := range b.tasks {
		if o.Queue != x.Ready.Queue || compareReady(o, x.Ready) >= 0 {
			continue
		}
		if x.Ahead == 0 || compareReady(o, first) < 0 {
			first = o
		}
		x.Ahead++
	}
	x.First = first.Ref
}

// refuse goes from what no time mends to what the next free slot does.
func (f *Fleet) refuse(r view.Ready) (Reason, []view.SessionRef) {
	if len(f.Seats) == 0 {
		return NoWorker, nil
	}
	served := keep(f.Seats, func(s Seat) bool { return r.Served(s.Worker) })
	if len(served) == 0 {
		return NoQueue, nil
	}
	offered := keep(served, func(s Seat) bool { return r.Offered(s.Worker) })
	switch {
	case len(offered) == 0 && r.Process():
		return NoProcess, nil
	case len(offered) == 0:
		return NoHandler, nil
	}
	awake := keep(offered, func(s Seat) bool { return s.Worker.Draining == nil })
	switch {
	case len(awake) == 0:
		return Draining, names(offered)
	case f.full(r.Pool):
		return PoolFull, nil
	case len(keep(awake, Seat.open)) == 0:
		return SlotsFull, names(awake)
	default:
		return Unassigned, nil
	}
}

func keep(seats []Seat, wanted func(Seat) bool) []Seat {
	var list []Seat
	for _, s := range seats {
		if wanted(s) {
			list = append(list, s)
		}
	}
	return list
}

func names(seats []Seat) []view.SessionRef {
	list := make([]view.SessionRef, 0, len(seats))
	for _, s := range seats {
		list = append(list, s.Session)
	}
	return list
}
