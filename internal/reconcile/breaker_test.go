package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// shift is a set of workers that come and go before a breaker.
type shift struct {
	t       *testing.T
	v       *view.Active
	breaker *reconcile.Breaker
	now     time.Time
	rev     int64
}

const breakerTTL = 15 * time.Second

func newShift(t *testing.T, workers int) *shift {
	t.Helper()
	s := &shift{t: t, v: view.New(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for i := range workers {
		s.come(i)
	}
	s.breaker = reconcile.NewBreaker(reconcile.BreakerDefaults(breakerTTL))
	require.False(t, s.look(view.Touched{Full: true}))
	return s
}

func (s *shift) ref(i int) view.SessionRef {
	return view.SessionRef{Worker: record.WorkerName(fmt.Sprintf("w%d", i)), Session: "s-1"}
}

func (s *shift) apply(k record.Key, v record.Value) {
	s.rev++
	s.v.Apply(record.Event{Key: k, Value: v, CreateRev: s.rev, ModRev: s.rev})
	s.v.Advance(s.rev)
}

func (s *shift) session(i int, edit func(*record.Session)) {
	r := s.ref(i)
	kept := record.Session{Worker: r.Worker, Session: r.Session}
	if edit != nil {
		edit(&kept)
	}
	s.apply(record.SessionKey(r.Worker, r.Session), kept)
}

func (s *shift) come(i int) {
	s.session(i, nil)
	s.apply(record.WorkerKey(s.ref(i).Worker, s.ref(i).Session), record.Worker{Worker: s.ref(i).Worker, Session: s.ref(i).Session, Slots: 1})
}

func (s *shift) drain(i int) {
	s.apply(record.WorkerKey(s.ref(i).Worker, s.ref(i).Session), record.Worker{
		Worker: s.ref(i).Worker, Session: s.ref(i).Session, Slots: 1, Draining: &record.Hold{By: "session/s-1"},
	})
}

func (s *shift) goes(i int) {
	s.apply(record.WorkerKey(s.ref(i).Worker, s.ref(i).Session), nil)
}

func (s *shift) look(t view.Touched) (open bool) {
	open, _ = s.breaker.Look(s.v, t, s.now)
	return open
}

// sees has the breaker look at workers.
func (s *shift) sees(workers ...int) bool {
	var t view.Touched
	for _, i := range workers {
		t.Sessions = append(t.Sessions, s.ref(i))
	}
	return s.look(t)
}

func TestManyLossesAtOnceAreHeldForAGrace(t *testing.T) {
	t.Parallel()
	s := newShift(t, 6)
	s.goes(0)
	require.False(t, s.sees(0))
	s.goes(1)
	require.False(t, s.sees(1), "two are fewer than three")
	s.now = s.now.Add(5 * time.Second)
	s.goes(2)
	require.True(t, s.sees(2), "three of six within one time to live")
	s.now = s.now.Add(breakerTTL - time.Millisecond)
	require.True(t, s.sees())
	s.now = s.now.Add(time.Millisecond)
	require.False(t, s.sees(), "the grace is over")
	require.False(t, s.look(view.Touched{Full: true}), "what was seen to go is no news")
}

func TestLossesThatAreFewOrFarApartAreNotHeld(t *testing.T) {
	t.Parallel()
	few := newShift(t, 7)
	for i := range 3 {
		few.goes(i)
	}
	require.False(t, few.sees(0, 1, 2), "three of seven")
	far := newShift(t, 6)
	for i := range 6 {
		far.goes(i)
		require.False(t, far.sees(i))
		far.now = far.now.Add(breakerTTL/2 + time.Second)
	}
}

func TestHoldEndsWhenAllAreBack(t *testing.T) {
	t.Parallel()
	s := newShift(t, 3)
	for i := range 3 {
		s.goes(i)
	}
	require.True(t, s.sees(0, 1, 2))
	s.come(0)
	s.come(1)
	require.True(t, s.sees(0, 1))
	s.come(2)
	require.False(t, s.sees(2))
}

func TestFurtherLossesProlongTheHold(t *testing.T) {
	t.Parallel()
	s := newShift(t, 4)
	for i := range 3 {
		s.goes(i)
	}
	require.True(t, s.sees(0, 1, 2))
	s.now = s.now.Add(breakerTTL - time.Second)
	s.goes(3)
	require.True(t, s.sees(3))
	s.now = s.now.Add(2 * time.Second)
	require.True(t, s.sees())
}

func TestWorkersThatGoByTheirOwnWillAreNoLosses(t *testing.T) {
	t.Parallel()
	drained := newShift(t, 3)
	for i := range 3 {
		drained.drain(i)
		drained.sees(i)
		drained.goes(i)
	}
	require.False(t, drained.sees(0, 1, 2))
	replaced := newShift(t, 3)
	for i := range 3 {
		replaced.session(i, func(r *record.Session) { r.Successor = "s-2" })
		replaced.goes(i)
	}
	require.False(t, replaced.sees(0, 1, 2))
}

func TestWatchThatBeginsAfterTheLossesKnowsThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age  time.Duration
		open bool
	}{"not noted yet": {0, true}, "just now": {time.Second, true}, "long ago": {time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShift(t, 0)
			for i := range 3 {
				s.session(i, func(r *record.Session) {
					if c.age > 0 {
						r.GoneAt = s.now.Add(-c.age)
					}
				})
			}
			late := reconcile.NewBreaker(reconcile.BreakerDefaults(breakerTTL))
			open, until := late.Look(s.v, view.Touched{Full: true}, s.now)
			require.Equal(t, c.open, open)
			if open {
				require.Equal(t, s.now.Add(breakerTTL), until)
			}
		})
	}
}
