package placement_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/writ-sched/writ/internal/placement"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
)

func began() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) }

// ready is a script of a workflow, ready since that many seconds.
func ready(flow, task string, since int) view.Ready {
	run := record.MakeRunID(record.WorkflowName(flow), "one")
	return view.Ready{
		Ref:      record.TaskRef{Run: run, Task: record.TaskID(task)}.At(1),
		Workflow: record.WorkflowName(flow), Queue: "default", Since: began().Add(time.Duration(since) * time.Second),
	}
}

func seat(name string, free int) placement.Seat {
	return placement.Seat{
		Session: view.SessionRef{Worker: record.WorkerName(name), Session: "s"}, Free: free,
		Worker: record.Worker{Queues: []record.Queue{"default"}, Processes: true, Slots: free},
	}
}

func fleet(seats ...placement.Seat) placement.Fleet {
	return placement.Fleet{Seats: seats, Live: map[record.WorkflowName]int{}, Pools: map[record.Pool]int{}}
}

func names(list []placement.Assignment) []string {
	var out []string
	for _, a := range list {
		out = append(out, string(a.Ready.Ref.Task)+"@"+string(a.Session.Worker))
	}
	return out
}

func TestPriorityGoesBeforeFairnessAndFairnessBeforeAge(t *testing.T) {
	t.Parallel()
	b := placement.NewBacklog()
	for i, task := range []string{"a1", "a2", "a3"} {
		b.Put(ready("a", task, i))
	}
	b.Put(ready("b", "b1", 50))
	urgent := ready("a", "urgent", 99)
	urgent.Priority = 5
	b.Put(urgent)
	f := fleet(seat("w", 4))
	require.Equal(t, []string{"urgent@w", "b1@w", "a1@w", "a2@w"}, names(b.Place(&f, 0)))
	require.Equal(t, 1, b.Len())
	require.Zero(t, f.Seats[0].Free)
}

func TestTasksAreSpreadOverTheSessionsWithTheMostFreeSlots(t *testing.T) {
	t.Parallel()
	b := placement.NewBacklog()
	for i := range 5 {
		b.Put(ready("a", fmt.Sprintf("t%d", i), i))
	}
	f := fleet(seat("v", 1), seat("w", 3))
	require.Equal(t, []string{"t0@w", "t1@w", "t2@v", "t3@w"}, names(b.Place(&f, 0)))
}

func TestALimitEndsARound(t *testing.T) {
	t.Parallel()
	b := placement.NewBacklog()
	b.Put(ready("a", "x", 0))
	b.Put(ready("a", "y", 1))
	f := fleet(seat("w", 9))
	require.Equal(t, []string{"x@w"}, names(b.Place(&f, 1)))
	require.Equal(t, []string{"y@w"}, names(b.Place(&f, 1)))
	require.Empty(t, b.Place(&f, 1))
}

func TestOnlySessionsThatFitAreGivenATask(t *testing.T) {
	t.Parallel()
	handler := ready("a", "h", 0)
	handler.Handler = "resize"
	gpu := ready("a", "g", 0)
	gpu.Queue = "gpu"
	b := placement.NewBacklog()
	b.Put(handler)
	b.Put(gpu)
	draining := seat("drain", 9)
	draining.Worker.Draining = &record.Hold{By: "ann"}
	draining.Worker.Handlers = []string{"resize"}
	f := fleet(draining, seat("plain", 9))
	require.Empty(t, b.Place(&f, 0))
	require.Equal(t, placement.Draining, b.Refuse(f, handler.Ref.TaskRef).Reason)
	require.Equal(t, placement.NoQueue, b.Refuse(f, gpu.Ref.TaskRef).Reason)
	able := seat("able", 1)
	able.Worker.Handlers, able.Worker.Processes = []string{"resize"}, false
	f = fleet(able)
	require.Equal(t, []string{"h@able"}, names(b.Place(&f, 0)))
}

func TestAPoolIsNeverOverfilled(t *testing.T) {
	t.Parallel()
	b := placement.NewBacklog()
	for i := range 4 {
		r := ready("a", fmt.Sprintf("t%d", i), i)
		r.Pool = "db"
		b.Put(r)
	}
	f := fleet(seat("w", 9))
	f.Pools["db"] = 2
	require.Len(t, b.Place(&f, 0), 2)
	x := b.Refuse(f, ready("a", "t3", 3).Ref.TaskRef)
	require.Equal(t, placement.PoolFull, x.Reason)
	require.Equal(t, 1, x.Ahead)
}

