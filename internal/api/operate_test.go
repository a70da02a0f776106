package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/api"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// stored reads a run record.
func (w *world) stored(id record.RunID) record.Run {
	w.t.Helper()
	s, err := w.Get(w.t.Context(), record.RunKey(id))
	require.NoError(w.t, err)
	run, ok := s.Value.(record.Run)
	require.True(w.t, ok, "%s is not active", id)
	return run
}

func (w *world) cleared(id record.RunID, seq int) record.Clear {
	w.t.Helper()
	s, err := w.Get(w.t.Context(), record.ClearKey(id, seq))
	require.NoError(w.t, err)
	c, ok := s.Value.(record.Clear)
	require.True(w.t, ok, "there is no clear %d", seq)
	return c
}

// closed puts a row that no worker ever held.
func (w *world) closed(id record.RunID, task record.TaskID, state record.AttemptState) {
	w.t.Helper()
	a := record.Attempt{
		Schema: record.Schema, Run: id, Task: task, Attempt: 1, Kind: record.KindExec, State: state, EnteredAt: time.Now().UTC(),
		Transitions: []record.Transition{{State: string(state), At: time.Now().UTC(), Rule: record.RuleTrigger, By: "replica/r1", Write: "closedclosedclosed"}},
	}
	w.reach(w.Seed(record.AttemptKey(a.Ref()), a, 0))
}

// attend puts the key of the session that rows of the world name.
func (w *world) attend() {
	w.t.Helper()
	lease, _, err := w.Grant(w.t.Context(), time.Hour)
	require.NoError(w.t, err)
	w.reach(w.Seed(record.WorkerKey("w1", "s1"), record.Worker{
		Schema: record.Schema, Worker: "w1", Session: "s1", Lease: lease, TTL: record.Duration(time.Hour), Slots: 2, Write: "workerworkerworker",
	}, lease))
}

func lastStep(list []record.Transition) string {
	last := list[len(list)-1]
	return fmt.Sprint(last.State, " ", last.Rule, " ", last.By)
}

func TestHoldIsRecordedWithItsAuthorAndLifted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	held, err := w.runs.PauseRun(t.Context(), &writv1.PauseRunRequest{Run: string(id), By: "bob", Why: "disk is full"})
	require.NoError(t, err)
	require.Equal(t, "person/bob disk is full", held.GetRun().GetPaused().GetBy()+" "+held.GetRun().GetPaused().GetWhy())
	again, err := w.runs.PauseRun(t.Context(), &writv1.PauseRunRequest{Run: string(id), By: "carl"})
	require.NoError(t, err)
	require.Equal(t, "person/bob", again.GetRun().GetPaused().GetBy())
	require.Equal(t, held.GetRun().GetModRevision(), again.GetRun().GetModRevision())
	require.Equal(t, "running pause person/bob", lastStep(w.stored(id).Transitions))

	free, err := w.runs.ResumeRun(t.Context(), &writv1.ResumeRunRequest{Run: string(id), By: "carl"})
	require.NoError(t, err)
	require.Nil(t, free.GetRun().GetPaused())
	require.Equal(t, writv1.RunState_RUN_STATE_RUNNING, free.GetRun().GetState())
	require.Equal(t, "running pause person/carl", lastStep(w.stored(id).Transitions))
	_, err = w.runs.ResumeRun(t.Context(), &writv1.ResumeRunRequest{Run: string(id)})
	require.NoError(t, err)

	_, err = w.runs.CancelRun(t.Context(), &writv1.CancelRunRequest{Run: string(id)})
	require.NoError(t, err)
	_, err = w.runs.PauseRun(t.Context(), &writv1.PauseRunRequest{Run: string(id)})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "being cancelled")
	done := w.begin("two")
	w.end(done, record.RunSuccess)
	for _, ask := range []func() error{
		func() error {
			_, err := w.runs.PauseRun(t.Context(), &writv1.PauseRunRequest{Run: string(done)})
			return err
		},
		func() error {
			_, err := w.runs.ResumeRun(t.Context(), &writv1.ResumeRunRequest{Run: string(done)})
			return err
		},
	} {
		err := ask()
		require.Equal(t, codes.FailedPrecondition, status.Code(err))
		require.ErrorContains(t, err, "it is success since")
	}
	_, err = w.runs.PauseRun(t.Context(), &writv1.PauseRunRequest{Run: "census.none"})
	require.Equal(t, codes.NotFound, status.Code(err))
	_, err = w.runs.PauseRun(t.Context(), &writv1.PauseRunRequest{Run: string(id), Why: strings.Repeat("y", 241)})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

