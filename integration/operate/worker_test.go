package operate_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/integration/cluster"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// lose begins a run whose one task is not idempotent, and kills its worker.
func lose(t *testing.T) (b *bench, run string) {
	t.Helper()
	b = start(t, cluster.Config{Replicas: 1, Workers: 1, ServerArgs: []string{"--ttl", "2s"}})
	run = b.begin("lost", `
  once:
    run: echo begin $WRIT_ATTEMPT >>"$WRIT_PARAM_DIR/book"; until [ -e "$WRIT_PARAM_DIR/gate" ]; do sleep 0.05; done; echo end $WRIT_ATTEMPT >>"$WRIT_PARAM_DIR/book"
  after:
    needs: [once]
    run: echo after >>"$WRIT_PARAM_DIR/book"
`)
	b.awaitBooked("begin 1", 1)
	b.Kill("w1")
	reason := b.awaitReason(run, "once", "proof")
	require.Contains(t, reason.GetText(), "writ resolve")
	require.Equal(t, []string{"running"}, b.attempts(run, "once"))
	return b, run
}

func TestLostTaskIsResolvedAsDone(t *testing.T) {
	t.Parallel()
	b, run := lose(t)
	_, err := b.runs.ResolveTask(t.Context(), &writv1.ResolveTaskRequest{
		Run: run, Task: "once", As: writv1.Resolution_RESOLUTION_SUCCESS, By: "ada", Why: "the rows are there",
	})
	require.NoError(t, err)
	b.Launch("w1")
	end := b.Ended(run)
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, end.GetRun().GetState())
	require.Equal(t, []string{"success"}, b.attempts(run, "once"))
	require.Equal(t, 1, b.booked("begin 1"))
	require.Equal(t, 1, b.booked("after"))
	b.clean()
}

func TestLostTaskIsResolvedAsFailed(t *testing.T) {
	t.Parallel()
	b, run := lose(t)
	_, err := b.runs.ResolveTask(t.Context(), &writv1.ResolveTaskRequest{Run: run, Task: "once", As: writv1.Resolution_RESOLUTION_FAILED})
	require.NoError(t, err)
	require.Equal(t, writv1.RunState_RUN_STATE_FAILED, b.Ended(run).GetRun().GetState())
	require.Equal(t, []string{"upstream_failed"}, b.attempts(run, "after"))
	b.clean()
}

func TestLostTaskThatIsToRunAgainWaitsForSomebodyToVouchForItsDeath(t *testing.T) {
	t.Parallel()
	b, run := lose(t)
	_, err := b.runs.ResolveTask(t.Context(), &writv1.ResolveTaskRequest{Run: run, Task: "once", As: writv1.Resolution_RESOLUTION_RETRY})
	require.NoError(t, err)
	b.awaitReason(run, "once", "unproven")
	b.open("gate")
	_, err = b.runs.ResolveTask(t.Context(), &writv1.ResolveTaskRequest{Run: run, Task: "once", Dead: true, By: "ada"})
	require.NoError(t, err)
	b.Launch("w1")
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, b.Ended(run).GetRun().GetState())
	require.Equal(t, []string{"failed", "success"}, b.attempts(run, "once"))
	require.Equal(t, 1, b.booked("begin 2"))
	require.Zero(t, b.booked("end 1"))
	b.clean()
}

func TestLostTaskThatIsToRunAgainRunsOnceItsWorkerAttestsItsDeath(t *testing.T) {
	t.Parallel()
	b, run := lose(t)
	_, err := b.runs.ResolveTask(t.Context(), &writv1.ResolveTaskRequest{Run: run, Task: "once", As: writv1.Resolution_RESOLUTION_RETRY})
	require.NoError(t, err)
	b.awaitReason(run, "once", "unproven")
	b.open("gate")
	b.Launch("w1")
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, b.Ended(run).GetRun().GetState())
	require.Equal(t, []string{"failed", "success"}, b.attempts(run, "once"))
	require.Equal(t, 1, b.booked("begin 2"))
	b.clean()
}

func TestDrainedWorkerTakesNothingNew(t *testing.T) {
	t.Parallel()
	b := start(t, cluster.Config{Replicas: 1, Workers: 2})
	_, err := b.admin.DrainWorker(t.Context(), &writv1.DrainWorkerRequest{Worker: "w1", By: "ada", Why: "new disk"})
	require.NoError(t, err)
	tasks := &strings.Builder{}
	for _, name := range strings.Fields("a b c d e f") {
		tasks.WriteString("  " + name + ": {run: 'true'}\n")
	}
	end := b.Ended(b.begin("spread", tasks.String()))
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, end.GetRun().GetState())
	for _, task := range end.GetTasks() {
		require.Equal(t, "w2", task.GetAttempts()[0].GetWorker())
	}
	_, err = b.admin.DrainWorker(t.Context(), &writv1.DrainWorkerRequest{Worker: "w2"})
	require.NoError(t, err)
	run := b.begin("again", "  a: {run: 'true'}\n")
	b.awaitReason(run, "a", "draining")
	_, err = b.admin.DrainWorker(t.Context(), &writv1.DrainWorkerRequest{Worker: "w1", Undo: true})
	require.NoError(t, err)
	end = b.Ended(run)
	require.Equal(t, "w1", end.GetTasks()[0].GetAttempts()[0].GetWorker())
	b.clean()
}

// TestActionsAreReachedFromTheCommandLine is about the words of the commands;
// what they do is told above.
func TestActionsAreReachedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	b := start(t, cluster.Config{Replicas: 1, Workers: 1})
	run := b.begin("typed", chain)
	b.awaitBooked("first", 1)
	writ := func(args ...string) string {
		t.Helper()
		out, err := b.Writ(args...)
		require.NoError(t, err, out)
		return out
	}
	require.Contains(t, writ("run", "pause", run, "--by", "ada"), "paused by person/ada")
	require.Contains(t, writ("status"), "1 active run")
	require.NotContains(t, writ("run", "resume", run), "paused")
	require.Contains(t, writ("worker", "drain", "w1", "--why", "tired"), "drains tired")
	require.Contains(t, writ("worker", "list"), "drains tired")
	require.NotContains(t, writ("worker", "drain", "w1", "--undo"), "drains")
	require.Contains(t, writ("task", "clear", run, "first"), "1 task is to run again: first")
	b.open("gate")
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, b.Ended(run).GetRun().GetState())
	out, err := b.Writ("task", "retry", run)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Contains(t, out, "none of its tasks failed or was cancelled")
	b.clean()
}
