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

// reopen is what an operator does to an ended run: the record in phase
// reopening, a clear of its tasks, the head of the document deleted.
func (w *world) reopen(id record.RunID, tasks ...record.TaskID) {
	head, ok := w.keys[record.EndedKey(id)].Value.(record.Ended)
	require.True(w.t, ok)
	next, err := head.Run.Move(record.RunMove{
		To: record.RunRunning, Phase: record.PhaseReopening, By: record.Operator, At: w.now, Rule: record.RuleClear, Write: "reopenreopenreopen",
	})
	require.NoError(w.t, err)
	next.Clears++
	w.set(
		record.Put{Key: record.RunKey(id), Value: next},
		record.Put{Key: record.ClearKey(id, next.Clears), Value: record.Clear{Run: id, Seq: next.Clears, Tasks: tasks, At: w.now}},
	)
	w.drop(record.EndedKey(id))
}

func TestAReopenedRunHasItsRowsAndRunsWhatWasCleared(t *testing.T) {
	t.Parallel()
	tasks := []spec.Task{task("last")}
	for i := range 150 {
		leaf := task("t" + string(record.MakeInstance(i)))
		tasks = append(tasks, leaf)
		tasks[0].Needs = append(tasks[0].Needs, leaf.ID)
	}
	f := flowOf("w", tasks...)
	f.Timeout = record.Duration(time.Hour)
	w, id, s := setup(t, f)
	for range 2 {
		for _, r := range w.pass().Ready {
			require.True(t, w.give(r, s))
			require.True(t, w.report(r.Ref, record.Success, record.Cause{}, nil))
		}
	}
	w.pass()
	w.end(id)
	old, _ := w.keys[record.PageKey(id, 1)].Value.(record.EndedPage)
	w.now = w.now.Add(24 * time.Hour)
	w.reopen(id, "last")
	res := w.pass()
	require.Equal(t, []record.RunID{id}, res.Reopening)
	require.Empty(t, res.Ready, "nothing is decided on half of the rows")
	r, _ := w.v.Run(id)
	_, err := reconcile.Restored(r, 151, w.turn())
	require.Error(t, err, "the rows are not back")
	restoreAll(t, w, r, old)
	require.Equal(t, record.Success, state(w, id, "t00007"))
	require.Equal(t, record.None, state(w, id, "last"), "a clear covers what was created before it")
	ready := w.pass().Ready
	require.Len(t, ready, 1)
	require.Equal(t, ref(id, "last", 2), ready[0].Ref)
	row, _ := w.row(ref(id, "t00007", 1))
	require.Equal(t, old.Rows[8].CreateRev, row.Fence)
	// A second ending carries the first revisions on.
	require.True(t, w.give(ready[0], s))
	require.True(t, w.report(ready[0].Ref, record.Success, record.Cause{}, nil))
	w.pass()
	w.end(id)
	again, _ := w.keys[record.PageKey(id, 1)].Value.(record.EndedPage)
	require.Equal(t, "t00007", string(again.Rows[9].Attempt.Task))
	require.Equal(t, old.Rows[8].CreateRev, again.Rows[9].CreateRev)
}

// restoreAll brings the rows back, in two halves by two replicas.
func restoreAll(t *testing.T, w *world, r *view.Run, page record.EndedPage) {
	t.Helper()
	half := page
	half.Rows = page.Rows[:70]
	for _, p := range []record.EndedPage{half, page} {
		changes, err := reconcile.RestorePage(r, p, reconcile.Stamp{})
		require.NoError(t, err)
		for _, c := range changes {
			require.LessOrEqual(t, len(c.Expect), 64)
			require.True(t, w.commit(c, record.Leader))
		}
	}
	again, err := reconcile.RestorePage(r, page, reconcile.Stamp{})
	require.NoError(t, err)
	require.Empty(t, again)
	done, err := reconcile.Restored(r, len(page.Rows), w.turn())
	require.NoError(t, err)
	require.True(t, w.commit(done, record.Leader))
}
