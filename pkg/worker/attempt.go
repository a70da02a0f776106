package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/writ-sched/writ/internal/record"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// maxResult bounds a task's JSON result in bytes.
const maxResult = 64 << 10

// execute runs one attempt to its end and says how it ended. It never panics.
func (w *Worker) execute(ctx context.Context, a *writv1.Assign, fence time.Duration) *writv1.Finished {
	if name := a.GetTask().GetHandler(); name != "" {
		h, ok := w.config.Handlers[name]
		if !ok {
			return ended(a, writv1.TaskState_TASK_STATE_FAILED, record.CauseNoHandler, "the worker has no handler "+name)
		}
		return w.handle(ctx, a, h)
	}
	if w.config.Processes == nil {
		return ended(a, writv1.TaskState_TASK_STATE_FAILED, record.CauseStartError, "the worker runs no processes")
	}
	return w.config.Processes.Run(ctx, a, fence)
}

// handle calls a handler, within the task's timeout.
func (w *Worker) handle(ctx context.Context, a *writv1.Assign, h Handler) *writv1.Finished {
	started := time.Now().UTC()
	if limit := a.GetTask().GetTimeout().AsDuration(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	value, err := call(ctx, taskOf(a), h)
	var result []byte
	if err == nil {
		result, err = encode(value)
	}
	f := outcome(ctx, a, result, err)
	f.StartedAt = timestamppb.New(started)
	return f
}

var (
	errTimeout = errors.New("the attempt ran longer than its timeout")
	errPanic   = errors.New("the handler panicked")
	errResult  = errors.New("the result cannot be taken")
)

// call calls a handler and turns a panic into an error.
func call(ctx context.Context, t *Task, h Handler) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
	}()
	return h(ctx, t)
}

// encode makes a result of what a handler returned; nil is none. A value that
// panics as it is encoded is one that cannot be taken.
func encode(value any) (text []byte, err error) {
	if value == nil {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it is not JSON: %v", errResult, p)
		}
	}()
	text, err = json.Marshal(value)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: it is not JSON: %w", errResult, err)
	case len(text) > maxResult:
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", errResult, len(text), maxResult)
	}
	return text, nil
}

// outcome turns what a handler returned into a report.
func outcome(ctx context.Context, a *writv1.Assign, result []byte, err error) *writv1.Finished {
	failed := writv1.TaskState_TASK_STATE_FAILED
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, errResult):
		return ended(a, failed, record.CauseResultInvalid, err.Error())
	case errors.Is(err, ErrSkip):
		return ended(a, writv1.TaskState_TASK_STATE_SKIPPED, record.CauseSkippedByTask, err.Error())
	case errors.Is(err, errPanic):
		return ended(a, failed, record.CauseHandlerPanic, err.Error())
	case err != nil && errors.Is(cause, ErrCancelled):
		return ended(a, writv1.TaskState_TASK_STATE_CANCELLED, record.CauseCancelled, err.Error())
	case err != nil && errors.Is(cause, ErrStopped):
		return ended(a, failed, record.CauseWorkerStopped, err.Error())
	case err != nil && errors.Is(cause, ErrFenced):
		return ended(a, failed, record.CauseFenced, err.Error())
	case err != nil && errors.Is(cause, errTimeout):
		return ended(a, failed, record.CauseTimeout, err.Error())
	case err != nil:
		return ended(a, failed, record.CauseHandlerError, err.Error())
	}
	f := ended(a, writv1.TaskState_TASK_STATE_SUCCESS, record.CauseNone, "")
	f.Result = result
	return f
}

// ended is the report of an attempt that ends now.
func ended(a *writv1.Assign, state writv1.TaskState, code record.CauseCode, text string) *writv1.Finished {
	cause := record.Because(code, text)
	return &writv1.Finished{
		Token: a.GetToken(), Attempt: a.GetAttempt(), State: state, Idempotent: a.GetTask().GetIdempotent(),
		Cause: &writv1.Cause{Code: string(cause.Code), Text: cause.Text}, EndedAt: timestamppb.New(time.Now().UTC()),
	}
}

func taskOf(a *writv1.Assign) *Task {
	t := &Task{
		Run: a.GetAttempt().GetRun(), Workflow: a.GetWorkflow(), Task: a.GetAttempt().GetTask(), Instance: a.GetAttempt().GetInstance(),
		Attempt: int(a.GetAttempt().GetAttempt()), Token: a.GetToken(), Fence: a.GetFence(), Params: a.GetParams(), Inputs: a.GetInputs(),
	}
	if a.GetLogicalDate().IsValid() && a.GetLogicalDate() != nil {
		t.LogicalDate = a.GetLogicalDate().AsTime()
	}
	if in := a.GetTask().GetInput(); in != "" {
		t.Input = json.RawMessage(in)
	}
	return t
}
