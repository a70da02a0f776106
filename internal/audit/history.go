package audit

import (
	"cmp"
	"fmt"

	"github.com/writ-sched/writ/internal/record"
)

// row is an attempt row with the revisions of its key. An absent one has none.
type row struct {
	record.Attempt
	create, mod int64
}

func (r row) here() bool { return r.mod != 0 }

// first is the create revision that counts for clears.
func (r row) first() int64 { return cmp.Or(r.Fence, r.create) }

// task is a task or instance with its rows by number.
type task struct {
	rows map[int]row
	last int
}

// run is a run record with what belongs to it.
type run struct {
	id          record.RunID
	rec         record.Run
	create, mod int64 // 0 while there is no record
	flow        *flow // nil where its spec is not known
	tasks       map[record.TaskRef]*task
	rows        int
	clears      map[int64]record.EndedClear
	cover       map[record.TaskID]int64 // the newest clear over a task
	marks       map[record.Ref]record.Unproven
	fanned      map[record.TaskID]bool // tasks of which instances were seen
}

func (r *run) here() bool { return r.mod != 0 }

// counts says that no clear covers the row.
func (r *run) counts(w row) bool { return w.here() && w.first() >= r.cover[w.Task] }

// latest is the row that a task's state is taken from.
func (r *run) latest(ref record.TaskRef) (row, bool) {
	t, ok := r.tasks[ref]
	if !ok {
		return row{}, false
	}
	w := t.rows[t.last]
	return w, r.counts(w)
}

// unproven says that a death of the task is not proven.
func (r *run) unproven(ref record.TaskRef) (record.Ref, bool) {
	t := r.tasks[ref]
	if t == nil || len(r.marks) == 0 {
		return record.Ref{}, false
	}
	for n := range t.last {
		if _, ok := r.marks[ref.At(n+1)]; ok {
			return ref.At(n + 1), true
		}
	}
	return record.Ref{}, false
}

// step is what one revision did.
type step struct {
	rev     int64
	begin   bool // the snapshot
	rows    []rowChange
	runs    []runChange
	ended   []*ending
	holders []record.Key
	freed   []record.Holder
}

type rowChange struct {
	key           record.Key
	run           *run
	before, after row
}

type runChange struct {
	key           record.Key
	run           *run
	before, after record.Run
	had, has      bool
}

// issue is where and when a token was written.
type issue struct {
	ref record.Ref
	row row // as it was written
	rev int64
}

func (a *Auditor) shell(id record.RunID) *run {
	r, ok := a.runs[id]
	if !ok {
		r = &run{
			id: id, tasks: map[record.TaskRef]*task{}, clears: map[int64]record.EndedClear{}, cover: map[record.TaskID]int64{},
			marks: map[record.Ref]record.Unproven{}, fanned: map[record.TaskID]bool{},
		}
		a.runs[id] = r
	}
	return r
}

// apply takes one event into the state.
func (a *Auditor) apply(s *step, e record.Event) error {
	switch e.Key.Family {
	case record.FamilyRun:
		return a.applyRun(s, e)
	case record.FamilyAttempt:
		return a.applyRow(s, e)
	case record.FamilyClear:
		return a.applyClear(e)
	case record.FamilyUnproven:
		return a.applyMark(e)
	case record.FamilyWorker, record.FamilySession:
		return a.applySession(e)
	case record.FamilyPool:
		return a.applyPool(e)
	case record.FamilyHolder:
		return a.applyHolder(s, e)
	case record.FamilyEnded, record.FamilyPage:
		return a.applyEnded(e)
	default:
		return nil
	}
}

// value is what an event puts; put is false for a deletion.
func value[T record.Value](e record.Event) (v T, put bool, err error) {
	if e.Value == nil {
		return v, false, nil
	}
	v, put = e.Value.(T)
	if !put {
		return v, false, fmt.Errorf("%s holds a %T, expected a %T", name(e.Key), e.Value, v)
	}
	return v, true, nil
}

// unbroken says why an event cannot follow on a key that was made at a
// revision, or 0 where it is not known.
func (s *step) unbroken(e record.Event, create int64) error {
	switch {
	case e.Value == nil && create == 0:
		return fmt.Errorf("%s is deleted, but nothing shows that it was there: the history has a hole", name(e.Key))
	case e.Value != nil && create == 0 && e.CreateRev != e.ModRev && !s.begin:
		return fmt.Errorf("%s was made at revision %d, which is neither in the snapshot nor was fed: the history has a hole", name(e.Key), e.CreateRev)
	case e.Value != nil && create != 0 && e.CreateRev != create:
		return fmt.Errorf("%s was made at revision %d, but was known from %d: the history has a hole", name(e.Key), e.CreateRev, create)
	default:
		return nil
	}
}
