package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
)

var claim = session.Started{Token: tok, Claim: true, At: noon.Add(time.Second)}

func TestAClaimIsBoundToItsStreamItsRunAndItsRow(t *testing.T) {
	t.Parallel()
	answer := session.Start(peer, claim, seenRow(intent()), run())
	after := guarded(t, answer, intent())
	require.Equal(t, record.RuleClaim, answer.Change.Rule)
	require.Equal(t, session.ReportID(mine, tok, session.ReportStarted), answer.Change.Write)
	require.ElementsMatch(t, []record.Expect{
		record.At(record.AttemptKey(ref), rowRev), record.At(record.RunKey(ref.Run), runRev),
		record.Present(record.WorkerKey(crane, mine)), record.At(record.SessionKey(crane, mine), sessionRev),
	}, answer.Change.Expect)
	require.Equal(t, record.Running, after.State)
	require.Equal(t, claim.At, after.EnteredAt)
	require.Equal(t, record.Duration(peer.TTL), after.TTL)
}

func TestAnIdempotentAttemptIsStartedFromAnyStreamOfItsSession(t *testing.T) {
	t.Parallel()
	row := intent()
	row.Idempotent, row.OnLost = true, ""
	answer := session.Start(peer, session.Started{Token: tok, At: noon}, seenRow(row), run())
	require.Equal(t, record.Running, guarded(t, answer, row).State)
	require.Equal(t, record.RuleStarted, answer.Change.Rule)
	require.NotContains(t, answer.Change.Expect, record.At(record.SessionKey(crane, mine), sessionRev))
}

func TestAClaimThatNothingSupportsIsRefused(t *testing.T) {
	t.Parallel()
	is := func(edit func(*record.Attempt)) session.Seen[record.Attempt] {
		a := intent()
		edit(&a)
		return seenRow(a)
	}
	cases := []struct {
		name string
		said session.Started
		row  session.Seen[record.Attempt]
		run  session.Seen[record.Run]
		why  string
	}{
		{"the row is gone", claim, session.Seen[record.Attempt]{}, run(), "its run is over"},
		{"the run is gone", claim, seenRow(intent()), session.Seen[record.Run]{}, "its run is over"},
		{"another token", session.Started{Token: "other", Claim: true, At: noon}, seenRow(intent()), run(), "given to another session"},
		{"another session", claim, is(func(a *record.Attempt) { a.Session = "m3v7k2qd-1" }), run(), "given to another session"},
		{"no claim", session.Started{Token: tok, At: noon}, seenRow(intent()), run(), "must be claimed"},
		{"it is over", claim, is(func(a *record.Attempt) { a.State = record.Abandoned }), run(), "is abandoned already"},
		{"its worker refused it", claim, is(func(a *record.Attempt) { a.Refused = &record.Mark{} }), run(), "does not know"},
		{"the run is cancelling", claim, seenRow(intent()), run(func(r *record.Run) { r.State = record.RunCancelling }), "is cancelling"},
		{"the run is ending", claim, seenRow(intent()), run(func(r *record.Run) { r.State, r.Phase = record.RunFailed, record.PhaseEnding }), "is failed"},
		{"the run is reopening", claim, seenRow(intent()), run(func(r *record.Run) { r.Phase = record.PhaseReopening }), string(ref.Run)},
		{"the row is a wait", claim, is(func(a *record.Attempt) { a.Kind = record.KindWait }), run(), "no transition"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			requireRefused(t, session.Start(peer, c.said, c.row, c.run), c.why)
		})
	}
}

func TestAHeldRunStillStartsWhatWasDispatched(t *testing.T) {
	t.Parallel()
	held := run(func(r *record.Run) { r.Paused = &record.Hold{By: "person/ada"} })
	guarded(t, session.Start(peer, claim, seenRow(intent()), held), intent())
}

