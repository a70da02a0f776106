package reconcile_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// stages are the latest rows that a task of the small scope may have: none,
// and one in each state. The queued one is an intent or waits, by turns.
func stages() []record.AttemptState {
	return append([]record.AttemptState{record.None}, record.AttemptStates()...)
}

// shape is a graph of n tasks in topological order: bit k says whether the
// k-th pair (lower, higher) is an edge.
func shape(n, bits int, rule spec.TriggerRule) *spec.Workflow {
	f := flowOf("w")
	k := 0
	for i := range n {
		t := task("t" + strconv.Itoa(i))
		for j := range i {
			if bits>>k&1 == 1 {
				t.Needs = append(t.Needs, record.TaskID("t"+strconv.Itoa(j)))
			}
			k++
		}
		if len(t.Needs) > 0 {
			t.TriggerRule = rule
		}
		f.Tasks = append(f.Tasks, t)
	}
	return f
}

// small is one input of the small scope.
type small struct {
	flow   *spec.Workflow
	graph  *spec.Graph
	states []record.AttemptState
}

func (s small) String() string {
	var text string
	for i, t := range s.flow.Tasks {
		text += fmt.Sprintf("%s%v %s=%q; ", t.ID, t.Needs, t.Rule(), s.states[i])
	}
	return text
}

const smallRun record.RunID = "w.one"

// row is the latest row of the i-th task, or false.
func (s small) row(i int, at time.Time) (record.Attempt, bool) {
	state := s.states[i]
	if state == record.None {
		return record.Attempt{}, false
	}
	a := record.Attempt{
		Schema: record.Schema, Run: smallRun, Task: s.flow.Tasks[i].ID, Attempt: 1, Kind: record.KindExec, State: state, EnteredAt: at,
		Queue: spec.DefaultQueue, OnLost: record.OnLostWait,
		Transitions: []record.Transition{{State: string(state), At: at, Rule: record.RuleStart, Write: "set"}},
	}
	if state == record.Running || state == record.Queued && i%2 == 0 {
		a.Token, a.Worker, a.Session = record.Token("tok"+strconv.Itoa(i)), "w1", "s1"
	}
	if state == record.Failed {
		a.Cause = record.Because(record.CauseExitCode, "")
	}
	return a, true
}

// world builds the input; with reversed the view takes it in the other order.
func (s small) world(t testing.TB, reversed bool) *world {
	t.Helper()
	w := newWorld(t)
	w.specs[view.Revision{Workflow: "w", Number: 1}] = s.graph
	puts := []record.Put{{Key: record.RunKey(smallRun), Value: w.running(smallRun)}}
	for i := range s.states {
		if a, ok := s.row(i, w.now); ok {
			puts = append(puts, record.Put{Key: record.AttemptKey(a.Ref()), Value: a})
		}
	}
	if reversed {
		slices.Reverse(puts)
	}
	w.set(puts...)
	w.enlist("w1", "s1", 8)
	return w
}

// scope calls visit with every stride-th input of a rule.
func scope(rule spec.TriggerRule, stride int, visit func(small)) (visited int) {
	all := stages()
	count := 0
	for n := 1; n <= 4; n++ {
		total := 1
		for range n {
			total *= len(all)
		}
		for bits := range 1 << (n * (n - 1) / 2) {
			flow := shape(n, bits, rule)
			graph := spec.Compile(flow)
			for code := range total {
				if count++; count%stride != 0 {
					continue
				}
				states := make([]record.AttemptState, n)
				for i, c := 0, code; i < n; i, c = i+1, c/len(all) {
					states[i] = all[c%len(all)]
				}
				visit(small{flow: flow, graph: graph, states: states})
				visited++
			}
		}
	}
	return visited
}

// mayRun is the second column of DESIGN's table, told apart from the rules'
// own code.
func mayRun(rule spec.TriggerRule, success, bad, skipped, open int) bool {
	switch rule {
	case spec.AllSuccess:
		return bad+skipped+open == 0
	case spec.AllFailed:
		return success+skipped+open == 0
	case spec.AllDone:
		return open == 0
	case spec.OneSuccess:
		return success > 0
	case spec.OneFailed:
		return bad > 0
	case spec.OneDone:
		return success+bad > 0
	case spec.NoneFailed:
		return bad+open == 0
	case spec.NoneFailedMinOneSuccess:
		return bad+open == 0 && success > 0
	case spec.NoneSkipped:
		return skipped+open == 0
	default:
		return rule == spec.Always
	}
}

