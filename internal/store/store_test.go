package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/etcd/etcdtest"
	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store"
)

// pool makes a change that inserts a pool.
func pool(name record.Pool) record.Change {
	key := record.PoolKey(name)
	write := record.WriteID("w-" + name)
	return record.Change{
		Rule: record.RuleApply, Write: write, Expect: []record.Expect{record.Absent(key)},
		Put: []record.Put{{Key: key, Value: record.PoolLimit{Schema: record.Schema, Pool: name, Slots: 1, Write: write}}},
	}
}

func commit(t *testing.T, s *store.Store, c record.Change) int64 {
	t.Helper()
	o, err := s.Commit(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, record.Committed, o.Verdict, "%+v", o)
	return o.Rev
}

func TestConfigurationIsChecked(t *testing.T) {
	t.Parallel()
	client := etcdtest.Start(t).Client(t)
	space := newSpace(t)
	for says, config := range map[string]store.Config{
		"both etcd clients": {Bulk: client, Space: space},
		"keyspace":          {Bulk: client, Live: client},
		"at most 6s":        {Bulk: client, Live: client, Space: space, Timeout: 7 * time.Second},
	} {
		_, err := store.New(config)
		require.ErrorContains(t, err, says)
	}
}

func TestDamagedRecordIsNamedAndHidesNoOther(t *testing.T) {
	t.Parallel()
	client := etcdtest.Start(t).Client(t)
	space := newSpace(t)
	core, logs := observer.New(zap.ErrorLevel)
	s := newStore(t, client, client, space, func(c *store.Config) { c.Logger = zap.New(core) })
	start(t, s)
	first := commit(t, s, pool("a"))
	bad, strange := space.Key(record.PoolKey("b")), space.Prefix()+"active/strange"
	for _, key := range []string{bad, strange} {
		_, err := client.Put(t.Context(), key, "{not JSON")
		require.NoError(t, err)
	}
	last := commit(t, s, pool("c"))

	_, err := s.Get(t.Context(), record.PoolKey("b"))
	require.ErrorContains(t, err, bad)
	list, err := s.List(t.Context(), record.AllOf(record.FamilyPool), record.Key{}, 10)
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, record.PoolKey("b"), list[1].Key)
	require.Nil(t, list[1].Value)
	require.NotZero(t, list[1].ModRev)

	var keys []record.Key
	_, err = s.Snapshot(t.Context(), func(at record.Stored) error { keys = append(keys, at.Key); return nil })
	require.NoError(t, err)
	require.Equal(t, []record.Key{record.PoolKey("a"), record.PoolKey("c")}, keys)
	keys = nil
	_, err = s.History(t.Context(), first, func(e record.Events) error {
		for _, event := range e.Events {
			keys = append(keys, event.Key)
		}
		require.LessOrEqual(t, e.Rev, last)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []record.Key{record.PoolKey("a"), record.PoolKey("c")}, keys)

	o, err := s.Commit(t.Context(), pool("b"))
	require.NoError(t, err)
	require.Equal(t, record.Conflict, o.Verdict)
	require.Nil(t, o.Seen[0].Value)
	require.NotZero(t, o.Seen[0].ModRev, "it is there, whatever it is")
	require.NotZero(t, logs.FilterMessageSnippet("cannot be read").Len())
	require.Contains(t, logs.All()[0].ContextMap()["error"], bad)
}

// pagedKV is an etcd before 3.7, which streams no ranges.
type pagedKV struct{ clientv3.KV }

func (pagedKV) GetStream(context.Context, string, ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return nil, status.Error(codes.Unimplemented, "unknown method RangeStream")
}

