package reconcile_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// world is a store in memory with one view of it: guards are compared, events
// feed the view, and every change of a row is held against the transition
// table.
type world struct {
	t     testing.TB
	rev   int64
	keys  map[record.Key]record.Stored
	v     *view.Active
	now   time.Time
	vigil *reconcile.Vigil
	specs map[view.Revision]*spec.Graph
	// watch, where set, is called with every row that is put.
	watch  func(before, after record.Attempt)
	writes int
	passes int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return &world{
		t: t, keys: map[record.Key]record.Stored{}, v: view.New(), vigil: reconcile.NewVigil(),
		now: time.Date(2026, 12, 1, 2, 30, 0, 0, time.UTC), specs: map[view.Revision]*spec.Graph{},
	}
}

// holds says that the expectations of c hold.
func (w *world) holds(c record.Change) bool {
	for _, e := range c.Expect {
		if !w.expect(e) {
			return false
		}
	}
	return true
}

func (w *world) expect(e record.Expect) bool {
	if e.Ranged() {
		for k, s := range w.keys {
			if e.Range.Has(k) && (e.Want == record.WantEmpty || s.ModRev > e.Rev) {
				return false
			}
		}
		return true
	}
	s, ok := w.keys[e.Key]
	switch e.Want {
	case record.WantAbsent:
		return !ok
	case record.WantPresent:
		return ok
	case record.WantRev:
		return ok && s.ModRev == e.Rev
	default:
		return ok && s.CreateRev == e.Rev
	}
}

// commit makes a change by an actor where its guards hold.
func (w *world) commit(c record.Change, by record.Actor) bool {
	require.NoError(w.t, c.Check())
	w.lawful(c, by)
	if !w.holds(c) {
		return false
	}
	w.rev++
	for _, d := range c.Delete {
		for k := range w.keys {
			if d.Over && d.Range.Has(k) || !d.Over && d.Key == k {
				w.event(record.Event{Key: k, ModRev: w.rev})
			}
		}
	}
	for _, p := range c.Put {
		w.put(p.Key, p.Value)
	}
	w.v.Advance(w.rev)
	w.load()
	return true
}

// lawful holds every row that c puts against the transition table.
func (w *world) lawful(c record.Change, by record.Actor) {
	for _, p := range c.Put {
		after, ok := p.Value.(record.Attempt)
		if !ok {
			continue
		}
		before, _ := w.keys[p.Key].Value.(record.Attempt)
		if w.holds(c) && w.watch != nil {
			w.watch(before, after)
		}
		if c.Rule != record.RuleReopen && w.holds(c) {
			require.Empty(w.t, record.Lacking(c, before, after, by), "%s of %s to %s", c.Rule, after.Ref(), after.State)
		}
	}
}

func (w *world) put(k record.Key, v record.Value) {
	create := w.rev
	if s, ok := w.keys[k]; ok {
		create = s.CreateRev
	}
	w.event(record.Event{Key: k, Value: v, CreateRev: create, ModRev: w.rev})
}

func (w *world) event(e record.Event) {
	if e.Value == nil {
		delete(w.keys, e.Key)
	} else {
		w.keys[e.Key] = record.Stored{Key: e.Key, Value: e.Value, CreateRev: e.CreateRev, ModRev: e.ModRev}
	}
	if e.Key.Family.Active() {
		w.v.Apply(e)
	}
}

// set writes values without a guard, at one new revision: a state to begin at.
func (w *world) set(list ...record.Put) {
	w.rev++
	for _, p := range list {
		w.put(p.Key, p.Value)
	}
	w.v.Advance(w.rev)
	w.load()
}

func (w *world) drop(k record.Key) {
	w.rev++
	w.event(record.Event{Key: k, ModRev: w.rev})
	w.v.Advance(w.rev)
}

func (w *world) load() {
	for _, rev := range w.v.Missing() {
		if g, ok := w.specs[rev]; ok {
			w.v.Load(rev, g)
		}
	}
}

// relist builds the view anew from the store.
func (w *world) relist(reversed bool) *view.Active {
	var list []record.Stored
	for _, s := range w.keys {
		if s.Key.Family.Active() {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b record.Stored) int {
		if order := fmt.Sprint(a.Key) < fmt.Sprint(b.Key); order != reversed {
			return -1
		}
		return 1
	})
	v := view.FromList(w.rev, list)
	v.Adopt(w.v)
	return v
}

func (w *world) turn() reconcile.Turn {
	w.passes++
	return reconcile.Turn{
		Now: w.now, Vigil: w.vigil, Policy: reconcile.Defaults(),
		Stamp: reconcile.Stamp{Who: "replica/r1", Prefix: fmt.Sprintf("pppppppp%05d", w.passes)},
	}
}

// pass looks at everything and commits what comes of it.
func (w *world) pass() reconcile.Result {
	res := reconcile.Pass(w.v, view.Touched{Full: true}, w.turn())
	require.Empty(w.t, res.Faults)
	for _, c := range res.Changes {
		w.commit(c, record.Leader)
	}
	return res
}

// give dispatches a ready task to a session.
func (w *world) give(r view.Ready, s view.SessionRef) bool {
	w.writes++
	c, ok, err := reconcile.Dispatch(w.v, reconcile.Assignment{
		Ref: r.Ref, Session: s, Token: record.Token("token" + strconv.Itoa(w.writes)),
	}, w.turn())
	require.NoError(w.t, err)
	return ok && w.commit(c, record.Leader)
}

// flow adds a workflow of which runs may be made.
func (w *world) flow(f *spec.Workflow) {
	w.specs[view.Revision{Workflow: f.Name, Number: 1}] = spec.Compile(f)
}

