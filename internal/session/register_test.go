package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/session"
)

const before record.SessionID = "m3v7k2qd-1"

// offer is what the gateway of the tests adds, with a fresh lease.
var offer = session.Offer{Replica: "r7", Lease: 99, TTL: 15 * time.Second, At: noon, Write: "w-register"}

func hello(edit ...func(*session.Hello)) session.Hello {
	h := session.Hello{
		Worker: crane, Session: mine, Stream: 4, Slots: 2, Queues: []record.Queue{"default"}, Processes: true, Host: "crane-1", Protocol: 1,
	}
	for _, f := range edit {
		f(&h)
	}
	return h
}

// heir is a Hello of a session that follows another of its directory.
func heir(h *session.Hello) { h.Predecessor, h.Attested = before, true }

func live(s record.SessionID) session.Seen[record.Worker] {
	return session.Seen[record.Worker]{Rev: workerRev, Record: record.Worker{
		Schema: record.Schema, Worker: crane, Session: s, Lease: 77, Slots: 2, Host: "crane-9", Write: "w-live",
	}}
}

func kept(s record.SessionID, edit ...func(*record.Session)) session.Seen[record.Session] {
	r := record.Session{Schema: record.Schema, Worker: crane, Session: s, Stream: 3, Replica: "r2", Write: "w-kept"}
	for _, f := range edit {
		f(&r)
	}
	return session.Seen[record.Session]{Record: r, Rev: sessionRev}
}

func lives(list ...session.Seen[record.Worker]) []session.Seen[record.Worker] { return list }

func keeps(list ...session.Seen[record.Session]) []session.Seen[record.Session] { return list }

func registered(t *testing.T, h session.Hello, k session.Known, o session.Offer) record.Change {
	t.Helper()
	c, refusal, err := session.Register(h, k, o)
	require.NoError(t, err)
	require.Nil(t, refusal)
	require.NoError(t, c.Check())
	require.Equal(t, record.RuleRegister, c.Rule)
	own, ok := value(c, record.SessionKey(h.Worker, h.Session)).(record.Session)
	require.True(t, ok)
	require.Equal(t, h.Stream, own.Stream)
	require.Equal(t, o.Replica, own.Replica)
	return c
}

func leaseOf(c record.Change, k record.Key) int64 {
	for _, p := range c.Put {
		if p.Key == k {
			return p.Lease
		}
	}
	return 0
}

func TestAFreshNameIsTakenOnlyWhileNobodyHasIt(t *testing.T) {
	t.Parallel()
	require.True(t, session.NeedsLease(hello(), session.Known{}))
	c := registered(t, hello(), session.Known{}, offer)
	require.ElementsMatch(t, []record.Expect{
		record.Absent(record.SessionKey(crane, mine)), record.Empty(record.SessionsOf(crane)),
	}, c.Expect)
	require.Empty(t, c.Delete)
	key := record.WorkerKey(crane, mine)
	require.Equal(t, int64(99), leaseOf(c, key))
	require.Zero(t, leaseOf(c, record.SessionKey(crane, mine)))
	require.Equal(t, record.Worker{
		Schema: record.Schema, Worker: crane, Session: mine, Lease: 99, TTL: record.Duration(15 * time.Second), Slots: 2,
		Queues: []record.Queue{"default"}, Processes: true, Host: "crane-1", Protocol: 1, RegisteredAt: noon, Write: "w-register",
	}, value(c, key))
}

func TestANewStreamOfALivingSessionKeepsItsKey(t *testing.T) {
	t.Parallel()
	known := session.Known{Live: lives(live(mine)), Sessions: keeps(kept(mine))}
	require.False(t, session.NeedsLease(hello(), known))
	c := registered(t, hello(), known, session.Offer{Replica: "r7", At: noon, Write: "w-register"})
	require.ElementsMatch(t, []record.Expect{
		record.At(record.SessionKey(crane, mine), sessionRev), record.At(record.WorkerKey(crane, mine), workerRev),
	}, c.Expect)
	require.Len(t, c.Put, 1)
	require.Empty(t, c.Delete)
}

func TestASessionWhoseKeyExpiredRegistersAnew(t *testing.T) {
	t.Parallel()
	gone := kept(mine, func(s *record.Session) { s.GoneAt = noon })
	known := session.Known{Sessions: keeps(gone)}
	require.True(t, session.NeedsLease(hello(), known))
	c := registered(t, hello(), known, offer)
	require.Contains(t, c.Expect, record.At(record.SessionKey(crane, mine), sessionRev))
	own, _ := value(c, record.SessionKey(crane, mine)).(record.Session)
	require.Zero(t, own.GoneAt)
	require.Equal(t, int64(99), leaseOf(c, record.WorkerKey(crane, mine)))
}

