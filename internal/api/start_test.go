package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/internal/api"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store/storetest"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestStartedRunIsThereWithItsInput(t *testing.T) {
	t.Parallel()
	w := setup(t)
	flow := census()
	flow.Timeout = durationpb.New(time.Hour)
	w.apply(flow)
	answer, err := w.runs.StartRun(t.Context(), &writv1.StartRunRequest{Workflow: "census", Params: root(), By: "ada"})
	require.NoError(t, err)
	require.True(t, answer.GetCreated())
	require.Equal(t, writv1.RunState_RUN_STATE_RUNNING, answer.GetRun().GetState())
	id := record.RunID(answer.GetRun().GetRun())
	require.NoError(t, id.Check())
	stored, err := w.Get(t.Context(), record.RunKey(id))
	require.NoError(t, err)
	run := stored.Value.(record.Run)
	require.Equal(t, run.CreatedAt.Add(time.Hour), run.Deadline)
	require.Equal(t, "person/ada", run.By)
	require.Equal(t, stored.ModRev, answer.GetRun().GetModRevision())

	got, err := w.runs.GetRun(t.Context(), &writv1.GetRunRequest{Run: string(id)})
	require.NoError(t, err)
	require.Equal(t, root(), got.GetParams())
	require.Len(t, got.GetTasks(), 3)
	require.Equal(t, map[string]int32{"none": 3}, got.GetRun().GetTasks())
	require.Equal(t, []string{"list"}, got.GetTasks()[1].GetNeeds())
}

func TestRepeatedStartFindsTheRunOfTheFirst(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	for _, first := range []*writv1.StartRunRequest{
		{Workflow: "census", Params: root(), IdempotencyKey: "build 7"},
		{Workflow: "census", Params: root(), Id: "nightly", IdempotencyKey: "a key is for a run without an id"},
	} {
		made, err := w.runs.StartRun(t.Context(), first)
		require.NoError(t, err)
		require.True(t, made.GetCreated())
		check := func(how string) {
			again, err := w.runs.StartRun(t.Context(), first)
			require.NoError(t, err, how)
			require.False(t, again.GetCreated(), how)
			require.Equal(t, made.GetRun().GetRun(), again.GetRun().GetRun(), how)
			_, err = w.runs.StartRun(t.Context(), &writv1.StartRunRequest{
				Workflow: "census", Params: map[string]string{"root": "/etc"}, IdempotencyKey: first.GetIdempotencyKey(), Id: first.GetId(),
			})
			require.Equal(t, codes.AlreadyExists, status.Code(err), how)
			require.Contains(t, status.Convert(err).Message(), "with other parameters")
		}
		check("while it is active")
		w.end(record.RunID(made.GetRun().GetRun()), record.RunSuccess)
		check("after its end")
	}
	// What stands against a new run does not stand against a repeated request.
	w.cluster.set(func(o *outside) { o.full = api.ErrFull })
	again, err := w.runs.StartRun(t.Context(), &writv1.StartRunRequest{Workflow: "census", Params: root(), IdempotencyKey: "build 7"})
	require.NoError(t, err)
	require.False(t, again.GetCreated())
	_, err = w.runs.StartRun(t.Context(), &writv1.StartRunRequest{Workflow: "census", Params: root(), IdempotencyKey: "build 8"})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}

func TestStartRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	for _, c := range []struct {
		m    *writv1.StartRunRequest
		code codes.Code
		says string
	}{
		{&writv1.StartRunRequest{Workflow: "nothing"}, codes.NotFound, "workflow nothing"},
		{&writv1.StartRunRequest{Workflow: "No"}, codes.InvalidArgument, "workflow: "},
		{&writv1.StartRunRequest{Workflow: "census"}, codes.InvalidArgument, "params.root: is required"},
		{&writv1.StartRunRequest{Workflow: "census", Params: map[string]string{"root": "/", "rot": "/"}}, codes.InvalidArgument, "did you mean root?"},
		{&writv1.StartRunRequest{Workflow: "census", Params: root(), Id: "20261201t000000z"}, codes.InvalidArgument, "looks like a logical date"},
		{&writv1.StartRunRequest{Workflow: "census", Params: root(), Id: "k-1"}, codes.InvalidArgument, "idempotency keys"},
		{&writv1.StartRunRequest{Workflow: "census", Params: root(), IdempotencyKey: strings.Repeat("k", 257)}, codes.InvalidArgument, "at most 256"},
		{&writv1.StartRunRequest{Workflow: "census", Params: root(), By: strings.Repeat("b", 101)}, codes.InvalidArgument, "by: "},
	} {
		_, err := w.runs.StartRun(t.Context(), c.m)
		require.Equal(t, c.code, status.Code(err), "%v", c.m)
		require.ErrorContains(t, err, c.says)
	}
	w.mirrorShowsNoRun()
}

