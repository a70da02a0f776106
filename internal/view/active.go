package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// Kept is a record with the revisions of its key.
type Kept[T any] struct {
	Record    T
	CreateRev int64
	ModRev    int64
}

// SessionRef names one session of a worker.
type SessionRef struct {
	Worker  record.WorkerName
	Session record.SessionID
}

// Compare orders sessions by worker, then session.
func (s SessionRef) Compare(o SessionRef) int {
	return cmp.Or(cmp.Compare(s.Worker, o.Worker), cmp.Compare(s.Session, o.Session))
}

// SignalRef names a signal of a run or, with an empty run, of the cluster.
type SignalRef struct {
	Run  record.RunID
	Name string
}

// HolderRef names one place of a concurrency key.
type HolderRef struct {
	Name string
	Slot int
}

// Revision names one immutable revision of a workflow.
type Revision struct {
	Workflow record.WorkflowName
	Number   int
}

// Active is the active keyspace at one revision. Make it with New.
type Active struct {
	rev       int64
	runs      map[record.RunID]*Run
	graphs    map[Revision]*spec.Graph
	using     map[Revision]map[record.RunID]*Run
	perFlow   map[record.WorkflowName]map[record.RunID]*Run
	held      map[SessionRef]map[record.Ref]*Run
	marked    map[SessionRef]map[record.Ref]*Run
	perWork   map[record.WorkflowName]int // live rows
	perPool   map[record.Pool]int         // live rows
	workers   map[SessionRef]Kept[record.Worker]
	sessions  map[SessionRef]Kept[record.Session]
	replicas  map[record.ReplicaID]Kept[record.Replica]
	workflows map[record.WorkflowName]Kept[record.Workflow]
	pools     map[record.Pool]Kept[record.PoolLimit]
	holders   map[HolderRef]Kept[record.Holder]
	backfills map[string]Kept[record.Backfill]
	signals   map[SignalRef]Kept[record.Signal]
	touched   touches
}

// New returns an Active of an empty keyspace at revision 0.
func New() *Active {
	return &Active{
		runs:      map[record.RunID]*Run{},
		graphs:    map[Revision]*spec.Graph{},
		using:     map[Revision]map[record.RunID]*Run{},
		perFlow:   map[record.WorkflowName]map[record.RunID]*Run{},
		held:      map[SessionRef]map[record.Ref]*Run{},
		marked:    map[SessionRef]map[record.Ref]*Run{},
		perWork:   map[record.WorkflowName]int{},
		perPool:   map[record.Pool]int{},
		workers:   map[SessionRef]Kept[record.Worker]{},
		sessions:  map[SessionRef]Kept[record.Session]{},
		replicas:  map[record.ReplicaID]Kept[record.Replica]{},
		workflows: map[record.WorkflowName]Kept[record.Workflow]{},
		pools:     map[record.Pool]Kept[record.PoolLimit]{},
		holders:   map[HolderRef]Kept[record.Holder]{},
		backfills: map[string]Kept[record.Backfill]{},
		signals:   map[SignalRef]Kept[record.Signal]{},
		touched:   newTouches(),
	}
}

// FromList returns an Active that holds what was listed at revision rev. The
// order of the list does not matter. Compiled specs of the Active that it
// replaces are carried over with Graphs and Load.
func FromList(rev int64, list []record.Stored) *Active {
	v := New()
	for _, s := range list {
		v.Apply(record.Event(s))
	}
	v.Advance(rev)
	return v
}

// Rev is the revision up to which every event was applied.
func (v *Active) Rev() int64 { return v.rev }

// Advance says that nothing else happened up to rev. The owner calls it at the
// end of each batch of whole revisions.
func (v *Active) Advance(rev int64) { v.rev = max(v.rev, rev) }

// Run returns a run whose record is there.
func (v *Active) Run(id record.RunID) (*Run, bool) {
	r, ok := v.runs[id]
	if !ok || !r.known() {
		return nil, false
	}
	return r, true
}

// Runs returns every run whose record is there, sorted by id.
func (v *Active) Runs() []*Run { return known(v.runs) }

// RunsOf returns the runs of one workflow, sorted by id.
func (v *Active) RunsOf(w record.WorkflowName) []*Run { return known(v.perFlow[w]) }

func known(m map[record.RunID]*Run) []*Run {
	list := make([]*Run, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		if m[id].known() {
			list = append(list, m[id])
		}
	}
	return list
}

// Task returns a task of a run whose spec is loaded.
func (v *Active) Task(ref record.TaskRef) (*Task, bool) {
	r, ok := v.Run(ref.Run)
	if !ok {
		return nil, false
	}
	return r.Task(ref)
}

