package spec

import "github.com/writ-sched/writ/internal/record"

// Graph is a workflow by index: the i-th task of the workflow is task i. It is
// never changed after Compile, so it may be shared; the slices that it returns
// belong to it.
type Graph struct {
	workflow *Workflow
	index    map[record.TaskID]int
	up, down rows
	order    []int
}

// rows are lists of indices, all in one slice: 20,000 tasks cost two
// allocations and not 20,000.
type rows struct {
	all  []int
	from []int // row i is all[from[i]:from[i+1]]
}

func (r *rows) row(i int) []int { return r.all[r.from[i]:r.from[i+1]:r.from[i+1]] }

// Compile turns a workflow that Validate accepts into its graph. It keeps w,
// which must not be changed any more. A need that names no task is left out,
// and so are tasks on a cycle from the order; on a validated workflow there
// are none.
func Compile(w *Workflow) *Graph {
	g := &Graph{workflow: w, index: make(map[record.TaskID]int, len(w.Tasks))}
	for i := range w.Tasks {
		g.index[w.Tasks[i].ID] = i
	}
	g.link()
	g.sort()
	return g
}

func (g *Graph) link() {
	n := len(g.workflow.Tasks)
	g.up.from, g.down.from = make([]int, n+1), make([]int, n+1)
	for i := range n {
		for _, need := range g.workflow.Tasks[i].Needs {
			if above, ok := g.index[need]; ok {
				g.up.all = append(g.up.all, above)
				g.down.from[above+1]++
			}
		}
		g.up.from[i+1] = len(g.up.all)
	}
	for i := range n {
		g.down.from[i+1] += g.down.from[i]
	}
	g.down.all = make([]int, len(g.up.all))
	next := append([]int(nil), g.down.from...)
	for i := range n {
		for _, above := range g.Up(i) {
			g.down.all[next[above]] = i
			next[above]++
		}
	}
}

// sort finds a topological order: among the tasks that could come next, the
// one that became free first, and of those the first in the file.
func (g *Graph) sort() {
	waits := make([]int, g.Len())
	g.order = make([]int, 0, g.Len())
	for i := range waits {
		if waits[i] = len(g.Up(i)); waits[i] == 0 {
			g.order = append(g.order, i)
		}
	}
	for at := 0; at < len(g.order); at++ {
		for _, below := range g.Down(g.order[at]) {
			if waits[below]--; waits[below] == 0 {
				g.order = append(g.order, below)
			}
		}
	}
}

// Workflow returns what was compiled.
func (g *Graph) Workflow() *Workflow { return g.workflow }

// Len is the number of tasks.
func (g *Graph) Len() int { return len(g.workflow.Tasks) }

// Task returns the i-th task.
func (g *Graph) Task(i int) *Task { return &g.workflow.Tasks[i] }

// Index returns the index of a task; ok is false for one that is not there.
func (g *Graph) Index(id record.TaskID) (i int, ok bool) {
	i, ok = g.index[id]
	return i, ok
}

// Up returns the direct upstreams of a task, in the order of its needs.
func (g *Graph) Up(i int) []int { return g.up.row(i) }

// Down returns the tasks that need a task, in the order of the workflow.
func (g *Graph) Down(i int) []int { return g.down.row(i) }

// Order returns all tasks, every one after its upstreams.
func (g *Graph) Order() []int { return g.order }

// Downstream returns the tasks of set and all that follow from them, in
// topological order.
func (g *Graph) Downstream(set ...int) []int {
	in := make([]bool, g.Len())
	for _, i := range set {
		in[i] = true
	}
	var all []int
	for _, i := range g.order {
		if !in[i] {
			continue
		}
		all = append(all, i)
		for _, below := range g.Down(i) {
			in[below] = true
		}
	}
	return all
}
