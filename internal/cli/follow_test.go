package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// started is a cluster whose only run ends in a state.
func started(state writv1.RunState, text string) *cluster {
	return &cluster{
		started: &writv1.StartRunResponse{Run: running(), Created: true},
		watches: [][]*writv1.WatchRunResponse{ended(state, text)},
	}
}

func TestStartPrintsNothingButTheRun(t *testing.T) {
	t.Parallel()
	c := started(writv1.RunState_RUN_STATE_SUCCESS, "").serve(t)
	got := c.writ(t, "run", "start", "census", "--param", "root=/usr", "-p", "note=a=b", "--key", "build 7", "--id", "x")
	require.Equal(t, said{0, "census.k-1\n", ""}, got)
	asked := request[*writv1.StartRunRequest](t, c)
	require.Equal(t, map[string]string{"root": "/usr", "note": "a=b"}, asked.GetParams())
	require.Equal(t, "build 7", asked.GetIdempotencyKey())
	require.Equal(t, "x", asked.GetId())
	require.Equal(t, "ada", asked.GetBy())

	again := &cluster{started: &writv1.StartRunResponse{Run: running()}}
	got = again.serve(t).writ(t, "run", "start", "census", "--key", "build 7")
	require.Equal(t, "census.k-1\n", got.stdout)
	require.Contains(t, got.stderr, "was started before")
}

func TestFollowTellsEveryChangeOnALineOfItsOwn(t *testing.T) {
	t.Parallel()
	got := started(writv1.RunState_RUN_STATE_SUCCESS, "all tasks succeeded").serve(t).writ(t, "run", "start", "census", "--follow")
	require.Zero(t, got.code)
	require.Empty(t, got.stderr)
	golden(t, "follow.golden", got.stdout)
}

func TestFollowRedrawsOneTableOnATerminal(t *testing.T) {
	t.Parallel()
	c := started(writv1.RunState_RUN_STATE_FAILED, "tasks failed: count-1").serve(t)
	vars := map[string]string{"WRIT_SERVER": c.address, "NO_COLOR": "1"}
	got := run(t, t.Context(), terminal{60, 40}, vars, "", "run", "start", "census", "--follow")
	require.Equal(t, 1, got.code)
	require.Empty(t, got.stderr)
	shown := screenOf(t, got.stdout)
	golden(t, "follow-table.golden", shown)
	for line := range strings.Lines(shown) {
		require.LessOrEqual(t, len([]rune(line)), 61)
	}
}

// screenOf is what a terminal shows in the end that got this output.
func screenOf(t *testing.T, output string) string {
	t.Helper()
	var rows []string
	at := 0
	for frame := range strings.SplitAfterSeq(output, "\n") {
		for m := up().FindStringSubmatch(frame); m != nil; m = up().FindStringSubmatch(frame) {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			at -= n
			frame = strings.TrimPrefix(frame, m[0])
		}
		if rest, found := strings.CutPrefix(frame, "\x1b[J"); found {
			rows, frame = rows[:at], rest
		}
		for m := up().FindStringSubmatch(frame); m != nil; m = up().FindStringSubmatch(frame) {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			at -= n
			frame = strings.TrimPrefix(frame, m[0])
		}
		if frame == "" {
			continue
		}
		line, found := strings.CutSuffix(strings.TrimPrefix(frame, "\r"), "\x1b[K\n")
		require.True(t, found, "%q", frame)
		rows = append(rows[:min(at, len(rows))], append([]string{line}, rows[min(at+1, len(rows)):]...)...)
		at++
	}
	return strings.Join(rows, "\n") + "\n"
}

func up() *regexp.Regexp { return regexp.MustCompile(`^\x1b\[(\d+)A`) }

func TestALargeRunIsCutToTheTerminalWhileItRuns(t *testing.T) {
	t.Parallel()
	first := &writv1.WatchRunResponse{Run: running()}
	for i := range 100 {
		first.Tasks = append(first.Tasks, &writv1.TaskStatus{Task: fmt.Sprintf("t%02d", i)})
	}
	first.Tasks[70].State = writv1.TaskState_TASK_STATE_RUNNING
	c := &cluster{watches: [][]*writv1.WatchRunResponse{{first}, {first}}, broken: status.Error(codes.NotFound, "gone")}
	vars := map[string]string{"WRIT_SERVER": c.serve(t).address, "NO_COLOR": "1"}
	got := run(t, t.Context(), terminal{60, 10}, vars, "", "run", "wait", "census.k-1", "--follow")
	require.Equal(t, 2, got.code)
	shown := screenOf(t, got.stdout)
	require.LessOrEqual(t, strings.Count(shown, "\n"), 10)
	require.Contains(t, shown, "t70   running")
	require.Contains(t, shown, "and 93 tasks more")
}

