package spec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// chain is a workflow of n tasks, each needing the one before.
func chain(n int) *spec.Workflow {
	w := &spec.Workflow{Name: "chain", Tasks: make([]spec.Task, n)}
	for i := range w.Tasks {
		w.Tasks[i] = spec.Task{ID: number(i), Run: "true"}
		if i > 0 {
			w.Tasks[i].Needs = []record.TaskID{number(i - 1)}
		}
	}
	return w
}

// fan is a root, n tasks that need it, and a join that needs them all.
func fan(n int) *spec.Workflow {
	w := &spec.Workflow{Name: "fan", Tasks: []spec.Task{{ID: "root", Run: "true"}}}
	join := spec.Task{ID: "join", Run: "true"}
	for i := range n {
		w.Tasks = append(w.Tasks, spec.Task{ID: number(i), Run: "true", Needs: []record.TaskID{"root"}})
		join.Needs = append(join.Needs, number(i))
	}
	w.Tasks = append(w.Tasks, join)
	return w
}

func number(i int) record.TaskID { return record.TaskID(fmt.Sprintf("t%05d", i)) }

func TestGraphIsTheWorkflowByIndex(t *testing.T) {
	t.Parallel()
	w := fan(3)
	g := spec.Compile(w)
	require.Same(t, w, g.Workflow())
	require.Equal(t, 5, g.Len())
	require.Equal(t, record.TaskID("join"), g.Task(4).ID)
	i, ok := g.Index("t00001")
	require.True(t, ok)
	require.Equal(t, 2, i)
	_, ok = g.Index("none")
	require.False(t, ok)
	require.Empty(t, g.Up(0))
	require.Equal(t, []int{1, 2, 3}, g.Down(0))
	require.Equal(t, []int{1, 2, 3}, g.Up(4))
	require.Equal(t, []int{4}, g.Down(2))
	require.Equal(t, []int{0, 1, 2, 3, 4}, g.Order())
	require.Equal(t, []int{2, 4}, g.Downstream(2))
	require.Equal(t, []int{1, 3, 4}, g.Downstream(3, 1))
	require.Empty(t, g.Downstream())
}

func TestOrderDoesNotDependOnTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	w := chain(3)
	w.Tasks[0], w.Tasks[2] = w.Tasks[2], w.Tasks[0]
	require.Empty(t, spec.Validate(w))
	require.Equal(t, []int{2, 1, 0}, spec.Compile(w).Order())
}

func TestGraphsOfAnyShapeAreOrdered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		w := &spec.Workflow{Name: "any"}
		for i := range n {
			task := spec.Task{ID: number(i), Run: "true"}
			for above := range i {
				if rapid.Bool().Draw(t, "edge") {
					task.Needs = append(task.Needs, number(above))
				}
			}
			w.Tasks = append(w.Tasks, task)
		}
		require.Empty(t, spec.Validate(w))
		w.Tasks = rapid.Permutation(w.Tasks).Draw(t, "order")
		g := spec.Compile(w)
		require.Len(t, g.Order(), n)
		place := make([]int, n)
		for at, i := range g.Order() {
			place[i] = at
		}
		for i := range n {
			for _, above := range g.Up(i) {
				require.Less(t, place[above], place[i])
				require.Contains(t, g.Down(above), i)
				require.Contains(t, g.Downstream(above), i)
			}
		}
	})
}

func TestO28DeepAndWideGraphsAreTaken(t *testing.T) {
	t.Parallel()
	deep := chain(20_000)
	require.Empty(t, spec.Validate(deep))
	g := spec.Compile(deep)
	require.Len(t, g.Order(), 20_000)
	require.Len(t, g.Downstream(0), 20_000)

	wide := fan(10_000)
	require.Empty(t, spec.Validate(wide))
	g = spec.Compile(wide)
	require.Len(t, g.Down(0), 10_000)
	require.Len(t, g.Up(g.Len()-1), 10_000)
}

func BenchmarkValidateAndCompile(b *testing.B) {
	for name, w := range map[string]*spec.Workflow{"chain-20000": chain(20_000), "fan-10000": fan(10_000)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				require.Empty(b, spec.Validate(w))
				require.NotNil(b, spec.Compile(w))
			}
		})
	}
}
