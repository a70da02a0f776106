package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// losing is a world whose task a is running on a session that is then lost,
// the loss noted.
func losing(t *testing.T, a spec.Task) (w *world, id record.RunID, s view.SessionRef) {
	t.Helper()
	w, id, s = setup(t, flowOf("w", a))
	begin(w, id, "a", s)
	w.drop(record.WorkerKey(s.Worker, s.Session))
	require.Len(t, w.pass().Changes, 1, "the loss is noted first")
	kept, ok := w.v.Session(s)
	require.True(t, ok)
	require.Equal(t, w.now, kept.Record.GoneAt)
	return w, id, s
}

func kind(idempotent bool, on record.OnLost) spec.Task {
	a := task("a")
	a.Idempotent, a.OnLost = idempotent, on
	return a
}

// attest is what the gateway writes when the successor registers.
func (w *world) attest(s view.SessionRef, successor record.SessionID, settled bool) {
	kept, _ := w.v.Session(s)
	rec := kept.Record
	rec.Successor, rec.Settled, rec.Attested = successor, settled, &record.Mark{By: "session/" + string(successor), At: w.now}
	w.set(record.Put{Key: record.SessionKey(s.Worker, s.Session), Value: rec})
}

func TestALostIdempotentAttemptRunsAgainAtOnce(t *testing.T) {
	t.Parallel()
	w, id, _ := losing(t, kind(true, ""))
	w.pass()
	row, _ := w.row(ref(id, "a", 1))
	require.Equal(t, record.Failed, row.State)
	require.Equal(t, record.CauseWorkerLost, row.Cause.Code)
	res := w.pass()
	require.Equal(t, ref(id, "a", 2), res.Ready[0].Ref)
	require.True(t, w.give(res.Ready[0], w.enlist("w2", "t1", 1)))
	next, _ := w.row(ref(id, "a", 2))
	require.Equal(t, 1, next.Losses)
	require.Zero(t, next.Failures)
}

func TestLossesAreCappedApartFromRetries(t *testing.T) {
	t.Parallel()
	a := kind(true, "")
	a.LostLimit, a.Retries = 2, spec.Retry{Limit: 9}
	w, id, _ := setup(t, flowOf("w", a))
	for n := range 3 {
		s := w.enlist("x", record.SessionID("s"+string(rune('a'+n))), 1)
		begin(w, id, "a", s)
		w.drop(record.WorkerKey(s.Worker, s.Session))
		w.pass()
		w.pass()
	}
	row, _ := w.row(ref(id, "a", 3))
	require.Equal(t, record.CauseLossLimit, row.Cause.Code)
	w.pass()
	run, _ := w.v.Run(id)
	require.Equal(t, record.RunFailed, run.Record.State)
}

func TestAFencedAttemptIsGivenUpOnlyAfterItsTTLAndTheMargin(t *testing.T) {
	t.Parallel()
	w, id, _ := losing(t, kind(false, record.OnLostRetry))
	res := w.pass()
	require.Empty(t, res.Changes)
	require.Equal(t, reconcile.ReasonSilent, res.Waits[0].Reason)
	require.Equal(t, w.now.Add(17*time.Second), res.Wake)
	w.now = w.now.Add(17*time.Second - 1)
	require.Empty(t, w.pass().Changes)
	w.now = w.now.Add(1)
	require.Len(t, w.pass().Changes, 1)
	require.Equal(t, ref(id, "a", 2), w.pass().Ready[0].Ref)
}

func TestAFenceWaitCountsOnTheWatchersOwnClock(t *testing.T) {
	t.Parallel()
	w, _, _ := losing(t, kind(false, record.OnLostRetry))
	w.now = w.now.Add(time.Hour)
	w.vigil = reconcile.NewVigil()
	require.Empty(t, w.pass().Changes, "another replica's clock may be an hour behind")
	turn := w.turn()
	turn.Vigil = nil
	turn.Now = w.now.Add(time.Hour)
	require.Empty(t, reconcile.Pass(w.v, view.Touched{Full: true}, turn).Changes, "without a vigil no wait ends")
	w.now = w.now.Add(17 * time.Second)
	require.Len(t, w.pass().Changes, 1)
}

