package worker

import (
	"time"

	"github.com/writ-sched/writ/internal/session"
)

// WithClock makes a worker read another clock than the machine's.
func WithClock(w *Worker, now func() time.Duration) {
	w.now = func() session.Instant { return session.Instant(now()) }
}
