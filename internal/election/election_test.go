package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/writ-sched/writ/internal/election"
	"github.com/writ-sched/writ/internal/etcd/etcdtest"
)

func TestShutdownHandsOverAtOnceInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	var replicas []*replica
	for i := range 3 {
		id := fmt.Sprint("r", i)
		r := start(t, client, election.Config{Prefix: prefix, Replica: id}, nil)
		r.follow(t, id, i)
		replicas = append(replicas, r)
	}
	var last election.Term
	for i, r := range replicas {
		term := r.won(t)
		require.Greater(t, term.Rev, last.Rev)
		require.NotEqual(t, term.Lease, last.Lease)
		for _, other := range replicas[i:] {
			require.Equal(t, term.Key, other.follow(t, fmt.Sprint("r", i), 0).Key)
		}
		r.end(t)
		require.ErrorIs(t, r.lost(t), context.Canceled)
		require.False(t, r.Standing().Leading)
		require.True(t, gone(t, client, term.Lease))
		last = term
	}
	require.Empty(t, keys(t, client, prefix))
}

func TestShutdownOfAWaitingReplicaLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	leader := start(t, client, election.Config{Prefix: prefix, Replica: "r1"}, nil)
	term := leader.won(t)
	waiting := start(t, client, election.Config{Prefix: prefix, Replica: "r2"}, nil)
	mine := waiting.follow(t, "r2", 1)
	waiting.end(t)
	require.Empty(t, waiting.terms)
	require.Equal(t, []string{term.Key}, keys(t, client, prefix))
	require.True(t, gone(t, client, mine.Lease))
}

func TestLeaderWhoseLeaseOrKeyIsTakenStopsAndComesBackWithANewFence(t *testing.T) {
	t.Parallel()
	client := etcdtest.Start(t).Client(t)
	for name, take := range map[string]func(*testing.T, election.Term) error{
		"lease revoked": func(t *testing.T, term election.Term) error {
			t.Helper()
			_, err := client.Revoke(t.Context(), clientv3.LeaseID(term.Lease))
			return err
		},
		"key deleted": func(t *testing.T, term election.Term) error {
			t.Helper()
			_, err := client.Delete(t.Context(), term.Key)
			return err
		},
		"key replaced": func(t *testing.T, term election.Term) error {
			t.Helper()
			_, err := client.Delete(t.Context(), term.Key)
			require.NoError(t, err)
			_, err = client.Put(t.Context(), term.Key, "", clientv3.WithLease(clientv3.LeaseID(term.Lease)))
			if errors.Is(err, rpctypes.ErrLeaseNotFound) {
				return nil // the replica was quicker, and has ended its candidacy
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := etcdtest.Prefix(t)
			r := start(t, client, election.Config{Prefix: prefix, Replica: "r1"}, nil)
			first := r.won(t)
			require.NoError(t, take(t, first))
			require.ErrorIs(t, r.lost(t), election.ErrKeyGone)
			second := r.won(t)
			require.Greater(t, second.Rev, first.Rev)
			require.NotEqual(t, first.Lease, second.Lease)
			require.True(t, gone(t, client, first.Lease))
			require.Equal(t, []string{second.Key}, keys(t, client, prefix))
			require.ErrorIs(t, r.Standing().Ended, election.ErrKeyGone)
		})
	}
}

func TestWaitingReplicaWhoseLeaseOrKeyIsTakenEntersAgain(t *testing.T) {
	t.Parallel()
	client := etcdtest.Start(t).Client(t)
	for name, take := range map[string]func(*testing.T, election.Candidate) error{
		"lease revoked": func(t *testing.T, c election.Candidate) error {
			t.Helper()
			_, err := client.Revoke(t.Context(), clientv3.LeaseID(c.Lease))
			return err
		},
		"key deleted": func(t *testing.T, c election.Candidate) error {
			t.Helper()
			_, err := client.Delete(t.Context(), c.Key)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := etcdtest.Prefix(t)
			leader := start(t, client, election.Config{Prefix: prefix, Replica: "r1"}, nil)
			leader.won(t)
			waiting := start(t, client, election.Config{Prefix: prefix, Replica: "r2"}, nil)
			old := waiting.follow(t, "r2", 1)
			require.NoError(t, take(t, old))
			again := waiting.await(t, func(c []election.Candidate) bool {
				return len(c) == 2 && c[1].Replica == "r2" && c[1].Rev > old.Rev
			})[1]
			require.Empty(t, waiting.terms, "a dead candidacy does not lead")
			leader.end(t)
			require.Equal(t, again.Rev, waiting.won(t).Rev)
		})
	}
}

