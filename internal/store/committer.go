package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/backoff"
	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/metrics"
	"github.com/writ-sched/writ/internal/record"
)

// message is what others tell the committer: a change, or that one is given up.
type message struct {
	id   batch.ID
	item *waiter // nil where the item is given up
}

// waiter is a change and who waits for it.
type waiter struct {
	child  child
	refuse error // it cannot be sent
	done   func(record.Outcome, error)
}

// submit encodes a change in its author's goroutine and queues it.
func (s *Store) submit(c record.Change, done func(record.Outcome, error)) batch.ID {
	ch, err := s.encode(c)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		done(record.Outcome{Verdict: record.Unknown}, nil)
		return 0
	}
	s.nextID++
	id := s.nextID
	s.inbox = append(s.inbox, message{id: id, item: &waiter{child: ch, refuse: err, done: done}})
	s.mu.Unlock()
	s.nudge()
	return id
}

func (s *Store) giveUp(id batch.ID) {
	s.mu.Lock()
	s.inbox = append(s.inbox, message{id: id})
	s.mu.Unlock()
	s.nudge()
}

func (s *Store) nudge() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already
	}
}

// committer is the state of the one goroutine that runs the step machine.
type committer struct {
	store   *Store
	machine *batch.Machine
	waiters map[batch.ID]*waiter
	pauses  map[batch.Txn]*backoff.Backoff
	results chan batch.Done
	flying  sync.WaitGroup
}

func (s *Store) commitLoop(ctx context.Context) {
	c := &committer{
		store: s, machine: batch.New(s.config.Limits),
		waiters: map[batch.ID]*waiter{}, pauses: map[batch.Txn]*backoff.Backoff{},
		results: make(chan batch.Done),
	}
	for ctx.Err() == nil {
		select {
		case <-s.wake:
			for _, m := range s.take() {
				c.hear(ctx, m)
			}
		case done := <-c.results:
			c.step(ctx, done)
		case <-ctx.Done():
		}
	}
	// Tries in flight end with ctx; none of them blocks on its result.
	c.flying.Wait()
	s.close(c)
}

func (s *Store) take() []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.inbox
	s.inbox = nil
	return list
}

// close tells all who wait that nothing will be known.
func (s *Store) close(c *committer) {
	s.mu.Lock()
	s.ended = true
	left := s.inbox
	s.inbox = nil
	s.mu.Unlock()
	for _, w := range c.waiters {
		c.tell(w, record.Outcome{Verdict: record.Unknown}, nil)
	}
	for _, m := range left {
		if m.item != nil {
			c.tell(m.item, record.Outcome{Verdict: record.Unknown}, nil)
		}
	}
}

func (c *committer) hear(ctx context.Context, m message) {
	switch {
	case m.item == nil:
		c.step(ctx, batch.GiveUp{ID: m.id})
	case m.item.refuse != nil:
		c.tell(m.item, record.Outcome{Verdict: record.Conflict}, m.item.refuse)
	default:
		c.waiters[m.id] = m.item
		ch := m.item.child
		c.step(ctx, batch.Submit{ID: m.id, Change: ch.change, Ops: ch.ops, Bytes: ch.bytes})
	}
}

// step hands one input to the machine and does what it asks for.
func (c *committer) step(ctx context.Context, in batch.Input) {
	done, settled := in.(batch.Done)
	for _, out := range c.machine.Step(in) {
		switch out := out.(type) {
		case batch.Send:
			settled = settled && out.Txn != done.Txn
			c.send(ctx, out)
		case batch.Report:
			c.report(out)
		}
	}
	if settled {
		delete(c.pauses, done.Txn)
	}
}

func (c *committer) report(r batch.Report) {
	w, ok := c.waiters[r.ID]
	if !ok {
		return
	}
	delete(c.waiters, r.ID)
	switch {
	case leaseGone(r.Err):
		r.Err = nil // the key that it was to share a lease with is gone: a lost race
	case r.Err != nil:
		r.Err = fmt.Errorf("%w: change by rule %s: %w", ErrRefused, w.child.change.Rule, r.Err)
	}
	c.tell(w, r.Outcome, r.Err)
}

func (c *committer) tell(w *waiter, o record.Outcome, err error) {
	switch o.Verdict {
	case record.Committed:
		c.store.config.Metrics.Committed(metrics.Committed)
	case record.Conflict:
		c.store.config.Metrics.Committed(metrics.Conflict)
		c.store.config.Metrics.Prevented(string(w.child.change.Rule))
	case record.Unknown:
		c.store.config.Metrics.Committed(metrics.Unknown)
	}
	w.done(o, err)
}

// send starts one try of a Txn, after a pause where it is not the first.
func (c *committer) send(ctx context.Context, out batch.Send) {
	var pause time.Duration
	if out.Try > 0 {
		if c.pauses[out.Txn] == nil {
			c.pauses[out.Txn] = backoff.New(backoff.Config{Min: 20 * time.Millisecond, Max: 2 * time.Second}, rand.Float64)
		}
		pause = c.pauses[out.Txn].Next()
	}
	children := make([]child, len(out.Items))
	ops := make([]clientv3.Op, len(out.Items))
	for i, id := range out.Items {
		children[i] = c.waiters[id].child
		ops[i] = children[i].op
	}
	c.flying.Go(func() {
		if pause > 0 {
			rest(ctx, pause)
		}
		done := c.store.try(ctx, ops, children)
		done.Txn = out.Txn
		select {
		case c.results <- done:
		case <-ctx.Done():
		}
	})
}

// try sends one Txn once.
func (s *Store) try(ctx context.Context, ops []clientv3.Op, children []child) batch.Done {
	ctx, cancel := s.call(ctx)
	defer cancel()
	answer, err := s.config.Bulk.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		class := classify(err)
		s.logger.Debug("a transaction was not answered", zap.Int("changes", len(children)), zap.Int("class", int(class)), zap.Error(err))
		return batch.Done{Class: class, Err: err}
	}
	outcomes := make([]record.Outcome, len(children))
	for i, ch := range children {
		outcomes[i] = s.outcome(ch, answer.Responses[i].GetResponseTxn(), answer.Header.Revision)
	}
	return batch.Done{Class: batch.Answered, Outcomes: outcomes}
}