func TestARegistrationVoidsAFenceWait(t *testing.T) {
	t.Parallel()
	w, _, s := losing(t, kind(false, record.OnLostRetry))
	w.pass()
	w.now = w.now.Add(10 * time.Second)
	w.enlist(s.Worker, s.Session, 4)
	require.Empty(t, w.pass().Changes)
	w.drop(record.WorkerKey(s.Worker, s.Session))
	w.pass()
	w.pass()
	w.now = w.now.Add(10 * time.Second)
	require.Empty(t, w.pass().Changes, "the wait began anew")
	w.now = w.now.Add(7 * time.Second)
	require.Len(t, w.pass().Changes, 1)
}

func TestAReturnThatNobodySawVoidsAFenceWaitToo(t *testing.T) {
	t.Parallel()
	w, _, s := losing(t, kind(false, record.OnLostRetry))
	w.pass()
	w.now = w.now.Add(10 * time.Second)
	w.enlist(s.Worker, s.Session, 4)
	w.drop(record.WorkerKey(s.Worker, s.Session))
	rec := record.Session{Worker: s.Worker, Session: s.Session, GoneAt: w.now}
	w.set(record.Put{Key: record.SessionKey(s.Worker, s.Session), Value: rec})
	w.now = w.now.Add(10 * time.Second)
	require.Empty(t, w.pass().Changes, "the record has another revision")
	w.now = w.now.Add(17 * time.Second)
	require.Len(t, w.pass().Changes, 1)
}

func TestAnAttemptThatMustWaitStaysUntilItsDeathIsProven(t *testing.T) {
	t.Parallel()
	w, id, s := losing(t, kind(false, ""))
	w.now = w.now.Add(24 * time.Hour)
	res := w.pass()
	require.Empty(t, res.Changes)
	require.Equal(t, reconcile.ReasonProof, res.Waits[0].Reason)
	require.Equal(t, record.SessionKey(s.Worker, s.Session), res.Waits[0].Key)
	w.attest(s, "s2", true)
	w.pass()
	row, _ := w.row(ref(id, "a", 1))
	require.Equal(t, record.CauseWorkerLost, row.Cause.Code)
	require.False(t, row.Unproven)
	w.pass()
	run, _ := w.v.Run(id)
	require.Equal(t, record.RunFailed, run.Record.State, "no new attempt by itself")
}

func TestNothingOfAnOldSessionIsDecidedBeforeItsSuccessorHasSettled(t *testing.T) {
	t.Parallel()
	for _, a := range []spec.Task{kind(true, ""), kind(false, record.OnLostRetry), kind(false, ""), kind(false, record.OnLostFail)} {
		w, _, s := losing(t, a)
		next := w.enlist(s.Worker, "s2", 4)
		w.attest(s, "s2", false)
		w.now = w.now.Add(time.Hour)
		res := w.pass()
		require.Empty(t, res.Changes)
		require.Equal(t, reconcile.ReasonSettling, res.Waits[0].Reason)
		w.drop(record.WorkerKey(next.Worker, next.Session))
		w.pass()
		res = w.pass()
		require.Empty(t, res.Waits, "a successor that is gone itself delivers nothing any more")
	}
}

func TestAnUnprovenDeathKeepsTheTaskFromRunning(t *testing.T) {
	t.Parallel()
	w, id, s := losing(t, kind(false, record.OnLostFail))
	w.pass()
	row, _ := w.row(ref(id, "a", 1))
	require.True(t, row.Unproven)
	require.Contains(t, w.keys, record.UnprovenKey(ref(id, "a", 1)))
	require.True(t, w.clearTasks(id, "a"))
	res := w.pass()
	require.Empty(t, res.Ready)
	require.Equal(t, reconcile.ReasonUnproven, res.Waits[0].Reason)
	w.attest(s, "s2", true)
	w.pass()
	require.NotContains(t, w.keys, record.UnprovenKey(ref(id, "a", 1)))
	require.Equal(t, ref(id, "a", 2), w.pass().Ready[0].Ref)
}

