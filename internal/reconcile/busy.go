package reconcile

import "github.com/writ-sched/writ/internal/record"

// Busy counts what has a commit in flight. Its tasks, runs and sessions are
// left out of a pass until the mirror has reached the commit's revision. Make
// it with NewBusy; a nil Busy is nothing in flight.
type Busy struct {
	tasks    map[record.TaskRef]int
	within   map[record.RunID]int // tasks of the run in flight
	runs     map[record.RunID]int
	sessions map[record.Key]int
}

// NewBusy returns a Busy with nothing in flight.
func NewBusy() *Busy {
	return &Busy{
		tasks: map[record.TaskRef]int{}, within: map[record.RunID]int{}, runs: map[record.RunID]int{}, sessions: map[record.Key]int{},
	}
}

// Add notes that c is in flight.
func (b *Busy) Add(c record.Change) { b.note(c, +1) }

// Done notes that c was settled and, where it committed, that the view shows
// it. The caller then has what c was about looked at again: a change that lost
// its race touches nothing.
func (b *Busy) Done(c record.Change) { b.note(c, -1) }

// Task says that a change of the task's rows or marks is in flight.
func (b *Busy) Task(t record.TaskRef) bool { return b != nil && b.tasks[t] > 0 }

// Run says that a change of the run record is in flight.
func (b *Busy) Run(r record.RunID) bool { return b != nil && b.runs[r] > 0 }

// Within says that a change of any task of the run, or of the run itself, is
// in flight.
func (b *Busy) Within(r record.RunID) bool { return b != nil && (b.within[r] > 0 || b.runs[r] > 0) }

// Session says that a change of the session's record is in flight.
func (b *Busy) Session(w record.WorkerName, s record.SessionID) bool {
	return b != nil && b.sessions[record.SessionKey(w, s)] > 0
}

func (b *Busy) note(c record.Change, by int) {
	for _, p := range c.Put {
		b.key(p.Key, by)
	}
	for _, d := range c.Delete {
		if !d.Over {
			b.key(d.Key, by)
		}
	}
}

func (b *Busy) key(k record.Key, by int) {
	switch k.Family {
	case record.FamilyAttempt, record.FamilyUnproven:
		bump(b.tasks, record.TaskRef{Run: k.Run, Task: k.Task, Instance: k.Instance}, by)
		bump(b.within, k.Run, by)
	case record.FamilyRun, record.FamilyEnded, record.FamilyPage:
		bump(b.runs, k.Run, by)
	case record.FamilySession:
		bump(b.sessions, k, by)
	default:
	}
}

func bump[K comparable](m map[K]int, k K, by int) {
	if m[k] += by; m[k] == 0 {
		delete(m, k)
	}
}
