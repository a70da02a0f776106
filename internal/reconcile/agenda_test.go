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

func TestAnAgendaTurnsAlarmsIntoWhatToLookAt(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	a, b := record.TaskRef{Run: "w.one", Task: "a"}, record.TaskRef{Run: "w.one", Task: "b"}
	s := view.SessionRef{Worker: "w1", Session: "s1"}
	var agenda reconcile.Agenda
	_, ok := agenda.Next()
	require.False(t, ok)
	for range 2 {
		agenda.Note(reconcile.Result{Alarms: []reconcile.Alarm{
			{At: begin.Add(3 * time.Second), Run: "w.one"},
			{At: begin.Add(time.Second), Task: b},
			{At: begin.Add(time.Second), Task: a},
			{At: begin.Add(2 * time.Second), Session: s},
		}})
	}
	next, ok := agenda.Next()
	require.True(t, ok)
	require.Equal(t, begin.Add(time.Second), next)
	require.True(t, agenda.Due(begin).Empty())
	require.Equal(t, view.Touched{
		Tasks: []record.TaskRef{a, b}, Sessions: []view.SessionRef{s},
	}, agenda.Due(begin.Add(2*time.Second)))
	require.Equal(t, []record.RunID{"w.one"}, agenda.Due(begin.Add(time.Hour)).Runs)
	_, ok = agenda.Next()
	require.False(t, ok, "each alarm rings once")
}

func TestADelayGrowsIsCappedAndThenJittered(t *testing.T) {
	t.Parallel()
	r := spec.Retry{Delay: record.Duration(time.Second), Backoff: 3, MaxDelay: record.Duration(10 * time.Second), Jitter: 0.5}
	for failures, want := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second, 10 * time.Second, 10 * time.Second} {
		require.Equal(t, want, reconcile.Delay(r, failures, 0))
	}
	require.Equal(t, 15*time.Second, reconcile.Delay(r, 9, 1))
	require.Equal(t, time.Second, reconcile.Delay(spec.Retry{Delay: record.Duration(time.Second)}, 5, 0.9))
	require.Equal(t, 365*24*time.Hour, reconcile.Delay(spec.Retry{Delay: record.Duration(time.Hour), Backoff: 10}, 1000, 0))
	require.Zero(t, reconcile.Delay(spec.Retry{Backoff: 2}, 3, 0.5))
}
