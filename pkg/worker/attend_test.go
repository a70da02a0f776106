package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/pkg/worker"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func TestAnIdempotentTaskRunsAtOnceAndIsReportedUntilAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := attend(t, handlers(func(_ context.Context, task *worker.Task) (any, error) {
			return map[string]any{"who": task.Params["who"], "fence": task.Fence}, nil
		}))
		require.Equal(t, []string{"h"}, h.hello.GetHandlers())
		require.Equal(t, int32(4), h.hello.GetSlots())
		require.False(t, h.hello.GetAttested())
		h.assign("aa", &writv1.Task{Handler: "h", Idempotent: true})
		f := h.finished(t)
		require.Equal(t, writv1.TaskState_TASK_STATE_SUCCESS, f.GetState())
		require.JSONEq(t, `{"who": "world", "fence": 7}`, string(f.GetResult()))
		require.Equal(t, h.hello.GetSession(), f.GetSession())
		at := time.Now()
		require.Equal(t, f.GetResult(), h.finished(t).GetResult())
		require.GreaterOrEqual(t, time.Since(at), 4*time.Second)
		h.accept("aa")
		synctest.Wait()
		h.stop()
		require.NotNil(t, (<-h.said).GetDrain())
		require.NoError(t, h.end())
	})
}

func TestOnlyTheStartOfALongIdempotentTaskIsToldApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := attend(t, handlers(func(ctx context.Context, _ *worker.Task) (any, error) {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return nil, nil
		}))
		h.assign("aa", &writv1.Task{Handler: "h", Idempotent: true})
		at := time.Now()
		require.False(t, h.started(t).GetClaim())
		require.GreaterOrEqual(t, time.Since(at), 100*time.Millisecond)
		require.Less(t, time.Since(at), time.Second)
		f := h.finished(t)
		require.Equal(t, at, f.GetStartedAt().AsTime().Local())
	})
}

func TestATaskThatIsNotIdempotentRunsOnceItsClaimIsGranted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ran := make(chan string, 8)
		h := attend(t, handlers(func(_ context.Context, task *worker.Task) (any, error) {
			ran <- task.Token
			return nil, nil
		}))
		h.assign("aa", &writv1.Task{Handler: "h"})
		h.assign("bb", &writv1.Task{Handler: "h"})
		require.True(t, h.started(t).GetClaim())
		require.True(t, h.started(t).GetClaim())
		synctest.Wait()
		require.Empty(t, ran)
		require.True(t, h.started(t).GetClaim(), "a claim is sent again")
		h.answer("bb", false)
		h.allow("aa")
		require.Equal(t, "aa", <-ran)
		h.accept("aa")
		h.probe("bb")
		for m := range h.said {
			if a := m.GetProbeAnswer(); a != nil {
				require.Equal(t, writv1.TokenPhase_TOKEN_PHASE_UNSPECIFIED, a.GetPhase())
				break
			}
		}
		require.Empty(t, ran)
	})
}

func TestABrokenStreamTouchesNothingThatRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		h := attend(t, handlers(func(ctx context.Context, _ *worker.Task) (any, error) {
			select {
			case <-let:
			case <-ctx.Done():
			}
			return nil, ctx.Err()
		}))
		h.assign("aa", &writv1.Task{Handler: "h", Idempotent: true})
		h.started(t)
		h.assign("bb", &writv1.Task{Handler: "h"})
		h.started(t)
		close(h.stream.end)
		next := <-h.streams
		require.Equal(t, h.hello.GetSession(), next.hello.GetSession())
		require.Greater(t, next.hello.GetStream(), h.hello.GetStream())
		require.Len(t, next.hello.GetHeld(), 2)
		require.Equal(t, writv1.TokenPhase_TOKEN_PHASE_RUNNING, next.hello.GetHeld()[0].GetPhase())
		require.Equal(t, writv1.TokenPhase_TOKEN_PHASE_ASSIGNED, next.hello.GetHeld()[1].GetPhase())
		require.Equal(t, "bb", next.started(t).GetToken(), "what was not answered is sent again")
		require.Equal(t, "aa", next.started(t).GetToken())
		next.allow("aa")
		next.answer("bb", false)
		close(let)
		require.Equal(t, writv1.TaskState_TASK_STATE_SUCCESS, next.finished(t).GetState())
	})
}

