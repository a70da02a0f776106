package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
)

// second is a second of the agent's clock.
const second = session.Instant(time.Second)

func idem(t record.Token) session.Assignment { return session.Assignment{Token: t, Idempotent: true} }

func once(t record.Token) session.Assignment {
	return session.Assignment{Token: t, OnLost: record.OnLostWait}
}

func fenced(t record.Token) session.Assignment {
	return session.Assignment{Token: t, OnLost: record.OnLostRetry}
}

// attending is an agent of two slots whose deadline is in ten seconds.
func attending() *session.Agent {
	a := session.NewAgent(2)
	a.Opened(10*second, 0)
	return a
}

func act(a session.Act, t record.Token) session.Action { return session.Action{Act: a, Token: t} }

func phase(t *testing.T, a *session.Agent, tok record.Token) session.Phase {
	t.Helper()
	p, held := a.Phase(tok)
	require.True(t, held)
	return p
}

func TestAnIdempotentAttemptBeginsBeforeAnyAnswer(t *testing.T) {
	t.Parallel()
	a := attending()
	require.Equal(t, []session.Action{act(session.Begin, "a"), act(session.SendStarted, "a")}, a.Assign(idem("a"), 0))
	require.Empty(t, a.Assign(idem("a"), 0))
	require.Empty(t, a.Answered("a", true, second))
	require.Equal(t, []session.Action{act(session.SendFinished, "a")}, a.Ended("a", 2*second))
	require.Equal(t, []session.Action{act(session.Close, "a")}, a.Settled("a"))
	require.True(t, a.Empty())
}

func TestAnIdempotentAttemptThatIsRefusedIsGivenUpAndReported(t *testing.T) {
	t.Parallel()
	a := attending()
	a.Assign(idem("a"), 0)
	require.Equal(t, []session.Action{act(session.GiveUp, "a")}, a.Answered("a", false, second))
	require.Equal(t, []session.Action{act(session.SendFinished, "a")}, a.Ended("a", second))
}

func TestNothingElseBeginsBeforeItsClaimIsGranted(t *testing.T) {
	t.Parallel()
	a := attending()
	require.Equal(t, []session.Action{act(session.SendStarted, "a")}, a.Assign(once("a"), 0))
	require.Empty(t, a.Alive(12*second, second))
	require.Equal(t, session.Assigned, phase(t, a, "a"))
	require.Equal(t, []session.Action{act(session.Begin, "a")}, a.Answered("a", true, 2*second))
	require.Empty(t, a.Answered("a", true, 2*second))
}

func TestARefusedClaimIsNeverStarted(t *testing.T) {
	t.Parallel()
	a := attending()
	a.Assign(once("a"), 0)
	require.Equal(t, []session.Action{act(session.Close, "a")}, a.Answered("a", false, second))
	require.Equal(t, []session.Action{act(session.SendUnknown, "a")}, a.Assign(once("a"), second))
	require.Empty(t, a.Answered("a", true, second))
}

func TestAGrantAfterTheDeadlineWaitsForANewerOne(t *testing.T) {
	t.Parallel()
	a := attending()
	a.Assign(once("a"), 0)
	require.Empty(t, a.Answered("a", true, 10*second))
	require.Empty(t, a.Alive(10*second, 10*second), "an older heartbeat brings no newer deadline")
	require.Equal(t, []session.Action{act(session.Begin, "a")}, a.Alive(20*second, 11*second))
}

func TestAGrantOfAnEarlierStreamMustBeAskedForAnew(t *testing.T) {
	t.Parallel()
	a := attending()
	a.Assign(once("a"), 0)
	a.Answered("a", true, 10*second) // too late to begin
	require.Equal(t, []session.Action{act(session.SendStarted, "a")}, a.Opened(30*second, 20*second))
	require.Empty(t, a.Alive(31*second, 21*second))
	require.Equal(t, []session.Action{act(session.Begin, "a")}, a.Answered("a", true, 22*second))
}

func TestTheDeadlineGivesUpWhatIsFencedAndNothingElse(t *testing.T) {
	t.Parallel()
	a := session.NewAgent(4)
	a.Opened(10*second, 0)
	a.Assign(idem("idem"), 0)
	a.Assign(once("once"), 0)
	a.Answered("once", true, 0)
	a.Assign(fenced("ran"), 0)
	a.Answered("ran", true, 0)
	a.Assign(fenced("unclaimed"), 0)
	a.Assign(fenced("unslotted"), 0)
	a.Answered("idem", true, 0)
	for _, s := range a.Tick(10*second - 1) {
		require.Equal(t, session.SendStarted, s.Act)
	}
	require.Equal(t, []session.Action{
		act(session.Fence, "ran"),
		{Act: session.Report, Token: "unclaimed", Cause: record.CauseFenced},
		{Act: session.Report, Token: "unslotted", Cause: record.CauseFenced},
	}, a.Tick(10*second))
	require.Empty(t, a.Answered("unclaimed", true, 10*second), "an answer that comes late starts nothing")
	require.Equal(t, session.Running, phase(t, a, "once"))
}

