package mirror_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/mirror"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

var errSource = errors.New("source fails")

// source is a store of active/ under the control of the test.
type source struct {
	mu      sync.Mutex // guards the fields below
	rev     int64
	records map[record.Key]record.Stored
	watches map[chan record.Events]struct{}
	down    bool // lists fail
	specs   map[int]*spec.Workflow
	lists   int
}

func newSource() *source {
	return &source{
		rev: 1, records: map[record.Key]record.Stored{}, watches: map[chan record.Events]struct{}{}, specs: map[int]*spec.Workflow{},
	}
}

func (s *source) Snapshot(_ context.Context, each func(record.Stored) error) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	if s.down {
		return 0, errSource
	}
	for _, stored := range slices.Collect(maps.Values(s.records)) {
		if err := each(stored); err != nil {
			return 0, err
		}
	}
	return s.rev, nil
}

func (s *source) Watch(ctx context.Context, _ int64, each func(record.Events) error) error {
	events := make(chan record.Events, 100)
	s.mu.Lock()
	s.watches[events] = struct{}{}
	s.mu.Unlock()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return errSource
			}
			if err := each(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *source) Spec(_ context.Context, _ record.WorkflowName, revision int) (*spec.Workflow, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.specs[revision]
	if !ok {
		return nil, errSource
	}
	return w, nil
}

// put writes one record and tells the watches; silent ones it does not tell.
func (s *source) put(k record.Key, v record.Value, silent bool) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rev++
	old, had := s.records[k]
	stored := record.Stored{Key: k, Value: v, CreateRev: s.rev, ModRev: s.rev}
	if had {
		stored.CreateRev = old.CreateRev
	}
	s.records[k] = stored
	if !silent {
		for w := range s.watches {
			w <- record.Events{Rev: s.rev, Events: []record.Event{{Key: k, Value: v, CreateRev: stored.CreateRev, ModRev: s.rev}}}
		}
	}
	return s.rev
}

// cut ends every watch, as a compaction or a lost member does.
func (s *source) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		close(w)
		delete(s.watches, w)
	}
}

func (s *source) listed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

func (s *source) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func run(id record.RunID, revision int) record.Run {
	return record.Run{Run: id, Workflow: id.Workflow(), Revision: revision, State: record.RunRunning}
}

// setup runs a mirror inside a bubble until the test is over.
func setup(t *testing.T) (*source, *mirror.Mirror) {
	t.Helper()
	s := newSource()
	m := mirror.New(s, nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return s, m
}

func runs(m *mirror.Mirror) []record.RunID {
	var ids []record.RunID
	m.Read(func(v *view.Active) {
		for _, r := range v.Runs() {
			ids = append(ids, r.ID())
		}
	})
	return ids
}

func TestMirrorShowsTheListAndThenWhatIsWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, m := setup(t)
		s.put(record.RunKey("w.a"), run("w.a", 1), false)
		synctest.Wait()
		rev := s.put(record.RunKey("w.b"), run("w.b", 1), false)
		require.NoError(t, m.Await(t.Context(), rev))
		require.Equal(t, []record.RunID{"w.a", "w.b"}, runs(m))
		require.Equal(t, rev, m.Rev())
		require.True(t, m.Listed())
	})
}

func TestBrokenWatchListsAgainAndMissesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, m := setup(t)
		feed := m.Feed()
		defer feed.Close()
		s.put(record.RunKey("w.a"), run("w.a", 1), false)
		synctest.Wait()
		<-feed.Wake()
		feed.Take()
		rev := s.put(record.RunKey("w.b"), run("w.b", 1), true)
		s.cut()
		require.NoError(t, m.Await(t.Context(), rev))
		require.Equal(t, []record.RunID{"w.a", "w.b"}, runs(m))
		<-feed.Wake()
		require.True(t, feed.Take().Full, "everything is to be looked at again")
	})
}

func TestMirrorAdmitsThatItIsStale(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, m := setup(t)
		synctest.Wait()
		require.Zero(t, m.Age(time.Now()))
		s.setDown(true)
		s.cut()
		<-time.After(time.Minute)
		require.Equal(t, time.Minute, m.Age(time.Now()))
		require.Greater(t, s.listed(), 5, "it goes on trying")
		s.setDown(false)
		<-time.After(10 * time.Second)
		require.Less(t, m.Age(time.Now()), 10*time.Second)
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := setup(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.Await(ctx, 1000), context.DeadlineExceeded)
	})
}

func TestSpecThatCannotBeReadYetIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, m := setup(t)
		feed := m.Feed()
		defer feed.Close()
		s.put(record.RunKey("w.a"), run("w.a", 7), false)
		<-time.After(time.Minute)
		m.Read(func(v *view.Active) {
			r, ok := v.Run("w.a")
			require.True(t, ok)
			require.False(t, r.Loaded())
		})
		<-feed.Wake()
		feed.Take()
		s.mu.Lock()
		s.specs[7] = &spec.Workflow{Name: "w", Tasks: []spec.Task{{ID: "t", Run: "true"}}}
		s.mu.Unlock()
		<-feed.Wake()
		require.Equal(t, []record.RunID{"w.a"}, feed.Take().Runs)
		m.Read(func(v *view.Active) {
			r, ok := v.Run("w.a")
			require.True(t, ok)
			require.Equal(t, 1, r.Len())
		})
	})
}
