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

func state(w *world, id record.RunID, name string) record.AttemptState {
	t, ok := w.v.Task(record.TaskRef{Run: id, Task: record.TaskID(name)})
	require.True(w.t, ok)
	return t.State()
}

func runState(w *world, id record.RunID) record.RunState {
	r, ok := w.v.Run(id)
	require.True(w.t, ok)
	return r.Record.State
}

func TestACancelledRunStartsNothingAndEndsOnceItsWorkersSay(t *testing.T) {
	t.Parallel()
	b := task("b")
	b.Retries = spec.Retry{Limit: 1, Delay: record.Duration(time.Minute)}
	d := task("d", "a")
	d.TriggerRule = spec.AllDone
	w, id, s := setup(t, flowOf("w", task("a"), b, task("c", "a"), d))
	a := begin(w, id, "a", s)
	cause, exit := failure()
	require.True(t, w.report(begin(w, id, "b", s), record.Failed, cause, exit))
	w.pass()
	require.True(t, w.cancelRun(id))
	require.Empty(t, w.pass().Ready)
	require.Equal(t, record.RunCancelling, runState(w, id))
	for _, name := range []string{"b", "c", "d"} {
		require.Equal(t, record.Cancelled, state(w, id, name))
	}
	res := w.pass()
	require.Empty(t, res.Changes)
	require.Equal(t, reconcile.ReasonCancelling, res.Waits[0].Reason)
	require.True(t, w.report(a, record.Cancelled, record.Because(record.CauseCancelled, ""), nil))
	w.pass()
	require.Equal(t, record.RunCancelled, runState(w, id))
}

func TestARefusedDispatchOfACancelledRunIsNotReplacedByOneThatRuns(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a")))
	require.True(t, w.give(w.pass().Ready[0], s))
	require.True(t, w.cancelRun(id))
	require.Empty(t, w.pass().Changes)
	require.True(t, w.report(ref(id, "a", 1), record.Queued, record.Cause{}, nil))
	w.pass()
	require.Equal(t, record.Cancelled, state(w, id, "a"))
	w.pass()
	require.Equal(t, record.RunCancelled, runState(w, id))
}

func TestACancelledRunDoesNotWaitForALostWorker(t *testing.T) {
	t.Parallel()
	w, id, _ := losing(t, kind(false, ""))
	require.True(t, w.cancelRun(id))
	w.pass()
	require.Equal(t, record.Cancelled, state(w, id, "a"))
	require.Contains(t, w.keys, record.UnprovenKey(ref(id, "a", 1)))
	w.pass()
	require.Equal(t, record.RunCancelled, runState(w, id))
	w.end(id)
	head, _ := w.keys[record.EndedKey(id)].Value.(record.Ended)
	require.Len(t, head.Unproven, 1, "the document keeps the mark")
	require.NotContains(t, w.keys, record.UnprovenKey(ref(id, "a", 1)))
}

func TestAClearRunsItsTasksAgainUnderNewNumbers(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a"), task("b", "a"), task("c", "b")))
	require.True(t, w.report(begin(w, id, "a", s), record.Success, record.Cause{}, nil))
	require.True(t, w.report(begin(w, id, "b", s), record.Success, record.Cause{}, nil))
	c := begin(w, id, "c", s)
	require.True(t, w.clearTasks(id, "a", "b", "c"))
	res := w.pass()
	require.Equal(t, ref(id, "a", 2), res.Ready[0].Ref)
	require.Equal(t, reconcile.ReasonCleared, res.Waits[0].Reason, "what is live under the clear stops first")
	require.True(t, w.report(c, record.Cancelled, record.Because(record.CauseCancelled, ""), nil))
	require.Len(t, w.pass().Ready, 1, "b and c wait for their trigger rule again")
	for _, name := range []string{"a", "b", "c"} {
		r := begin(w, id, name, s)
		require.Equal(t, 2, r.N)
		require.True(t, w.report(r, record.Success, record.Cause{}, nil))
	}
	w.pass()
	require.Equal(t, record.RunSuccess, runState(w, id))
}

