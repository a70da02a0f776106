package election_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/election"
	"github.com/writ-sched/writ/internal/etcd/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

const (
	// ample bounds every wait of these tests.
	ample = 60 * time.Second
	// forever is a time to live that no test lives to see the end of, so that
	// nothing here can happen by expiry unless the test chose a short one.
	forever = time.Hour
	// short is the shortest time to live that etcd grants.
	short = 2 * time.Second
)

// replica is an elector under test.
type replica struct {
	*election.Elector
	terms  chan election.Term // one for each call of lead
	causes chan error         // why each of them ended
	stop   context.CancelFunc
	done   chan struct{}
}

// start runs an elector whose lead waits for the end of its term.
func start(t *testing.T, client *clientv3.Client, config election.Config, logger *zap.Logger) *replica {
	t.Helper()
	r := prepare(t, client, config, logger)
	r.run(t, func(ctx context.Context, _ election.Term) error {
		<-ctx.Done()
		return ctx.Err()
	})
	return r
}

// prepare makes an elector. Its stall limit is endless where the test sets none.
func prepare(t *testing.T, client *clientv3.Client, config election.Config, logger *zap.Logger) *replica {
	t.Helper()
	if config.TTL == 0 {
		config.TTL = forever
	}
	if config.StallLimit == 0 {
		config.StallLimit = forever
	}
	elector, err := election.New(config, client, client, logger)
	require.NoError(t, err)
	return &replica{
		Elector: elector, done: make(chan struct{}),
		terms: make(chan election.Term, 1000), causes: make(chan error, 1000),
	}
}

// run runs the elector until stop, or the end of the test.
func (r *replica) run(t *testing.T, lead func(context.Context, election.Term) error) {
	t.Helper()
	// The test's own context ends before the cleanup that stops the replica.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r.stop = cancel
	go func() {
		defer close(r.done)
		err := r.Run(ctx, func(ctx context.Context, term election.Term) error {
			r.terms <- term
			err := lead(ctx, term)
			r.causes <- context.Cause(ctx)
			return err
		})
		if err != nil {
			panic(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
}

// receive takes the next value or fails.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	limit := time.NewTimer(ample)
	defer limit.Stop()
	select {
	case value := <-from:
		return value
	case <-limit.C:
		require.FailNow(t, "waited in vain for "+what)
		panic("unreachable")
	}
}

// won waits until the replica leads.
func (r *replica) won(t *testing.T) election.Term {
	t.Helper()
	return receive(t, r.terms, "leadership")
}

// lost waits until the replica's term ended, and says why.
func (r *replica) lost(t *testing.T) error {
	t.Helper()
	return receive(t, r.causes, "the end of a term")
}

// end stops the replica and waits for it.
func (r *replica) end(t *testing.T) {
	t.Helper()
	r.stop()
	receive(t, r.done, "the end of Run")
}

// await waits until an elector's roll is as wanted.
func (r *replica) await(t *testing.T, wanted func([]election.Candidate) bool) []election.Candidate {
	t.Helper()
	for {
		changed := r.Changed()
		if candidates := r.Candidates(); wanted(candidates) {
			return candidates
		}
		receive(t, changed, "a change of the candidates")
	}
}

// follow waits until the replica stands at a place of its own roll.
func (r *replica) follow(t *testing.T, id string, at int) election.Candidate {
	t.Helper()
	return r.await(t, func(c []election.Candidate) bool { return len(c) > at && c[at].Replica == id })[at]
}

// keys returns what stands below a prefix.
func keys(t *testing.T, client *clientv3.Client, prefix string) []string {
	t.Helper()
	got, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	var names []string
	for _, kv := range got.Kvs {
		names = append(names, string(kv.Key))
	}
	return names
}

// gone reports that a lease does not exist.
func gone(t *testing.T, client *clientv3.Client, lease int64) bool {
	t.Helper()
	left, err := client.TimeToLive(t.Context(), clientv3.LeaseID(lease))
	require.NoError(t, err)
	return left.TTL == -1
}

func TestConfigurationIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]election.Config{
		`prefix "/a" does not end in a slash`: {Prefix: "/a", Replica: "r"},
		"replica id is empty":                 {Prefix: "/a/"},
		"time to live 1s":                     {Prefix: "/a/", Replica: "r", TTL: time.Second},
		"time to live 2.5s":                   {Prefix: "/a/", Replica: "r", TTL: 2500 * time.Millisecond},
		"stall limit -1s":                     {Prefix: "/a/", Replica: "r", StallLimit: -time.Second},
	} {
		_, err := election.New(config, nil, nil, nil)
		require.ErrorContains(t, err, want)
	}
}

func TestLeaderKeyIsOfEtcdsLayoutAndReadable(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	r := start(t, client, election.Config{Prefix: prefix, Replica: "r1", Address: "127.0.0.1:7"}, nil)
	term := r.won(t)
	require.Equal(t, fmt.Sprintf("%s%x", prefix, term.Lease), term.Key)
	got, err := client.Get(t.Context(), term.Key)
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	require.Equal(t, term.Rev, got.Kvs[0].CreateRevision)
	require.Equal(t, term.Lease, got.Kvs[0].Lease)
	var value map[string]any
	require.NoError(t, json.Unmarshal(got.Kvs[0].Value, &value))
	require.Equal(t, "r1", value["replica"])
	require.Equal(t, "127.0.0.1:7", value["address"])
	since, err := time.Parse(time.RFC3339Nano, value["since"].(string))
	require.NoError(t, err)
	require.Equal(t, time.UTC, since.Location())
	require.Len(t, value, 3)

	leader := r.follow(t, "r1", 0)
	require.Equal(t, election.Candidate{
		Replica: "r1", Address: "127.0.0.1:7", Since: since, Lease: term.Lease, Key: term.Key, Rev: term.Rev,
	}, leader)
	standing := r.Standing()
	require.True(t, standing.Leading)
	require.Equal(t, term, standing.Term)
	require.NoError(t, standing.Ended)
}

func TestOnlyALiveFirstKeyPassesTheReadAfterTheWait(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	r := prepare(t, client, election.Config{Prefix: prefix, Replica: "r1"}, nil)
	enter := func(key string) election.Term {
		put, err := client.Put(t.Context(), prefix+key, "")
		require.NoError(t, err)
		return election.Term{Key: prefix + key, Rev: put.Header.Revision}
	}
	one, two := enter("1"), enter("2")
	verify := func(term election.Term) bool {
		first, err := r.Verify(t.Context(), term)
		require.NoError(t, err)
		return first
	}
	require.True(t, verify(one))
	require.False(t, verify(two))
	_, err := client.Delete(t.Context(), one.Key)
	require.NoError(t, err)
	require.True(t, verify(two))
	_, err = r.Verify(t.Context(), one)
	require.ErrorIs(t, err, election.ErrKeyGone)
	_, err = client.Delete(t.Context(), two.Key)
	require.NoError(t, err)
	again := enter("2")
	_, err = r.Verify(t.Context(), two)
	require.ErrorIs(t, err, election.ErrKeyGone, "the same key of another candidacy")
	require.True(t, verify(again))
}
