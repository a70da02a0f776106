package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

const (
	// logPiece is how much of a log is read at once.
	logPiece = 64 << 10
	// logPause is the wait before a log that is followed is asked for more.
	logPause = 300 * time.Millisecond
	// logTime bounds one question to a worker.
	logTime = 15 * time.Second
)

// logged is one log that is being read.
type logged struct {
	task   record.TaskRef
	n      int // 0: the latest, as long as nothing was read
	offset int64
	follow bool
}

func readLogRequest(m *writv1.ReadLogRequest) (logged, error) {
	id, err := runID(m.GetRun())
	if err != nil {
		return logged{}, err
	}
	name := m.GetTask()
	if m.GetInstance() != "" {
		name += "." + m.GetInstance()
	}
	task, instance, err := record.ParseTaskName(name)
	if err != nil {
		return logged{}, invalid("task", "", "%v", err)
	}
	if m.GetAttempt() < 0 || m.GetOffset() < 0 {
		return logged{}, invalid("attempt", "", "attempt and offset are numbers from 0")
	}
	return logged{
		task: record.TaskRef{Run: id, Task: task, Instance: instance}, n: int(m.GetAttempt()), offset: m.GetOffset(), follow: m.GetFollow(),
	}, nil
}

func (s *Service) readLog(ctx context.Context, m *writv1.ReadLogRequest, send func(*writv1.ReadLogResponse) error) error {
	l, err := readLogRequest(m)
	if err != nil {
		return err
	}
	for {
		more, err := s.piece(ctx, &l, send)
		if err != nil {
			return fmt.Errorf("read the log of %s: %w", l.task, err)
		}
		switch more {
		case now:
		case never:
			return nil
		case later:
			if !l.follow {
				return nil
			}
			if err := s.idle(ctx, logPause); err != nil {
				return fmt.Errorf("read the log of %s: %w", l.task, err)
			}
		}
	}
}

// when says when there is more of a log.
type when int

const (
	now when = iota
	later
	never
)

// piece sends one piece of a log, if there is one.
func (s *Service) piece(ctx context.Context, l *logged, send func(*writv1.ReadLogResponse) error) (when, error) {
	ask, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	row, err := s.attempt(ask, *l)
	if err != nil {
		return never, err
	}
	if row.Attempt.Attempt == 0 || row.Worker == "" {
		return waits(*l, row)
	}
	chunk, err := s.cluster.ReadLog(ask, row.Holder(), row.Ref(), l.offset, logPiece)
	switch {
	case errors.Is(err, ErrNoLog) && l.follow && !row.State.Terminal():
		return later, nil // dispatched, not started yet
	case err != nil && ask.Err() != nil && ctx.Err() == nil:
		return never, fmt.Errorf("worker %s does not answer: %w", row.Worker, ErrNoWorker)
	case err != nil:
		return never, err
	}
	l.n = row.Attempt.Attempt
	size := len(chunk.GetData())
	if size > 0 || chunk.GetComplete() || chunk.GetLeftOut() > 0 {
		l.offset = chunk.GetOffset() + int64(size)
		err := send(&writv1.ReadLogResponse{
			Attempt: int32(l.n), Offset: chunk.GetOffset(), LeftOut: chunk.GetLeftOut(), Data: chunk.GetData(),
			Complete: chunk.GetComplete(), Note: chunk.GetNote(),
		})
		if err != nil {
			return never, err
		}
	}
	switch {
	case chunk.GetComplete():
		return never, nil
	case size > 0:
		return now, nil
	default:
		return later, nil
	}
}

// waits says of a task that no worker has whether its log is worth waiting for.
func waits(l logged, row view.Row) (when, error) {
	switch {
	case row.State.Terminal():
		return never, fmt.Errorf("attempt %d is %s and was on no worker: %w", row.Attempt.Attempt, row.State, ErrNoLog)
	case l.follow:
		return later, nil
	default:
		return never, fmt.Errorf("it was not dispatched yet: %w", ErrEarly)
	}
}

// attempt finds the row that a log is asked of: a zero one where the task has
// none yet.
func (s *Service) attempt(ctx context.Context, l logged) (row view.Row, err error) {
	known, listed := false, false
	err = s.find(ctx, l.task.Run, func(_ *view.Active, r *view.Run, ended bool) {
		t, ok := r.Task(l.task)
		if known = ok; !ok {
			return
		}
		rows := t.Rows()
		for _, one := range rows {
			if l.n == 0 || one.Attempt.Attempt == l.n {
				row, listed = one, true
			}
		}
		listed = listed || l.n == 0 && !ended
	})
	switch {
	case err != nil:
		return view.Row{}, err
	case !known:
		return view.Row{}, missing("task %s of run %s", l.task.Name(), l.task.Run)
	case !listed:
		return view.Row{}, missing("attempt %d of task %s", l.n, l.task.Name())
	default:
		return row, nil
	}
}

// idle waits, unless the caller goes or this replica drains.
func (s *Service) idle(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.draining:
		return ErrDraining
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
