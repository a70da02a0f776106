package cli_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/writ-sched/writ/internal/cli"
	"github.com/writ-sched/writ/internal/grpctest"
	"github.com/writ-sched/writ/internal/keeper"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	if keeper.Invoked(os.Args) { // a worker of a test runs its processes by this binary
		os.Exit(keeper.Main(os.Args)) //nolint:forbidigo // the process is a keeper, not a test
	}
	goleak.VerifyTestMain(m)
}

// noon is the clock of all tests.
func noon() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

// at is an instant some seconds before noon.
func at(before float64) *timestamppb.Timestamp {
	return timestamppb.New(noon().Add(-time.Duration(before * float64(time.Second))))
}

// cluster is a server whose answers a test sets before it asks.
type cluster struct {
	writv1.UnimplementedWorkflowServiceServer
	writv1.UnimplementedRunServiceServer
	writv1.UnimplementedAdminServiceServer

	address string
	err     error // the answer to everything but streams

	applied   *writv1.ApplyWorkflowResponse
	workflow  *writv1.GetWorkflowResponse
	workflows []*writv1.ListWorkflowsResponse // pages
	started   *writv1.StartRunResponse
	run       *writv1.GetRunResponse
	runs      []*writv1.ListRunsResponse // pages
	cancelled *writv1.CancelRunResponse
	explained *writv1.ExplainRunResponse
	status    *writv1.GetStatusResponse
	audit     *writv1.AuditResponse
	watches   [][]*writv1.WatchRunResponse // one for each stream that is opened
	logs      [][]*writv1.ReadLogResponse
	broken    error // ends every stream but the last

	mu       sync.Mutex // guards requests and opened
	requests []any
	opened   int
}

// serve starts the server on a free port.
func (c *cluster) serve(t *testing.T) *cluster {
	t.Helper()
	s := grpc.NewServer()
	writv1.RegisterWorkflowServiceServer(s, c)
	writv1.RegisterRunServiceServer(s, c)
	writv1.RegisterAdminServiceServer(s, c)
	c.address = grpctest.Listen(t, s)
	return c
}

func (c *cluster) note(req any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, req)
}

// request is the latest request of a type.
func request[T any](t *testing.T, c *cluster) T {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.requests) - 1; i >= 0; i-- {
		if r, ok := c.requests[i].(T); ok {
			return r
		}
	}
	require.Fail(t, "no such request")
	panic("unreachable")
}

func (c *cluster) ApplyWorkflow(_ context.Context, r *writv1.ApplyWorkflowRequest) (*writv1.ApplyWorkflowResponse, error) {
	c.note(r)
	return c.applied, c.err
}

func (c *cluster) GetWorkflow(_ context.Context, r *writv1.GetWorkflowRequest) (*writv1.GetWorkflowResponse, error) {
	c.note(r)
	return c.workflow, c.err
}

func (c *cluster) ListWorkflows(_ context.Context, r *writv1.ListWorkflowsRequest) (*writv1.ListWorkflowsResponse, error) {
	c.note(r)
	return c.workflows[len(r.GetPageToken())], c.err
}

func (c *cluster) StartRun(_ context.Context, r *writv1.StartRunRequest) (*writv1.StartRunResponse, error) {
	c.note(r)
	return c.started, c.err
}

func (c *cluster) GetRun(_ context.Context, r *writv1.GetRunRequest) (*writv1.GetRunResponse, error) {
	c.note(r)
	return c.run, c.err
}

func (c *cluster) ListRuns(_ context.Context, r *writv1.ListRunsRequest) (*writv1.ListRunsResponse, error) {
	c.note(r)
	return c.runs[len(r.GetPageToken())], c.err
}

func (c *cluster) CancelRun(_ context.Context, r *writv1.CancelRunRequest) (*writv1.CancelRunResponse, error) {
	c.note(r)
	return c.cancelled, c.err
}

func (c *cluster) ExplainRun(_ context.Context, r *writv1.ExplainRunRequest) (*writv1.ExplainRunResponse, error) {
	c.note(r)
	return c.explained, c.err
}

func (c *cluster) GetStatus(_ context.Context, r *writv1.GetStatusRequest) (*writv1.GetStatusResponse, error) {
	c.note(r)
	return c.status, c.err
}

func (c *cluster) ListWorkers(_ context.Context, r *writv1.ListWorkersRequest) (*writv1.ListWorkersResponse, error) {
	c.note(r)
	return &writv1.ListWorkersResponse{Workers: c.status.GetWorkers()}, c.err
}

func (c *cluster) Audit(_ context.Context, r *writv1.AuditRequest) (*writv1.AuditResponse, error) {
	c.note(r)
	return c.audit, c.err
}

func (c *cluster) WatchRun(r *writv1.WatchRunRequest, stream grpc.ServerStreamingServer[writv1.WatchRunResponse]) error {
	c.note(r)
	return play(c, c.watches, stream)
}

func (c *cluster) ReadLog(r *writv1.ReadLogRequest, stream grpc.ServerStreamingServer[writv1.ReadLogResponse]) error {
	c.note(r)
	return play(c, c.logs, stream)
}

// play sends the next of the prepared streams.
func play[T any](c *cluster, all [][]*T, stream grpc.ServerStreamingServer[T]) error {
	c.mu.Lock()
	i := c.opened
	c.opened++
	c.mu.Unlock()
	for _, m := range all[min(i, len(all)-1)] {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	if i < len(all)-1 || c.err != nil {
		return c.broken
	}
	return nil
}

// terminal is the size of a test's terminal; none where zero.
type terminal struct{ width, height int }

// said is what a command left behind.
type said struct {
	code           int
	stdout, stderr string
}

// writ runs a command against the cluster.
func (c *cluster) writ(t *testing.T, args ...string) said {
	t.Helper()
	return run(t, t.Context(), terminal{}, map[string]string{"WRIT_SERVER": c.address, "USER": "ada"}, "", args...)
}

// run runs a command.
func run(t *testing.T, ctx context.Context, size terminal, vars map[string]string, stdin string, args ...string) said {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Run(ctx, cli.Env{
		Args: args, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
		Getenv:  func(name string) string { return vars[name] },
		Environ: func() []string { return nil },
		Now:     noon,
		Terminal: func() (int, int, bool) {
			return size.width, size.height, size != terminal{}
		},
	})
	return said{code, stdout.String(), stderr.String()}
}

// golden compares a text with a file in testdata; -update rewrites the file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update")
	require.Equal(t, string(want), text)
}
