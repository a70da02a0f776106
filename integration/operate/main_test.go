package operate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/integration/cluster"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// bench is a cluster with a directory in which tasks wait for files of the test
// and keep a book of their own.
type bench struct {
	*cluster.Cluster
	t     *testing.T
	dir   string
	runs  writv1.RunServiceClient
	admin writv1.AdminServiceClient
}

func start(t *testing.T, config cluster.Config) *bench {
	t.Helper()
	b := &bench{t: t, Cluster: cluster.Start(t, config), dir: t.TempDir()}
	b.runs, b.admin = writv1.NewRunServiceClient(b.Conn()), writv1.NewAdminServiceClient(b.Conn())
	return b
}

// begin applies a workflow of these tasks and starts a run of it. Its
// parameter dir is the directory of the test.
func (b *bench) begin(name, tasks string) string {
	b.t.Helper()
	b.ApplyText(name+".yaml", []byte("name: "+name+"\nparams: {dir: {required: true}}\ntasks:\n"+tasks))
	return b.Run(name, b.t.Name(), map[string]string{"dir": b.dir})
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

// open lets tasks pass a gate.
func (b *bench) open(name string) {
	b.t.Helper()
	require.NoError(b.t, os.WriteFile(b.file(name), nil, 0o600))
}

// booked counts the lines of the book that read so.
func (b *bench) booked(line string) int {
	b.t.Helper()
	body, err := os.ReadFile(b.file("book"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	require.NoError(b.t, err)
	n := 0
	for l := range strings.Lines(string(body)) {
		if strings.TrimSpace(l) == line {
			n++
		}
	}
	return n
}

func (b *bench) awaitBooked(line string, n int) {
	b.t.Helper()
	b.Await(fmt.Sprintf("%d of %q in the book", n, line), func(context.Context) error {
		if got := b.booked(line); got != n {
			return fmt.Errorf("there are %d", got)
		}
		return nil
	})
}

// attempts are the states of a task's attempts.
func (b *bench) attempts(run, task string) []string {
	b.t.Helper()
	got, err := b.runs.GetRun(b.t.Context(), &writv1.GetRunRequest{Run: run})
	require.NoError(b.t, err)
	var list []string
	for _, t := range got.GetTasks() {
		if t.GetTask() == task {
			for _, a := range t.GetAttempts() {
				list = append(list, strings.ToLower(strings.TrimPrefix(a.GetState().String(), "TASK_STATE_")))
			}
		}
	}
	return list
}

// awaitReason waits until a task waits for something.
func (b *bench) awaitReason(run, task, code string) *writv1.Reason {
	b.t.Helper()
	var found *writv1.Reason
	b.Await(fmt.Sprintf("%s of %s to wait for %s", task, run, code), func(ctx context.Context) error {
		got, err := b.runs.ExplainRun(ctx, &writv1.ExplainRunRequest{Run: run, Task: task})
		if err != nil {
			return err
		}
		for _, r := range got.GetReasons() {
			if r.GetTask() == task && r.GetCode() == code {
				found = r
				return nil
			}
		}
		return fmt.Errorf("it is %v", got.GetReasons())
	})
	return found
}

// clean ends a test: the audit of everything finds nothing.
func (b *bench) clean() {
	b.t.Helper()
	verdict := b.Audit()
	require.Empty(b.t, verdict.GetViolations())
	require.False(b.t, verdict.GetTruncated())
}
