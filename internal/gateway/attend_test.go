package gateway_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// requireClean holds that the stream ended without an error.
func (k *worker) requireClean() {
	k.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case err := <-k.ended:
		require.ErrorIs(k.t, err, io.EOF)
	case <-limit.C:
		require.Fail(k.t, "the stream does not end")
	}
}

// session is what is remembered of a session.
func (w *world) session(s record.SessionID) record.Session {
	w.t.Helper()
	stored, err := w.Get(w.t.Context(), record.SessionKey(crane, s))
	require.NoError(w.t, err)
	kept, ok := stored.Value.(record.Session)
	require.True(w.t, ok)
	return kept
}

func TestAWelcomeFollowsADurableRegistration(t *testing.T) {
	t.Parallel()
	w := setup(t)
	k := w.dial()
	k.say(hello(1))
	welcome := k.hear().GetWelcome()
	require.Equal(t, "r1", welcome.GetReplica())
	require.Equal(t, 15*time.Second, welcome.GetTtl().AsDuration())
	require.Equal(t, 3*time.Second, welcome.GetMargin().AsDuration())
	require.Equal(t, 5*time.Second, welcome.GetHeartbeatEvery().AsDuration())
	require.Equal(t, 5*time.Second, welcome.GetKillGrace().AsDuration())

	live := w.live()
	require.Equal(t, 2, live.Slots)
	require.Equal(t, []record.Queue{"default"}, live.Queues)
	require.NotZero(t, live.Lease)
	kept := w.session(mine)
	require.Equal(t, int64(1), kept.Stream)
	require.Equal(t, record.ReplicaID("r1"), kept.Replica)
}

func TestAWorkerGetsTheTimeToLiveThatItAsksForWithinBounds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for i, c := range []struct{ want, get time.Duration }{
		{30 * time.Second, 30 * time.Second}, {time.Millisecond, 2 * time.Second}, {time.Hour, 150 * time.Second}, {-time.Second, 15 * time.Second},
	} {
		k := w.dial()
		k.say(hello(1, func(h *writv1.Hello) {
			h.Worker, h.Ttl = string(rune('a'+i)), durationpb.New(c.want)
		}))
		require.Equal(t, c.get, k.hear().GetWelcome().GetTtl().AsDuration(), "asked for %s", c.want)
	}
}

func TestAStreamThatDoesNotBeginWithAHelloEnds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, m := range []*writv1.AttendRequest{
		{}, {Message: &writv1.AttendRequest_Heartbeat{Heartbeat: &writv1.Heartbeat{Number: 1}}},
	} {
		k := w.dial()
		k.say(m)
		k.requireOver(codes.InvalidArgument, "expected a hello")
	}
}

func TestAHelloThatSaysNonsenseIsAnsweredWithWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := setup(t)
	cases := []struct {
		why  string
		edit func(*writv1.Hello)
	}{
		{"protocol 2: expected 1", func(h *writv1.Hello) { h.Protocol = 2 }},
		{"worker: is empty", func(h *writv1.Hello) { h.Worker = "" }},
		{"worker: \"a/b\"", func(h *writv1.Hello) { h.Worker = "a/b" }},
		{"session: ", func(h *writv1.Hello) { h.Session = "UPPER" }},
		{"predecessor: ", func(h *writv1.Hello) { h.Predecessor = "a b" }},
		{"queue: ", func(h *writv1.Hello) { h.Queues = []string{"default", ""} }},
		{"stream 0: ", func(h *writv1.Hello) { h.Stream = 0 }},
		{"slots 0: ", func(h *writv1.Hello) { h.Slots = 0 }},
		{"slots 10001: ", func(h *writv1.Hello) { h.Slots = 10001 }},
		{"0 queues: ", func(h *writv1.Hello) { h.Queues = nil }},
		{"1001 handlers", func(h *writv1.Hello) { h.Handlers = make([]string, 1001) }},
		{"host of 257 bytes", func(h *writv1.Hello) { h.Host = strings.Repeat("h", 257) }},
		{"unsettled -1", func(h *writv1.Hello) { h.Unsettled = -1 }},
		{"labels and handlers of 70000 bytes", func(h *writv1.Hello) { h.Handlers = []string{strings.Repeat("h", 70000)} }},
	}
	for _, c := range cases {
		k := w.dial()
		k.say(hello(1, c.edit))
		k.requireOver(codes.InvalidArgument, c.why)
	}
	list, err := w.List(t.Context(), record.AllOf(record.FamilySession), record.Key{}, 10)
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestANameThatIsTakenIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.attend(1)
	k := w.dial()
	k.say(hello(1, func(h *writv1.Hello) { h.Session = "zzzzzzzz-1" }))
	refused := k.hear().GetRefused()
	require.Equal(t, "name_taken", refused.GetCode())
	require.Contains(t, refused.GetText(), "crane-1")
	require.Equal(t, 15*time.Second, refused.GetRetryAfter().AsDuration())
	k.requireClean()
}

