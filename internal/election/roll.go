package election

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Candidate is one key of the election.
type Candidate struct {
	// Replica and Address are as the candidate stated them; both are empty where
	// its value is not writ's, such as one of `etcdctl elect`.
	Replica, Address string
	// Since is when the candidacy began, by the candidate's clock.
	Since time.Time
	// Lease and Key are the candidate's; Rev is the create revision of Key and,
	// for the leader, the term.
	Lease int64
	Key   string
	Rev   int64
}

// candidateValue is a candidate's value in etcd.
type candidateValue struct {
	Replica string    `json:"replica"`
	Address string    `json:"address"`
	Since   time.Time `json:"since"`
}

// Current returns the leader, as this replica last saw it, and false where it
// saw none. It is right on every replica while etcd can be reached, and stale
// by the delay of a watch.
func (e *Elector) Current() (Candidate, bool) {
	candidates := e.Candidates()
	if len(candidates) == 0 {
		return Candidate{}, false
	}
	return candidates[0], true
}

// Candidates returns the leader and those who wait behind it, in order.
func (e *Elector) Candidates() []Candidate {
	e.roll.mu.Lock()
	defer e.roll.mu.Unlock()
	return slices.Clone(e.roll.candidates)
}

// Changed returns a channel that is closed at the next change of Candidates. To
// miss none, take it before reading them.
func (e *Elector) Changed() <-chan struct{} {
	return e.roll.changed()
}

// Depose revokes the lease of a candidate, so that a successor need not wait
// for it to expire. It is for a caller whose connection to that replica was
// refused, not for one that is slow. A lease that no candidate has is left
// alone, and is no error.
func (e *Elector) Depose(ctx context.Context, lease int64) error {
	known := slices.ContainsFunc(e.Candidates(), func(c Candidate) bool { return c.Lease == lease })
	if !known {
		return nil
	}
	if err := revoke(ctx, e.live, clientv3.LeaseID(lease)); err != nil {
		return fmt.Errorf("depose candidate with lease %x: %w", lease, err)
	}
	return nil
}

// place says where a key stands in the roll.
type place int

const (
	placeUnknown place = iota // the roll is older than the key
	placeBehind
	placeFirst
	placeGone
)

// roll is the list of candidates, kept by observe.
type roll struct {
	mu         sync.Mutex // guards the fields below
	rev        int64      // the roll is complete up to this revision
	candidates []Candidate
	change     chan struct{} // closed and replaced at each change
}

func newRoll() *roll {
	return &roll{change: make(chan struct{})}
}

// changed returns a channel that is closed at the next change.
func (r *roll) changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.change
}

// place finds a term's key.
func (r *roll) place(term Term) place {
	r.mu.Lock()
	defer r.mu.Unlock()
	index := slices.IndexFunc(r.candidates, func(c Candidate) bool { return c.Key == term.Key && c.Rev == term.Rev })
	switch {
	case index == 0:
		return placeFirst
	case index > 0:
		return placeBehind
	case r.rev < term.Rev:
		return placeUnknown
	default:
		return placeGone
	}
}

// reset replaces the roll by a list.
func (r *roll) reset(rev int64, kvs []*mvccpb.KeyValue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.candidates = r.candidates[:0]
	for _, kv := range kvs {
		r.put(kv)
	}
	r.advance(rev)
}

// apply brings the roll to the revision of the last event; a watch delivers the
// events of a revision together. The answer's own revision can be ahead of them.
func (r *roll) apply(events []*clientv3.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rev := r.rev
	for _, event := range events {
		rev = max(rev, event.Kv.ModRevision)
		if event.Type == mvccpb.Event_DELETE {
			r.drop(string(event.Kv.Key))
		} else {
			r.put(event.Kv)
		}
	}
	r.advance(rev)
}

// advance tells the waiting, under mu.
func (r *roll) advance(rev int64) {
	slices.SortFunc(r.candidates, func(a, b Candidate) int { return cmp.Compare(a.Rev, b.Rev) })
	r.rev = rev
	close(r.change)
	r.change = make(chan struct{})
}

// put adds or replaces a candidate, under mu.
func (r *roll) put(kv *mvccpb.KeyValue) {
	r.drop(string(kv.Key))
	c := Candidate{Key: string(kv.Key), Rev: kv.CreateRevision, Lease: kv.Lease}
	var value candidateValue
	if err := json.Unmarshal(kv.Value, &value); err == nil {
		c.Replica, c.Address, c.Since = value.Replica, value.Address, value.Since
	}
	r.candidates = append(r.candidates, c)
}

// drop removes a candidate, under mu.
func (r *roll) drop(key string) {
	r.candidates = slices.DeleteFunc(r.candidates, func(c Candidate) bool { return c.Key == key })
}

// observe keeps the roll until ctx ends: list, watch, and list again whenever
// the watch breaks or its revision was compacted.
func (e *Elector) observe(ctx context.Context) {
	for ctx.Err() == nil {
		err := e.observeOnce(ctx)
		if ctx.Err() == nil {
			e.logger.Debug("election watch ended", zap.Error(err))
			rest(ctx, 2*shortestPause)
		}
	}
}

// observeOnce lists and watches until the watch ends.
func (e *Elector) observeOnce(ctx context.Context) error {
	listCtx, cancelList := call(ctx)
	defer cancelList()
	list, err := e.bulk.Get(listCtx, e.config.Prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("list candidates: %w", err)
	}
	e.roll.reset(list.Header.Revision, list.Kvs)
	watchCtx, cancelWatch := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancelWatch()
	for answer := range e.live.Watch(watchCtx, e.config.Prefix, clientv3.WithPrefix(), clientv3.WithRev(list.Header.Revision+1)) {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("watch candidates: %w", err)
		}
		e.roll.apply(answer.Events)
	}
	return errors.New("watch candidates: the watch ended")
}
