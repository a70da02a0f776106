package store

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/metrics"
	"github.com/writ-sched/writ/internal/record"
)

var (
	// ErrCompacted means that the history asked for is gone: list, and watch
	// from there.
	ErrCompacted = errors.New("the history is compacted")
	// ErrRefused means that a change was not made and never will be, whatever
	// the state: it is too large, malformed, or etcd does not permit it.
	ErrRefused = errors.New("the change is refused")
	// ErrSilent means that etcd stopped answering in the middle of an answer.
	ErrSilent = errors.New("etcd is silent")
)

const (
	// defaultTimeout bounds one call. It lies below the 7 s after which etcd
	// gives up a request by itself, for the client repeats what the server gave
	// up.
	defaultTimeout = 2 * time.Second
	// maxTimeout keeps that distance for a timeout that is set.
	maxTimeout = 6 * time.Second
	// defaultProgress is how often a quiet watch asks how far it is.
	defaultProgress = time.Second
	// maxRequest is the largest single change: etcd's default limit of 1.5 MiB
	// (embed.DefaultMaxRequestBytes), less room for what surrounds it.
	maxRequest = 3<<19 - 4<<10
)

// Config says which etcd a store writes to, and how.
type Config struct {
	// Bulk carries reads and writes, Live watches and leases (see etcd.Clients).
	// They outlive the store.
	Bulk, Live *clientv3.Client
	Space      keyspace.Space
	// Limits of one Txn and of their number. Zero values mean batch's defaults.
	Limits batch.Limits
	// Timeout bounds one call, at most 6 s. Zero means 2 s.
	Timeout time.Duration
	// Progress is how often a quiet watch asks how far it is. Zero means 1 s.
	Progress time.Duration
	// Metrics may be nil, and Logger may be nil.
	Metrics *metrics.Set
	Logger  *zap.Logger
}

// Store reads and writes the records of one cluster.
type Store struct {
	config  Config
	space   keyspace.Space
	logger  *zap.Logger
	renewer *renewer

	wake chan struct{} // capacity 1: the inbox has something new

	mu     sync.Mutex // guards the fields below
	inbox  []message
	nextID batch.ID
	ended  bool // Run has returned
}

// New makes a store; it does nothing before Run.
func New(config Config) (*Store, error) {
	if config.Bulk == nil || config.Live == nil {
		return nil, errors.New("make store: both etcd clients are needed")
	}
	if config.Space.Prefix() == "" {
		return nil, errors.New("make store: the keyspace is needed")
	}
	config.Timeout = cmp.Or(config.Timeout, defaultTimeout)
	config.Progress = cmp.Or(config.Progress, defaultProgress)
	if config.Timeout < 0 || config.Timeout > maxTimeout || config.Progress < 0 {
		return nil, errors.New("make store: expected a timeout of at most 6s, and a progress interval, above zero")
	}
	config.Limits = config.Limits.Fill()
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	return &Store{
		config: config, space: config.Space, logger: config.Logger.Named("store"),
		renewer: newRenewer(config.Live, config.Timeout),
		wake:    make(chan struct{}, 1),
	}, nil
}

// Run owns the committer and the renewals until ctx ends, and returns nil then.
// What was not settled by then is reported as Unknown.
func (s *Store) Run(ctx context.Context) error {
	var renewals sync.WaitGroup
	renewals.Go(func() { s.renewer.run(ctx) })
	s.commitLoop(ctx)
	renewals.Wait()
	return nil
}

// Submit hands a change to the committer, which calls done once with what
// became of it, from its own goroutine: done returns soon and waits for nothing
// that the committer does. Changes that clash are made in the order in which
// they were submitted. Submit itself never waits.
//
// A change that can never be made (see ErrRefused) is logged, and reported as a
// conflict that saw nothing. After Run has ended done is called with Unknown
// before Submit returns.
func (s *Store) Submit(c record.Change, done func(record.Outcome)) {
	s.submit(c, func(o record.Outcome, err error) {
		if err != nil {
			s.logger.Error("a change was refused", zap.String("rule", string(c.Rule)), zap.Error(err))
		}
		done(o)
	})
}

// Commit makes a change and waits for what becomes of it. Where ctx ends first
// the outcome is Unknown: the change may have been made, or may be made later,
// and is guarded in both cases. The error is not nil only where the change can
// never be made; it wraps ErrRefused.
func (s *Store) Commit(ctx context.Context, c record.Change) (record.Outcome, error) {
	type answer struct {
		outcome record.Outcome
		err     error
	}
	answered := make(chan answer, 1)
	id := s.submit(c, func(o record.Outcome, err error) { answered <- answer{o, err} })
	select {
	case a := <-answered:
		return a.outcome, a.err
	case <-ctx.Done():
	}
	s.giveUp(id)
	select {
	case a := <-answered: // it was settled at the same moment
		return a.outcome, a.err
	default:
		return record.Outcome{Verdict: record.Unknown}, nil
	}
}

// call gives a call its deadline and makes it fail at once, instead of waiting,
// at a member that is cut off from its leader.
func (s *Store) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(clientv3.WithRequireLeader(ctx), s.config.Timeout)
}
