package operate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/integration/cluster"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// chain is first → second; first runs until its gate is opened.
const chain = `
  first:
    run: echo first >>"$WRIT_PARAM_DIR/book"; until [ -e "$WRIT_PARAM_DIR/gate" ]; do sleep 0.05; done
  second:
    needs: [first]
    run: echo second >>"$WRIT_PARAM_DIR/book"
`

func TestPausedRunStartsNothingUntilItIsResumed(t *testing.T) {
	t.Parallel()
	b := start(t, cluster.Config{Replicas: 1, Workers: 1})
	run := b.begin("held", chain)
	b.awaitBooked("first", 1)
	_, err := b.runs.PauseRun(t.Context(), &writv1.PauseRunRequest{Run: run, By: "ada", Why: "look first"})
	require.NoError(t, err)
	b.open("gate")
	reason := b.awaitReason(run, "second", "paused")
	require.Contains(t, reason.GetText(), "ada")
	require.Contains(t, reason.GetText(), "look first")
	require.Equal(t, []string{"success"}, b.attempts(run, "first"), "what runs goes on")
	require.Empty(t, b.attempts(run, "second"))

	// The hold is a record: it outlives the replica.
	b.Kill("r1")
	b.Launch("r1")
	b.AwaitServing("r1")
	b.awaitReason(run, "second", "paused")
	_, err = b.runs.ResumeRun(t.Context(), &writv1.ResumeRunRequest{Run: run})
	require.NoError(t, err)
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, b.Ended(run).GetRun().GetState())
	require.Equal(t, 1, b.booked("second"))
	b.clean()
}

func TestCancelledRunStartsNothingAndItsProcessesEnd(t *testing.T) {
	t.Parallel()
	b := start(t, cluster.Config{Replicas: 1, Workers: 1})
	run := b.begin("cancelled", chain)
	b.awaitBooked("first", 1)
	_, err := b.runs.CancelRun(t.Context(), &writv1.CancelRunRequest{Run: run, By: "ada"})
	require.NoError(t, err)
	require.Equal(t, writv1.RunState_RUN_STATE_CANCELLED, b.Ended(run).GetRun().GetState())
	require.Equal(t, []string{"cancelled"}, b.attempts(run, "first"))
	require.Equal(t, []string{"cancelled"}, b.attempts(run, "second"))
	require.Zero(t, b.booked("second"))
	b.clean()
}

func TestEndedRunLivesAgainWhereItsFailedTaskIsRetried(t *testing.T) {
	t.Parallel()
	b := start(t, cluster.Config{Replicas: 3, Workers: 1})
	run := b.begin("mended", `
  good:
    run: echo good >>"$WRIT_PARAM_DIR/book"
  bad:
    needs: [good]
    run: echo bad >>"$WRIT_PARAM_DIR/book"; test -e "$WRIT_PARAM_DIR/fixed"
  below:
    needs: [bad]
    run: echo below $WRIT_ATTEMPT >>"$WRIT_PARAM_DIR/book"
  tidy:
    needs: [below]
    trigger_rule: all_done
    run: echo tidy >>"$WRIT_PARAM_DIR/book"
`)
	require.Equal(t, writv1.RunState_RUN_STATE_FAILED, b.Ended(run).GetRun().GetState())
	b.open("fixed")
	// The leader may still be writing the document.
	answer, err := b.runs.RetryTasks(t.Context(), &writv1.RetryTasksRequest{Run: run, By: "ada"})
	require.NoError(t, err)
	require.Equal(t, []string{"bad", "below"}, answer.GetTasks())
	end := b.Ended(run)
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, end.GetRun().GetState())
	require.Equal(t, []string{"failed", "success"}, b.attempts(run, "bad"))
	require.Equal(t, []string{"upstream_failed", "success"}, b.attempts(run, "below"))
	require.Equal(t, []string{"success"}, b.attempts(run, "good"), "what succeeded does not run again")
	require.Equal(t, []string{"success"}, b.attempts(run, "tidy"))
	require.Equal(t, 1, b.booked("below 2"))

	cleared, err := b.runs.ClearTasks(t.Context(), &writv1.ClearTasksRequest{Run: run, Tasks: []string{"bad"}, Downstream: true})
	require.NoError(t, err)
	require.Equal(t, []string{"bad", "below", "tidy"}, cleared.GetTasks())
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, b.Ended(run).GetRun().GetState())
	require.Equal(t, []string{"failed", "success", "success"}, b.attempts(run, "bad"))
	require.Equal(t, 1, b.booked("good"))
	require.Equal(t, 2, b.booked("tidy"))
	b.clean()
}

func TestClearedTaskThatRunsIsEndedBeforeItRunsAgain(t *testing.T) {
	t.Parallel()
	b := start(t, cluster.Config{Replicas: 1, Workers: 1})
	run := b.begin("cleared", chain)
	b.awaitBooked("first", 1)
	_, err := b.runs.ClearTasks(t.Context(), &writv1.ClearTasksRequest{Run: run, Tasks: []string{"first"}})
	require.NoError(t, err)
	b.awaitBooked("first", 2)
	require.Equal(t, []string{"cancelled", "running"}, b.attempts(run, "first"))
	b.open("gate")
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, b.Ended(run).GetRun().GetState())
	b.clean()
}
