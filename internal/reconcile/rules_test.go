package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// setup is a world with one run of the workflow and one worker.
func setup(t *testing.T, f *spec.Workflow) (w *world, id record.RunID, s view.SessionRef) {
	t.Helper()
	w = newWorld(t)
	w.flow(f)
	id = record.MakeRunID(f.Name, "one")
	w.start(w.running(id))
	return w, id, w.enlist("w1", "s1", 4)
}

func ref(id record.RunID, task string, n int) record.Ref {
	return record.TaskRef{Run: id, Task: record.TaskID(task)}.At(n)
}

// begin brings the first attempt of a task to running.
func begin(w *world, id record.RunID, name string, s view.SessionRef) record.Ref {
	for _, r := range w.pass().Ready {
		if r.Ref.Task == record.TaskID(name) {
			require.True(w.t, w.give(r, s))
			require.True(w.t, w.report(r.Ref, record.Running, record.Cause{}, nil))
			return r.Ref
		}
	}
	require.Fail(w.t, "the task is not ready", name)
	return ref(id, name, 0)
}

func failure() (record.Cause, *record.Exit) {
	return record.Because(record.CauseExitCode, "exit code 1"), &record.Exit{Code: 1}
}

func TestAChainRunsToItsEndAndLeavesADocument(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a"), task("b", "a")))
	for _, name := range []string{"a", "b"} {
		r := begin(w, id, name, s)
		require.True(t, w.report(r, record.Success, record.Cause{}, nil))
	}
	w.pass()
	res := w.pass()
	require.Equal(t, []record.RunID{id}, res.Ending)
	w.end(id)
	require.Empty(t, w.v.Runs())
	require.Zero(t, w.v.Occupied(s))
	head, ok := w.keys[record.EndedKey(id)].Value.(record.Ended)
	require.True(t, ok)
	require.Equal(t, map[record.AttemptState]int{record.Success: 2}, head.Tasks)
	require.Equal(t, record.RunSuccess, head.Run.State)
	page, ok := w.keys[record.PageKey(id, 1)].Value.(record.EndedPage)
	require.True(t, ok)
	require.Len(t, page.Rows, 2)
}

func TestARetryWaitsForItsDelayCountedFromTheFailure(t *testing.T) {
	t.Parallel()
	a := task("a")
	a.Retries = spec.Retry{Limit: 2, Delay: record.Duration(20 * time.Second), Backoff: 2}
	w, id, s := setup(t, flowOf("w", a))
	cause, exit := failure()
	for n, delay := range []time.Duration{20 * time.Second, 40 * time.Second} {
		r := begin(w, id, "a", s)
		require.Equal(t, n+1, r.N)
		failed := w.now
		require.True(t, w.report(r, record.Failed, cause, exit))
		w.now = w.now.Add(5 * time.Second)
		w.pass()
		next, _ := w.row(ref(id, "a", n+2))
		require.True(t, next.Waiting())
		require.Equal(t, failed.Add(delay), next.NotBefore)
		require.Equal(t, n+1, next.Failures)
		res := w.pass()
		require.Empty(t, res.Ready)
		require.Equal(t, next.NotBefore, res.Wake)
		w.now = next.NotBefore
	}
	r := begin(w, id, "a", s)
	require.True(t, w.report(r, record.Failed, cause, exit))
	w.pass()
	run, ok := w.v.Run(id)
	require.True(t, ok)
	require.Equal(t, record.RunFailed, run.Record.State)
}

func TestAnExitCodeThatForbidsRetriesSpendsNone(t *testing.T) {
	t.Parallel()
	a := task("a")
	a.Retries, a.NoRetryExitCodes = spec.Retry{Limit: 2}, []int{3}
	w, id, s := setup(t, flowOf("w", a))
	r := begin(w, id, "a", s)
	require.True(t, w.report(r, record.Failed, record.Because(record.CauseExitCode, ""), &record.Exit{Code: 3}))
	w.pass()
	run, _ := w.v.Run(id)
	require.Equal(t, record.RunFailed, run.Record.State)
}

func TestATaskWithARetryOwedIsOpenForThoseBelowIt(t *testing.T) {
	t.Parallel()
	a, z := task("a"), task("z", "a")
	a.Retries, z.TriggerRule = spec.Retry{Limit: 1}, spec.AllDone
	w, id, s := setup(t, flowOf("w", a, z))
	cause, exit := failure()
	require.True(t, w.report(begin(w, id, "a", s), record.Failed, cause, exit))
	res := w.pass()
	require.Len(t, res.Ready, 1)
	require.Equal(t, ref(id, "a", 2), res.Ready[0].Ref)
	require.True(t, w.report(begin(w, id, "a", s), record.Failed, cause, exit))
	require.Equal(t, ref(id, "z", 1), w.pass().Ready[0].Ref)
}

