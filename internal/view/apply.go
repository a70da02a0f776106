package view

import (
	"cmp"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// Apply takes in one event of the active keyspace; events of other families,
// and values of a type that their key does not have, are let pass. Several
// events of one revision may come in any order.
func (v *Active) Apply(e record.Event) {
	v.rev = max(v.rev, e.ModRev)
	switch e.Key.Family {
	case record.FamilyRun:
		v.applyRun(e)
	case record.FamilyAttempt:
		v.applyRow(e)
	case record.FamilyClear:
		v.applyClear(e)
	case record.FamilyUnproven:
		v.applyMark(e)
	case record.FamilyWorker, record.FamilySession:
		v.applySession(e)
	case record.FamilyReplica:
		v.touched.replicas = true
		keep(v.replicas, record.ReplicaID(e.Key.Name), e)
	case record.FamilyWorkflow:
		v.touched.workflows[record.WorkflowName(e.Key.Name)] = struct{}{}
		keep(v.workflows, record.WorkflowName(e.Key.Name), e)
	case record.FamilyPool:
		v.touched.pools[record.Pool(e.Key.Name)] = struct{}{}
		keep(v.pools, record.Pool(e.Key.Name), e)
	case record.FamilyHolder:
		v.touched.others = true
		keep(v.holders, HolderRef{Name: e.Key.Name, Slot: int(e.Key.N)}, e)
	case record.FamilyBackfill:
		v.touched.others = true
		keep(v.backfills, e.Key.Name, e)
	case record.FamilySignal:
		v.touched.others = true
		keep(v.signals, SignalRef{Run: e.Key.Run, Name: e.Key.Name}, e)
	default:
	}
}

// keep puts or deletes one entry of a plain family.
func keep[K comparable, T record.Value](m map[K]Kept[T], k K, e record.Event) {
	if e.Value == nil {
		delete(m, k)
		return
	}
	if value, ok := e.Value.(T); ok {
		m[k] = Kept[T]{Record: value, CreateRev: e.CreateRev, ModRev: e.ModRev}
	}
}

func (v *Active) applySession(e record.Event) {
	ref := SessionRef{Worker: record.WorkerName(e.Key.Name), Session: e.Key.Session}
	v.touched.sessions[ref] = struct{}{}
	if e.Key.Family == record.FamilyWorker {
		keep(v.workers, ref, e)
	} else {
		keep(v.sessions, ref, e)
	}
}

// shell returns a run, made empty where it is not there yet: rows may come
// before their run.
func (v *Active) shell(id record.RunID) *Run {
	r, ok := v.runs[id]
	if !ok {
		r = newRun(id)
		v.runs[id] = r
		link(v.perFlow, id.Workflow(), r)
	}
	return r
}

// drop lets go of a run of which nothing is left.
func (v *Active) drop(r *Run) {
	if r.vacant() {
		delete(v.runs, r.id)
		unlink(v.perFlow, r.id.Workflow(), r)
	}
}

func link[K comparable](m map[K]map[record.RunID]*Run, k K, r *Run) {
	if m[k] == nil {
		m[k] = map[record.RunID]*Run{}
	}
	m[k][r.id] = r
}

func unlink[K comparable](m map[K]map[record.RunID]*Run, k K, r *Run) {
	delete(m[k], r.id)
	if len(m[k]) == 0 {
		delete(m, k)
	}
}

func (v *Active) applyRun(e record.Event) {
	value, put := e.Value.(record.Run)
	if !put && e.Value != nil {
		return
	}
	r := v.shell(e.Key.Run)
	v.touched.run(r)
	if !put {
		v.unuse(r)
		r.Record, r.CreateRev, r.ModRev = record.Run{}, 0, 0
		v.drop(r)
		return
	}
	if r.known() && r.revision() != (Revision{Workflow: value.Workflow, Number: value.Revision}) {
		v.unuse(r)
	}
	r.Record, r.CreateRev, r.ModRev = value, e.CreateRev, e.ModRev
	v.use(r)
}

func (v *Active) applyRow(e record.Event) {
	ref := record.Ref{TaskRef: record.TaskRef{Run: e.Key.Run, Task: e.Key.Task, Instance: e.Key.Instance}, N: int(e.Key.N)}
	value, put := e.Value.(record.Attempt)
	if !put && e.Value != nil {
		return
	}
	r := v.shell(ref.Run)
	v.touched.task(ref.TaskRef)
	old, had := find(r.rowsOf(ref.TaskRef), ref.N)
	if had && old.Live() {
		v.occupy(r, old, -1)
	}
	row := Row{Attempt: value, CreateRev: e.CreateRev, ModRev: e.ModRev}
	if put && row.Live() {
		v.occupy(r, row, +1)
	}
	r.rows += number(put) - number(had)
	v.write(r, ref, func(rows []Row) []Row {
		if put {
			return with(rows, row)
		}
		return without(rows, ref.N)
	})
	v.drop(r)
}

// occupy counts a live row in or, with by -1, out.
func (v *Active) occupy(r *Run, row Row, by int) {
	r.live += by
	bump(v.perWork, r.id.Workflow(), by)
	if row.Pool != "" {
		bump(v.perPool, row.Pool, by)
	}
	if by > 0 {
		note(v.held, row.Holder(), row.Ref(), r)
	} else {
		note(v.held, row.Holder(), row.Ref(), nil)
	}
}

func bump[K comparable](m map[K]int, k K, by int) {
	if m[k] += by; m[k] == 0 {
		delete(m, k)
	}
}

// write changes the rows of one task and what is counted of them.
func (v *Active) write(r *Run, ref record.Ref, change func([]Row) []Row) {
	t, ok := r.Task(ref.TaskRef)
	if !ok {
		rows := change(r.strays[ref.TaskRef])
		if len(rows) == 0 {
			delete(r.strays, ref.TaskRef)
		} else {
			r.strays[ref.TaskRef] = rows
		}
		return
	}
	v.recast(r, t, func() { t.rows = change(t.rows) })
}

// recast lets f change what a task's state is taken from, and moves the counts
// of the run and of the tasks below along.
func (v *Active) recast(r *Run, t *Task, f func()) {
	before := t.Class()
	r.count(t, -1)
	f()
	t.settle()
	r.count(t, +1)
	if t.Class() == before {
		return
	}
	for _, i := range r.Graph.Down(t.Index) {
		below := &r.tasks[i]
		below.up.Remove(before)
		below.weigh(t)
		v.touched.below[below.Ref] = struct{}{}
	}
}

// count adds a task to the counts of its run, or with by -1 takes it out.
func (c *tallies) count(t *Task, by int) {
	c.states[t.State()] += by
	if t.Class() == spec.ClassOpen {
		c.open += by
	}
	if t.spoils() {
		c.spoiling += by
	}
}

func (v *Active) applyClear(e record.Event) {
	value, put := e.Value.(record.Clear)
	if !put && e.Value != nil {
		return
	}
	r := v.shell(e.Key.Run)
	v.touched.run(r)
	r.clears = slices.DeleteFunc(slices.Clone(r.clears), func(c Clear) bool { return int64(c.Seq) == e.Key.N })
	if put {
		c := Clear{Clear: value, ModRev: e.ModRev, FirstRev: cmp.Or(value.Rev, e.CreateRev)}
		r.clears = append(r.clears, c)
		slices.SortFunc(r.clears, func(a, b Clear) int { return cmp.Compare(a.Seq, b.Seq) })
		for _, id := range value.Tasks {
			if c.FirstRev > r.cover[id] {
				v.lay(r, id, c.FirstRev)
			}
		}
	}
	v.drop(r)
}

// lay puts a clear over a task. Clears are only ever deleted with their run,
// so no cover is lifted again.
func (v *Active) lay(r *Run, id record.TaskID, rev int64) {
	r.cover[id] = rev
	if t, ok := r.Task(record.TaskRef{Run: r.id, Task: id}); ok {
		v.recast(r, t, func() { t.cover = rev })
	}
}

func (v *Active) applyMark(e record.Event) {
	value, put := e.Value.(record.Unproven)
	if !put && e.Value != nil {
		return
	}
	r := v.shell(e.Key.Run)
	ref := record.TaskRef{Run: e.Key.Run, Task: e.Key.Task, Instance: e.Key.Instance}
	v.touched.task(ref)
	kept := slices.DeleteFunc(slices.Clone(r.marks[ref]), func(m Mark) bool {
		gone := int64(m.Attempt) == e.Key.N
		if gone {
			note(v.marked, m.Holder(), m.Ref(), nil)
		}
		return gone
	})
	if put {
		m := Mark{Unproven: value, CreateRev: e.CreateRev, ModRev: e.ModRev}
		note(v.marked, m.Holder(), m.Ref(), r)
		kept = append(kept, m)
		slices.SortFunc(kept, func(a, b Mark) int { return cmp.Compare(a.Attempt, b.Attempt) })
	}
	if r.marks[ref] = kept; len(kept) == 0 {
		delete(r.marks, ref)
	}
	v.drop(r)
}

// note puts a row into the index of its session or, with a nil run, takes it
// out.
func note(index map[SessionRef]map[record.Ref]*Run, s SessionRef, ref record.Ref, r *Run) {
	if r != nil {
		if index[s] == nil {
			index[s] = map[record.Ref]*Run{}
		}
		index[s][ref] = r
		return
	}
	delete(index[s], ref)
	if len(index[s]) == 0 {
		delete(index, s)
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}
