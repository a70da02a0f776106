package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/store"
)

func TestAnswerBelongsToARenewalSentAfterTheQuestion(t *testing.T) {
	t.Parallel()
	r, now := store.NewRenewals(), time.Unix(1, 0)
	unanswered := func(ask func() (time.Duration, bool)) {
		t.Helper()
		_, known := ask()
		require.False(t, known)
	}
	answers := func(want time.Duration, ask func() (time.Duration, bool)) {
		t.Helper()
		ttl, known := ask()
		require.True(t, known)
		require.Equal(t, want, ttl)
	}
	one, two := r.Ask(7), r.Ask(7)
	require.Equal(t, []int64{7}, r.Take(now), "one renewal for both")
	three, other := r.Ask(7), r.Ask(8)
	require.Equal(t, []int64{8}, r.Take(now), "one of each lease is on the way")
	r.Settle(7, time.Second)
	answers(time.Second, one)
	answers(time.Second, two)
	unanswered(three)
	require.Equal(t, []int64{7}, r.Take(now))
	require.False(t, r.Overdue(now.Add(time.Second)))
	require.True(t, r.Overdue(now.Add(time.Second+1)))
	r.Settle(8, 0)
	answers(0, other)

	four := r.Ask(7)
	r.Break()
	require.Equal(t, []int64{7}, r.Take(now), "asked again on the next stream")
	r.Settle(7, 2*time.Second)
	answers(2*time.Second, three)
	answers(2*time.Second, four)
	r.Settle(7, time.Second) // an answer to nobody
	require.Empty(t, r.Take(now))

	five := r.Ask(7)
	r.Stop()
	answers(-1, five)
	answers(-1, r.Ask(7))
}
