package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
	"github.com/writ-sched/writ/internal/store/storetest"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

const (
	accepted  = writv1.FinishedAnswer_FINISHED_ANSWER_ACCEPTED
	rejected  = writv1.FinishedAnswer_FINISHED_ANSWER_REJECTED
	forgotten = writv1.FinishedAnswer_FINISHED_ANSWER_FORGOTTEN
)

func TestAGrantedClaimIsDurableAndGrantedAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.intent("count"))
	k := w.attend(1)
	k.hearAssign("count")
	k.claims()
	require.True(t, k.hearStarted().GetGo())
	row := w.row("count")
	require.Equal(t, record.Running, row.State)
	require.Equal(t, record.Duration(15*time.Second), row.TTL)
	k.claims()
	require.True(t, k.hearStarted().GetGo())
	require.Equal(t, row, w.row("count"))
}

func TestAClaimWhoseAnswerTheStoreLostIsGrantedOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.intent("count"))
	k := w.attend(1)
	k.hearAssign("count")
	w.Inject(storetest.LostReply, 1)
	k.claims()
	require.True(t, k.hearStarted().GetGo())
	require.Len(t, w.row("count").Transitions, 2)
}

func TestAClaimIsNotGrantedFromAMirrorThatIsOlderThanTheHello(t *testing.T) {
	t.Parallel()
	w := setup(t)
	row := w.moved(w.intent("count"), record.Running)
	w.put(row)
	w.blind()
	lost := w.moved(row, record.Failed)
	w.Seed(record.AttemptKey(row.Ref()), lost, 0)
	k := w.attend(1, holds("count"))
	k.claims()
	require.False(t, k.hearStarted().GetGo())
}

func TestReportsAreAnsweredFromTheStoreWhereTheMirrorIsBehind(t *testing.T) {
	t.Parallel()
	w := setup(t)
	k := w.attend(1)
	w.blind()
	w.Seed(record.AttemptKey(ref("count")), w.intent("count"), 0)
	k.claims()
	require.True(t, k.hearStarted().GetGo())
	k.finishes("count")
	require.Equal(t, accepted, k.hearFinished("count").GetAnswer())
}

func TestAClaimOfASessionWhoseKeyIsGoneEndsItsStream(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.intent("count"))
	k := w.attend(1)
	k.hearAssign("count")
	w.Expire(w.live().Lease)
	k.claims()
	k.requireOver(codes.Unavailable, "lease is gone")
	require.Empty(t, k.heard)
	require.Equal(t, record.Queued, w.row("count").State)
}

func TestAReportIsAcceptedOnceItsRowHasEnded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.moved(w.intent("count"), record.Running))
	k := w.attend(1, holds("count"))
	k.finishes("count")
	require.Equal(t, accepted, k.hearFinished("count").GetAnswer())
	row := w.row("count")
	require.Equal(t, record.Success, row.State)
	require.Equal(t, len(`{"n":3}`), row.ResultBytes)
	result, err := w.Get(t.Context(), record.ResultKey(row.Ref()))
	require.NoError(t, err)
	require.Equal(t, record.Blob(`{"n":3}`), result.Value)

	k.finishes("count")
	require.Equal(t, accepted, k.hearFinished("count").GetAnswer())
	require.Equal(t, row, w.row("count"))
}

func TestAFailureIsWrittenWithItsCauseAndItsExit(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.moved(w.intent("count"), record.Running))
	k := w.attend(1, holds("count"))
	k.finishes("count", func(f *writv1.Finished) {
		f.State, f.Cause = writv1.TaskState_TASK_STATE_FAILED, &writv1.Cause{Code: "signal", Text: "ended by SIGSEGV"}
		f.Exit = &writv1.Exit{Code: -1, Signal: "SIGSEGV"}
	})
	require.Equal(t, accepted, k.hearFinished("count").GetAnswer())
	row := w.row("count")
	require.Equal(t, record.Failed, row.State)
	require.Equal(t, record.Because(record.CauseSignal, "ended by SIGSEGV"), row.Cause)
	require.Equal(t, &record.Exit{Code: -1, Signal: "SIGSEGV"}, row.Exit)
	require.Zero(t, row.ResultBytes)
}

func TestAReportOfARowThatEndedOtherwiseIsRejectedAndProvesItsDeath(t *testing.T) {
	t.Parallel()
	w := setup(t)
	row := w.moved(w.moved(w.intent("count"), record.Running), record.Failed)
	row.Unproven, row.Cause = true, record.Because(record.CauseWorkerLost, "")
	w.put(row)
	key := record.UnprovenKey(row.Ref())
	w.Seed(key, record.Unproven{Schema: record.Schema, Run: census, Task: "count", Attempt: 1, Worker: crane, Session: mine, Write: w.id()}, 0)
	k := w.attend(1)
	k.finishes("count")
	ack := k.hearFinished("count")
	require.Equal(t, rejected, ack.GetAnswer())
	require.Contains(t, ack.GetWhy(), "worker_lost")
	marked, err := w.Present(t.Context(), key)
	require.NoError(t, err)
	require.False(t, marked, "the answer follows the proof")
	require.Equal(t, row.State, w.row("count").State)
}

