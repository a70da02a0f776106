package view_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

const runID record.RunID = "w.one"

// diamond is a above b and c, and both above d.
func diamond() *spec.Graph {
	return spec.Compile(&spec.Workflow{Name: "w", Tasks: []spec.Task{
		{ID: "a", Run: "true", Retries: spec.Retry{Limit: 1}},
		{ID: "b", Run: "true", Needs: []record.TaskID{"a"}},
		{ID: "c", Run: "true", Needs: []record.TaskID{"a"}, AllowFailure: true},
		{ID: "d", Run: "true", Needs: []record.TaskID{"b", "c"}},
	}})
}

// feed is a store of active keys that hands its events to a view.
type feed struct {
	v    *view.Active
	rev  int64
	keys map[record.Key]record.Stored
}

// setup is a view with the run and its spec in it, nothing touched.
func setup() *feed {
	f := &feed{v: view.New(), keys: map[record.Key]record.Stored{}}
	f.put(record.RunKey(runID), record.Run{Run: runID, Workflow: "w", Revision: 1, State: record.RunRunning})
	f.v.Load(view.Revision{Workflow: "w", Number: 1}, diamond())
	f.v.Take()
	return f
}

func (f *feed) put(k record.Key, v record.Value) {
	f.rev++
	s := record.Stored{Key: k, Value: v, CreateRev: f.rev, ModRev: f.rev}
	if old, ok := f.keys[k]; ok {
		s.CreateRev = old.CreateRev
	}
	f.keys[k] = s
	f.v.Apply(record.Event{Key: k, Value: v, CreateRev: s.CreateRev, ModRev: f.rev})
}

func (f *feed) drop(k record.Key) {
	f.rev++
	delete(f.keys, k)
	f.v.Apply(record.Event{Key: k, ModRev: f.rev})
}

func attempt(id record.TaskID, n int, s record.AttemptState) record.Attempt {
	a := record.Attempt{Run: runID, Task: id, Attempt: n, Kind: record.KindExec, State: s, Idempotent: true}
	if s == record.Running {
		a.Token, a.Worker, a.Session = record.Token(fmt.Sprint(id, n)), "w1", "s1"
	}
	return a
}

func (f *feed) row(a record.Attempt) { f.put(record.AttemptKey(a.Ref()), a) }

func (f *feed) task(t testing.TB, id record.TaskID) *view.Task {
	t.Helper()
	task, ok := f.v.Task(record.TaskRef{Run: runID, Task: id})
	require.True(t, ok)
	return task
}

func TestATallyFollowsTheClassesOfTheUpstreams(t *testing.T) {
	t.Parallel()
	f := setup()
	require.Equal(t, spec.Tally{Open: 2}, f.task(t, "d").Upstream())
	f.row(attempt("b", 1, record.Success))
	failed := attempt("c", 1, record.Failed)
	failed.Cause = record.Because(record.CauseExitCode, "")
	f.row(failed)
	require.Equal(t, spec.Tally{Success: 2}, f.task(t, "d").Upstream(), "an allowed failure counts as success")
	f.drop(record.AttemptKey(failed.Ref()))
	require.Equal(t, spec.Tally{Open: 1, Success: 1}, f.task(t, "d").Upstream())
	r, _ := f.v.Run(runID)
	require.Equal(t, map[record.AttemptState]int{record.None: 3, record.Success: 1}, r.Counts())
	require.Equal(t, 3, r.Open())
	require.NoError(t, f.v.Recount(runID))
}

func TestATaskThatIsOwedAnAttemptIsOpenAndSpoilsNothing(t *testing.T) {
	t.Parallel()
	f := setup()
	failed := attempt("a", 1, record.Failed)
	failed.Cause = record.Because(record.CauseExitCode, "")
	f.row(failed)
	r, _ := f.v.Run(runID)
	require.Equal(t, spec.Tally{Open: 1}, f.task(t, "b").Upstream())
	require.False(t, r.Spoiled())
	failed.Attempt, failed.Failures = 2, 1
	f.row(failed)
	require.Equal(t, spec.Tally{Bad: 1}, f.task(t, "b").Upstream())
	require.True(t, r.Spoiled())
}

