package explain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/explain"
	"github.com/writ-sched/writ/internal/placement"
	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

const runID record.RunID = "w.one"

// scene is a view with one run of a workflow, and the clock.
type scene struct {
	t   *testing.T
	v   *view.Active
	rev int64
	now time.Time
	ask explain.Question
}

// setup is a run of a above b, beside c, which has retries and a handler.
func setup(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, v: view.New(), now: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
	s.ask = explain.Question{Run: runID, Now: s.now, Policy: reconcile.Defaults()}
	s.run(func(*record.Run) {})
	s.v.Load(view.Revision{Workflow: "w", Number: 1}, spec.Compile(&spec.Workflow{
		Name: "w", MaxActiveRuns: 1, Tasks: []spec.Task{
			{ID: "a", Run: "true", Timeout: record.Duration(time.Hour)},
			{ID: "b", Run: "true", Needs: []record.TaskID{"a"}},
			{ID: "c", Handler: "resize", Idempotent: true},
		},
	}))
	return s
}

func (s *scene) put(k record.Key, v record.Value) {
	s.rev++
	s.v.Apply(record.Event{Key: k, Value: v, CreateRev: s.rev, ModRev: s.rev})
}

func (s *scene) run(f func(*record.Run)) {
	r := record.Run{Run: runID, Workflow: "w", Revision: 1, State: record.RunRunning, EnteredAt: s.now, StartedAt: s.now}
	f(&r)
	s.put(record.RunKey(runID), r)
}

func (s *scene) worker(f func(*record.Worker)) {
	w := record.Worker{Worker: "w1", Session: "s1", Slots: 1, Queues: []record.Queue{"default"}, Processes: true}
	f(&w)
	s.put(record.WorkerKey("w1", "s1"), w)
}

// row writes the row of task a; a live one is held by s1.
func (s *scene) row(state record.AttemptState, f func(*record.Attempt)) {
	a := record.Attempt{
		Run: runID, Task: "a", Attempt: 1, Kind: record.KindExec, State: state, EnteredAt: s.now, OnLost: record.OnLostWait,
		TTL: record.Duration(15 * time.Second), Transitions: []record.Transition{{State: string(state), At: s.now}},
	}
	if state == record.Queued || state == record.Running {
		a.Token, a.Worker, a.Session = "token", "w1", "s1"
	}
	f(&a)
	s.put(record.AttemptKey(a.Ref()), a)
}

func (s *scene) gone(f func(*record.Session)) {
	r := record.Session{Worker: "w1", Session: "s1", GoneAt: s.now}
	f(&r)
	s.put(record.SessionKey("w1", "s1"), r)
}

func as(*record.Attempt) {}

// about returns the answer about a task, or about the run.
func (s *scene) about(task record.TaskID) explain.Answer {
	for _, a := range explain.Explain(s.v, s.ask) {
		if a.Task.Task == task {
			require.NotEmpty(s.t, a.Text)
			require.NotZero(s.t, a.Key)
			require.NotZero(s.t, a.Rev)
			return a
		}
	}
	require.Fail(s.t, "there is no answer", task)
	return explain.Answer{}
}

