package replica_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/writ-sched/writ/internal/etcd"
	"github.com/writ-sched/writ/internal/replica"
	"github.com/writ-sched/writ/pkg/worker"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// patience bounds what a test waits for something that must come.
const patience = 2 * time.Minute

// started is a replica that serves.
type started struct {
	*replica.Replica
	stop func()
}

func start(t *testing.T, config replica.Config) *started {
	t.Helper()
	config.Listen = "127.0.0.1:0"
	r, err := replica.New(config, zaptest.NewLogger(t))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	s := &started{Replica: r}
	stopped := false
	s.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(s.stop)
	select {
	case <-r.Ready():
	case err := <-done:
		stopped = true
		require.NoError(t, err)
		require.Fail(t, "the replica ended before it was ready")
	case <-time.After(patience):
		require.Fail(t, "the replica does not become ready")
	}
	return s
}

func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

func work(t *testing.T, config worker.Config) (stop func()) {
	t.Helper()
	w, err := worker.New(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}

// follow waits for the end of a run and returns it with its tasks as they
// ended, by id.
func follow(t *testing.T, conn *grpc.ClientConn, run string) (*writv1.Run, map[string]*writv1.TaskStatus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := writv1.NewRunServiceClient(conn).WatchRun(ctx, &writv1.WatchRunRequest{Run: run})
	require.NoError(t, err)
	tasks := make(map[string]*writv1.TaskStatus)
	for {
		m, err := stream.Recv()
		require.NoError(t, err)
		for _, task := range m.GetTasks() {
			tasks[task.GetTask()] = task
		}
		if m.GetEnded() {
			return m.GetRun(), tasks
		}
	}
}

func fan(width int) *writv1.Workflow {
	flow := &writv1.Workflow{Name: "fan", Tasks: []*writv1.Task{{Id: "first", Handler: "noop"}}}
	last := &writv1.Task{Id: "last", Handler: "noop"}
	for i := range width {
		id := fmt.Sprintf("part-%d", i)
		flow.Tasks = append(flow.Tasks, &writv1.Task{Id: id, Handler: "noop", Needs: []string{"first"}, Idempotent: i%2 == 0})
		last.Needs = append(last.Needs, id)
	}
	flow.Tasks = append(flow.Tasks, last)
	return flow
}

func TestRunOfHandlersGoesToItsEnd(t *testing.T) {
	t.Parallel()
	r := start(t, replica.Config{Etcd: etcd.Config{Dir: t.TempDir(), UnsafeNoFsync: true}, KeepHistory: true})
	conn := dial(t, r.Address())
	work(t, worker.Config{
		Servers: []string{r.Address()}, Name: "w1", Slots: 8,
		Handlers: map[string]worker.Handler{"noop": func(_ context.Context, t *worker.Task) (any, error) { return t.Task, nil }},
	})
	flows, runs := writv1.NewWorkflowServiceClient(conn), writv1.NewRunServiceClient(conn)
	applied, err := flows.ApplyWorkflow(t.Context(), &writv1.ApplyWorkflowRequest{Source: &writv1.ApplyWorkflowRequest_Workflow{Workflow: fan(50)}})
	require.NoError(t, err)
	require.True(t, applied.GetChanged())
	made, err := runs.StartRun(t.Context(), &writv1.StartRunRequest{Workflow: "fan"})
	require.NoError(t, err)
	end, tasks := follow(t, conn, made.GetRun().GetRun())
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, end.GetState())
	require.Len(t, tasks, 52)
	verdict, err := writv1.NewAdminServiceClient(conn).Audit(t.Context(), &writv1.AuditRequest{})
	require.NoError(t, err)
	require.Empty(t, verdict.GetViolations())
	require.False(t, verdict.GetTruncated())
	require.Len(t, verdict.GetLeaders(), 1)
}
