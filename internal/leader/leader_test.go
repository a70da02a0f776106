package leader_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/spec"
	"github.com/writ-sched/writ/internal/store/storetest"
	"github.com/writ-sched/writ/internal/view"
)

// fan is first → width tasks → last.
func fan(width int) *spec.Workflow {
	flow := &spec.Workflow{Name: "fan", Tasks: []spec.Task{{ID: "first", Run: "true"}}}
	last := spec.Task{ID: "last", Run: "true"}
	for i := range width {
		id := record.TaskID(fmt.Sprintf("part-%d", i))
		flow.Tasks = append(flow.Tasks, spec.Task{ID: id, Run: "true", Needs: []record.TaskID{"first"}, Idempotent: i%2 == 0})
		last.Needs = append(last.Needs, id)
	}
	flow.Tasks = append(flow.Tasks, last)
	return flow
}

// requireOnce holds a run's document against what was started.
func requireOnce(t *testing.T, w *world, head record.Ended, tasks int) {
	t.Helper()
	require.Equal(t, record.RunSuccess, head.Run.State)
	require.Equal(t, map[record.AttemptState]int{record.Success: tasks}, head.Tasks)
	rows := w.rows(head)
	require.Len(t, rows, tasks)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		require.Equal(t, 1, w.started[row.Attempt.Ref()], "%s", row.Attempt.Ref())
	}
}

func TestRunGoesToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.apply(fan(40))
		w.work("w1", 4)
		w.work("w2", 3)
		w.lead("r1")
		w.start("fan.1")
		requireOnce(t, w, w.ended("fan.1"), 42)
		synctest.Wait()
		w.mirror.Read(func(v *view.Active) { require.Empty(t, v.Runs(), "nothing active is left") })
		lines, err := w.List(t.Context(), record.AllOf(record.FamilyIndex), record.Key{}, 10)
		require.NoError(t, err)
		require.Len(t, lines, 1)
	})
}

func TestThreeReplicasThatAllLeadStartNothingTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.apply(fan(40))
		w.loose = true
		w.work("w1", 200)
		for _, name := range []string{"r1", "r2", "r3"} {
			w.lead(name)
		}
		for i := range 5 {
			w.start(record.RunID(fmt.Sprintf("fan.%d", i)))
		}
		for i := range 5 {
			requireOnce(t, w, w.ended(record.RunID(fmt.Sprintf("fan.%d", i))), 42)
		}
	})
}

func TestLeaderThatComesAfterAnotherCarriesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.apply(fan(200))
		w.loose = true
		w.work("w1", 5)
		w.start("fan.1")
		for i := range 20 {
			stop := w.lead(fmt.Sprintf("r%d", i))
			feed := w.mirror.Feed()
			for range 5 {
				<-feed.Wake()
			}
			feed.Close()
			stop()
		}
		w.lead("last")
		requireOnce(t, w, w.ended("fan.1"), 202)
	})
}

func TestLostAnswersAndLateWritesChangeNothing(t *testing.T) {
	t.Parallel()
	for _, fault := range []storetest.Fault{storetest.LostReply, storetest.Drop} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.apply(fan(60))
				w.work("w1", 5)
				w.lead("r1")
				w.Inject(fault, 30)
				w.start("fan.1")
				requireOnce(t, w, w.ended("fan.1"), 62)
			})
		})
	}
}

func TestFailedTaskIsRetriedWhenItsTimeHasCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.apply(&spec.Workflow{Name: "f", Tasks: []spec.Task{
			{ID: "flaky", Run: "true", Retries: spec.Retry{Limit: 2, Delay: record.Duration(time.Minute)}},
			{ID: "after", Run: "true", Needs: []record.TaskID{"flaky"}},
		}})
		w.end = func(ref record.Ref) record.AttemptState {
			if ref.Task == "flaky" && ref.N < 3 {
				return record.Failed
			}
			return record.Success
		}
		w.work("w1", 1)
		w.lead("r1")
		began := time.Now()
		w.start("f.1")
		head := w.ended("f.1")
		require.Equal(t, record.RunSuccess, head.Run.State)
		require.Equal(t, 4, head.Attempts)
		require.GreaterOrEqual(t, time.Since(began), 2*time.Minute)
		require.Less(t, time.Since(began), 2*time.Minute+10*time.Second)
	})
}

func TestFailureSpreadsAndFailsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		flow := fan(3)
		flow.Tasks = append(flow.Tasks, spec.Task{ID: "tidy", Run: "true", Needs: []record.TaskID{"last"}, TriggerRule: spec.AllDone})
		w.apply(flow)
		w.end = func(ref record.Ref) record.AttemptState {
			if ref.Task == "part-1" {
				return record.Failed
			}
			return record.Success
		}
		w.work("w1", 1)
		w.lead("r1")
		w.start("fan.1")
		head := w.ended("fan.1")
		require.Equal(t, record.RunFailed, head.Run.State)
		require.Equal(t, map[record.AttemptState]int{record.Success: 4, record.Failed: 1, record.UpstreamFailed: 1}, head.Tasks)
	})
}

func TestDispatchIntoAVoidIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.apply(&spec.Workflow{Name: "one", Tasks: []spec.Task{{ID: "t", Run: "true"}}})
		lease, _, err := w.Grant(t.Context(), time.Hour)
		require.NoError(t, err)
		// A session that is there and never says a word.
		w.Seed(record.SessionKey("mute", "mute-1"), record.Session{Worker: "mute", Session: "mute-1", Write: w.id()}, 0)
		w.Seed(record.WorkerKey("mute", "mute-1"), record.Worker{
			Worker: "mute", Session: "mute-1", Lease: lease, TTL: record.Duration(time.Hour), Slots: 1,
			Queues: []record.Queue{spec.DefaultQueue}, Processes: true, Write: w.id(),
		}, lease)
		w.lead("r1")
		w.start("one.1")
		<-time.After(time.Minute)
		w.work("w1", 4)
		head := w.ended("one.1")
		require.Equal(t, record.RunSuccess, head.Run.State)
		require.Greater(t, head.Attempts, 1)
		for _, row := range w.rows(head)[:head.Attempts-1] {
			require.Equal(t, record.Abandoned, row.Attempt.State)
		}
	})
}

func TestLargeRunEndsInPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const width = 600
		w.apply(fan(width))
		w.loose = true
		w.work("w1", 300)
		w.lead("r1")
		w.lead("r2")
		w.start("fan.1")
		head := w.ended("fan.1")
		require.Greater(t, head.Pages, 1)
		require.Len(t, w.rows(head), head.Attempts)
		require.Equal(t, width+2, head.Tasks[record.Success])
	})
}
