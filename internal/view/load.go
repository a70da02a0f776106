package view

import (
	"cmp"
	"maps"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

func (r *Run) revision() Revision {
	return Revision{Workflow: r.Record.Workflow, Number: r.Record.Revision}
}

// Missing lists the revisions that active runs need and that were not loaded,
// sorted by workflow and number.
func (v *Active) Missing() []Revision {
	var list []Revision
	for rev := range v.using {
		if _, ok := v.graphs[rev]; !ok {
			list = append(list, rev)
		}
	}
	slices.SortFunc(list, func(a, b Revision) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Number, b.Number))
	})
	return list
}

// Load gives the compiled spec of one revision to the active runs that need
// it; they are touched by it. A revision that no run needs is let pass.
func (v *Active) Load(rev Revision, g *spec.Graph) {
	if _, ok := v.graphs[rev]; ok || len(v.using[rev]) == 0 {
		return
	}
	v.graphs[rev] = g
	for _, id := range slices.Sorted(maps.Keys(v.using[rev])) {
		v.equip(v.using[rev][id], g)
	}
}

// Graph returns the compiled spec of a revision that an active run uses.
func (v *Active) Graph(rev Revision) (*spec.Graph, bool) {
	g, ok := v.graphs[rev]
	return g, ok
}

// Adopt takes over what compiled specs another Active has: after a new list,
// the revisions of the runs that are still there need not be read again.
func (v *Active) Adopt(old *Active) {
	for _, rev := range v.Missing() {
		if g, ok := old.graphs[rev]; ok {
			v.Load(rev, g)
		}
	}
}

// TouchAll says that everything is touched, as after a list.
func (v *Active) TouchAll() { v.touched.full = true }

// use notes that a run needs its revision, and equips it where that is there.
func (v *Active) use(r *Run) {
	link(v.using, r.revision(), r)
	if g, ok := v.graphs[r.revision()]; ok && r.Graph == nil {
		v.equip(r, g)
	}
}

// unuse takes the spec from a run; a spec that nobody uses is let go.
func (v *Active) unuse(r *Run) {
	rev := r.revision()
	unlink(v.using, rev, r)
	if len(v.using[rev]) == 0 {
		delete(v.graphs, rev)
	}
	for i := range r.tasks {
		if t := &r.tasks[i]; len(t.rows) > 0 {
			r.strays[t.Ref] = t.rows
		}
	}
	r.Graph, r.tasks = nil, nil
	r.open, r.spoiling = 0, 0
	clear(r.states)
}

// equip makes the tasks of a run and sorts its rows into them.
func (v *Active) equip(r *Run, g *spec.Graph) {
	v.touched.run(r)
	r.Graph = g
	r.tasks = make([]Task, g.Len())
	for i := range r.tasks {
		s := g.Task(i)
		ref := record.TaskRef{Run: r.id, Task: s.ID}
		r.tasks[i] = Task{Ref: ref, Index: i, Spec: s, rows: r.strays[ref], cover: r.cover[s.ID]}
		r.tasks[i].settle()
		delete(r.strays, ref)
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		r.count(t, +1)
		for _, below := range g.Down(i) {
			r.tasks[below].weigh(t)
		}
	}
}
