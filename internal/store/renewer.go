package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/writ-sched/writ/internal/backoff"
)

// errStopped means that Run has ended.
var errStopped = errors.New("the store has stopped")

// renewer sends renewals over one raw stream: etcd's own client would renew for
// ever, and a lease must die with the worker whose heartbeats it stands for.
//
// A lease has at most one renewal on the way. Who asks meanwhile waits for the
// next one, since the answer must belong to a renewal sent after the question.
type renewer struct {
	client  *clientv3.Client
	timeout time.Duration
	wake    chan struct{} // capacity 1: something is to be sent

	mu      sync.Mutex // guards the fields below
	leases  map[int64]*renewal
	queue   []int64 // leases to be sent, in the order of the questions
	stopped bool
}

// renewal is what is asked about one lease.
type renewal struct {
	sent    bool // a renewal is on the way, for those who are waiting
	sentAt  time.Time
	waiting []chan<- renewed
	next    []chan<- renewed // asked after it was sent
}

type renewed struct {
	ttl time.Duration
	err error
}

func newRenewer(client *clientv3.Client, timeout time.Duration) *renewer {
	return &renewer{client: client, timeout: timeout, wake: make(chan struct{}, 1), leases: map[int64]*renewal{}}
}

func (r *renewer) renew(ctx context.Context, lease int64) (time.Duration, error) {
	answered, err := r.ask(lease)
	if err != nil {
		return 0, err
	}
	select {
	case a := <-answered:
		return a.ttl, a.err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// ask queues a renewal, or the one after that which is on the way.
func (r *renewer) ask(lease int64) (<-chan renewed, error) {
	answered := make(chan renewed, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil, errStopped
	}
	l, ok := r.leases[lease]
	if !ok {
		l = &renewal{}
		r.leases[lease] = l
	}
	if l.sent {
		l.next = append(l.next, answered)
		return answered, nil
	}
	if len(l.waiting) == 0 {
		r.queue = append(r.queue, lease)
	}
	l.waiting = append(l.waiting, answered)
	r.nudge()
	return answered, nil
}

func (r *renewer) nudge() {
	select {
	case r.wake <- struct{}{}:
	default: // it is awake already
	}
}

// run keeps a stream while there is something to renew, until ctx ends.
func (r *renewer) run(ctx context.Context) {
	defer r.stop()
	pause := backoff.New(backoff.Config{Min: 20 * time.Millisecond, Max: time.Second}, rand.Float64)
	for ctx.Err() == nil {
		if r.serve(ctx) {
			pause.Reset()
		}
		r.again()
		rest(ctx, pause.Next())
	}
}

// serve sends and receives over one stream until it breaks or falls silent. It
// says whether anything was answered.
func (r *renewer) serve(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	stream, err := clientv3.RetryLeaseClient(r.client).LeaseKeepAlive(ctx)
	if err != nil {
		return false
	}
	answered := false
	var receiver sync.WaitGroup
	receiver.Go(func() {
		defer cancel()
		for {
			answer, err := stream.Recv()
			if err != nil {
				return
			}
			answered = true
			r.settle(answer.ID, time.Duration(answer.TTL)*time.Second)
		}
	})
	r.send(ctx, stream)
	cancel()
	receiver.Wait()
	return answered
}

// send sends what is asked until the stream breaks or falls silent.
func (r *renewer) send(ctx context.Context, stream pb.Lease_LeaseKeepAliveClient) {
	check := time.NewTicker(r.timeout / 2)
	defer check.Stop()
	for {
		for _, lease := range r.take(time.Now()) {
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: lease}); err != nil {
				return
			}
		}
		select {
		case <-r.wake:
		case <-check.C:
			if r.overdue(time.Now()) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// take returns the leases to be sent now.
func (r *renewer) take(now time.Time) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	leases := r.queue
	r.queue = nil
	for _, lease := range leases {
		r.leases[lease].sent, r.leases[lease].sentAt = true, now
	}
	return leases
}

// overdue says that an answer is missing for so long that another member should
// be asked.
func (r *renewer) overdue(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.leases {
		if l.sent && now.Sub(l.sentAt) > r.timeout {
			return true
		}
	}
	return false
}

// settle answers those who asked before the renewal was sent.
func (r *renewer) settle(lease int64, ttl time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.leases[lease]
	if !ok || !l.sent {
		return
	}
	for _, w := range l.waiting {
		w <- renewed{ttl: max(0, ttl)}
	}
	l.sent, l.waiting, l.next = false, l.next, nil
	if len(l.waiting) == 0 {
		delete(r.leases, lease)
		return
	}
	r.queue = append(r.queue, lease)
	r.nudge()
}

// again queues what was on the way when a stream broke.
func (r *renewer) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for lease, l := range r.leases {
		if l.sent {
			l.sent, l.waiting, l.next = false, append(l.waiting, l.next...), nil
			r.queue = append(r.queue, lease)
		}
	}
}

// stop answers all who wait.
func (r *renewer) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	for _, l := range r.leases {
		for _, w := range append(l.waiting, l.next...) {
			w <- renewed{err: fmt.Errorf("no answer: %w", errStopped)}
		}
	}
	clear(r.leases)
	r.queue = nil
}

// rest waits for d or the end of ctx.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
