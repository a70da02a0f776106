package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/writ-sched/writ/pkg/worker"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// processes are attempts that run until their context ends, or let says so.
type processes struct {
	began    chan *writv1.Assign
	fences   chan time.Duration // of what began
	extended chan time.Duration
	forgot   chan string
	causes   chan error
	let      chan struct{}
	grace    chan time.Duration
	left     []*writv1.Finished
}

func newProcesses() *processes {
	return &processes{
		began: make(chan *writv1.Assign, 8), fences: make(chan time.Duration, 8), extended: make(chan time.Duration, 256),
		forgot: make(chan string, 8), causes: make(chan error, 8), let: make(chan struct{}), grace: make(chan time.Duration, 8),
	}
}

func (p *processes) config() worker.Config {
	return worker.Config{Slots: 4, Processes: &worker.Processes{
		Prepare: func(context.Context) ([]*writv1.Finished, error) { return p.left, nil },
		Run:     p.run,
		Extend:  func(_ context.Context, fence time.Duration) { p.extended <- fence },
		Forget:  func(token string) { p.forgot <- token },
		ReadLog: func(ask *writv1.ServeLogsResponse) *writv1.LogChunk {
			return &writv1.LogChunk{Ask: ask.GetAsk(), Data: []byte("a line\n")}
		},
		Grace: func(d time.Duration) { p.grace <- d },
	}}
}

func (p *processes) run(ctx context.Context, a *writv1.Assign, fence time.Duration) *writv1.Finished {
	p.began <- a
	p.fences <- fence
	f := &writv1.Finished{Token: a.GetToken(), Attempt: a.GetAttempt(), State: writv1.TaskState_TASK_STATE_SUCCESS}
	select {
	case <-p.let:
	case <-ctx.Done():
		p.causes <- context.Cause(ctx)
		f.State = writv1.TaskState_TASK_STATE_FAILED
		f.Cause = &writv1.Cause{Code: "fenced"}
	}
	return f
}

func retry() *writv1.Task { return &writv1.Task{Run: "true", OnLost: writv1.OnLost_ON_LOST_RETRY} }

func TestAtItsOwnDeadlineTheWorkerGivesUpEverythingFenced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses()
		h := attend(t, p.config())
		require.True(t, h.hello.GetProcesses())
		require.Equal(t, time.Second, <-p.grace)
		origin := <-p.extended // by the Hello
		h.assign("runs", retry())
		h.started(t)
		h.allow("runs")
		<-p.began
		require.Equal(t, origin, <-p.fences)
		h.assign("stays", &writv1.Task{Run: "true"})
		h.started(t)
		h.allow("stays")
		<-p.began
		require.Zero(t, <-p.fences, "one that may wait is not fenced")
		h.assign("waits", retry())
		h.started(t)
		require.Equal(t, origin+ttl/3, <-p.extended, "a heartbeat moves the fence by when it was sent")

		h.set(func() { h.mute = true })
		at := time.Now()
		require.ErrorIs(t, <-p.causes, worker.ErrFenced)
		require.LessOrEqual(t, time.Since(at), ttl-margin)
		h.set(func() { h.mute = false })
		next := <-h.streams
		phases := map[string]writv1.TokenPhase{}
		for _, held := range next.hello.GetHeld() {
			phases[held.GetToken()] = held.GetPhase()
		}
		require.Equal(t, map[string]writv1.TokenPhase{
			"runs": writv1.TokenPhase_TOKEN_PHASE_UNREPORTED, "waits": writv1.TokenPhase_TOKEN_PHASE_UNREPORTED,
			"stays": writv1.TokenPhase_TOKEN_PHASE_RUNNING,
		}, phases)
		next.allow("waits")
		for range 2 {
			require.Equal(t, "fenced", next.finished(t).GetCause().GetCode())
		}
		require.Empty(t, p.began, "what was given up is never started")
		require.Empty(t, p.causes, "what is not fenced lives on")
	})
}

func TestLogsAreServedBesideTheStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProcesses()
		h := attend(t, p.config())
		logs := <-h.logs
		open, err := logs.Recv()
		require.NoError(t, err)
		require.Equal(t, h.hello.GetSession(), open.GetOpen().GetSession())
		require.NoError(t, logs.Send(&writv1.ServeLogsResponse{Ask: 5, Attempt: ref("aa"), Limit: 10}))
		chunk, err := logs.Recv()
		require.NoError(t, err)
		require.Equal(t, int64(5), chunk.GetChunk().GetAsk())
		require.Equal(t, "a line\n", string(chunk.GetChunk().GetData()))
	})
}

func TestAReportOutlivesTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := newProcesses()
		c := p.config()
		c.StateDir = dir
		h := attend(t, c)
		require.Empty(t, h.hello.GetPredecessor())
		require.False(t, h.hello.GetAttested())
		h.assign("aa", &writv1.Task{Run: "true", Idempotent: true})
		h.started(t)
		h.allow("aa")
		p.let <- struct{}{}
		first := h.finished(t)
		h.stop()
		require.NoError(t, h.end())
		require.Empty(t, p.forgot, "nothing is let go of before the answer")

		next := attend(t, c)
		require.Equal(t, h.hello.GetSession(), next.hello.GetPredecessor())
		require.NotEqual(t, h.hello.GetSession(), next.hello.GetSession())
		require.True(t, next.hello.GetAttested())
		require.Equal(t, int32(1), next.hello.GetUnsettled())
		second := next.finished(t)
		require.True(t, proto.Equal(first, second), "%v %v", first, second)
		require.Equal(t, h.hello.GetSession(), second.GetSession())
		next.accept("aa")
		require.Equal(t, h.hello.GetSession(), (<-next.said).GetSettled().GetPredecessor())
		require.Equal(t, "aa", <-p.forgot)
		close(next.stream.end)
		again := <-next.streams
		require.NotNil(t, (<-again.said).GetSettled(), "it may have been lost with the stream")
		next.stop()
		require.NoError(t, next.end())

		third := attend(t, c)
		require.Zero(t, third.hello.GetUnsettled())
		require.Equal(t, next.hello.GetSession(), third.hello.GetPredecessor())
	})
}

func TestWhatAnEarlierLifeLeftIsReportedInItsName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := newProcesses()
		c := p.config()
		c.StateDir = dir
		h := attend(t, c)
		h.stop()
		require.NoError(t, h.end())

		p.left = []*writv1.Finished{{Token: "aa", Attempt: ref("aa"), State: writv1.TaskState_TASK_STATE_FAILED, Cause: &writv1.Cause{Code: "worker_lost"}}}
		next := attend(t, c)
		require.True(t, next.hello.GetAttested())
		f := next.finished(t)
		require.Equal(t, h.hello.GetSession(), f.GetSession())
		next.accept("aa")
		require.NotNil(t, (<-next.said).GetSettled())
	})
}

func TestNothingIsAttestedThatWasNotLookedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c := newProcesses().config()
		c.StateDir = dir
		h := attend(t, c)
		h.stop()
		require.NoError(t, h.end())

		broken := c
		broken.Processes = &worker.Processes{Prepare: func(context.Context) ([]*writv1.Finished, error) { return nil, errors.New("stuck") }}
		require.ErrorContains(t, start(t, broken, newServer(t)).end(), "stuck")

		only := handlers(func(context.Context, *worker.Task) (any, error) { return nil, nil })
		only.StateDir = dir
		second := attend(t, only)
		require.Equal(t, h.hello.GetSession(), second.hello.GetPredecessor(), "a life that could not begin is none")
		require.False(t, second.hello.GetAttested(), "the processes before may live")
		second.stop()
		require.NoError(t, second.end())

		third := attend(t, only)
		require.True(t, third.hello.GetAttested())
	})
}
