package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/audit"
)

func TestCorrectHistoriesHaveNoViolation(t *testing.T) {
	t.Parallel()
	for name, tell := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			tell(s)
			h := s.history()
			h.quiet = true
			a := h.auditor()
			require.Empty(t, a.Report())
			require.Empty(t, a.Report(), "a report may be asked for again")
			sum := a.Summary()
			require.Positive(t, sum.Attempts)
			require.Zero(t, sum.Blind)
			require.Empty(t, sum.Partial)
		})
	}
}

func TestTheSummaryCountsWhatWasRead(t *testing.T) {
	t.Parallel()
	sum := told(t, reopened).auditor().Summary()
	require.Equal(t, 1, sum.Runs)
	require.Equal(t, 2, sum.Ended)
	require.Equal(t, 1, sum.Reopened)
	require.Equal(t, 5, sum.Attempts)
	require.Equal(t, 2, sum.Clears)
	require.Equal(t, 1, sum.Sessions)
	require.Equal(t, 1, sum.Terms)
	require.Equal(t, 5, sum.Observed)
	sum = told(t, lostOnce).auditor().Summary()
	require.Equal(t, 2, sum.Lost)
	require.Equal(t, 1, sum.Unproven)
	sum = told(t, abandonedOnce).auditor().Summary()
	require.Equal(t, 1, sum.Abandoned)
	require.Equal(t, 1, sum.Refused)
	for _, c := range sum.Checks {
		require.Positive(t, c.Times, c.Invariant)
	}
	require.Contains(t, sum.Checks, audit.Check{Invariant: "I2", Times: 2})
}

func told(t *testing.T, tell func(*story)) history {
	t.Helper()
	s := newStory(t)
	tell(s)
	return s.history()
}