func TestFollowInJSONIsTheStreamALineEach(t *testing.T) {
	t.Parallel()
	got := started(writv1.RunState_RUN_STATE_SUCCESS, "").serve(t).writ(t, "run", "start", "census", "--follow", "--json")
	require.Zero(t, got.code)
	lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	require.Len(t, lines, 2)
	var last writv1.WatchRunResponse
	require.NoError(t, protojson.Unmarshal([]byte(lines[1]), &last))
	require.True(t, last.GetEnded())
}

func TestTheExitCodeOfWaitTellsTheOutcome(t *testing.T) {
	t.Parallel()
	for state, want := range map[writv1.RunState]said{
		writv1.RunState_RUN_STATE_SUCCESS:   {0, "census.k-1 success\n", ""},
		writv1.RunState_RUN_STATE_FAILED:    {1, "census.k-1 failed\n", ""},
		writv1.RunState_RUN_STATE_CANCELLED: {3, "census.k-1 cancelled\n", ""},
	} {
		c := started(state, "so it is").serve(t)
		require.Equal(t, want, c.writ(t, "run", "wait", "census.k-1"))
		got := c.writ(t, "run", "wait", "census.k-1", "--json")
		require.Equal(t, want.code, got.code)
		require.True(t, json.Valid([]byte(got.stdout)))
	}
}

func TestABrokenStreamIsOpenedAgain(t *testing.T) {
	t.Parallel()
	both := ended(writv1.RunState_RUN_STATE_SUCCESS, "all tasks succeeded")
	c := &cluster{
		watches: [][]*writv1.WatchRunResponse{{both[0]}, {both[0]}, both},
		broken:  status.Error(codes.Unavailable, "the replica stops"),
	}
	got := c.serve(t).writ(t, "run", "wait", "census.k-1", "--follow")
	require.Zero(t, got.code)
	golden(t, "follow.golden", got.stdout)
}

func TestARunThatDoesNotEndInTimeIsFour(t *testing.T) {
	t.Parallel()
	c := &cluster{watches: [][]*writv1.WatchRunResponse{{{Run: running()}}, {}}, broken: status.Error(codes.Unavailable, "not now")}
	got := c.serve(t).writ(t, "run", "wait", "census.k-1", "--timeout", "300ms")
	require.Equal(t, 4, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "--timeout")
}

func TestAFollowerThatIsInterruptedSaysThatTheRunGoesOn(t *testing.T) {
	t.Parallel()
	c := &cluster{watches: [][]*writv1.WatchRunResponse{{{Run: running()}}, {}}, broken: status.Error(codes.Unavailable, "not now")}
	c.serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	got := run(t, ctx, terminal{}, map[string]string{"WRIT_SERVER": c.address}, "", "run", "wait", "census.k-1")
	require.Equal(t, 4, got.code)
	require.Contains(t, got.stderr, "the run goes on")
}

func TestLogsAreWrittenAsTheyWere(t *testing.T) {
	t.Parallel()
	c := &cluster{logs: [][]*writv1.ReadLogResponse{{
		{Attempt: 2, Data: []byte("one\ntwo")},
		{Attempt: 2, Offset: 107, LeftOut: 100, Data: []byte{0xff, '\n'}, Complete: true, Note: "ended by writ"},
	}}}
	got := c.serve(t).writ(t, "logs", "census.k-1", "count.00003", "--attempt", "2")
	require.Equal(t, said{0, "one\ntwo\n[writ: 100 bytes left out]\n\xff\n", "[writ: ended by writ]\n"}, got)
	asked := request[*writv1.ReadLogRequest](t, c)
	require.Equal(t, "count", asked.GetTask())
	require.Equal(t, "00003", asked.GetInstance())
	require.Equal(t, int32(2), asked.GetAttempt())
}

func TestAFollowedLogGoesOnBehindItsLastByte(t *testing.T) {
	t.Parallel()
	c := &cluster{
		logs:   [][]*writv1.ReadLogResponse{{{Attempt: 2, Data: []byte("abc")}}, {{Attempt: 2, Offset: 3, Data: []byte("def"), Complete: true}}},
		broken: status.Error(codes.Unavailable, "the replica stops"),
	}
	got := c.serve(t).writ(t, "logs", "census.k-1", "count", "-f")
	require.Equal(t, said{0, "abcdef", ""}, got)
	asked := request[*writv1.ReadLogRequest](t, c)
	require.Equal(t, int64(3), asked.GetOffset())
	require.Equal(t, int32(2), asked.GetAttempt(), "the attempt that was begun, even where a later one is there")
}
