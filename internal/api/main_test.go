package api_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/writ-sched/writ/internal/api"
	"github.com/writ-sched/writ/internal/grpctest"
	"github.com/writ-sched/writ/internal/mirror"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/store/storetest"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one replica's api over a store in memory.
type world struct {
	*storetest.Fake
	t       *testing.T
	mirror  *mirror.Mirror
	cluster *outside
	service *api.Service

	workflows writv1.WorkflowServiceClient
	runs      writv1.RunServiceClient
	admin     writv1.AdminServiceClient
}

// outside is what the api asks of the rest of a replica.
type outside struct {
	mu     sync.Mutex // guards the fields below
	full   error
	log    func(who view.SessionRef, name record.Ref, offset int64) (*writv1.LogChunk, error)
	audits []string
	err    error
}

func (o *outside) Admit() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.full
}

func (o *outside) Status(context.Context) (*writv1.GetStatusResponse, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &writv1.GetStatusResponse{Cluster: "default", Replica: "r1"}, o.err
}

func (o *outside) Audit(_ context.Context, run string) (*writv1.AuditResponse, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.audits = append(o.audits, run)
	return &writv1.AuditResponse{Events: 3}, o.err
}

func (o *outside) ReadLog(_ context.Context, who view.SessionRef, name record.Ref, offset int64, _ int) (*writv1.LogChunk, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.log(who, name, offset)
}

func (o *outside) set(f func(*outside)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(o)
}

type shown struct{ *mirror.Mirror }

func (s shown) Feed() api.Feed { return s.Mirror.Feed() }

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{Fake: storetest.Start(t), t: t, cluster: &outside{}}
	w.mirror = mirror.New(w.Fake, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { _ = w.mirror.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	w.service = api.New(api.Config{Replica: "r1"}, w.Fake, shown{w.mirror}, w.cluster)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(api.MaxMessageBytes), grpc.MaxSendMsgSize(api.MaxMessageBytes))
	w.service.Register(server)
	conn := grpctest.Dial(t, server, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(api.MaxMessageBytes)))
	w.workflows, w.runs, w.admin = writv1.NewWorkflowServiceClient(conn), writv1.NewRunServiceClient(conn), writv1.NewAdminServiceClient(conn)
	return w
}

// census is a workflow of three tasks, one behind the other.
func census() *writv1.Workflow {
	return &writv1.Workflow{
		Name: "census", Description: "counts",
		Params: []*writv1.Param{{Name: "root", Required: true}},
		Tasks: []*writv1.Task{
			{Id: "list", Run: "ls", Idempotent: true},
			{Id: "count", Run: "wc -l", Needs: []string{"list"}},
			{Id: "report", Run: "cat", Needs: []string{"count"}},
		},
	}
}

func (w *world) apply(m *writv1.Workflow) *writv1.ApplyWorkflowResponse {
	w.t.Helper()
	answer, err := w.workflows.ApplyWorkflow(w.t.Context(), &writv1.ApplyWorkflowRequest{
		Source: &writv1.ApplyWorkflowRequest_Workflow{Workflow: m}, By: "ada",
	})
	require.NoError(w.t, err)
	return answer
}

func root() map[string]string { return map[string]string{"root": "/srv"} }

// begin starts a run of census.
func (w *world) begin(id string) record.RunID {
	w.t.Helper()
	answer, err := w.runs.StartRun(w.t.Context(), &writv1.StartRunRequest{Workflow: "census", Params: root(), Id: id, By: "ada"})
	require.NoError(w.t, err)
	return record.RunID(answer.GetRun().GetRun())
}

// reach waits until the mirror shows a revision.
func (w *world) reach(rev int64) {
	w.t.Helper()
	require.NoError(w.t, w.mirror.Await(w.t.Context(), rev))
}

// row puts an attempt row in a state, and returns when the mirror shows it.
func (w *world) row(id record.RunID, task record.TaskID, n int, state record.AttemptState) {
	w.t.Helper()
	a := record.Attempt{
		Schema: record.Schema, Run: id, Task: task, Attempt: n, Kind: record.KindExec, State: state, EnteredAt: time.Now().UTC(),
		Token: "token", Worker: "w1", Session: "s1", Queue: spec.DefaultQueue,
		Transitions: []record.Transition{{State: string(state), At: time.Now().UTC(), Rule: record.RuleStart, By: "replica/r1", Write: "writewritewrite"}},
	}
	w.reach(w.Seed(record.AttemptKey(a.Ref()), a, 0))
}

// ending moves a run to its end; its document is not written yet.
func (w *world) ending(id record.RunID, state record.RunState) {
	w.t.Helper()
	stored, err := w.Get(w.t.Context(), record.RunKey(id))
	require.NoError(w.t, err)
	run := stored.Value.(record.Run)
	run.State, run.Phase, run.EndedAt, run.EnteredAt, run.Pages = state, record.PhaseEnding, time.Now().UTC(), time.Now().UTC(), 1
	w.reach(w.Seed(record.RunKey(id), run, 0))
}

// loaded waits until the mirror has the spec of a run.
func (w *world) loaded(id record.RunID) {
	w.t.Helper()
	feed := w.mirror.Feed()
	defer feed.Close()
	for ready := false; !ready; {
		select {
		case <-feed.Wake():
		case <-w.t.Context().Done():
			require.NoError(w.t, w.t.Context().Err())
		}
		w.mirror.Read(func(v *view.Active) {
			r, ok := v.Run(id)
			ready = ok && r.Loaded()
		})
	}
}

// document writes the document of a run that is ending.
func (w *world) document(id record.RunID) {
	w.t.Helper()
	w.loaded(id)
	stamp := reconcile.Stamp{Who: "replica/r1", Prefix: "documentdocument"}
	var changes []record.Change
	w.mirror.Read(func(v *view.Active) {
		r, _ := v.Run(id)
		pages, err := reconcile.EndPages(r, stamp)
		require.NoError(w.t, err)
		head, err := reconcile.EndHead(v, r, stamp)
		require.NoError(w.t, err)
		changes = append(pages, head)
	})
	for _, c := range changes {
		require.Equal(w.t, record.Committed, w.Make(c).Verdict)
	}
}

// end takes a run to its end.
func (w *world) end(id record.RunID, state record.RunState) {
	w.t.Helper()
	for _, task := range []record.TaskID{"list", "count", "report"} {
		w.row(id, task, 1, record.Success)
	}
	w.ending(id, state)
	w.document(id)
}
