package cli_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/writ-sched/writ/internal/cli"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func (c *cluster) PauseRun(_ context.Context, r *writv1.PauseRunRequest) (*writv1.PauseRunResponse, error) {
	c.note(r)
	run := running()
	run.Paused = &writv1.Hold{By: r.GetBy(), Why: r.GetWhy()}
	return &writv1.PauseRunResponse{Run: run}, c.err
}

func (c *cluster) ResumeRun(_ context.Context, r *writv1.ResumeRunRequest) (*writv1.ResumeRunResponse, error) {
	c.note(r)
	return &writv1.ResumeRunResponse{Run: running()}, c.err
}

func (c *cluster) ClearTasks(_ context.Context, r *writv1.ClearTasksRequest) (*writv1.ClearTasksResponse, error) {
	c.note(r)
	return &writv1.ClearTasksResponse{Run: running(), Tasks: r.GetTasks()}, c.err
}

func (c *cluster) RetryTasks(_ context.Context, r *writv1.RetryTasksRequest) (*writv1.RetryTasksResponse, error) {
	c.note(r)
	run := running()
	run.Phase = "reopening"
	return &writv1.RetryTasksResponse{Run: run, Tasks: []string{"count-1", "merge"}}, c.err
}

func (c *cluster) ResolveTask(_ context.Context, r *writv1.ResolveTaskRequest) (*writv1.ResolveTaskResponse, error) {
	c.note(r)
	return &writv1.ResolveTaskResponse{Run: running(), Task: &writv1.TaskStatus{
		Task: r.GetTask(), Instance: r.GetInstance(), State: writv1.TaskState_TASK_STATE_FAILED,
		Attempts: []*writv1.Attempt{{Attempt: 1, State: writv1.TaskState_TASK_STATE_FAILED, Unproven: !r.GetDead()}},
	}}, c.err
}

func (c *cluster) DrainWorker(_ context.Context, r *writv1.DrainWorkerRequest) (*writv1.DrainWorkerResponse, error) {
	c.note(r)
	w := proto.CloneOf(c.status.GetWorkers()[0])
	w.Draining = &writv1.Hold{By: r.GetBy(), Why: r.GetWhy()}
	return &writv1.DrainWorkerResponse{Worker: w}, c.err
}

func TestActionsSayWhoAndWhyAndWhatCameOfThem(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		args []string
		want proto.Message
		says []string
	}{
		{
			"pause",
			[]string{"run", "pause", "census.k-1", "--by", "bob", "--why", "disk is full"},
			&writv1.PauseRunRequest{Run: "census.k-1", By: "bob", Why: "disk is full"},
			[]string{"census.k-1 running, paused by bob\n"},
		},
		{
			"resume",
			[]string{"run", "resume", "census.k-1", "--by", "bob"},
			&writv1.ResumeRunRequest{Run: "census.k-1", By: "bob"},
			[]string{"census.k-1 running\n"},
		},
		{
			"clear",
			[]string{"task", "clear", "census.k-1", "list", "merge", "--downstream", "--by", "bob"},
			&writv1.ClearTasksRequest{Run: "census.k-1", Tasks: []string{"list", "merge"}, Downstream: true, By: "bob"},
			[]string{"2 tasks are to run again: list, merge\n"},
		},
		{
			"retry",
			[]string{"task", "retry", "census.k-1", "--by", "bob"},
			&writv1.RetryTasksRequest{Run: "census.k-1", By: "bob"},
			[]string{"census.k-1 running reopening\n", "2 tasks are to run again: count-1, merge\n"},
		},
		{
			"resolve",
			[]string{"resolve", "census.k-1", "count.00003", "--as", "retry", "--by", "bob"},
			&writv1.ResolveTaskRequest{Run: "census.k-1", Task: "count", Instance: "00003", As: writv1.Resolution_RESOLUTION_RETRY, By: "bob"},
			[]string{"count.00003 failed; its death is not proven\n"},
		},
		{
			"vouch",
			[]string{"resolve", "census.k-1", "count", "--dead", "--by", "bob"},
			&writv1.ResolveTaskRequest{Run: "census.k-1", Task: "count", Dead: true, By: "bob"},
			[]string{"count failed\n"},
		},
		{
			"drain",
			[]string{"worker", "drain", "w1", "--why", "new disk", "--by", "bob"},
			&writv1.DrainWorkerRequest{Worker: "w1", Why: "new disk", By: "bob"},
			[]string{"drains new disk"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := full().serve(t)
			got := cluster.writ(t, c.args...)
			require.Empty(t, got.stderr)
			require.Zero(t, got.code)
			for _, text := range c.says {
				require.Contains(t, got.stdout, text)
			}
			cluster.mu.Lock()
			asked := cluster.requests[len(cluster.requests)-1]
			cluster.mu.Unlock()
			require.True(t, proto.Equal(c.want, asked.(proto.Message)), "%v", asked)

			got = cluster.writ(t, append(c.args, "--json")...)
			require.Zero(t, got.code)
			require.Contains(t, got.stdout, "{")
		})
	}
}

func TestActionsFailInTheServersWords(t *testing.T) {
	t.Parallel()
	c := full()
	c.err = status.Error(codes.FailedPrecondition, "it is success since then")
	c.serve(t)
	for _, args := range [][]string{
		{"run", "pause", "census.k-1"},
		{"run", "resume", "census.k-1"},
		{"task", "retry", "census.k-1"},
		{"task", "clear", "census.k-1", "list"},
		{"resolve", "census.k-1", "list", "--as", "failed"},
		{"worker", "drain", "w1"},
	} {
		got := c.writ(t, args...)
		require.NotZero(t, got.code)
		require.Contains(t, got.stderr, "it is success since then")
	}
}

func TestResolveSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	c := full().serve(t)
	for _, args := range [][]string{
		{"resolve", "census.k-1", "list"},
		{"resolve", "census.k-1", "list", "--as", "done"},
		{"resolve", "census.k-1"},
		{"task", "clear", "census.k-1"},
	} {
		got := c.writ(t, args...)
		require.Equal(t, cli.ExitUsage, got.code, "%v", args)
	}
	require.Contains(t, c.writ(t, "resolve", "census.k-1", "list").stderr, "expected success, failed or retry")
}

func TestWorkersAreListedBelowTheirCommandToo(t *testing.T) {
	t.Parallel()
	c := full().serve(t)
	require.Equal(t, c.writ(t, "workers").stdout, c.writ(t, "worker", "list").stdout)
}
