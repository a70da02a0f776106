package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/cli"
	"github.com/writ-sched/writ/internal/executor"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// bridge is a runner on a real executor.
type bridge struct {
	cli.Runner
	dir string
}

func newBridge(t *testing.T) *bridge {
	t.Helper()
	dir := t.TempDir()
	x, err := executor.New(executor.Config{StateDir: dir})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- x.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ran)
	})
	return &bridge{cli.NewRunner(x, dir), dir}
}

// script is an attempt of a task with a script.
func script(token, text string) *writv1.Assign {
	return &writv1.Assign{
		Token: token, Attempt: &writv1.AttemptRef{Run: "hello.k-1", Task: token, Attempt: 1}, Task: &writv1.Task{Run: text},
		Params: map[string]string{"who": "world"},
	}
}

func TestARunnerTellsHowAProcessEnded(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	ok := script("ok", `echo "hello $WRIT_PARAM_WHO"; echo '{"n": 1}' > "$WRIT_RESULT"; echo out > "$WRIT_OUTPUT_DIR/file"`)
	require.Equal(t, cli.Report{State: writv1.TaskState_TASK_STATE_SUCCESS, Result: `{"n": 1}`}, b.Run(t.Context(), ok))
	out, err := os.ReadFile(filepath.Join(b.dir, "outputs", "hello.k-1", "ok", "1", "file"))
	require.NoError(t, err)
	require.Equal(t, "out\n", string(out))

	chunk := b.ReadLog(&writv1.ServeLogsResponse{Ask: 5, Attempt: ok.GetAttempt(), Limit: 1 << 16})
	require.Equal(t, int64(5), chunk.GetAsk())
	require.Equal(t, "hello world\n", string(chunk.GetData()))
	require.True(t, chunk.GetComplete())
	require.Contains(t, b.ReadLog(&writv1.ServeLogsResponse{Attempt: &writv1.AttemptRef{Run: "x.1", Task: "t", Attempt: 1}, Limit: 1}).GetMissing(), "x.1/t/1")

	bad := b.Run(t.Context(), script("bad", `echo '{' > "$WRIT_RESULT"`))
	require.Equal(t, cli.Report{State: writv1.TaskState_TASK_STATE_FAILED, Cause: "result_invalid"}, bad)
	failed := b.Run(t.Context(), script("failed", `echo '{}' > "$WRIT_RESULT"; exit 3`))
	require.Equal(t, cli.Report{State: writv1.TaskState_TASK_STATE_FAILED, Cause: "exit_code"}, failed)
	again := b.Run(t.Context(), ok)
	require.Equal(t, "start_error", again.Cause, "a token is started once")
}

func TestARunnerEndsACancelledProcess(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan cli.Report, 1)
	go func() { done <- b.Run(ctx, script("long", "echo begun; sleep 600")) }()
	ask := &writv1.ServeLogsResponse{Attempt: &writv1.AttemptRef{Run: "hello.k-1", Task: "long", Attempt: 1}, Limit: 100}
	require.Eventually(t, func() bool { return string(b.ReadLog(ask).GetData()) == "begun\n" }, patience, 10*time.Millisecond)
	cancel()
	require.Equal(t, cli.Report{State: writv1.TaskState_TASK_STATE_CANCELLED, Cause: "cancelled"}, next(t, done))
}

func TestAnEarlierLifesEndIsReadFromTheStateDirectory(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	as := script("one", `echo '[1]' > "$WRIT_RESULT"`)
	b.Run(t.Context(), as)
	found, rep, known := b.Leftover(executor.Leftover{Token: "one"})
	require.True(t, known)
	require.Equal(t, as.GetAttempt().GetRun(), found.GetAttempt().GetRun())
	require.Equal(t, cli.Report{State: writv1.TaskState_TASK_STATE_SUCCESS, Result: "[1]"}, rep)

	require.NoError(t, b.Forget("one"))
	_, _, known = b.Leftover(executor.Leftover{Token: "one"})
	require.False(t, known)
	require.NoError(t, b.Forget("one"), "nothing to forget is no error")
}

func TestOldLogsArePrunedARunAtATime(t *testing.T) {
	t.Parallel()
	b := newBridge(t)
	require.NoError(t, b.Prune(noon()), "no logs yet")
	as := script("one", "echo hello")
	b.Run(t.Context(), as)
	ask := &writv1.ServeLogsResponse{Attempt: as.GetAttempt(), Limit: 100}
	require.NoError(t, b.Prune(time.Unix(0, 0)))
	require.Empty(t, b.ReadLog(ask).GetMissing())
	require.NoError(t, b.Prune(time.Unix(1<<40, 0)))
	require.NotEmpty(t, b.ReadLog(ask).GetMissing())
}