func TestAClaimThatWasGrantedIsGrantedAgain(t *testing.T) {
	t.Parallel()
	requireDone(t, session.Start(peer, claim, seenRow(running(t)), run()))
	cancelling := run(func(r *record.Run) { r.State = record.RunCancelling })
	requireDone(t, session.Start(peer, claim, seenRow(running(t)), cancelling))
}

// success is the report of a successful end, edited.
func success(edit ...func(*session.Finished)) session.Finished {
	f := session.Finished{
		Token: tok, Session: mine, State: record.Success, Exit: &record.Exit{}, Result: []byte(`{"files":3}`), At: noon.Add(time.Minute),
	}
	for _, e := range edit {
		e(&f)
	}
	return f
}

func TestASuccessIsWrittenTogetherWithItsResult(t *testing.T) {
	t.Parallel()
	answer := session.Finish(peer, success(), seenRow(running(t)))
	after := guarded(t, answer, running(t))
	require.Equal(t, record.Success, after.State)
	require.Equal(t, noon.Add(time.Minute), after.EnteredAt)
	require.Equal(t, &record.Exit{}, after.Exit)
	require.Equal(t, len(`{"files":3}`), after.ResultBytes)
	require.Equal(t, record.Blob(`{"files":3}`), value(*answer.Change, record.ResultKey(ref)))
	require.Contains(t, answer.Change.Expect, record.Present(record.WorkerKey(crane, mine)))
}

func TestOnlyASuccessHasAResult(t *testing.T) {
	t.Parallel()
	for _, state := range []record.AttemptState{record.Failed, record.Skipped, record.Cancelled} {
		f := success(func(f *session.Finished) {
			f.State, f.Cause = state, record.Because(record.CauseExitCode, "exit code 1")
		})
		answer := session.Finish(peer, f, seenRow(running(t)))
		after := guarded(t, answer, running(t))
		require.Equal(t, state, after.State)
		require.Equal(t, record.CauseExitCode, after.Cause.Code)
		require.Zero(t, after.ResultBytes)
		require.Nil(t, value(*answer.Change, record.ResultKey(ref)))
	}
	empty := session.Finish(peer, success(func(f *session.Finished) { f.Result = nil }), seenRow(running(t)))
	guarded(t, empty, running(t))
	require.Len(t, empty.Change.Put, 1)
}

func TestAnAttemptMayEndBeforeItsStartWasWritten(t *testing.T) {
	t.Parallel()
	require.Equal(t, record.Success, guarded(t, session.Finish(peer, success(), seenRow(intent())), intent()).State)
}

func TestAReportIsAcceptedAgainAndAgain(t *testing.T) {
	t.Parallel()
	ended := guarded(t, session.Finish(peer, success(), seenRow(running(t))), running(t))
	requireDone(t, session.Finish(peer, success(), seenRow(ended)))
}

func TestAReportOfARowThatEndedOtherwiseIsRejected(t *testing.T) {
	t.Parallel()
	lost := moved(t, running(t), record.Failed, "w-lost")
	lost.Cause = record.Because(record.CauseWorkerLost, "")
	requireRefused(t, session.Finish(peer, success(), seenRow(lost)), "is failed: worker_lost")
	requireRefused(t, session.Finish(peer, success(func(f *session.Finished) { f.Token = "other" }), seenRow(running(t))), "another session")
	requireRefused(t, session.Finish(peer, success(func(f *session.Finished) { f.Session = "m3v7k2qd-1" }), seenRow(running(t))), "another session")
	requireRefused(t, session.Finish(peer, success(func(f *session.Finished) { f.State = record.Abandoned }), seenRow(running(t))), "no transition")
}

func TestASuccessorDeliversUnderItsOwnKeyWhatItsPredecessorRan(t *testing.T) {
	t.Parallel()
	next := peer
	next.Session = "m3v7k2qd-3"
	answer := session.Finish(next, success(), seenRow(running(t)))
	after := guarded(t, answer, running(t))
	require.Contains(t, answer.Change.Expect, record.Present(record.WorkerKey(crane, "m3v7k2qd-3")))
	require.Equal(t, "session/"+string(mine), after.Transitions[len(after.Transitions)-1].By)
	requireDone(t, session.Finish(peer, success(), seenRow(after)))
}

