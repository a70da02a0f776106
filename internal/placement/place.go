package placement

import (
	"cmp"

	"github.com/writ-sched/writ/internal/view"
)

// Place gives out free slots, at most limit of them where limit is not 0, and
// takes what it assigned out of the backlog; the caller puts back what it
// could not commit. The fleet is changed along: its free slots go down.
func (b *Backlog) Place(f *Fleet, limit int) []Assignment {
	var list []Assignment
	open := b.sorted()
	for len(open) > 0 && (limit == 0 || len(list) < limit) {
		best, kept := b.choose(f, open)
		open = kept
		if best < 0 {
			break
		}
		r, _ := b.head(open[best])
		i := f.seat(r)
		f.Seats[i].Free--
		f.take(r)
		list = append(list, Assignment{Ready: r, Session: f.Seats[i].Session})
		b.pop(open[best])
	}
	return list
}

// choose returns the lane whose head goes next, as an index into what it keeps
// of lanes: those that still have a task, a session and a place in their pool.
// A lane that has none gets none in this round, since slots only go.
func (b *Backlog) choose(f *Fleet, lanes []lane) (best int, kept []lane) {
	best = -1
	var first view.Ready
	kept = lanes[:0]
	for _, k := range lanes {
		r, ok := b.head(k)
		if !ok || f.full(k.pool) || f.seat(r) < 0 {
			continue
		}
		kept = append(kept, k)
		if best < 0 || f.before(r, first) {
			best, first = len(kept)-1, r
		}
	}
	return best, kept
}

// before says that a goes before o: priority, then the workflow with the
// fewest live slots, then age.
func (f *Fleet) before(a, o view.Ready) bool {
	return cmp.Or(cmp.Compare(o.Priority, a.Priority), cmp.Compare(f.Live[a.Workflow], f.Live[o.Workflow]), compareReady(a, o)) < 0
}
