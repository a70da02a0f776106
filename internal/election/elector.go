package election

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

var (
	// ErrSessionEnded means that the candidate's lease is gone or was not renewed
	// in time.
	ErrSessionEnded = errors.New("election session ended")
	// ErrKeyGone means that the candidate's key was deleted.
	ErrKeyGone = errors.New("election key is gone")
	// ErrStalled means that the leader reported no progress within the limit.
	ErrStalled = errors.New("leader made no progress")
	// ErrResigned means that this replica gave leadership up by itself.
	ErrResigned = errors.New("leadership resigned")
)

const (
	// defaultTTL and minTTL bound the lease; etcd grants no less than minTTL with
	// its default election timeout.
	defaultTTL = 10 * time.Second
	minTTL     = 2 * time.Second
	// callTimeout bounds each call, below the 7 s after which etcd gives up.
	callTimeout = 2 * time.Second
	// drainLimit is how long lead may take to end before leadership that is given
	// up by choice is handed over, so that its last commits still count.
	drainLimit = time.Second
	// shortestPause is the first pause between two candidacies.
	shortestPause = 50 * time.Millisecond
)

// Config describes a candidate.
type Config struct {
	// Prefix is where candidates' keys stand. It ends in a slash.
	Prefix string
	// Replica is this replica's id, and Address where its peers reach it.
	Replica, Address string
	// TTL is the lease's time to live in whole seconds. Zero means 10 s.
	TTL time.Duration
	// StallLimit is how long a leader may go without a call of Progress. Zero
	// means TTL.
	StallLimit time.Duration
}

// Elector campaigns for one replica.
type Elector struct {
	config     Config
	bulk, live *clientv3.Client
	logger     *zap.Logger
	roll       *roll

	mu       sync.Mutex // guards the fields below
	standing Standing
	progress time.Time
	giveUp   context.CancelCauseFunc // nil while not leading
}

// New checks the configuration. Bulk carries reads and writes, live the watch
// and the lease. A nil logger means none.
func New(config Config, bulk, live *clientv3.Client, logger *zap.Logger) (*Elector, error) {
	config.TTL = cmp.Or(config.TTL, defaultTTL)
	config.StallLimit = cmp.Or(config.StallLimit, config.TTL)
	switch {
	case !strings.HasSuffix(config.Prefix, "/"):
		return nil, fmt.Errorf("configure election: prefix %q does not end in a slash", config.Prefix)
	case config.Replica == "":
		return nil, errors.New("configure election: replica id is empty")
	case config.TTL < minTTL || config.TTL%time.Second != 0:
		return nil, fmt.Errorf("configure election: time to live %s: expected whole seconds, at least %s", config.TTL, minTTL)
	case config.StallLimit < 0:
		return nil, fmt.Errorf("configure election: stall limit %s: expected a positive time", config.StallLimit)
	}
	if logger == nil {
		logger = zap.NewNop()
	}
	return &Elector{config: config, bulk: bulk, live: live, logger: logger, roll: newRoll()}, nil
}

// Run campaigns until ctx ends, calls lead for each term won, and returns nil.
// The context of lead ends with the leadership, with the reason as its cause;
// lead must return then, since this replica campaigns again only afterwards. A
// lead that returns earlier gives leadership up.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, term Term) error) error {
	var watching sync.WaitGroup
	watching.Go(func() { e.observe(ctx) })
	defer watching.Wait()
	pause := shortestPause
	for ctx.Err() == nil {
		begin := time.Now()
		if err := e.candidacy(ctx, lead); err != nil && ctx.Err() == nil {
			e.logger.Warn("candidacy ended", zap.String("replica", e.config.Replica), zap.Error(err))
		}
		pause = min(2*pause, e.config.TTL)
		if time.Since(begin) > e.config.TTL {
			pause = shortestPause
		}
		rest(ctx, pause)
	}
	return nil
}

// candidacy lives from a new lease to its end: it enters, waits, leads.
func (e *Elector) candidacy(ctx context.Context, lead func(context.Context, Term) error) (err error) {
	s, err := e.openSession(ctx)
	if err != nil {
		return fmt.Errorf("open election session: %w", err)
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	term, err := e.enter(ctx, s)
	if err != nil {
		return fmt.Errorf("enter election: %w", err)
	}
	if err := e.await(ctx, s, term); err != nil {
		return fmt.Errorf("wait for leadership: %w", err)
	}
	term.Since = time.Now()
	return e.lead(ctx, s, term, lead)
}

// enter puts the candidate's key. Where the answer is lost, the candidacy ends
// and takes its lease with it: a late put of a dead lease fails in etcd.
func (e *Elector) enter(ctx context.Context, s *session) (Term, error) {
	value, err := json.Marshal(candidateValue{Replica: e.config.Replica, Address: e.config.Address, Since: time.Now().UTC()})
	if err != nil {
		return Term{}, err
	}
	ctx, cancel := call(ctx)
	defer cancel()
	key := fmt.Sprintf("%s%x", e.config.Prefix, int64(s.lease))
	answer, err := e.bulk.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(value), clientv3.WithLease(s.lease))).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return Term{}, err
	}
	rev := answer.Header.Revision
	if !answer.Succeeded {
		// The client repeated a put that had arrived: the key names our lease.
		rev = answer.Responses[0].GetResponseRange().Kvs[0].CreateRevision
	}
	return Term{Lease: int64(s.lease), Key: key, Rev: rev}, nil
}

// await waits until the candidate's key is the first, and reads back that it is.
func (e *Elector) await(ctx context.Context, s *session, term Term) error {
	for {
		changed := e.roll.changed()
		switch e.roll.place(term) {
		case placeUnknown, placeBehind:
		case placeGone:
			return ErrKeyGone
		case placeFirst:
			first, err := e.verify(ctx, term)
			if err != nil || first {
				return err
			}
		}
		select {
		case <-changed:
		case <-s.done:
			return ErrSessionEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// verify reads, linearizably, whether the term's key is there and first. The
// roll alone could be of a moment ago, when a lease that died since was alive.
func (e *Elector) verify(ctx context.Context, term Term) (bool, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	answer, err := e.bulk.Get(ctx, e.config.Prefix, clientv3.WithFirstCreate()...)
	if err != nil {
		return false, fmt.Errorf("verify election key: %w", err)
	}
	if len(answer.Kvs) == 0 || answer.Kvs[0].CreateRevision > term.Rev {
		return false, ErrKeyGone
	}
	return string(answer.Kvs[0].Key) == term.Key && answer.Kvs[0].CreateRevision == term.Rev, nil
}

// call bounds one call and makes it fail at once at a member without leader.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(clientv3.WithRequireLeader(ctx), callTimeout)
}

// rest waits between half of a time and all of it, so that replicas that failed
// together do not come back together.
func rest(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause/2 + rand.N(pause/2))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