// Row returns one attempt row, whether the spec of its run is loaded or not.
func (v *Active) Row(ref record.Ref) (Row, bool) {
	r, ok := v.runs[ref.Run]
	if !ok {
		return Row{}, false
	}
	return find(r.rowsOf(ref.TaskRef), ref.N)
}

// Worker returns the liveness of a session; ok is false where its lease is
// gone.
func (v *Active) Worker(s SessionRef) (w Kept[record.Worker], ok bool) {
	w, ok = v.workers[s]
	return w, ok
}

// Workers returns every living session, sorted by worker and session.
func (v *Active) Workers() []Kept[record.Worker] {
	return inOrder(v.workers, SessionRef.Compare)
}

// Session returns the unleased memory of a session.
func (v *Active) Session(s SessionRef) (kept Kept[record.Session], ok bool) {
	kept, ok = v.sessions[s]
	return kept, ok
}

// Sessions returns every remembered session, sorted by worker and session.
func (v *Active) Sessions() []Kept[record.Session] {
	return inOrder(v.sessions, SessionRef.Compare)
}

// Held returns the live rows that a session holds (intents and running ones),
// sorted by run, task and attempt.
func (v *Active) Held(s SessionRef) []Row {
	refs := slices.SortedFunc(maps.Keys(v.held[s]), compareRefs)
	rows := make([]Row, 0, len(refs))
	for _, ref := range refs {
		if row, ok := v.Row(ref); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// Occupied counts the live rows that a session holds: the slots of it that are
// taken.
func (v *Active) Occupied(s SessionRef) int { return len(v.held[s]) }

// LiveOf counts the live rows of a workflow, over all of its runs.
func (v *Active) LiveOf(w record.WorkflowName) int { return v.perWork[w] }

// InPool counts the live rows of a pool.
func (v *Active) InPool(p record.Pool) int { return v.perPool[p] }

// Named says that a live row or the mark of an unproven death names the
// session.
func (v *Active) Named(s SessionRef) bool { return len(v.held[s]) > 0 || len(v.marked[s]) > 0 }

// Holding lists every session that a live row or a mark names, whether there is
// a record of it or not, sorted by worker and session.
func (v *Active) Holding() []SessionRef {
	list := slices.AppendSeq(slices.Collect(maps.Keys(v.held)), maps.Keys(v.marked))
	slices.SortFunc(list, SessionRef.Compare)
	return slices.Compact(list)
}

// MarkedBy returns the unproven deaths of a session, sorted by run, task and
// attempt.
func (v *Active) MarkedBy(s SessionRef) []Mark {
	var list []Mark
	for _, ref := range slices.SortedFunc(maps.Keys(v.marked[s]), compareRefs) {
		for _, m := range v.marked[s][ref].marks[ref.TaskRef] {
			if m.Ref() == ref {
				list = append(list, m)
			}
		}
	}
	return list
}

// Replicas returns the addresses of all replicas, sorted by id.
func (v *Active) Replicas() []Kept[record.Replica] {
	return inOrder(v.replicas, cmp.Compare[record.ReplicaID])
}

// Workflow returns the pointer to a workflow's current revision.
func (v *Active) Workflow(w record.WorkflowName) (kept Kept[record.Workflow], ok bool) {
	kept, ok = v.workflows[w]
	return kept, ok
}

// Workflows returns every workflow, sorted by name.
func (v *Active) Workflows() []Kept[record.Workflow] {
	return inOrder(v.workflows, cmp.Compare[record.WorkflowName])
}

// Pool returns the width of a pool.
func (v *Active) Pool(p record.Pool) (kept Kept[record.PoolLimit], ok bool) {
	kept, ok = v.pools[p]
	return kept, ok
}

// Pools returns every pool, sorted by name.
func (v *Active) Pools() []Kept[record.PoolLimit] {
	return inOrder(v.pools, cmp.Compare[record.Pool])
}

// Holders returns every occupied place of a concurrency key, sorted by key and
// place.
func (v *Active) Holders() []Kept[record.Holder] {
	return inOrder(v.holders, func(a, b HolderRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Slot, b.Slot))
	})
}

// Backfills returns every backfill, sorted by name.
func (v *Active) Backfills() []Kept[record.Backfill] {
	return inOrder(v.backfills, cmp.Compare[string])
}

// Signal returns a signal.
func (v *Active) Signal(s SignalRef) (kept Kept[record.Signal], ok bool) {
	kept, ok = v.signals[s]
	return kept, ok
}

// inOrder returns the values of m in the order of its keys.
func inOrder[K comparable, T any](m map[K]T, compare func(a, b K) int) []T {
	list := make([]T, 0, len(m))
	for _, k := range slices.SortedFunc(maps.Keys(m), compare) {
		list = append(list, m[k])
	}
	return list
}
