package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/record"
)

// attendance keeps this replica's address in the store for as long as it
// lives: a leased record that peers read from their mirrors.
type attendance struct {
	store  attendStore
	logger *zap.Logger
	ttl    time.Duration

	mu     sync.Mutex // guards the fields below, and is held during a write
	record record.Replica
	lease  int64
	rev    int64
}

// attendStore is what attendance needs of the store.
type attendStore interface {
	Commit(ctx context.Context, c record.Change) (record.Outcome, error)
	Grant(ctx context.Context, ttl time.Duration) (int64, time.Duration, error)
	Renew(ctx context.Context, lease int64) (time.Duration, error)
	Revoke(ctx context.Context, lease int64) error
}

// run writes the record and renews its lease until ctx ends; then both go.
func (a *attendance) run(ctx context.Context) {
	tick := time.NewTicker(a.ttl / 3)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := a.keep(ctx); err != nil && ctx.Err() == nil {
			a.logger.Warn("this replica's address is not kept", zap.Error(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lease == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := a.store.Revoke(ctx, a.lease); err != nil {
		a.logger.Info("this replica's address is left to expire", zap.Error(err))
	}
}

// farewell bounds what is still said to etcd when the replica stops.
const farewell = 2 * time.Second

// keep renews the lease, or begins anew where it is gone.
func (a *attendance) keep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.ttl)
	defer cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lease != 0 {
		ttl, err := a.store.Renew(ctx, a.lease)
		if err != nil {
			return fmt.Errorf("renew: %w", err)
		}
		switch {
		case ttl > 0 && a.rev != 0:
			return nil
		case ttl > 0: // the id was taken when it was last tried
			return a.write(ctx)
		}
		a.lease, a.rev = 0, 0
	}
	lease, _, err := a.store.Grant(ctx, a.ttl)
	if err != nil {
		return fmt.Errorf("grant a lease: %w", err)
	}
	a.lease = lease
	return a.write(ctx)
}

// write puts the record; the caller holds mu.
func (a *attendance) write(ctx context.Context) error {
	next := a.record
	next.Write = writeID()
	key := record.ReplicaKey(next.Replica)
	c, err := record.NewChange(record.RuleAttend, next.Write, []record.Expect{record.At(key, a.rev)},
		[]record.Put{{Key: key, Value: next, Lease: a.lease}})
	if err != nil {
		return err
	}
	o, err := a.store.Commit(ctx, c)
	switch {
	case err != nil:
		return err
	case o.Verdict == record.Committed:
		a.rev = o.Rev
		return nil
	case o.Verdict == record.Conflict:
		seen, ok := o.Find(key)
		if ok && seen.ModRev != 0 && seen.Lease != a.lease {
			return a.succeed(ctx, seen)
		}
		// The record went with its lease; the next round begins anew.
		a.lease, a.rev = 0, 0
		return errors.New("the record was lost")
	default:
		return errors.New("etcd does not answer")
	}
}

// succeed takes over the record of an earlier life of this replica: one that
// was reached where this one is cannot live. Anybody else's stays.
func (a *attendance) succeed(ctx context.Context, seen record.Stored) error {
	earlier, ok := seen.Value.(record.Replica)
	if !ok || earlier.Address != a.record.Address || a.rev == seen.ModRev {
		return fmt.Errorf("replica id %s is taken by another process (hint: leave the id out, or give each replica its own)", a.record.Replica)
	}
	a.rev = seen.ModRev
	return a.write(ctx)
}

// announce writes the record again and returns the revision of that: a mirror
// that has reached it shows everything that was durable before the call.
func (a *attendance) announce(ctx context.Context) (int64, error) {
	a.mu.Lock()
	lost := a.lease == 0
	a.mu.Unlock()
	if lost {
		if err := a.keep(ctx); err != nil {
			return 0, fmt.Errorf("announce this replica: %w", err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.write(ctx); err != nil {
		return 0, fmt.Errorf("announce this replica: %w", err)
	}
	return a.rev, nil
}