func TestEtcdsOwnElectionTakesPart(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	r := start(t, client, election.Config{Prefix: prefix, Replica: "r1"}, nil)
	term := r.won(t)
	session, err := concurrency.NewSession(client)
	require.NoError(t, err)
	other := concurrency.NewElection(session, strings.TrimSuffix(prefix, "/"))
	leader, err := other.Leader(t.Context())
	require.NoError(t, err)
	require.Equal(t, term.Key, string(leader.Kvs[0].Key))

	won := make(chan error, 1)
	go func() { won <- other.Campaign(t.Context(), "by hand") }()
	r.await(t, func(c []election.Candidate) bool { return len(c) == 2 })
	r.Resign("test")
	require.ErrorIs(t, r.lost(t), election.ErrResigned)
	require.NoError(t, receive(t, won, "etcd's own election"))
	foreign := r.await(t, func(c []election.Candidate) bool { return len(c) == 2 && c[1].Replica == "r1" })[0]
	require.Equal(t, other.Key(), foreign.Key)
	require.Empty(t, foreign.Replica)
	require.NoError(t, other.Resign(t.Context()))
	require.Greater(t, r.won(t).Rev, other.Rev())
	require.NoError(t, session.Close())
}

func TestLeaderThatReportsNoProgressIsReplacedEvenWhileItHangs(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	hung := prepare(t, client, election.Config{Prefix: prefix, Replica: "r1", StallLimit: 200 * time.Millisecond}, nil)
	release := make(chan struct{})
	unhang := sync.OnceFunc(func() { close(release) })
	hung.run(t, func(ctx context.Context, _ election.Term) error {
		<-release // deaf to its context
		return nil
	})
	t.Cleanup(unhang)
	first := hung.won(t)
	other := start(t, client, election.Config{Prefix: prefix, Replica: "r2"}, nil)
	second := other.won(t)
	require.Greater(t, second.Rev, first.Rev)
	standing := hung.Standing()
	require.False(t, standing.Leading)
	require.ErrorIs(t, standing.Ended, election.ErrStalled)
	require.ErrorContains(t, standing.Ended, "200ms")
	require.False(t, standing.EndedAt.IsZero())
	require.Equal(t, []string{second.Key}, keys(t, client, prefix), "a replica with a hung loop does not campaign")
	unhang()
	require.ErrorIs(t, hung.lost(t), election.ErrStalled)
	hung.follow(t, "r1", 1)
}

func TestLeaderThatReportsProgressStays(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	r := prepare(t, client, election.Config{Prefix: prefix, Replica: "r1", StallLimit: time.Second}, nil)
	r.run(t, func(ctx context.Context, _ election.Term) error {
		r.Progress(time.Now().Add(time.Hour))
		r.Progress(time.Now()) // an older reading takes nothing back
		<-ctx.Done()
		return nil
	})
	r.won(t)
	select {
	case cause := <-r.causes:
		require.NoError(t, cause)
	case <-time.After(2500 * time.Millisecond):
	}
	require.True(t, r.Standing().Leading)
}

func TestResigningPutsAReplicaBehindTheOthersAndSaysWhy(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	one := start(t, client, election.Config{Prefix: prefix, Replica: "r1"}, nil)
	one.won(t)
	two := start(t, client, election.Config{Prefix: prefix, Replica: "r2"}, nil)
	two.follow(t, "r2", 1)
	two.Resign("it does not lead, so nothing happens")
	one.Resign("mirror is stale")
	cause := one.lost(t)
	require.ErrorIs(t, cause, election.ErrResigned)
	require.ErrorContains(t, cause, "mirror is stale")
	two.won(t)
	two.follow(t, "r1", 1)
	require.Equal(t, cause, one.Standing().Ended)
}

func TestLoopThatReturnsGivesLeadershipUp(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	core, logs := observer.New(zapcore.WarnLevel)
	r := prepare(t, client, election.Config{Prefix: prefix, Replica: "r1"}, zap.New(core))
	broken := errors.New("the loop broke")
	var calls atomic.Int64
	r.run(t, func(ctx context.Context, _ election.Term) error {
		if calls.Add(1) == 1 {
			return broken
		}
		<-ctx.Done()
		return nil
	})
	first, second := r.won(t), r.won(t)
	require.Greater(t, second.Rev, first.Rev)
	require.ErrorIs(t, r.Standing().Ended, election.ErrResigned)
	require.Contains(t, logs.All()[0].ContextMap()["error"], "the loop broke")
}

func TestDeposeRevokesACandidateAndNobodyElse(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	leader := start(t, client, election.Config{Prefix: prefix, Replica: "r1"}, nil)
	term := leader.won(t)
	other := start(t, client, election.Config{Prefix: prefix, Replica: "r2"}, nil)
	other.follow(t, "r2", 1)

	worker, err := client.Grant(t.Context(), 3600)
	require.NoError(t, err)
	require.NoError(t, other.Depose(t.Context(), int64(worker.ID)))
	require.False(t, gone(t, client, int64(worker.ID)), "a lease that is no candidate's")

	require.NoError(t, other.Depose(t.Context(), term.Lease))
	require.Greater(t, other.won(t).Rev, term.Rev)
	require.NoError(t, other.Depose(t.Context(), term.Lease), "twice is no error")
	require.Error(t, leader.lost(t))
	_, err = client.Revoke(t.Context(), worker.ID)
	require.NoError(t, err)
}

