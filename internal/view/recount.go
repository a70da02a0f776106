package view

import (
	"errors"
	"fmt"
	"maps"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// Recount counts a run anew from its rows and compares that with what was kept
// event by event. A difference is a bug of this package; the error names each.
// The full pass does it for every run.
func (v *Active) Recount(id record.RunID) error {
	r, ok := v.runs[id]
	if !ok {
		return nil
	}
	fresh := tallies{states: map[record.AttemptState]int{}}
	var wrong []error
	for row := range r.Rows() {
		fresh.rows++
		if row.Live() {
			fresh.live++
			if v.held[row.Holder()][row.Ref()] != r {
				wrong = append(wrong, fmt.Errorf("the live row %s is not among those of its session", row.Ref()))
			}
		}
	}
	for i := range r.tasks {
		t := &r.tasks[i]
		fresh.count(t, +1)
		if up := r.tally(i); up != t.up {
			wrong = append(wrong, fmt.Errorf("the tally of %s is %+v, counted %+v", t.Ref.Name(), t.up, up))
		}
	}
	kept := r.tallies
	kept.states = r.Counts()
	if !same(kept, fresh) {
		wrong = append(wrong, fmt.Errorf("the counts are %+v, counted %+v", kept, fresh))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("recount run %s at revision %d: %w", id, v.rev, errors.Join(wrong...))
	}
	return nil
}

// tally counts the classes of a task's upstreams anew.
func (r *Run) tally(i int) spec.Tally {
	var up spec.Tally
	for _, above := range r.Graph.Up(i) {
		up.Add(r.tasks[above].Class())
	}
	return up
}

func same(a, b tallies) bool {
	return a.rows == b.rows && a.live == b.live && a.open == b.open && a.spoiling == b.spoiling && maps.Equal(a.states, b.states)
}
