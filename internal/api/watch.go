package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

// face is what a watcher was last told of a task.
type face struct {
	state  record.AttemptState
	rows   int
	modRev int64 // the highest of its rows
}

func faceOf(t *view.Task) face {
	f := face{state: t.State()}
	for _, row := range t.Rows() {
		f.rows++
		f.modRev = max(f.modRev, row.ModRev)
	}
	return f
}

// watching is one watch of a run. One goroutine owns it.
type watching struct {
	id     record.RunID
	told   map[record.TaskRef]face
	runRev int64 // of the run record that was told last
	rev    int64 // of the view that was told last
	send   func(*writv1.WatchRunResponse) error
}

func (s *Service) watch(ctx context.Context, m *writv1.WatchRunRequest, send func(*writv1.WatchRunResponse) error) error {
	id, err := runID(m.GetRun())
	if err != nil {
		return err
	}
	feed := s.mirror.Feed()
	defer feed.Close()
	w := &watching{id: id, told: map[record.TaskRef]face{}, send: send}
	first := s.reading(ctx, w)
	if first != nil {
		return fmt.Errorf("watch run %s: %w", id, first)
	}
	for {
		select {
		case <-feed.Wake():
		case <-s.draining:
			return fmt.Errorf("watch run %s: %w", id, ErrDraining)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		ended, err := s.follow(ctx, w, feed.Take())
		if err != nil {
			return fmt.Errorf("watch run %s: %w", id, err)
		}
		if ended {
			return nil
		}
	}
}

// reading waits until a run that the mirror does not show yet is there; an
// ended one and one that never was are follow's to tell.
func (s *Service) reading(ctx context.Context, w *watching) error {
	if s.seen(w.id).ModRev != 0 {
		return nil
	}
	ctx, cancel := bound(ctx)
	defer cancel()
	stored, err := s.get(ctx, record.RunKey(w.id))
	if err == nil && stored.ModRev != 0 {
		s.reach(ctx, stored.ModRev)
	}
	return err
}

// follow tells what has changed; ended says that it was the end.
func (s *Service) follow(ctx context.Context, w *watching, touched view.Touched) (ended bool, err error) {
	if !concerns(touched, w.id) {
		return false, nil
	}
	var next *writv1.WatchRunResponse
	there := false
	s.mirror.Read(func(v *view.Active) {
		var r *view.Run
		if r, there = v.Run(w.id); there && r.Loaded() {
			next = w.compare(r, v.Rev(), touched)
		}
	})
	switch {
	case there && next == nil:
		return false, nil
	case there:
		return false, w.send(next)
	default:
		return s.last(ctx, w)
	}
}

// last tells the end of a run that the mirror does not show any more. A run
// that is active nevertheless was reopened, and the watch goes on.
func (s *Service) last(ctx context.Context, w *watching) (ended bool, err error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	var next *writv1.WatchRunResponse
	err = s.find(ctx, w.id, func(v *view.Active, r *view.Run, end bool) {
		ended = end
		if next = w.compare(r, v.Rev(), view.Touched{Full: true}); next == nil {
			next = &writv1.WatchRunResponse{Run: toRun(r.Record, r.ModRev, r.Counts()), Revision: v.Rev()}
		}
		next.Ended = end
	})
	if errors.Is(err, ErrAbsent) && w.rev != 0 {
		err = fmt.Errorf("it was swept before its end could be read: %w", ErrAbsent)
	}
	if err != nil {
		return false, err
	}
	return ended, w.send(next)
}

// concerns says that something of the run was touched.
func concerns(t view.Touched, id record.RunID) bool {
	return t.Full || contains(t.Runs, id) || contains(t.Counted, id)
}

func contains(sorted []record.RunID, id record.RunID) bool {
	_, found := slices.BinarySearch(sorted, id)
	return found
}

// compare is what to tell of a run, or nil where nothing is new. Where a
// touched set names the tasks, only those are looked at.
func (w *watching) compare(r *view.Run, rev int64, touched view.Touched) *writv1.WatchRunResponse {
	m := &writv1.WatchRunResponse{Revision: rev}
	look := func(t *view.Task) {
		now := faceOf(t)
		if before, known := w.told[t.Ref]; !known || before != now {
			w.told[t.Ref] = now
			m.Tasks = append(m.Tasks, toStatus(t))
		}
	}
	if touched.Full || contains(touched.Runs, w.id) || len(w.told) == 0 {
		for t := range r.Tasks() {
			look(t)
		}
	} else {
		for _, ref := range touched.Tasks {
			if t, ok := r.Task(ref); ref.Run == w.id && ok {
				look(t)
			}
		}
	}
	if len(m.Tasks) == 0 && w.runRev == r.ModRev && w.rev != 0 {
		return nil
	}
	m.Run = toRun(r.Record, r.ModRev, r.Counts())
	w.runRev, w.rev = r.ModRev, rev
	return m
}
