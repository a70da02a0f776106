package view

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// Clear is an operator's clear with the revision that rows are measured by.
type Clear struct {
	record.Clear
	ModRev int64
	// FirstRev is the create revision as the clear first stood.
	FirstRev int64
}

// Mark is a death that is not proven yet.
type Mark struct {
	record.Unproven
	CreateRev int64
	ModRev    int64
}

// Ref names the attempt that the mark is about.
func (m Mark) Ref() record.Ref {
	return record.TaskRef{Run: m.Run, Task: m.Task, Instance: m.Instance}.At(m.Attempt)
}

// Holder names the session whose death is not proven.
func (m Mark) Holder() SessionRef { return SessionRef{Worker: m.Worker, Session: m.Session} }

// Run is one active run with its tasks.
type Run struct {
	// Record is the run record; its Run field is empty in a run of which so
	// far only rows were seen, which Active does not hand out.
	Record    record.Run
	CreateRev int64
	ModRev    int64
	// Graph is nil until the spec was loaded; the run has no tasks so far.
	Graph *spec.Graph

	id     record.RunID
	tasks  []Task
	strays map[record.TaskRef][]Row // rows of tasks that the graph does not know
	clears []Clear
	cover  map[record.TaskID]int64 // the newest clear over a task
	marks  map[record.TaskRef][]Mark
	tallies
}

// tallies are what a run counts; Recount makes them anew.
type tallies struct {
	states   map[record.AttemptState]int // of the tasks of the graph
	rows     int
	live     int // rows that a worker holds, those under a clear included
	open     int // tasks that are not closed
	spoiling int // tasks that make the run fail
}

func newRun(id record.RunID) *Run {
	return &Run{
		id: id, strays: map[record.TaskRef][]Row{}, cover: map[record.TaskID]int64{}, marks: map[record.TaskRef][]Mark{},
		tallies: tallies{states: map[record.AttemptState]int{}},
	}
}

func (r *Run) known() bool { return r.Record.Run != "" }

// vacant says that nothing of the run is left.
func (r *Run) vacant() bool {
	return !r.known() && r.rows == 0 && len(r.clears) == 0 && len(r.marks) == 0
}

// ID is the run's id.
func (r *Run) ID() record.RunID { return r.id }

// Loaded says that the run's spec is there, so that its tasks can be told.
func (r *Run) Loaded() bool { return r.Graph != nil }

// Len is the number of tasks; zero before the spec was loaded.
func (r *Run) Len() int { return len(r.tasks) }

// At returns the i-th task of the graph.
func (r *Run) At(i int) *Task { return &r.tasks[i] }

// Task returns one task of the graph.
func (r *Run) Task(ref record.TaskRef) (*Task, bool) {
	if r.Graph == nil || ref.Instance != "" {
		return nil, false
	}
	i, ok := r.Graph.Index(ref.Task)
	if !ok {
		return nil, false
	}
	return &r.tasks[i], true
}

// Tasks yields every task in the order of the spec.
func (r *Run) Tasks() iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for i := range r.tasks {
			if !yield(&r.tasks[i]) {
				return
			}
		}
	}
}

// Rows yields every row: task by task in the order of the spec, by number, and
// after them the rows of tasks that the spec (not loaded yet) does not know.
func (r *Run) Rows() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		for i := range r.tasks {
			for _, row := range r.tasks[i].rows {
				if !yield(row) {
					return
				}
			}
		}
		for _, ref := range slices.SortedFunc(maps.Keys(r.strays), compareTasks) {
			for _, row := range r.strays[ref] {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// Attempts counts the rows.
func (r *Run) Attempts() int { return r.rows }

// Counts returns how many tasks of the spec are in each state; tasks without a
// row that counts are under record.None. States without a task are left out.
func (r *Run) Counts() map[record.AttemptState]int {
	return maps.Collect(func(yield func(record.AttemptState, int) bool) {
		for s, n := range r.states {
			if n != 0 && !yield(s, n) {
				return
			}
		}
	})
}

// Count is the number of tasks in one state.
func (r *Run) Count(s record.AttemptState) int { return r.states[s] }

// Live counts the rows that a worker holds, rows under a clear included.
func (r *Run) Live() int { return r.live }

// Open counts the tasks that are not closed: those without a terminal row that
// counts, and those that are owed a further attempt.
func (r *Run) Open() int { return r.open }

// Spoiled says that a closed task makes the run fail: one without
// allow_failure that ended failed or upstream_failed.
func (r *Run) Spoiled() bool { return r.spoiling > 0 }

// Clears returns the run's clears by sequence.
func (r *Run) Clears() []Clear { return r.clears }

// Marks returns the unproven deaths of one task, by attempt.
func (r *Run) Marks(ref record.TaskRef) []Mark { return r.marks[ref] }

// AllMarks returns every unproven death, by task and attempt.
func (r *Run) AllMarks() []Mark {
	var list []Mark
	for _, ref := range slices.SortedFunc(maps.Keys(r.marks), compareTasks) {
		list = append(list, r.marks[ref]...)
	}
	return list
}

// rowsOf returns the rows of a task, wherever they are kept.
func (r *Run) rowsOf(ref record.TaskRef) []Row {
	if t, ok := r.Task(ref); ok {
		return t.rows
	}
	return r.strays[ref]
}

func compareTasks(a, b record.TaskRef) int {
	return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Instance, b.Instance))
}

func compareRefs(a, b record.Ref) int {
	return cmp.Or(compareTasks(a.TaskRef, b.TaskRef), cmp.Compare(a.N, b.N))
}