func TestAServerThatFallsSilentIsLeftForAnotherBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := newServer(t), newServer(t)
		start(t, handlers(func(context.Context, *worker.Task) (any, error) { return nil, nil }), a, b)
		var first *stream
		silent, other := a, b
		select {
		case first = <-a.streams:
		case first = <-b.streams:
			silent, other = b, a
		}
		silent.set(func() { silent.mute = true })
		at := time.Now()
		second := <-other.streams
		require.Equal(t, first.hello.GetSession(), second.hello.GetSession())
		require.Less(t, time.Since(at), ttl-margin)
	})
}

func TestARefusedWorkerEndsWithTheServersWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.refuse = &writv1.Refused{Code: "superseded", Text: "a later one took over"}
		h := start(t, handlers(func(context.Context, *worker.Task) (any, error) { return nil, nil }), s)
		var refused *worker.RefusedError
		require.ErrorAs(t, h.end(), &refused)
		require.Equal(t, "superseded", refused.Code)
	})
}

func TestATakenNameIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.refuse = &writv1.Refused{Code: "name_taken", Text: "another lives", RetryAfter: durationpb.New(ttl)}
		h := start(t, handlers(func(context.Context, *worker.Task) (any, error) { return nil, nil }), s)
		time.AfterFunc(ttl, func() { s.set(func() { s.refuse = nil }) })
		h.stream = <-s.streams
		require.Greater(t, s.hellos, 2)
	})
}

func TestCancelAndProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := attend(t, handlers(func(ctx context.Context, _ *worker.Task) (any, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}))
		h.assign("aa", &writv1.Task{Handler: "h", Idempotent: true})
		h.started(t)
		h.probe("aa")
		require.Equal(t, writv1.TokenPhase_TOKEN_PHASE_RUNNING, (<-h.said).GetProbeAnswer().GetPhase())
		h.probe("bb")
		answer := (<-h.said).GetProbeAnswer()
		require.Equal(t, "bb", answer.GetToken())
		require.Equal(t, ref("bb").GetTask(), answer.GetAttempt().GetTask())
		h.assign("bb", &writv1.Task{Handler: "h", Idempotent: true})
		require.NotNil(t, (<-h.said).GetProbeAnswer(), "a refused token is never started")
		h.cancel("aa")
		f := h.finished(t)
		require.Equal(t, writv1.TaskState_TASK_STATE_CANCELLED, f.GetState())
		require.Equal(t, "cancelled", f.GetCause().GetCode())
	})
}

func TestAWorkerThatStopsLetsWhatRunsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		c := handlers(func(ctx context.Context, _ *worker.Task) (any, error) {
			<-let
			return nil, ctx.Err()
		})
		c.Drain = time.Minute
		h := attend(t, c)
		h.assign("aa", &writv1.Task{Handler: "h", Idempotent: true})
		h.started(t)
		h.assign("bb", &writv1.Task{Handler: "h"})
		h.started(t)
		h.stop()
		require.NotNil(t, (<-h.said).GetDrain())
		f := h.finished(t)
		require.Equal(t, "bb", f.GetToken())
		require.Equal(t, "worker_stopped", f.GetCause().GetCode())
		h.accept("bb")
		h.assign("cc", &writv1.Task{Handler: "h", Idempotent: true})
		for (<-h.said).GetProbeAnswer() == nil {
		}
		close(let)
		for f = (<-h.said).GetFinished(); f == nil; f = (<-h.said).GetFinished() {
		}
		require.Equal(t, writv1.TaskState_TASK_STATE_SUCCESS, f.GetState())
		h.accept("aa")
		require.NoError(t, h.end())
	})
}

func TestWhatOutlivesTheDrainIsEndedAndReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := handlers(func(ctx context.Context, _ *worker.Task) (any, error) {
			<-ctx.Done()
			return nil, errors.New("interrupted")
		})
		c.Drain = time.Minute
		h := attend(t, c)
		h.assign("aa", &writv1.Task{Handler: "h", Idempotent: true})
		h.started(t)
		h.allow("aa")
		at := time.Now()
		h.stop()
		require.NotNil(t, (<-h.said).GetDrain())
		f := h.finished(t)
		require.GreaterOrEqual(t, time.Since(at), time.Minute)
		require.Equal(t, "worker_stopped", f.GetCause().GetCode())
		h.accept("aa")
		require.NoError(t, h.end())
	})
}
