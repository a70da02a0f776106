package record_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/record"
)

func TestNamesAreThePatternOfTheManual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		require.NoError(t, record.CheckName(rapid.StringMatching(record.NamePattern).Draw(t, "name"), record.MaxName))
	})
	for _, bad := range []string{"", "-a", "_a", "A", "a.b", "a b", "é", "a/b", strings.Repeat("a", record.MaxName+1)} {
		require.Error(t, record.CheckName(bad, record.MaxName), "%q", bad)
	}
	require.ErrorContains(t, record.CheckName(strings.Repeat("a", 41), record.MaxWorkflowName), "at most 40")
}

func TestRunIDsOfAllKindsAreAcceptedAndComeApart(t *testing.T) {
	t.Parallel()
	date := time.Date(2026, 12, 1, 2, 30, 0, 0, time.FixedZone("x", 3600))
	for suffix, good := range map[string]bool{
		record.DateSuffix(date, 1): true, record.DateSuffix(date, 12): true, "k-3f9a": true, "mine": true,
		"mine.r1": false, "mine.r02": false, "mine.2": false, "mine.r2.r3": false, "": false, "A": false,
	} {
		id := record.MakeRunID("etl", suffix)
		require.Equal(t, record.WorkflowName("etl"), id.Workflow())
		require.Equal(t, suffix, id.Suffix())
		require.Equal(t, good, id.Check() == nil, "%s: %v", id, id.Check())
	}
	require.Equal(t, "20261201t013000z", record.DateSuffix(date, 1))
	require.Equal(t, "20261201t013000z.r2", record.DateSuffix(date, 2))
	require.Error(t, record.RunID("etl").Check())
	require.Error(t, record.RunID(strings.Repeat("a", 41)+".x").Check())
}

func TestSuffixesOfPeopleNeverLookLikeOurs(t *testing.T) {
	t.Parallel()
	require.NoError(t, record.CheckSuffix("20261201"))
	require.NoError(t, record.CheckSuffix("nightly"))
	for _, bad := range []string{"20261201t023000z", "20261201t0", "k-x", "", "a.b"} {
		require.Error(t, record.CheckSuffix(bad), "%q", bad)
	}
}

func TestTaskNamesAreReadBackAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ref := record.TaskRef{Run: "etl.a", Task: record.TaskID(rapid.StringMatching(record.NamePattern).Draw(t, "task"))}
		if rapid.Bool().Draw(t, "fanned out") {
			ref.Instance = record.MakeInstance(rapid.IntRange(0, record.MaxInstances-1).Draw(t, "instance"))
		}
		task, instance, err := record.ParseTaskName(ref.Name())
		require.NoError(t, err)
		require.Equal(t, ref.Task, task)
		require.Equal(t, ref.Instance, instance)
		require.Equal(t, "etl.a/"+ref.Name()+"/3", ref.At(3).String())
	})
	for _, bad := range []string{"", "a.", "a.1", "a.000001", "a.-0001", "a.00001.00002", "A.00001"} {
		_, _, err := record.ParseTaskName(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestDurationsAreTextAndReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := record.Duration(rapid.Int64().Draw(t, "nanoseconds"))
		text, err := json.Marshal(d)
		require.NoError(t, err)
		var back record.Duration
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, d, back)
	})
	text, err := json.Marshal(record.Duration(90 * time.Second))
	require.NoError(t, err)
	require.Equal(t, `"1m30s"`, string(text))
	var d record.Duration
	require.ErrorContains(t, d.UnmarshalText([]byte("90")), "expected a number with a unit")
	require.Zero(t, d.Std())
}

func TestCausesAreCutInsideNoCharacter(t *testing.T) {
	t.Parallel()
	for pad := range 4 {
		c := record.Because(record.CauseExitCode, strings.Repeat("x", pad)+strings.Repeat("é", record.MaxCauseText))
		require.LessOrEqual(t, len(c.Text), record.MaxCauseText)
		require.Equal(t, c.Text, strings.ToValidUTF8(c.Text, "?"))
		require.True(t, strings.HasSuffix(c.Text, "é…"))
	}
	require.Equal(t, "short", record.Because(record.CauseExitCode, "short").Text)
}

func TestRowsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	intent := rowIn(record.KindExec, record.StageIntent)
	require.True(t, intent.Intent() && intent.Live() && !intent.Waiting())
	waiting := rowIn(record.KindExec, record.StageWaiting)
	require.True(t, waiting.Waiting() && !waiting.Live() && !waiting.Intent())
	require.False(t, rowIn(record.KindExec, "success").Live())
	require.Equal(t, int64(9), intent.FirstRev(9))
	intent.Fence = 4
	require.Equal(t, int64(4), intent.FirstRev(9), "the revision that was carried over a reopening counts")
	require.False(t, intent.Fenced())
	intent.OnLost = record.OnLostRetry
	require.True(t, intent.Fenced())
	when, ok := intent.EnteredState(record.Queued)
	require.True(t, ok)
	require.Equal(t, at(0), when)
	_, ok = intent.EnteredState(record.Running)
	require.False(t, ok)
}