func TestHoldThatMeetsAnotherWriterLooksAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.loaded(id)
	run := w.stored(id)
	run.Clears = 7
	w.Seed(record.RunKey(id), run, 0) // the mirror may not show it yet
	_, err := w.runs.PauseRun(t.Context(), &writv1.PauseRunRequest{Run: string(id)})
	require.NoError(t, err)
	require.Equal(t, 7, w.stored(id).Clears, "what the other wrote stays")
	require.NotNil(t, w.stored(id).Paused)
}

func TestClearIsWrittenWithTheRunRecord(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.row(id, "list", 1, record.Success)
	w.row(id, "count", 1, record.Running)
	answer, err := w.runs.ClearTasks(t.Context(), &writv1.ClearTasksRequest{
		Run: string(id), Tasks: []string{"list"}, Downstream: true, By: "bob", Why: "late data",
	})
	require.NoError(t, err)
	require.Equal(t, []string{"list", "count", "report"}, answer.GetTasks())
	c := w.cleared(id, 1)
	require.Equal(t, []record.TaskID{"list", "count", "report"}, c.Tasks)
	require.Equal(t, "person/bob late data", c.By+" "+c.Why)
	require.Equal(t, "running clear person/bob", lastStep(w.stored(id).Transitions))
	w.mirror.Read(func(v *view.Active) {
		r, _ := v.Run(id)
		task, _ := r.Task(record.TaskRef{Run: id, Task: "list"})
		require.Equal(t, record.None, task.State(), "its row counts no more")
		require.Len(t, task.Rows(), 1, "and stays")
	})
	answer, err = w.runs.ClearTasks(t.Context(), &writv1.ClearTasksRequest{Run: string(id), Tasks: []string{"count", "count"}})
	require.NoError(t, err)
	require.Equal(t, []string{"count"}, answer.GetTasks())
	require.Equal(t, 2, w.stored(id).Clears)

	for _, bad := range []struct {
		tasks []string
		code  codes.Code
		text  string
	}{
		{nil, codes.InvalidArgument, "names no task"},
		{[]string{"nothing"}, codes.NotFound, "task nothing of run"},
		{[]string{"a b"}, codes.InvalidArgument, "task"},
	} {
		_, err = w.runs.ClearTasks(t.Context(), &writv1.ClearTasksRequest{Run: string(id), Tasks: bad.tasks})
		require.Equal(t, bad.code, status.Code(err))
		require.ErrorContains(t, err, bad.text)
	}
}

func TestRunIsClearedOnlySoOften(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	run := w.stored(id)
	run.Clears = 100
	w.reach(w.Seed(record.RunKey(id), run, 0))
	_, err := w.runs.ClearTasks(t.Context(), &writv1.ClearTasksRequest{Run: string(id), Tasks: []string{"list"}})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "start a new run")
}

func TestRetryTakesWhatFailedAndWhatDidNotRunForIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.row(id, "list", 1, record.Success)
	_, err := w.runs.RetryTasks(t.Context(), &writv1.RetryTasksRequest{Run: string(id)})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "none of its tasks failed")
	w.row(id, "count", 1, record.Failed)
	w.closed(id, "report", record.UpstreamFailed)
	for _, name := range []string{"list", "report"} {
		_, err = w.runs.RetryTasks(t.Context(), &writv1.RetryTasksRequest{Run: string(id), Tasks: []string{name}})
		require.Equal(t, codes.FailedPrecondition, status.Code(err))
		require.ErrorContains(t, err, "expected one that failed or was cancelled")
	}
	answer, err := w.runs.RetryTasks(t.Context(), &writv1.RetryTasksRequest{Run: string(id), By: "bob"})
	require.NoError(t, err)
	require.Equal(t, []string{"count", "report"}, answer.GetTasks())
}

func TestRetryOfAnEndedRunReopensIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.row(id, "list", 1, record.Success)
	w.row(id, "count", 1, record.Failed)
	w.closed(id, "report", record.UpstreamFailed)
	_, err := w.runs.ClearTasks(t.Context(), &writv1.ClearTasksRequest{Run: string(id), Tasks: []string{"list"}})
	require.NoError(t, err)
	w.row(id, "list", 2, record.Success)
	mark := record.Unproven{Schema: record.Schema, Run: id, Task: "count", Attempt: 1, Worker: "w1", Session: "s1", Write: "markmarkmarkmark"}
	w.reach(w.Seed(record.UnprovenKey(record.TaskRef{Run: id, Task: "count"}.At(1)), mark, 0))
	w.ending(id, record.RunFailed)
	w.document(id)
	before, err := w.Get(t.Context(), record.EndedKey(id))
	require.NoError(t, err)
	head := before.Value.(record.Ended)

	answer, err := w.runs.RetryTasks(t.Context(), &writv1.RetryTasksRequest{Run: string(id), By: "bob", Why: "fixed"})
	require.NoError(t, err)
	require.Equal(t, []string{"count", "report"}, answer.GetTasks())
	require.Equal(t, writv1.RunState_RUN_STATE_RUNNING, answer.GetRun().GetState())
	run := w.stored(id)
	require.Equal(t, record.PhaseReopening, run.Phase)
	require.Equal(t, head.Pages, run.Pages, "the rows are read from the pages")
	require.Equal(t, "running reopen person/bob", lastStep(run.Transitions))
	require.Equal(t, 2, run.Clears)
	require.Equal(t, []record.TaskID{"count", "report"}, w.cleared(id, 2).Tasks)
	require.Equal(t, head.Clears[0].CreateRev, w.cleared(id, 1).Rev, "an old clear covers what it covered")
	for key, there := range map[record.Key]bool{
		record.EndedKey(id): false, record.IndexKey(head.Run.EndedAt, id): false, record.PageKey(id, 1): true,
		record.UnprovenKey(record.TaskRef{Run: id, Task: "count"}.At(1)): true,
	} {
		s, err := w.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, there, s.Value != nil, "%v", key)
	}
}

func TestReopeningWaitsForTheDocument(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	for _, task := range []record.TaskID{"list", "count", "report"} {
		w.row(id, task, 1, record.Success)
	}
	w.ending(id, record.RunSuccess)
	answered := make(chan error, 1)
	go func() {
		_, err := w.runs.ClearTasks(t.Context(), &writv1.ClearTasksRequest{Run: string(id), Tasks: []string{"report"}})
		answered <- err
	}()
	w.document(id)
	require.NoError(t, <-answered)
	require.Equal(t, record.PhaseReopening, w.stored(id).Phase)
}

func TestFullStoreReopensNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.end(id, record.RunSuccess)
	w.cluster.set(func(o *outside) { o.full = api.ErrFull })
	_, err := w.runs.ClearTasks(t.Context(), &writv1.ClearTasksRequest{Run: string(id), Tasks: []string{"report"}})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}

func TestAttemptOfALivingWorkerIsNotResolved(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.attend()
	w.row(id, "count", 1, record.Running)
	_, err := w.runs.ResolveTask(t.Context(), &writv1.ResolveTaskRequest{Run: string(id), Task: "count", As: writv1.Resolution_RESOLUTION_SUCCESS})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "its worker w1 lives")
}

