package worker_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/writ-sched/writ/pkg/worker"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// explosive panics as it is encoded.
type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("boom") }

func TestWhatAHandlerDoesIsReportedInTheWordsOfTheProtocol(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler worker.Handler
		want    string
		text    string
	}{
		"nothing":      {func(context.Context, *worker.Task) (any, error) { return nil, nil }, "success", ""},
		"error":        {func(context.Context, *worker.Task) (any, error) { return 1, errors.New("no luck") }, "failed handler_error", "no luck"},
		"panic":        {func(context.Context, *worker.Task) (any, error) { panic("ouch") }, "failed handler_panic", "ouch"},
		"goexit":       {func(context.Context, *worker.Task) (any, error) { runtime.Goexit(); return nil, nil }, "failed handler_panic", "goroutine"},
		"skip":         {func(context.Context, *worker.Task) (any, error) { return nil, worker.Skip("nothing new") }, "skipped skipped_by_task", "nothing new"},
		"wrapped skip": {func(context.Context, *worker.Task) (any, error) { return nil, fmt.Errorf("x: %w", worker.ErrSkip) }, "skipped skipped_by_task", ""},
		"large":        {func(context.Context, *worker.Task) (any, error) { return strings.Repeat("x", 64<<10), nil }, "failed result_invalid", "65538 bytes"},
		"just fits":    {func(context.Context, *worker.Task) (any, error) { return strings.Repeat("x", 64<<10-2), nil }, "success", ""},
		"no JSON":      {func(context.Context, *worker.Task) (any, error) { return make(chan int), nil }, "failed result_invalid", "JSON"},
		"explosive":    {func(context.Context, *worker.Task) (any, error) { return explosive{}, nil }, "failed result_invalid", "boom"},
		"timeout": {func(ctx context.Context, _ *worker.Task) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "failed timeout", ""},
		"not UTF-8": {func(context.Context, *worker.Task) (any, error) { return nil, errors.New("\xff") }, "failed handler_error", "�"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := attend(t, handlers(c.handler))
				h.assign("aa", &writv1.Task{Handler: "h", Idempotent: true, Timeout: durationpb.New(time.Minute)})
				f := h.outcome(t)
				h.accept("aa")
				got := strings.ToLower(strings.TrimPrefix(f.GetState().String(), "TASK_STATE_"))
				require.Equal(t, c.want, strings.TrimSpace(got+" "+f.GetCause().GetCode()))
				require.Contains(t, f.GetCause().GetText(), c.text)
				require.NotNil(t, f.GetEndedAt())
			})
		})
	}
}

func TestATaskWithoutItsHandlerFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := attend(t, handlers(func(context.Context, *worker.Task) (any, error) { return nil, nil }))
		h.assign("aa", &writv1.Task{Handler: "other", Idempotent: true})
		require.Equal(t, "no_handler", h.finished(t).GetCause().GetCode())
		h.accept("aa")
		h.assign("bb", &writv1.Task{Run: "true", Idempotent: true})
		require.Equal(t, "start_error", h.finished(t).GetCause().GetCode())
		h.accept("bb")
		h.assign("../cc", &writv1.Task{Handler: "h", Idempotent: true})
		h.assign("dd", &writv1.Task{Handler: "h", Idempotent: true})
		require.Equal(t, "dd", h.finished(t).GetToken(), "what is no token is ignored")
	})
}

func TestSlotsBoundWhatRunsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		running := make(chan string, 8)
		c := handlers(func(ctx context.Context, task *worker.Task) (any, error) {
			running <- task.Token
			select {
			case <-let:
			case <-ctx.Done():
			}
			return nil, nil
		})
		c.Slots = 1
		h := attend(t, c)
		h.assign("aa", &writv1.Task{Handler: "h", Idempotent: true})
		h.assign("bb", &writv1.Task{Handler: "h", Idempotent: true})
		h.probe("bb")
		require.Equal(t, writv1.TokenPhase_TOKEN_PHASE_ASSIGNED, (<-h.said).GetProbeAnswer().GetPhase())
		require.Equal(t, "aa", h.started(t).GetToken())
		require.Equal(t, "aa", <-running)
		require.Empty(t, running)
		let <- struct{}{}
		require.Equal(t, "bb", <-running)
		let <- struct{}{}
	})
}

func TestASlowHandlerHoldsUpNoHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		h := attend(t, handlers(func(context.Context, *worker.Task) (any, error) {
			<-let
			return nil, nil
		}))
		for _, token := range []string{"aa", "bb", "cc", "dd"} {
			h.assign(token, &writv1.Task{Handler: "h", Idempotent: true})
		}
		time.AfterFunc(20*ttl, func() { close(let) })
		for f := (<-h.said).GetFinished(); f == nil; f = (<-h.said).GetFinished() {
		}
		require.Empty(t, h.streams, "the first stream lasts")
	})
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	good := worker.Config{
		Servers: []string{"127.0.0.1:7400"}, Name: "w1",
		Handlers: map[string]worker.Handler{"h": func(context.Context, *worker.Task) (any, error) { return nil, nil }},
	}
	_, err := worker.New(good)
	require.NoError(t, err)
	for text, spoil := range map[string]func(c *worker.Config){
		"no server": func(c *worker.Config) { c.Servers = nil },
		"name":      func(c *worker.Config) { c.Name = "Not A Name" },
		"slots":     func(c *worker.Config) { c.Slots = -1 },
		"queue":     func(c *worker.Config) { c.Queues = []string{"UPPER"} },
		"handler":   func(c *worker.Config) { c.Handlers = map[string]worker.Handler{"h": nil} },
		"nothing":   func(c *worker.Config) { c.Handlers = nil },
		"drain":     func(c *worker.Config) { c.Drain = -1 },
	} {
		c := good
		spoil(&c)
		_, err := worker.New(c)
		require.ErrorContains(t, err, text)
	}
}
