package store_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/writ-sched/writ/internal/etcd/etcdtest"
	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/store"
	"github.com/writ-sched/writ/internal/store/storetest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// clusters numbers the clusters of this binary, so that tests share an etcd.
var clusters atomic.Int64

func newSpace(t *testing.T) keyspace.Space {
	t.Helper()
	space, err := keyspace.New(fmt.Sprintf("t%d", clusters.Add(1)))
	require.NoError(t, err)
	return space
}

// newStore makes a store that is not running.
func newStore(t *testing.T, bulk, live *clientv3.Client, space keyspace.Space, edits ...func(*store.Config)) *store.Store {
	t.Helper()
	config := store.Config{Bulk: bulk, Live: live, Space: space, Progress: 50 * time.Millisecond, Logger: zap.NewNop()}
	for _, edit := range edits {
		edit(&config)
	}
	s, err := store.New(config)
	require.NoError(t, err)
	return s
}

// start runs a store until the end of the test, and returns what ends it
// earlier.
func start(t *testing.T, s *store.Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-ended)
		})
	}
	t.Cleanup(stop)
	return stop
}

func TestStoreOnEtcdIsAStore(t *testing.T) {
	t.Parallel()
	shared := etcdtest.Start(t)
	storetest.Run(t, func(t *testing.T, alone bool) storetest.Harness {
		t.Helper()
		member := shared
		if alone {
			member = etcdtest.StartOwn(t)
		}
		space := newSpace(t)
		bulk, live := member.Client(t), member.Client(t)
		faulty := &faultyKV{KV: bulk.KV}
		bulk.KV = faulty
		s := newStore(t, bulk, live, space)
		return storetest.Harness{
			Store: haltingStore{s, faulty}, Faults: faulty, Refused: store.ErrRefused, Compacted: store.ErrCompacted,
			Beside: func(t *testing.T, c record.Change) record.Outcome {
				t.Helper()
				other := newStore(t, live, live, space)
				defer start(t, other)()
				o, err := other.Commit(t.Context(), c)
				require.NoError(t, err)
				return o
			},
		}
	})
}

// errLost is what a client sees of an answer that never came.
var errLost = status.Error(codes.Unavailable, "the connection broke")

// faultyKV does to Txns what storetest's faults say.
type faultyKV struct {
	clientv3.KV

	mu     sync.Mutex // guards the fields below
	faults []storetest.Fault
	caught []*caughtTxn
	halt   <-chan struct{} // the store's end
}

// haltingStore tells the faults when the store ends, since a held Txn would keep
// it.
type haltingStore struct {
	*store.Store
	kv *faultyKV
}

func (h haltingStore) Run(ctx context.Context) error {
	h.kv.mu.Lock()
	h.kv.halt = ctx.Done()
	h.kv.mu.Unlock()
	return h.Store.Run(ctx)
}

func (f *faultyKV) halted() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.halt
}

// caughtTxn waits for Release.
type caughtTxn struct {
	fault    storetest.Fault
	commit   func() error
	released chan struct{}
}

func (f *faultyKV) Inject(fault storetest.Fault, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		f.faults = append(f.faults, fault)
	}
}

func (f *faultyKV) Caught() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.caught)
}

func (f *faultyKV) Release() {
	f.mu.Lock()
	caught := f.caught
	f.caught = nil
	f.mu.Unlock()
	for _, c := range caught {
		if c.fault == storetest.Zombie {
			if err := c.commit(); err != nil {
				panic(fmt.Sprintf("a late commit did not arrive: %v", err))
			}
		}
		close(c.released)
	}
}

func (f *faultyKV) Txn(ctx context.Context) clientv3.Txn {
	return &faultyTxn{kv: f, ctx: ctx}
}

// faultyTxn keeps the operations until it is known what is done to them.
type faultyTxn struct {
	kv  *faultyKV
	ctx context.Context //nolint:containedctx // clientv3.Txn is made with its context
	ops []clientv3.Op
}

func (x *faultyTxn) If(...clientv3.Cmp) clientv3.Txn { panic("the store compares in its children") }

func (x *faultyTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	x.ops = ops
	return x
}

func (x *faultyTxn) Else(...clientv3.Op) clientv3.Txn { panic("the store reads in its children") }

func (x *faultyTxn) real(ctx context.Context) (*clientv3.TxnResponse, error) {
	return x.kv.KV.Txn(ctx).Then(x.ops...).Commit()
}

// next takes the next fault, and keeps the Txn where it waits for Release.
func (x *faultyTxn) next() *caughtTxn {
	x.kv.mu.Lock()
	defer x.kv.mu.Unlock()
	c := &caughtTxn{released: make(chan struct{}), commit: func() error {
		_, err := x.real(context.WithoutCancel(x.ctx))
		return err
	}}
	if len(x.kv.faults) > 0 {
		c.fault = x.kv.faults[0]
		x.kv.faults = x.kv.faults[1:]
	}
	if c.fault == storetest.Zombie || c.fault == storetest.Hold {
		x.kv.caught = append(x.kv.caught, c)
	}
	return c
}

func (x *faultyTxn) Commit() (*clientv3.TxnResponse, error) {
	c := x.next()
	switch c.fault {
	case storetest.LostReply:
		if err := c.commit(); err != nil {
			return nil, err
		}
		return nil, errLost
	case storetest.Zombie, storetest.Drop:
		return nil, errLost
	case storetest.Hold:
		// A held Txn may outlive its deadline: what is tested is what gathers
		// behind it.
		select {
		case <-c.released:
			return x.real(context.WithoutCancel(x.ctx))
		case <-x.kv.halted():
			return nil, errLost
		}
	default:
		return x.real(x.ctx)
	}
}