func TestResolvingEndsWhatASilentWorkerHeld(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		as     writv1.Resolution
		dead   bool
		want   record.AttemptState
		marked bool
		clears int
	}{
		{"success", writv1.Resolution_RESOLUTION_SUCCESS, false, record.Success, true, 0},
		{"success dead", writv1.Resolution_RESOLUTION_SUCCESS, true, record.Success, false, 0},
		{"failed", writv1.Resolution_RESOLUTION_FAILED, false, record.Failed, true, 0},
		{"retry", writv1.Resolution_RESOLUTION_RETRY, false, record.Failed, true, 1},
		{"retry dead", writv1.Resolution_RESOLUTION_RETRY, true, record.Failed, false, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.apply(census())
			id := w.begin("one")
			w.row(id, "count", 1, record.Running)
			ref := record.TaskRef{Run: id, Task: "count"}.At(1)
			answer, err := w.runs.ResolveTask(t.Context(), &writv1.ResolveTaskRequest{
				Run: string(id), Task: "count", As: c.as, Dead: c.dead, By: "bob", Why: "I looked",
			})
			require.NoError(t, err)
			require.Len(t, answer.GetTask().GetAttempts(), 1)
			s, err := w.Get(t.Context(), record.AttemptKey(ref))
			require.NoError(t, err)
			row := s.Value.(record.Attempt)
			require.Equal(t, string(c.want)+" resolve person/bob", lastStep(row.Transitions))
			require.Equal(t, record.CauseResolved, row.Cause.Code)
			require.Contains(t, row.Cause.Text, "I looked")
			require.Equal(t, c.marked, row.Unproven)
			mark, err := w.Get(t.Context(), record.UnprovenKey(ref))
			require.NoError(t, err)
			require.Equal(t, c.marked, mark.Value != nil)
			require.Equal(t, c.clears, w.stored(id).Clears)

			_, err = w.runs.ResolveTask(t.Context(), &writv1.ResolveTaskRequest{Run: string(id), Task: "count", As: c.as})
			require.Equal(t, codes.FailedPrecondition, status.Code(err))
			_, err = w.runs.ResolveTask(t.Context(), &writv1.ResolveTaskRequest{Run: string(id), Task: "count", Dead: true, By: "bob"})
			if !c.marked {
				require.Equal(t, codes.FailedPrecondition, status.Code(err))
				return
			}
			require.NoError(t, err)
			mark, err = w.Get(t.Context(), record.UnprovenKey(ref))
			require.NoError(t, err)
			require.Nil(t, mark.Value)
			require.Equal(t, "running resolve person/bob", lastStep(w.stored(id).Transitions))
		})
	}
}

func TestResolvingSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.row(id, "list", 1, record.Success)
	w.row(id, "count", 1, record.Running)
	for _, bad := range []struct {
		ask  *writv1.ResolveTaskRequest
		code codes.Code
		text string
	}{
		{&writv1.ResolveTaskRequest{Task: "count"}, codes.InvalidArgument, "as: says nothing"},
		{&writv1.ResolveTaskRequest{Task: "count", Dead: true}, codes.InvalidArgument, "has not ended"},
		{&writv1.ResolveTaskRequest{As: writv1.Resolution_RESOLUTION_FAILED}, codes.InvalidArgument, "names no task"},
		{&writv1.ResolveTaskRequest{Task: "nothing", As: writv1.Resolution_RESOLUTION_FAILED}, codes.NotFound, "task nothing"},
		{&writv1.ResolveTaskRequest{Task: "list", As: writv1.Resolution_RESOLUTION_FAILED}, codes.FailedPrecondition, "latest attempt is success"},
		{&writv1.ResolveTaskRequest{Task: "list", Dead: true}, codes.FailedPrecondition, "no death"},
	} {
		bad.ask.Run = string(id)
		_, err := w.runs.ResolveTask(t.Context(), bad.ask)
		require.Equal(t, bad.code, status.Code(err), "%v", bad.ask)
		require.ErrorContains(t, err, bad.text)
	}
}

func TestWorkerIsDrainedAndTakenBack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.admin.DrainWorker(t.Context(), &writv1.DrainWorkerRequest{Worker: "w1"})
	require.Equal(t, codes.NotFound, status.Code(err))
	w.attend()
	answer, err := w.admin.DrainWorker(t.Context(), &writv1.DrainWorkerRequest{Worker: "w1", By: "bob", Why: "new disk"})
	require.NoError(t, err)
	require.Equal(t, "person/bob new disk", answer.GetWorker().GetDraining().GetBy()+" "+answer.GetWorker().GetDraining().GetWhy())
	s, err := w.Get(t.Context(), record.WorkerKey("w1", "s1"))
	require.NoError(t, err)
	require.NotZero(t, s.Lease, "it stays on its lease")
	require.NotNil(t, s.Value.(record.Worker).Draining)
	answer, err = w.admin.DrainWorker(t.Context(), &writv1.DrainWorkerRequest{Worker: "w1", Undo: true})
	require.NoError(t, err)
	require.Nil(t, answer.GetWorker().GetDraining())

	live := s.Value.(record.Worker)
	live.Draining = &record.Hold{By: "session/s1"}
	w.reach(w.Seed(record.WorkerKey("w1", "s1"), live, s.Lease))
	_, err = w.admin.DrainWorker(t.Context(), &writv1.DrainWorkerRequest{Worker: "w1", Undo: true})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "by its own will")
}
