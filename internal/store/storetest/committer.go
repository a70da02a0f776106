package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/batch"
	"github.com/writ-sched/writ/internal/keyspace"
	"github.com/writ-sched/writ/internal/record"
)

// retryPause is how long the fake waits before it sends a Txn again.
const retryPause = 50 * time.Millisecond

// message is a change for the committer, or, without done, that it is given up.
type message struct {
	id     batch.ID
	change record.Change
	bytes  int
	refuse error
	done   func(record.Outcome, error)
}

// Start makes a fake and runs it until the end of the test.
func Start(t testing.TB) *Fake {
	t.Helper()
	f := New(batch.Limits{})
	runs(t, f)
	return f
}

// runs runs a store until the end of the test, and returns what ends it earlier.
func runs(t testing.TB, s Writer) (stop func()) {
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

// Submit implements Store.
func (f *Fake) Submit(c record.Change, done func(record.Outcome)) {
	f.submit(c, func(o record.Outcome, _ error) { done(o) })
}

// Commit implements Store.
func (f *Fake) Commit(ctx context.Context, c record.Change) (record.Outcome, error) {
	type answer struct {
		outcome record.Outcome
		err     error
	}
	answered := make(chan answer, 1)
	id := f.submit(c, func(o record.Outcome, err error) { answered <- answer{o, err} })
	select {
	case a := <-answered:
		return a.outcome, a.err
	case <-ctx.Done():
		f.queue(message{id: id})
		return record.Outcome{Verdict: record.Unknown}, nil
	}
}

func (f *Fake) submit(c record.Change, done func(record.Outcome, error)) batch.ID {
	m := message{change: c, done: done}
	m.bytes, m.refuse = f.measure(c)
	f.mu.Lock()
	if f.ended {
		f.mu.Unlock()
		done(record.Outcome{Verdict: record.Unknown}, nil)
		return 0
	}
	f.nextID++
	m.id = f.nextID
	f.inbox = append(f.inbox, m)
	f.mu.Unlock()
	f.nudge()
	return m.id
}

func (f *Fake) queue(m message) {
	f.mu.Lock()
	f.inbox = append(f.inbox, m)
	f.mu.Unlock()
	f.nudge()
}

// measure sizes a change, and says why it can never be made.
func (f *Fake) measure(c record.Change) (int, error) {
	fail := func(err error) (int, error) {
		return 0, fmt.Errorf("%w: change by rule %s: %w", ErrRefused, c.Rule, err)
	}
	if err := c.Check(); err != nil {
		return fail(err)
	}
	bytes := 0
	for _, p := range c.Put {
		text, err := keyspace.EncodeAt(p.Key, p.Value)
		if err != nil {
			return fail(err)
		}
		bytes += len(text)
	}
	for _, e := range c.Expect {
		if e.Ranged() && !f.space.Exact(e.Range) {
			return fail(fmt.Errorf("other records lie between %+v", e.Range))
		}
	}
	for _, d := range c.Delete {
		if d.Over && !f.space.Exact(d.Range) {
			return fail(fmt.Errorf("other records lie between %+v", d.Range))
		}
	}
	if bytes > maxChange || batch.Width(c) >= f.limits.Ops {
		return fail(fmt.Errorf("%d bytes and %d operations do not fit one transaction", bytes, batch.Width(c)))
	}
	return bytes, nil
}

// Run implements Store.
func (f *Fake) Run(ctx context.Context) error {
	c := &committer{fake: f, machine: batch.New(f.limits), waiting: map[batch.ID]message{}, results: make(chan batch.Done)}
	for ctx.Err() == nil {
		expiry := time.NewTimer(f.expire())
		select {
		case <-f.wake:
			for _, m := range f.take() {
				c.hear(ctx, m)
			}
		case done := <-c.results:
			c.step(ctx, done)
		case <-expiry.C:
		case <-ctx.Done():
		}
		expiry.Stop()
	}
	c.flying.Wait()
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	for _, m := range f.take() {
		if m.done != nil {
			c.waiting[m.id] = m
		}
	}
	for _, m := range c.waiting {
		m.done(record.Outcome{Verdict: record.Unknown}, nil)
	}
	return nil
}

func (f *Fake) take() []message {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.inbox
	f.inbox = nil
	return list
}

// committer is the state of the goroutine that runs the step machine.
type committer struct {
	fake    *Fake
	machine *batch.Machine
	waiting map[batch.ID]message
	results chan batch.Done
	flying  sync.WaitGroup
}

func (c *committer) hear(ctx context.Context, m message) {
	switch {
	case m.done == nil:
		c.step(ctx, batch.GiveUp{ID: m.id})
	case m.refuse != nil:
		m.done(record.Outcome{Verdict: record.Conflict}, m.refuse)
	default:
		c.waiting[m.id] = m
		c.step(ctx, batch.Submit{ID: m.id, Change: m.change, Ops: batch.Width(m.change), Bytes: m.bytes})
	}
}

func (c *committer) step(ctx context.Context, in batch.Input) {
	for _, out := range c.machine.Step(in) {
		switch out := out.(type) {
		case batch.Send:
			changes := make([]record.Change, len(out.Items))
			for i, id := range out.Items {
				changes[i] = c.waiting[id].change
			}
			c.flying.Go(func() { c.send(ctx, out, changes) })
		case batch.Report:
			m, ok := c.waiting[out.ID]
			delete(c.waiting, out.ID)
			if ok {
				m.done(out.Outcome, nil)
			}
		}
	}
}

// send is one try of a Txn.
func (c *committer) send(ctx context.Context, out batch.Send, changes []record.Change) {
	if out.Try > 0 {
		rest(ctx, retryPause)
	}
	done := c.fake.try(ctx, changes)
	done.Txn = out.Txn
	select {
	case c.results <- done:
	case <-ctx.Done():
	}
}

// try makes a Txn, or what the next fault makes of it.
func (f *Fake) try(ctx context.Context, changes []record.Change) batch.Done {
	f.mu.Lock()
	var fault Fault
	if len(f.faults) > 0 {
		fault = f.faults[0]
		f.faults = f.faults[1:]
	}
	held := &caught{fault: fault, changes: changes, released: make(chan struct{})}
	done := batch.Done{Class: batch.Lost}
	switch fault {
	case Drop:
	case LostReply:
		f.txn(changes)
	case Zombie:
		f.caught = append(f.caught, held)
	case Hold:
		f.caught = append(f.caught, held)
		f.mu.Unlock()
		select {
		case <-held.released:
		case <-ctx.Done():
			return done
		}
		f.mu.Lock()
		done = f.answer(changes)
	default:
		done = f.answer(changes)
	}
	f.mu.Unlock()
	return done
}

// answer makes a Txn where the fake is up. It is called with the lock.
func (f *Fake) answer(changes []record.Change) batch.Done {
	if f.down {
		return batch.Done{Class: batch.Lost}
	}
	return f.txn(changes)
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