func TestSnapshotIsPagedWhereEtcdCannotStream(t *testing.T) {
	t.Parallel()
	bulk, live := etcdtest.Start(t).Client(t), etcdtest.Start(t).Client(t)
	space := newSpace(t)
	s, old := newStore(t, live, live, space), newStore(t, bulk, live, space)
	bulk.KV = pagedKV{bulk.KV}
	start(t, s)
	const n = 1200 // more than two pages
	changed := make(chan record.Outcome, n)
	for i := range n {
		s.Submit(pool(record.Pool(number(i))), func(o record.Outcome) { changed <- o })
	}
	for range n {
		require.Equal(t, record.Committed, (<-changed).Verdict)
	}
	streamed, paged := map[record.Key]int64{}, map[record.Key]int64{}
	rev, err := s.Snapshot(t.Context(), func(at record.Stored) error { streamed[at.Key] = at.ModRev; return nil })
	require.NoError(t, err)
	require.Len(t, streamed, n)
	first := true
	pagedRev, err := old.Snapshot(t.Context(), func(at record.Stored) error {
		if first { // written behind the first page, and not seen on a later one
			first = false
			commit(t, s, pool("zzz"))
		}
		paged[at.Key] = at.ModRev
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, pagedRev, rev)
	require.Equal(t, streamed, paged)
}

func number(i int) string {
	return "p" + string([]byte{byte('a' + i/100%26), byte('a' + i/10%10), byte('a' + i%10)})
}

func TestSweepLeavesNothingOfAnEndedRun(t *testing.T) {
	t.Parallel()
	client := etcdtest.Start(t).Client(t)
	space := newSpace(t)
	s := newStore(t, client, client, space)
	start(t, s)
	line := ended(t, s, "a.b", 230)
	ended(t, s, "a.b-1", 2)

	swept, err := s.Sweep(t.Context(), line, record.Present(record.ElectionKey(7)))
	require.NoError(t, err)
	require.False(t, swept, "who sweeps does not lead any more")
	stale := line
	stale.ModRev--
	swept, err = s.Sweep(t.Context(), stale)
	require.NoError(t, err)
	require.False(t, swept)
	swept, err = s.Sweep(t.Context(), line)
	require.NoError(t, err)
	require.True(t, swept)

	got, err := client.Get(t.Context(), space.Prefix(), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	var left []string
	for _, kv := range got.Kvs {
		key, err := space.Parse(string(kv.Key))
		require.NoError(t, err)
		require.EqualValues(t, "a.b-1", key.Run)
		left = append(left, string(kv.Key))
	}
	require.Len(t, left, 2+1+1+1+1, "results, page, parameters, head and line of the other run: %v", left)
}

// ended writes what an ended run leaves, and returns its index line.
func ended(t *testing.T, s *store.Store, run record.RunID, results int) record.Stored {
	t.Helper()
	at := time.Date(2026, 12, 1, 2, 30, 0, 0, time.UTC)
	key := record.IndexKey(at, run)
	write := record.WriteID("w-" + run)
	line := record.IndexLine{Schema: record.Schema, Run: run, EndedAt: at, Write: write}
	commit(t, s, record.Change{
		Rule: record.RuleEnd, Write: write, Expect: []record.Expect{record.Absent(key)},
		Put: []record.Put{
			{Key: key, Value: line},
			{Key: record.EndedKey(run), Value: record.Ended{Schema: record.Schema, Write: write}},
			{Key: record.PageKey(run, 1), Value: record.EndedPage{Schema: record.Schema, Run: run, Page: 1, Write: write}},
			{Key: record.InputKey(run), Value: record.Input{Schema: record.Schema, Run: run, Write: write}},
		},
	})
	for done := 0; done < results; {
		c := record.Change{Rule: record.RuleFinish, Write: write, Expect: []record.Expect{record.Present(key)}}
		c.Put = []record.Put{{Key: record.PoolKey("proof"), Value: record.PoolLimit{Write: write}}}
		for range min(50, results-done) {
			done++
			c.Put = append(c.Put, record.Put{Key: record.ResultKey(record.TaskRef{Run: run, Task: "t"}.At(done)), Value: record.Blob(`{}`)})
		}
		commit(t, s, c)
	}
	commit(t, s, record.Change{
		Rule: record.RuleEnd, Expect: []record.Expect{record.Present(key)}, Delete: []record.Delete{record.Remove(record.PoolKey("proof"))},
	})
	stored, err := s.Get(t.Context(), key)
	require.NoError(t, err)
	return stored
}

func TestStatusTellsTheSizeOfTheDatabase(t *testing.T) {
	t.Parallel()
	client := etcdtest.Start(t).Client(t)
	s := newStore(t, client, client, newSpace(t))
	status, err := s.Status(t.Context())
	require.NoError(t, err)
	require.Positive(t, status.Rev)
	require.Positive(t, status.Bytes)
	require.Positive(t, status.InUse)
	require.Positive(t, status.Quota)
	require.Empty(t, status.Alarms)
}

func TestSpaceOfAnotherClusterIsAnother(t *testing.T) {
	t.Parallel()
	client := etcdtest.Start(t).Client(t)
	one, err := keyspace.New("t0")
	require.NoError(t, err)
	two, err := keyspace.New("t0-1")
	require.NoError(t, err)
	a, b := newStore(t, client, client, one), newStore(t, client, client, two)
	start(t, a)
	start(t, b)
	commit(t, a, pool("p"))
	commit(t, b, pool("p"))
	count, err := a.Count(t.Context(), record.AllOf(record.FamilyPool))
	require.NoError(t, err)
	require.EqualValues(t, 1, count)
}
