package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
)

const (
	crane record.WorkerName = "crane"
	mine  record.SessionID  = "m3v7k2qd-2"
	tok   record.Token      = "c4x2ns7qmv5j"

	// The revisions at which the records of the tests were seen.
	rowRev, runRev, sessionRev, workerRev int64 = 40, 30, 20, 10
)

var (
	noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	peer = session.Peer{Worker: crane, Session: mine, Rev: sessionRev, TTL: 15 * time.Second}
	ref  = record.TaskRef{Run: "census.r1", Task: "count"}.At(1)
)

// intent is a row that was dispatched to the session of the tests.
func intent() record.Attempt {
	return record.Attempt{
		Schema: record.Schema, Run: ref.Run, Task: ref.Task, Attempt: ref.N, Kind: record.KindExec, State: record.Queued,
		EnteredAt: noon, Token: tok, Worker: crane, Session: mine, Queue: "default", OnLost: record.OnLostRetry,
		Transitions: []record.Transition{{State: "queued", At: noon, Rule: record.RuleStart, By: "replica/r7", Write: "w-intent"}},
	}
}

// moved is a row after a step of the session of the tests.
func moved(t *testing.T, a record.Attempt, to record.AttemptState, write record.WriteID) record.Attempt {
	t.Helper()
	next, err := a.Move(record.Step{To: to, By: record.Gateway, Who: "session/" + string(mine), At: noon, Rule: record.RuleFinish, Write: write})
	require.NoError(t, err)
	return next
}

func running(t *testing.T) record.Attempt {
	t.Helper()
	return moved(t, intent(), record.Running, session.ReportID(mine, tok, session.ReportStarted))
}

func seenRow(a record.Attempt) session.Seen[record.Attempt] {
	return session.Seen[record.Attempt]{Record: a, Rev: rowRev}
}

// run is the run of the row, edited.
func run(edit ...func(*record.Run)) session.Seen[record.Run] {
	r := record.Run{Schema: record.Schema, Run: ref.Run, Workflow: "census", Revision: 1, State: record.RunRunning}
	for _, f := range edit {
		f(&r)
	}
	return session.Seen[record.Run]{Record: r, Rev: runRev}
}

// guarded returns the row that an answer writes. The change must be one that
// may be sent, and carry every guard of the row's transition.
func guarded(t *testing.T, answer session.Answer, before record.Attempt) record.Attempt {
	t.Helper()
	require.NotNil(t, answer.Change, answer.Why)
	require.False(t, answer.Final)
	c := *answer.Change
	require.NoError(t, c.Check())
	after, ok := value(c, record.AttemptKey(before.Ref())).(record.Attempt)
	require.True(t, ok)
	require.Nil(t, record.Lacking(c, before, after, record.Gateway))
	require.Contains(t, c.Expect, record.At(record.AttemptKey(before.Ref()), rowRev))
	require.True(t, after.HasWrite(c.Write))
	return after
}

// value is what a change puts under a key; nil means nothing.
func value(c record.Change, k record.Key) record.Value {
	for _, p := range c.Put {
		if p.Key == k {
			return p.Value
		}
	}
	return nil
}

// requireRefused holds an answer to be a final no, whose words contain why.
func requireRefused(t *testing.T, answer session.Answer, why string) {
	t.Helper()
	require.Nil(t, answer.Change)
	require.True(t, answer.Final)
	require.False(t, answer.Good)
	require.Contains(t, answer.Why, why)
}

func requireDone(t *testing.T, answer session.Answer) {
	t.Helper()
	require.Nil(t, answer.Change)
	require.True(t, answer.Final)
	require.True(t, answer.Good)
}
