package api_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/writ-sched/writ/internal/api"
	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func (w *world) watch(id record.RunID) grpc.ServerStreamingClient[writv1.WatchRunResponse] {
	w.t.Helper()
	stream, err := w.runs.WatchRun(w.t.Context(), &writv1.WatchRunRequest{Run: string(id)})
	require.NoError(w.t, err)
	return stream
}

// merge receives until done says so, and returns the run with its tasks as the
// messages tell of them.
func merge(t *testing.T, stream grpc.ServerStreamingClient[writv1.WatchRunResponse], tasks map[string]*writv1.TaskStatus, done func(*writv1.WatchRunResponse) bool) *writv1.Run {
	t.Helper()
	var rev int64
	for {
		m, err := stream.Recv()
		require.NoError(t, err)
		require.GreaterOrEqual(t, m.GetRevision(), rev)
		rev = m.GetRevision()
		for _, task := range m.GetTasks() {
			require.False(t, proto.Equal(tasks[task.GetTask()], task), "told twice: %v", task)
			tasks[task.GetTask()] = task
		}
		if done(m) {
			return m.GetRun()
		}
	}
}

func TestWatchTellsWhatChangesUntilTheEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	stream := w.watch(id)
	tasks := map[string]*writv1.TaskStatus{}
	merge(t, stream, tasks, func(m *writv1.WatchRunResponse) bool {
		require.Len(t, m.GetTasks(), 3, "the first message has all")
		return true
	})
	w.begin("another") // is not told
	w.row(id, "list", 1, record.Running)
	merge(t, stream, tasks, func(m *writv1.WatchRunResponse) bool {
		require.Equal(t, string(id), m.GetRun().GetRun())
		require.Len(t, m.GetTasks(), 1)
		return m.GetTasks()[0].GetState() == writv1.TaskState_TASK_STATE_RUNNING
	})
	w.end(id, record.RunSuccess)
	run := merge(t, stream, tasks, (*writv1.WatchRunResponse).GetEnded)
	require.Equal(t, writv1.RunState_RUN_STATE_SUCCESS, run.GetState())
	_, err := stream.Recv()
	require.ErrorIs(t, err, io.EOF)
	for _, task := range w.get(id).GetTasks() {
		require.True(t, proto.Equal(task, tasks[task.GetTask()]))
	}
}

func TestWatchOfAnEndedRunTellsItsEndAtOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.end(id, record.RunFailed)
	m, err := w.watch(id).Recv()
	require.NoError(t, err)
	require.True(t, m.GetEnded())
	require.Len(t, m.GetTasks(), 3)
	require.Equal(t, writv1.RunState_RUN_STATE_FAILED, m.GetRun().GetState())
}

func TestWatchOverANewListMissesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	stream := w.watch(id)
	_, err := stream.Recv()
	require.NoError(t, err)
	w.Cut()
	w.row(id, "list", 1, record.Success)
	merge(t, stream, map[string]*writv1.TaskStatus{}, func(m *writv1.WatchRunResponse) bool { return len(m.GetTasks()) == 1 })
	w.end(id, record.RunSuccess)
	merge(t, stream, map[string]*writv1.TaskStatus{}, (*writv1.WatchRunResponse).GetEnded)
}

func TestManyWatchersSeeTheSameEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	for i := range 20 {
		id := w.begin(fmt.Sprint("run-", i))
		streams := []grpc.ServerStreamingClient[writv1.WatchRunResponse]{w.watch(id), w.watch(id), w.watch(id)}
		w.end(id, record.RunSuccess)
		for _, s := range streams {
			tasks := map[string]*writv1.TaskStatus{}
			merge(t, s, tasks, (*writv1.WatchRunResponse).GetEnded)
			require.Len(t, tasks, 3)
		}
	}
}

func TestDrainingReplicaSendsItsWatchersAway(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.row(id, "list", 1, record.Running)
	stream := w.watch(id)
	_, err := stream.Recv()
	require.NoError(t, err)
	w.cluster.log = func(view.SessionRef, record.Ref, int64) (*writv1.LogChunk, error) { return &writv1.LogChunk{}, nil }
	log, err := w.runs.ReadLog(t.Context(), &writv1.ReadLogRequest{Run: string(id), Task: "list", Follow: true})
	require.NoError(t, err)
	w.service.Drain()
	w.service.Drain() // twice is once
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, err = log.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
}

