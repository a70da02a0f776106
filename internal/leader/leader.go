package leader

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/metrics"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// Committer makes changes. Submit never waits; done is called once, from any
// goroutine.
type Committer interface {
	Submit(c record.Change, done func(record.Outcome))
}

// Mirror is the replica's copy of active/.
type Mirror interface {
	Read(f func(*view.Active))
	// Age is for how long the view has not been known to be current.
	Age(now time.Time) time.Duration
	// Feed begins with everything.
	Feed() Feed
}

// Feed gathers what was touched until it is taken.
type Feed interface {
	Wake() <-chan struct{}
	Take() view.Touched
	Close()
}

// Reader reads single records, for the documents of runs to be reopened.
type Reader interface {
	Get(ctx context.Context, k record.Key) (record.Stored, error)
}

// Config says how a leader decides.
type Config struct {
	// Replica is who decides, as it appears in records.
	Replica record.ReplicaID
	Policy  reconcile.Policy
	// FullPass is the pause between two passes over everything.
	FullPass time.Duration
	// Stale is the age of the mirror at which the loop stops reporting progress.
	Stale time.Duration
	// Losses says whether so many sessions went at once that none is declared
	// lost, and until when at the latest. It is called in every round, with what
	// was touched, under the view's lock; nil means never.
	Losses func(v *view.Active, touched view.Touched, now time.Time) (held bool, until time.Time)
	// Progress is called whenever the loop has come round with a mirror that is
	// not stale; it may be nil.
	Progress func(now time.Time)
	// Metrics may be nil, and Logger may be nil.
	Metrics *metrics.Set
	Logger  *zap.Logger
}

// Term is one leadership: the lease and the create revision of the election's
// key. The zero Term compares nothing, so that several may lead at once.
type Term struct{ Lease, Rev int64 }

// Leader decides for one replica.
type Leader struct {
	config    Config
	committer Committer
	mirror    Mirror
	reader    Reader
}

// New makes a leader. It does nothing before Lead.
func New(config Config, committer Committer, mirror Mirror, reader Reader) *Leader {
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	if config.Progress == nil {
		config.Progress = func(time.Time) {}
	}
	if config.Losses == nil {
		config.Losses = func(*view.Active, view.Touched, time.Time) (bool, time.Time) { return false, time.Time{} }
	}
	return &Leader{config: config, committer: committer, mirror: mirror, reader: reader}
}

// pulse is how often the loop comes round when nothing happens, so that it can
// say that it lives.
const pulse = 500 * time.Millisecond

// Lead decides until ctx ends. The caller has brought the mirror up to a
// revision that is not older than the term.
func (l *Leader) Lead(ctx context.Context, t Term) {
	feed := l.mirror.Feed()
	defer feed.Close()
	loop := newTerm(l, t, feed)
	defer loop.reading.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now().UTC()
		more := loop.round(ctx, now)
		if l.mirror.Age(now) < l.config.Stale {
			l.config.Progress(now)
		}
		if more {
			continue
		}
		timer.Reset(loop.rest(time.Now()))
		select {
		case <-ctx.Done():
		case <-feed.Wake():
		case <-loop.inbox.wake:
		case <-timer.C:
		}
	}
}

// draw returns n random bytes in lower-case base32.
func draw(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails, see crypto/rand
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// stamp is fresh with each call: no two changes share a write id.
func (l *Leader) stamp(t Term) reconcile.Stamp {
	return reconcile.Stamp{Who: "replica/" + string(l.config.Replica), Lease: t.Lease, Rev: t.Rev, Prefix: draw(9)}
}