func (w *world) mirrorShowsNoRun() {
	w.t.Helper()
	list, err := w.runs.ListRuns(w.t.Context(), &writv1.ListRunsRequest{})
	require.NoError(w.t, err)
	require.Empty(w.t, list.GetRuns())
}

func TestRunThatALimitStandsAgainstIsQueued(t *testing.T) {
	t.Parallel()
	w := setup(t)
	flow := census()
	flow.MaxActiveRuns = 1
	flow.Timeout = durationpb.New(time.Hour)
	w.apply(flow)
	answer, err := w.runs.StartRun(t.Context(), &writv1.StartRunRequest{Workflow: "census", Params: root(), Id: "limited"})
	require.NoError(t, err)
	require.Equal(t, writv1.RunState_RUN_STATE_QUEUED, answer.GetRun().GetState())
	stored, err := w.Get(t.Context(), record.RunKey("census.limited"))
	require.NoError(t, err)
	require.Zero(t, stored.Value.(record.Run).Deadline, "it counts from the start")

	other := census()
	other.Name = "paused"
	w.apply(other)
	pointer, err := w.Get(t.Context(), record.WorkflowKey("paused"))
	require.NoError(t, err)
	held := pointer.Value.(record.Workflow)
	held.Paused = &record.Hold{By: "person/ada", At: time.Now().UTC()}
	w.reach(w.Seed(record.WorkflowKey("paused"), held, 0))
	answer, err = w.runs.StartRun(t.Context(), &writv1.StartRunRequest{Workflow: "paused", Params: root(), Id: "held"})
	require.NoError(t, err)
	require.Equal(t, writv1.RunState_RUN_STATE_QUEUED, answer.GetRun().GetState())
}

func TestStartIsDecidedByTheWorkflowAsItIsWritten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	// The mirror of another replica lags: it is held back here by a store that
	// is written to beside it, in the same breath.
	flow := census()
	flow.Description = "newer"
	for i := range 5 {
		flow.Description = fmt.Sprint(i)
		revision := w.apply(flow).GetRevision()
		id := w.begin(fmt.Sprint("run-", i))
		stored, err := w.Get(t.Context(), record.RunKey(id))
		require.NoError(t, err)
		require.EqualValues(t, revision, stored.Value.(record.Run).Revision)
	}
}

func TestStartOfUnknownOutcomeSaysSoAndIsSafeToRepeat(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	w.Inject(storetest.Hold, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	m := &writv1.StartRunRequest{Workflow: "census", Params: root(), IdempotencyKey: "one"}
	_, err := w.runs.StartRun(ctx, m)
	require.Contains(t, []codes.Code{codes.Unavailable, codes.DeadlineExceeded}, status.Code(err))
	if status.Code(err) == codes.Unavailable {
		require.ErrorContains(t, err, "may or may not have happened")
	}
	w.Release()
	_, err = w.runs.StartRun(t.Context(), m)
	require.NoError(t, err)
	n, err := w.Count(t.Context(), record.AllOf(record.FamilyRun))
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

func TestStartGoesOnWhereAnswersAreLost(t *testing.T) {
	t.Parallel()
	for _, fault := range []storetest.Fault{storetest.LostReply, storetest.Zombie, storetest.Drop} {
		w := setup(t)
		w.apply(census())
		w.Inject(fault, 2)
		w.begin("one")
		w.Release()
		n, err := w.Count(t.Context(), record.AllOf(record.FamilyRun))
		require.NoError(t, err)
		require.EqualValues(t, 1, n, "%s", fault)
	}
}