func TestAStreamThatWasOvertakenIsSuperseded(t *testing.T) {
	t.Parallel()
	for _, own := range []session.Seen[record.Session]{
		kept(mine, func(s *record.Session) { s.Stream = 4 }),
		kept(mine, func(s *record.Session) { s.Stream = 5 }),
		kept(mine, func(s *record.Session) { s.Successor = "m3v7k2qd-3" }),
	} {
		_, refusal, err := session.Register(hello(), session.Known{Live: lives(live(mine)), Sessions: keeps(own)}, offer)
		require.NoError(t, err)
		require.NotNil(t, refusal)
		require.Equal(t, session.Superseded, refusal.Code)
		require.Zero(t, refusal.RetryAfter)
	}
}

func TestANameIsNotTakenFromAnotherSession(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		hello session.Hello
		live  []session.Seen[record.Worker]
	}{
		{"another directory", hello(heir), lives(live("zzzzzzzz-1"))},
		{"a later session of the directory", hello(heir), lives(live("m3v7k2qd-3"))},
		{"its predecessor, not attested dead", hello(func(h *session.Hello) { h.Predecessor = before }), lives(live(before))},
		{"its predecessor and one more", hello(heir), lives(live(before), live("zzzzzzzz-1"))},
		{"no number", hello(heir), lives(live("m3v7k2qd"))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.True(t, session.NeedsLease(c.hello, session.Known{Live: c.live}))
			_, refusal, err := session.Register(c.hello, session.Known{Live: c.live}, offer)
			require.NoError(t, err)
			require.NotNil(t, refusal)
			require.Equal(t, session.NameTaken, refusal.Code)
			require.Equal(t, offer.TTL, refusal.RetryAfter)
			require.Contains(t, refusal.Why, "crane-9")
		})
	}
}

func TestAnAttestedSuccessorTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	known := session.Known{Live: lives(live(before)), Sessions: keeps(kept(before))}
	c := registered(t, hello(heir), known, offer)
	require.Equal(t, []record.Delete{record.Remove(record.WorkerKey(crane, before))}, c.Delete)
	require.ElementsMatch(t, []record.Expect{
		record.Absent(record.SessionKey(crane, mine)), record.At(record.WorkerKey(crane, before), workerRev),
		record.Absent(record.WorkerKey(crane, mine)), record.At(record.SessionKey(crane, before), sessionRev),
	}, c.Expect)
	old, ok := value(c, record.SessionKey(crane, before)).(record.Session)
	require.True(t, ok)
	require.Equal(t, mine, old.Successor)
	require.Equal(t, &record.Mark{By: "session/" + string(mine), At: noon}, old.Attested)
	require.True(t, old.Settled)
	require.Equal(t, int64(3), old.Stream)
}

func TestEarlierSessionsAreTold(t *testing.T) {
	t.Parallel()
	first := &record.Mark{By: "session/m3v7k2qd-1", At: noon.Add(-time.Hour)}
	known := session.Known{Sessions: keeps(
		kept("m3v7k2qd-0", func(s *record.Session) { s.Attested = first }),
		kept(before),
		kept("m3v7k2qd-9"), kept("zzzzzzzz-1"),
	)}
	settled := known
	settled.Sessions = append(keeps(kept("m3v7k2qd-0", func(s *record.Session) { s.Attested, s.Settled = first, true })), known.Sessions[1:]...)

	c := registered(t, hello(heir, func(h *session.Hello) { h.Unsettled = 2 }), known, offer)
	require.Len(t, c.Put, 4)
	zero, _ := value(c, record.SessionKey(crane, "m3v7k2qd-0")).(record.Session)
	require.Equal(t, first, zero.Attested, "the first attestation counts")
	require.False(t, zero.Settled, "results are to be delivered")
	require.Equal(t, mine, zero.Successor)

	c = registered(t, hello(heir), settled, offer)
	require.Nil(t, value(c, record.SessionKey(crane, "m3v7k2qd-0")), "nothing is left to tell it")
	require.NotNil(t, value(c, record.SessionKey(crane, before)))

	unsure := registered(t, hello(func(h *session.Hello) { h.Predecessor = before }), known, offer)
	one, _ := value(unsure, record.SessionKey(crane, before)).(record.Session)
	require.Nil(t, one.Attested)
	require.Equal(t, mine, one.Successor)

	require.Len(t, registered(t, hello(), known, offer).Put, 2, "without a predecessor nobody is told anything")
}

