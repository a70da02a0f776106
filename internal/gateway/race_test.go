package gateway_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/writ-sched/writ/internal/gateway"
	"github.com/writ-sched/writ/internal/record"
)

// slow is a store of which one read of the session's key, when it is armed,
// keeps its answer until the test lets it go.
type slow struct {
	gateway.Store
	armed chan struct{} // capacity 1
	read  chan struct{} // capacity 1: the answer is known, and kept
	let   chan struct{}
}

func newSlow(s gateway.Store) *slow {
	return &slow{s, make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})}
}

func (s *slow) Get(ctx context.Context, k record.Key) (record.Stored, error) {
	stored, err := s.Store.Get(ctx, k)
	if k.Family != record.FamilyWorker {
		return stored, err
	}
	select {
	case <-s.armed:
		s.read <- struct{}{}
		<-s.let
	default:
	}
	return stored, err
}

func TestAnOlderStreamThatIsSlowToEnterDoesNotEndTheNewer(t *testing.T) {
	t.Parallel()
	w := setup(t)
	store := newSlow(w.Fake)
	w.gateway = gateway.New(config(), store, w.Fake, shown{w.mirror})
	w.serve()
	w.background(w.gateway.Run)

	store.armed <- struct{}{}
	older := w.dial()
	older.say(hello(1))
	<-store.read
	newer := w.attend(2)
	close(store.let)
	older.requireOver(codes.Aborted, "a later stream")
	newer.beat(1)
	require.Equal(t, int64(1), newer.hear().GetHeartbeatAck().GetNumber())
}