func TestALateReportLiftsTheMarkOfItsAttempt(t *testing.T) {
	t.Parallel()
	mark := session.Seen[record.Unproven]{Rev: 70, Record: record.Unproven{Run: ref.Run, Task: ref.Task, Attempt: ref.N, Worker: crane, Session: mine}}
	c, err := session.Prove(success(), mark)
	require.NoError(t, err)
	require.NoError(t, c.Check())
	require.Equal(t, record.RuleProve, c.Rule)
	require.Equal(t, []record.Expect{record.At(record.UnprovenKey(ref), 70)}, c.Expect)
	require.Equal(t, []record.Delete{record.Remove(record.UnprovenKey(ref))}, c.Delete)
	require.Empty(t, c.Put)
}

func TestOnlyAnIntentOfTheSessionIsRefused(t *testing.T) {
	t.Parallel()
	answer := session.Refuse(peer, tok, noon.Add(time.Minute), seenRow(intent()))
	after := guarded(t, answer, intent())
	require.Equal(t, record.RuleProbe, answer.Change.Rule)
	require.Equal(t, &record.Mark{By: "session/" + string(mine), At: noon.Add(time.Minute)}, after.Refused)
	require.Equal(t, record.Queued, after.State)
	require.Equal(t, noon, after.EnteredAt)

	requireDone(t, session.Refuse(peer, tok, noon, seenRow(after)))
	requireDone(t, session.Refuse(peer, "other", noon, seenRow(intent())))
	requireDone(t, session.Refuse(peer, tok, noon, seenRow(running(t))))
	requireDone(t, session.Refuse(peer, tok, noon, session.Seen[record.Attempt]{}))
	other := intent()
	other.Session = "m3v7k2qd-1"
	requireDone(t, session.Refuse(peer, tok, noon, seenRow(other)))
	requireRefused(t, session.Start(peer, claim, seenRow(after), run()), "does not know")
}

func TestOnlyARunningRowOfTheSessionIsLostByOmission(t *testing.T) {
	t.Parallel()
	answer := session.Omitted(peer, noon.Add(time.Minute), seenRow(running(t)))
	after := guarded(t, answer, running(t))
	require.Equal(t, record.RuleLost, answer.Change.Rule)
	require.Equal(t, record.Failed, after.State)
	require.Equal(t, record.CauseWorkerLost, after.Cause.Code)
	require.Contains(t, answer.Change.Expect, record.At(record.SessionKey(crane, mine), sessionRev))

	requireDone(t, session.Omitted(peer, noon, seenRow(after)))
	requireDone(t, session.Omitted(peer, noon, seenRow(intent())))
	other := running(t)
	other.Session = "m3v7k2qd-1"
	requireDone(t, session.Omitted(peer, noon, seenRow(other)))
}

func TestAReportIDTellsSessionTokenAndKindApart(t *testing.T) {
	t.Parallel()
	require.Equal(t, session.ReportID(mine, tok, session.ReportStarted), session.ReportID(mine, tok, session.ReportStarted))
	ids := map[record.WriteID]bool{}
	for _, parts := range [][2]string{{"ab", "c"}, {"a", "bc"}, {"abc", ""}, {"", "abc"}, {"c", "ab"}} {
		for _, kind := range []session.ReportKind{session.ReportStarted, session.ReportFinished, session.ReportUnknown, session.ReportOmitted} {
			id := session.ReportID(record.SessionID(parts[0]), record.Token(parts[1]), kind)
			require.Len(t, id, 26)
			require.Empty(t, strings.Trim(string(id), "abcdefghijklmnopqrstuvwxyz234567"))
			require.False(t, ids[id], "%v %s", parts, kind)
			ids[id] = true
		}
	}
}