func TestAMarkStaysWhileASuccessorSettles(t *testing.T) {
	t.Parallel()
	w, id, s := losing(t, kind(false, record.OnLostFail))
	w.pass()
	require.True(t, w.clearTasks(id, "a"), "so that the run goes on")
	w.enlist(s.Worker, "s2", 4)
	w.attest(s, "s2", false)
	w.pass()
	require.Contains(t, w.keys, record.UnprovenKey(ref(id, "a", 1)))
	w.attest(s, "s2", true)
	w.pass()
	require.NotContains(t, w.keys, record.UnprovenKey(ref(id, "a", 1)))
}

func TestAFencedMarkIsLiftedByTheFenceWait(t *testing.T) {
	t.Parallel()
	w, id, _ := losing(t, kind(false, record.OnLostRetry))
	require.True(t, w.cancelRun(id))
	w.pass()
	row, _ := w.row(ref(id, "a", 1))
	require.Equal(t, record.Cancelled, row.State)
	require.Contains(t, w.keys, record.UnprovenKey(ref(id, "a", 1)))
	require.Equal(t, w.now.Add(17*time.Second), reconcile.Pass(w.v, view.Touched{Full: true}, w.turn()).Wake)
	w.now = w.now.Add(17 * time.Second)
	run, _ := w.v.Run(id)
	require.Equal(t, record.RunCancelling, run.Record.State)
	w.pass()
	require.NotContains(t, w.keys, record.UnprovenKey(ref(id, "a", 1)))
}

func TestLossesAreHeldWhileManySessionsWentAtOnce(t *testing.T) {
	t.Parallel()
	w, _, _ := losing(t, kind(true, ""))
	turn := w.turn()
	turn.HoldLosses = true
	res := reconcile.Pass(w.v, view.Touched{Full: true}, turn)
	require.Empty(t, res.Changes)
	require.Equal(t, reconcile.ReasonHeld, res.Waits[0].Reason)
}

func TestASessionThatNobodyNamesIsForgottenInTime(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", task("a"), task("b", "a")))
	require.True(t, w.report(begin(w, id, "a", s), record.Success, record.Cause{}, nil))
	w.drop(record.WorkerKey(s.Worker, s.Session))
	w.pass()
	res := w.pass()
	require.Equal(t, w.now.Add(time.Minute), res.Wake)
	w.now = res.Wake
	w.pass()
	_, known := w.v.Session(s)
	require.False(t, known)
}

func TestARowOfASessionWithoutARecordIsRepaired(t *testing.T) {
	t.Parallel()
	w, id, s := setup(t, flowOf("w", kind(true, "")))
	begin(w, id, "a", s)
	w.drop(record.WorkerKey(s.Worker, s.Session))
	w.drop(record.SessionKey(s.Worker, s.Session))
	require.Equal(t, record.RuleRepair, w.pass().Changes[0].Rule)
	w.pass()
	require.Equal(t, ref(id, "a", 2), w.pass().Ready[0].Ref)
}

func TestALateTimeoutIsFlaggedAndNotWrittenOverALivingSession(t *testing.T) {
	t.Parallel()
	a := task("a")
	a.Timeout = record.Duration(time.Minute)
	w, id, s := setup(t, flowOf("w", a))
	begin(w, id, "a", s)
	require.Equal(t, w.now.Add(time.Minute), w.pass().Wake)
	w.now = w.now.Add(time.Hour)
	res := w.pass()
	require.Empty(t, res.Changes)
	require.Equal(t, reconcile.ReasonOverdue, res.Waits[0].Reason)
}