func TestOwedReadsTheRowAndTheSpecAlone(t *testing.T) {
	t.Parallel()
	once := &spec.Task{Retries: spec.Retry{Limit: 1}, NoRetryExitCodes: []int{3}}
	row := func(code record.CauseCode, f func(*record.Attempt)) record.Attempt {
		a := record.Attempt{State: record.Failed, Idempotent: true, Cause: record.Because(code, "")}
		if f != nil {
			f(&a)
		}
		return a
	}
	for name, c := range map[string]struct {
		row  record.Attempt
		want view.Debt
	}{
		"a failure with a retry left": {row(record.CauseExitCode, nil), view.DebtRetry},
		"the retries are spent":       {row(record.CauseExitCode, func(a *record.Attempt) { a.Failures = 1 }), view.DebtNone},
		"a code without retries":      {row(record.CauseExitCode, func(a *record.Attempt) { a.Exit = &record.Exit{Code: 3} }), view.DebtNone},
		"a loss":                      {row(record.CauseWorkerLost, nil), view.DebtLoss},
		"a fenced attempt that may run again": {row(record.CauseFenced, func(a *record.Attempt) {
			a.Idempotent, a.OnLost = false, record.OnLostRetry
		}), view.DebtLoss},
		"a loss that its author must decide": {row(record.CauseWorkerLost, func(a *record.Attempt) {
			a.Idempotent, a.OnLost = false, record.OnLostWait
		}), view.DebtNone},
		"losses at their limit":  {row(record.CauseWorkerLost, func(a *record.Attempt) { a.Losses = spec.DefaultLostLimit }), view.DebtNone},
		"over the loss limit":    {row(record.CauseLossLimit, nil), view.DebtNone},
		"a stopped worker":       {row(record.CauseWorkerStopped, func(a *record.Attempt) { a.Failures = 9 }), view.DebtStop},
		"a queue timeout":        {row(record.CauseQueueTimeout, nil), view.DebtNone},
		"resolved by a person":   {row(record.CauseResolved, nil), view.DebtNone},
		"abandoned without next": {record.Attempt{State: record.Abandoned}, view.DebtAbandon},
		"success":                {record.Attempt{State: record.Success}, view.DebtNone},
	} {
		require.Equal(t, c.want, view.Owed(once, c.row), name)
	}
}

func TestRowsOlderThanAClearDoNotCount(t *testing.T) {
	t.Parallel()
	f := setup()
	f.row(attempt("a", 1, record.Success))
	f.row(attempt("b", 1, record.Running))
	f.put(record.ClearKey(runID, 1), record.Clear{Run: runID, Seq: 1, Tasks: []record.TaskID{"a", "b"}})
	a, b := f.task(t, "a"), f.task(t, "b")
	require.Equal(t, record.None, a.State())
	last, ok := a.Last()
	require.True(t, ok)
	require.False(t, a.Counts(last))
	require.Equal(t, spec.Tally{Open: 1}, b.Upstream())
	r, _ := f.v.Run(runID)
	require.Equal(t, 1, r.Live(), "a live row under a clear is still live")
	code, unwanted := r.Unwanted(b.Rows()[0], time.Time{})
	require.True(t, unwanted)
	require.Equal(t, record.CauseCancelled, code)
	f.row(attempt("a", 2, record.Success))
	require.Equal(t, record.Success, a.State())
	require.NoError(t, f.v.Recount(runID))
}

