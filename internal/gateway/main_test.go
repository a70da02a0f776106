package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/writ-sched/writ/internal/gateway"
	"github.com/writ-sched/writ/internal/grpctest"
	"github.com/writ-sched/writ/internal/mirror"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/store/storetest"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

type shown struct{ *mirror.Mirror }

func (s shown) Feed() gateway.Feed { return s.Mirror.Feed() }

// world is one replica's gateway on a store in memory, and the way to it.
type world struct {
	*storetest.Fake
	t       *testing.T
	mirror  *mirror.Mirror
	gateway *gateway.Gateway
	client  writv1.WorkerServiceClient
	// stop ends the gateway's Run, and blind stops the mirror where it is.
	stop, blind func()

	mu     sync.Mutex // guards writes
	writes int
}

func config() gateway.Config {
	return gateway.Config{Replica: "r1", TTL: 15 * time.Second, Margin: 3 * time.Second, Confirm: time.Hour, KillGrace: 5 * time.Second}
}

func setup(t *testing.T, edit ...func(*gateway.Config)) *world {
	t.Helper()
	w := &world{Fake: storetest.Start(t), t: t}
	w.mirror = mirror.New(w.Fake, nil)
	c := config()
	for _, f := range edit {
		f(&c)
	}
	w.gateway = gateway.New(c, w.Fake, w.Fake, shown{w.mirror})
	w.serve()
	w.blind = w.background(w.mirror.Run)
	w.stop = w.background(w.gateway.Run)
	w.apply()
	return w
}

// background runs f until it is stopped, at the latest at the end of the test.
func (w *world) background(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(w.t, <-done)
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) serve() {
	server := grpc.NewServer()
	writv1.RegisterWorkerServiceServer(server, w.gateway)
	w.client = writv1.NewWorkerServiceClient(grpctest.Dial(w.t, server))
}

func (w *world) id() record.WriteID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	return record.WriteID(fmt.Sprintf("test-write-%06d", w.writes))
}

const (
	census record.RunID      = "census.r1"
	crane  record.WorkerName = "crane"
	mine   record.SessionID  = "m3v7k2qd-2"
	before record.SessionID  = "m3v7k2qd-1"
)

// ref names the first attempt of a task of the census.
func ref(task record.TaskID) record.Ref { return record.TaskRef{Run: census, Task: task}.At(1) }

// token is what the row of a task is dispatched with.
func token(task record.TaskID) string { return "token-" + string(task) }

// apply stores a workflow of two tasks, one behind the other, and a run of it.
func (w *world) apply() {
	w.t.Helper()
	flow := &spec.Workflow{Name: "census", Tasks: []spec.Task{
		{ID: "list", Run: "ls", Idempotent: true},
		{ID: "count", Run: "wc -l", Needs: []record.TaskID{"list"}},
	}}
	require.Empty(w.t, spec.Validate(flow))
	encoded, err := spec.Encode(flow)
	require.NoError(w.t, err)
	w.Seed(record.RevisionKey(flow.Name, 1), record.Revision{
		Schema: record.Schema, Workflow: flow.Name, Revision: 1, Bytes: len(encoded), Spec: record.Text(encoded), Write: w.id(),
	}, 0)
	w.Seed(record.WorkflowKey(flow.Name), record.Workflow{Schema: record.Schema, Workflow: flow.Name, Revision: 1, Write: w.id()}, 0)
	w.Seed(record.InputKey(census), record.Input{Schema: record.Schema, Run: census, Params: map[string]string{"root": "src"}, Write: w.id()}, 0)
	run, err := record.Run{Schema: record.Schema, Run: census, Workflow: flow.Name, Revision: 1, Trigger: record.TriggerManual}.
		Move(record.RunMove{To: record.RunRunning, By: record.API, Who: "person/test", At: time.Now().UTC(), Rule: record.RuleCreate, Write: w.id()})
	require.NoError(w.t, err)
	w.Seed(record.RunKey(census), run, 0)
}

// intent is the row of a task, dispatched to the session of the tests.
func (w *world) intent(task record.TaskID) record.Attempt {
	w.t.Helper()
	row, err := record.Attempt{
		Schema: record.Schema, Run: census, Task: task, Attempt: 1, Kind: record.KindExec, Queue: "default", OnLost: record.OnLostWait,
	}.Move(record.Step{
		To: record.Queued, By: record.Leader, Who: "replica/r1", At: time.Now().UTC(), Rule: record.RuleStart, Write: w.id(),
		Token: record.Token(token(task)), Worker: crane, Session: mine,
	})
	require.NoError(w.t, err)
	return row
}

// moved is a row after a step of a gateway.
func (w *world) moved(row record.Attempt, to record.AttemptState) record.Attempt {
	w.t.Helper()
	next, err := row.Move(record.Step{
		To: to, By: record.Gateway, Who: "session/" + string(mine), At: time.Now().UTC(), Rule: record.RuleFinish, Write: w.id(),
	})
	require.NoError(w.t, err)
	return next
}

// put stores a row, and returns when the mirror has it.
func (w *world) put(row record.Attempt) {
	w.t.Helper()
	w.await(w.Seed(record.AttemptKey(row.Ref()), row, 0))
}

func (w *world) await(rev int64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, w.mirror.Await(ctx, rev))
}

func (w *world) row(task record.TaskID) record.Attempt {
	w.t.Helper()
	stored, err := w.Get(w.t.Context(), record.AttemptKey(ref(task)))
	require.NoError(w.t, err)
	row, ok := stored.Value.(record.Attempt)
	require.True(w.t, ok)
	return row
}

// eventually waits until a row is as it is wanted.
func (w *world) eventually(task record.TaskID, want func(record.Attempt) bool) record.Attempt {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		stored, err := w.Get(w.t.Context(), record.AttemptKey(ref(task)))
		row, ok := stored.Value.(record.Attempt)
		return err == nil && ok && want(row)
	}, patience, 5*time.Millisecond)
	return w.row(task)
}

func in(s record.AttemptState) func(record.Attempt) bool {
	return func(a record.Attempt) bool { return a.State == s }
}

// live is the key of the session of the tests, which exists.
func (w *world) live() record.Worker {
	w.t.Helper()
	stored, err := w.Get(w.t.Context(), record.WorkerKey(crane, mine))
	require.NoError(w.t, err)
	live, ok := stored.Value.(record.Worker)
	require.True(w.t, ok)
	require.Equal(w.t, live.Lease, stored.Lease)
	return live
}
