package workflow

import (
	"time"

	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// defaultOption is an option of tasks and of defaults.
type defaultOption func(d *draft)

func (o defaultOption) task(d *draft) { o(d) }
func (defaultOption) mayBeDefault()   {}

// Retry says how often and when a failed task is tried again. Losses of a
// worker are counted apart, see [LostLimit].
type Retry struct {
	// Limit is how many times, 0 to 1000.
	Limit int
	// Delay is the wait before the first retry, from the failure.
	Delay time.Duration
	// Backoff is the factor from one wait to the next, 1 to 100. Zero means 1.
	Backoff float64
	// MaxDelay is the longest wait. Zero means no bound.
	MaxDelay time.Duration
	// Jitter is the largest share of a wait that may be added to it by chance,
	// 0 to 1.
	Jitter float64
}

// Retries sets how often and when the task is tried again after a failure. It
// replaces the default as a whole, unlike in the workflow file: a program
// copies a Retry and changes what differs.
func Retries(r Retry) DefaultOption {
	return defaultOption(func(d *draft) {
		d.message.Retries = nil
		if r == (Retry{}) {
			return
		}
		d.message.Retries = &writv1.Retry{
			Limit: d.number("retries.limit", r.Limit), Delay: bound(r.Delay), Backoff: r.Backoff, MaxDelay: bound(r.MaxDelay), Jitter: r.Jitter,
		}
	})
}

// Idempotent says that the task may run again, and that two attempts of it may
// overlap: it is started again as soon as its worker is gone.
func Idempotent() DefaultOption {
	return defaultOption(func(d *draft) { d.message.Idempotent = true })
}

// NotIdempotent takes back an [Idempotent] of the defaults.
func NotIdempotent() DefaultOption {
	return defaultOption(func(d *draft) { d.message.Idempotent = false })
}

// LostPolicy says what happens to a task that is not idempotent when the worker
// that runs it is gone.
type LostPolicy = writv1.OnLost

// What happens to a task whose worker is lost.
const (
	// LostWait leaves the task as it is until the worker is back or an operator
	// decides. It is the policy of a task that names none.
	LostWait = writv1.OnLost_ON_LOST_WAIT
	// LostRetry runs the task again once the old process is proven dead, so that
	// two never overlap. It is refused for a handler.
	LostRetry = writv1.OnLost_ON_LOST_RETRY
	// LostFail fails the task as soon as the worker is gone.
	LostFail = writv1.OnLost_ON_LOST_FAIL
)

// OnLost sets what happens when the worker of the task is lost. It is nothing
// to an idempotent task.
func OnLost(policy LostPolicy) DefaultOption {
	return defaultOption(func(d *draft) {
		if _, known := writv1.OnLost_name[int32(policy)]; !known {
			d.add("on_lost", "%d is not known", int32(policy))
		}
		d.onLost = true
		d.message.OnLost = policy
	})
}

// LostLimit sets how many losses of a worker the task survives, 1 to 1000. 0
// means 3.
func LostLimit(n int) DefaultOption {
	return defaultOption(func(d *draft) { d.message.LostLimit = d.number("lost_limit", n) })
}
