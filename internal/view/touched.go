package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
)

// Touched is what events changed, each list sorted and without repetition. It
// is a value: those who keep it until they get to it put two together with
// Merge.
type Touched struct {
	// Full stands for everything: after a list, on taking over, and on the
	// timer. The lists may then be empty.
	Full bool
	// Tasks had one of their own rows, or a mark of an unproven death, written.
	Tasks []record.TaskRef
	// Below are tasks whose upstream tally changed.
	Below []record.TaskRef
	// Runs had their record or a clear written, or got their spec: all of
	// their tasks may stand differently. Runs that are gone are among them.
	Runs []record.RunID
	// Counted are runs of which any row was written: they may be at their end.
	Counted []record.RunID
	// Sessions had their key or their record written.
	Sessions []SessionRef
	// Workflows had their record written, or a run of them came, moved or went.
	Workflows []record.WorkflowName
	// Pools had their width written.
	Pools []record.Pool
	// Replicas is set where a replica came, moved or went.
	Replicas bool
	// Others is set where a holder, a backfill or a signal was written.
	Others bool
}

// Empty says that nothing was touched.
func (t Touched) Empty() bool {
	return !t.Full && !t.Replicas && !t.Others && len(t.Tasks)+len(t.Below)+len(t.Runs)+len(t.Counted) == 0 &&
		len(t.Sessions)+len(t.Workflows)+len(t.Pools) == 0
}

// Merge returns what either of the two touched.
func (t Touched) Merge(o Touched) Touched {
	switch {
	case t.Empty():
		return o
	case o.Empty():
		return t
	}
	return Touched{
		Full:      t.Full || o.Full,
		Tasks:     union(t.Tasks, o.Tasks, compareTasks),
		Below:     union(t.Below, o.Below, compareTasks),
		Runs:      union(t.Runs, o.Runs, cmp.Compare[record.RunID]),
		Counted:   union(t.Counted, o.Counted, cmp.Compare[record.RunID]),
		Sessions:  union(t.Sessions, o.Sessions, SessionRef.Compare),
		Workflows: union(t.Workflows, o.Workflows, cmp.Compare[record.WorkflowName]),
		Pools:     union(t.Pools, o.Pools, cmp.Compare[record.Pool]),
		Replicas:  t.Replicas || o.Replicas,
		Others:    t.Others || o.Others,
	}
}

func union[T comparable](a, b []T, compare func(a, b T) int) []T {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, compare)
	return slices.Compact(all)
}

// Take returns what was touched since the last Take, and forgets it.
func (v *Active) Take() Touched {
	t := v.touched
	v.touched = newTouches()
	return Touched{
		Full:      t.full,
		Tasks:     sorted(t.tasks, compareTasks),
		Below:     sorted(t.below, compareTasks),
		Runs:      sorted(t.runs, cmp.Compare[record.RunID]),
		Counted:   sorted(t.counted, cmp.Compare[record.RunID]),
		Sessions:  sorted(t.sessions, SessionRef.Compare),
		Workflows: sorted(t.workflows, cmp.Compare[record.WorkflowName]),
		Pools:     sorted(t.pools, cmp.Compare[record.Pool]),
		Replicas:  t.replicas,
		Others:    t.others,
	}
}

// touches gathers what events change until it is taken.
type touches struct {
	full      bool
	tasks     map[record.TaskRef]struct{}
	below     map[record.TaskRef]struct{}
	runs      map[record.RunID]struct{}
	counted   map[record.RunID]struct{}
	sessions  map[SessionRef]struct{}
	workflows map[record.WorkflowName]struct{}
	pools     map[record.Pool]struct{}
	replicas  bool
	others    bool
}

func newTouches() touches {
	return touches{
		tasks: map[record.TaskRef]struct{}{}, below: map[record.TaskRef]struct{}{},
		runs: map[record.RunID]struct{}{}, counted: map[record.RunID]struct{}{},
		sessions: map[SessionRef]struct{}{}, workflows: map[record.WorkflowName]struct{}{}, pools: map[record.Pool]struct{}{},
	}
}

func (t *touches) task(ref record.TaskRef) {
	t.tasks[ref] = struct{}{}
	t.counted[ref.Run] = struct{}{}
}

func (t *touches) run(r *Run) {
	t.runs[r.id] = struct{}{}
	t.workflows[r.id.Workflow()] = struct{}{}
}

func sorted[T comparable](set map[T]struct{}, compare func(a, b T) int) []T {
	if len(set) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(set), compare)
}
