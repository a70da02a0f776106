package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func (w *world) get(id record.RunID) *writv1.GetRunResponse {
	w.t.Helper()
	answer, err := w.runs.GetRun(w.t.Context(), &writv1.GetRunRequest{Run: string(id)})
	require.NoError(w.t, err)
	return answer
}

func TestEndedRunReadsAsItDidWhileItWasActive(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.row(id, "list", 1, record.Failed)
	w.row(id, "list", 2, record.Success)
	w.reach(w.Seed(record.ClearKey(id, 1), record.Clear{Schema: record.Schema, Run: id, Seq: 1, Tasks: []record.TaskID{"list"}, By: "person/ada", Write: "clearclearclear"}, 0))
	w.row(id, "list", 3, record.Failed)
	w.row(id, "count", 1, record.UpstreamFailed)
	w.ending(id, record.RunFailed)
	before := w.get(id)
	require.Equal(t, writv1.TaskState_TASK_STATE_FAILED, before.GetTasks()[0].GetState())
	require.Len(t, before.GetTasks()[0].GetAttempts(), 3)
	require.Equal(t, "ending", before.GetRun().GetPhase())

	w.document(id)
	after := w.get(id)
	require.Empty(t, after.GetRun().GetPhase())
	after.Revision, before.Run.Phase = before.GetRevision(), ""
	require.True(t, proto.Equal(before, after), "before %v\nafter %v", before, after)
}

func TestRunThatIsNowhereIsNotFound(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for id, code := range map[string]codes.Code{"census.one": codes.NotFound, "census": codes.InvalidArgument, "../x.y": codes.InvalidArgument} {
		_, err := w.runs.GetRun(t.Context(), &writv1.GetRunRequest{Run: id})
		require.Equal(t, code, status.Code(err))
		_, err = w.runs.CancelRun(t.Context(), &writv1.CancelRunRequest{Run: id})
		require.Equal(t, code, status.Code(err))
		_, err = w.runs.ExplainRun(t.Context(), &writv1.ExplainRunRequest{Run: id})
		require.Equal(t, code, status.Code(err))
		watch, err := w.runs.WatchRun(t.Context(), &writv1.WatchRunRequest{Run: id})
		require.NoError(t, err)
		_, err = watch.Recv()
		require.Equal(t, code, status.Code(err))
	}
}

func TestCancelIsRecordedOnceWithItsAuthor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	answer, err := w.runs.CancelRun(t.Context(), &writv1.CancelRunRequest{Run: string(id), By: "bob", Why: "wrong root"})
	require.NoError(t, err)
	require.Equal(t, writv1.RunState_RUN_STATE_CANCELLING, answer.GetRun().GetState())
	again, err := w.runs.CancelRun(t.Context(), &writv1.CancelRunRequest{Run: string(id), By: "carl"})
	require.NoError(t, err)
	require.Equal(t, answer.GetRun().GetModRevision(), again.GetRun().GetModRevision())
	stored, err := w.Get(t.Context(), record.RunKey(id))
	require.NoError(t, err)
	run := stored.Value.(record.Run)
	require.Equal(t, "person/bob wrong root", run.Cancelling.By+" "+run.Cancelling.Why)
	last := run.Transitions[len(run.Transitions)-1]
	require.Equal(t, "cancelling cancel person/bob", fmt.Sprint(last.State, " ", last.Rule, " ", last.By))

	// That it was cancelled is what was asked for.
	w.end(id, record.RunCancelled)
	_, err = w.runs.CancelRun(t.Context(), &writv1.CancelRunRequest{Run: string(id)})
	require.NoError(t, err)
	done := w.begin("two")
	w.end(done, record.RunSuccess)
	_, err = w.runs.CancelRun(t.Context(), &writv1.CancelRunRequest{Run: string(done)})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "it is success since")
	_, err = w.runs.CancelRun(t.Context(), &writv1.CancelRunRequest{Run: string(done), Why: strings.Repeat("y", 241)})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

func TestCancelThatMeetsAnotherWriterLooksAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	stored, err := w.Get(t.Context(), record.RunKey(id))
	require.NoError(t, err)
	run := stored.Value.(record.Run)
	run.Paused = &record.Hold{By: "person/bob", At: time.Now().UTC()}
	w.Seed(record.RunKey(id), run, 0) // the mirror may not show it yet
	_, err = w.runs.CancelRun(t.Context(), &writv1.CancelRunRequest{Run: string(id)})
	require.NoError(t, err)
	stored, err = w.Get(t.Context(), record.RunKey(id))
	require.NoError(t, err)
	require.Equal(t, record.RunCancelling, stored.Value.(record.Run).State)
	require.NotNil(t, stored.Value.(record.Run).Paused, "what the other wrote stays")
}