func TestARestoredRowCarriesItsFirstRevision(t *testing.T) {
	t.Parallel()
	f := setup()
	f.put(record.ClearKey(runID, 1), record.Clear{Run: runID, Seq: 1, Tasks: []record.TaskID{"a"}, Rev: 1})
	old, newer := attempt("a", 1, record.Success), attempt("b", 1, record.Success)
	old.Fence = 1
	f.row(old)
	require.Equal(t, record.Success, f.task(t, "a").State(), "created with the clear: it counts")
	f.put(record.ClearKey(runID, 2), record.Clear{Run: runID, Seq: 2, Tasks: []record.TaskID{"a", "b"}, Rev: 1000})
	require.Equal(t, record.None, f.task(t, "a").State())
	newer.Fence = 1001
	f.row(newer)
	require.Equal(t, record.Success, f.task(t, "b").State())
}

func TestRowsMayComeBeforeTheirRunAndItsSpec(t *testing.T) {
	t.Parallel()
	f := &feed{v: view.New(), keys: map[record.Key]record.Stored{}}
	f.row(attempt("b", 1, record.Running))
	require.Empty(t, f.v.Runs())
	f.put(record.RunKey(runID), record.Run{Run: runID, Workflow: "w", Revision: 1, State: record.RunRunning})
	r, ok := f.v.Run(runID)
	require.True(t, ok)
	require.False(t, r.Loaded())
	require.Equal(t, 1, r.Live())
	missing := []view.Revision{{Workflow: "w", Number: 1}}
	require.Equal(t, missing, f.v.Missing())
	f.v.Load(missing[0], diamond())
	require.Empty(t, f.v.Missing())
	require.Equal(t, record.Running, f.task(t, "b").State())
	require.Equal(t, 4, r.Len())
	require.NoError(t, f.v.Recount(runID))
}

func TestAnEndedRunLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	f := setup()
	f.row(attempt("a", 1, record.Running))
	f.put(record.UnprovenKey(attempt("b", 1, "").Ref()), record.Unproven{Run: runID, Task: "b", Attempt: 1, Worker: "w1", Session: "s1"})
	f.put(record.ClearKey(runID, 1), record.Clear{Run: runID, Seq: 1, Tasks: []record.TaskID{"a"}})
	s := view.SessionRef{Worker: "w1", Session: "s1"}
	require.True(t, f.v.Named(s))
	require.Len(t, f.v.MarkedBy(s), 1)
	require.Equal(t, 1, f.v.LiveOf("w"))
	f.v.Take()
	for _, k := range slices.Collect(maps.Keys(f.keys)) {
		f.drop(k)
	}
	require.Empty(t, f.v.Runs())
	require.False(t, f.v.Named(s))
	require.Empty(t, f.v.Holding())
	require.Zero(t, f.v.LiveOf("w"))
	require.Empty(t, f.v.RunsOf("w"))
	_, loaded := f.v.Graph(view.Revision{Workflow: "w", Number: 1})
	require.False(t, loaded, "a spec that no run uses is let go")
	require.Contains(t, f.v.Take().Runs, runID)
}

func TestARunThatGoesAndComesIsCountedAnew(t *testing.T) {
	t.Parallel()
	f := setup()
	rev := view.Revision{Workflow: "w", Number: 1}
	f.row(attempt("a", 1, record.Success))
	run, _ := f.v.Run(runID)
	value := run.Record
	f.drop(record.RunKey(runID))
	f.put(record.RunKey(runID), value)
	require.Equal(t, []view.Revision{rev}, f.v.Missing())
	f.v.Load(rev, diamond())
	require.NoError(t, f.v.Recount(runID))
	value.Revision = 2
	f.put(record.RunKey(runID), value)
	require.Equal(t, []view.Revision{{Workflow: "w", Number: 2}}, f.v.Missing(), "another revision needs another spec")
	require.NoError(t, f.v.Recount(runID))
}

