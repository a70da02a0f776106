package replica

import (
	"context"
	"sync"
	"time"

	"github.com/writ-sched/writ/internal/mirror"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/view"
)

// tide watches worker sessions go and come back, on every replica: so that any
// of them can say whether losses are held, and one that begins to lead knows.
type tide struct {
	mu      sync.Mutex // guards the fields below
	breaker *reconcile.Breaker
	held    bool
}

func newTide(policy reconcile.BreakerPolicy) *tide {
	return &tide{breaker: reconcile.NewBreaker(policy)}
}

// look takes in what was touched; the leader calls it before it decides. The
// caller holds the view's lock.
func (t *tide) look(v *view.Active, touched view.Touched, now time.Time) (held bool, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, until = t.breaker.Look(v, touched, now)
	return t.held, until
}

// holds implements api.Config's Holds.
func (t *tide) holds() (losses, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, false
}

// tideEvery is how often a replica looks whether a hold is over.
const tideEvery = time.Second

// run looks at what the mirror's feed brings.
func (t *tide) run(ctx context.Context, m *mirror.Mirror) {
	feed := m.Feed()
	defer feed.Close()
	tick := time.NewTicker(tideEvery)
	defer tick.Stop()
	for {
		m.Read(func(v *view.Active) { t.look(v, feed.Take(), time.Now()) })
		select {
		case <-ctx.Done():
			return
		case <-feed.Wake():
		case <-tick.C:
		}
	}
}
