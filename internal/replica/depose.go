package replica

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/election"
)

const (
	// deposeEvery is how often a follower looks whether the leader's process
	// is there.
	deposeEvery = 500 * time.Millisecond
	// deposeAfter is how many refusals in a row mean that it is not: a process
	// that is being started again refuses for a moment too.
	deposeAfter = 2
)

// deposeDead revokes the lease of a leader whose address refuses connections:
// its process is gone, so the successor need not wait for the lease to expire.
// A leader that is slow or cut off does not refuse, and keeps its lease. The
// guards of every write make a mistake here harmless.
func (r *Replica) deposeDead(ctx context.Context, elector *election.Elector) {
	tick := time.NewTicker(deposeEvery)
	defer tick.Stop()
	refused, suspect := 0, int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		leader, ok := elector.Current()
		if !ok || leader.Address == "" || leader.Replica == string(r.id) {
			refused = 0
			continue
		}
		if leader.Lease != suspect {
			refused, suspect = 0, leader.Lease
		}
		if !refuses(ctx, leader.Address) {
			refused = 0
			continue
		}
		if refused++; refused < deposeAfter {
			continue
		}
		refused = 0
		err := elector.Depose(ctx, leader.Lease)
		r.logger.Warn("the leader's process is gone, its lease is revoked", zap.String("leader", leader.Replica),
			zap.Int64("term", leader.Rev), zap.Error(err))
	}
}

// refuses says that nobody listens at the address though its host is there.
func refuses(ctx context.Context, address string) bool {
	dialer := net.Dialer{Timeout: deposeEvery}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = conn.Close() // nothing was written
	return false
}