func TestARefusalSaysWhatStandsAgainstATask(t *testing.T) {
	t.Parallel()
	b := placement.NewBacklog()
	first, second, handler := ready("a", "x", 0), ready("a", "y", 1), ready("a", "z", 2)
	handler.Handler = "resize"
	for _, r := range []view.Ready{first, second, handler} {
		b.Put(r)
	}
	require.Equal(t, placement.NoWorker, b.Refuse(fleet(), first.Ref.TaskRef).Reason)
	full := fleet(seat("w", 0))
	x := b.Refuse(full, second.Ref.TaskRef)
	require.Equal(t, placement.SlotsFull, x.Reason)
	require.Equal(t, full.Seats[0].Session, x.Sessions[0])
	free := fleet(seat("w", 1))
	x = b.Refuse(free, second.Ref.TaskRef)
	require.Equal(t, placement.InLine, x.Reason)
	require.Equal(t, first.Ref, x.First)
	require.Equal(t, placement.Unassigned, b.Refuse(free, first.Ref.TaskRef).Reason)
	require.Equal(t, placement.NoHandler, b.Refuse(free, handler.Ref.TaskRef).Reason)
	b.Drop(first.Ref.TaskRef)
	require.Equal(t, placement.NotWaiting, b.Refuse(free, first.Ref.TaskRef).Reason)
	scripts := fleet(seat("w", 1))
	scripts.Seats[0].Worker.Processes = false
	require.Equal(t, placement.NoProcess, b.Refuse(scripts, second.Ref.TaskRef).Reason)
}

func TestSurveyCountsFlyingIntentsOnce(t *testing.T) {
	t.Parallel()
	v := view.New()
	s := view.SessionRef{Worker: "w", Session: "s"}
	put := func(rev int64, k record.Key, value record.Value) {
		v.Apply(record.Event{Key: k, Value: value, CreateRev: rev, ModRev: rev})
	}
	put(1, record.WorkerKey("w", "s"), record.Worker{Worker: "w", Session: "s", Slots: 4})
	put(2, record.PoolKey("db"), record.PoolLimit{Pool: "db", Slots: 3})
	shown, flying := ready("a", "x", 0), ready("a", "y", 0)
	shown.Pool, flying.Pool = "db", "db"
	put(3, record.AttemptKey(shown.Ref), record.Attempt{
		Run: shown.Ref.Run, Task: shown.Ref.Task, Attempt: 1, State: record.Queued, Token: "t", Worker: "w", Session: "s", Pool: "db",
	})
	f := placement.Survey(v, []placement.Assignment{{Ready: shown, Session: s}, {Ready: flying, Session: s}})
	require.Equal(t, 2, f.Seats[0].Free)
	require.Equal(t, 1, f.Pools["db"])
	require.Equal(t, 2, f.Live["a"])
}

// TestABacklogKeepsItsBooks puts, drops and places at random and compares with
// a plain map: nothing is assigned twice, and no session beyond its slots.
func TestABacklogKeepsItsBooks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		b := placement.NewBacklog()
		want := map[record.TaskRef]view.Ready{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			r := ready(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "flow"), fmt.Sprintf("t%d", rapid.IntRange(0, 9).Draw(rt, "task")),
				rapid.IntRange(0, 3).Draw(rt, "since"))
			r.Priority = rapid.IntRange(0, 2).Draw(rt, "priority")
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0:
				b.Drop(r.Ref.TaskRef)
				delete(want, r.Ref.TaskRef)
			case 1:
				place(rt, b, want)
			default:
				b.Put(r)
				want[r.Ref.TaskRef] = r
			}
			require.Equal(rt, len(want), b.Len())
			require.Equal(rt, len(want), b.Queues()["default"])
		}
		b.DropRun("a.one")
		b.DropRun("b.one")
		require.Zero(rt, b.Len())
		require.Empty(rt, b.Queues())
	})
}

func place(rt *rapid.T, b *placement.Backlog, want map[record.TaskRef]view.Ready) {
	free := rapid.IntRange(0, 3).Draw(rt, "free")
	f := fleet(seat("v", free), seat("w", 1))
	list := b.Place(&f, 0)
	require.Len(rt, list, min(len(want), free+1))
	top := 1 << 30
	for _, a := range list {
		require.Equal(rt, want[a.Ready.Ref.TaskRef], a.Ready)
		require.LessOrEqual(rt, a.Ready.Priority, top)
		top = a.Ready.Priority
		delete(want, a.Ready.Ref.TaskRef)
	}
	for _, r := range want {
		require.False(rt, len(list) > 0 && r.Priority > top, "one of higher priority was left")
	}
	for _, s := range f.Seats {
		require.GreaterOrEqual(rt, s.Free, 0)
	}
}

func BenchmarkPlaceOneOfTenThousand(b *testing.B) {
	backlog := placement.NewBacklog()
	for i := range 10_000 {
		backlog.Put(ready("a", fmt.Sprintf("t%d", i), i))
	}
	for b.Loop() {
		f := fleet(seat("w", 1))
		for _, a := range backlog.Place(&f, 0) {
			backlog.Put(a.Ready)
		}
	}
}
