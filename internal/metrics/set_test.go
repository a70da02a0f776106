package metrics_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/metrics"
)

// values reads the registry as name{label} → value.
func values(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += "{" + l.GetValue() + "}"
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return got
}

// countAll calls every method of a Set at least once.
func countAll(s *metrics.Set) {
	s.Committed(metrics.Committed)
	s.Committed(metrics.Committed)
	s.Committed(metrics.Unknown)
	s.Prevented("start")
	s.Passed(metrics.Full)
	s.Parked()
	s.Relisted()
	s.SessionOpened()
	s.SessionOpened()
	s.SessionClosed()
}

func TestEveryMethodCountsItsOwnMetric(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	set := metrics.New(reg)
	countAll(set)
	require.Equal(t, map[string]int64{"start": 1}, set.PreventedByRule())
	require.Equal(t, map[string]float64{
		"writ_commits_total{committed}":          2,
		"writ_commits_total{conflict}":           0,
		"writ_commits_total{unknown}":            1,
		"writ_prevented_duplicates_total{start}": 1,
		"writ_passes_total{full}":                1,
		"writ_passes_total{touched}":             0,
		"writ_parked_runs_total":                 1,
		"writ_mirror_relists_total":              1,
		"writ_sessions_opened_total":             2,
		"writ_sessions":                          1,
	}, values(t, reg))
}

func TestNilSetCountsNothing(t *testing.T) {
	t.Parallel()
	require.NotPanics(t, func() { countAll(nil) })
}

func TestSecondSetOnOneRegistryPanics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	metrics.New(reg)
	require.Panics(t, func() { metrics.New(reg) })
}
