package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

// sparing is a leader that looks only at what was touched or is due, as the
// real one does between two full passes.
type sparing struct {
	*chaos
	agenda  reconcile.Agenda
	ready   map[record.TaskRef]view.Ready
	touched view.Touched
}

// step makes one pass over what was touched, commits, and dispatches what is
// ready. What lost its race is touched again.
func (s *sparing) step() {
	turn := s.turn()
	touched := s.touched.Merge(s.v.Take()).Merge(s.agenda.Due(s.now))
	s.touched = view.Touched{}
	res := reconcile.Pass(s.v, touched, turn)
	require.Empty(s.t, res.Faults)
	s.agenda.Note(res)
	for _, ref := range res.Idle {
		delete(s.ready, ref)
	}
	for _, r := range res.Ready {
		s.ready[r.Ref.TaskRef] = r
	}
	for _, c := range res.Changes {
		s.try(c)
	}
	s.dispatch(turn)
}

func (s *sparing) dispatch(turn reconcile.Turn) {
	for _, t := range slices.SortedFunc(maps.Keys(s.ready), func(a, b record.TaskRef) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	}) {
		if len(s.living) == 0 {
			return
		}
		s.writes++
		c, ok, err := reconcile.Dispatch(s.v, reconcile.Assignment{
			Ref: s.ready[t].Ref, Session: s.living[s.rng.IntN(len(s.living))], Token: record.Token(fmt.Sprintf("token%06d", s.writes)),
		}, turn)
		require.NoError(s.t, err)
		if ok {
			s.try(c)
		}
		delete(s.ready, t)
	}
}

func (s *sparing) try(c record.Change) {
	if s.commit(c, record.Leader) {
		return
	}
	for _, p := range c.Put {
		switch p.Key.Family {
		case record.FamilyAttempt:
			s.touched = s.touched.Merge(view.Touched{Tasks: []record.TaskRef{{Run: p.Key.Run, Task: p.Key.Task}}})
		case record.FamilyRun:
			s.touched = s.touched.Merge(view.Touched{Runs: []record.RunID{p.Key.Run}})
		default:
			s.touched = s.touched.Merge(view.Touched{Sessions: []view.SessionRef{{
				Worker: record.WorkerName(p.Key.Name), Session: p.Key.Session,
			}}})
		}
	}
}

// TestRunsComeToTheirEndOnTouchesAlone lets a leader that never makes a full
// pass drive random runs: whatever a rule needs to look at again is touched by
// an event or rung by an alarm. After each step a full pass finds nothing that
// the sparing one left undone.
func TestRunsComeToTheirEndOnTouchesAlone(t *testing.T) {
	t.Parallel()
	seeds := uint64(400)
	if testing.Short() {
		seeds = 25
	}
	for seed := range seeds {
		s := &sparing{chaos: newChaos(t, 5_000_000+seed, 2), ready: map[record.TaskRef]view.Ready{}}
		for i := 0; len(s.v.Runs()) > 0; i++ {
			require.Less(t, i, 900, "seed %d: %v", seed, s.v.Runs())
			s.event(i)
			for range 6 {
				s.step()
			}
			s.nothingLeft(seed)
			for _, r := range s.v.Runs() {
				if r.Record.Phase == record.PhaseEnding {
					s.end(r.ID())
				}
			}
		}
	}
}

// event lets something happen, wildly at first, and then less and less.
func (s *sparing) event(i int) {
	switch {
	case i == 80:
		s.faults, s.operators = 0, 0
		s.release()
		s.hire()
	case i > 80 && i%10 == 0:
		s.proveAll()
		s.now = s.now.Add(5 * time.Second)
	case i > 80 || s.rng.IntN(3) > 0:
		s.worker()
	case s.rng.IntN(2) == 0:
		s.fault()
	case s.rng.IntN(3) == 0:
		s.operate()
	default:
		s.now = s.now.Add(time.Duration(s.rng.IntN(8)) * time.Second)
	}
}

func (s *sparing) nothingLeft(seed uint64) {
	res := reconcile.Pass(s.v, view.Touched{Full: true}, s.turn())
	require.Empty(s.t, res.Changes, "seed %d", seed)
	if len(s.living) > 0 {
		require.Empty(s.t, res.Ready, "seed %d", seed)
	}
}