// running is the record of a run that was made and admitted at the world's
// beginning.
func (w *world) running(id record.RunID) record.Run {
	return record.Run{
		Schema: record.Schema, Run: id, Workflow: id.Workflow(), Revision: 1, State: record.RunRunning, EnteredAt: w.now,
		CreatedAt: w.now, StartedAt: w.now, Trigger: record.TriggerManual,
		Transitions: []record.Transition{{State: "running", At: w.now, Rule: record.RuleCreate, By: "person/ann", Write: "createcreatecreate"}},
	}
}

func (w *world) start(r record.Run) {
	w.set(record.Put{Key: record.RunKey(r.Run), Value: r})
}

// enlist registers a session.
func (w *world) enlist(name record.WorkerName, session record.SessionID, slots int) view.SessionRef {
	w.writes++
	id := record.WriteID(fmt.Sprintf("register%06d", w.writes))
	w.set(
		record.Put{Key: record.WorkerKey(name, session), Value: record.Worker{
			Schema: record.Schema, Worker: name, Session: session, TTL: record.Duration(15 * time.Second), Slots: slots,
			Queues: []record.Queue{spec.DefaultQueue}, Processes: true, RegisteredAt: w.now, Write: id,
		}},
		record.Put{Key: record.SessionKey(name, session), Value: record.Session{
			Schema: record.Schema, Worker: name, Session: session, Stream: int64(w.writes), Write: id,
		}},
	)
	return view.SessionRef{Worker: name, Session: session}
}

// row returns an attempt row as the store has it.
func (w *world) row(ref record.Ref) (record.Attempt, int64) {
	s := w.keys[record.AttemptKey(ref)]
	a, _ := s.Value.(record.Attempt)
	return a, s.ModRev
}

// report moves a row by its session's word; it says whether the guards held.
func (w *world) report(ref record.Ref, to record.AttemptState, cause record.Cause, exit *record.Exit) bool {
	a, rev := w.row(ref)
	w.writes++
	id := record.WriteID(fmt.Sprintf("reportreport%06d", w.writes))
	next, err := a.Move(record.Step{
		To: to, By: record.Gateway, Who: "session/" + string(a.Session), At: w.now, Rule: record.RuleFinish, Write: id, Cause: cause,
	})
	if err != nil {
		return false
	}
	next.Exit = exit
	expect := []record.Expect{record.At(record.AttemptKey(ref), rev), record.Present(record.WorkerKey(a.Worker, a.Session))}
	if to == record.Running {
		next.TTL = record.Duration(15 * time.Second)
		run := w.keys[record.RunKey(ref.Run)]
		if r, _ := run.Value.(record.Run); r.State != record.RunRunning {
			return false
		}
		expect = append(expect, record.At(record.RunKey(ref.Run), run.ModRev))
	}
	c, err := record.NewChange(record.RuleFinish, id, expect, []record.Put{{Key: record.AttemptKey(ref), Value: next}})
	require.NoError(w.t, err)
	return w.commit(c, record.Gateway)
}

// cancelRun is an operator's cancel.
func (w *world) cancelRun(id record.RunID) bool {
	return w.rewrite(id, record.RunMove{To: record.RunCancelling}, func(r *record.Run) {
		r.Cancelling = &record.Hold{By: "ann", At: w.now}
	})
}

// rewrite is an operator's move of a run, with puts beside it.
func (w *world) rewrite(id record.RunID, m record.RunMove, f func(*record.Run), beside ...record.Put) bool {
	s := w.keys[record.RunKey(id)]
	r, ok := s.Value.(record.Run)
	if !ok {
		return false
	}
	w.writes++
	m.By, m.Who, m.At, m.Rule = record.Operator, "person/ann", w.now, record.RulePause
	m.Write = record.WriteID(fmt.Sprintf("operate%06d", w.writes))
	next, err := r.Move(m)
	if err != nil {
		return false
	}
	f(&next)
	c, err := record.NewChange(m.Rule, m.Write, []record.Expect{record.At(record.RunKey(id), s.ModRev)},
		append(beside, record.Put{Key: record.RunKey(id), Value: next}))
	require.NoError(w.t, err)
	return w.commit(c, record.Operator)
}

// clearTasks is an operator's clear.
func (w *world) clearTasks(id record.RunID, tasks ...record.TaskID) bool {
	r, ok := w.keys[record.RunKey(id)].Value.(record.Run)
	if !ok {
		return false
	}
	seq := r.Clears + 1
	c := record.Clear{Schema: record.Schema, Run: id, Seq: seq, Tasks: tasks, By: "ann", At: w.now, Write: "clear"}
	return w.rewrite(id, record.RunMove{To: r.State}, func(r *record.Run) { r.Clears = seq },
		record.Put{Key: record.ClearKey(id, seq), Value: c})
}

// end writes the document of a run in phase ending.
func (w *world) end(id record.RunID) {
	r, ok := w.v.Run(id)
	require.True(w.t, ok)
	pages, err := reconcile.EndPages(r, reconcile.Stamp{})
	require.NoError(w.t, err)
	for _, c := range pages {
		require.True(w.t, w.commit(c, record.Leader))
	}
	head, err := reconcile.EndHead(w.v, r, reconcile.Stamp{})
	require.NoError(w.t, err)
	require.True(w.t, w.commit(head, record.Leader))
}

// task makes a task of a spec.
func task(id string, needs ...string) spec.Task {
	t := spec.Task{ID: record.TaskID(id), Run: "true"}
	for _, n := range needs {
		t.Needs = append(t.Needs, record.TaskID(n))
	}
	return t
}

// flowOf makes a workflow.
func flowOf(name string, tasks ...spec.Task) *spec.Workflow {
	return &spec.Workflow{Name: record.WorkflowName(name), Tasks: tasks}
}