func TestWaitSurvivesACompactionAndARestartOfEtcd(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	client := member.Client(t)
	core, logs := observer.New(zapcore.DebugLevel)
	_, err := client.Put(t.Context(), "/e/1", "by hand")
	require.NoError(t, err)
	r := start(t, client, election.Config{Prefix: "/e/", Replica: "r1"}, zap.New(core))
	mine := r.follow(t, "r1", 1)
	var rev int64
	for range 10 {
		put, err := client.Put(t.Context(), "elsewhere", "")
		require.NoError(t, err)
		rev = put.Header.Revision
	}
	_, err = client.Compact(t.Context(), rev, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	member.Restart(t) // the watch resumes at a revision that is gone
	require.Eventually(t, func() bool {
		for _, entry := range logs.FilterMessage("election watch ended").All() {
			if strings.Contains(fmt.Sprint(entry.ContextMap()["error"]), "compacted") {
				return true
			}
		}
		return false
	}, ample, time.Millisecond)
	require.Empty(t, r.terms)
	_, err = client.Delete(t.Context(), "/e/1")
	require.NoError(t, err)
	require.Equal(t, mine.Rev, r.won(t).Rev)
}

func TestLeaderWithoutEtcdStopsByItselfAndComesBack(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	client := member.Client(t)
	r := start(t, client, election.Config{Prefix: "/e/", Replica: "r1", TTL: short}, nil)
	first := r.won(t)
	member.Stop(t)
	require.ErrorIs(t, r.lost(t), election.ErrSessionEnded)
	member.Restart(t)
	second := r.won(t)
	require.Greater(t, second.Rev, first.Rev)
	require.NotEqual(t, first.Lease, second.Lease)
}

func TestWaitingReplicaWithoutEtcdEntersAgainAfterwards(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	client := member.Client(t)
	core, logs := observer.New(zapcore.WarnLevel)
	_, err := client.Put(t.Context(), "/e/1", "by hand")
	require.NoError(t, err)
	r := start(t, client, election.Config{Prefix: "/e/", Replica: "r1", TTL: short}, zap.New(core))
	old := r.follow(t, "r1", 1)
	member.Stop(t)
	require.Eventually(t, func() bool { return logs.Len() > 0 }, ample, time.Millisecond)
	require.Contains(t, logs.All()[0].ContextMap()["error"], election.ErrSessionEnded.Error())
	member.Restart(t)
	r.await(t, func(c []election.Candidate) bool { return len(c) == 2 && c[1].Rev > old.Rev })
	_, err = client.Delete(t.Context(), "/e/1")
	require.NoError(t, err)
	require.Greater(t, r.won(t).Rev, old.Rev)
}

func TestShutdownWithoutEtcdIsBounded(t *testing.T) {
	t.Parallel()
	member := etcdtest.StartOwn(t)
	r := start(t, member.Client(t), election.Config{Prefix: "/e/", Replica: "r1"}, nil)
	r.won(t)
	member.Stop(t)
	r.end(t)
}

func TestTermsOfManyReplicasUnderFaultsNeverShareAFence(t *testing.T) {
	t.Parallel()
	client, prefix := etcdtest.Start(t).Client(t), etcdtest.Prefix(t)
	const replicas, changes = 4, 24
	type reign struct {
		election.Term
		by *replica
	}
	reigns := make(chan reign, 1000)
	var electors []*replica
	for i := range replicas {
		r := prepare(t, client, election.Config{Prefix: prefix, Replica: fmt.Sprint("r", i)}, nil)
		var leading atomic.Int64
		r.run(t, func(ctx context.Context, term election.Term) error {
			if leading.Add(1) != 1 {
				panic("lead is called twice at once")
			}
			defer leading.Add(-1)
			reigns <- reign{term, r}
			<-ctx.Done()
			return nil
		})
		electors = append(electors, r)
	}
	seen := make(map[int64]bool)
	for i := range changes {
		term := receive(t, reigns, "a leader")
		require.False(t, seen[term.Rev])
		seen[term.Rev] = true
		switch i % 4 {
		case 0:
			_, err := client.Revoke(t.Context(), clientv3.LeaseID(term.Lease))
			require.NoError(t, err)
		case 1:
			_, err := client.Delete(t.Context(), term.Key)
			require.NoError(t, err)
		case 2:
			term.by.Resign("test")
		case 3:
			watcher := electors[i%replicas]
			watcher.await(t, func(c []election.Candidate) bool { return len(c) > 0 && c[0].Lease == term.Lease })
			require.NoError(t, watcher.Depose(t.Context(), term.Lease))
		}
	}
	for _, r := range electors {
		r.end(t)
	}
	require.Empty(t, keys(t, client, prefix))
}
