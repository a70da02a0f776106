package spec

import (
	"strings"

	"github.com/writ-sched/writ/internal/record"
)

// graph checks that every need is there and that no task needs itself, over
// however many others.
func (v *validator) graph() {
	index := make(map[record.TaskID]int, len(v.w.Tasks))
	for i := range v.w.Tasks {
		if _, ok := index[v.w.Tasks[i].ID]; !ok {
			index[v.w.Tasks[i].ID] = i
		}
	}
	up := make([][]edge, len(v.w.Tasks))
	for i := range v.w.Tasks {
		up[i] = v.needs(i, index)
	}
	v.cycles(up)
}

// edge is one good need: the place in the list, and the task needed.
type edge struct{ place, above int }

func (v *validator) needs(i int, index map[record.TaskID]int) []edge {
	t := &v.w.Tasks[i]
	seen := make(map[record.TaskID]bool, len(t.Needs))
	edges := make([]edge, 0, len(t.Needs))
	for k, need := range t.Needs {
		here := taskPath(t).At("needs", Element(k))
		above, known := index[need]
		switch {
		case seen[need]:
			v.ps.add(here, "take one of them out", "%s stands here twice", quote(string(need)))
		case need == t.ID:
			v.ps.add(here, "take it out", "the task needs itself: %s → %s", t.ID, need)
		case !known:
			v.ps.add(here, v.nearTask(need), "there is no task %s", quote(string(need)))
		default:
			edges = append(edges, edge{place: k, above: above})
		}
		seen[need] = true
	}
	return edges
}

// nearTask is the hint for a task that is not there.
func (v *validator) nearTask(need record.TaskID) string {
	// Every misspelt need of a large file would look at every task of it.
	if len(v.w.Tasks) > 2000 || v.ps.full() {
		return ""
	}
	ids := make([]record.TaskID, len(v.w.Tasks))
	for i := range v.w.Tasks {
		ids[i] = v.w.Tasks[i].ID
	}
	near := Nearest(need, ids)
	if near == "" {
		return ""
	}
	return "did you mean " + string(near) + "?"
}

// The colours of the walk: a task not met yet, one on the trail, one whose
// needs have all been walked.
const (
	white = iota
	grey
	black
)

// walk is the search for cycles: from every task towards what it needs, with a
// trail of its own instead of recursion.
type walk struct {
	up     [][]edge
	colour []uint8
	next   []int // the need to follow next, by task
	place  []int // where on the trail a grey task stands
	trail  []int
	// named is the end of the stretch of the trail that lies on a cycle
	// already named. A cycle is named from its start to the trail's end, so
	// what is pushed later is beyond it.
	named int
}

func (s *walk) push(i int) {
	s.colour[i], s.place[i] = grey, len(s.trail)
	s.trail = append(s.trail, i)
}

func (s *walk) pop() {
	last := len(s.trail) - 1
	s.colour[s.trail[last]] = black
	s.trail = s.trail[:last]
	s.named = min(s.named, last)
}

// cycles names every cycle that shares no task of the trail with one named
// before; the others wait for that one to be mended.
func (v *validator) cycles(up [][]edge) {
	n := len(up)
	s := &walk{up: up, colour: make([]uint8, n), next: make([]int, n), place: make([]int, n)}
	for root := range up {
		if s.colour[root] == white {
			s.push(root)
		}
		for len(s.trail) > 0 {
			v.step(s)
		}
	}
}

// step follows the next need of the last task on the trail, or leaves it.
func (v *validator) step(s *walk) {
	i := s.trail[len(s.trail)-1]
	if s.next[i] == len(s.up[i]) {
		s.pop()
		return
	}
	e := s.up[i][s.next[i]]
	s.next[i]++
	switch s.colour[e.above] {
	case white:
		s.push(e.above)
	case grey:
		if start := s.place[e.above]; start >= s.named {
			v.cycle(s.trail[start:], e)
			s.named = len(s.trail)
		}
	}
}

// cycle names the cycle that need e of the last task of round closes.
func (v *validator) cycle(round []int, e edge) {
	var b strings.Builder
	for _, i := range round {
		b.WriteString(string(v.w.Tasks[i].ID) + " → ")
	}
	b.WriteString(string(v.w.Tasks[e.above].ID))
	last := &v.w.Tasks[round[len(round)-1]]
	v.ps.add(taskPath(last).At("needs", Element(e.place)), "read → as needs, and take one of these needs out",
		"closes a cycle of %d tasks: %s", len(round), b.String())
}