// holds says that the trigger rule of the i-th task holds in the states.
func (s small) holds(i int, states []record.AttemptState) bool {
	var success, bad, skipped, open int
	for _, need := range s.flow.Tasks[i].Needs {
		j, _ := s.graph.Index(need)
		switch states[j] {
		case record.Success:
			success++
		case record.Failed, record.UpstreamFailed, record.Cancelled:
			bad++
		case record.Skipped:
			skipped++
		default:
			open++
		}
	}
	return mayRun(s.flow.Tasks[i].Rule(), success, bad, skipped, open)
}

// check holds one pass over the input against the invariants.
func (s small) check(t *testing.T) {
	t.Helper()
	w := s.world(t, false)
	turn := w.turn()
	res := reconcile.Pass(w.v, view.Touched{Full: true}, turn)
	name := s.String()
	require.Empty(t, res.Faults, name)
	other := s.world(t, true)
	require.Equal(t, res, reconcile.Pass(other.v, view.Touched{Full: true}, turn), name)
	for _, r := range res.Ready {
		i, _ := s.graph.Index(r.Ref.Task)
		require.Contains(t, []record.AttemptState{record.None, record.Queued, record.Abandoned}, s.states[i], "I5 I2 %s", name)
		if s.states[i] == record.None {
			require.True(t, s.holds(i, s.states), "I6 %s", name)
		}
	}
	for _, c := range res.Changes {
		for _, p := range c.Put {
			if a, ok := p.Value.(record.Attempt); ok && (a.State == record.Skipped || a.State == record.UpstreamFailed) {
				i, _ := s.graph.Index(a.Task)
				require.False(t, s.holds(i, s.states), "%s", name)
			}
		}
		require.True(t, w.commit(c, record.Leader), name)
	}
	require.NoError(t, w.v.Recount(smallRun), name)
	s.rowsInOrder(t, w)
	// What the first pass did is done: the second finds at most what the new
	// rows lead to, and never a row of the same task and number.
	again := reconcile.Pass(w.v, view.Touched{Full: true}, w.turn())
	for _, c := range again.Changes {
		for _, p := range c.Put {
			for _, old := range res.Changes {
				require.NotContains(t, keysOf(old), p.Key, name)
			}
		}
	}
	s.everyTaskIsAccountedFor(t, w, again)
}

func keysOf(c record.Change) []record.Key {
	var keys []record.Key
	for _, p := range c.Put {
		keys = append(keys, p.Key)
	}
	return keys
}

// rowsInOrder is I2: numbers without a hole, only the last not terminal.
func (s small) rowsInOrder(t *testing.T, w *world) {
	t.Helper()
	r, _ := w.v.Run(smallRun)
	for task := range r.Tasks() {
		for i, row := range task.Rows() {
			require.Equal(t, i+1, row.Attempt.Attempt, "I2 %s", s)
			require.True(t, row.State.Terminal() || i == len(task.Rows())-1, "I2 %s", s)
		}
	}
}

// everyTaskIsAccountedFor is I8: the run ends, or a task goes on, or it is said
// what is waited for.
func (s small) everyTaskIsAccountedFor(t *testing.T, w *world, res reconcile.Result) {
	t.Helper()
	r, _ := w.v.Run(smallRun)
	if r.Record.State.Terminal() {
		require.Zero(t, r.Open())
		return
	}
	require.NotZero(t, len(res.Changes)+len(res.Ready)+r.Live(), "I8 %s", s)
}

// converge lets a worker run everything to success and counts the passes.
func (s small) converge(t *testing.T) {
	t.Helper()
	w := s.world(t, false)
	w.watch = func(before, _ record.Attempt) { require.False(t, before.State.Terminal(), "I3 %s", s) }
	session := view.SessionRef{Worker: "w1", Session: "s1"}
	for passes := 1; ; passes++ {
		require.LessOrEqual(t, passes, 3*len(s.states)+3, "the run does not end: %s", s)
		for _, r := range w.pass().Ready {
			require.True(t, w.give(r, session))
		}
		for _, row := range w.v.Held(session) {
			require.True(t, w.report(row.Ref(), record.Success, record.Cause{}, nil))
		}
		if r, _ := w.v.Run(smallRun); r.Record.State.Terminal() {
			break
		}
	}
	s.rowsInOrder(t, w)
	w.end(smallRun)
}

func TestEverySmallGraphInEveryState(t *testing.T) {
	t.Parallel()
	// A prime stride walks through all shapes and states alike.
	checked, converged := 1, 53
	if testing.Short() {
		checked, converged = 997, 9973
	}
	for _, rule := range spec.TriggerRules() {
		t.Run(string(rule), func(t *testing.T) {
			t.Parallel()
			visited := scope(rule, checked, func(s small) { s.check(t) })
			if checked == 1 {
				require.Equal(t, 9+2*81+8*729+64*6561, visited)
			}
			scope(rule, converged, func(s small) { s.converge(t) })
		})
	}
}
