package api

import (
	"context"
	"fmt"
	"strings"

	"github.com/writ-sched/writ/internal/record"
	"github.com/writ-sched/writ/internal/view"
	writv1 "github.com/writ-sched/writ/pkg/writpb/v1"
)

func (s *Service) drainWorker(ctx context.Context, m *writv1.DrainWorkerRequest) (*writv1.DrainWorkerResponse, error) {
	name := record.WorkerName(m.GetWorker())
	if err := record.CheckName(m.GetWorker(), record.MaxName); err != nil {
		return nil, invalid("worker", "", "%v", err)
	}
	w, err := word(m.GetBy(), m.GetWhy())
	if err != nil {
		return nil, err
	}
	worker, err := s.drainAs(ctx, name, w, m.GetUndo())
	if err != nil {
		return nil, fmt.Errorf("drain worker %s: %w", name, err)
	}
	return &writv1.DrainWorkerResponse{Worker: worker}, nil
}

func (s *Service) drainAs(ctx context.Context, name record.WorkerName, w record.Hold, undo bool) (*writv1.WorkerStatus, error) {
	for range races {
		live, used, replica := s.living(name)
		if live.ModRev == 0 {
			return nil, missing("a living worker %s", name)
		}
		next := live.Record
		switch {
		case undo && next.Draining != nil && !strings.HasPrefix(next.Draining.By, "person/"):
			return nil, fmt.Errorf("it drains by its own will, since it stops: %w", ErrEarly)
		case undo == (next.Draining == nil):
			return toWorker(next, used, replica), nil
		case undo:
			next.Draining = nil
		default:
			next.Draining = &w
		}
		next.Write = writeID()
		key := record.WorkerKey(next.Worker, next.Session)
		c, err := record.NewChange(record.RuleDrain, next.Write, []record.Expect{record.At(key, live.ModRev)},
			[]record.Put{{Key: key, Value: next, Lease: next.Lease}})
		if err != nil {
			return nil, err
		}
		o, err := s.commit(ctx, c)
		if err != nil {
			return nil, err
		}
		if o.Verdict == record.Committed {
			return toWorker(next, used, replica), nil
		}
		if err := s.catchUp(ctx, o); err != nil {
			return nil, err
		}
	}
	return nil, ErrContended
}

// living is the session of a worker that lives, as the mirror shows it.
func (s *Service) living(name record.WorkerName) (live view.Kept[record.Worker], used int, replica record.ReplicaID) {
	s.mirror.Read(func(v *view.Active) {
		for _, w := range v.Workers() {
			if w.Record.Worker == name {
				ref := view.SessionRef{Worker: name, Session: w.Record.Session}
				memory, _ := v.Session(ref)
				live, used, replica = w, v.Occupied(ref), memory.Record.Replica
			}
		}
	})
	return live, used, replica
}
