package storetest

import (
	"context"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// Store is what a store can do: the real one and the fake.
type Store interface {
	Writer
	Reader
	Watcher
	Leaser
}

// Writer makes changes.
type Writer interface {
	Run(ctx context.Context) error
	Submit(c record.Change, done func(record.Outcome))
	Commit(ctx context.Context, c record.Change) (record.Outcome, error)
	Compact(ctx context.Context, rev int64) error
}

// Reader reads records.
type Reader interface {
	Get(ctx context.Context, k record.Key) (record.Stored, error)
	List(ctx context.Context, r record.Range, after record.Key, limit int) ([]record.Stored, error)
	Count(ctx context.Context, r record.Range) (int64, error)
	Spec(ctx context.Context, name record.WorkflowName, revision int) (*spec.Workflow, error)
}

// Watcher follows what happens.
type Watcher interface {
	Snapshot(ctx context.Context, each func(record.Stored) error) (int64, error)
	Watch(ctx context.Context, after int64, each func(record.Events) error) error
	History(ctx context.Context, from int64, each func(record.Events) error) (int64, error)
}

// Leaser keeps leases.
type Leaser interface {
	Grant(ctx context.Context, ttl time.Duration) (lease int64, granted time.Duration, err error)
	Revoke(ctx context.Context, lease int64) error
	Renew(ctx context.Context, lease int64) (time.Duration, error)
	Present(ctx context.Context, k record.Key) (bool, error)
}

// Fault is what happens to a Txn.
type Fault string

// The faults.
const (
	// LostReply makes the Txn and loses the answer.
	LostReply Fault = "lost reply"
	// Zombie loses the answer, and makes the Txn when it is released.
	Zombie Fault = "zombie"
	// Drop loses the answer, and never makes the Txn.
	Drop Fault = "drop"
	// Hold neither makes nor answers the Txn before it is released.
	Hold Fault = "hold"
)

// Faults does harm to a store under test.
type Faults interface {
	// Inject harms the next tries of Txns, n of them, behind those that were
	// injected before.
	Inject(f Fault, n int)
	// Caught says how many tries are held, zombies included.
	Caught() int
	// Release makes all zombies and lets all held tries go on, in the order in
	// which they were sent, and returns when the zombies are made.
	Release()
}
