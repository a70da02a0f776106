package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/etcd/etcdtest"
	"github.com/writ-sched/writ/internal/record"
)

// brief is a context that gives up soon.
func brief(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestNothingOutlivesItsCallerWhereEtcdIsGone(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	bulk, live := member.Client(t), member.Client(t)
	s := newStore(t, bulk, live, newSpace(t))
	start(t, s)
	lease, _, err := s.Grant(t.Context(), time.Minute)
	require.NoError(t, err)
	_, err = s.Renew(t.Context(), lease)
	require.NoError(t, err)
	rev := commit(t, s, pool("a"))

	member.Stop(t)
	o, err := s.Commit(brief(t), pool("b"))
	require.NoError(t, err)
	require.Equal(t, record.Outcome{Verdict: record.Unknown}, o)
	for name, read := range map[string]func(context.Context) error{
		"get": func(ctx context.Context) error { _, err := s.Get(ctx, record.PoolKey("a")); return err },
		"list": func(ctx context.Context) error {
			_, err := s.List(ctx, record.AllOf(record.FamilyPool), record.Key{}, 1)
			return err
		},
		"count": func(ctx context.Context) error { _, err := s.Count(ctx, record.AllOf(record.FamilyPool)); return err },
		"snapshot": func(ctx context.Context) error {
			_, err := s.Snapshot(ctx, func(record.Stored) error { return nil })
			return err
		},
		"watch": func(ctx context.Context) error { return s.Watch(ctx, rev, func(record.Events) error { return nil }) },
		"history": func(ctx context.Context) error {
			_, err := s.History(ctx, 1, func(record.Events) error { return nil })
			return err
		},
		"grant":   func(ctx context.Context) error { _, _, err := s.Grant(ctx, time.Minute); return err },
		"revoke":  func(ctx context.Context) error { return s.Revoke(ctx, lease) },
		"renew":   func(ctx context.Context) error { _, err := s.Renew(ctx, lease); return err },
		"present": func(ctx context.Context) error { _, err := s.Present(ctx, record.PoolKey("a")); return err },
		"compact": func(ctx context.Context) error { return s.Compact(ctx, rev) },
		"status":  func(ctx context.Context) error { _, err := s.Status(ctx); return err },
	} {
		require.Error(t, read(brief(t)), name)
	}

	submitted := make(chan record.Outcome, 1)
	s.Submit(pool("c"), func(o record.Outcome) { submitted <- o })
	member.Restart(t)
	require.Equal(t, record.Committed, (<-submitted).Verdict, "it is sent again until it is settled")
	o, err = s.Commit(t.Context(), pool("b"))
	require.NoError(t, err)
	require.Equal(t, record.Committed, o.Verdict)
	ttl := time.Duration(0)
	for ttl == 0 { // the stream is opened again with a pause
		if ttl, err = s.Renew(t.Context(), lease); err != nil {
			ttl = 0
			require.NoError(t, t.Context().Err())
		}
	}
	require.Equal(t, time.Minute, ttl)
}

func TestWatchGoesOnOverARestartOfEtcd(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	bulk, live := member.Client(t), member.Client(t)
	s := newStore(t, bulk, live, newSpace(t))
	start(t, s)
	rev := commit(t, s, pool("a"))
	events := make(chan record.Events, 1000)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- s.Watch(ctx, rev, func(e record.Events) error {
			if len(e.Events) > 0 {
				events <- e
			}
			return nil
		})
	}()
	first := commit(t, s, pool("b"))
	require.Equal(t, first, (<-events).Rev)
	member.Restart(t)
	second := commit(t, s, pool("c"))
	select {
	case e := <-events:
		require.Equal(t, second, e.Rev)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	case err := <-ended:
		// A watch that etcd breaks off is an error, and the mirror lists again.
		require.Error(t, err)
		cancel()
	}
}