func TestARegistrationTellsABoundedNumberOfEarlierSessionsNewestFirst(t *testing.T) {
	t.Parallel()
	var known session.Known
	for n := range 40 {
		known.Sessions = append(known.Sessions, kept(record.SessionID(fmt.Sprintf("m3v7k2qd-%d", n))))
	}
	h := hello(heir, func(h *session.Hello) { h.Session, h.Predecessor = "m3v7k2qd-100", "m3v7k2qd-39" })
	c := registered(t, h, known, offer)
	require.Len(t, c.Put, 2+16)
	for n := range 40 {
		told := value(c, record.SessionKey(crane, record.SessionID(fmt.Sprintf("m3v7k2qd-%d", n))))
		require.Equal(t, n >= 24, told != nil, "session %d", n)
	}
}

func TestADrainingSessionRegistersAsDraining(t *testing.T) {
	t.Parallel()
	c := registered(t, hello(func(h *session.Hello) { h.Draining = true }), session.Known{}, offer)
	w, _ := value(c, record.WorkerKey(crane, mine)).(record.Worker)
	require.Equal(t, &record.Hold{By: "session/" + string(mine), At: noon}, w.Draining)
}

func TestADrainThatWasLostWithItsStreamIsMadeUpForByTheNextHello(t *testing.T) {
	t.Parallel()
	draining := hello(func(h *session.Hello) { h.Draining = true })
	c := registered(t, draining, session.Known{Live: lives(live(mine)), Sessions: keeps(kept(mine))}, session.Offer{Replica: "r7", At: noon, Write: "w"})
	key := record.WorkerKey(crane, mine)
	w, ok := value(c, key).(record.Worker)
	require.True(t, ok)
	require.Equal(t, &record.Hold{By: "session/" + string(mine), At: noon}, w.Draining)
	require.Equal(t, int64(77), leaseOf(c, key))

	already := live(mine)
	already.Record.Draining = w.Draining
	c = registered(t, draining, session.Known{Live: lives(already), Sessions: keeps(kept(mine))}, offer)
	require.Nil(t, value(c, key))
}

func TestDrainKeepsTheLease(t *testing.T) {
	t.Parallel()
	c, ok, err := session.Drain(peer, live(mine), "upgrade", noon, "w-drain")
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, c.Check())
	key := record.WorkerKey(crane, mine)
	require.Equal(t, []record.Expect{record.At(key, workerRev)}, c.Expect)
	require.Equal(t, int64(77), leaseOf(c, key))
	w, _ := value(c, key).(record.Worker)
	require.Equal(t, &record.Hold{By: "session/" + string(mine), At: noon, Why: "upgrade"}, w.Draining)

	_, ok, err = session.Drain(peer, session.Seen[record.Worker]{Record: w, Rev: workerRev}, "again", noon, "w-again")
	require.NoError(t, err)
	require.False(t, ok)
	_, ok, err = session.Drain(peer, session.Seen[record.Worker]{}, "gone", noon, "w-gone")
	require.NoError(t, err)
	require.False(t, ok)
}

func TestSettleMarksThoseThatWaitForThisSession(t *testing.T) {
	t.Parallel()
	mineNext := func(s *record.Session) { s.Successor = mine }
	known := session.Known{Sessions: keeps(
		kept(before, mineNext),
		kept("m3v7k2qd-0", mineNext, func(s *record.Session) { s.Settled = true }),
		kept("zzzzzzzz-1", func(s *record.Session) { s.Successor = "zzzzzzzz-2" }),
		kept(mine),
	)}
	c, ok, err := session.Settle(peer, known, "w-settle")
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, c.Check())
	require.Equal(t, []record.Expect{record.At(record.SessionKey(crane, before), sessionRev)}, c.Expect)
	require.Len(t, c.Put, 1)
	old, _ := value(c, record.SessionKey(crane, before)).(record.Session)
	require.True(t, old.Settled)
	require.Equal(t, mine, old.Successor)

	_, ok, err = session.Settle(peer, session.Known{Sessions: keeps(kept(mine))}, "w-none")
	require.NoError(t, err)
	require.False(t, ok)
}
