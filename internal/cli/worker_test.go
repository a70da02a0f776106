package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// hand is a worker that runs.
type hand struct {
	*gateway
	dir  string
	stop context.CancelFunc
	left chan said
}

// work starts `writ worker` and waits for its Hello.
func work(t *testing.T, g *gateway, dir string, args ...string) (*hand, *writv1.Hello) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h := &hand{gateway: g, dir: dir, stop: cancel, left: make(chan said, 1)}
	args = append([]string{
		"worker", "--server", g.address, "--name", "w1", "--state-dir", filepath.Join(dir, "state"), "--outputs", filepath.Join(dir, "outputs"),
	}, args...)
	go func() { h.left <- run(t, ctx, terminal{}, nil, "", args...) }()
	t.Cleanup(cancel)
	return h, next(t, g.hello)
}

// end stops the worker and waits for it.
func (h *hand) end(t *testing.T) said {
	t.Helper()
	h.stop()
	return next(t, h.left)
}

func TestAWorkerRunsAProcessAndReportsItsEnd(t *testing.T) {
	t.Parallel()
	h, hello := work(t, newGateway(t), t.TempDir(), "--slots", "3", "--queues", "default,big", "--labels", "zone=a")
	require.Equal(t, "w1", hello.GetWorker())
	require.Equal(t, int32(3), hello.GetSlots())
	require.Equal(t, []string{"default", "big"}, hello.GetQueues())
	require.Equal(t, map[string]string{"zone": "a"}, hello.GetLabels())
	require.True(t, hello.GetProcesses())

	ref := h.assign("aa", &writv1.Task{Idempotent: true, Run: `echo "hello $WRIT_PARAM_WHO"; echo '{"n": 1}' > "$WRIT_RESULT"; echo out > "$WRIT_OUTPUT_DIR/file"`})
	f := next(t, h.finished)
	require.Equal(t, writv1.TaskState_TASK_STATE_SUCCESS, f.GetState(), "%v", f)
	require.JSONEq(t, `{"n": 1}`, string(f.GetResult()))
	require.True(t, f.GetIdempotent())
	require.NotNil(t, f.GetStartedAt())
	require.NotNil(t, f.GetEndedAt())
	out, err := os.ReadFile(filepath.Join(h.dir, "outputs", ref.GetRun(), ref.GetTask(), "1", "file"))
	require.NoError(t, err)
	require.Equal(t, "out\n", string(out))

	h.ask <- &writv1.ServeLogsResponse{Ask: 5, Attempt: ref, Limit: 1 << 16}
	chunk := next(t, h.chunks)
	require.Equal(t, int64(5), chunk.GetAsk())
	require.Equal(t, "hello world\n", string(chunk.GetData()))
	require.True(t, chunk.GetComplete())
	h.ask <- &writv1.ServeLogsResponse{Ask: 6, Attempt: &writv1.AttemptRef{Run: "no.1", Task: "t", Attempt: 1}, Limit: 1}
	require.NotEmpty(t, next(t, h.chunks).GetMissing())

	require.Zero(t, h.end(t).code)
}

func TestAWorkerReportsWhatProcessesSayByTheirExitCodes(t *testing.T) {
	t.Parallel()
	h, _ := work(t, newGateway(t), t.TempDir())
	for script, want := range map[string]string{
		"exit 7":                        "failed exit_code",
		"exit 99":                       "skipped skipped_by_task",
		"kill -SEGV $$":                 "failed signal",
		`echo '{' > "$WRIT_RESULT"`:     "failed result_invalid",
		"/no/such/program/of/this/name": "failed exit_code",
	} {
		h.assign("t"+strings.Map(letters, script), &writv1.Task{Run: script})
		require.True(t, next(t, h.started).GetClaim())
		f := next(t, h.finished)
		require.Equal(t, want, strings.ToLower(strings.TrimPrefix(f.GetState().String(), "TASK_STATE_"))+" "+f.GetCause().GetCode(), script)
	}
	h.assign("cmd", &writv1.Task{Command: []string{"/no/such/program"}})
	require.Equal(t, "start_error", next(t, h.finished).GetCause().GetCode())
	require.Zero(t, h.end(t).code)
}

// letters keeps what a token may hold.
func letters(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return -1
}

func TestACancelledAttemptIsEndedAndSaidToBe(t *testing.T) {
	t.Parallel()
	h, _ := work(t, newGateway(t), t.TempDir())
	ref := h.assign("aa", &writv1.Task{Run: "sleep 600", Idempotent: true})
	next(t, h.started)
	h.send <- &writv1.AttendResponse{Message: &writv1.AttendResponse_Cancel{Cancel: &writv1.Cancel{Token: "aa", Attempt: ref, Why: "test"}}}
	f := next(t, h.finished)
	require.Equal(t, writv1.TaskState_TASK_STATE_CANCELLED, f.GetState())
	require.Zero(t, h.end(t).code)
}

func TestAWorkerThatStopsDrainsAndThenEndsWhatRuns(t *testing.T) {
	t.Parallel()
	h, _ := work(t, newGateway(t), t.TempDir(), "--drain", "300ms")
	h.assign("aa", &writv1.Task{Run: "sleep 600", Idempotent: true})
	next(t, h.started)
	h.stop()
	next(t, h.drained)
	f := next(t, h.finished)
	require.Equal(t, writv1.TaskState_TASK_STATE_FAILED, f.GetState())
	require.Equal(t, "worker_stopped", f.GetCause().GetCode())
	require.Zero(t, next(t, h.left).code)
}

func TestASecondWorkerOnTheSameStateDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	h, _ := work(t, newGateway(t), t.TempDir())
	got := run(t, t.Context(), terminal{}, nil, "", "worker", "--server", h.address, "--name", "w1", "--state-dir", filepath.Join(h.dir, "state"))
	require.Equal(t, 5, got.code)
	require.Contains(t, got.stderr, "state")
	require.Zero(t, h.end(t).code)
}

func TestWorkerFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for text, args := range map[string][]string{
		"--name":   {"worker", "--name", "Not A Name"},
		"--slots":  {"worker", "--name", "w", "--slots", "0"},
		"--queues": {"worker", "--name", "w", "--queues", "UPPER"},
		"--labels": {"worker", "--name", "w", "--labels", "novalue"},
		"--drain":  {"worker", "--name", "w", "--drain", "-1s"},
	} {
		got := run(t, t.Context(), terminal{}, nil, "", append(args, "--state-dir", t.TempDir())...)
		require.Equal(t, 2, got.code, args)
		require.Contains(t, got.stderr, text)
	}
}