func TestADeadlineThatPassedUnseenStrikesBeforeANewerOneCounts(t *testing.T) {
	t.Parallel()
	a := attending()
	a.Assign(fenced("a"), 0)
	a.Answered("a", true, 0)
	a.Assign(fenced("b"), 0)
	require.Equal(t, []session.Action{
		act(session.Fence, "a"), {Act: session.Report, Token: "b", Cause: record.CauseFenced},
	}, a.Alive(30*second, 20*second))
	require.Empty(t, a.Answered("b", true, 20*second))

	a = attending()
	a.Assign(fenced("a"), 0)
	a.Answered("a", true, 0)
	require.Contains(t, a.Opened(30*second, 20*second), act(session.Fence, "a"))
}

func TestMoreThanTheSlotsWaitForOne(t *testing.T) {
	t.Parallel()
	a := attending()
	a.Assign(idem("a"), 0)
	a.Assign(once("b"), 0)
	require.Empty(t, a.Assign(idem("c"), 0))
	require.Empty(t, a.Assign(idem("d"), 0))
	require.Equal(t, session.Assigned, phase(t, a, "c"))
	require.Equal(t, []session.Action{
		act(session.SendFinished, "a"), act(session.Begin, "c"), act(session.SendStarted, "c"),
	}, a.Ended("a", second))
	require.Equal(t, []session.Action{
		act(session.Close, "b"), act(session.Begin, "d"), act(session.SendStarted, "d"),
	}, a.Answered("b", false, second))
}

func TestAProbedTokenThatIsNotKnownIsRefusedFromThenOn(t *testing.T) {
	t.Parallel()
	a := attending()
	require.Equal(t, []session.Action{act(session.SendUnknown, "a")}, a.Probed("a"))
	require.Equal(t, []session.Action{act(session.SendUnknown, "a")}, a.Assign(idem("a"), 0))
	a.Assign(idem("b"), 0)
	require.Equal(t, []session.Action{act(session.SendPhase, "b")}, a.Probed("b"))
}

func TestCancelEndsWhatRunsAndClosesWhatDoesNot(t *testing.T) {
	t.Parallel()
	a := attending()
	a.Assign(idem("runs"), 0)
	a.Assign(once("waits"), 0)
	require.Equal(t, []session.Action{act(session.Cancel, "runs")}, a.Cancelled("runs", 0))
	require.Equal(t, []session.Action{{Act: session.Report, Token: "waits", Cause: record.CauseCancelled}}, a.Cancelled("waits", 0))
	require.Empty(t, a.Answered("waits", true, 0))
	require.Empty(t, a.Cancelled("waits", 0))
	require.Equal(t, []session.Action{act(session.SendUnknown, "never")}, a.Cancelled("never", 0))
}

func TestWhatIsUnansweredIsSentAgainOnTheSameStreamAndOnTheNext(t *testing.T) {
	t.Parallel()
	a := attending()
	a.Assign(idem("a"), 0)
	a.Assign(once("b"), 0)
	a.Ended("a", 0)
	require.Empty(t, a.Tick(4*second))
	both := []session.Action{act(session.SendFinished, "a"), act(session.SendStarted, "b")}
	require.Equal(t, both, a.Tick(5*second))
	require.Empty(t, a.Tick(6*second))
	require.Equal(t, both, a.Opened(20*second, 7*second))
	require.Equal(t, []session.HeldToken{
		{Assignment: idem("a"), Phase: session.Unreported}, {Assignment: once("b"), Phase: session.Assigned},
	}, a.Held())
}

func TestADrainingAgentTakesNothingAndGivesUpWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	a := attending()
	a.Assign(idem("runs"), 0)
	a.Assign(once("waits"), 0)
	require.Equal(t, []session.Action{{Act: session.Report, Token: "waits", Cause: record.CauseWorkerStopped}}, a.Drain())
	require.Equal(t, []session.Action{act(session.SendUnknown, "late")}, a.Assign(idem("late"), 0))
	require.False(t, a.Idle())
	a.Ended("runs", 0)
	a.Ended("waits", 0)
	require.True(t, a.Idle())
	require.False(t, a.Empty())
}
