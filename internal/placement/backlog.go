package placement

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Backlog is the ready tasks, each once. Make it with NewBacklog.
type Backlog struct {
	lanes map[lane]*line
	tasks map[record.TaskRef]view.Ready
	runs  map[record.RunID]map[record.TaskRef]struct{}
}

// lane is what tasks must share to be waiting in one line.
type lane struct {
	queue    record.Queue
	handler  string
	pool     record.Pool
	workflow record.WorkflowName
}

func laneOf(r view.Ready) lane {
	return lane{queue: r.Queue, handler: r.Handler, pool: r.Pool, workflow: r.Workflow}
}

func compareLanes(a, b lane) int {
	return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.handler, b.handler), cmp.Compare(a.pool, b.pool),
		cmp.Compare(a.workflow, b.workflow))
}

// NewBacklog returns an empty backlog.
func NewBacklog() *Backlog {
	return &Backlog{
		lanes: map[lane]*line{}, tasks: map[record.TaskRef]view.Ready{}, runs: map[record.RunID]map[record.TaskRef]struct{}{},
	}
}

// Len counts the ready tasks.
func (b *Backlog) Len() int { return len(b.tasks) }

// Queues counts the ready tasks by queue.
func (b *Backlog) Queues() map[record.Queue]int {
	depth := map[record.Queue]int{}
	for k, l := range b.lanes {
		depth[k.queue] += len(l.list) - l.stale
	}
	maps.DeleteFunc(depth, func(_ record.Queue, n int) bool { return n == 0 })
	return depth
}

// Find returns a ready task.
func (b *Backlog) Find(t record.TaskRef) (view.Ready, bool) {
	r, ok := b.tasks[t]
	return r, ok
}

// Put adds a ready task, in the place of what was known of it.
func (b *Backlog) Put(r view.Ready) {
	t := r.Ref.TaskRef
	if old, ok := b.tasks[t]; ok {
		if same(old, r) {
			return
		}
		b.Drop(t)
	}
	b.tasks[t] = r
	if b.runs[t.Run] == nil {
		b.runs[t.Run] = map[record.TaskRef]struct{}{}
	}
	b.runs[t.Run][t] = struct{}{}
	l := b.lanes[laneOf(r)]
	if l == nil {
		l = &line{}
		b.lanes[laneOf(r)] = l
	}
	heap.Push(l, r)
}

// Drop takes out a task that is not ready any more; one that is not there is
// let pass.
func (b *Backlog) Drop(t record.TaskRef) {
	if r, ok := b.remove(t); ok {
		k := laneOf(r)
		b.lanes[k].stale++
		b.tidy(k)
	}
}

// DropRun takes out every task of a run.
func (b *Backlog) DropRun(id record.RunID) {
	for t := range maps.Clone(b.runs[id]) {
		b.Drop(t)
	}
}

func (b *Backlog) remove(t record.TaskRef) (view.Ready, bool) {
	r, ok := b.tasks[t]
	if !ok {
		return r, false
	}
	delete(b.tasks, t)
	delete(b.runs[t.Run], t)
	if len(b.runs[t.Run]) == 0 {
		delete(b.runs, t.Run)
	}
	return r, true
}

// holds says that an entry of a line is not stale.
func (b *Backlog) holds(r view.Ready) bool {
	now, ok := b.tasks[r.Ref.TaskRef]
	return ok && same(now, r)
}

// head returns the first task of a lane.
func (b *Backlog) head(k lane) (view.Ready, bool) {
	l := b.lanes[k]
	for l != nil && len(l.list) > 0 {
		if b.holds(l.list[0]) {
			return l.list[0], true
		}
		heap.Pop(l)
		l.stale--
	}
	delete(b.lanes, k)
	return view.Ready{}, false
}

// pop takes the first task of a lane out, which head has just returned.
func (b *Backlog) pop(k lane) {
	if r, ok := heap.Pop(b.lanes[k]).(view.Ready); ok {
		b.remove(r.Ref.TaskRef)
	}
}

// tidy makes a line anew once most of it is stale, so that its size stays in
// the measure of what waits in it.
func (b *Backlog) tidy(k lane) {
	l := b.lanes[k]
	if 2*l.stale <= len(l.list) {
		return
	}
	l.list = slices.DeleteFunc(l.list, func(r view.Ready) bool { return !b.holds(r) })
	l.stale = 0
	heap.Init(l)
	if len(l.list) == 0 {
		delete(b.lanes, k)
	}
}

// sorted lists the lanes in a fixed order.
func (b *Backlog) sorted() []lane { return slices.SortedFunc(maps.Keys(b.lanes), compareLanes) }

func same(a, b view.Ready) bool {
	return a.Ref == b.Ref && laneOf(a) == laneOf(b) && a.Priority == b.Priority && a.Since.Equal(b.Since) && slices.Equal(a.Keys, b.Keys)
}

// compareReady orders the tasks of a lane: priority, age, name.
func compareReady(a, b view.Ready) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since),
		cmp.Compare(a.Ref.Run, b.Ref.Run), cmp.Compare(a.Ref.Task, b.Ref.Task), cmp.Compare(a.Ref.Instance, b.Ref.Instance))
}

// line is a heap of ready tasks, some of them stale.
type line struct {
	list  []view.Ready
	stale int
}

// Len implements heap.Interface.
func (l *line) Len() int { return len(l.list) }

// Less implements heap.Interface.
func (l *line) Less(i, j int) bool { return compareReady(l.list[i], l.list[j]) < 0 }

// Swap implements heap.Interface.
func (l *line) Swap(i, j int) { l.list[i], l.list[j] = l.list[j], l.list[i] }

// Push implements heap.Interface.
func (l *line) Push(x any) {
	if r, ok := x.(view.Ready); ok {
		l.list = append(l.list, r)
	}
}

// Pop implements heap.Interface.
func (l *line) Pop() any {
	last := len(l.list) - 1
	r := l.list[last]
	l.list[last] = view.Ready{}
	l.list = l.list[:last]
	return r
}
