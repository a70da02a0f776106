package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/metrics"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// ErrNotHeld means that this replica does not hold the session's stream.
var ErrNotHeld = errors.New("the worker's stream is not held here")

// Store makes changes and reads records.
type Store interface {
	// Commit's error means that the change can never be made.
	Commit(ctx context.Context, c record.Change) (record.Outcome, error)
	Get(ctx context.Context, k record.Key) (record.Stored, error)
	List(ctx context.Context, r record.Range, after record.Key, limit int) ([]record.Stored, error)
	// Present is a linearizable read that begins after the call.
	Present(ctx context.Context, k record.Key) (bool, error)
}

// Leases keeps the leases of sessions.
type Leases interface {
	Grant(ctx context.Context, ttl time.Duration) (lease int64, granted time.Duration, err error)
	// Renew returns 0 where the lease is gone. The answer is to a renewal that
	// was sent after the call.
	Renew(ctx context.Context, lease int64) (time.Duration, error)
	Revoke(ctx context.Context, lease int64) error
}

// Mirror is the replica's copy of active/.
type Mirror interface {
	Read(f func(*view.Active))
	Feed() Feed
}

// Feed says when something was touched.
type Feed interface {
	Wake() <-chan struct{}
	Take() view.Touched
	Close()
}

// Config says who the gateway is and what workers are told.
type Config struct {
	Replica record.ReplicaID
	// TTL of sessions that ask for none, and the most that one gets is ten
	// times this.
	TTL time.Duration
	// Margin is how much earlier than its lease a worker gives up.
	Margin time.Duration
	// Confirm is how old an intent may be before its worker is probed.
	Confirm time.Duration
	// KillGrace is between TERM and KILL.
	KillGrace time.Duration
	// Metrics may be nil, and Logger may be nil.
	Metrics *metrics.Set
	Logger  *zap.Logger
}

// Gateway serves the workers whose streams this replica holds.
type Gateway struct {
	writv1.UnimplementedWorkerServiceServer

	config Config
	store  Store
	leases Leases
	mirror Mirror
	inputs *inputs

	closing chan struct{} // closed when Run's context has ended

	mu      sync.Mutex // guards the fields below
	streams map[view.SessionRef]*stream
	logs    map[view.SessionRef]*logStream
}

// New makes a gateway. It serves nothing before Run.
func New(config Config, store Store, leases Leases, mirror Mirror) *Gateway {
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	return &Gateway{
		config: config, store: store, leases: leases, mirror: mirror, inputs: newInputs(store), closing: make(chan struct{}),
		streams: map[view.SessionRef]*stream{}, logs: map[view.SessionRef]*logStream{},
	}
}

// Run wakes the streams when something was touched, until ctx ends; then it
// closes them. It is called once.
func (g *Gateway) Run(ctx context.Context) error {
	feed := g.mirror.Feed()
	defer feed.Close()
	defer close(g.closing)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-feed.Wake():
		}
		feed.Take()
		g.mu.Lock()
		for _, s := range g.streams {
			s.knock()
		}
		g.mu.Unlock()
	}
}

// Holds says that this replica holds the stream over which the session's logs
// are read.
func (g *Gateway) Holds(s view.SessionRef) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.logs[s] != nil
}

// enter makes s the one stream of its session here, and ends the one before. A
// stream that registered before one that is here already ends itself.
func (g *Gateway) enter(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.Metrics.SessionOpened()
	if old := g.streams[s.ref]; old != nil {
		if old.peer.Rev > s.peer.Rev {
			s.end(errSuperseded)
			return
		}
		old.end(errSuperseded)
	}
	g.streams[s.ref] = s
}

func (g *Gateway) leave(s *stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.streams[s.ref] == s {
		delete(g.streams, s.ref)
	}
	g.config.Metrics.SessionClosed()
}
