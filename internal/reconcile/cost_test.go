package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/reconcile"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/view"
)

// fan is one run of width tasks and one below all of them, on one session.
func fan(t testing.TB, width int) (*world, record.RunID) {
	t.Helper()
	var tasks []spec.Task
	sink := task("sink")
	for i := range width {
		leaf := task("t" + string(record.MakeInstance(i)))
		leaf.Idempotent = true
		tasks = append(tasks, leaf)
		sink.Needs = append(sink.Needs, leaf.ID)
	}
	w := newWorld(t)
	f := flowOf("w", append(tasks, sink)...)
	w.flow(f)
	w.start(w.running("w.one"))
	s := w.enlist("w1", "s1", width)
	var puts []record.Put
	for i := range width {
		puts = append(puts, record.Put{Key: record.AttemptKey(ref("w.one", string(f.Tasks[i].ID), 1)), Value: liveRow(w, f.Tasks[i].ID, s)})
	}
	w.set(puts...)
	w.v.Take()
	return w, "w.one"
}

func liveRow(w *world, id record.TaskID, s view.SessionRef) record.Attempt {
	return record.Attempt{
		Schema: record.Schema, Run: "w.one", Task: id, Attempt: 1, Kind: record.KindExec, State: record.Running, EnteredAt: w.now,
		Token: record.Token(id), Worker: s.Worker, Session: s.Session, Idempotent: true,
		Transitions: []record.Transition{{State: "running", At: w.now, Write: "set"}},
	}
}

// finishOne lets one task of the fan succeed, and applies it.
func finishOne(w *world, id record.RunID, i int) {
	r, _ := w.v.Run(id)
	row, _ := r.At(i).Latest()
	a := row.Attempt
	a.State, a.EnteredAt = record.Success, w.now
	w.rev++
	w.v.Apply(record.Event{Key: record.AttemptKey(a.Ref()), Value: a, CreateRev: row.CreateRev, ModRev: w.rev})
	w.v.Advance(w.rev)
}

func TestTheLastTaskOfAWideFanCostsWhatTheFirstDid(t *testing.T) {
	t.Parallel()
	const width = 10_000
	w, id := fan(t, width)
	turn := w.turn()
	for i := range width {
		finishOne(w, id, i)
		touched := w.v.Take()
		res := reconcile.Pass(w.v, touched, turn)
		require.Equal(t, 2, res.Visited, "the task and the one below it")
		require.Len(t, touched.Tasks, 1)
		require.Len(t, touched.Below, 1)
		require.Len(t, res.Ready, max(0, i-width+2))
	}
	require.NoError(t, w.v.Recount(id))
}

// BenchmarkFan times the event and the pass of the tasks of a 10,000-wide fan
// and reports what the last hundred cost by what the first hundred did.
func BenchmarkFan(b *testing.B) {
	const width, part = 10_000, 100
	var first, last time.Duration
	for range b.N {
		b.StopTimer()
		w, id := fan(b, width)
		turn := w.turn()
		b.StartTimer()
		for i := range width - 1 { // the very last makes the sink ready, once
			began := time.Now()
			finishOne(w, id, i)
			reconcile.Pass(w.v, w.v.Take(), turn)
			switch took := time.Since(began); {
			case i < part:
				first += took
			case i >= width-1-part:
				last += took
			}
		}
	}
	b.ReportMetric(float64(last)/float64(first), "last/first")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*(width-1)), "ns/task")
}

// BenchmarkFullPass times a full pass over 10,000 running tasks.
func BenchmarkFullPass(b *testing.B) {
	w, _ := fan(b, 10_000)
	turn := w.turn()
	for b.Loop() {
		reconcile.Pass(w.v, view.Touched{Full: true}, turn)
	}
}