// text is a log in the making.
type text struct {
	data  string
	asked []view.SessionRef
	piece int // how much is given at once
	done  bool
	fail  error
}

func (l *text) read(who view.SessionRef, _ record.Ref, offset int64) (*writv1.LogChunk, error) {
	l.asked = append(l.asked, who)
	if l.fail != nil {
		return nil, l.fail
	}
	rest := l.data[min(int(offset), len(l.data)):]
	rest = rest[:min(l.piece, len(rest))]
	return &writv1.LogChunk{Offset: offset, Data: []byte(rest), Complete: l.done && int(offset)+len(rest) == len(l.data)}, nil
}

func (w *world) log(m *writv1.ReadLogRequest) (string, error) {
	w.t.Helper()
	stream, err := w.runs.ReadLog(w.t.Context(), m)
	require.NoError(w.t, err)
	all := ""
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all += string(m.GetData())
	}
}

func TestLogIsReadFromTheWorkerOfTheAttempt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.row(id, "list", 1, record.Failed)
	w.row(id, "list", 2, record.Running)
	l := &text{data: "first line\nsecond", piece: 5}
	w.cluster.log = l.read
	got, err := w.log(&writv1.ReadLogRequest{Run: string(id), Task: "list", Offset: 6})
	require.NoError(t, err)
	require.Equal(t, "line\nsecond", got)
	require.Equal(t, view.SessionRef{Worker: "w1", Session: "s1"}, l.asked[0])

	stream, err := w.runs.ReadLog(t.Context(), &writv1.ReadLogRequest{Run: string(id), Task: "list", Follow: true})
	require.NoError(t, err)
	all := ""
	for {
		m, err := stream.Recv()
		require.NoError(t, err)
		require.EqualValues(t, 2, m.GetAttempt())
		require.EqualValues(t, len(all), m.GetOffset())
		all += string(m.GetData())
		if all == "first line\nsecond" {
			w.cluster.set(func(*outside) { l.data, l.done = l.data+" and last", true })
		}
		if m.GetComplete() {
			break
		}
	}
	require.Equal(t, "first line\nsecond and last", all)
	_, err = stream.Recv()
	require.ErrorIs(t, err, io.EOF)

	w.end(id, record.RunSuccess) // row 1 of list is written again
	got, err = w.log(&writv1.ReadLogRequest{Run: string(id), Task: "list", Attempt: 2})
	require.NoError(t, err)
	require.Equal(t, "first line\nsecond and last", got)
}

func TestLogThatIsNotThereSaysWhy(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	w.row(id, "list", 1, record.Running)
	l := &text{}
	w.cluster.log = l.read
	for _, c := range []struct {
		task    string
		attempt int32
		fail    error
		code    codes.Code
	}{
		{"nothing", 0, nil, codes.NotFound},
		{"list", 2, nil, codes.NotFound},
		{"count", 0, nil, codes.FailedPrecondition},
		{"A", 0, nil, codes.InvalidArgument},
		{"list", -1, nil, codes.InvalidArgument},
		{"list", 1, fmt.Errorf("on w1: %w", api.ErrNoLog), codes.NotFound},
		{"list", 1, fmt.Errorf("on w1: %w", api.ErrNoWorker), codes.Unavailable},
	} {
		w.cluster.set(func(*outside) { l.fail = c.fail })
		_, err := w.log(&writv1.ReadLogRequest{Run: string(id), Task: c.task, Attempt: c.attempt})
		require.Equal(t, c.code, status.Code(err), "%v: %v", c, err)
	}
}

func TestFollowedLogWaitsForItsTask(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.apply(census())
	id := w.begin("one")
	l := &text{data: "here", piece: 10, done: true}
	w.cluster.log = l.read
	stream, err := w.runs.ReadLog(t.Context(), &writv1.ReadLogRequest{Run: string(id), Task: "list", Follow: true})
	require.NoError(t, err)
	w.row(id, "list", 1, record.Running)
	m, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, "here", string(m.GetData()))
}