func TestTouchedIsWhatAnEventChanged(t *testing.T) {
	t.Parallel()
	f := setup()
	ref := func(id record.TaskID) record.TaskRef { return record.TaskRef{Run: runID, Task: id} }
	f.row(attempt("a", 1, record.Running))
	got := f.v.Take()
	require.Equal(t, view.Touched{Tasks: []record.TaskRef{ref("a")}, Counted: []record.RunID{runID}}, got, "no class has changed")
	f.row(attempt("a", 1, record.Success))
	got = f.v.Take()
	require.Equal(t, []record.TaskRef{ref("b"), ref("c")}, got.Below)
	f.put(record.WorkerKey("w1", "s1"), record.Worker{Worker: "w1", Session: "s1", Slots: 2})
	f.put(record.PoolKey("p"), record.PoolLimit{Pool: "p", Slots: 1})
	got = got.Merge(f.v.Take())
	require.Equal(t, []view.SessionRef{{Worker: "w1", Session: "s1"}}, got.Sessions)
	require.Equal(t, []record.Pool{"p"}, got.Pools)
	require.Equal(t, []record.TaskRef{ref("a")}, got.Merge(got).Tasks)
	require.True(t, f.v.Take().Empty())
}

func TestValuesHandedOutStayWhatTheyWere(t *testing.T) {
	t.Parallel()
	f := setup()
	f.row(attempt("a", 1, record.Running))
	rows := f.task(t, "a").Rows()
	f.row(attempt("a", 1, record.Success))
	f.row(attempt("a", 2, record.Running))
	require.Len(t, rows, 1)
	require.Equal(t, record.Running, rows[0].State)
}

// TestAnyHistoryCountsAsItsListDoes feeds random events and compares the view
// with one made of a list in any order.
func TestAnyHistoryCountsAsItsListDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := setup()
		for range rapid.IntRange(0, 40).Draw(rt, "events") {
			happen(rt, f)
			require.NoError(rt, f.v.Recount(runID))
		}
		list := slices.Collect(maps.Values(f.keys))
		slices.SortFunc(list, func(a, b record.Stored) int { return int(a.ModRev - b.ModRev) })
		list = rapid.Permutation(list).Draw(rt, "list")
		other := view.FromList(f.rev, list)
		other.Adopt(f.v)
		require.NoError(rt, other.Recount(runID))
		require.Equal(rt, f.v.Rev(), other.Rev())
		require.Equal(rt, portrait(f.v), portrait(other))
	})
}

func happen(rt *rapid.T, f *feed) {
	id := rapid.SampledFrom([]record.TaskID{"a", "b", "c", "d", "stray"}).Draw(rt, "task")
	n := rapid.IntRange(1, 3).Draw(rt, "attempt")
	a := attempt(id, n, rapid.SampledFrom(record.AttemptStates()).Draw(rt, "state"))
	mark := record.UnprovenKey(a.Ref())
	switch rapid.IntRange(0, 9).Draw(rt, "event") {
	case 0:
		f.drop(record.AttemptKey(a.Ref()))
	case 1:
		r, _ := f.keys[record.RunKey(runID)].Value.(record.Run)
		r.Clears++
		f.put(record.RunKey(runID), r)
		f.put(record.ClearKey(runID, r.Clears), record.Clear{Run: runID, Seq: r.Clears, Tasks: []record.TaskID{id}})
	case 2:
		f.put(mark, record.Unproven{Run: runID, Task: id, Attempt: n, Worker: "w1", Session: "s1"})
	case 3:
		f.drop(mark)
	default:
		f.row(a)
	}
}

// portrait is what a view shows of the run.
func portrait(v *view.Active) string {
	r, _ := v.Run(runID)
	s := view.SessionRef{Worker: "w1", Session: "s1"}
	text := fmt.Sprintln(r.Record, r.Counts(), r.Live(), r.Open(), r.Spoiled(), r.Attempts(), v.Holding(), v.Occupied(s), v.LiveOf("w"))
	text += fmt.Sprintln(r.AllMarks(), v.MarkedBy(s), v.Held(s), len(r.Clears()))
	for t := range r.Tasks() {
		text += fmt.Sprintln(t.Ref, t.State(), t.Upstream(), t.Class())
	}
	for row := range r.Rows() {
		text += fmt.Sprintln(row.Ref(), row.State, row.CreateRev, row.ModRev)
	}
	return text
}