func TestEachReasonIsTold(t *testing.T) {
	t.Parallel()
	none := func(*record.Session) {}
	retry := func(a *record.Attempt) { a.OnLost = record.OnLostRetry }
	for name, c := range map[string]struct {
		bring  func(s *scene)
		task   record.TaskID
		reason string
		text   string
	}{
		"upstream": {func(s *scene) { s.row(record.Running, as); s.worker(func(*record.Worker) {}) }, "b", "upstream", "all_success waits for a (running)"},
		"running":  {func(s *scene) { s.row(record.Running, as); s.worker(func(*record.Worker) {}) }, "a", "running", "worker w1"},
		"overdue": {func(s *scene) {
			s.row(record.Running, as)
			s.worker(func(*record.Worker) {})
			s.ask.Now = s.now.Add(2 * time.Hour)
		}, "a", "overdue", "beyond its timeout"},
		"no worker":  {func(*scene) {}, "a", "no_worker", "no worker is connected"},
		"no queue":   {func(s *scene) { s.worker(func(w *record.Worker) { w.Queues = nil }) }, "a", "no_queue", "queue default"},
		"no process": {func(s *scene) { s.worker(func(w *record.Worker) { w.Processes = false }) }, "a", "no_process", "runs processes"},
		"no handler": {func(s *scene) { s.worker(func(*record.Worker) {}) }, "c", "no_handler", "handler resize"},
		"draining":   {func(s *scene) { s.worker(func(w *record.Worker) { w.Draining = &record.Hold{} }) }, "a", "draining", "w1"},
		"slots full": {func(s *scene) {
			s.worker(func(w *record.Worker) { w.Handlers = []string{"resize"} })
			s.row(record.Running, as)
		}, "c", "slots_full", "by w.one/a/1"},
		"in line": {func(s *scene) { s.worker(func(w *record.Worker) { w.Handlers = []string{"resize"} }) }, "c", "in_line", "at their head w.one/a/1"},
		"next":    {func(s *scene) { s.worker(func(*record.Worker) {}) }, "a", "unassigned", "about to be dispatched"},
		"not due": {func(s *scene) {
			s.row(record.Queued, func(a *record.Attempt) { a.Token, a.NotBefore = "", s.now.Add(time.Minute) })
		}, "a", "due", "2026-12-01T00:01:00Z"},
		"clock": {func(s *scene) {
			s.row(record.Queued, func(a *record.Attempt) { a.Token, a.NotBefore = "", s.now })
			s.ask.HoldDue = true
		}, "a", "clock", "clock"},
		"unconfirmed": {func(s *scene) { s.row(record.Queued, as); s.worker(func(*record.Worker) {}) }, "a", "unconfirmed", "has not confirmed"},
		"silent":      {func(s *scene) { s.row(record.Running, retry); s.gone(none) }, "a", "silent", "is silent"},
		"proof":       {func(s *scene) { s.row(record.Running, as); s.gone(none) }, "a", "proof", "writ resolve"},
		"held":        {func(s *scene) { s.row(record.Running, as); s.gone(none); s.ask.HoldLosses = true }, "a", "held", "losses are held"},
		"settling": {func(s *scene) {
			s.row(record.Running, as)
			s.gone(func(r *record.Session) { r.Successor = "s2" })
			s.put(record.WorkerKey("w1", "s2"), record.Worker{Worker: "w1", Session: "s2"})
		}, "a", "settling", "successor"},
		"unproven": {func(s *scene) {
			s.put(record.UnprovenKey(record.TaskRef{Run: runID, Task: "a"}.At(1)), record.Unproven{Run: runID, Task: "a", Attempt: 1, Worker: "w0"})
		}, "a", "unproven", "attempt 1 is dead"},
		"cleared": {func(s *scene) {
			s.row(record.Running, as)
			s.worker(func(*record.Worker) {})
			s.put(record.ClearKey(runID, 1), record.Clear{Run: runID, Seq: 1, Tasks: []record.TaskID{"a"}})
		}, "a", "cleared", "has yet to stop"},
		"cancelling": {func(s *scene) {
			s.row(record.Running, as)
			s.worker(func(*record.Worker) {})
			s.run(func(r *record.Run) { r.State = record.RunCancelling })
		}, "a", "cancelling", "has yet to stop it"},
		"paused":    {func(s *scene) { s.run(func(r *record.Run) { r.Paused = &record.Hold{By: "ann", Why: "release"} }) }, "a", "paused", "by ann (release)"},
		"decided":   {func(s *scene) { s.row(record.Skipped, as) }, "b", "decided", "rule trigger"},
		"queued":    {func(s *scene) { s.run(func(r *record.Run) { r.State = record.RunQueued }) }, "a", "queued", "its turn"},
		"reopening": {func(s *scene) { s.run(func(r *record.Run) { r.Phase = record.PhaseReopening }) }, "a", "reopening", "reopened"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			c.bring(s)
			a := s.about(c.task)
			require.Equal(t, c.reason, a.Reason)
			require.Contains(t, a.Text, c.text)
		})
	}
}

func TestTheRunIsToldFirstWhereItStandsAgainstAllOfItsTasks(t *testing.T) {
	t.Parallel()
	for reason, f := range map[string]func(*record.Run){
		"paused":     func(r *record.Run) { r.Paused = &record.Hold{By: "ann"} },
		"cancelling": func(r *record.Run) { r.State, r.Cancelling = record.RunCancelling, &record.Hold{By: "ann"} },
		"queued":     func(r *record.Run) { r.State = record.RunQueued },
		"reopening":  func(r *record.Run) { r.Phase = record.PhaseReopening },
		"ending":     func(r *record.Run) { r.State, r.Phase = record.RunSuccess, record.PhaseEnding },
		"spec":       func(r *record.Run) { r.Revision = 2 },
	} {
		s := setup(t)
		s.put(record.RunKey("w.zero"), record.Run{Run: "w.zero", Workflow: "w", Revision: 1, State: record.RunRunning})
		s.run(f)
		a := explain.Explain(s.v, s.ask)[0]
		require.Equal(t, record.TaskRef{Run: runID}, a.Task)
		require.Equal(t, reason, a.Reason)
		require.Equal(t, record.RunKey(runID), a.Key)
		if reason == "queued" {
			require.Contains(t, a.Text, "active: w.zero")
		}
	}
}

func TestARecordAndItsRevisionSaySo(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.worker(func(*record.Worker) {})
	s.row(record.Running, as)
	a := s.about("b")
	require.Equal(t, record.AttemptKey(record.TaskRef{Run: runID, Task: "a"}.At(1)), a.Key)
	require.Equal(t, s.rev, a.Rev)
	require.Equal(t, s.now, a.Since)
}

func TestAClosedTaskAndAnUnknownRunHaveNoAnswer(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.row(record.Success, as)
	s.ask.Task = "a"
	require.Empty(t, explain.Explain(s.v, s.ask))
	s.ask.Run = "w.two"
	require.Empty(t, explain.Explain(s.v, s.ask))
}

func TestIntentsInFlightTakeTheirSlots(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.worker(func(*record.Worker) {})
	other := view.Ready{Ref: record.TaskRef{Run: "x.one", Task: "t"}.At(1), Workflow: "x"}
	s.ask.Flying = []placement.Assignment{{Ready: other, Session: view.SessionRef{Worker: "w1", Session: "s1"}}}
	require.Equal(t, "slots_full", s.about("a").Reason)
}
