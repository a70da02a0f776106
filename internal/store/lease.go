package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Grant makes a lease and returns how long it lives without renewal: ttl in
// whole seconds, rounded up, or more where etcd grants no less. Where the
// answer is lost a lease is left over and expires.
func (s *Store) Grant(ctx context.Context, ttl time.Duration) (lease int64, granted time.Duration, err error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	got, err := s.config.Live.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return 0, 0, fmt.Errorf("grant a lease of %s: %w", ttl, err)
	}
	return int64(got.ID), time.Duration(got.TTL) * time.Second, nil
}

// Revoke ends a lease and deletes the keys attached to it. A lease that is gone
// already is no error.
func (s *Store) Revoke(ctx context.Context, lease int64) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	if _, err := s.config.Live.Revoke(ctx, clientv3.LeaseID(lease)); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("revoke lease %x: %w", lease, err)
	}
	return nil
}

// Renew renews a lease once and returns how long it lives from then on; 0 means
// that the lease is gone. The answer is that to a renewal sent after the call.
// All renewals share one stream, which is opened again where it fails; Renew
// waits for that no longer than the timeout of a call.
func (s *Store) Renew(ctx context.Context, lease int64) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	ttl, err := s.renewer.renew(ctx, lease)
	if err != nil {
		return 0, fmt.Errorf("renew lease %x: %w", lease, err)
	}
	return ttl, nil
}