func TestAWaitingRowUnderAClearIsCancelled(t *testing.T) {
	t.Parallel()
	a := task("a")
	a.Retries = spec.Retry{Limit: 3, Delay: record.Duration(time.Hour)}
	w, id, s := setup(t, flowOf("w", a))
	cause, exit := failure()
	require.True(t, w.report(begin(w, id, "a", s), record.Failed, cause, exit))
	w.pass()
	require.True(t, w.clearTasks(id, "a"))
	require.Len(t, w.pass().Changes, 1)
	r := begin(w, id, "a", s)
	require.Equal(t, 3, r.N)
	row, _ := w.row(r)
	require.Zero(t, row.Failures, "the counts begin anew")
}

func TestAPausedRunStartsNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	w, id, _ := setup(t, flowOf("w", task("a")))
	hold := record.Hold{By: "ann", At: w.now, Why: "release"}
	ready := w.pass().Ready
	require.True(t, w.rewrite(id, record.RunMove{To: record.RunRunning}, func(r *record.Run) { r.Paused = &hold }))
	res := w.pass()
	require.Empty(t, res.Ready)
	require.Equal(t, []record.TaskRef{{Run: id, Task: "a"}}, res.Idle)
	require.Equal(t, reconcile.ReasonPaused, res.Waits[0].Reason)
	require.False(t, w.give(ready[0], view.SessionRef{Worker: "w1", Session: "s1"}), "the dispatch is decided again")
	require.True(t, w.rewrite(id, record.RunMove{To: record.RunRunning}, func(r *record.Run) { r.Paused = nil }))
	require.Len(t, w.pass().Ready, 1)
}

func TestQueuedRunsAreAdmittedOldestFirstUpToTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := flowOf("w", task("a"))
	f.MaxActiveRuns, f.Timeout = 2, record.Duration(time.Hour)
	w.flow(f)
	ids := []record.RunID{"w.d", "w.c", "w.b", "w.a"}
	for i, id := range ids {
		r := w.running(id)
		r.State, r.StartedAt, r.CreatedAt = record.RunQueued, time.Time{}, w.now.Add(time.Duration(i)*time.Second)
		w.start(r)
	}
	res := w.pass()
	require.Len(t, res.Changes, 2)
	require.Equal(t, record.RunRunning, runState(w, "w.d"))
	require.Equal(t, record.RunRunning, runState(w, "w.c"))
	require.Equal(t, record.RunQueued, runState(w, "w.b"))
	res = w.pass()
	require.Empty(t, res.Changes, "the limit is reached")
	require.Equal(t, reconcile.ReasonQueued, res.Waits[0].Reason)
	r, _ := w.v.Run("w.d")
	require.Equal(t, w.now.Add(time.Hour), r.Record.Deadline)
	require.True(t, w.cancelRun("w.d"))
	w.pass() // cancels its task
	w.pass() // ends it
	w.pass()
	require.Equal(t, record.RunRunning, runState(w, "w.b"), "an ended run makes room")
}

func TestAQueueTimeoutFailsATaskThatNobodyTook(t *testing.T) {
	t.Parallel()
	a := task("a")
	a.QueueTimeout = record.Duration(time.Minute)
	w, id, _ := setup(t, flowOf("w", a))
	require.Equal(t, w.now.Add(time.Minute), w.pass().Wake)
	w.now = w.now.Add(time.Minute)
	w.pass()
	w.pass()
	row, _ := w.row(ref(id, "a", 1))
	require.Equal(t, record.Failed, row.State)
	require.Equal(t, record.CauseQueueTimeout, row.Cause.Code)
	w.pass()
	require.Equal(t, record.RunFailed, runState(w, id))
}

func TestARunPastItsDeadlineClosesWhatIsNotRunning(t *testing.T) {
	t.Parallel()
	f := flowOf("w", task("a"), task("b", "a"))
	f.Timeout = record.Duration(time.Hour)
	w, id, s := setup(t, f)
	a := begin(w, id, "a", s)
	w.now = w.now.Add(time.Hour)
	w.pass()
	require.Equal(t, record.Cancelled, state(w, id, "b"))
	r, _ := w.v.Run(id)
	task, _ := w.v.Task(a.TaskRef)
	row, _ := task.Latest()
	code, unwanted := r.Unwanted(row, w.now)
	require.True(t, unwanted)
	require.Equal(t, record.CauseRunTimeout, code)
	require.True(t, w.report(a, record.Failed, record.Because(record.CauseTimeout, ""), nil))
	w.pass()
	require.Equal(t, record.RunFailed, runState(w, id))
}

