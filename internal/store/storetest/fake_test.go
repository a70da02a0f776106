package storetest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFakeIsAStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T, bool) storetest.Harness {
		f := storetest.New(batch.Limits{})
		return storetest.Harness{
			Store: f, Faults: f, Refused: storetest.ErrRefused, Compacted: storetest.ErrCompacted,
			Beside: func(_ *testing.T, c record.Change) record.Outcome { return f.Make(c) },
		}
	})
}

func worker(lease int64) (record.Key, record.Worker) {
	return record.WorkerKey("w", "s"), record.Worker{Worker: "w", Session: "s", Lease: lease}
}

func TestLeasesOfTheFakeLiveByTheTimeOfTheBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := storetest.Start(t)
		lease, ttl, err := f.Grant(t.Context(), 15*time.Second)
		require.NoError(t, err)
		require.Equal(t, 15*time.Second, ttl)
		key, value := worker(lease)
		f.Seed(key, value, lease)
		rest := func(d time.Duration) { <-time.After(d); synctest.Wait() }
		there := func() bool {
			present, err := f.Present(t.Context(), key)
			require.NoError(t, err)
			return present
		}
		rest(14 * time.Second)
		require.True(t, there())
		_, err = f.Renew(t.Context(), lease)
		require.NoError(t, err)
		rest(14 * time.Second)
		require.True(t, there())
		f.Down(true)
		rest(time.Hour)
		f.Down(false)
		require.True(t, there(), "an etcd without a leader expires nothing, and begins anew")
		rest(14 * time.Second)
		require.True(t, there())
		rest(time.Second)
		require.False(t, there())
	})
}

func TestDownFakeAnswersNothingAndSettlesLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := storetest.Start(t)
		f.Down(true)
		key, value := worker(0)
		value.Write = "w1"
		c := record.Change{Rule: record.RuleRegister, Write: "w1", Expect: []record.Expect{record.Absent(key)}, Put: []record.Put{{Key: key, Value: value}}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		o, err := f.Commit(ctx, c)
		require.NoError(t, err)
		require.Equal(t, record.Unknown, o.Verdict)
		_, err = f.Get(t.Context(), key)
		require.ErrorIs(t, err, storetest.ErrDown)
		_, err = f.Snapshot(t.Context(), func(record.Stored) error { return nil })
		require.ErrorIs(t, err, storetest.ErrDown)

		heard := make(chan record.Outcome, 1)
		f.Submit(c, func(o record.Outcome) { heard <- o })
		<-time.After(time.Minute)
		f.Down(false)
		require.Equal(t, record.Committed, (<-heard).Verdict)
	})
}

func TestCutWatchListsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := storetest.Start(t)
		ended := make(chan error, 1)
		go func() { ended <- f.Watch(t.Context(), f.Rev(), func(record.Events) error { return nil }) }()
		synctest.Wait()
		f.Cut()
		require.ErrorIs(t, <-ended, storetest.ErrCompacted)
	})
}

func TestValuesOfTheFakeAreCopies(t *testing.T) {
	t.Parallel()
	f := storetest.New(batch.Limits{})
	key, value := worker(0)
	value.Queues = []record.Queue{"q"}
	f.Seed(key, value, 0)
	value.Queues[0] = "other"
	at, err := f.Get(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []record.Queue{"q"}, at.Value.(record.Worker).Queues)
	f.Erase(key)
	at, err = f.Get(t.Context(), key)
	require.NoError(t, err)
	require.Zero(t, at.ModRev)
}