func TestAReportOfWhichNothingIsKnownIsForgotten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	k := w.attend(1)
	k.finishes("count")
	require.Equal(t, forgotten, k.hearFinished("count").GetAnswer())
	k.claims()
	require.False(t, k.hearStarted().GetGo())
}

func TestAReportOfAnEndedRunIsAnsweredFromItsDocument(t *testing.T) {
	t.Parallel()
	w := setup(t)
	heard := w.moved(w.intent("list"), record.Success)
	heard.Transitions[1].Write = session.ReportID(mine, heard.Token, session.ReportFinished)
	otherwise := w.moved(w.intent("count"), record.Cancelled)
	run := record.Run{Schema: record.Schema, Run: census, Workflow: "census", Revision: 1, State: record.RunFailed, Pages: 2}
	for n, row := range []record.Attempt{heard, otherwise} {
		w.Seed(record.PageKey(census, n+1), record.EndedPage{
			Schema: record.Schema, Run: census, Page: n + 1, Rows: []record.EndedRow{{Attempt: row, CreateRev: 5, ModRev: 6}}, Write: w.id(),
		}, 0)
	}
	w.Seed(record.EndedKey(census), record.Ended{Schema: record.Schema, Run: run, Pages: 2, Write: w.id()}, 0)
	w.await(w.Erase(record.RunKey(census)))
	k := w.attend(1)
	k.finishes("list")
	require.Equal(t, accepted, k.hearFinished("list").GetAnswer())
	k.finishes("count")
	require.Equal(t, rejected, k.hearFinished("count").GetAnswer())
	k.finishes("sort")
	require.Equal(t, forgotten, k.hearFinished("sort").GetAnswer())
}

func TestASuccessorDeliversTheReportsOfItsPredecessor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	row := w.intent("count")
	row.Session = before
	w.put(w.moved(row, record.Running))
	w.attend(1, func(h *writv1.Hello) { h.Session = string(before) }, holds("count"))
	k := w.attend(1, func(h *writv1.Hello) { h.Predecessor, h.Attested, h.Unsettled = string(before), true, 1 })
	k.finishes("count", func(f *writv1.Finished) { f.Session = string(before) })
	require.Equal(t, accepted, k.hearFinished("count").GetAnswer())
	require.True(t, w.row("count").HasWrite(session.ReportID(before, row.Token, session.ReportFinished)))
}

func TestAReportStaysUnansweredWhileTheStoreIsDownAndIsAcceptedAfter(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.put(w.moved(w.intent("count"), record.Running))
	k := w.attend(1, holds("count"))
	w.Down(true)
	k.finishes("count")
	k.finishes("list") // the mirror has no row of it
	k.quiet(200 * time.Millisecond)
	w.Down(false)
	k.finishes("count")
	require.Equal(t, accepted, k.hearFinished("count").GetAnswer())
	require.Len(t, w.row("count").Transitions, 3)
}

func TestGarbageEndsItsOwnStreamOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	good := func() *writv1.Finished {
		return &writv1.Finished{Token: token("count"), Attempt: named("count"), State: writv1.TaskState_TASK_STATE_SUCCESS}
	}
	report := func(edit func(*writv1.Finished)) *writv1.AttendRequest {
		f := good()
		edit(f)
		return &writv1.AttendRequest{Message: &writv1.AttendRequest_Finished{Finished: f}}
	}
	cases := []struct {
		why string
		say *writv1.AttendRequest
	}{
		{"of a kind that this server does not know", &writv1.AttendRequest{}},
		{"a second hello", hello(2)},
		{"started: token of 0", &writv1.AttendRequest{Message: &writv1.AttendRequest_Started{Started: &writv1.Started{Attempt: named("count")}}}},
		{"started: run id", &writv1.AttendRequest{Message: &writv1.AttendRequest_Started{Started: &writv1.Started{Token: "t"}}}},
		{"probe answer: token", &writv1.AttendRequest{Message: &writv1.AttendRequest_ProbeAnswer{ProbeAnswer: &writv1.ProbeAnswer{}}}},
		{"finished: token of 65", report(func(f *writv1.Finished) { f.Token = string(make([]byte, 65)) })},
		{"finished: attempt 0", report(func(f *writv1.Finished) { f.Attempt.Attempt = 0 })},
		{"state TASK_STATE_UNSPECIFIED", report(func(f *writv1.Finished) { f.State = writv1.TaskState_TASK_STATE_UNSPECIFIED })},
		{"state TASK_STATE_RUNNING", report(func(f *writv1.Finished) { f.State = writv1.TaskState_TASK_STATE_RUNNING })},
		{"needs a cause", report(func(f *writv1.Finished) { f.State = writv1.TaskState_TASK_STATE_FAILED })},
		{"result of 65537 bytes", report(func(f *writv1.Finished) { f.Result = make([]byte, 64<<10+1) })},
		{"signal of 257 bytes", report(func(f *writv1.Finished) { f.Exit = &writv1.Exit{Signal: string(make([]byte, 257))} })},
	}
	other := w.attend(1, func(h *writv1.Hello) { h.Worker = "other" })
	for n, c := range cases {
		k := w.attend(int64(n + 1))
		k.say(c.say)
		k.requireOver(codes.InvalidArgument, c.why)
	}
	other.beat(1)
	require.Equal(t, int64(1), other.hear().GetHeartbeatAck().GetNumber())
}
