package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/writ-sched/writ/internal/backoff"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// Source is where the mirror reads.
type Source interface {
	// Snapshot calls each for every record of active/ at one revision, and
	// returns that revision.
	Snapshot(ctx context.Context, each func(record.Stored) error) (int64, error)
	// Watch calls each with everything that happens in active/ after the
	// revision, whole revisions at a time, and with empty Events whenever it is
	// known that nothing else happened up to Rev. It ends with an error, or ctx.
	Watch(ctx context.Context, after int64, each func(record.Events) error) error
	// Spec reads one revision of a workflow.
	Spec(ctx context.Context, name record.WorkflowName, revision int) (*spec.Workflow, error)
}

// Mirror is a replica's copy of active/.
type Mirror struct {
	source Source
	logger *zap.Logger
	wanted chan struct{} // capacity 1: specs are missing

	mu       sync.RWMutex // guards the fields below
	view     *view.Active
	listed   bool
	asOf     time.Time // when the view was last known to be current
	advanced chan struct{}
	feeds    map[*Feed]struct{}
}

// New makes a mirror of an empty store; Run fills it. A nil logger means none.
func New(source Source, logger *zap.Logger) *Mirror {
	if logger == nil {
		logger = zap.NewNop()
	}
	return &Mirror{
		source: source, logger: logger, wanted: make(chan struct{}, 1),
		view: view.New(), advanced: make(chan struct{}), feeds: map[*Feed]struct{}{},
	}
}

// Run keeps the mirror fresh until ctx ends, and returns nil then.
func (m *Mirror) Run(ctx context.Context) error {
	var loader sync.WaitGroup
	loader.Go(func() { m.load(ctx) })
	defer loader.Wait()
	pause := backoff.New(backoff.Config{}, rand.Float64)
	for {
		listed, err := m.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if listed {
			pause.Reset()
		}
		m.logger.Warn("the mirror lists again", zap.Error(err), zap.Int64("revision", m.Rev()))
		rest(ctx, pause.Next())
	}
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

// follow lists once and watches until that breaks; it says whether the list
// was had.
func (m *Mirror) follow(ctx context.Context) (bool, error) {
	asked := time.Now()
	var list []record.Stored
	rev, err := m.source.Snapshot(ctx, func(s record.Stored) error {
		list = append(list, s)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("list active: %w", err)
	}
	m.swap(view.FromList(rev, list), asked)
	err = m.source.Watch(ctx, rev, func(e record.Events) error {
		m.apply(e)
		return nil
	})
	if err == nil {
		err = errors.New("the watch ended")
	}
	return true, fmt.Errorf("watch active: %w", err)
}

// swap replaces the view by one from a list. Whoever follows hears of
// everything that is there now; what is gone it finds gone when it looks.
func (m *Mirror) swap(next *view.Active, asked time.Time) {
	m.mu.Lock()
	next.Adopt(m.view)
	next.TouchAll()
	m.view, m.listed, m.asOf = next, true, asked
	m.publish()
	m.mu.Unlock()
}

// apply takes whole revisions in.
func (m *Mirror) apply(e record.Events) {
	m.mu.Lock()
	for _, event := range e.Events {
		m.view.Apply(event)
	}
	m.view.Advance(e.Rev)
	m.asOf = time.Now()
	m.publish()
	m.mu.Unlock()
}

// publish tells feeds, waiters and the loader, under the lock.
func (m *Mirror) publish() {
	touched := m.view.Take()
	for f := range m.feeds {
		f.add(touched)
	}
	close(m.advanced)
	m.advanced = make(chan struct{})
	if len(m.view.Missing()) > 0 {
		select {
		case m.wanted <- struct{}{}:
		default: // it is awake already
		}
	}
}

// Read calls f with the view under the read lock. f returns soon, does no I/O,
// and keeps no pointer into the view.
func (m *Mirror) Read(f func(*view.Active)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(m.view)
}

// Rev is the revision up to which the view is complete.
func (m *Mirror) Rev() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.view.Rev()
}

// Listed says that the view was filled at least once.
func (m *Mirror) Listed() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.listed
}

// Age is for how long, at now, the view has not been known to be current.
// Before the first list it is the largest duration.
func (m *Mirror) Age(now time.Time) time.Duration {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.asOf.IsZero() {
		return 1<<63 - 1
	}
	return max(0, now.Sub(m.asOf))
}

// Await returns once the view is complete up to rev, or with the cause of
// ctx's end. The revision must be one at which something in active/ changed, or
// the wait lasts until something does.
func (m *Mirror) Await(ctx context.Context, rev int64) error {
	for {
		m.mu.RLock()
		reached, advanced := m.listed && m.view.Rev() >= rev, m.advanced
		m.mu.RUnlock()
		if reached {
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return fmt.Errorf("await revision %d in the mirror: %w", rev, context.Cause(ctx))
		}
	}
}

// load reads specs that are missing until ctx ends. A spec that cannot be read
// is asked for again, later each time; its runs wait and say so.
func (m *Mirror) load(ctx context.Context) {
	pause := backoff.New(backoff.Config{}, rand.Float64)
	for {
		select {
		case <-m.wanted:
		case <-ctx.Done():
			return
		}
		for missing := m.missing(); len(missing) > 0 && ctx.Err() == nil; missing = m.missing() {
			failed := 0
			for _, rev := range missing {
				if err := m.loadOne(ctx, rev); err != nil && ctx.Err() == nil {
					failed++
					m.logger.Warn("the spec of active runs cannot be read", zap.String("workflow", string(rev.Workflow)),
						zap.Int("revision", rev.Number), zap.Error(err))
				}
			}
			if failed == 0 {
				pause.Reset()
				continue
			}
			rest(ctx, pause.Next())
		}
	}
}

func (m *Mirror) missing() []view.Revision {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.view.Missing()
}

func (m *Mirror) loadOne(ctx context.Context, rev view.Revision) error {
	w, err := m.source.Spec(ctx, rev.Workflow, rev.Number)
	if err != nil {
		return err
	}
	graph := spec.Compile(w)
	m.mu.Lock()
	m.view.Load(rev, graph)
	m.publish()
	m.mu.Unlock()
	return nil
}
