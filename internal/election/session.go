package election

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// session is the life of one lease.
type session struct {
	live   *clientv3.Client
	lease  clientv3.LeaseID
	done   chan struct{} // closed when the lease may be gone
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// openSession grants a lease and renews it until close, or until a renewal is
// missing for so long that the lease may be gone.
func (e *Elector) openSession(ctx context.Context) (*session, error) {
	grantCtx, grantCancel := call(ctx)
	defer grantCancel()
	asked := time.Now()
	grant, err := e.live.Grant(grantCtx, int64(e.config.TTL/time.Second))
	if err != nil {
		return nil, err
	}
	// Renewals end by close alone: while ctx's end is being handled, the lease
	// must live until the key is deleted, or the cause would read as lost lease.
	renewCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{live: e.live, lease: grant.ID, done: make(chan struct{}), cancel: cancel}
	renewals, err := e.live.KeepAlive(renewCtx, grant.ID)
	if err != nil {
		cancel()
		return nil, errors.Join(err, revoke(ctx, e.live, grant.ID))
	}
	s.ended.Go(func() { s.watchOver(renewals, asked, time.Duration(grant.TTL)*time.Second) })
	return s, nil
}

// watchOver closes done when etcd says that the lease is gone, or when no
// renewal was answered for four fifths of the time to live: the lease counts
// from before the answer, and the client alone would notice only after all of it.
func (s *session) watchOver(renewals <-chan *clientv3.LeaseKeepAliveResponse, asked time.Time, ttl time.Duration) {
	defer close(s.done)
	patience := ttl * 4 / 5
	overdue := time.NewTimer(patience - time.Since(asked))
	defer overdue.Stop()
	for {
		select {
		case _, alive := <-renewals:
			if !alive {
				return
			}
			overdue.Reset(patience)
		case <-overdue.C:
			return
		}
	}
}

// close ends renewals and revokes the lease, and the candidate's key with it.
// Where etcd does not answer in time, both end with the time to live.
func (s *session) close(ctx context.Context) error {
	s.cancel()
	s.ended.Wait()
	return revoke(ctx, s.live, s.lease)
}

// revoke ends a lease, which may be gone already. It is done in spite of a
// context that ended, for that is when it is needed most.
func revoke(ctx context.Context, live *clientv3.Client, lease clientv3.LeaseID) error {
	ctx, cancel := call(context.WithoutCancel(ctx))
	defer cancel()
	_, err := live.Revoke(ctx, lease)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}