func TestAllowedFailuresDoNotFailTheRun(t *testing.T) {
	t.Parallel()
	a := task("a")
	a.AllowFailure = true
	w, id, s := setup(t, flowOf("w", a, task("b", "a")))
	cause, exit := failure()
	require.True(t, w.report(begin(w, id, "a", s), record.Failed, cause, exit))
	require.True(t, w.report(begin(w, id, "b", s), record.Success, record.Cause{}, nil))
	w.pass()
	require.Equal(t, record.RunSuccess, runState(w, id))
}

func TestARunWithALiveRowOfAnUnknownTaskDoesNotEnd(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a")))
	stray := liveRow(w, "stray", s)
	w.set(record.Put{Key: record.AttemptKey(stray.Ref()), Value: stray})
	require.True(t, w.report(begin(w, id, "a", s), record.Success, record.Cause{}, nil))
	require.Empty(t, w.pass().Changes)
	require.True(t, w.report(stray.Ref(), record.Success, record.Cause{}, nil))
	w.pass()
	require.Equal(t, record.RunSuccess, runState(w, id))
}

func TestADocumentIsMadeOnlyOfAnEndingRunWhoseSpecIsLoaded(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a")))
	r, _ := w.v.Run(id)
	_, err := reconcile.EndPages(r, reconcile.Stamp{})
	require.ErrorContains(t, err, "phase")
	require.True(t, w.report(begin(w, id, "a", s), record.Success, record.Cause{}, nil))
	w.pass()
	w.specs = nil
	var list []record.Stored
	for _, stored := range w.keys {
		list = append(list, stored)
	}
	bare := view.FromList(w.rev, list)
	require.Empty(t, reconcile.Pass(bare, view.Touched{Full: true}, w.turn()).Ending)
	r, _ = bare.Run(id)
	_, err = reconcile.EndPages(r, reconcile.Stamp{})
	require.ErrorContains(t, err, "spec")
	_, err = reconcile.EndHead(bare, r, reconcile.Stamp{})
	require.ErrorContains(t, err, "spec")
}

func TestTheHeadIsRefusedWhereADeathWasMarkedMeanwhile(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a")))
	require.True(t, w.report(begin(w, id, "a", s), record.Success, record.Cause{}, nil))
	w.pass()
	r, _ := w.v.Run(id)
	pages, err := reconcile.EndPages(r, reconcile.Stamp{})
	require.NoError(t, err)
	head, err := reconcile.EndHead(w.v, r, reconcile.Stamp{})
	require.NoError(t, err)
	require.False(t, w.commit(head, record.Leader), "the last page is not there")
	require.True(t, w.commit(pages[0], record.Leader))
	w.set(record.Put{Key: record.UnprovenKey(ref(id, "a", 1)), Value: record.Unproven{Run: id, Task: "a", Attempt: 1}})
	require.False(t, w.commit(head, record.Leader))
	head, err = reconcile.EndHead(w.v, r, reconcile.Stamp{})
	require.NoError(t, err)
	require.True(t, w.commit(head, record.Leader))
}

func TestPagesOfALargeRunAreBoundedAndAlike(t *testing.T) {
	t.Parallel()
	var tasks []spec.Task
	for i := range 1200 {
		tasks = append(tasks, task("t"+string(record.MakeInstance(i))))
	}
	w, id, s := setup(t, flowOf("w", tasks...))
	for _, r := range w.pass().Ready {
		require.True(t, w.give(r, s))
		require.True(t, w.report(r.Ref, record.Success, record.Cause{}, nil))
	}
	w.pass()
	r, _ := w.v.Run(id)
	pages, err := reconcile.EndPages(r, reconcile.Stamp{})
	require.NoError(t, err)
	require.Len(t, pages, r.Record.Pages)
	require.Greater(t, len(pages), 1)
	other, _ := w.relist(true).Run(id)
	again, err := reconcile.EndPages(other, reconcile.Stamp{})
	require.NoError(t, err)
	require.Equal(t, pages, again)
	rows := 0
	for _, c := range pages {
		page, _ := c.Put[0].Value.(record.EndedPage)
		rows += len(page.Rows)
	}
	require.Equal(t, 1200, rows)
	w.end(id)
}
