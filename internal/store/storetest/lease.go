package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/writ-sched/writ/internal/record"
)

// minTTL is the shortest lease that etcd grants.
const minTTL = 2 * time.Second

// idle is how long Run waits where no lease is to expire.
const idle = time.Hour

// Grant implements Store.
func (f *Fake) Grant(_ context.Context, ttl time.Duration) (int64, time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.alive("grant"); err != nil {
		return 0, 0, err
	}
	ttl = max(minTTL, (ttl + time.Second - 1).Truncate(time.Second))
	f.lastLease++
	f.leases[f.lastLease] = &lease{ttl: ttl, expires: time.Now().Add(ttl)}
	f.nudge()
	return f.lastLease, ttl, nil
}

// Revoke implements Store.
func (f *Fake) Revoke(_ context.Context, lease int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.alive("revoke"); err != nil {
		return err
	}
	f.end(lease)
	return nil
}

// Renew implements Store. It waits as the real one does where the fake is down.
func (f *Fake) Renew(ctx context.Context, lease int64) (time.Duration, error) {
	f.mu.Lock()
	down := f.alive("renew")
	if down == nil {
		defer f.mu.Unlock()
		l, ok := f.leases[lease]
		if !ok {
			return 0, nil
		}
		l.expires = time.Now().Add(l.ttl)
		return l.ttl, nil
	}
	f.mu.Unlock()
	rest(ctx, callLimit)
	return 0, down
}

// Expire ends a lease now, as if nobody had renewed it.
func (f *Fake) Expire(lease int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(lease)
}

// end deletes a lease and its keys, at one revision. It is called with the lock.
func (f *Fake) end(lease int64) {
	if _, ok := f.leases[lease]; !ok {
		return
	}
	delete(f.leases, lease)
	attached := f.ordered(func(k record.Key) bool { return f.records[k].Lease == lease })
	keys := make([]record.Key, len(attached))
	for i, at := range attached {
		keys[i] = at.Key
	}
	f.remove(keys)
}

// expire ends what has expired, and returns how long it is to the next.
func (f *Fake) expire() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := idle
	if f.down {
		return next
	}
	for _, id := range slices.Sorted(maps.Keys(f.leases)) {
		left := time.Until(f.leases[id].expires)
		if left <= 0 {
			f.end(id)
			continue
		}
		next = min(next, left)
	}
	return next
}
