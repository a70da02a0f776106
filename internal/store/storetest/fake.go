package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/record"
)

var (
	// ErrCompacted means that the history asked for is gone.
	ErrCompacted = errors.New("the history is compacted")
	// ErrRefused means that a change can never be made.
	ErrRefused = errors.New("the change is refused")
	// ErrDown means that the fake was told to answer nothing.
	ErrDown = errors.New("the store is down")
)

const (
	// callLimit bounds how long a call waits for a fake that is down.
	callLimit = 2 * time.Second
	// progressEvery is how often a quiet watch hears how far it is.
	progressEvery = time.Second
	// maxChange is the largest single change in bytes, as of the real store.
	maxChange = 3<<19 - 4<<10
)

// Fake is a store in memory. Make one with New and run it with Run; [Start] does
// both for a test.
type Fake struct {
	space  keyspace.Space
	limits batch.Limits
	wake   chan struct{} // capacity 1: the inbox or the leases have something new

	mu        sync.Mutex // guards the fields below
	rev       int64
	compacted int64
	records   map[record.Key]record.Stored
	history   []record.Event // in order of revision
	advanced  chan struct{}  // closed and replaced when history grows or watches are cut
	cuts      int            // how often watches were cut
	down      bool
	leases    map[int64]*lease
	lastLease int64
	inbox     []message
	nextID    batch.ID
	ended     bool
	faults    []Fault
	caught    []*caught
}

// lease is one lease and when it expires.
type lease struct {
	ttl     time.Duration
	expires time.Time
}

// caught is a try that waits for Release.
type caught struct {
	fault    Fault
	changes  []record.Change
	released chan struct{}
}

var (
	_ Store  = (*Fake)(nil)
	_ Faults = (*Fake)(nil)
)

// New makes an empty fake; zero limits mean batch's defaults.
func New(limits batch.Limits) *Fake {
	space, err := keyspace.New("")
	if err != nil {
		panic(fmt.Sprintf("storetest: the default keyspace: %v", err))
	}
	return &Fake{
		space: space, limits: limits.Fill(), wake: make(chan struct{}, 1), rev: 1,
		records: map[record.Key]record.Stored{}, advanced: make(chan struct{}), leases: map[int64]*lease{}, lastLease: 0x1000,
	}
}

// Rev is the fake's revision.
func (f *Fake) Rev() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rev
}

// Seed puts a value without any guard, as a test lays the ground, and returns
// the revision. The lease may be 0.
func (f *Fake) Seed(k record.Key, v record.Value, lease int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rev++
	f.put(record.Put{Key: k, Value: v, Lease: lease})
	f.advance()
	return f.rev
}

// Erase deletes a key without any guard and returns the revision.
func (f *Fake) Erase(k record.Key) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove([]record.Key{k})
	return f.rev
}

// Make makes a change at once, as another replica does: past the committer and
// the faults.
func (f *Fake) Make(c record.Change) record.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	if done := f.txn([]record.Change{c}); done.Class == batch.Answered {
		return done.Outcomes[0]
	}
	return record.Outcome{Verdict: record.Conflict}
}

// Down makes every call fail, or wait for its context's end, until it is called
// with false. Leases do not expire meanwhile, as in an etcd without a leader.
func (f *Fake) Down(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down && !down {
		for _, l := range f.leases {
			l.expires = time.Now().Add(l.ttl)
		}
	}
	f.down = down
	f.nudge()
}

// Cut ends all watches with ErrCompacted, as a compaction does that overtakes
// them.
func (f *Fake) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts++
	f.advance()
}

// Inject implements Faults.
func (f *Fake) Inject(fault Fault, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		f.faults = append(f.faults, fault)
	}
}

// Caught implements Faults.
func (f *Fake) Caught() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.caught)
}

// Release implements Faults.
func (f *Fake) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.caught {
		if c.fault == Zombie {
			f.txn(c.changes)
		}
		close(c.released)
	}
	f.caught = nil
}

// alive returns an error where the fake is down. It is called with the lock.
func (f *Fake) alive(what string) error {
	if f.down {
		return fmt.Errorf("%s: %w", what, ErrDown)
	}
	return nil
}

// advance wakes the watches. It is called with the lock.
func (f *Fake) advance() {
	close(f.advanced)
	f.advanced = make(chan struct{})
}

func (f *Fake) nudge() {
	select {
	case f.wake <- struct{}{}:
	default: // it is awake already
	}
}

// put stores a copy of a value, decoded from its encoding as a real one would
// be. It is called with the lock, and with rev already counted up.
func (f *Fake) put(p record.Put) {
	text, err := keyspace.EncodeAt(p.Key, p.Value)
	if err != nil {
		panic(fmt.Sprintf("storetest: %v", err))
	}
	value, err := keyspace.Decode(p.Key, text)
	if err != nil {
		panic(fmt.Sprintf("storetest: %v", err))
	}
	created := f.rev
	if before, ok := f.records[p.Key]; ok {
		created = before.CreateRev
	}
	stored := record.Stored{Key: p.Key, Value: value, CreateRev: created, ModRev: f.rev, Lease: p.Lease}
	f.records[p.Key] = stored
	f.history = append(f.history, record.Event(stored))
}

// remove deletes keys, all at one new revision where any is there. It is called
// with the lock.
func (f *Fake) remove(keys []record.Key) {
	next := f.rev + 1
	for _, k := range keys {
		if _, ok := f.records[k]; ok {
			f.rev = next
			f.drop(k)
		}
	}
	if f.rev == next {
		f.advance()
	}
}

// drop deletes one key at the present revision.
func (f *Fake) drop(k record.Key) {
	delete(f.records, k)
	f.history = append(f.history, record.Event{Key: k, ModRev: f.rev})
}
