package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/gateway"
	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// cancel makes the run of the tests cancelling.
func (w *world) cancel() {
	w.t.Helper()
	stored, err := w.Get(w.t.Context(), record.RunKey(census))
	require.NoError(w.t, err)
	run, ok := stored.Value.(record.Run)
	require.True(w.t, ok)
	next, err := run.Move(record.RunMove{
		To: record.RunCancelling, By: record.Operator, Who: "person/ada", At: time.Now().UTC(), Rule: record.RuleCancel, Write: w.id(),
	})
	require.NoError(w.t, err)
	w.await(w.Seed(record.RunKey(census), next, 0))
}

// impatient makes every intent be probed at once.
func impatient(c *gateway.Config) { c.Confirm = time.Millisecond }

func TestAnIntentIsSentOnceWithAllThatItsWorkerNeeds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	up := w.moved(w.intent("list"), record.Success)
	w.put(up)
	k := w.attend(1)
	fence := w.Seed(record.AttemptKey(ref("count")), w.intent("count"), 0)
	m := k.hearAssign("count")
	require.Equal(t, "count", m.GetAttempt().GetTask())
	require.Equal(t, int32(1), m.GetAttempt().GetAttempt())
	require.Equal(t, "wc -l", m.GetTask().GetRun())
	require.Equal(t, writv1.OnLost_ON_LOST_WAIT, m.GetTask().GetOnLost())
	require.Equal(t, writv1.AttemptKind_ATTEMPT_KIND_EXEC, m.GetKind())
	require.Equal(t, fence, m.GetFence())
	require.Equal(t, "census", m.GetWorkflow())
	require.Equal(t, int32(1), m.GetRevision())
	require.Equal(t, map[string]string{"root": "src"}, m.GetParams())
	require.Len(t, m.GetInputs(), 1)
	require.Equal(t, "list", m.GetInputs()[0].GetTask())
	k.quiet(1200 * time.Millisecond) // longer than the gateway rests between two looks
}

func TestAnIntentThatTheHelloNamesIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.intent("count"))
	first := w.attend(1)
	first.hearAssign("count")
	again := w.attend(2)
	again.hearAssign("count") // it may have been lost with the first stream
	k := w.attend(3, holds("count"))
	k.quiet(1200 * time.Millisecond)
}

func TestAnIntentOfAnotherSessionIsNotSent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other := w.intent("count")
	other.Session = "zzzzzzzz-1"
	w.put(other)
	k := w.attend(1)
	w.put(w.intent("list"))
	k.hearAssign("list")
	k.quiet(100 * time.Millisecond)
}

func TestAnIntentThatNobodyConfirmsIsProbedAndRefusedForGood(t *testing.T) {
	t.Parallel()
	w := setup(t, impatient)
	w.put(w.intent("count"))
	k := w.attend(1)
	k.hearAssign("count")
	probe := k.hear().GetProbe()
	require.Equal(t, token("count"), probe.GetToken())
	require.Equal(t, "count", probe.GetAttempt().GetTask())
	k.answers("count", writv1.TokenPhase_TOKEN_PHASE_UNSPECIFIED)
	row := w.eventually("count", func(a record.Attempt) bool { return a.Refused != nil })
	require.Equal(t, record.Queued, row.State)
	k.claims()
	ack := k.hearStarted()
	require.False(t, ack.GetGo())
	require.NotEmpty(t, ack.GetWhy())
	require.Equal(t, record.Queued, w.row("count").State)
}

func TestAProbeThatFindsTheAttemptWaitingChangesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t, impatient)
	w.put(w.intent("count"))
	k := w.attend(1)
	k.hearAssign("count")
	require.NotNil(t, k.hear().GetProbe())
	k.answers("count", writv1.TokenPhase_TOKEN_PHASE_ASSIGNED)
	require.NotNil(t, k.hear().GetProbe(), "it is asked again, later")
	require.Nil(t, w.row("count").Refused)
}

func TestAProbeThatFindsAnIdempotentAttemptRunningMovesItsRow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	row := w.intent("list")
	row.Idempotent, row.OnLost = true, ""
	w.put(row)
	k := w.attend(1)
	k.hearAssign("list")
	k.answers("list", writv1.TokenPhase_TOKEN_PHASE_RUNNING)
	w.eventually("list", in(record.Running))
	k.quiet(50 * time.Millisecond)
}

func TestACancelReachesTheWorkerAndItsWordEndsTheRow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.moved(w.intent("count"), record.Running))
	k := w.attend(1, holds("count"))
	w.cancel()
	m := k.hear().GetCancel()
	require.Equal(t, token("count"), m.GetToken())
	require.Equal(t, string(record.CauseCancelled), m.GetWhy())
	require.Equal(t, token("count"), k.hear().GetCancel().GetToken(), "it is said again, until it is heard")
	k.finishes("count", func(f *writv1.Finished) { f.State = writv1.TaskState_TASK_STATE_CANCELLED })
	require.Equal(t, writv1.FinishedAnswer_FINISHED_ANSWER_ACCEPTED, k.hearFinished("count").GetAnswer())
	require.Equal(t, record.Cancelled, w.row("count").State)
	require.Zero(t, w.row("count").ResultBytes)
}

func TestAnIntentOfACancelledRunIsNeverSent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.intent("count"))
	w.cancel()
	k := w.attend(1)
	require.Equal(t, token("count"), k.hear().GetCancel().GetToken())
	k.claims()
	require.False(t, k.hearStarted().GetGo())
}

func TestAnAttemptThatWasEndedInItsWorkersAbsenceIsStopped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	row := w.moved(w.moved(w.intent("count"), record.Running), record.Failed)
	row.Unproven, row.Cause = true, record.Because(record.CauseResolved, "")
	w.put(row)
	k := w.attend(1, holds("count"))
	m := k.hear().GetCancel()
	require.Equal(t, token("count"), m.GetToken())
	require.Equal(t, "count", m.GetAttempt().GetTask())
	k.finishes("count", func(f *writv1.Finished) { f.State = writv1.TaskState_TASK_STATE_CANCELLED })
	require.Equal(t, rejected, k.hearFinished("count").GetAnswer())
}

func TestARunningRowThatTheHelloDoesNotNameIsLost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.moved(w.intent("list"), record.Running))
	w.put(w.moved(w.intent("count"), record.Running))
	k := w.attend(1, holds("list"))
	row := w.eventually("count", in(record.Failed))
	require.Equal(t, record.CauseWorkerLost, row.Cause.Code)
	require.False(t, row.Unproven)
	require.Equal(t, record.Running, w.row("list").State)
	k.finishes("count")
	require.Equal(t, writv1.FinishedAnswer_FINISHED_ANSWER_REJECTED, k.hearFinished("count").GetAnswer())
}