func TestALaterStreamOfASessionSupersedesTheOlder(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first := w.attend(1)
	lease := w.live().Lease
	second := w.attend(2)
	first.requireOver(codes.Aborted, "a later stream")
	require.Equal(t, lease, w.live().Lease)
	require.Equal(t, int64(2), w.session(mine).Stream)

	late := w.dial()
	late.say(hello(2))
	refused := late.hear().GetRefused()
	require.Equal(t, "superseded", refused.GetCode())
	require.Nil(t, refused.GetRetryAfter())
	late.requireClean()
	second.beat(1)
	require.Equal(t, int64(1), second.hear().GetHeartbeatAck().GetNumber())
}

func TestAnAttestedSuccessorTakesTheNameOver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	old := w.attend(1, func(h *writv1.Hello) { h.Session = string(before) })
	heir := w.attend(1, func(h *writv1.Hello) { h.Predecessor, h.Attested, h.Unsettled = string(before), true, 1 })
	gone, err := w.Present(t.Context(), record.WorkerKey(crane, before))
	require.NoError(t, err)
	require.False(t, gone)
	require.NotNil(t, w.session(before).Attested)
	require.False(t, w.session(before).Settled)
	old.beat(1)
	old.requireOver(codes.Unavailable, "lease is gone")

	heir.say(&writv1.AttendRequest{Message: &writv1.AttendRequest_Settled{Settled: &writv1.Settled{}}})
	require.Eventually(t, func() bool { return w.session(before).Settled }, patience, 5*time.Millisecond)
}

func TestAHeartbeatIsAcknowledgedOnlyWhileTheSessionLives(t *testing.T) {
	t.Parallel()
	w := setup(t)
	k := w.attend(1)
	for n := range int64(3) {
		k.beat(n)
		require.Equal(t, n, k.hear().GetHeartbeatAck().GetNumber())
	}
	w.Expire(w.live().Lease)
	k.beat(4)
	k.requireOver(codes.Unavailable, "lease is gone")
	require.Empty(t, k.heard)

	w.attend(2)
	require.NotZero(t, w.live().Lease)
}

func TestAHeartbeatStaysUnansweredWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	k := w.attend(1)
	w.Down(true)
	k.beat(1)
	k.quiet(100 * time.Millisecond)
	w.Down(false)
	k.beat(2)
	for k.hear().GetHeartbeatAck().GetNumber() != 2 {
		require.NoError(t, t.Context().Err())
	}
}

func TestASessionCannotBeRegisteredWhileTheStoreIsDown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Down(true)
	k := w.dial()
	k.say(hello(1))
	k.requireOver(codes.Unavailable, "register session")
	w.Down(false)
	w.attend(1)
}

func TestADrainingSessionSaysSoInItsKey(t *testing.T) {
	t.Parallel()
	w := setup(t)
	k := w.attend(1)
	k.say(&writv1.AttendRequest{Message: &writv1.AttendRequest_Drain{Drain: &writv1.Drain{Why: "upgrade"}}})
	require.Eventually(t, func() bool { return w.live().Draining != nil }, patience, 5*time.Millisecond)
	require.Equal(t, "upgrade", w.live().Draining.Why)
}

func TestAWorkerThatClosesItsEndIsLetGoWithoutAnError(t *testing.T) {
	t.Parallel()
	w := setup(t)
	k := w.attend(1)
	require.NoError(t, k.stream.CloseSend())
	k.requireClean()
}

func TestStreamsEndWithTheGateway(t *testing.T) {
	t.Parallel()
	w := setup(t)
	silent, attending := w.dial(), w.attend(1)
	logs := w.serveLogs()
	logs.open()
	w.stop()
	silent.requireOver(codes.Unavailable, "this replica stops")
	attending.requireOver(codes.Unavailable, "this replica stops")
	logs.requireOver(codes.Unavailable, "this replica stops")
	w.dial().requireOver(codes.Unavailable, "this replica stops")
}