// line puts an ended run into the index.
func (w *world) line(id record.RunID, state record.RunState, ended time.Time) {
	w.Seed(record.IndexKey(ended, id), record.IndexLine{
		Schema: record.Schema, Run: id, Workflow: id.Workflow(), Revision: 1, State: state, Trigger: record.TriggerManual,
		CreatedAt: ended.Add(-time.Hour), EndedAt: ended, Tasks: map[record.AttemptState]int{record.Success: 3}, Write: "linelineline1",
	}, 0)
}

func (w *world) list(m *writv1.ListRunsRequest) (ids []string, pages int) {
	w.t.Helper()
	for {
		page, err := w.runs.ListRuns(w.t.Context(), m)
		require.NoError(w.t, err)
		pages++
		for _, r := range page.GetRuns() {
			require.Empty(w.t, r.GetTransitions())
			ids = append(ids, r.GetRun())
		}
		if m.PageToken = page.GetNextPageToken(); m.GetPageToken() == "" {
			return ids, pages
		}
	}
}

func TestRunsAreListedNewestFirstActiveBeforeEnded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	var want []string
	for i := range 4 {
		want = append(want, string(w.begin(fmt.Sprint("active-", i))))
	}
	slices.Reverse(want)
	now := time.Date(2026, 12, 1, 12, 59, 0, 0, time.UTC)
	for i := range 30 {
		// Ids are in no order of time, as those of idempotency keys.
		id := record.RunID(fmt.Sprintf("census.x%02d", (i*7)%30))
		state := record.RunSuccess
		if i%3 == 0 {
			state = record.RunFailed
		}
		w.line(id, state, now.Add(-time.Duration(i)*11*time.Minute))
		want = append(want, string(id))
	}
	w.line("other.one", record.RunFailed, now.Add(-24*time.Hour))

	for _, size := range []int32{0, 1, 3, 4, 5, 7, 1000} {
		got, pages := w.list(&writv1.ListRunsRequest{PageSize: size, Workflow: "census"})
		require.Equal(t, want, got, "in pages of %d", size)
		if size > 0 {
			require.Equal(t, (len(want)+int(size)-1)/int(size), pages)
		}
	}
	failed, _ := w.list(&writv1.ListRunsRequest{PageSize: 2, States: []writv1.RunState{writv1.RunState_RUN_STATE_FAILED}})
	require.Len(t, failed, 11)
	require.Equal(t, "other.one", failed[10])
	running, _ := w.list(&writv1.ListRunsRequest{States: []writv1.RunState{writv1.RunState_RUN_STATE_RUNNING}})
	require.Equal(t, want[:4], running)
	for _, m := range []*writv1.ListRunsRequest{{PageSize: -1}, {PageToken: "?"}, {Workflow: "A"}, {States: []writv1.RunState{77}}, {States: []writv1.RunState{0}}} {
		_, err := w.runs.ListRuns(t.Context(), m)
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", m)
	}
}

func TestIndexOfManyHoursIsReadToWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	start := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	var want []string
	for i := range 1300 {
		id := record.RunID(fmt.Sprintf("census.x%04d", (i*911)%1300))
		w.line(id, record.RunSuccess, start.Add(-time.Duration(i)*10*time.Second))
		want = append(want, string(id))
	}
	got, pages := w.list(&writv1.ListRunsRequest{PageSize: 400})
	require.Equal(t, want, got)
	require.Equal(t, 4, pages)
}

func TestExplainNamesTheRecordThatSaysSo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.row(id, "list", 1, record.Running)
	answer, err := w.runs.ExplainRun(t.Context(), &writv1.ExplainRunRequest{Run: string(id), Task: "count"})
	require.NoError(t, err)
	require.Len(t, answer.GetReasons(), 1)
	reason := answer.GetReasons()[0]
	require.Equal(t, "count", reason.GetTask())
	require.Contains(t, reason.GetText(), "waits for list (running)")
	require.Equal(t, "attempts/census.one/list/1", reason.GetRecord())
	require.Positive(t, reason.GetRevision())
	all, err := w.runs.ExplainRun(t.Context(), &writv1.ExplainRunRequest{Run: string(id)})
	require.NoError(t, err)
	require.Len(t, all.GetReasons(), 3)
	for task, code := range map[string]codes.Code{"nothing": codes.NotFound, "count.00001": codes.NotFound, "a b": codes.InvalidArgument} {
		_, err = w.runs.ExplainRun(t.Context(), &writv1.ExplainRunRequest{Run: string(id), Task: task})
		require.Equal(t, code, status.Code(err))
	}
	w.end(id, record.RunSuccess)
	ended, err := w.runs.ExplainRun(t.Context(), &writv1.ExplainRunRequest{Run: string(id)})
	require.NoError(t, err)
	require.Empty(t, ended.GetReasons())
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, ended.GetRun().GetState())
}
