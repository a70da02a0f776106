package audit_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/audit"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
)

// place finds the nth event of a key, from 0.
func (h *history) place(k record.Key, nth int) (i, j int) {
	h.t.Helper()
	for i := range h.events {
		for j, e := range h.events[i].Events {
			if e.Key != k {
				continue
			}
			if nth == 0 {
				return i, j
			}
			nth--
		}
	}
	require.Fail(h.t, "there is no such event", "%v", k)
	return 0, 0
}

// event returns the nth event of a key, to be changed.
func (h *history) event(k record.Key, nth int) *record.Event {
	h.t.Helper()
	i, j := h.place(k, nth)
	return &h.events[i].Events[j]
}

func rowKey(name string) record.Key { return record.AttemptKey(ref(name)) }

// rewrite changes every value of a row from the nth on, so that the history
// agrees with itself but for the one step.
func (h *history) rewrite(name string, nth int, f func(*record.Attempt)) {
	h.t.Helper()
	h.event(rowKey(name), nth)
	for i := range h.events {
		for j := range h.events[i].Events {
			e := &h.events[i].Events[j]
			if e.Key != rowKey(name) {
				continue
			}
			if nth--; nth < 0 && e.Value != nil {
				a := e.Value.(record.Attempt)
				a.Transitions = slices.Clone(a.Transitions)
				f(&a)
				e.Value = a
			}
		}
	}
}

// drop takes out the nth event of a key and, with rest, those after it.
func (h *history) drop(k record.Key, nth int, rest bool) {
	h.t.Helper()
	h.event(k, nth)
	for i := range h.events {
		h.events[i].Events = slices.DeleteFunc(h.events[i].Events, func(e record.Event) bool {
			if e.Key != k {
				return false
			}
			nth--
			return nth == -1 || rest && nth < -1
		})
	}
}

// cut ends the history with the nth event of a key.
func (h *history) cut(k record.Key, nth int) {
	h.t.Helper()
	i, _ := h.place(k, nth)
	h.events = h.events[:i+1]
	last := h.events[i].Rev
	h.seen = slices.DeleteFunc(h.seen, func(o audit.Observed) bool { return o.Rev > last })
}

// inject puts a value right behind the nth event of another key.
func (h *history) inject(after record.Key, nth int, k record.Key, v record.Value) {
	h.t.Helper()
	i, _ := h.place(after, nth)
	rev := h.events[i].Rev + 1
	e := record.Event{Key: k, Value: v, CreateRev: rev, ModRev: rev}
	for _, past := range h.events[:i+1] {
		for _, old := range past.Events {
			switch {
			case old.Key != k:
			case old.Value == nil:
				e.CreateRev = rev
			default:
				e.CreateRev = old.CreateRev
			}
		}
	}
	h.events = slices.Insert(h.events, i+1, record.Events{Rev: rev, Events: []record.Event{e}})
}

// value is the row as its nth event left it.
func (h *history) value(name string, nth int) record.Attempt {
	h.t.Helper()
	a := h.event(rowKey(name), nth).Value.(record.Attempt)
	a.Transitions = slices.Clone(a.Transitions)
	return a
}

func (h *history) run(nth int) record.Run {
	h.t.Helper()
	r := h.event(record.RunKey("etl.x"), nth).Value.(record.Run)
	r.Transitions = slices.Clone(r.Transitions)
	return r
}

// fresh is a new intent, made from a row.
func fresh(a record.Attempt, name string) record.Attempt {
	r := ref(name)
	a.Task, a.Attempt, a.State, a.Token = r.Task, r.N, record.Queued, record.Token("token-"+name)
	a.Exit, a.Cause, a.TTL, a.Worker, a.Session = nil, record.Cause{}, 0, "w", "s-1"
	a.Transitions = []record.Transition{{State: "queued", At: a.EnteredAt, Rule: record.RuleStart, By: "replica/r1", Write: "freshfreshfres"}}
	return a
}

// then is a row after one more transition.
func then(a record.Attempt, to record.AttemptState, by string, rule record.Rule) record.Attempt {
	a.State = to
	a.Transitions = append(a.Transitions, record.Transition{State: string(to), Rule: rule, By: by, Write: "thenthenthenth"})
	return a
}

// mutation breaks one scenario in one way.
type mutation struct {
	name     string
	scenario string
	want     string
	mutate   func(*history)
}

func last(list []record.Transition) *record.Transition { return &list[len(list)-1] }

func TestEveryMutationIsCaughtByItsInvariant(t *testing.T) {
	t.Parallel()
	all := slices.Concat(observations(), numbers(), rowsOfTheTable(), words(), reasons(), deaths(), ends(), dates(), losses(), cancels(), widths(), runsOfTheTable())
	tell := scenarios()
	broken := map[string]int{}
	for _, m := range all {
		broken[m.want]++
		t.Run(m.want+" "+m.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			tell[m.scenario](s)
			h := s.history()
			m.mutate(&h)
			found := h.auditor().Report()
			require.NotEmpty(t, found)
			for _, v := range found {
				require.Equal(t, m.want, v.Invariant, "%v", found)
				require.Positive(t, v.Rev)
				require.NotEmpty(t, v.Key.Family)
			}
		})
	}
	for _, id := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", audit.Table} {
		require.Positive(t, broken[id], "no mutation breaks %s", id)
	}
}

func TestEachTriggerRuleIsAskedBeforeAStart(t *testing.T) {
	t.Parallel()
	// The rule, an end of the one upstream under which the task may not start,
	// and one under which it may.
	for rule, c := range map[spec.TriggerRule][2]record.AttemptState{
		spec.AllSuccess: {record.Failed, record.Success}, spec.AllFailed: {record.Success, record.Failed},
		spec.AllDone: {record.Running, record.Skipped}, spec.OneSuccess: {record.Skipped, record.Success},
		spec.OneFailed: {record.Success, record.Failed}, spec.OneDone: {record.Skipped, record.Failed},
		spec.NoneFailed: {record.Failed, record.Skipped}, spec.NoneFailedMinOneSuccess: {record.Skipped, record.Success},
		spec.NoneSkipped: {record.Skipped, record.Failed}, spec.Always: {record.None, record.Running},
	} {
		for i, end := range c {
			s := newStory(t)
			b := task("b", "a")
			b.TriggerRule = rule
			s.flow(task("a"), b)
			s.enlist("s-1", 4)
			s.start("etl.x")
			s.dispatch("etl.x/a/1")
			s.claim("etl.x/a/1")
			if end.Terminal() {
				s.report("etl.x/a/1", end)
			}
			s.dispatch("etl.x/b/1")
			found := s.history().auditor().Report()
			if i == 1 || rule == spec.Always {
				require.Empty(t, found, "%s after %s", rule, end)
				continue
			}
			require.Len(t, found, 1, "%s after %s", rule, end)
			require.Equal(t, "I6", found[0].Invariant)
			require.Equal(t, record.AttemptKey(ref("etl.x/b/1")), found[0].Key)
			require.Equal(t, s.rev, found[0].Rev)
		}
	}
}
