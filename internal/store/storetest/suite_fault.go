package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
)

func lostReply(t *testing.T, b *bench) {
	t.Helper()
	b.Faults.Inject(LostReply, 3)
	c := insert("a.b", "t", 1)
	rev := b.commit(t, c)
	require.Equal(t, rev, b.get(t, c.Put[0].Key).ModRev, "made once, and found to be made")

	// The row has moved on by somebody else's write before the answer is asked
	// for again: its transitions still show ours.
	b.Faults.Inject(LostReply, 1)
	b.Faults.Inject(Hold, 1)
	c = insert("a.b", "t", 2)
	outcomes := b.submitAll(t, c)
	await(t, "the second try", func() (int, bool) { n := b.Faults.Caught(); return n, n == 1 })
	at := b.get(t, c.Put[0].Key)
	moved := b.Beside(t, move(at.Value.(record.Attempt), at.ModRev, record.Running, "w9"))
	require.Equal(t, record.Committed, moved.Verdict)
	b.Faults.Release()
	require.Equal(t, moved, outcomes()[0])
}

func dropped(t *testing.T, b *bench) {
	t.Helper()
	b.Faults.Inject(Drop, 2)
	c := insert("a.b", "t", 1)
	rev := b.commit(t, c)
	require.Equal(t, rev, b.get(t, c.Put[0].Key).ModRev)
}

func sameToken(t *testing.T, b *bench) {
	t.Helper()
	b.commit(t, insert("a.b", "t", 1))
	c := insert("a.b", "t", 1)
	c.Write = "another"
	c.Put[0].Value = rowOf("a.b", "t", 1, "another")
	b.Faults.Inject(Drop, 1)
	o := b.try(t, c)
	require.Equal(t, record.Conflict, o.Verdict)
	seen, ok := o.Find(c.Put[0].Key)
	require.True(t, ok)
	require.Equal(t, c.Put[0].Value.(record.Attempt).Token, seen.Value.(record.Attempt).Token)
}

// lateCommit lets a first try land after the change was settled and the state
// moved on.
func lateCommit(t *testing.T, b *bench) {
	t.Helper()
	rev := b.commit(t, insert("a.b", "t", 1))
	row := rowOf("a.b", "t", 1, "insert-a.b-t-1")
	b.Faults.Inject(Zombie, 1)
	claim := move(row, rev, record.Running, "w2")
	claimed := b.commit(t, claim)
	finish := move(claim.Put[0].Value.(record.Attempt), claimed, record.Success, "w3")
	finished := b.commit(t, finish)
	require.Equal(t, 1, b.Faults.Caught())
	b.Faults.Release()
	at := b.get(t, claim.Put[0].Key)
	require.Equal(t, finished, at.ModRev, "the late try of the claim found the row moved")
	require.Equal(t, record.Success, at.Value.(record.Attempt).State)
}

func lateCommitSeen(t *testing.T, b *bench) {
	t.Helper()
	rev, err := b.Store.Snapshot(t.Context(), func(record.Stored) error { return nil })
	require.NoError(t, err)
	events := b.follow(t, rev)
	b.Faults.Inject(Zombie, 1)
	b.Faults.Inject(Drop, 1000) // until the caller has given up
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	c := insert("a.b", "t", 1)
	o, err := b.Store.Commit(ctx, c)
	require.NoError(t, err)
	require.Equal(t, record.Outcome{Verdict: record.Unknown}, o)
	require.Zero(t, b.get(t, c.Put[0].Key).ModRev, "reading proves nothing")
	b.Faults.Release()
	e := events.next(t)
	require.Equal(t, c.Put[0].Key, e.Events[0].Key, "it is dispatched by watch like any other")
}

func deadLease(t *testing.T, b *bench) {
	t.Helper()
	lease, _, err := b.Store.Grant(t.Context(), time.Minute)
	require.NoError(t, err)
	require.NoError(t, b.Store.Revoke(t.Context(), lease))
	require.NoError(t, b.Store.Revoke(t.Context(), lease), "it is gone already")
	leased := insert("a.b", "t", 4)
	leased.Put[0].Lease = lease
	b.hold(t)
	var changes []record.Change
	for n := 1; n <= 9; n++ {
		if n == 4 {
			changes = append(changes, leased)
		} else {
			changes = append(changes, insert("a.b", "t", n))
		}
	}
	outcomes := b.submitAll(t, changes...)
	b.Faults.Release()
	for i, o := range outcomes() {
		want := record.Committed
		if i == 3 {
			want = record.Conflict
		}
		require.Equal(t, want, o.Verdict, "%d", i+1)
	}
	o, err := b.Store.Commit(t.Context(), leased)
	require.NoError(t, err, "a lease that is gone is a lost race, and no error")
	require.Equal(t, record.Conflict, o.Verdict)
}

func expiry(t *testing.T, b *bench) {
	t.Helper()
	lease, granted, err := b.Store.Grant(t.Context(), time.Second)
	require.NoError(t, err)
	require.GreaterOrEqual(t, granted, time.Second)
	c := record.Change{
		Rule: record.RuleRegister, Write: "w1", Expect: []record.Expect{record.Absent(record.WorkerKey("w", "s"))},
		Put: []record.Put{
			{Key: record.WorkerKey("w", "s"), Value: record.Worker{Worker: "w", Session: "s", Write: "w1"}, Lease: lease},
			{Key: record.SessionKey("w", "s"), Value: record.Session{Worker: "w", Session: "s", Write: "w1"}},
		},
	}
	rev := b.commit(t, c)
	require.Equal(t, lease, b.get(t, record.WorkerKey("w", "s")).Lease)
	e := b.follow(t, rev).next(t)
	require.Equal(t, []record.Event{{Key: record.WorkerKey("w", "s"), ModRev: e.Rev}}, e.Events)
	present, err := b.Store.Present(t.Context(), record.WorkerKey("w", "s"))
	require.NoError(t, err)
	require.False(t, present)
	require.NotZero(t, b.get(t, record.SessionKey("w", "s")).ModRev, "it has no lease")
}

func renewal(t *testing.T, b *bench) {
	t.Helper()
	lease, granted, err := b.Store.Grant(t.Context(), 20*time.Second)
	require.NoError(t, err)
	require.Equal(t, 20*time.Second, granted)
	answers := make(chan time.Duration, 20)
	for range cap(answers) {
		go func() {
			ttl, err := b.Store.Renew(t.Context(), lease)
			if err != nil {
				ttl = -1
			}
			answers <- ttl
		}()
	}
	for range cap(answers) {
		require.Equal(t, granted, receive(t, answers, "a renewal"))
	}
	require.NoError(t, b.Store.Revoke(t.Context(), lease))
	ttl, err := b.Store.Renew(t.Context(), lease)
	require.NoError(t, err)
	require.Zero(t, ttl, "gone")
	ttl, err = b.Store.Renew(t.Context(), 0x7777)
	require.NoError(t, err)
	require.Zero(t, ttl, "never there")
}