func TestAStoppedWorkerSpendsNoRetry(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a")))
	require.True(t, w.report(begin(w, id, "a", s), record.Failed, record.Because(record.CauseWorkerStopped, ""), nil))
	r := begin(w, id, "a", s)
	require.Equal(t, 2, r.N)
	row, _ := w.row(r)
	require.Zero(t, row.Failures)
	require.Zero(t, row.Losses)
}

func TestADispatchIntoAVoidIsReplacedInOneChange(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a")))
	for n := range 3 {
		res := w.pass()
		require.Len(t, res.Ready, 1)
		require.True(t, w.give(res.Ready[0], s))
		w.now = w.now.Add(7 * time.Second)
		require.Empty(t, w.pass().Changes)
		w.now = w.now.Add(time.Second)
		require.Len(t, w.pass().Changes, 1)
		old, _ := w.row(ref(id, "a", n+1))
		require.Equal(t, record.Abandoned, old.State)
		next, _ := w.row(ref(id, "a", n+2))
		require.True(t, next.Waiting())
		require.Equal(t, n+1, next.Abandons)
		require.Zero(t, next.Losses)
		require.Equal(t, n == 0, next.NotBefore.IsZero(), "repeated ones back off")
		if n > 0 {
			require.Empty(t, w.pass().Ready)
			w.now = next.NotBefore
		}
	}
}

func TestARefusedDispatchIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a")))
	require.True(t, w.give(w.pass().Ready[0], s))
	require.True(t, w.report(ref(id, "a", 1), record.Queued, record.Cause{}, nil))
	require.Len(t, w.pass().Changes, 1)
	old, _ := w.row(ref(id, "a", 1))
	require.Equal(t, record.CauseRefused, old.Cause.Code)
}

func TestAnIntentOfALostSessionCountsAsALossUpToTheLimit(t *testing.T) {
	t.Parallel()
	w, id, _ := setup(t, flowOf("w", task("a")))
	for n := range spec.DefaultLostLimit + 1 {
		s := w.enlist("x", record.SessionID("s"+string(rune('a'+n))), 1)
		w.now = w.now.Add(2 * time.Minute)
		require.True(t, w.give(w.pass().Ready[0], s))
		w.drop(record.WorkerKey(s.Worker, s.Session))
		w.pass()
	}
	last, _ := w.row(ref(id, "a", spec.DefaultLostLimit+1))
	require.Equal(t, record.Failed, last.State)
	require.Equal(t, record.CauseLossLimit, last.Cause.Code)
}

func TestABusyTaskIsLeftOutAndItsRunDoesNotEnd(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a")))
	require.True(t, w.report(begin(w, id, "a", s), record.Success, record.Cause{}, nil))
	turn := w.turn()
	turn.Busy = reconcile.NewBusy()
	c := record.Change{Put: []record.Put{{Key: record.AttemptKey(ref(id, "a", 2))}}}
	turn.Busy.Add(c)
	require.Empty(t, reconcile.Pass(w.v, view.Touched{Full: true}, turn).Changes)
	turn.Busy.Done(c)
	session := record.Change{Put: []record.Put{{Key: record.SessionKey("w1", "s1")}}}
	w.drop(record.WorkerKey("w1", "s1"))
	turn.Busy.Add(session)
	require.Len(t, reconcile.Pass(w.v, view.Touched{Full: true}, turn).Changes, 1, "the session is left out")
	turn.Busy.Done(session)
	require.Len(t, reconcile.Pass(w.v, view.Touched{Full: true}, turn).Changes, 2)
}

func TestAReadyTaskWithACommitInFlightIsIdle(t *testing.T) {
	t.Parallel()
	w, id, _ := setup(t, flowOf("w", task("a"), task("b")))
	turn := w.turn()
	turn.Busy = reconcile.NewBusy()
	turn.Busy.Add(record.Change{Put: []record.Put{{Key: record.AttemptKey(ref(id, "a", 1))}}})
	res := reconcile.Pass(w.v, view.Touched{Full: true}, turn)
	require.Equal(t, ref(id, "b", 1), res.Ready[0].Ref)
	require.Equal(t, []record.TaskRef{{Run: id, Task: "a"}}, res.Idle)
	turn.Busy = nil
	require.Len(t, reconcile.Pass(w.v, view.Touched{Full: true}, turn).Ready, 2)
}

func TestEveryChangeComparesTheElectionKeyOfItsTerm(t *testing.T) {
	t.Parallel()
	w, _, _ := setup(t, flowOf("w", task("a")))
	turn := w.turn()
	turn.Stamp.Lease, turn.Stamp.Rev = 7, 11
	ready := reconcile.Pass(w.v, view.Touched{Full: true}, turn).Ready
	c, ok, err := reconcile.Dispatch(w.v, reconcile.Assignment{Ref: ready[0].Ref, Token: "tokentokentoken"}, turn)
	require.NoError(t, err)
	require.True(t, ok)
	require.Contains(t, c.Expect, record.CreatedAt(record.ElectionKey(7), 11))
}
